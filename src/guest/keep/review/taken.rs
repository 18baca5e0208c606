use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde::Serialize;

use super::record::Record;
use crate::keep::Error;
use crate::keep::Node;
use crate::keep::Project;
use crate::keep::Store;
use crate::keep::compare::Change;
use crate::keep::compare::compare_content;
use crate::keep::journal::Journal;
use crate::keep::look::Look;
use crate::keep::look::Name;
use crate::keep::node::are_alike;
use podbay_wire::BytesPath;

/// A path that was brought in while the rest of its review still waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Taken {
    path: BytesPath,
    /// What was there when the session began.
    before: Option<Node>,
    /// What the session had made of it when it was brought in.
    wanted: Option<Node>,
    /// What stood there then: the same, or lines of both sides put together.
    here: Option<Node>,
}

/// Notes what an application has brought in.
pub(super) fn take(
    record: &mut Record,
    project: &Project,
    store: &Store,
    journal: &Journal,
) -> Result<(), Error> {
    let all = compare_content(store, &record.base, &record.after())?;
    let all: BTreeMap<&BytesPath, &Change> =
        all.iter().map(|change| (&change.path, change)).collect();
    let mut taken: BTreeMap<BytesPath, Taken> = record
        .taken
        .drain(..)
        .map(|taken| (taken.path.clone(), taken))
        .collect();
    for brought in &journal.changes {
        let here = Look::at(project, brought.path.as_bytes(), Name::Plain);
        let Some(here) = here
            .ok()
            .filter(|look| journal.is_after(brought, &look.found))
        else {
            continue;
        };
        let here = if journal.unheld.contains_key(&brought.path) {
            here.found.node()
        } else {
            brought.after.clone()
        };
        let (before, wanted) = match (all.get(&brought.path), taken.get(&brought.path)) {
            (Some(change), _) => (change.before.clone(), change.after.clone()),
            // The session has made it what it was at first.
            (None, Some(taken)) => (taken.before.clone(), taken.before.clone()),
            (None, None) => continue,
        };
        let path = brought.path.clone();
        taken.insert(
            path.clone(),
            Taken {
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
    Look::at(project, change.path.as_bytes(), Name::Plain)
        .is_ok_and(|look| journal.is_after(change, &look.found))
}

/// Has the changes of paths that were brought in begin where those left off. Where nothing happened
/// to one since, it is no change: what it is changed from and to is what stands there.
pub(super) fn go_on(record: &Record, project: &Project, mut all: Vec<Change>) -> Vec<Change> {
    if record.taken.is_empty() {
        return all;
    }
    let known: BTreeSet<&BytesPath> = all.iter().map(|change| &change.path).collect();
    let as_at_first = |taken: &Taken| Change {
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

impl Taken {
    pub(super) fn path(&self) -> &BytesPath {
        &self.path
    }

    fn carry_on(&self, project: &Project, change: &mut Change) {
        let Ok(look) = Look::at(project, change.path.as_bytes(), Name::Plain) else {
            return;
        };
        let here = look.found.node();
        let is_undone = are_alike(here.as_ref(), self.before.as_ref())
            && !are_alike(here.as_ref(), self.here.as_ref());
        if is_undone {
            // It waits as if it had never been in.
        } else if are_alike(change.after.as_ref(), self.wanted.as_ref()) {
            change.before.clone_from(&here);
            change.after = here;
        } else {
            change.before.clone_from(&self.wanted);
        }
    }
}
