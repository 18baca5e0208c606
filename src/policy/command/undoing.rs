//! Work that is undone by several commands together: what git says of it goes backwards through a pipe, or over the file itself.

use std::collections::BTreeSet;

use super::ground::Ground;
use super::place;
use super::words;
use crate::code::shell::Command;
use crate::code::shell::Script;
use crate::code::shell::Word;
use crate::event::Capability;

/// What it comes to.
const OPERATION: &str = "checkout of files";
/// How a patch is taken back by `git apply`.
const REVERSED: &str = "apply -R";

/// How many commands in front of one are looked at.
const BEFORE_MAX: usize = 64;

/// Gates what undoes work, and opens the gate for a patch that the script has just kept in a file.
pub(super) fn judge(script: &Script, grounds: &[Ground], needs: &mut [BTreeSet<Capability>]) {
    let gate = |operation: &str| Capability::GatedGit { operation: operation.to_owned() };
    for (at, command) in script.commands.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| &script.commands[at]).filter(|_| command.piped);
        if before.is_some_and(|before| undoes(before, command, &grounds[at])) || writes_back(command) {
            needs[at].insert(gate(OPERATION));
        }
        let kept = || {
            operands(command)
                .filter_map(Word::known)
                .any(|file| script.commands[..at].iter().rev().take(BEFORE_MAX).any(|before| keeps(before, file)))
        };
        if needs[at].contains(&gate(REVERSED)) && kept() {
            needs[at].remove(&gate(REVERSED));
            needs[at].insert(Capability::ChangeSessionGit);
        }
    }
}

/// Returns git's verb, and the words behind it.
fn git(command: &Command) -> Option<(&str, &[Word])> {
    let (verb, rest) = command.arguments().split_first().filter(|_| command.name() == Some("git"))?;
    Some((verb.known()?, rest))
}

fn operands(command: &Command) -> impl Iterator<Item = &Word> {
    words::operands(git(command).map_or(&[], |(_, rest)| rest))
}

/// `git diff -R | git apply`, `git diff | patch -R`, `git archive HEAD | tar x`.
fn undoes(before: &Command, command: &Command, ground: &Ground) -> bool {
    let arguments = command.arguments();
    let applies = command.name() == Some("patch") || git(command).is_some_and(|(verb, _)| verb == "apply");
    match git(before) {
        Some(("diff" | "diff-files" | "diff-index", rest)) => {
            let is_reversed = words::has(rest, "R", &[]) || (command.name() == Some("patch") && words::has(arguments, "R", &["--reverse"]));
            applies && is_reversed
        }
        Some(("archive", _)) => {
            let unpacks = arguments.first().is_some_and(|word| word.text.contains('x')) || words::has(arguments, "x", &["--extract"]);
            let folder = arguments.windows(2).find(|pair| matches!(pair[0].text.as_str(), "-C" | "--directory")).map(|pair| &pair[1]);
            let is_here = folder.map_or_else(|| place::whole(".", ground).is_some(), |to| place::whole(&to.text, ground).is_some());
            matches!(command.name(), Some("tar" | "bsdtar" | "gtar")) && unpacks && is_here
        }
        _ => false,
    }
}

/// `git show HEAD:README.md > README.md`.
fn writes_back(command: &Command) -> bool {
    let Some(("show" | "cat-file", _)) = git(command) else { return false };
    let plain = |path: &str| path.trim_start_matches("./").to_owned();
    let paths: Vec<String> = operands(command).filter_map(|word| Some(plain(word.text.split_once(':')?.1))).collect();
    let mut targets =
        command.redirections.iter().filter(|redirection| redirection.writes()).filter_map(|redirection| redirection.target.as_ref());
    targets.any(|target| paths.contains(&plain(&target.text)))
}

/// `git diff > FILE`.
fn keeps(command: &Command, file: &str) -> bool {
    let writes = || {
        command.redirections.iter().any(|redirection| redirection.writes() && redirection.target.as_ref().is_some_and(|to| to.text == file))
    };
    git(command).is_some_and(|(verb, _)| matches!(verb, "diff" | "format-patch")) && writes()
}
