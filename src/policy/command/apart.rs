//! Repositories apart from the project's: what git throws away in one that lies in a folder for passing things is no work of a person's.
//!
//! By the letters of its path, as everywhere here. A linked worktree shares its branches with the project's repository, so only what is lost of
//! the files is meant, and nothing that removes what both know.

use std::collections::BTreeSet;

use super::ground;
use super::ground::Ground;
use super::place;
use super::place::Place;
use super::words;
use podbay_code::shell::Command;
use podbay_code::shell::Script;
use podbay_code::shell::Word;

/// Verbs that lose nothing but files of the folder where they work, and how what they lose is called.
const OF_FILES: [&str; 7] = ["checkout", "clean", "mv", "reset", "restore", "rm", "switch"];
const OPERATIONS: [&str; 8] =
    ["checkout of files", "clean -f", "mv -f", "reset --hard", "restore", "rm -f", "rm of all files", "switch --discard-changes"];
/// How a text says that a folder's repository, or its files, lie somewhere else.
const ELSEWHERE: [&str; 5] = ["core.worktree", "git-dir", "git_", "gitdir", "work-tree"];
/// Programs that may make a folder lead somewhere else: by a link, or a copy of one.
const LEADING: [&str; 6] = ["cp", "ln", "mount", "mv", "rsync", "tar"];

/// Returns whether nothing in a script says that a folder elsewhere belongs to the project's repository.
pub(super) fn may_be(script: &Script, text: &str) -> bool {
    let leads = |command: &Command| command.name().is_none_or(|name| LEADING.contains(&name)) && !command.words.is_empty();
    let says = |text: &str| ELSEWHERE.iter().any(|sign| text.to_ascii_lowercase().contains(sign));
    let words = || script.commands.iter().flat_map(|command| &command.words);
    let sets = || script.commands.iter().flat_map(|command| &command.assignments);
    let is_of_git = script.commands.iter().any(|command| command.name() == Some("git"));
    is_of_git
        && !says(text)
        && !words().any(|word| says(&word.text))
        && !sets().any(|set| says(&set.name))
        && !script.commands.iter().any(leads)
}

/// Returns whether an operation keeps all of the project: it loses files in a folder for passing things alone.
pub(super) fn keeps(command: &Command, operation: &str, ground: &Ground, made: &BTreeSet<&str>) -> bool {
    let is_git = command.program().is_some_and(|program| program.text == "git");
    let mut rest = command.arguments();
    let mut folders = Vec::new();
    while let Some((first, behind)) = rest.split_first().filter(|(first, _)| first.text.starts_with('-')) {
        rest = match first.known() {
            Some("-C") => {
                let Some((folder, behind)) = behind.split_first() else { return false };
                folders.push(folder);
                behind
            }
            Some("--no-pager" | "-P") => behind,
            _ => return false,
        };
    }
    let Some((verb, rest)) = rest.split_first() else { return false };
    if !is_git || !command.assignments.is_empty() {
        return false;
    }
    if operation == "worktree remove -f" {
        return removes_apart(rest, made);
    }
    let is_apart = |here: Option<&Place>| place_of(&folders, here, made).is_some_and(|place| is_for_passing(&place));
    verb.known().is_some_and(|verb| OF_FILES.contains(&verb))
        && OPERATIONS.contains(&operation)
        && is_apart(ground.here.as_deref())
        && ground.others.iter().all(|other| is_apart(Some(&other.place)))
}

/// `git worktree remove -f FOLDER`, with a path from the root.
fn removes_apart(rest: &[Word], made: &BTreeSet<&str>) -> bool {
    let mut removed = words::operands(rest).skip(1).peekable();
    let place =
        |word: &Word| ground::in_made(word, made).or_else(|| place::resolve(word.known().filter(|path| path.starts_with('/'))?, None));
    removed.peek().is_some() && removed.all(|word| place(word).is_some_and(|place| is_for_passing(&place)))
}

/// Returns the folder that `-C` leads to, one after the other.
fn place_of(folders: &[&Word], here: Option<&Place>, made: &BTreeSet<&str>) -> Option<Place> {
    let mut place = here.cloned();
    for folder in folders {
        place = ground::in_made(folder, made).or_else(|| place::resolve(folder.known()?, place.as_ref()));
    }
    place
}

fn is_for_passing(place: &Place) -> bool {
    !place.is_home && matches!(place.parts.as_slice(), [top, _, ..] if top == "tmp")
}
