//! Programs that policy knows by name, with their arguments: a table of the few that reach others,
//! and of those that cannot work in a sandbox.
//! It is not a boundary: it stops early what is rarely wanted, and says why. A program under
//! another name is stopped only by the sandbox.

use std::sync::LazyLock;

use podbay_event::Capability;
use podbay_wire::ExecEffect;
use podbay_wire::ExecRule;
use podbay_wire::ExecScope;
use podbay_wire::behind_git_options;

const TABLE: &str = include_str!("program_table.txt");

/// A line of the table.
struct TableEntry {
    kind: Kind,
    /// The words of the line, as shown to users.
    line: &'static str,
    words: Vec<Vec<&'static str>>,
    /// Options that make it a dry run.
    unless: Vec<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Push,
    Publish,
    Blocked(&'static str),
}

static PROGRAMS: LazyLock<Vec<TableEntry>> = LazyLock::new(|| {
    let mut kind = None;
    let lines = TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let programs = lines.filter_map(|line| {
        if let Some(section) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            kind = Some(match section.split_once(": ") {
                Some((_, reason)) => Kind::Blocked(reason),
                None if section == "push" => Kind::Push,
                None => Kind::Publish,
            });
            return None;
        }
        let (words, unless) = line.split_once(" unless ").unwrap_or((line, ""));
        let (line, words) = (
            words,
            words
                .split(' ')
                .map(|word| word.split('|').collect())
                .collect::<Vec<_>>(),
        );
        // A program without arguments in the table does nothing either when asked for its version.
        let harmless = if words.len() == 1 {
            &["--help", "--version"][..]
        } else {
            &["--help"]
        };
        let unless = unless
            .split_whitespace()
            .chain(harmless.iter().copied())
            .collect();
        Some(TableEntry {
            kind: kind?,
            line,
            words,
            unless,
        })
    });
    programs.collect()
});

/// Returns the capability that the user must decide about for a program with these words, the first
/// of them its name; `None` if there is none.
pub(crate) fn required_decision(words: &[&str]) -> Option<Capability> {
    let (first, arguments) = words.split_first()?;
    let name = first.rsplit('/').next().unwrap_or(first);
    if name == "kill" && targets_every_process(arguments) {
        return Some(Capability::BlockedCommand {
            reason: "it kills every process".to_owned(),
        });
    }
    let words = normalize_git_verb(words);
    let found = PROGRAMS.iter().find(|program| program.matches(&words))?;
    Some(match found.kind {
        Kind::Push => Capability::GatedGit {
            operation: words
                .iter()
                .skip(1)
                .find(|word| !word.starts_with('-'))?
                .to_string(),
        },
        Kind::Publish => Capability::ChangeOutsideSandbox,
        Kind::Blocked(reason) => Capability::BlockedCommand {
            reason: reason.to_owned(),
        },
    })
}

/// Returns the table as exec rules, whoever starts the programs, without the lines that an allow
/// rule names (`opened`).
pub(crate) fn exec_rules(effect: ExecEffect, opened: &[Vec<&str>]) -> Vec<ExecRule> {
    let is_open = |program: &TableEntry| {
        !program.is_blocked()
            && opened
                .iter()
                .any(|words| program.matches(&normalize_git_verb(words)))
    };
    let rule = |program: &TableEntry| ExecRule {
        effect,
        words: program
            .words
            .iter()
            .map(|word| word.iter().map(|&word| word.to_owned()).collect())
            .collect(),
        more: true,
        options_between: true,
        unless: program.unless.iter().map(|&word| word.to_owned()).collect(),
        scope: ExecScope::Anywhere,
        rule: program.name(),
        justification: program.kind.justification(),
    };
    PROGRAMS
        .iter()
        .filter(|program| !is_open(program))
        .map(rule)
        .collect()
}

/// Returns the exec rules for blocked programs, for commands that may reach others.
pub(crate) fn blocked_rules() -> Vec<ExecRule> {
    let blocked: Vec<String> = PROGRAMS
        .iter()
        .filter(|program| program.is_blocked())
        .map(TableEntry::name)
        .collect();
    exec_rules(ExecEffect::Deny, &[])
        .into_iter()
        .filter(|rule| blocked.contains(&rule.rule))
        .collect()
}

/// Returns the words with git's verb right after its name; in git's own folder each verb is a
/// program.
fn normalize_git_verb<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let Some((first, arguments)) = words.split_first() else {
        return Vec::new();
    };
    let name = first.rsplit('/').next().unwrap_or(first);
    let (name, verb, arguments) = match name.strip_prefix("git-").filter(|verb| !verb.is_empty()) {
        Some(verb) => ("git", Some(verb), arguments),
        None if name == "git" => ("git", None, behind_git_options(arguments)),
        None => (name, None, arguments),
    };
    [name]
        .into_iter()
        .chain(verb)
        .chain(arguments.iter().copied())
        .collect()
}

