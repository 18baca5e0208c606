//! What commands may do besides: in the folder where a change of folders leaves them that fails, and where a variable holds nothing.
//!
//! Only the loss of what is precious counts there.

use super::blocked;
use super::fed;
use super::ground::Ground;
use super::ground::Other;
use super::place;
use super::unset;
use super::unset::Given;
use podbay_code::shell::Command;
use podbay_code::shell::Script;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;

/// Folders that are lost where a variable in front of them is empty.
const OF_THE_SYSTEM: [&str; 10] = ["/bin", "/etc", "/home", "/lib", "/opt", "/root", "/sbin", "/srv", "/usr", "/var"];
/// What they are called in a reason, beside the project.
const LOST: [&str; 2] = ["the root folder", "the home folder"];

/// Returns the commands that are blocked for that, each with its place and why.
pub(super) fn blocked(script: &Script, grounds: &[Ground]) -> Vec<(usize, String)> {
    let mut blocked = Vec::new();
    let given = Given::of(script);
    let mut emptied_script: Option<Script> = None;
    for (at, (command, ground)) in script.commands.iter().zip(grounds).enumerate() {
        for other in ground.others.iter().filter(|other| counts(other)) {
            let there = ground.other(other);
            let reason = blocked_in(script, command, &there);
            blocked.extend(reason.filter(|reason| is_of(other, reason)).map(|reason| (at, explained(&reason, other))));
        }
        if let Some(gone) = with_folder_before(command, ground) {
            let reason = blocked::reason(&gone, ground).filter(|reason| loses(reason));
            blocked.extend(reason.map(|reason| (at, format!("{reason}, as that is where `$OLDPWD` leads"))));
        }
        if let Some(emptied) = unset::without(command, &given, at).filter(|_| !ground.ends_on_unset) {
            let reason = blocked::reason(&emptied, ground).filter(|reason| loses(reason));
            blocked.extend(reason.map(|reason| (at, where_empty(&reason))));
            emptied_script.get_or_insert_with(|| script.clone()).commands[at] = emptied;
        }
    }
    // `find $1 -type f | xargs rm`
    if let Some(emptied) = emptied_script {
        blocked.extend(fed::blocked(&emptied, grounds).into_iter().map(|(at, reason)| (at, where_empty(&reason))));
    }
    // Lists that nothing chose, which name what lies in the folder.
    if grounds.iter().any(|ground| ground.others.iter().any(|other| *other.place == place::Place::project())) {
        let other = |ground: &Ground| ground.others.iter().find(|other| *other.place == place::Place::project()).cloned();
        let there: Vec<Ground> =
            grounds.iter().map(|ground| other(ground).map_or_else(|| ground.clone(), |other| ground.other(&other))).collect();
        blocked.extend(fed::blocked(script, &there).into_iter().map(|(at, reason)| {
            let reason = grounds.get(at).and_then(other).map_or(reason.clone(), |other| explained(&reason, &other));
            (at, reason)
        }));
    }
    blocked
}

/// Returns a command with the folder where its shell was before in the places where it is named: `$OLDPWD`.
fn with_folder_before(command: &Command, ground: &Ground) -> Option<Command> {
    let before = ground.before.as_ref()?;
    let root = if before.is_home { "~" } else { "" };
    let folder = before.parts.iter().fold(root.to_owned(), |path, part| format!("{path}/{part}"));
    let behind = |word: &Word| {
        let rest = ["${OLDPWD}", "${OLDPWD:?}", "$OLDPWD", "~-"].iter().find_map(|name| word.text.strip_prefix(name));
        rest.filter(|rest| rest.is_empty() || rest.starts_with('/')).map(|rest| format!("{folder}{rest}"))
    };
    let named = |word: &Word| behind(word).map(|text| Word { text, kind: WordKind::Known, ..word.clone() });
    let words = command.words.iter().map(|word| named(word).unwrap_or_else(|| word.clone())).collect();
    command.words.iter().any(|word| behind(word).is_some()).then(|| Command { words, ..command.clone() })
}

/// Returns whether it matters that a command stands there: where a name such as `*` means all that is precious.
fn counts(other: &Other) -> bool {
    *other.place == place::Place::project() || other.place.is_home || other.place.parts.is_empty()
}

fn where_empty(reason: &str) -> String {
    format!("{reason} where what stands for a value is empty; write `${{NAME:?}}`")
}

fn blocked_in(script: &Script, command: &Command, ground: &Ground) -> Option<String> {
    let made = || script.values.iter().take(super::VALUES_MAX).filter_map(|value| value.put_in(command));
    blocked::reason(command, ground).or_else(|| made().find_map(|made| blocked::reason(&made, ground)))
}

/// Returns whether a reason is about the place where the command may stand besides, and not about what lies above it.
fn is_of(other: &Other, reason: &str) -> bool {
    let is_root = !other.place.is_home && other.place.parts.is_empty();
    reason.contains(place::PROJECT) || (other.place.is_home && reason.contains(LOST[1])) || (is_root && reason.contains(LOST[0]))
}

fn loses(reason: &str) -> bool {
    let last = reason.rsplit(' ').next().unwrap_or_default();
    let is_in = |rest: &str| rest.is_empty() || rest.starts_with('/');
    let is_of_system = || OF_THE_SYSTEM.iter().any(|folder| last.strip_prefix(folder).is_some_and(is_in));
    reason.contains(place::PROJECT) || LOST.iter().any(|lost| reason.contains(lost)) || is_of_system()
}

fn explained(reason: &str, other: &Other) -> String {
    if other.is_failed {
        format!("{reason} if the `cd` in front of it fails or is passed by; join them: `cd FOLDER && …`")
    } else {
        reason.to_owned()
    }
}
