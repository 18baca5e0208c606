//! What may stand in a text that cannot be read: each of its pieces, taken for a command of its own.
//!
//! Where grammar and shell disagree, or the text is too deep for the parser, nothing of what stands plainly in it would be seen otherwise. This
//! sees more than there is, also what is only text; so it is asked of such texts alone, and what it finds makes a verdict stricter, never milder.

use super::Doubt;
use super::numbers::COMPUTES;

/// Doubts of what a value holds, or of what an expansion does: the text itself was read.
const READ_ALL_THE_SAME: [&str; 7] = [
    COMPUTES,
    "an expansion that may do more than insert a value",
    "an expansion that cannot be followed",
    "a test that may do more",
    "an assignment to part of a list may run what a variable holds",
    "a key of a list may run what it holds",
    "a redirection that sets a variable",
];

/// Words that stand in front of a command.
const BEFORE: [&str; 14] = ["if", "then", "else", "elif", "while", "until", "do", "!", "time", "coproc", "[", "[[", "exec", "-p"];

/// Returns whether a doubt says that the text may hang together otherwise than it was read.
pub(super) fn is_of_text(doubt: &Doubt) -> bool {
    // What stands between backquotes is no value.
    !READ_ALL_THE_SAME.contains(&doubt.why) || doubt.what.contains('`')
}

/// Returns a text without the words that the grammar reads no group behind: `time { make; }`, `coproc NAME { make; }`. `None` where it has none.
pub(super) fn without_words_before_groups(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '(']) {
        let before = rest[..at].trim_end();
        let start = before.rfind(is_end_or_line).map_or(0, |end| end + before[end..].chars().next().map_or(0, char::len_utf8));
        let mut words = before[start..].split_whitespace();
        let goes =
            matches!((words.next(), words.next()), (Some("time"), None | Some("-p")) | (Some("coproc"), _)) && words.next().is_none();
        plain.push_str(if goes { &rest[..start] } else { &rest[..at] });
        plain.push_str(&rest[at..=at]);
        rest = &rest[at + 1..];
    }
    plain.push_str(rest);
    (plain.len() < text.len()).then_some(plain)
}

fn is_end_or_line(sign: char) -> bool {
    is_end(sign) || sign == '\n'
}

/// Returns a text with one command on each line, which is always read: what stands in another one between the signs that may end a command.
pub(super) fn of(text: &str) -> String {
    let mut pieces = String::with_capacity(text.len());
    for line in lines(text).iter().filter(|line| !line.trim_start().starts_with('#')) {
        let mut rest = line.as_str();
        let mut is_in_braces = false;
        loop {
            let end = rest.find(is_end).unwrap_or(rest.len());
            piece(&rest[..end], is_in_braces, &mut pieces);
            let Some(sign) = rest[end..].chars().next() else { break };
            is_in_braces = sign == '{';
            rest = &rest[end + sign.len_utf8()..];
        }
    }
    pieces
}

/// Returns the lines of a text, those joined that a backslash continues; what begins a comment is not continued.
fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let n_signs = line.len() - line.trim_end_matches('\\').len();
        let (line, continues) = line.strip_suffix('\\').filter(|_| n_signs % 2 == 1).map_or((line, false), |line| (line, true));
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => last.push_str(line),
            None => lines.push(line.to_owned()),
        }
        goes_on = continues && !line.trim_start().starts_with('#') && !line.contains(" #");
    }
    lines
}

fn is_end(sign: char) -> bool {
    matches!(sign, ';' | '|' | '&' | '(' | ')' | '{' | '}' | '`')
}

/// Adds a piece without what could make it anything else than plain words. In braces a comma parts words as well: `{git,push}`.
fn piece(piece: &str, is_in_braces: bool, pieces: &mut String) {
    let plain = |sign: char| match sign {
        ',' if is_in_braces => ' ',
        '<' | '#' | '\t' | '\r' | '\0' => ' ',
        sign => sign,
    };
    let words: String = piece.chars().filter(|sign| !matches!(sign, '\'' | '"' | '\\')).map(plain).collect();
    let mut words = words.split_whitespace().skip_while(|word| BEFORE.contains(word)).peekable();
    while words.next_if(|word| word.starts_with('>')).is_some_and(|word| word.ends_with('>')) {
        // The file that it names.
        words.next();
    }
    // What begins with the sign of an option is no program.
    if words.peek().is_none_or(|first| first.starts_with(['-', '$', '='])) {
        return;
    }
    for word in words {
        pieces.push_str(word);
        pieces.push(' ');
    }
    pieces.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_a_line_of_plain_words() {
        for (text, expected) in [
            ("[ -n a || git push", "git push \n"),
            ("time { make 'a b'; }", "make a b \n"),
            ("# ((( x\n  # y\nls; pwd", "ls \npwd \n"),
            ("{git,push}", "git push \n"),
            ("cat <<E\n`date`\nE", "cat E \ndate \nE \n"),
            ("if ! test a,b; then make; fi", "test a,b \nmake \nfi \n"),
            ("a=(ls -l)", "a= \nls -l \n"),
            ("git \\\n push", "git push \n"),
            ("g\\\nit push # x \\\nls", "git push x \nls \n"),
            ("# x \\\nls\\\\\npwd", "ls \npwd \n"),
            (">x ls; > x ls", "ls \nls \n"),
            ("", ""),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn words_that_no_group_is_read_behind_go() {
        for (text, expected) in [
            ("time { make; }", Some("{ make; }")),
            ("ls; time -p { make; }\ncoproc X { é; }", Some("ls;{ make; }\n{ é; }")),
            ("time (make)", Some("(make)")),
            ("time make; echo time {a,b}", None),
            ("é { time", None),
        ] {
            assert_eq!(without_words_before_groups(text).as_deref(), expected, "{text}");
        }
    }
}
