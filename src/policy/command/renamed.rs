//! The project by a name that the script gives it itself: a link to it, or a folder into which all of it is moved.

use super::blocked;
use super::finding;
use super::ground::Ground;
use super::links::Links;
use super::place;
use super::place::Place;
use super::place::Whole;
use super::words;
use podbay_code::shell::Command;
use podbay_code::shell::Script;
use podbay_code::shell::Value;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;

/// Most commands of `find` that are looked at for what they move.
const LOOKED_MAX: usize = 32;
/// Most such names that are kept in mind.
const NAMES_MAX: usize = 16;

/// What the project is called besides.
#[derive(Default)]
struct Names {
    links: Links,
    /// Folders that all of it was moved into.
    folders: Vec<Place>,
}

/// Returns the commands that are blocked for what they do to the project by such a name, each with its place and why.
pub(super) fn blocked(script: &Script, grounds: &[Ground]) -> Vec<(usize, String)> {
    let mut blocked = Vec::new();
    let mut names = Names::default();
    let (mut n_put_in, mut n_looked) = (0, 0);
    for (at, (command, ground)) in script.commands.iter().zip(grounds).enumerate() {
        let meant = by_its_own_name(command, ground, &names);
        let reason = meant.as_ref().filter(|meant| !stays_in_project(meant, ground)).and_then(|meant| blocked::reason(meant, ground));
        // A loop may go through such names.
        let may_be_put_in = !names.is_empty() && n_put_in < super::VALUES_MAX && super::has_unknown(command);
        n_put_in += usize::from(may_be_put_in);
        let put_in = || script.values.iter().take(super::VALUES_MAX).filter_map(|value| value.put_in(command));
        let through_loop = || put_in().find_map(|made| blocked::reason(&by_its_own_name(&made, ground, &names)?, ground));
        let reason = reason.or_else(|| if may_be_put_in { through_loop() } else { None });
        let reason = reason.filter(|reason| reason.contains(place::PROJECT) || reason.contains("the root folder"));
        blocked.extend(reason.map(|reason| (at, format!("{reason}, by the name that this command gives it"))));
        if blocked.is_empty() {
            blocked.extend(moved_onto_one(script, at, ground).map(|reason| (at, reason)));
        }
        names.links.note(command, ground.here.as_deref());
        if names.folders.len() < NAMES_MAX {
            names.folders.extend(moved(script, at, meant.as_ref().unwrap_or(command), ground, &mut n_looked));
        }
    }
    blocked
}

/// Returns a command with the project's own name in the place of each of those; `None` where it names none.
fn by_its_own_name(command: &Command, ground: &Ground, names: &Names) -> Option<Command> {
    if names.is_empty() {
        return None;
    }
    let mut is_new = false;
    let is_whole = goes_through(command);
    let meant = |word: &Word| {
        let place =
            place::resolve(&word.text, ground.here.as_deref()).filter(|_| word.kind != WordKind::Unknown && !word.text.starts_with('-'));
        let led = place.and_then(|place| names.led(&place, is_whole || word.text.ends_with('/')));
        is_new |= led.is_some();
        led.map_or_else(|| word.clone(), |led| Word { text: led.path(), ..word.clone() })
    };
    let program = command.program().cloned();
    let words = program.into_iter().chain(command.arguments().iter().map(meant)).collect();
    is_new.then(|| Command { words, ..command.clone() })
}

impl Names {
    fn is_empty(&self) -> bool {
        self.links.is_empty() && self.folders.is_empty()
    }

    /// Returns where a place leads that begins with such a name, or that is a folder around one.
    fn led(&self, place: &Place, is_whole: bool) -> Option<Place> {
        let led = self.links.through(place, is_whole);
        let place = led.as_ref().unwrap_or(place);
        let behind = |folder: &Place| {
            if let Some(rest) = place.parts.strip_prefix(folder.parts.as_slice()).filter(|_| !place.is_home) {
                return Some(Place { is_home: false, parts: [Place::project().parts.as_slice(), rest].concat() });
            }
            let is_around = place.is_in_project() && place.parts.len() > 1 && folder.is_below(place);
            is_around.then(Place::project)
        };
        self.folders.iter().find_map(behind).or_else(|| led.clone())
    }
}

