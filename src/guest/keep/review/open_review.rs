//! An opened review: its record with the locked store.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::super::Error;
use super::super::Project;
use super::super::StateFolder;
use super::super::Store;
use super::super::auto_run::AutoRun;
use super::super::auto_run::AutoRunSources;
use super::super::auto_run::ChangedPath;
use super::super::auto_run::WholeFolders;
use super::super::compare::Change;
use super::super::compare::compare_content;
use super::super::journal::Journal;
use super::super::node::are_alike;
use super::super::path_entry::NameCheck;
use super::super::path_entry::PathEntry;
use super::super::pin;
use super::super::plan;
use super::super::undo;
use super::ApplySelection;
use super::SessionView;
use super::applied_paths;
use super::interrupted::is_apply_of;
use super::record::ReviewRecord;
use super::redirected_folders;
use super::selection;
use super::summary;
use podbay_wire::BytesPath;
use podbay_wire::keep::ApplyOutcome;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::NamedList;

/// The changes of a review to be applied.
pub(super) struct ChosenChanges {
    pub(super) changes: Vec<Change>,
    /// The outcome of the others.
    pub(super) left: ApplyOutcome,
    /// Those that may run on the user's machine later.
    pub(super) may_run: NamedList<MayRun>,
}

/// An opened review; the store in it is locked.
pub(super) struct OpenReview<'a> {
    pub(super) project: &'a Project,
    pub(super) state: &'a StateFolder,
    pub(super) store: Store,
    pub(super) record: ReviewRecord,
    pub(super) obeyed: &'a [BytesPath],
}

impl<'a> OpenReview<'a> {
    /// Opens a review, and examines the copy if its session was interrupted; `anew`: always.
    pub(super) fn open(
        project: &'a Project,
        seen: SessionView<'a>,
        state: &'a StateFolder,
        name: &str,
        anew: bool,
    ) -> Result<Self, Error> {
        Self::with(Store::open(state)?, project, seen, state, name, anew)
    }

    pub(super) fn with(
        store: Store,
        project: &'a Project,
        seen: SessionView<'a>,
        state: &'a StateFolder,
        name: &str,
        anew: bool,
    ) -> Result<Self, Error> {
        let Some(mut record) = ReviewRecord::load(state, name)? else {
            return Err(Error::NoReview {
                name: name.to_owned(),
            });
        };
        let obeyed = seen.obeyed;
        if let Some(git) = seen.git {
            record.git.clone_from(git);
        }
        // There may be room now for what was left out.
        let may_be_whole = record.is_cut_short && seen.copy.is_some();
        if !record.is_open && !anew && !may_be_whole {
            return Ok(Self {
                project,
                state,
                store,
                record,
                obeyed,
            });
        }
        let no_copy = || Error::NoCopy {
            name: name.to_owned(),
        };
        let cache = cache_of(name);
        let copy = seen.copy.ok_or_else(no_copy)?;
        redirected_folders::refuse(name, seen)?;
        let undo::SnapshotPair { store, now, copy } =
            undo::capture_both(project, state, store, Some((copy, &cache)))?;
        let after = copy.ok_or_else(no_copy)?;
        // What another program changed in the project meanwhile shows through in the copy.
        let since: BTreeMap<BytesPath, Change> = compare_content(&store, &record.base, &now.id)?
            .into_iter()
            .map(|change| (change.path.clone(), change))
            .collect();
        let shows_through = |change: &Change| {
            let same = since
                .get(&change.path)
                .filter(|since| are_alike(since.after.as_ref(), change.after.as_ref()));
            same.map(|change| change.path.clone())
        };
        let theirs = compare_content(&store, &record.base, &after.id)?;
        // Applied changes are the session's, though they are in the project; also after an
        // interrupted apply.
        let applying: BTreeSet<BytesPath> =
            match Journal::load(state)?.filter(|journal| is_apply_of(journal, name)) {
                Some(journal) => journal
                    .changes
                    .into_iter()
                    .map(|change| change.path)
                    .collect(),
                None => BTreeSet::new(),
            };
        let is_taken =
            |path: &BytesPath| record.taken_at(path).is_some() || applying.contains(path);
        let theirs = theirs.iter().filter(|change| !is_taken(&change.path));
        record.not_of_it = theirs.filter_map(shows_through).collect();
        record.after = Some(after.id);
        record.is_open = false;
        record.is_cut_short = after.is_cut_short;
        pin::pin(state, &store, &pin_of(name), record.snapshots())?;
        record.save(state)?;
        Ok(Self {
            project,
            state,
            store,
            record,
            obeyed,
        })
    }

