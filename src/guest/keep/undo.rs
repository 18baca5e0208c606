//! Undo and redo of turns.
//!
//! A turn is the difference between two snapshots: one before its first change, one after its last.
//! Several turns are undone one after the other, so that changes of the user between two of them
//! are recognized as theirs. Changes of the user while a turn runs cannot be told from the turn's.
//!
//! Turns of all sessions of a project are in one log, in order. A new turn with changes ends what
//! could be redone.

mod made_repositories;
mod steps;
mod work;

use self::steps::Direction;
use self::work::UndoWork;
use super::Error;
use super::MOST_DIFF;
use super::ObjectId;
use super::Project;
use super::Snapshot;
use super::StateFolder;
use super::Store;
use super::apply;
use super::auto_run::AutoRun;
use super::auto_run::AutoRunSources;
use super::auto_run::ChangedPath;
use super::compare::compare;
use super::compare::path_changes;
use super::diff::unified;
use super::turn_log::Turn;
use super::turn_log::TurnLog;
use podbay_wire::BytesPath;
use podbay_wire::keep::ApplyOutcome;
use podbay_wire::keep::LineCount;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::NamedList;
use podbay_wire::keep::PathChange;
use podbay_wire::keep::ReviewAnswer;
use podbay_wire::keep::TurnAnswer;
use podbay_wire::keep::TurnBegan;
use podbay_wire::keep::TurnDifference;
use podbay_wire::keep::TurnEnded;
use podbay_wire::keep::TurnList;
use podbay_wire::keep::TurnOrder;
use podbay_wire::keep::UndoAnswer;
use podbay_wire::keep::UndoOrder;
use podbay_wire::keep::UndoOutcome;

/// Turns that are kept at least; with a quarter more, the oldest are removed.
pub const MOST_TURNS: usize = 100;

/// Name of the cache of the project's files.
pub(super) const CACHE: &str = "cache";

/// The interrupted application that was finished.
#[derive(Debug)]
pub enum Resumed {
    Nothing,
    Turns(UndoOutcome),
    /// A review of this name was applied.
    Review {
        name: String,
        applied: Box<ApplyOutcome>,
    },
}

/// Begins a turn. An unended one is ended here, with all changes until now; its files that may run
/// are named as by [`end`].
pub fn begin(
    project: &Project,
    state: &StateFolder,
    session: &str,
    n_turn: u64,
    words: &str,
) -> Result<TurnBegan, Error> {
    let (mut began, cut_off) = UndoWork::open(project, state)?.begin(session, n_turn, words)?;
    began.may_run = may_run_in(&cut_off, &AutoRun::by_name());
    Ok(began)
}

/// Begins the turn of applying a review.
pub(super) fn begin_review(
    project: &Project,
    state: &StateFolder,
    review: &str,
) -> Result<(), Error> {
    begin(project, state, review, 0, &review_description(review)).map(drop)
}

/// Begins the turn in which a session's changes are applied to the project as it was `before`.
pub(super) fn begin_turn_apply(
    project: &Project,
    state: &StateFolder,
    store: Store,
    (session, n_turn, words): (&str, u64, &str),
    before: ObjectId,
) -> Result<Store, Error> {
    let mut work = UndoWork::with(project, state, store)?;
    work.end_interrupted()?;
    if work.log.open().is_some() {
        let snapshot = work.look()?;
        work.close(&snapshot, true)?;
    }
    if work.log.turns.len() > work.most_turns + work.most_turns / 4 {
        work.forget(work.most_turns, [before])?;
    }
    work.add(session, n_turn, words, before)?;
    Ok(work.store)
}

/// Ends it: its changes are the difference between `before` and `after`.
pub(super) fn end_turn_apply(
    project: &Project,
    state: &StateFolder,
    store: Store,
    after: ObjectId,
) -> Result<Store, Error> {
    let mut work = UndoWork::with(project, state, store)?;
    work.close_at(after, false)?;
    Ok(work.store)
}

/// Answers an apply of a review that was applied before, and of which nothing else is known any
/// more.
pub(super) fn already_applied(state: &StateFolder, review: &str) -> Result<ReviewAnswer, Error> {
    let log = TurnLog::load(state)?;
    let is_taken_back = log
        .turns
        .iter()
        .any(|turn| turn.is_back && turn.applies(review));
    let has_redo = log.forward().any(|turn| turn.applies(review));
    Ok(ReviewAnswer::InAlready {
        is_taken_back,
        has_redo,
    })
}

fn review_description(review: &str) -> String {
    format!("apply of the review {review}")
}

