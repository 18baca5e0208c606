//! Who starts a program: the command itself, or a program that it started.

use std::collections::HashMap;

use super::matching::Form;
use super::matching::base;
use crate::family::stat;
use podbay_wire::behind_git_options;
use podbay_wire::is_git_verb;

/// Programs that are remembered; those that ended are not told of, so that all are forgotten beyond
/// this.
const MOST: usize = 50_000;

/// How far above a process a program is looked for that was seen.
const MAX_ABOVE: usize = 256;

const SHELLS: [&str; 11] = [
    "ash", "bash", "dash", "fish", "ksh", "mksh", "rbash", "sh", "xonsh", "yash", "zsh",
];

/// Programs that do nothing but start the one that their words name, once or for each of many
/// words.
const STARTERS: [&str; 42] = [
    "busybox",
    "catchsegv",
    "chroot",
    "chrt",
    "cpulimit",
    "dbus-run-session",
    "doas",
    "entr",
    "env",
    "fakeroot",
    "faketime",
    "find",
    "firejail",
    "flock",
    "gdb",
    "hyperfine",
    "ionice",
    "ld.so",
    "linux32",
    "linux64",
    "ltrace",
    "nice",
    "nohup",
    "numactl",
    "parallel",
    "prlimit",
    "rlwrap",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "taskset",
    "time",
    "timeout",
    "toybox",
    "unshare",
    "watch",
    "xargs",
];

/// Verbs of git that start what they are given, and by which word.
const GIT_STARTS: [(&str, &[&str]); 4] = [
    ("bisect", &["run"]),
    ("filter-branch", &[]),
    ("rebase", &["-x", "--exec"]),
    ("submodule", &["foreach"]),
];

/// What a program is to those that it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Context {
    /// All above are shells, or start others and do nothing else.
    pub(super) own: bool,
    /// It is a git that carries out a verb of its own.
    pub(super) is_git: bool,
}

impl Context {
    pub(super) const TOP: Self = Self {
        own: true,
        is_git: false,
    };

    /// Returns what a program is to those that it starts, given by whom it was started.
    pub(super) fn of(self, form: &Form) -> Self {
        if form.is_called(b"git") {
            let words = behind_git_options(&form.words);
            let verb = words.first().map(Vec::as_slice).unwrap_or_default();
            let starts = GIT_STARTS.iter().any(|(name, by)| {
                let has =
                    |option: &&str| words.iter().any(|word| word.starts_with(option.as_bytes()));
                name.as_bytes() == verb && (by.is_empty() || by.iter().any(has))
            });
            let is_own_verb = is_git_verb(verb);
            return Self {
                own: self.own && (starts || !is_own_verb),
                is_git: is_own_verb,
            };
        }
        Self {
            own: self.own && starts_others(form),
            is_git: false,
        }
    }
}

fn starts_others(form: &Form) -> bool {
    let is_known = |name: &[u8]| {
        let name = base(name);
        SHELLS
            .iter()
            .chain(&STARTERS)
            .any(|known| known.as_bytes() == name)
            || is_loader(name)
    };
    form.names.iter().any(|name| is_known(name))
}

/// Returns whether a name is one of the program that loads others.
pub(super) fn is_loader(name: &[u8]) -> bool {
    name.starts_with(b"ld-linux")
        || name.starts_with(b"ld-musl")
        || name.starts_with(b"ld.so")
        || name.starts_with(b"ld64.so")
}

/// The programs of a call that were seen, by their processes.
#[derive(Debug)]
pub(super) struct Ancestry {
    /// The process above all.
    supervisor: i32,
    running: HashMap<i32, Running>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    /// When its process was made: its number may be another's by now.
    started: u64,
    context: Context,
}

impl Ancestry {
    pub(super) fn of(supervisor: i32) -> Self {
        Self {
            supervisor,
            running: HashMap::new(),
        }
    }

    /// Returns what starts a program in this process, which is a fork of it, or is to be replaced;
    /// `None` where it is gone.
    pub(super) fn context(&self, process: i32) -> Option<Context> {
        let mut at = process;
        for _ in 0..MAX_ABOVE {
            let stat = stat(at)?;
            if let Some(running) = self
                .running
                .get(&at)
                .filter(|running| running.started == stat.started)
            {
                return Some(running.context);
            }
            if stat.parent == self.supervisor || stat.parent <= 1 {
                return None;
            }
            at = stat.parent;
        }
        None
    }

    /// Notes that a process executes a program by now.
    pub(super) fn begun(&mut self, process: i32, context: Context) {
        let Some(stat) = stat(process) else { return };
        if self.running.len() >= MOST {
            self.running.clear();
        }
        self.running.insert(
            process,
            Running {
                started: stat.started,
                context,
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> Form {
        let mut words = text.split_whitespace().map(|word| word.as_bytes().to_vec());
        let name = words.next().expect("a name");
        Form {
            words: words.collect(),
            ..Form::default()
        }
        .named(&name)
    }

    #[track_caller]
    fn check(programs: &[&str], own: bool, is_git: bool) {
        let context = programs
            .iter()
            .fold(Context::TOP, |context, program| context.of(&form(program)));
        assert_eq!(context, Context { own, is_git }, "{programs:?}");
    }

    #[test]
    fn shells_and_what_starts_others_leave_a_program_the_commands_own() {
        check(&[], true, false);
        check(
            &[
                "/bin/bash -c x",
                "env -S x",
                "sh ./x",
                "xargs x",
                "/lib64/ld-linux-x86-64.so.2 /bin/env",
            ],
            true,
            false,
        );
        check(&["bash -c x", "make"], false, false);
        check(&["make", "sh -c x"], false, false);
        check(&["python3 x.py", "sh -c x"], false, false);
    }

    #[test]
    fn what_git_starts_is_gits_unless_it_was_told_to() {
        check(&["sh -c x", "git stash"], false, true);
        check(
            &["git -C a commit", "sh .git/hooks/pre-commit"],
            false,
            false,
        );
        // An alias, and verbs that are there to start something.
        check(&["git p"], true, false);
        check(&["git -c alias.x=push x"], true, false);
        check(&["git rebase -x make"], true, true);
        check(&["git rebase main"], false, true);
        check(&["git submodule foreach x", "sh -c x"], true, false);
        check(&["make", "git p"], false, false);
    }
}
