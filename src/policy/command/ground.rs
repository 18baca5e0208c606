//! Where each command of a script stands: what `cd` and its like lead to.

use std::collections::HashMap;

use super::place::HOMES;
use super::place::Place;
use super::place::resolve;
use crate::code::shell::Command;
use crate::code::shell::HERE;
use crate::code::shell::Script;
use crate::code::shell::Word;
use crate::code::shell::WordKind;
use crate::wire::BytesPath;
use crate::wire::protected_name;

/// Where a command stands, as far as that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ground {
    /// How many folders below the project's top it may be at the most.
    pub(super) depth: usize,
    /// The folder itself, where every change of folders up to there is known.
    pub(super) here: Option<Place>,
}

impl Ground {
    /// Returns the protected folder that it lies in, if it does.
    pub(super) fn secret(&self) -> Option<String> {
        let path = self.here.as_ref()?.parts.join("/");
        protected_name(&BytesPath::from_text(&path)).filter(|protected| protected.is_secret).map(|protected| protected.name)
    }
}

/// Returns where each command of a script stands, one after the other; a shell within another begins where that one is.
pub(super) fn grounds(script: &Script, working_directory: Option<&str>) -> Vec<Ground> {
    let depth = depth(script, working_directory);
    let mut begin = Place::project();
    match working_directory {
        Some(path) if path.starts_with('/') => begin = resolve(path, None).unwrap_or(begin),
        Some(path) => begin.follow(path),
        None => {}
    }
    let mut stands: HashMap<usize, Option<Place>> = HashMap::from([(0, Some(begin))]);
    // What `env -C` starts, it starts elsewhere.
    let mut only_next: Option<Option<Place>> = None;
    // Where each shell was before, and where `pushd` came from.
    let mut before: HashMap<usize, Option<Place>> = HashMap::new();
    let mut pushed: HashMap<usize, Vec<Option<Place>>> = HashMap::new();
    let mut grounds = Vec::with_capacity(script.commands.len());
    // Behind a program that starts another one, `cd` would be a program of its own, which takes nobody along.
    let mut takes_along = true;
    for command in &script.commands {
        let takes_along = std::mem::replace(&mut takes_along, !command.starts_another || goes_along(command));
        let mut shell = command.shell;
        while !stands.contains_key(&shell) {
            shell = shell.checked_sub(1).and_then(|at| script.shells.get(at)).copied().unwrap_or_default();
        }
        let stand = stands.get(&shell).cloned().flatten();
        let here = only_next.take().unwrap_or_else(|| stand.clone());
        let after = match command.name() {
            Some("cd" | "pushd" | "popd") if !takes_along => stand,
            Some("cd") if command.arguments().first().is_some_and(goes_back) => {
                let gone = before.remove(&command.shell).or_else(|| before.get(&shell).cloned());
                // Where it was nowhere before it stays.
                gone.unwrap_or_else(|| here.clone())
            }
            Some("cd") => moved(command.arguments(), here.as_ref()),
            Some("pushd") => {
                pushed.entry(shell).or_default().push(here.clone());
                moved(command.arguments(), here.as_ref())
            }
            // Without a folder to go back to it fails.
            Some("popd") => pushed.get_mut(&shell).and_then(Vec::pop).unwrap_or_else(|| here.clone()),
            Some("env") => {
                only_next = chdir(command.arguments()).map(|to| to.known().and_then(|path| resolve(path, here.as_ref())));
                stand
            }
            _ => stand,
        };
        if matches!(command.name(), Some("cd" | "pushd" | "popd")) && takes_along {
            before.insert(command.shell, here.clone());
        }
        stands.insert(command.shell, after);
        grounds.push(Ground { depth, here });
    }
    grounds
}

/// Returns whether what a command starts is done by the shell itself.
fn goes_along(command: &Command) -> bool {
    matches!(command.name(), Some("command" | "builtin" | "eval" | "time" | "trap" | "alias"))
}

/// Returns whether a word is where the shell was before.
fn goes_back(word: &Word) -> bool {
    matches!(word.text.trim_end_matches('/'), "-" | "~-" | "$OLDPWD" | "${OLDPWD}")
}

/// Returns where `cd` leads.
fn moved(arguments: &[Word], here: Option<&Place>) -> Option<Place> {
    match arguments.iter().find(|word| word.text == "-" || !word.text.starts_with('-')) {
        None => Some(Place { is_home: true, parts: Vec::new() }),
        Some(word) if word.text == "-" => None,
        Some(word) if HERE.contains(&word.text.as_str()) => here.cloned(),
        // The home folder is known however it is written.
        Some(word) if word.kind == WordKind::Known || HOMES.contains(&word.text.trim_end_matches('/')) => resolve(&word.text, here),
        Some(_) => None,
    }
}

/// Returns the folder that `env -C` names.
fn chdir(arguments: &[Word]) -> Option<Word> {
    let at = arguments.iter().position(|word| word.text == "-C" || word.text.starts_with("--chdir"))?;
    match arguments[at].text.split_once('=') {
        Some((_, path)) => Some(Word { text: path.to_owned(), ..arguments[at].clone() }),
        None => arguments.get(at + 1).cloned(),
    }
}

/// Returns how many folders below the project's top a command may be when it names a path with `..`.
///
/// The working directory and every `cd` of the script are counted together: that is the deepest it can be.
fn depth(script: &Script, working_directory: Option<&str>) -> usize {
    let below = |path: &str| {
        let parts = path.strip_prefix("/workspace").unwrap_or(path).split('/');
        parts.filter(|part| !part.is_empty() && *part != "." && *part != "..").count()
    };
    let changes = script.commands.iter().filter(|command: &&Command| matches!(command.name(), Some("cd" | "pushd")));
    let depths = changes.filter_map(|command| command.arguments().first()).map(|word| match word.kind {
        WordKind::Known => below(&word.text),
        // Anywhere.
        WordKind::Pattern | WordKind::Unknown => 100,
    });
    depths.sum::<usize>() + working_directory.map_or(0, below)
}
