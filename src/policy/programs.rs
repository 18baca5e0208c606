//! Programs that policy speaks of by name, with what they are told to do: a table of the few that reach others, and of those that cannot work in
//! a sandbox.
//!
//! It is no boundary: it stops early what nobody would want, and says why. Who starts such a program by another name is held by the sandbox alone.

use std::sync::LazyLock;

use podbay_event::Capability;
use podbay_wire::behind_git_options;

const TABLE: &str = include_str!("programs.txt");

/// A line of the table.
struct Program {
    kind: Kind,
    words: Vec<Vec<&'static str>>,
    /// Options with which nothing happens.
    unless: Vec<&'static str>,
}

#[derive(Clone, Copy)]
enum Kind {
    Push,
    Publish,
    Blocked(&'static str),
}

static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(|| {
    let mut kind = None;
    let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let programs = lines.filter_map(|line| {
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            kind = Some(match section.split_once(": ") {
                Some((_, reason)) => Kind::Blocked(reason),
                None if section == "push" => Kind::Push,
                None => Kind::Publish,
            });
            return None;
        }
        let (words, unless) = line.split_once(" unless ").unwrap_or((line, ""));
        let words = words.split(' ').map(|word| word.split('|').collect()).collect();
        Some(Program { kind: kind?, words, unless: unless.split_whitespace().collect() })
    });
    programs.collect()
});

/// Returns what a person has to decide about a program that is started with these words, its name the first of them; `None`: nothing.
pub(crate) fn decides(words: &[&str]) -> Option<Capability> {
    let (first, arguments) = words.split_first()?;
    let name = first.rsplit('/').next().unwrap_or(first);
    let is_help = matches!(arguments, ["--help" | "--version"]);
    if is_help {
        return None;
    }
    if name == "kill" && names_every_process(arguments) {
        return Some(Capability::BlockedCommand { reason: "it ends every process there is".to_owned() });
    }
    // In git's own folder each verb is a program.
    let verb = name.strip_prefix("git-").filter(|verb| !verb.is_empty());
    let (name, verb, arguments) = match verb {
        Some(verb) => ("git", Some(verb), arguments),
        None if name == "git" => ("git", None, behind_git_options(arguments)),
        None => (name, None, arguments),
    };
    let words: Vec<&str> = [name].into_iter().chain(verb).chain(arguments.iter().copied()).collect();
    let found = PROGRAMS.iter().find(|program| program.is_meant(&words))?;
    Some(match found.kind {
        Kind::Push => Capability::GatedGit { operation: words.iter().skip(1).find(|word| !word.starts_with('-'))?.to_string() },
        Kind::Publish => Capability::ChangeOutsideBox,
        Kind::Blocked(reason) => Capability::BlockedCommand { reason: reason.to_owned() },
    })
}

impl Program {
    fn is_meant(&self, words: &[&str]) -> bool {
        let mut rest = words.iter();
        let all = self.words.iter().enumerate().all(|(at, expected)| {
            // Options of its own may stand in between, and `+nightly`, which says of which version.
            let is_between = |word: &&&str| at > 0 && word.starts_with(['-', '+']) && !expected.contains(*word);
            rest.find(|word| !is_between(word)).is_some_and(|word| expected.contains(word))
        });
        all && !words.iter().any(|word| self.unless.contains(word))
    }
}

/// Returns whether `kill` is told `-1` as a process, and not as a signal.
fn names_every_process(arguments: &[&str]) -> bool {
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
        decides(&command.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn what_reaches_others_is_decided_by_a_person_however_it_is_told_to() {
        for (command, operation) in [
            ("git push", "push"),
            ("/usr/bin/git push -f origin main", "push"),
            ("git -C sub -c a.b=c --no-pager push", "push"),
            ("/usr/lib/git-core/git-push origin", "push"),
            ("git svn dcommit", "svn"),
            ("git lfs push origin", "lfs"),
        ] {
            assert_eq!(of(command), Some(Capability::GatedGit { operation: operation.to_owned() }), "{command}");
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
            assert_eq!(of(command), Some(Capability::ChangeOutsideBox), "{command}");
        }
    }

    #[test]
    fn what_cannot_work_is_said_in_a_line() {
        for (command, words) in [
            ("sudo apt-get install x", "no other user"),
            ("mkfs.ext4 /dev/sda1", "no disks"),
            ("reboot", "no machine"),
            ("systemctl reboot", "no machine"),
            ("kill -9 -1", "every process"),
            ("kill -s KILL -- -1", "every process"),
        ] {
            let Some(Capability::BlockedCommand { reason }) = of(command) else { panic!("{command}") };
            assert!(reason.contains(words), "{command}: {reason}");
        }
    }

    #[test]
    fn all_else_is_nobodys_business() {
        for command in [
            "git push --dry-run",
            "git push -n origin",
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
            "rm -rf .",
            "",
        ] {
            assert_eq!(of(command), None, "{command}");
        }
    }
}
