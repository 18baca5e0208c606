//! Text of a server without what a reader does not see.

/// Returns one line of at most so many characters, without control and invisible characters.
pub fn plain_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let seen = text.chars().filter(|c| !is_invisible(*c));
    for (n_before, c) in seen.enumerate() {
        if n_before == most {
            line.push('…');
            break;
        }
        line.push(if c.is_control() { ' ' } else { c });
    }
    line.trim().to_owned()
}

/// Returns text of several lines, without control and invisible characters, bounded in bytes.
pub(super) fn plain_text(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    text[..end]
        .chars()
        .filter(|c| !is_invisible(*c) && (!c.is_control() || matches!(c, '\n' | '\t')))
        .collect()
}

/// Returns whether a character shows nothing, or changes the order of those around it.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{00ad}'
        | '\u{061c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_taken_out() {
        assert_eq!(
            plain_line("a\u{1b}[2Jb\nc\u{202e}d\u{e0041}", 20),
            "a [2Jb cd"
        );
        assert_eq!(plain_line("abcdef", 3), "abc…");
        assert_eq!(plain_text("a\r\n\tb\u{0}c\u{200b}", 100), "a\n\tbc");
        assert_eq!(plain_text("aéé", 2), "a");
    }
}
