//! Work that is undone by several commands together: what git says of it goes backwards through a pipe, or over the file itself.

use std::collections::BTreeSet;

use super::ground::Ground;
use super::place;
use super::words;
use podbay_code::shell::Command;
use podbay_code::shell::Script;
use podbay_code::shell::Word;
use podbay_event::Capability;

/// What it comes to.
const OPERATION: &str = "checkout of files";
/// How a patch is taken back by `git apply`.
const REVERSED: &str = "apply -R";

/// Most files of one command that are looked for.
const FILES_MAX: usize = 4;
/// How many commands in front of one are looked at.
const BEFORE_MAX: usize = 64;

/// Gates what undoes work, and opens the gate for a patch that the script has just kept in a file.
pub(super) fn judge(script: &Script, grounds: &[Ground], needs: &mut [BTreeSet<Capability>]) {
    let gate = |operation: &str| Capability::GatedGit { operation: operation.to_owned() };
    for (at, command) in script.commands.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| &script.commands[at]).filter(|_| command.piped);
        let earlier = || script.commands[..at].iter().rev().take(BEFORE_MAX);
        let by_file = || earlier().any(|before| comes_back(before, command, &grounds[at]));
        if before.is_some_and(|before| undoes(before, command, &grounds[at])) || writes_back(command) || by_file() {
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
        Some(("archive", _)) => unpacks_here(command, ground),
        Some(("show" | "cat-file", _)) => {
            let is_written = |word: &Word| shown(before).contains(&plain(word.text.strip_prefix("of=").unwrap_or(&word.text)));
            matches!(command.name(), Some("tee" | "sponge" | "dd")) && words::operands(arguments).any(is_written)
        }
        _ => false,
    }
}

/// Returns whether an option of `unzip` has it list, test or show what is in the archive.
fn looks_only(option: &str) -> bool {
    option.strip_prefix('-').is_some_and(|flags| !flags.starts_with('-') && flags.contains(['l', 't', 'p', 'Z', 'v', 'z']))
}

/// Returns whether an archive is unpacked over the project.
fn unpacks_here(command: &Command, ground: &Ground) -> bool {
    let arguments = command.arguments();
    let (unpacks, to) = match command.name() {
        Some("tar" | "bsdtar" | "gtar") => {
            let is_first = arguments.first().is_some_and(|word| !word.text.starts_with("--") && word.text.contains('x'));
            (is_first || words::has(arguments, "x", &["--extract"]), 'C')
        }
        Some("unzip") => (!arguments.iter().any(|word| looks_only(&word.text)), 'd'),
        _ => return false,
    };
    // `-xC FOLDER`, `-qd FOLDER`, and the long one in either spelling.
    let takes_folder = |text: &str| text == "--directory" || text.starts_with('-') && !text.starts_with("--") && text.ends_with(to);
    let behind = arguments.windows(2).find(|pair| takes_folder(&pair[0].text)).map(|pair| pair[1].text.as_str());
    let folder = behind.or_else(|| arguments.iter().find_map(|word| word.text.strip_prefix("--directory=")));
    unpacks && place::whole(folder.unwrap_or("."), ground).is_some()
}

/// Returns whether a command brings back what git wrote into a file before: `git archive -o FILE HEAD; tar xf FILE`, `git show HEAD:a > b; mv b a`.
fn comes_back(before: &Command, command: &Command, ground: &Ground) -> bool {
    let Some((verb, rest)) = git(before) else { return false };
    let arguments = command.arguments();
    let is_file = |text: &str, file: &str| text.strip_suffix(file).is_some_and(|before| before.is_empty() || before.ends_with('f'));
    let is_named = |file: &str| arguments.iter().any(|word| is_file(&word.text, file));
    match verb {
        "archive" if unpacks_here(command, ground) => {
            let long = rest.iter().filter_map(|word| word.text.strip_prefix("--output=").or_else(|| word.text.strip_prefix("-o")));
            let behind =
                rest.windows(2).filter(|pair| matches!(pair[0].text.as_str(), "-o" | "--output")).map(|pair| pair[1].text.as_str());
            long.chain(behind)
                .chain(targets(before).map(|word| word.text.as_str()))
                .take(FILES_MAX)
                .any(|file| !file.is_empty() && is_named(file))
        }
        "show" | "cat-file" => {
            let to: Vec<&Word> = match command.name() {
                Some("mv" | "cp" | "install") => words::operands(arguments).last().into_iter().collect(),
                Some("cat") => targets(command).collect(),
                _ => return false,
            };
            let paths = shown(before);
            let is_there = |to: &Word| paths.iter().any(|path| plain(&to.text) == *path || is_folder_of(&to.text, path));
            to.into_iter().any(is_there) && targets(before).take(FILES_MAX).any(|file| is_named(&file.text))
        }
        _ => false,
    }
}

/// Returns whether a path is written as the folder that a file lies in.
fn is_folder_of(folder: &str, path: &str) -> bool {
    folder.ends_with('/') && path.rsplit_once('/').map_or("", |(above, _)| above) == plain(folder).trim_end_matches('/')
}

/// Returns the files into which a command writes.
fn targets(command: &Command) -> impl Iterator<Item = &Word> {
    command.redirections.iter().filter(|redirection| redirection.writes()).filter_map(|redirection| redirection.target.as_ref())
}

fn plain(path: &str) -> String {
    path.trim_start_matches("./").to_owned()
}

/// Returns the files whose older text git shows.
fn shown(command: &Command) -> Vec<String> {
    operands(command).filter_map(|word| Some(plain(word.text.split_once(':')?.1))).collect()
}

/// `git show HEAD:README.md > README.md`.
fn writes_back(command: &Command) -> bool {
    let Some(("show" | "cat-file", _)) = git(command) else { return false };
    let paths = shown(command);
    targets(command).any(|target| paths.contains(&plain(&target.text)))
}

/// `git diff > FILE`.
fn keeps(command: &Command, file: &str) -> bool {
    let writes = || {
        command.redirections.iter().any(|redirection| redirection.writes() && redirection.target.as_ref().is_some_and(|to| to.text == file))
    };
    git(command).is_some_and(|(verb, _)| matches!(verb, "diff" | "format-patch")) && writes()
}
