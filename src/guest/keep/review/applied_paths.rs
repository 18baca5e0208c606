use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde::Serialize;

use super::record::ReviewRecord;
use crate::keep::Error;
use crate::keep::Node;
use crate::keep::Project;
use crate::keep::Store;
use crate::keep::compare::Change;
use crate::keep::compare::compare_content;
use crate::keep::journal::Journal;
use crate::keep::node::are_alike;
use crate::keep::path_entry::NameCheck;
use crate::keep::path_entry::PathEntry;
use podbay_wire::BytesPath;

/// A path that was applied while the rest of its review is pending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AppliedPath {
    path: BytesPath,
    /// The state when the session began.
    before: Option<Node>,
    /// The session's state when it was applied.
    wanted: Option<Node>,
    /// The state in the project after that: the same, or a merge of both sides.
    here: Option<Node>,
}

/// Records what an application has applied.
pub(super) fn take(
    record: &mut ReviewRecord,
    project: &Project,
    store: &Store,
    journal: &Journal,
) -> Result<(), Error> {
    let all = compare_content(store, &record.base, &record.after())?;
    let all: BTreeMap<&BytesPath, &Change> =
        all.iter().map(|change| (&change.path, change)).collect();
    let mut taken: BTreeMap<BytesPath, AppliedPath> = record
        .taken
        .drain(..)
        .map(|taken| (taken.path.clone(), taken))
        .collect();
    let partly: BTreeMap<BytesPath, Node> = record.partly.drain(..).collect();
    for applied in &journal.changes {
        let here = PathEntry::at(project, applied.path.as_bytes(), NameCheck::Plain);
        let Some(here) = here
            .ok()
            .filter(|look| journal.is_after(applied, &look.found))
        else {
            continue;
        };
        let here = if journal.unheld.contains_key(&applied.path) {
            here.found.node()
        } else {
            applied.after.clone()
        };
        let (before, wanted) = match (all.get(&applied.path), taken.get(&applied.path)) {
            (Some(change), _) => {
                let part = partly.get(&applied.path).cloned();
                (change.before.clone(), part.or(change.after.clone()))
            }
            // The session changed it back to the first state.
            (None, Some(taken)) => (taken.before.clone(), taken.before.clone()),
            (None, None) => continue,
        };
        let path = applied.path.clone();
        taken.insert(
            path.clone(),
            AppliedPath {
                path,
                before,
                wanted,
                here,
            },
        );
    }
    record.taken = taken.into_values().collect();
    record.taken_from.insert(record.after());
    Ok(())
}

/// Whether a change is in the project.
pub(super) fn is_in(project: &Project, journal: &Journal, change: &Change) -> bool {
    PathEntry::at(project, change.path.as_bytes(), NameCheck::Plain)
        .is_ok_and(|look| journal.is_after(change, &look.found))
}

/// Makes changes of applied paths begin with the applied state. A path without further changes is
/// no change: both of its states are what is in the project.
pub(super) fn continue_from_applied(
    record: &ReviewRecord,
    project: &Project,
    mut all: Vec<Change>,
) -> Vec<Change> {
    if record.taken.is_empty() {
        return all;
    }
    let known: BTreeSet<&BytesPath> = all.iter().map(|change| &change.path).collect();
    let as_at_first = |taken: &AppliedPath| Change {
        path: taken.path.clone(),
        before: taken.before.clone(),
        after: taken.before.clone(),
    };
    let changed_back: Vec<Change> = record
        .taken
        .iter()
        .filter(|taken| !known.contains(&taken.path))
        .map(as_at_first)
        .collect();
    all.extend(changed_back);
    all.sort_by(|one, other| one.path.cmp(&other.path));
    for change in &mut all {
        if let Some(taken) = record.taken_at(&change.path) {
            taken.carry_on(project, change);
        }
    }
    all
}

impl AppliedPath {
    pub(super) fn path(&self) -> &BytesPath {
        &self.path
    }

    fn carry_on(&self, project: &Project, change: &mut Change) {
        let Ok(look) = PathEntry::at(project, change.path.as_bytes(), NameCheck::Plain) else {
            return;
        };
        let here = look.found.node();
        let is_undone = are_alike(here.as_ref(), self.before.as_ref())
            && !are_alike(here.as_ref(), self.here.as_ref());
        if is_undone {
            // It is pending as if it had never been applied.
        } else if are_alike(change.after.as_ref(), self.wanted.as_ref()) {
            change.before.clone_from(&here);
            change.after = here;
        } else {
            change.before.clone_from(&self.wanted);
        }
    }
}