impl Kind {
    /// Returns why it is not run, and what to do instead.
    fn justification(self) -> String {
        match self {
            Self::Push | Self::Publish => {
                "it changes something outside of the sandbox; leave it to the user, and say in your answer what should be run".to_owned()
            }
            Self::Blocked(reason) => format!("{reason}; do without it"),
        }
    }
}

impl TableEntry {
    fn name(&self) -> String {
        format!("built in: {}", self.line)
    }

    fn is_blocked(&self) -> bool {
        matches!(self.kind, Kind::Blocked(_))
    }

    fn matches(&self, words: &[&str]) -> bool {
        let mut rest = words.iter();
        let all = self.words.iter().enumerate().all(|(at, expected)| {
            // Options may come in between, and `+nightly`, which selects a toolchain.
            let is_between =
                |word: &&&str| at > 0 && word.starts_with(['-', '+']) && !expected.contains(*word);
            rest.find(|word| !is_between(word))
                .is_some_and(|word| expected.contains(word))
        });
        all && !words
            .iter()
            .take_while(|word| **word != "--")
            .any(|word| self.unless.contains(word))
    }
}

/// Returns whether `kill` gets `-1` as a process id rather than a signal.
fn targets_every_process(arguments: &[&str]) -> bool {
    let rest = match arguments {
        ["-s" | "-n" | "--signal", _, rest @ ..] => rest,
        [first, rest @ ..] if first.starts_with('-') && *first != "--" => rest,
        rest => rest,
    };
    rest.contains(&"-1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str) -> Option<Capability> {
        required_decision(&command.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn commands_that_reach_others_need_approval_in_any_form() {
        for (command, operation) in [
            ("git push", "push"),
            ("/usr/bin/git push -f origin main", "push"),
            ("git -C sub -c a.b=c --no-pager push", "push"),
            ("/usr/lib/git-core/git-push origin", "push"),
            ("git svn dcommit", "svn"),
            ("git lfs push origin", "lfs"),
        ] {
            assert_eq!(
                of(command),
                Some(Capability::GatedGit {
                    operation: operation.to_owned()
                }),
                "{command}"
            );
        }
        for command in [
            "npm publish",
            "npm --quiet publish --access public",
            "cargo +nightly publish -p x",
            "cargo publish",
            "python3 -m twine upload dist/x",
            "docker push x",
            "gh pr create --fill",
        ] {
            assert_eq!(
                of(command),
                Some(Capability::ChangeOutsideSandbox),
                "{command}"
            );
        }
    }

    #[test]
    fn blocked_programs_say_why_in_one_line() {
        for (command, words) in [
            ("sudo apt-get install x", "no other user"),
            ("mkfs.ext4 /dev/sda1", "no disks"),
            ("reboot", "no machine"),
            ("systemctl reboot", "no machine"),
            ("kill -9 -1", "every process"),
            ("kill -s KILL -- -1", "every process"),
        ] {
            let Some(Capability::BlockedCommand { reason }) = of(command) else {
                panic!("{command}")
            };
            assert!(reason.contains(words), "{command}: {reason}");
        }
    }

    #[test]
    fn the_program_table_becomes_exec_rules() {
        let rules = exec_rules(ExecEffect::Deny, &[]);
        assert!(
            rules.len() == PROGRAMS.len()
                && rules
                    .iter()
                    .all(|rule| rule.scope == ExecScope::Anywhere && rule.more),
            "{rules:?}"
        );
        let push = rules
            .iter()
            .find(|rule| rule.rule == "built in: git push")
            .expect("it is in the table");
        assert_eq!(
            (&*push.words, &*push.unless),
            (
                &[vec!["git".to_owned()], vec!["push".to_owned()]][..],
                &["--dry-run", "--help"].map(str::to_owned)[..]
            )
        );
        assert!(push.justification.contains("leave it to the user"));
        let names = |rules: &[ExecRule]| {
            rules
                .iter()
                .map(|rule| rule.rule.clone())
                .collect::<Vec<_>>()
        };
        let open = exec_rules(
            ExecEffect::Deny,
            &[vec!["git", "-C", "x", "push"], vec!["sudo"]],
        );
        assert_eq!(
            names(&rules)
                .into_iter()
                .filter(|name| !names(&open).contains(name))
                .collect::<Vec<_>>(),
            ["built in: git push"]
        );
        let blocked = names(&blocked_rules());
        assert!(
            blocked.iter().any(|name| name.contains("sudo"))
                && !blocked.iter().any(|name| name.contains("git")),
            "{blocked:?}"
        );
    }

    #[test]
    fn other_programs_need_no_decision() {
        for command in [
            "git push --dry-run",
            "git stash push",
            "git log --grep push",
            "git reset --hard HEAD~1",
            "npm run publish",
            "npm publish --dry-run",
            "cargo build publish",
            "kill -1 4711",
            "kill -9 4711",
            "sudo --version",
            "systemctl status reboot",
            "echo git push",
            "gh pr list",
            "npm publish --help",
            "rm -rf .",
            "",
        ] {
            assert_eq!(of(command), None, "{command}");
        }
    }
}
