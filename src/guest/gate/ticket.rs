//! A program that was allowed before its exec: the same one must be there after it.

use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use super::ancestry::Context;
use super::matching::base;
use super::process::Program;

#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) since: Instant,
    pub(super) context: Context,
    /// The user approved exactly this.
    pub(super) is_allowed: bool,
    called: Vec<u8>,
    file: Option<(u64, u64)>,
    words: Vec<Vec<u8>>,
    truncated: bool,
}

impl Ticket {
    pub(super) fn new(program: &Program, context: Context) -> Self {
        Self {
            since: Instant::now(),
            context,
            is_allowed: false,
            called: program.called.clone(),
            file: place(program),
            words: program.argv.words.clone(),
            truncated: program.argv.truncated,
        }
    }

    /// The same ticket, approved by the user.
    pub(super) fn allowed(self) -> Self {
        Self {
            is_allowed: true,
            since: Instant::now(),
            ..self
        }
    }

    /// Returns whether the user approved what is executed now.
    pub(super) fn allows(&self, program: &Program) -> bool {
        self.is_allowed && !self.truncated && self.is_of(program)
    }

    /// Returns whether what is executed now is the program of this ticket.
    pub(super) fn is_of(&self, program: &Program) -> bool {
        let words = &program.argv.words;
        let rest = self.words.get(1..).unwrap_or_default();
        let is_script = || {
            // A script's interpreter comes first, with at most one argument of its own, then the
            // script's path.
            let before = words.len().checked_sub(rest.len() + 1);
            before.is_some_and(|before| {
                (1..=2).contains(&before)
                    && words[before] == self.called
                    && words[before + 1..] == *rest
            }) && (program.called.is_empty() || base(&self.called) == program.called)
        };
        (*words == self.words || words.len() == 1 && words[0].is_empty() && self.words.is_empty())
            && place(program) == self.file
            || is_script()
    }
}

fn place(program: &Program) -> Option<(u64, u64)> {
    program
        .file
        .as_ref()
        .map(|file| (file.metadata.dev(), file.metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::super::process::Arguments;
    use super::super::process::HeldFile;
    use super::*;

    fn program(file: &str, called: &str, words: &[&str]) -> Program {
        let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let file = HeldFile::of(std::process::id() as i32, file.as_bytes());
        Program {
            called: called.into(),
            file,
            argv: Arguments {
                words,
                truncated: false,
            },
        }
    }

    #[test]
    fn a_ticket_fits_only_the_same_file_and_arguments() {
        let ticket = Ticket {
            is_allowed: true,
            ..Ticket::new(&program("/bin/sh", "/bin/sh", &["sh", "a"]), Context::TOP)
        };
        assert!(ticket.allows(&program("/bin/sh", "sh", &["sh", "a"])));
        for (file, words) in [
            ("/bin/sh", &["sh", "b"][..]),
            ("/bin/sh", &["sh"]),
            ("/bin/ls", &["sh", "a"]),
            ("/bin/sh", &["sh", "a", "b"]),
        ] {
            assert!(
                !ticket.allows(&program(file, "sh", words)),
                "{file} {words:?}"
            );
        }
        let not_asked = Ticket::new(&program("/bin/sh", "/bin/sh", &["sh", "a"]), Context::TOP);
        assert!(!not_asked.allows(&program("/bin/sh", "sh", &["sh", "a"])));
    }

    #[test]
    fn a_ticket_fits_a_script_behind_its_interpreter() {
        let ticket = Ticket {
            is_allowed: true,
            ..Ticket::new(
                &program("/bin/ls", "./deploy", &["deploy", "now"]),
                Context::TOP,
            )
        };
        assert!(ticket.allows(&program(
            "/bin/sh",
            "deploy",
            &["/bin/sh", "./deploy", "now"]
        )));
        assert!(ticket.allows(&program(
            "/bin/sh",
            "deploy",
            &["/bin/env", "-S sh", "./deploy", "now"]
        )));
        for words in [
            &["/bin/sh", "./deploy", "later"][..],
            &["/bin/sh", "./other", "now"],
            &["./deploy", "now"],
            &["a", "b", "c", "./deploy", "now"],
        ] {
            assert!(
                !ticket.allows(&program("/bin/sh", "deploy", words)),
                "{words:?}"
            );
        }
        assert!(!ticket.allows(&program(
            "/bin/sh",
            "other",
            &["/bin/sh", "./deploy", "now"]
        )));
    }
}
