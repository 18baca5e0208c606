use std::collections::BTreeSet;

use crate::keep::Diff;
use crate::keep::Node;
use crate::keep::Project;
use crate::keep::auto_run::AutoRun;
use crate::keep::auto_run::ChangedPath;
use crate::keep::compare::Change;
use crate::keep::compare::path_changes;
use crate::keep::diff::has_lines;
use crate::keep::node::are_alike;
use crate::keep::path_entry::NameCheck;
use crate::keep::path_entry::PathEntry;
use crate::keep::plan;
use podbay_wire::keep::ChangeKind;
use podbay_wire::keep::EntryType;
use podbay_wire::keep::LineCount;
use podbay_wire::keep::PathChange;
use podbay_wire::keep::PendingChanges;

/// Returns the changes that are counted and reported: a new or removed folder only if no change in
/// it is.
pub(super) fn counted(changes: &[Change]) -> Vec<PathChange> {
    let mut all = path_changes(changes);
    let is_folder = |change: &PathChange| {
        change.entry == EntryType::Folder
            && matches!(change.what, ChangeKind::Created | ChangeKind::Deleted)
    };
    let mut above = BTreeSet::new();
    for change in all.iter().filter(|change| !is_folder(change)) {
        let from = if let ChangeKind::Renamed { from } = &change.what {
            Some(from)
        } else {
            None
        };
        for path in [Some(&change.path), from].into_iter().flatten() {
            above.extend(folders_above(path.as_bytes()).map(<[u8]>::to_vec));
        }
    }
    let folders: BTreeSet<Vec<u8>> = all
        .iter()
        .filter(|change| is_folder(change))
        .map(|change| change.path.as_bytes().to_vec())
        .collect();
    above.extend(
        folders
            .iter()
            .flat_map(|path| folders_above(path))
            .map(<[u8]>::to_vec),
    );
    all.retain(|change| !is_folder(change) || !above.contains(change.path.as_bytes()));
    all
}

fn folders_above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    memchr::memchr_iter(b'/', path).map(|at| &path[..at])
}

/// Whether the project has neither the state before a change nor the one after it. What cannot be
/// looked at is found out when it is applied.
fn is_conflict(project: &Project, change: &Change) -> bool {
    let is_known = |node: Option<&Node>| !matches!(node, Some(Node::Unkept { .. }));
    let Ok(look) = PathEntry::at(project, change.path.as_bytes(), NameCheck::Plain) else {
        return false;
    };
    let here = look.found.node();
    is_known(here.as_ref())
        && is_known(change.before.as_ref())
        && !are_alike(here.as_ref(), change.before.as_ref())
        && !plan::is_done(change, here.as_ref())
}

/// Summarizes changes, with the lines that their unified diff adds and removes.
pub(super) fn pending(
    project: &Project,
    changes: &[Change],
    difference: &Diff,
    auto_run: &AutoRun,
) -> PendingChanges {
    let may_run = auto_run.named(changes.iter().map(ChangedPath::from));
    let conflicts = changes.iter().filter(|change| is_conflict(project, change));
    let mut pending = PendingChanges {
        may_run,
        conflicts: conflicts.map(|change| change.path.clone()).collect(),
        is_may_run_cut: auto_run.is_cut(),
        ..PendingChanges::default()
    };
    let mut all = counted(changes);
    // Output of builds is deep, and the files that a user looks for are not.
    all.sort_by_key(|change| memchr::memchr_iter(b'/', change.path.as_bytes()).count());
    for change in all {
        let is_known = difference.lines.contains_key(&change.path);
        pending.n_uncounted += u64::from(has_lines(&change) && !is_known);
        let counted = difference.counted(change);
        let LineCount { n_added, n_removed } = counted.lines.unwrap_or_default();
        pending.n_added += n_added;
        pending.n_removed += n_removed;
        pending.changes.add(counted);
    }
    pending
}
