//! Folders that cannot make room for a file, since they hold entries that stay.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::super::compare::Change;
use super::super::project::Project;
use super::Outcome;
use super::is_type_change;
use super::names;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::LeftPath;
use podbay_wire::keep::LeftReason;

/// Leaves a change undone, and notes it where a folder was to make room for something else.
pub(super) fn leave_out(
    found: &mut Outcome,
    kept: &mut BTreeMap<BytesPath, LeftReason>,
    change: &Change,
    reason: LeftReason,
) {
    if is_type_change(change) {
        kept.insert(change.path.clone(), reason.clone());
    }
    found.leave(LeftPath {
        path: change.path.clone(),
        reason,
    });
}

/// A folder that is to become a file, and holds entries that are not ours to remove, is left with
/// all of its contents. So are those that are left for another reason: they would be emptied for a
/// file that is not written. `kept` holds these.
pub(super) fn leave_folders(
    project: &Project,
    changes: &mut Vec<Change>,
    mut kept: BTreeMap<BytesPath, LeftReason>,
    found: &mut Outcome,
) {
    let gone: BTreeSet<&[u8]> = changes
        .iter()
        .filter(|change| change.after.is_none())
        .map(|change| change.path.as_bytes())
        .collect();
    let turned = changes.iter().filter(|change| is_type_change(change));
    let full = turned.filter(|change| !holds_only(project, change.path.as_bytes(), &gone));
    kept.extend(full.map(|change| (change.path.clone(), LeftReason::NotEmpty)));
    if kept.is_empty() {
        return;
    }
    for change in changes.extract_if(.., |change| folder_of(&kept, &change.path).is_some()) {
        let Some((folder, reason)) = folder_of(&kept, &change.path) else {
            continue;
        };
        // A reason that may disappear is retried, together with the contents.
        let reason = if reason.may_pass() {
            reason.clone()
        } else {
            LeftReason::InLeft {
                folder: folder.clone(),
            }
        };
        found.leave(LeftPath {
            path: change.path,
            reason,
        });
    }
}

/// Returns which of some folders a path is, or is in.
pub(in crate::keep) fn folder_of<'k, T>(
    folders: &'k BTreeMap<BytesPath, T>,
    path: &BytesPath,
) -> Option<(&'k BytesPath, &'k T)> {
    let above = std::iter::successors(Some(path.as_bytes()), |path| {
        Some(split(path).0).filter(|path| !path.is_empty())
    });
    above
        .map(BytesPath::from_bytes)
        .find_map(|path| folders.get_key_value(&path))
}

/// Whether every entry in a folder is among those to be removed.
pub(super) fn holds_only(project: &Project, path: &[u8], gone: &BTreeSet<&[u8]>) -> bool {
    // The contents of its subfolders are to be removed as well, or this is checked for those when
    // they are not.
    project.list(path).and_then(names).is_ok_and(|names| {
        names.iter().all(|name| {
            let path = join(path, name);
            gone.contains(path.as_slice())
                && (project.list(&path).is_err() || holds_only(project, &path, gone))
        })
    })
}
