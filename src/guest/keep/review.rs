//! Reviews: changes of a session that are pending until the user accepts them.
//!
//! The session works on a copy, most often an overlay over the project. Snapshots hold the project
//! before and the copy after; the difference is pending under the session's name: it can be shown
//! and applied path by path, and pruning keeps its snapshots. What is in the project already is not
//! part of the review any more.

mod applied_paths;
mod interrupted;
mod open_review;
mod overlay_check;
mod partial;
mod project_copy;
mod record;
mod redirected_folders;
mod selection;
mod summary;
mod turn_apply;

use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use self::interrupted::InterruptedApply;
use self::interrupted::drop_repeated_left;
use self::interrupted::finish_interrupted;
use self::interrupted::leave_out_left;
use self::open_review::ChosenChanges;
use self::open_review::OpenReview;
use self::open_review::cache_of;
use self::open_review::count;
use self::open_review::forget;
use self::open_review::pin_of;
use self::open_review::rest_of;
pub(super) use self::overlay_check::seen;
pub(super) use self::project_copy::duplicate;
use self::record::ReviewRecord;
pub(super) use self::record::is_on_record;
pub(super) use self::record::place_of;
use super::Error;
use super::MOST_DIFF;
use super::Project;
use super::StateFolder;
use super::Store;
use super::apply;
use super::cache::Cache;
use super::compare::path_changes;
use super::diff::Diff;
use super::diff::unified;
use super::diff::unified_alone;
use super::forbidden::Origin;
use super::journal::Journal;
use super::journal::Purpose;
use super::pin;
use super::plan::Outcome;
use super::plan::Request;
use super::turn_log::first_words;
use super::undo;
use podbay_wire::BytesPath;
use podbay_wire::keep::EntryType;
use podbay_wire::keep::NamedList;
use podbay_wire::keep::PendingChanges;
use podbay_wire::keep::PendingGit;
use podbay_wire::keep::PendingReview;
use podbay_wire::keep::ReviewAnswer;
use podbay_wire::keep::ReviewApplied;
use podbay_wire::keep::ReviewBegan;
use podbay_wire::keep::ReviewDifference;
use podbay_wire::keep::ReviewOrder;
use podbay_wire::keep::TakenHunks;

/// What of a review is to be applied, and how.
#[derive(Clone, Copy, Debug)]
pub struct ApplySelection<'a> {
    pub only: &'a [BytesPath],
    pub merge: bool,
    pub with_auto_run: bool,
    pub auto_run: &'a [String],
    /// Files of which only some hunks are applied.
    pub hunks: &'a [TakenHunks],
}

/// The parts of a session's work that the keeper can see.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionView<'a> {
    /// The session's copy of the project.
    pub copy: Option<&'a Project>,
    /// Its upper layer, where it is an overlay.
    pub upper: Option<&'a Project>,
    /// The session's pending git work.
    pub git: Option<&'a PendingGit>,
    /// Paths of the project that git obeys because of settings outside of it.
    pub obeyed: &'a [BytesPath],
}