    /// Returns what the session changed.
    pub(super) fn all(&self) -> Result<Vec<Change>, Error> {
        all_of(self.project, &self.store, &self.record)
    }

    /// Returns what of that is not in the project.
    pub(super) fn rest(&self) -> Result<Vec<Change>, Error> {
        rest_of(self.project, &self.store, &self.record)
    }

    /// Selects the wanted changes, and reports those that are not applied without being asked for.
    pub(super) fn chosen(&self, wanted: ApplySelection<'_>) -> Result<ChosenChanges, Error> {
        let mut changes = self.all()?;
        selection::select(&mut changes, wanted.only)?;
        let mut left = ApplyOutcome::default();
        let all = changes.clone();
        let auto_run = self.auto_run(wanted.auto_run)?;
        let wholes = WholeFolders::of(&auto_run, all.iter().map(ChangedPath::from));
        selection::leave_broken_wholes(self.project, &mut changes, &wholes, &mut left);
        if !wanted.with_auto_run {
            selection::leave_auto_run(self.project, &mut changes, &auto_run, &mut left);
        }
        selection::leave_old_names(self.project, &all, &mut changes, &mut left);
        let new: Vec<&Change> = changes
            .iter()
            .filter(|change| !is_in(self.project, change))
            .collect();
        let may_run = auto_run.named(new.into_iter().map(ChangedPath::from));
        Ok(ChosenChanges {
            changes,
            left,
            may_run,
        })
    }

    /// Returns the rules for files that may run on the user's machine later; `patterns` are the
    /// user's.
    pub(super) fn auto_run(&self, patterns: &[String]) -> Result<AutoRun, Error> {
        let known = AutoRunSources {
            patterns,
            place: self.record.place.as_bytes(),
            obeyed: self.obeyed,
        };
        AutoRun::in_project(self.project, known)
    }

    pub(super) fn forget(self) -> Result<(), Error> {
        forget(self.state, &self.store, &self.record.name)
    }
}

pub(super) fn all_of(
    project: &Project,
    store: &Store,
    record: &ReviewRecord,
) -> Result<Vec<Change>, Error> {
    let all = compare_content(store, &record.base, &record.after())?;
    // An applied path is a change of the session, even if it was recorded as another program's.
    let mut all = applied_paths::continue_from_applied(record, project, all);
    all.retain(|change| record.not_of_it.binary_search(&change.path).is_err());
    Ok(all)
}

pub(super) fn rest_of(
    project: &Project,
    store: &Store,
    record: &ReviewRecord,
) -> Result<Vec<Change>, Error> {
    let mut rest = all_of(project, store, record)?;
    rest.retain(|change| !is_in(project, change));
    Ok(rest)
}

/// Whether a change is in the project. An unreadable path is not.
pub(super) fn is_in(project: &Project, change: &Change) -> bool {
    let here = PathEntry::at(project, change.path.as_bytes(), NameCheck::Plain);
    here.is_ok_and(|look| plan::is_done(change, look.found.node().as_ref()))
}

/// Counts the pending changes for the report.
pub(super) fn count(rest: &[Change]) -> u64 {
    summary::counted(rest).len() as u64
}

/// The record is removed last: without it the rest would never be removed.
pub(super) fn forget(state: &StateFolder, store: &Store, name: &str) -> Result<(), Error> {
    pin::unpin(state, store, &pin_of(name))?;
    state.remove(&cache_of(name))?;
    state.remove(&cache_of_layer(name))?;
    ReviewRecord::remove(state, name)
}

pub(super) fn pin_of(name: &str) -> String {
    format!("review-{name}")
}

pub(super) fn cache_of_layer(name: &str) -> String {
    format!("cache-layer-{name}")
}

pub(super) fn cache_of(name: &str) -> String {
    format!("cache-review-{name}")
}
