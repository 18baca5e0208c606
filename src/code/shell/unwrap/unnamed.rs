//! Programs by a name that shows only when they run: a pattern, or what a substitution says. What they may be is read as if it stood there.

use super::super::Command;
use super::super::Word;
use super::super::WordKind;
use super::super::pattern;
use super::Inner;
use super::Unwrapped;

/// Programs that are judged by what they are called.
const JUDGED: [&str; 37] = [
    "bash", "chgrp", "chmod", "chown", "curl", "dash", "dd", "doas", "env", "find", "git", "halt", "kill", "killall", "make", "mkfs", "mv",
    "node", "perl", "pkill", "poweroff", "python", "python3", "reboot", "rm", "rsync", "ruby", "scp", "sh", "shred", "shutdown", "ssh",
    "su", "sudo", "truncate", "unlink", "wget",
];
/// Programs that say where another one is, or what they are given.
const SAYING: [&str; 8] = ["basename", "command", "echo", "printf", "readlink", "realpath", "type", "which"];

/// Adds the programs that a command may start whose program is not known.
pub(super) fn started(command: &Command, unwrapped: &mut Unwrapped) {
    let Some(program) = command.program() else { return };
    let names = match program.kind {
        WordKind::Known => return,
        WordKind::Pattern => by_pattern(&program.text),
        WordKind::Unknown => said(&program.text),
    };
    for name in names {
        let mut words = command.words.clone();
        words[0] = Word { kind: WordKind::Known, ..Word::unknown(name) };
        let inner = Command { words, redirections: command.redirections.clone(), given: command.given.clone(), ..Command::default() };
        unwrapped.inner.push(Inner::Command(inner));
    }
}

/// Returns the programs that a pattern may stand for. One of a folder of the project stands for what lies there.
fn by_pattern(pattern: &str) -> Vec<&'static str> {
    let (folder, name) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    let is_rooted = pattern.starts_with('/');
    let is_elsewhere = is_rooted || folder.is_empty() || folder.starts_with("..");
    // A pattern of signs alone is what begins a list of files.
    let says = is_rooted || name.contains(char::is_alphanumeric);
    // With a star it stands for many, and the first of them is started: for `r*` that is seldom `reboot`.
    let n_letters = name.chars().filter(|c| c.is_alphanumeric()).count();
    let is_near = |known: &&str| !name.contains('*') || 2 * n_letters >= known.len();
    let may_be = |known: &&str| is_near(known) && pattern::fits(name.as_bytes(), known.as_bytes());
    if is_elsewhere && says { JUDGED.into_iter().filter(may_be).collect() } else { Vec::new() }
}

/// Returns the programs that a substitution may say, where it is all of a word: `$(which git)`, `$(command -v git || echo git)`.
pub(in crate::shell) fn said(text: &str) -> Vec<&'static str> {
    // The variables in which a shell is named, by the login or by itself.
    if matches!(text, "$SHELL" | "${SHELL}" | "$BASH" | "${BASH}") {
        return vec!["bash"];
    }
    let is_whole = (text.starts_with("$(") && text.ends_with(')')) || (text.len() > 1 && text.starts_with('`') && text.ends_with('`'));
    if !is_whole {
        return Vec::new();
    }
    let mut found = Vec::new();
    for part in text.split(|c| "$()`|;&\n".contains(c)) {
        let mut words = part.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
        if words.next().is_some_and(|first| SAYING.contains(&first)) {
            let last = |word: &'_ str| word.rsplit('/').next().and_then(|name| JUDGED.into_iter().find(|known| *known == name));
            found.extend(words.filter_map(last));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_stands_for_the_programs_that_it_fits() {
        for (pattern, names) in [
            ("/bin/r?", &["rm"][..]),
            ("/bin/rm*", &["rm"]),
            ("/bin/r*", &["rm"]),
            ("/usr/bin/sud*", &["sudo"]),
            ("/bin/*", &[]),
            ("/b?n/rm", &["rm"]),
            ("/usr/bin/g?t", &["git"]),
            ("/usr/bin/[gh]it", &["git"]),
            ("/usr/bin/gi[[:alpha:]]", &["git"]),
            ("/usr/bin/[[:lower:]_]i[]t]", &["git"]),
            ("../bin/un*k", &["unlink"]),
            ("r?", &["rm"]),
            ("/bin/l?", &[]),
            ("./r?", &[]),
            ("scripts/*", &[]),
            ("*", &[]),
            ("[", &[]),
        ] {
            assert_eq!(by_pattern(pattern), names, "{pattern}");
        }
    }

    #[test]
    fn a_substitution_says_the_program_that_it_asks_for() {
        for (text, names) in [
            ("$(which git)", &["git"][..]),
            ("`command -v git`", &["git"]),
            ("$(command -v git 2>/dev/null || echo /usr/bin/git)", &["git"]),
            ("$(basename \"$(which rm)\")", &["rm"]),
            ("$(which cargo)", &[]),
            ("$(git rev-parse --show-toplevel)", &[]),
            ("$(dirname \"$(which git)\")/ls", &[]),
            ("${SHELL}", &["bash"]),
            ("$X", &[]),
            ("`", &[]),
        ] {
            assert_eq!(said(text), names, "{text}");
        }
    }
}