/// Ends the open turn. Files that may run are judged by their names alone.
pub fn end(project: &Project, state: &StateFolder) -> Result<TurnEnded, Error> {
    end_with(project, state, &AutoRun::by_name())
}

fn end_with(
    project: &Project,
    state: &StateFolder,
    auto_run: &AutoRun,
) -> Result<TurnEnded, Error> {
    let mut work = UndoWork::open(project, state)?;
    let Some(turn) = work.log.open().map(|turn| turn.turn) else {
        return Err(Error::NoTurn);
    };
    let snapshot = work.look()?;
    let changes = work.close(&snapshot, false)?;
    // The turn is over, also where its lines cannot be counted.
    let difference = unified(&work.store, &changes, MOST_DIFF).unwrap_or_default();
    let mut changes = path_changes(&changes);
    nearest_first(&mut changes);
    let mut ended = TurnEnded {
        turn,
        may_run: may_run_in(&changes, auto_run),
        is_may_run_cut: auto_run.is_cut(),
        passed_over: snapshot.passed_over,
        ..TurnEnded::default()
    };
    for change in changes {
        let counted = difference.counted(change);
        let LineCount { n_added, n_removed } = counted.lines.unwrap_or_default();
        ended.n_added += n_added;
        ended.n_removed += n_removed;
        ended.changes.add(counted);
    }
    Ok(ended)
}

/// Output of builds is deep, and the files that a user looks for are not.
fn nearest_first(changes: &mut [PathChange]) {
    changes.sort_by_key(|change| memchr::memchr_iter(b'/', change.path.as_bytes()).count());
}

fn may_run_in(changes: &[PathChange], auto_run: &AutoRun) -> NamedList<MayRun> {
    auto_run.named(changes.iter().map(ChangedPath::from))
}

/// Returns the rules for a turn's files that may run: by built-in names and by what leads programs
/// there now.
fn auto_run_in(
    project: &Project,
    place: &BytesPath,
    patterns: &[String],
) -> Result<AutoRun, Error> {
    AutoRun::in_project(
        project,
        AutoRunSources {
            patterns,
            place: place.as_bytes(),
            ..AutoRunSources::default()
        },
    )
}

/// Lists the turns that changed something.
pub fn list(state: &StateFolder) -> Result<TurnList, Error> {
    let store = Store::open(state)?;
    let log = TurnLog::load(state)?;
    let turns = log
        .turns
        .iter()
        .rev()
        .filter(|turn| turn.end.is_none() || turn.has_changed())
        .map(Turn::told)
        .collect();
    Ok(TurnList {
        turns,
        n_bytes: store.n_bytes(),
        most_bytes: store.most_bytes(),
        is_unfinished: apply::is_unfinished(state)?,
    })
}

/// Returns the diffs of the last ended turns that are not undone, the newest first.
pub fn difference(state: &StateFolder, n: u32) -> Result<Vec<TurnDifference>, Error> {
    let store = Store::open(state)?;
    let log = TurnLog::load(state)?;
    let mut room = MOST_DIFF;
    let mut differences = Vec::new();
    for turn in log.back().take(n as usize) {
        let Some(end) = turn.end else { continue };
        let changes = compare(&store, &turn.before, &end.after)?;
        let difference = unified(&store, &changes, room)?;
        room = room.saturating_sub(difference.text.len());
        let changes = path_changes(&changes).into_iter().collect();
        differences.push(TurnDifference {
            turn: turn.told(),
            changes,
            text: difference.text,
            n_left_out: difference.n_left_out,
        });
    }
    Ok(differences)
}

/// Undoes the last `n` turns that changed something.
pub fn back(
    project: &Project,
    state: &StateFolder,
    n: u32,
    how: UndoOptions,
) -> Result<UndoOutcome, Error> {
    UndoWork::open(project, state)?.go(Direction::Back, n, how)
}

/// Redoes the `n` turns that were undone last.
pub fn forward(
    project: &Project,
    state: &StateFolder,
    n: u32,
    how: UndoOptions,
) -> Result<UndoOutcome, Error> {
    UndoWork::open(project, state)?.go(Direction::Forward, n, how)
}

/// Retries the left paths of all turns.
pub fn retry(
    project: &Project,
    state: &StateFolder,
    how: UndoOptions,
) -> Result<UndoOutcome, Error> {
    UndoWork::open(project, state)?.retry(how)
}

