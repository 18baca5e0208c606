/// Why words are doubted that the shell takes for one.
pub(super) const JOINED: &str = "two words without a blank between them";

/// Checks that between two tokens there is nothing that a shell would take for part of a word or for the end of a command.
///
/// The grammar skips more than blanks: an escaped space, a carriage return, the end of a line where it expects none. `is_within` says that
/// both tokens belong to one simple command, which the end of a line would have ended.
pub(super) fn check(source: &str, end: usize, start: usize, is_within: bool) -> Result<(), &'static str> {
    let bytes = source.as_bytes();
    let Some(gap) = source.get(end..start) else { return Err("its parts overlap") };
    if gap.is_empty() {
        let joins = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(|byte| is_in_word(*byte));
        let joined = joins(end.checked_sub(1)) && joins(Some(start));
        return if joined { Err(JOINED) } else { Ok(()) };
    }
    let mut at = end;
    while at < start {
        match bytes[at] {
            b' ' | b'\t' => at += 1,
            b'\n' if !is_within => at += 1,
            b'\n' => return Err("a line's end in the middle of a command"),
            b'\\' if bytes.get(at + 1) == Some(&b'\n') => {
                let beside = [at.checked_sub(1), Some(at + 2)];
                let has_blank = beside.into_iter().flatten().any(|at| matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n')));
                if !has_blank {
                    return Err("a word that goes on in the next line");
                }
                at += 2;
            }
            _ => return Err("a character that is no blank to the shell"),
        }
    }
    Ok(())
}

/// Returns whether a byte is part of a word where nothing separates it from the one before.
///
/// A backquote may begin or end a substitution, so that it says nothing here: [`super::walk`] knows where the last word ended.
pub(super) fn is_in_word(byte: u8) -> bool {
    !matches!(byte, b' ' | b'\t' | b'\n' | b'|' | b'&' | b';' | b'<' | b'>' | b'(' | b')' | b'`')
}