/// Returns whether a command does to what a link leads to what others do to the link itself.
fn goes_through(command: &Command) -> bool {
    match command.name() {
        Some("find" | "gfind") => command.arguments().iter().any(|word| matches!(word.text.as_str(), "-L" | "-H" | "-follow")),
        Some("chmod" | "chown" | "chgrp") => !words::has(command.arguments(), "h", &["--no-dereference"]),
        _ => false,
    }
}

/// Returns whether a command only gives what it moves another place in the project.
fn stays_in_project(command: &Command, ground: &Ground) -> bool {
    let arguments = command.arguments();
    let to = || blocked::target_folder(arguments).or_else(|| words::operands(arguments).last().map(|word| word.text.clone()));
    command.name() == Some("mv") && to().is_some_and(|to| !place::is_beyond(&to, ground))
}

/// Returns the folder into which a command moves all of the project: `mv * .old`.
fn moved(script: &Script, at: usize, command: &Command, ground: &Ground, n_looked: &mut usize) -> Option<Place> {
    let arguments = command.arguments();
    if command.name() != Some("mv") {
        return None;
    }
    let named = blocked::target_folder(arguments);
    let operands: Vec<&Word> = words::operands(arguments).collect();
    let to = named.or_else(|| operands.last().and_then(|word| word.known()).map(ToOwned::to_owned))?;
    let is_content = |text: &str| place::whole(text, ground) == Some(Whole::Content) && !text.ends_with("/.*");
    // One after the other, by a loop or by `find`.
    let mut is_each = |word: &Word| {
        let found = || script.commands[..at].iter().rev().find(|command| !command.is_started);
        is_gone_through(word, script, ground)
            || (command.is_started
                && matches!(word.text.as_str(), "{}" | "./{}")
                && (is_looked_at(n_looked)
                    || found().is_some_and(|find| find.name() == Some("find") && !finding::chooses(find.arguments(), ground))))
    };
    operands.iter().find(|word| is_content(&word.text) || is_each(word))?;
    let place = place::resolve(&to, ground.here.as_deref())?;
    (place.is_in_project() && place.parts.len() > 1).then_some(place)
}

/// Counts what was looked at; what lies beyond that is taken for all of it.
fn is_looked_at(n_looked: &mut usize) -> bool {
    *n_looked += 1;
    *n_looked > LOOKED_MAX
}

/// Returns whether a word is a variable with which a loop goes through all of the project.
fn is_gone_through(word: &Word, script: &Script, ground: &Ground) -> bool {
    let name = word.text.trim_start_matches("./").strip_prefix('$').map(|name| name.trim_matches(['{', '}']));
    let is_all = |text: &str| place::whole(text, ground) == Some(Whole::Content);
    name.is_some_and(|name| {
        // Of several loops with one variable nobody knows which one it is.
        let is_of_it = |value: &&Value| value.variable == name && value.word.kind == WordKind::Pattern;
        let mut values = script.values.iter().take(super::VALUES_MAX).filter(is_of_it).peekable();
        values.peek().is_some() && values.all(|value| is_all(&value.word.text))
    })
}

/// Returns why a loop loses the project that moves each of its files to one name, which nothing makes a folder: `for f in *; do mv "$f" out; done`.
fn moved_onto_one(script: &Script, at: usize, ground: &Ground) -> Option<String> {
    let command = &script.commands[at];
    let arguments = command.arguments();
    if command.name() != Some("mv") || command.again || blocked::target_folder(arguments).is_some() {
        return None;
    }
    let operands: Vec<&Word> = words::operands(arguments).collect();
    let [file, to] = operands.as_slice() else { return None };
    let to = to.known().filter(|to| !to.ends_with(['/', '.']))?;
    let all = is_gone_through(file, script, ground);
    let knows = |command: &Command| {
        matches!(command.name(), Some("mkdir" | "install" | "test" | "["))
            && command.arguments().iter().any(|word| word.text.trim_end_matches('/') == to)
    };
    let is_lost = all && !place::is_beyond(to, ground) && !script.commands[..at].iter().any(knows);
    is_lost.then(|| format!("it moves each file of {} onto the one before, where {to} is no folder; write `{to}/`", place::PROJECT))
}
