//! What `perl` and `ruby` do to each line of the files that they are given: `perl -pi -e 's/a/b/' FILE`.

use super::Command;

/// Words of such a program by which it may run a file, or do more than with its lines.
const RUNNING: [&str; 18] = [
    "ARGV",
    "BEGIN",
    "do",
    "eval",
    "exec",
    "fork",
    "load",
    "open",
    "popen",
    "qx",
    "require",
    "require_relative",
    "shift",
    "spawn",
    "syscall",
    "sysopen",
    "system",
    "use",
];

/// Letters behind a substitution; two times `e` runs what the first makes of it.
const FLAGS: &str = "msixpodualngcer";

/// A program that is done to each line.
#[derive(Debug, PartialEq, Eq)]
pub struct LineProgram<'a> {
    pub text: String,
    /// It prints the line by itself afterwards.
    pub prints: bool,
    /// What it prints takes the place of the file.
    pub is_in_place: bool,
    pub files: Vec<&'a str>,
}

impl<'a> LineProgram<'a> {
    /// Reads a command as one of that kind; `None` where it is another one, or its options cannot be read.
    pub fn of(command: &'a Command) -> Option<Self> {
        command.name().filter(|name| matches!(*name, "perl" | "ruby"))?;
        let (mut is_in_place, mut prints, mut text) = (false, None, None::<String>);
        let mut words = command.arguments().iter();
        while let Some(word) = words.as_slice().first().filter(|word| word.text.starts_with('-')) {
            words.next();
            let option = word.known()?;
            if option == "--" {
                break;
            }
            for (at, letter) in option.char_indices().skip(1) {
                match letter {
                    'n' => prints = prints.or(Some(false)),
                    'p' => prints = Some(true),
                    // The rest is the end of a name.
                    'i' => {
                        is_in_place = true;
                        break;
                    }
                    'e' | 'E' => {
                        let attached = &option[at + 1..];
                        let more = if attached.is_empty() { words.next()?.known()? } else { attached };
                        let text = text.get_or_insert_default();
                        text.push_str(more);
                        text.push('\n');
                        break;
                    }
                    'a' | 'l' | 's' | 'w' | 'W' => {}
                    digit if digit.is_ascii_digit() => {}
                    _ => return None,
                }
            }
        }
        let files = words.filter_map(|word| word.known()).collect();
        Some(Self { text: text?, prints: prints?, is_in_place, files })
    }

    /// Returns whether its files are lines to it and nothing else.
    pub(super) fn only_edits(&self) -> bool {
        let mut names = self.text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let runs_line = |name: &str| name.matches('e').count() > 1 && name.chars().all(|c| FLAGS.contains(c));
        !self.text.contains(['`', '|']) && !self.text.contains("%x") && !names.any(|name| RUNNING.contains(&name) || runs_line(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, bool, bool, &[&str])>) {
        let script = crate::shell::read(text);
        let found = LineProgram::of(&script.commands[0]);
        let found = found.as_ref().map(|found| (found.text.trim(), found.prints, found.is_in_place, found.files.as_slice()));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn what_may_run_a_line_is_no_edit() {
        let only_edits = |text: &str| {
            let script = crate::shell::read(text);
            LineProgram::of(&script.commands[0]).expect("one of them").only_edits()
        };
        for text in ["perl -pi -e 's/a/b/g' x", "perl -pi -e 's/(.*)e/<$1>/gi; $_ = lc' x", "ruby -pi -e '$_.upcase!' x"] {
            assert!(only_edits(text), "{text}");
        }
        for text in [
            "perl -ne 'print qx{$_}' x",
            "perl -pe 's/(.*)/$1/ee' x",
            "perl -pe 's/(.*)/$1/gee' x",
            "perl -ne 'syscall 59, $_' x",
            "ruby -ne 'puts %x(#{$_})' x",
            "ruby -ne 'spawn $_' x",
        ] {
            assert!(!only_edits(text), "{text}");
        }
    }

    #[test]
    fn what_is_done_to_each_line_is_told_from_the_files() {
        check("perl -pi -e s/a/b/ x y", Some(("s/a/b/", true, true, &["x", "y"])));
        check("perl -i.bak -lane 'print $F[0]' -- x", Some(("print $F[0]", false, true, &["x"])));
        check("perl -ni -e a -e b x", Some(("a\nb", false, true, &["x"])));
        check("ruby -ne1 x", Some(("1", false, false, &["x"])));
        check("perl -e 1 x", None);
        check("perl -n x", None);
        check("perl -Mlib -ne 1 x", None);
        check("perl -ne \"$x\" x", None);
        check("sed -ne p x", None);
    }
}
