//! Which program starts a program: the command itself, or a program that the command started.

use std::collections::HashMap;

use super::matching::Invocation;
use super::matching::base;
use crate::process_tree::stat;
use podbay_wire::behind_git_options;
use podbay_wire::is_git_verb;

/// Most programs that are remembered. Their ends are not reported, so all are forgotten beyond
/// this.
const MOST: usize = 50_000;

/// How many ancestors of a process are searched for a known program.
const MAX_ABOVE: usize = 256;

const SHELLS: [&str; 11] = [
    "ash", "bash", "dash", "fish", "ksh", "mksh", "rbash", "sh", "xonsh", "yash", "zsh",
];

/// Programs that only start the one that their arguments name, once or for each of many arguments.
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

/// Git verbs that start a program from their arguments, with the arguments that make them do so.
const GIT_STARTS: [(&str, &[&str]); 4] = [
    ("bisect", &["run"]),
    ("filter-branch", &[]),
    ("rebase", &["-x", "--exec"]),
    ("submodule", &["foreach"]),
];

/// What a program is to the programs that it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Context {
    /// All its ancestors are shells or programs that only start others.
    pub(super) own: bool,
    /// It is git, running one of git's own verbs.
    pub(super) is_git: bool,
}

impl Context {
    pub(super) const TOP: Self = Self {
        own: true,
        is_git: false,
    };

    /// Returns the context for the programs that `form` starts; `self` is the context that it was
    /// started in.
    pub(super) fn of(self, form: &Invocation) -> Self {
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

fn starts_others(form: &Invocation) -> bool {
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

/// Returns whether a name is one of the dynamic loader (`ld.so`).
pub(super) fn is_loader(name: &[u8]) -> bool {
    name.starts_with(b"ld-linux")
        || name.starts_with(b"ld-musl")
        || name.starts_with(b"ld.so")
        || name.starts_with(b"ld64.so")
}

/// The programs of a call that were seen, by process.
#[derive(Debug)]
pub(super) struct Ancestry {
    /// The process above all others of the call.
    supervisor: i32,
    running: HashMap<i32, Running>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    /// Start time of the process: its pid may be reused.
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

    /// Returns the context in which `process` starts a program; `None` where the process is gone.
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

    /// Notes that a process now executes a program.
    pub(super) fn note(&mut self, process: i32, context: Context) {
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

    fn form(text: &str) -> Invocation {
        let mut words = text.split_whitespace().map(|word| word.as_bytes().to_vec());
        let name = words.next().expect("a name");
        Invocation {
            words: words.collect(),
            ..Invocation::default()
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
    fn programs_behind_shells_and_starters_belong_to_the_command() {
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
    fn programs_that_git_starts_belong_to_git_unless_its_arguments_name_them() {
        check(&["sh -c x", "git stash"], false, true);
        check(
            &["git -C a commit", "sh .git/hooks/pre-commit"],
            false,
            false,
        );
        // An alias, and verbs whose purpose is to start something.
        check(&["git p"], true, false);
        check(&["git -c alias.x=push x"], true, false);
        check(&["git rebase -x make"], true, true);
        check(&["git rebase main"], false, true);
        check(&["git submodule foreach x", "sh -c x"], true, false);
        check(&["make", "git p"], false, false);
    }
}
