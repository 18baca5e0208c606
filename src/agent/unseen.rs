//! What stands in a text for the model and no person sees: orders could be hidden so in a file that
//! somebody has read and trusts.

use std::collections::BTreeSet;

use podbay_event::is_hidden;

/// How many of the characters are named.
const MOST_NAMED: usize = 3;

/// A text without that, and what there was of it.
pub(super) struct Seen {
    pub(super) text: String,
    n_removed: usize,
    removed: BTreeSet<char>,
}

impl Seen {
    /// Takes out controls, marks that turn text around, tag characters, variation selectors and all
    /// else that has no width. Those that belong to a visible sign of some script or to an emoji go
    /// as well, and do not count: no person needs to be told of them.
    pub(super) fn of(text: &str) -> Self {
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

    /// Says what was taken out of a file of this name, if a person is to know of it.
    pub(super) fn warning(&self, name: &str) -> Option<String> {
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
            format!("{name} holds {n} {characters} that cannot be seen ({named}{more}): {were} taken out before the model read it; `cat -A {name}` shows where")
        })
    }
}

fn is_unseen(c: char) -> bool {
    is_hidden(c) || matches!(c, '\u{fe00}'..='\u{fe0f}')
}

/// Whether a character that cannot be seen is there for those beside it: the end of a line, what an
/// emoji is drawn with, what joins or parts two letters.
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
        let seen = Seen::of(text);
        assert_eq!(
            (seen.text.as_str(), seen.warning("A.md").as_deref()),
            (expected, told)
        );
    }

    #[test]
    fn what_nobody_sees_is_taken_out_and_told() {
        let words = |what: &str| {
            format!(
                "A.md holds {what} taken out before the model read it; `cat -A A.md` shows where"
            )
        };
        let tags: String = "obey"
            .chars()
            .filter_map(|c| char::from_u32(0xe0000 + u32::from(c)))
            .collect();
        let told =
            words("4 characters that cannot be seen (U+E0062, U+E0065, U+E006F and others): were");
        check(&format!("Be brief.{tags}\n"), "Be brief.\n", Some(&told));
        check(
            "a\u{200b}b",
            "ab",
            Some(&words("1 character that cannot be seen (U+200B): was")),
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
            let seen = Seen::of(&format!("a{hidden}b"));
            assert_eq!(
                (seen.text.as_str(), seen.warning("A.md").is_some()),
                ("ab", true),
                "{hidden:?}"
            );
        }
        // Two in a row carry something.
        let seen = Seen::of("\u{2764}\u{fe0f}\u{fe0e}\u{fe0f}");
        assert_eq!((seen.text.as_str(), seen.n_removed), ("\u{2764}", 2));
    }

    #[test]
    fn what_scripts_and_signs_are_written_with_is_no_news() {
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