/// Gives up an interrupted application, if there is one.
pub fn abandon(project: &Project, state: &StateFolder) -> Result<bool, Error> {
    apply::abandon(project, state, |purpose, paths| {
        TurnLog::load(state)?.give_up(purpose, paths)
    })
}

/// Executes a session's order about its turns.
pub fn turn(
    project: &Project,
    state: &StateFolder,
    order: &TurnOrder,
) -> Result<TurnAnswer, Error> {
    match order {
        TurnOrder::Begin {
            session,
            n_turn,
            words,
            place,
            auto_run,
        } => {
            let (mut began, cut_off) =
                UndoWork::open(project, state)?.begin(session, *n_turn, words)?;
            // Most turns were ended, and searching the project takes a moment.
            if !cut_off.is_empty() {
                began.may_run = may_run_in(&cut_off, &auto_run_in(project, place, auto_run)?);
            }
            Ok(TurnAnswer::Began(began))
        }
        TurnOrder::End { place, auto_run } => {
            let auto_run = auto_run_in(project, place, auto_run)?;
            end_with(project, state, &auto_run).map(TurnAnswer::Ended)
        }
    }
}

/// Executes a user's order. For one that [writes](UndoOrder::writes) the project's folder must be
/// writable.
pub fn order(
    project: &Project,
    state: &StateFolder,
    order: &UndoOrder,
) -> Result<UndoAnswer, Error> {
    let undone = |undone: Result<UndoOutcome, Error>| match undone {
        Err(Error::Unfinished) => Ok(UndoAnswer::Unfinished),
        undone => undone.map(UndoAnswer::Undone),
    };
    Ok(match order {
        UndoOrder::List => UndoAnswer::Turns(list(state)?),
        UndoOrder::Diff { n } => UndoAnswer::Differences {
            turns: difference(state, *n)?,
        },
        UndoOrder::Back {
            n,
            merge,
            is_beside,
        } => undone(back(
            project,
            state,
            *n,
            UndoOptions {
                merge: *merge,
                is_beside: *is_beside,
            },
        ))?,
        UndoOrder::Forward {
            n,
            merge,
            is_beside,
        } => undone(forward(
            project,
            state,
            *n,
            UndoOptions {
                merge: *merge,
                is_beside: *is_beside,
            },
        ))?,
        UndoOrder::Retry { merge, is_beside } => undone(retry(
            project,
            state,
            UndoOptions {
                merge: *merge,
                is_beside: *is_beside,
            },
        ))?,
        UndoOrder::Resume => match resume(project, state, None)? {
            Resumed::Nothing => UndoAnswer::Nothing,
            Resumed::Turns(undone) => UndoAnswer::Undone(undone),
            Resumed::Review { name, applied } => UndoAnswer::Applied {
                name,
                applied: *applied,
            },
        },
        UndoOrder::Abandon if abandon(project, state)? => UndoAnswer::Abandoned,
        UndoOrder::Abandon => UndoAnswer::Nothing,
    })
}

/// The snapshots of a review: of the project, and of the session's copy, if that is captured.
pub(super) struct SnapshotPair {
    pub(super) store: Store,
    pub(super) now: Snapshot,
    pub(super) copy: Option<Snapshot>,
}

/// Captures the project and, with the cache of that name, its copy. If there is no room, old turns
/// are removed: what a review lacks could never be restored.
pub(super) fn capture_both(
    project: &Project,
    state: &StateFolder,
    store: Store,
    copy: Option<(&Project, &str)>,
) -> Result<SnapshotPair, Error> {
    let mut work = UndoWork::with(project, state, store)?;
    let now = work.take(project, CACHE, None)?;
    let copy = copy
        .map(|(copy, cache)| work.take(copy, cache, Some(now.id)))
        .transpose()?;
    Ok(SnapshotPair {
        store: work.store,
        now,
        copy,
    })
}

/// Finishes any interrupted application, with the turns that were to follow. `copy`: the session's
/// copy of that review.
pub fn resume(
    project: &Project,
    state: &StateFolder,
    copy: Option<&Project>,
) -> Result<Resumed, Error> {
    UndoWork::open(project, state)?.resume(copy)
}

/// Options for paths that cannot simply be restored.
#[derive(Clone, Copy, Debug, Default)]
pub struct UndoOptions {
    /// Merges lines of both sides.
    pub merge: bool,
    /// A sandbox of the project runs: what is masked in it must not appear in the project's folders
    /// under another name.
    pub is_beside: bool,
}

#[cfg(test)]
mod interrupted_tests;
#[cfg(test)]
mod retry_tests;
#[cfg(test)]
mod tests;
