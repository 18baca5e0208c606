//! Removes characters that the model reads but users cannot see: instructions could be hidden like
//! this in a file that was reviewed and is trusted.

use std::collections::BTreeSet;

use podbay_event::is_hidden;

/// How many of the characters are named.
const MOST_NAMED: usize = 3;

/// A text without invisible characters, and which were removed.
pub struct VisibleText {
    pub text: String,
    n_removed: usize,
    removed: BTreeSet<char>,
}

impl VisibleText {
    /// Removes controls, bidirectional marks, tag characters, variation selectors and everything
    /// else without width. Those that belong to a script's visible characters or to an emoji are
    /// removed too, but need no warning.
    pub fn of(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut seen = Self {
            text: String::with_capacity(text.len()),
            n_removed: 0,
            removed: BTreeSet::new(),
        };
        let mut last = '\n';
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let next = chars.peek().copied();
            if c == '\n' || c == '\t' || !is_unseen(c) {
                seen.text.push(c);
            } else if !belongs(last, c, next) {
                seen.n_removed += 1;
                seen.removed.insert(c);
            }
            last = c;
        }
        seen
    }

    /// Returns the warning about characters removed from a file of this name, if one is needed.
    pub fn warning(&self, name: &str) -> Option<String> {
        let n = self.n_removed;
        let named: Vec<String> = self
            .removed
            .iter()
            .take(MOST_NAMED)
            .map(|c| format!("U+{:04X}", u32::from(*c)))
            .collect();
        let (named, more) = (
            named.join(", "),
            if self.removed.len() > MOST_NAMED {
                " and others"
            } else {
                ""
            },
        );
        let (characters, were) = if n == 1 {
            ("character", "was")
        } else {
            ("characters", "were")
        };
        (n > 0).then(|| {
            format!("{name} contains {n} invisible {characters} ({named}{more}): {were} removed before the model read it; `cat -A {name}` shows where")
        })
    }
}

fn is_unseen(c: char) -> bool {
    is_hidden(c) || matches!(c, '\u{fe00}'..='\u{fe0f}')
}

/// Returns whether an invisible character serves its neighbours: a line end, part of an emoji, a
/// joiner or separator of two letters.
fn belongs(last: char, c: char, next: Option<char>) -> bool {
    let is_sign = |c: char| !c.is_ascii() && (!is_unseen(c) || c == '\u{fe0f}');
    match c {
        '\r' => next == Some('\n'),
        '\u{fe0e}' | '\u{fe0f}' => !is_unseen(last) && last != '\n',
        '\u{200c}' | '\u{200d}' => is_sign(last) && next.is_some_and(is_sign),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str, told: Option<&str>) {
        let seen = VisibleText::of(text);
        assert_eq!(
            (seen.text.as_str(), seen.warning("A.md").as_deref()),
            (expected, told)
        );
    }

    #[test]
    fn invisible_characters_are_removed_and_reported() {
        let words = |what: &str| {
            format!(
                "A.md contains {what} removed before the model read it; `cat -A A.md` shows where"
            )
        };
        let tags: String = "obey"
            .chars()
            .filter_map(|c| char::from_u32(0xe0000 + u32::from(c)))
            .collect();
        let told = words("4 invisible characters (U+E0062, U+E0065, U+E006F and others): were");
        check(&format!("Be brief.{tags}\n"), "Be brief.\n", Some(&told));
        check(
            "a\u{200b}b",
            "ab",
            Some(&words("1 invisible character (U+200B): was")),
        );
        for hidden in [
            "\u{202e}",
            "\u{2066}",
            "\u{1b}",
            "\u{8}",
            "\r",
            "\u{ad}",
            "\u{feff}",
            "\u{200d}",
            "\u{fe00}",
            "\u{e0100}",
            "\u{2800}",
        ] {
            let seen = VisibleText::of(&format!("a{hidden}b"));
            assert_eq!(
                (seen.text.as_str(), seen.warning("A.md").is_some()),
                ("ab", true),
                "{hidden:?}"
            );
        }
        // Two in a row carry information.
        let seen = VisibleText::of("\u{2764}\u{fe0f}\u{fe0e}\u{fe0f}");
        assert_eq!((seen.text.as_str(), seen.n_removed), ("\u{2764}", 2));
    }

    #[test]
    fn characters_of_scripts_and_emoji_are_not_reported() {
        check(
            "plain\ttext\nna\u{ef}ve \u{65e5}\u{672c}\n",
            "plain\ttext\nna\u{ef}ve \u{65e5}\u{672c}\n",
            None,
        );
        check("\u{feff}# A\r\nb\r\n", "# A\nb\n", None);
        check(
            "\u{2764}\u{fe0f} \u{1f468}\u{200d}\u{1f4bb}",
            "\u{2764} \u{1f468}\u{1f4bb}",
            None,
        );
        check(
            "\u{645}\u{6cc}\u{200c}\u{62e}",
            "\u{645}\u{6cc}\u{62e}",
            None,
        );
    }
}