/// Executes an order; for one that [writes](ReviewOrder::writes), the project's folder must be
/// writable.
pub fn order(
    project: &Project,
    seen: SessionView<'_>,
    state: &StateFolder,
    order: &ReviewOrder,
) -> Result<ReviewAnswer, Error> {
    Ok(match order {
        ReviewOrder::Copy => {
            return Err(Error::NoCopy {
                name: "of no session".to_owned(),
            });
        }
        ReviewOrder::Begin {
            name,
            words,
            is_copied,
            place,
            by_turn,
        } => {
            redirected_folders::refuse(name, seen)?;
            let copy = seen.copy.filter(|_| *is_copied);
            let by_turn = if *by_turn {
                ByTurn::Yes { copy: seen.copy }
            } else {
                ByTurn::No
            };
            let began = begin_in(
                Store::open(state)?,
                project,
                copy,
                state,
                (name, words),
                by_turn,
            )?;
            ReviewRecord::note_place(state, name, place)?;
            ReviewAnswer::Began(began)
        }
        ReviewOrder::End { name, auto_run } => {
            ReviewAnswer::Ended(end(project, seen, state, name, auto_run)?)
        }
        ReviewOrder::Turn { name, turn } => ReviewAnswer::Turn(Box::new(turn_apply::apply_turn(
            project, seen, state, name, turn,
        )?)),
        ReviewOrder::List => ReviewAnswer::Reviews {
            reviews: list(project, state)?.into_iter().collect(),
        },
        ReviewOrder::Diff {
            name,
            only,
            auto_run,
        } => ReviewAnswer::Difference(difference(project, seen, state, name, only, auto_run)?),
        ReviewOrder::Apply {
            name,
            only,
            merge,
            with_auto_run,
            auto_run,
            hunks,
        } => {
            let wanted = ApplySelection {
                only,
                merge: *merge,
                with_auto_run: *with_auto_run,
                auto_run,
                hunks,
            };
            ReviewAnswer::Applied(Box::new(apply(project, seen, state, name, wanted)?))
        }
        ReviewOrder::GitTaken { name } => {
            git_imported(project, state, name)?;
            ReviewAnswer::GitTaken
        }
        ReviewOrder::Discard { name, .. } => {
            discard(state, name)?;
            ReviewAnswer::Discarded
        }
    })
}

/// Takes a snapshot of the project, or of its `copy` where that is a complete one. A pending review
/// is resumed.
pub fn begin(
    project: &Project,
    copy: Option<&Project>,
    state: &StateFolder,
    name: &str,
    words: &str,
) -> Result<ReviewBegan, Error> {
    begin_in(
        Store::open(state)?,
        project,
        copy,
        state,
        (name, words),
        ByTurn::No,
    )
}

/// Whether each turn is applied at its end.
#[derive(Clone, Copy, Debug)]
enum ByTurn<'a> {
    No,
    Yes { copy: Option<&'a Project> },
}

fn begin_in(
    store: Store,
    project: &Project,
    copy: Option<&Project>,
    state: &StateFolder,
    (name, words): (&str, &str),
    by_turn: ByTurn<'_>,
) -> Result<ReviewBegan, Error> {
    let known = ReviewRecord::load(state, name)?;
    let cache = cache_of(name);
    let undo::SnapshotPair {
        mut store,
        now,
        copy,
    } = undo::capture_both(
        project,
        state,
        store,
        copy.filter(|_| known.is_none()).map(|copy| (copy, &*cache)),
    )?;
    if let Some(mut record) = known {
        let mut hidden_changes = NamedList::default();
        if let ByTurn::Yes { copy: Some(copy) } = by_turn
            && record.by_turn
        {
            hidden_changes =
                turn_apply::show_user_changes(copy, state, &mut store, &mut record, now.id)?
                    .into_iter()
                    .collect();
            pin::pin(state, &store, &pin_of(name), record.snapshots())?;
        }
        record.is_open = true;
        record.save(state)?;
        return Ok(ReviewBegan {
            goes_on: true,
            passed_over: NamedList::default(),
            hidden_changes,
        });
    }
    if copy.is_none() && matches!(by_turn, ByTurn::No) {
        // Unchanged files in an overlay have the metadata of those in the project.
        Cache::load(state, undo::CACHE)?.save(state, &cache)?;
    }
    let now = copy.unwrap_or(now);
    pin::pin(state, &store, &pin_of(name), [now.id])?;
    let at = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let (name, words) = (name.to_owned(), first_words(words));
    let (is_cut_short, not_of_it, taken, taken_from, git, place) = <_>::default();
    let (is_open, by_turn, waiting, restores) =
        (true, matches!(by_turn, ByTurn::Yes { .. }), None, false);
    let partly = Vec::new();
    ReviewRecord {
        name,
        words,
        at,
        base: now.id,
        after: None,
        is_open,
        by_turn,
        waiting,
        restores,
        is_cut_short,
        not_of_it,
        git,
        place,
        taken,
        taken_from,
        partly,
    }
    .save(state)?;
    Ok(ReviewBegan {
        goes_on: false,
        passed_over: now.passed_over,
        hidden_changes: NamedList::default(),
    })
}

