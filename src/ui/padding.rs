//! Runs of blanks and of empty lines, behind which a terminal shows nothing of what follows.
//!
//! What a user decides about must not stand where nobody looks: far to the right of something
//! harmless, or many lines below it. Each run is shown as how long it is, so that all the rest
//! stays where it is seen.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::text;

/// Most blanks, or tabs, side by side that are shown as they are: with these the next character is
/// at most a line further.
const MOST_BLANKS: usize = 60;
/// Most lines one below the other in which nothing stands, or the same sign.
const MOST_LINES: usize = 8;
/// Most characters of a kind that are each shown by their number.
const MOST_SUSPECT: usize = 5;

const TAKES_ALL: &str = "a string takes all that is written";

/// Returns text in which each long run of what cannot be seen is a count: `ls ⟨6000 blanks⟩; rm x`.
pub fn counted(text: &str) -> Cow<'_, str> {
    let lines = lines(text);
    if lines
        .iter()
        .all(|line| matches!(line, Line::Own(Cow::Borrowed(_))))
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for (at, line) in lines.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        match line {
            Line::Own(line) => out.push_str(line),
            Line::Run { n, sign: "" } => write!(out, "⟨{n} empty lines⟩").expect(TAKES_ALL),
            Line::Run { n, sign } => write!(out, "⟨{n} lines of {sign}⟩").expect(TAKES_ALL),
        }
    }
    Cow::Owned(out)
}

/// Returns [`counted`] text that stays on its line, where line ends are blanks like others.
pub(super) fn line(text: &str) -> String {
    let counted = counted(text);
    text::line(&counted)
}

/// Returns whether [`counted`] would show something by its count.
pub fn is_padded(text: &str) -> bool {
    matches!(counted(text), Cow::Owned(_))
}

enum Line<'a> {
    Own(Cow<'a, str>),
    /// So many lines that all hold this and nothing else.
    Run {
        n: usize,
        sign: &'a str,
    },
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let all: Vec<&str> = text.split('\n').collect();
    let mut lines = Vec::new();
    let mut rest = all.as_slice();
    while let Some(first) = rest.first() {
        let sign = first.trim();
        let says_nothing = !sign.contains(char::is_alphanumeric) && sign.chars().count() <= 2;
        let n = if says_nothing {
            rest.iter().take_while(|line| line.trim() == sign).count()
        } else {
            1
        };
        if n > MOST_LINES {
            lines.push(Line::Run { n, sign });
        } else {
            lines.extend(rest[..n].iter().map(|line| Line::Own(within(line))));
        }
        rest = &rest[n..];
    }
    lines
}

/// Counts the runs within a line.
fn within(line: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut from, mut at) = (0, 0);
    while let Some(first) = line[at..].chars().next() {
        let is_blank = |c: char| matches!(c, ' ' | '\t');
        let goes_on = |c: char| {
            if is_blank(first) {
                is_blank(c)
            } else {
                c == first && text::is_suspect(c)
            }
        };
        let end = line[at..]
            .find(|c: char| !goes_on(c))
            .map_or(line.len(), |length| at + length)
            .max(at + first.len_utf8());
        let n = line[at..end].chars().count();
        let most = if is_blank(first) {
            MOST_BLANKS
        } else {
            MOST_SUSPECT
        };
        if n > most {
            out.push_str(&line[from..at]);
            from = end;
            match first {
                ' ' | '\t' => write!(out, "⟨{n} blanks⟩"),
                other => write!(
                    out,
                    "⟨{n} times {}⟩",
                    text::escape(other.encode_utf8(&mut [0; 4]))
                ),
            }
            .expect(TAKES_ALL);
        }
        at = end;
    }
    if from == 0 {
        return Cow::Borrowed(line);
    }
    out.push_str(&line[from..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, shown: &str) {
        assert_eq!(counted(text), shown);
        assert_eq!(is_padded(text), text != shown);
    }

    #[test]
    fn what_is_pushed_out_of_sight_is_shown_behind_a_count() {
        let blanks = " ".repeat(6000);
        check(
            &format!("ls{blanks}; rm -rf x"),
            "ls⟨6000 blanks⟩; rm -rf x",
        );
        check(
            &format!("ls {}x{blanks}", "\t ".repeat(40)),
            "ls⟨81 blanks⟩x⟨6000 blanks⟩",
        );
        check(
            &format!("ls{}rm x", "\n".repeat(81)),
            "ls\n⟨80 empty lines⟩\nrm x",
        );
        check(
            &format!("ls{}rm x", "\n   \t".repeat(80)),
            "ls\n⟨79 empty lines⟩\n   \trm x",
        );
        check(
            &format!("ls {}rm x", "\\\n".repeat(80)),
            "ls \\\n⟨79 lines of \\⟩\nrm x",
        );
        check(
            &format!("ls\n{}rm x", "  #\n".repeat(80)),
            "ls\n⟨80 lines of #⟩\nrm x",
        );
        check(
            &format!("ls{}rm", "\u{a0}".repeat(6000)),
            "ls⟨6000 times \\xa0⟩rm",
        );
        check(&format!("ls{}rm", "\r".repeat(60)), "ls⟨60 times \\x0d⟩rm");
        check(&blanks, "⟨6000 blanks⟩");
        check(&"\n".repeat(80), "⟨81 empty lines⟩");
    }

    #[test]
    fn what_is_indented_or_set_apart_stays_as_it_is() {
        let rule = "-".repeat(200);
        let deep = format!(
            "{}deep\n\n\n\nfn a() {{\n    b();\n}}\n\t\t\tx\n",
            " ".repeat(MOST_BLANKS)
        );
        for text in [
            "",
            "\n",
            "ls -l",
            rule.as_str(),
            deep.as_str(),
            "naïve 日本語",
            "a\u{a0}\u{a0}b",
            &"}\n".repeat(MOST_LINES),
            &"x\n".repeat(80),
        ] {
            check(text, text);
        }
    }

    #[test]
    fn it_stays_on_its_line_where_it_is_to() {
        assert_eq!(
            line(&format!("ls{}rm", "\n".repeat(81))),
            "ls\\n⟨80 empty lines⟩\\nrm"
        );
        assert_eq!(line("a\tb\nc"), "a\\tb\\nc");
    }
}
