//! Paths whose names exist only in look-alike characters.
//!
//! Such a file is used where no entry has the exact name and exactly one entry of the folder looks
//! alike; the result says so. This grants nothing that the exact name would not: calls whose paths
//! are checked by name are excluded, and so are protected names.

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::beneath::Links;
use crate::lookalike::normalize_bytes;
use crate::root::MAX_NAMES;
use crate::root::Root;
use crate::root::join;
use crate::root::names;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::MeantName;
use podbay_wire::Output;
use podbay_wire::PathUse;
use podbay_wire::protected_name;

/// Returns a call with its names replaced by existing look-alikes, and the replacements; `None`:
/// there are none.
pub(crate) fn find_names(root: &Root, call: &Call) -> Option<(Call, Vec<MeantName>)> {
    if root.beneath().refuses_links() {
        return None;
    }
    let paths = call.facts().paths;
    let found: Vec<Option<BytesPath>> = paths
        .iter()
        .map(|named| find(root, named.path, named.usage))
        .collect();
    if found.iter().all(Option::is_none) {
        return None;
    }
    let (mut call, mut names) = (call.clone(), Vec::new());
    for (path, found) in call.fields_mut().paths.into_iter().zip(found) {
        if let Some(found) = found {
            names.push(MeantName {
                given: std::mem::replace(path, found.clone()),
                found,
            });
        }
    }
    Some((call, names))
}

/// Adds the replaced names to a call's output.
pub(crate) fn with_note(output: Output, names: Vec<MeantName>) -> Output {
    match output {
        // A fault already names the file by its real name.
        output @ Output::Fault(_) => output,
        output if names.is_empty() => output,
        Output::Command(mut command) => {
            let with_note = names.iter().map(|MeantName { given, found }| {
                format!("{found} was used for {given}, which looks like it")
            });
            command.note = Some(
                command
                    .note
                    .into_iter()
                    .chain(with_note)
                    .collect::<Vec<_>>()
                    .join("; "),
            );
            Output::Command(command)
        }
        output => Output::Meant {
            names,
            output: Box::new(output),
        },
    }
}

/// Finds the existing path that a missing one looks like.
fn find(root: &Root, path: &BytesPath, usage: PathUse) -> Option<BytesPath> {
    let relative = root.relative(path).ok()?;
    let is_missing = |path: &[u8]| {
        root.beneath()
            .open(path, OFlag::O_PATH, Links::Follow)
            .err()
            == Some(Errno::ENOENT)
    };
    if relative.is_empty() || !is_missing(relative.as_bytes()) {
        return None;
    }
    let (mut found, mut is_other) = (Vec::new(), false);
    let bare = relative
        .as_bytes()
        .strip_suffix(b"/")
        .unwrap_or(relative.as_bytes());
    let mut left = bare.split(|byte| *byte == b'/').peekable();
    while let Some(name) = left.next() {
        let here = join(&found, name);
        let is_new = usage == PathUse::Makes && left.peek().is_none();
        if is_new || !is_missing(&here) {
            found = here;
            continue;
        }
        match alike(root, &found, name) {
            Some(other) => (found, is_other) = (join(&found, &other), true),
            None if usage == PathUse::Finds => return None,
            // From here on the path is created.
            None => {
                found = left.fold(here, |path, name| join(&path, name));
                break;
            }
        }
    }
    if relative.as_bytes().ends_with(b"/") {
        found.push(b'/');
    }
    let found = BytesPath::from_bytes(found);
    let is_open = protected_name(&found).is_none_or(|protected| names(path, &protected));
    (is_other && is_open).then_some(found)
}

/// Returns the only look-alike name in a folder, where none is exact.
fn alike(root: &Root, folder: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let folder = root
        .beneath()
        .open(folder, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Links::Follow)
        .ok()?;
    let wanted = normalize_bytes(name);
    let mut found = None;
    for entry in Dir::from_fd(folder)
        .ok()?
        .into_iter()
        .take(MAX_NAMES)
        .flatten()
    {
        let other = entry.file_name().to_bytes();
        if other == name {
            // A dangling link.
            return None;
        }
        if normalize_bytes(other) != wanted
            || protected_name(&BytesPath::from_bytes(other)).is_some()
        {
            continue;
        }
        if found.replace(other.to_vec()).is_some() {
            return None;
        }
    }
    found
}