/// Finds what the session changed. A review without changes is removed.
pub fn end(
    project: &Project,
    seen: SessionView<'_>,
    state: &StateFolder,
    name: &str,
    auto_run: &[String],
) -> Result<PendingChanges, Error> {
    end_in(Store::open(state)?, project, seen, state, name, auto_run)
}

fn end_in(
    store: Store,
    project: &Project,
    seen: SessionView<'_>,
    state: &StateFolder,
    name: &str,
    auto_run: &[String],
) -> Result<PendingChanges, Error> {
    let work = OpenReview::with(store, project, seen, state, name, true)?;
    let rest = work.rest()?;
    let git = work.record.git.clone();
    // In a session whose turns are applied one by one, what is in the project is not pending.
    if rest.is_empty() && git.is_empty() && (work.record.by_turn || work.all()?.is_empty()) {
        work.forget()?;
        return Ok(PendingChanges::default());
    }
    let difference = unified(&work.store, &rest, MOST_DIFF)?;
    let auto_run = work.auto_run(auto_run)?;
    Ok(PendingChanges {
        git,
        ..summary::pending(project, &rest, &difference, &auto_run)
    })
}

/// Lists the pending reviews, the newest first.
pub fn list(project: &Project, state: &StateFolder) -> Result<Vec<PendingReview>, Error> {
    let store = Store::open(state)?;
    let mut records = ReviewRecord::all(state)?;
    records.sort_by(|one, other| (other.at, &other.name).cmp(&(one.at, &one.name)));
    let told = |record: &ReviewRecord| {
        let rest = if record.is_open {
            None
        } else {
            rest_of(project, &store, record).ok()
        };
        record.told(rest.map(|rest| count(&rest)))
    };
    Ok(records.iter().map(told).collect())
}

/// Shows the pending changes.
pub fn difference(
    project: &Project,
    seen: SessionView<'_>,
    state: &StateFolder,
    name: &str,
    only: &[BytesPath],
    auto_run: &[String],
) -> Result<ReviewDifference, Error> {
    let work = OpenReview::open(project, seen, state, name, false)?;
    let mut rest = work.rest()?;
    selection::select(&mut rest, only)?;
    let n_files = path_changes(&rest)
        .iter()
        .filter(|change| change.entry != EntryType::Folder)
        .count();
    let is_alone = !only.is_empty() && n_files == 1;
    let difference = if is_alone {
        unified_alone(&work.store, &rest)?
    } else {
        unified(&work.store, &rest, MOST_DIFF)?
    };
    let pending = summary::pending(project, &rest, &difference, &work.auto_run(auto_run)?);
    let review = work.record.told(Some(count(&rest)));
    let Diff {
        text,
        n_left_out,
        n_cut,
        ..
    } = difference;
    Ok(ReviewDifference {
        review,
        pending,
        text,
        n_left_out,
        n_cut: if is_alone { 0 } else { n_cut },
    })
}

/// Applies changes to the project, as a turn that can be undone. An interrupted application is
/// finished first.
pub fn apply(
    project: &Project,
    seen: SessionView<'_>,
    state: &StateFolder,
    name: &str,
    wanted: ApplySelection<'_>,
) -> Result<ReviewApplied, Error> {
    apply_from(&|| Store::open(state), project, seen, state, name, wanted)
}

