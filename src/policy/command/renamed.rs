//! The project by a name that the script gives it itself: a link to it, or a folder into which all of it is moved.

use super::blocked;
use super::ground::Ground;
use super::place;
use super::place::Place;
use super::place::Whole;
use super::words;
use crate::code::shell::Command;
use crate::code::shell::Script;
use crate::code::shell::Word;
use crate::code::shell::WordKind;

/// Most such names that are kept in mind.
const NAMES_MAX: usize = 16;

/// What the project is called besides.
struct Name {
    place: Place,
    /// What goes through a link is the project; the link itself is none.
    is_link: bool,
}

/// Returns the commands that are blocked for what they do to the project by such a name, each with its place and why.
pub(super) fn blocked(script: &Script, grounds: &[Ground]) -> Vec<(usize, String)> {
    let mut blocked = Vec::new();
    let mut names: Vec<Name> = Vec::new();
    for (at, (command, ground)) in script.commands.iter().zip(grounds).enumerate() {
        let reason = by_its_own_name(command, ground, &names).and_then(|meant| blocked::reason(&meant, ground));
        let reason = reason.filter(|reason| reason.contains(place::PROJECT));
        blocked.extend(reason.map(|reason| (at, format!("{reason}, by the name that this command gives it"))));
        if blocked.is_empty() {
            blocked.extend(moved_onto_one(script, at, ground).map(|reason| (at, reason)));
        }
        if names.len() < NAMES_MAX {
            names.extend(linked(command, ground).or_else(|| moved(command, ground)));
        }
    }
    blocked
}

/// Returns a command with the project's own name in the place of each of those; `None` where it names none.
fn by_its_own_name(command: &Command, ground: &Ground, names: &[Name]) -> Option<Command> {
    if names.is_empty() {
        return None;
    }
    let mut is_new = false;
    let meant = |word: &Word| {
        let place =
            place::resolve(&word.text, ground.here.as_deref()).filter(|_| word.kind != WordKind::Unknown && !word.text.starts_with('-'));
        let rest = place.and_then(|place| names.iter().find_map(|name| behind(name, &place, word)));
        is_new |= rest.is_some();
        rest.map_or_else(|| word.clone(), |rest| Word { text: format!("/workspace{rest}"), ..word.clone() })
    };
    let program = command.program().cloned();
    let words = program.into_iter().chain(command.arguments().iter().map(meant)).collect();
    is_new.then(|| Command { words, ..command.clone() })
}

/// Returns what follows the project in a path that begins with such a name, or that is a folder around it.
fn behind(name: &Name, place: &Place, word: &Word) -> Option<String> {
    if let Some(rest) = place.parts.strip_prefix(name.place.parts.as_slice()).filter(|_| !place.is_home) {
        let is_itself = rest.is_empty() && !word.text.ends_with('/');
        return (!is_itself || !name.is_link).then(|| rest.iter().map(|part| format!("/{part}")).collect());
    }
    let is_around = !name.is_link && place.is_in_project() && place.parts.len() > 1 && name.place.parts.starts_with(&place.parts);
    is_around.then(String::new)
}

/// Returns the name of a link to the project: `ln -s /workspace /tmp/w`.
fn linked(command: &Command, ground: &Ground) -> Option<Name> {
    let arguments = command.arguments();
    if command.name() != Some("ln") || !words::has(arguments, "s", &["--symbolic"]) {
        return None;
    }
    let operands: Vec<&Word> = words::operands(arguments).collect();
    let [target, name] = operands.as_slice() else { return None };
    let mut place = place::resolve(name.known()?, ground.here.as_deref()).filter(|place| !place.is_home)?;
    let is_folder = name.text.ends_with(['/', '.']) || name.text == "/tmp";
    // A link says where it leads from where it lies.
    let lies_in = Place { is_home: false, parts: place.parts[..place.parts.len().saturating_sub(usize::from(!is_folder))].to_vec() };
    let led = match target.kind {
        WordKind::Known => place::resolve(&target.text, Some(&lies_in)),
        _ => place::resolve(&target.text, ground.here.as_deref()).filter(|_| place::is_folder_here(&target.text)),
    };
    if led? != Place::project() {
        return None;
    }
    if is_folder {
        place.parts.push("workspace".to_owned());
    }
    Some(Name { place, is_link: true })
}

/// Returns the folder into which a command moves all of the project: `mv * .old`.
fn moved(command: &Command, ground: &Ground) -> Option<Name> {
    let arguments = command.arguments();
    if command.name() != Some("mv") {
        return None;
    }
    let named = blocked::target_folder(arguments);
    let operands: Vec<&Word> = words::operands(arguments).collect();
    let to = named.or_else(|| operands.last().and_then(|word| word.known()).map(ToOwned::to_owned))?;
    let is_all = |word: &&&Word| place::whole(&word.text, ground) == Some(Whole::Content) && !word.text.ends_with("/.*");
    operands.iter().find(is_all)?;
    let place = place::resolve(&to, ground.here.as_deref())?;
    (place.is_in_project() && place.parts.len() > 1).then_some(Name { place, is_link: false })
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
    let name = file.text.trim_start_matches("./").strip_prefix('$')?.trim_matches(['{', '}']);
    let to = to.known().filter(|to| !to.ends_with(['/', '.']))?;
    let all = script.values.iter().take(super::VALUES_MAX).any(|value| {
        value.variable == name && value.word.kind == WordKind::Pattern && place::whole(&value.word.text, ground) == Some(Whole::Content)
    });
    let knows = |command: &Command| {
        matches!(command.name(), Some("mkdir" | "install" | "test" | "["))
            && command.arguments().iter().any(|word| word.text.trim_end_matches('/') == to)
    };
    let is_lost = all && !place::is_beyond(to, ground) && !script.commands[..at].iter().any(knows);
    is_lost.then(|| format!("it moves each file of {} onto the one before, where {to} is no folder; write `{to}/`", place::PROJECT))
}