fn apply_from(
    store: &dyn Fn() -> Result<Store, Error>,
    project: &Project,
    seen: SessionView<'_>,
    state: &StateFolder,
    name: &str,
    wanted: ApplySelection<'_>,
) -> Result<ReviewApplied, Error> {
    let mut resumed = match finish_interrupted(project, seen, state, name)? {
        InterruptedApply::Stopped(applied) => {
            let work = OpenReview::with(store()?, project, seen, state, name, false)?;
            let n_left = count(&work.rest()?).max(1);
            let may_run = NamedList::default();
            return Ok(ReviewApplied {
                applied: *applied,
                resumed: None,
                may_run,
                n_left,
                git: work.record.git,
            });
        }
        InterruptedApply::Finished(resumed) => resumed.map(|applied| *applied),
    };
    // Refused before a turn is begun for it.
    {
        let mut work = OpenReview::with(store()?, project, seen, state, name, false)?;
        let mut chosen = work.chosen(wanted)?.changes;
        partial::take_hunks(&mut work.store, &mut chosen, wanted.hunks)?;
    }
    undo::begin_review(project, state, name)?;
    let mut work = OpenReview::with(store()?, project, seen, state, name, false)?;
    let ChosenChanges {
        changes: mut chosen,
        left,
        mut may_run,
    } = work.chosen(wanted)?;
    let from = work.record.base;
    let to = work.take_hunks(&mut chosen, wanted.hunks)?;
    let purpose = Purpose::Review {
        name: name.to_owned(),
    };
    let request = Request {
        from,
        to,
        only: Vec::new(),
        merge: wanted.merge,
        origin: Origin::Elsewhere,
        copy: seen.copy,
        purpose,
    };
    let found = Outcome {
        applied: left,
        left: Vec::new(),
    };
    let record = &mut work.record;
    let done = |store: &Store, journal: &Journal, _: &Outcome| {
        note_applied(record, project, state, store, journal)
    };
    let applied = apply::apply_wanted(
        project,
        state,
        &mut work.store,
        &request,
        chosen,
        found,
        done,
    )?;
    // A review whose apply was stopped is not finished, whatever was applied.
    let n_left = count(&work.rest()?).max(u64::from(applied.stopped.is_some()));
    let git = work.record.git.clone();
    if n_left == 0 && git.is_empty() {
        work.forget()?;
    } else {
        drop(work);
    }
    // What was applied stays; a turn without an end is ended by the next one.
    let _ = undo::end(project, state);
    if let Some(resumed) = &mut resumed {
        drop_repeated_left(resumed, &applied);
    }
    leave_out_left(&mut may_run, &applied);
    Ok(ReviewApplied {
        applied,
        resumed,
        may_run,
        n_left,
        git,
    })
}

/// Records what was applied of a review before the journal is removed: a resumed session continues
/// from there.
fn note_applied(
    record: &mut ReviewRecord,
    project: &Project,
    state: &StateFolder,
    store: &Store,
    journal: &Journal,
) -> Result<(), Error> {
    applied_paths::take(record, project, store, journal)?;
    record.save(state)
}

/// Does the same after an interruption.
pub(super) fn resumed(
    project: &Project,
    state: &StateFolder,
    store: &Store,
    name: &str,
    journal: &Journal,
) -> Result<(), Error> {
    let Some(mut record) = ReviewRecord::load(state, name)? else {
        return Ok(());
    };
    note_applied(&mut record, project, state, store, journal)
}

/// Records that none of the session's git work is pending any more. With no pending path left the
/// review is finished.
fn git_imported(project: &Project, state: &StateFolder, name: &str) -> Result<(), Error> {
    let none = PendingGit::default();
    if let Some(record) =
        ReviewRecord::load(state, name)?.filter(|record| record.by_turn && record.is_open)
    {
        // Its session continues.
        return ReviewRecord {
            git: none,
            ..record
        }
        .save(state);
    }
    let work = OpenReview::open(
        project,
        SessionView {
            git: Some(&none),
            ..SessionView::default()
        },
        state,
        name,
        false,
    )?;
    if work.rest()?.is_empty() {
        work.forget()
    } else {
        work.record.save(state)
    }
}

/// Removes a review.
pub fn discard(state: &StateFolder, name: &str) -> Result<(), Error> {
    let store = Store::open(state)?;
    if apply::is_unfinished(state)? {
        return Err(Error::Unfinished);
    }
    forget(state, &store, name)
}

#[cfg(test)]
mod tests;
