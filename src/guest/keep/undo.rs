//! Turns that can be taken back.
//!
//! A turn is what lies between two snapshots: one before the first change of a turn, one after its
//! last. Several turns are taken back one after the other, so that what the person changed between
//! two of them is found to be theirs. What they change while a turn runs cannot be told from what
//! the turn does.
//!
//! Turns of all sessions of a project are in one log, as they happened. A new turn that changes
//! something ends what could be brought back.

mod made;
mod step;

use std::collections::BTreeSet;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use self::step::Way;
use super::Error;
use super::Folder;
use super::MOST_DIFFERENCE;
use super::ObjectId;
use super::Project;
use super::Snapshot;
use super::Store;
use super::apply;
use super::auto_run::AutoRun;
use super::auto_run::Changed;
use super::auto_run::Known;
use super::compare::compare;
use super::compare::told;
use super::difference::unified;
use super::journal::Journal;
use super::journal::Purpose;
use super::pin;
use super::snapshot;
use super::turn::Record;
use super::turn::Turn;
use super::turn::TurnLog;
use super::turn::shortened;
use podbay_wire::BytesPath;
use podbay_wire::keep::Applied;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::Named;
use podbay_wire::keep::PathChange;
use podbay_wire::keep::ReviewAnswer;
use podbay_wire::keep::TurnAnswer;
use podbay_wire::keep::TurnBegan;
use podbay_wire::keep::TurnDifference;
use podbay_wire::keep::TurnEnded;
use podbay_wire::keep::TurnOrder;
use podbay_wire::keep::Turns;
use podbay_wire::keep::UndoAnswer;
use podbay_wire::keep::UndoOrder;
use podbay_wire::keep::Undone;

/// Turns that are kept at least; a quarter more, and the oldest are forgotten.
pub const MOST_TURNS: usize = 100;

/// What the files of the project looked like when they were last read.
pub(super) const CACHE: &str = "cache";

/// What was finished that had been interrupted.
#[derive(Debug)]
pub enum Resumed {
    Nothing,
    Turns(Undone),
    /// Changes of that name were brought in.
    Review {
        name: String,
        applied: Box<Applied>,
    },
}

/// Begins a turn. One that was never ended ends here, with all that was changed until now; what of
/// that may run is named as by [`end`].
pub fn begin(
    project: &Project,
    state: &Folder,
    session: &str,
    n_turn: u64,
    words: &str,
) -> Result<TurnBegan, Error> {
    let (mut began, cut_off) = Work::open(project, state)?.begin(session, n_turn, words)?;
    began.may_run = may_run_in(&cut_off, &AutoRun::by_name());
    Ok(began)
}

/// Begins the turn in which a review is brought in.
pub(super) fn begin_review(project: &Project, state: &Folder, review: &str) -> Result<(), Error> {
    begin(project, state, review, 0, &words_of_review(review)).map(drop)
}

/// Begins the turn in which what a session changed comes into the project as it was `before`.
pub(super) fn begin_held(
    project: &Project,
    state: &Folder,
    store: Store,
    (session, n_turn, words): (&str, u64, &str),
    before: ObjectId,
) -> Result<Store, Error> {
    let mut work = Work::with(project, state, store)?;
    work.begin_over()?;
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

/// Ends it: what came is what lies between `before` and `after`.
pub(super) fn end_held(
    project: &Project,
    state: &Folder,
    store: Store,
    after: ObjectId,
) -> Result<Store, Error> {
    let mut work = Work::with(project, state, store)?;
    work.close_at(after, false)?;
    Ok(work.store)
}

/// Answers to an apply of a review that was brought in before, and of which nothing else is known
/// any more.
pub(super) fn in_already(state: &Folder, review: &str) -> Result<ReviewAnswer, Error> {
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

fn words_of_review(review: &str) -> String {
    format!("apply of the review {review}")
}

/// Ends the turn that was begun. Of what may run only that is named which its name tells.
pub fn end(project: &Project, state: &Folder) -> Result<TurnEnded, Error> {
    end_with(project, state, &AutoRun::by_name())
}

fn end_with(project: &Project, state: &Folder, auto_run: &AutoRun) -> Result<TurnEnded, Error> {
    let mut work = Work::open(project, state)?;
    let Some(turn) = work.log.open().map(|turn| turn.turn) else {
        return Err(Error::NoTurn);
    };
    let snapshot = work.look()?;
    let mut changes = work.close(&snapshot, false)?;
    nearest_first(&mut changes);
    let (may_run, is_may_run_cut) = (may_run_in(&changes, auto_run), auto_run.is_cut());
    Ok(TurnEnded {
        turn,
        changes: changes.into_iter().collect(),
        may_run,
        is_may_run_cut,
        passed_over: snapshot.passed_over,
    })
}

/// What a build leaves lies deep, and what a person looks for does not.
fn nearest_first(changes: &mut [PathChange]) {
    changes.sort_by_key(|change| memchr::memchr_iter(b'/', change.path.as_bytes()).count());
}

fn may_run_in(changes: &[PathChange], auto_run: &AutoRun) -> Named<MayRun> {
    auto_run.named(changes.iter().map(Changed::from))
}

/// Returns what knows why what a turn changed may run, by the names that are known and by what
/// leads programs there now.
fn auto_run_in(
    project: &Project,
    place: &BytesPath,
    patterns: &[String],
) -> Result<AutoRun, Error> {
    AutoRun::in_project(
        project,
        Known {
            patterns,
            place: place.as_bytes(),
            ..Known::default()
        },
    )
}

/// Lists the turns that changed something.
pub fn list(state: &Folder) -> Result<Turns, Error> {
    let store = Store::open(state)?;
    let log = TurnLog::load(state)?;
    let turns = log
        .turns
        .iter()
        .rev()
        .filter(|turn| turn.end.is_none() || turn.has_changed())
        .map(Turn::told)
        .collect();
    Ok(Turns {
        turns,
        n_bytes: store.n_bytes(),
        most_bytes: store.most_bytes(),
        is_unfinished: apply::is_unfinished(state)?,
    })
}

/// Shows what the last turns changed that are over and not taken back, the newest first.
pub fn difference(state: &Folder, n: u32) -> Result<Vec<TurnDifference>, Error> {
    let store = Store::open(state)?;
    let log = TurnLog::load(state)?;
    let mut room = MOST_DIFFERENCE;
    let mut differences = Vec::new();
    for turn in log.back().take(n as usize) {
        let Some(end) = turn.end else { continue };
        let changes = compare(&store, &turn.before, &end.after)?;
        let difference = unified(&store, &changes, room)?;
        room = room.saturating_sub(difference.text.len());
        let changes = told(&changes).into_iter().collect();
        differences.push(TurnDifference {
            turn: turn.told(),
            changes,
            text: difference.text,
            n_left_out: difference.n_left_out,
        });
    }
    Ok(differences)
}

/// Takes back the last `n` turns that changed something.
pub fn back(project: &Project, state: &Folder, n: u32, how: How) -> Result<Undone, Error> {
    Work::open(project, state)?.go(Way::Back, n, how)
}

/// Brings back the `n` turns that were taken back last.
pub fn forward(project: &Project, state: &Folder, n: u32, how: How) -> Result<Undone, Error> {
    Work::open(project, state)?.go(Way::Forward, n, how)
}

/// Tries again what was left, of all turns of which something was.
pub fn retry(project: &Project, state: &Folder, how: How) -> Result<Undone, Error> {
    Work::open(project, state)?.retry(how)
}

/// Gives up what was interrupted, if anything was.
pub fn abandon(project: &Project, state: &Folder) -> Result<bool, Error> {
    apply::abandon(project, state, |purpose, paths| {
        TurnLog::load(state)?.give_up(purpose, paths)
    })
}

/// Does what the session says of its turns.
pub fn turn(project: &Project, state: &Folder, order: &TurnOrder) -> Result<TurnAnswer, Error> {
    match order {
        TurnOrder::Begin {
            session,
            n_turn,
            words,
            place,
            auto_run,
        } => {
            let (mut began, cut_off) =
                Work::open(project, state)?.begin(session, *n_turn, words)?;
            // Most turns were ended, and to look through the project takes a moment.
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

/// Does what a person asks for. For an order that [writes](UndoOrder::writes) the project's folder
/// must be one that can be written to.
pub fn order(project: &Project, state: &Folder, order: &UndoOrder) -> Result<UndoAnswer, Error> {
    let undone = |undone: Result<Undone, Error>| match undone {
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
            How {
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
            How {
                merge: *merge,
                is_beside: *is_beside,
            },
        ))?,
        UndoOrder::Retry { merge, is_beside } => undone(retry(
            project,
            state,
            How {
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

/// What is kept of a review: how the project is, and how the copy is that its session works on, if
/// that is looked at.
pub(super) struct Both {
    pub(super) store: Store,
    pub(super) now: Snapshot,
    pub(super) copy: Option<Snapshot>,
}

/// Keeps how the project is now and, with the cache of that name, how its copy is. Where there is
/// no room for all of it old turns are forgotten: what a review lacks can never be had again.
pub(super) fn keep_both(
    project: &Project,
    state: &Folder,
    store: Store,
    copy: Option<(&Project, &str)>,
) -> Result<Both, Error> {
    let mut work = Work::with(project, state, store)?;
    let now = work.take(project, CACHE, None)?;
    let copy = copy
        .map(|(copy, cache)| work.take(copy, cache, Some(now.id)))
        .transpose()?;
    Ok(Both {
        store: work.store,
        now,
        copy,
    })
}

/// Finishes what was interrupted, whatever it was, with the turns that were to follow. `copy`: what
/// the session of that review worked on.
pub fn resume(project: &Project, state: &Folder, copy: Option<&Project>) -> Result<Resumed, Error> {
    Work::open(project, state)?.resume(copy)
}

/// What is done where a path is not plainly to be brought back.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// Lines of both sides are put together.
    pub merge: bool,
    /// A sandbox of the project runs: what is hidden from it must not pass through the project's
    /// folders under another name.
    pub is_beside: bool,
}

/// All that work on turns needs, as long as nobody else does any.
struct Work<'a> {
    project: &'a Project,
    state: &'a Folder,
    store: Store,
    log: TurnLog<'a>,
    most_turns: usize,
}

impl<'a> Work<'a> {
    fn open(project: &'a Project, state: &'a Folder) -> Result<Self, Error> {
        Self::with(project, state, Store::open(state)?)
    }

    fn with(project: &'a Project, state: &'a Folder, store: Store) -> Result<Self, Error> {
        Ok(Self {
            project,
            state,
            store,
            log: TurnLog::load(state)?,
            most_turns: MOST_TURNS,
        })
    }

    /// Begins a turn, and returns what the one before changed if nobody ended that.
    fn begin(
        &mut self,
        session: &str,
        n_turn: u64,
        words: &str,
    ) -> Result<(TurnBegan, Vec<PathChange>), Error> {
        let is_given_up = self.begin_over()?;
        let snapshot = self.look()?;
        let mut cut_off = Vec::new();
        if self.log.open().is_some() {
            cut_off = self.close(&snapshot, true)?;
            nearest_first(&mut cut_off);
        }
        if self.log.turns.len() > self.most_turns + self.most_turns / 4 {
            self.forget(self.most_turns, [snapshot.id])?;
        }
        let turn = self.add(session, n_turn, words, snapshot.id)?;
        let is_unfinished = apply::is_unfinished(self.state)?;
        let may_run = Named::default();
        let began = TurnBegan {
            turn,
            n_files: snapshot.n_files,
            passed_over: snapshot.passed_over,
            is_unfinished,
            is_given_up,
            may_run,
        };
        Ok((began, cut_off))
    }

    fn add(
        &mut self,
        session: &str,
        n_turn: u64,
        words: &str,
        before: ObjectId,
    ) -> Result<u64, Error> {
        let turn = self.log.next_turn();
        let at = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        self.log.add(Record::Begin {
            turn,
            session: session.to_owned(),
            n_turn,
            words: shortened(words),
            at,
            before,
        })?;
        Ok(turn)
    }

    /// Has the rest of a review that is about to come in be of a turn, too: of the one that brought
    /// in the beginning, if nothing has changed since, else of one of its own. Returns whether that
    /// turn was cut off.
    fn go_on_with(&mut self, review: &str) -> Result<bool, Error> {
        if self.log.open().is_some_and(|turn| turn.applies(review)) {
            return Ok(true);
        }
        let snapshot = self.look()?;
        if self.log.open().is_some() {
            self.close(&snapshot, true)?;
        }
        if !self.log.reopen(review, snapshot.id)? {
            self.add(review, 0, &words_of_review(review), snapshot.id)?;
        }
        Ok(false)
    }

    /// Ends an undo that was interrupted, before anything of the turn it was about is forgotten.
    /// The project may be one that nobody can write to now, so what lies in it is cleared up by
    /// whoever takes something back next.
    fn begin_over(&mut self) -> Result<bool, Error> {
        let journal = match Journal::load(self.state) {
            // Whoever gives it up is told so.
            Err(Error::Unreadable { .. }) => None,
            other => other?,
        };
        let Some(journal) =
            journal.filter(|journal| !matches!(journal.purpose, Purpose::Review { .. }))
        else {
            return Ok(false);
        };
        if !journal.is_look {
            self.log.give_up(&journal.purpose, journal.open_paths())?;
        }
        journal.put_aside(self.state)?;
        Ok(true)
    }

    /// Ends the open turn with what is there now.
    fn close(
        &mut self,
        snapshot: &Snapshot,
        is_interrupted: bool,
    ) -> Result<Vec<PathChange>, Error> {
        self.close_at(snapshot.id, is_interrupted)
    }

    fn close_at(
        &mut self,
        after: ObjectId,
        is_interrupted: bool,
    ) -> Result<Vec<PathChange>, Error> {
        let Some((turn, before)) = self.log.open().map(|turn| (turn.turn, turn.before)) else {
            return Err(Error::NoTurn);
        };
        let changes = match compare(&self.store, &before, &after) {
            // What it began with is lost, and with it all that could be taken back.
            Err(Error::Broken { .. }) => {
                self.log.retain(|each| each.turn != turn)?;
                return Ok(Vec::new());
            }
            changes => told(&changes?),
        };
        self.log.add(Record::End {
            turn,
            after,
            n_changed: changes.len() as u64,
            is_interrupted,
        })?;
        if before == after {
            self.log.retain(|each| each.turn != turn)?;
        } else {
            self.log.end_forward()?;
        }
        Ok(changes)
    }

    /// Takes a snapshot; if there is no room for all of it, once more without the older half of the
    /// turns.
    fn look(&mut self) -> Result<Snapshot, Error> {
        let snapshot = snapshot::take(self.project, self.state, &mut self.store, CACHE)?;
        if !snapshot.is_cut_short || self.log.turns.len() < 2 {
            return Ok(snapshot);
        }
        self.forget(self.log.turns.len() / 2, [snapshot.id])?;
        snapshot::take(self.project, self.state, &mut self.store, CACHE)
    }

    /// Takes a snapshot; as long as there is no room for all of it, once more without the older
    /// half of the turns, but for the newest one. `needed`: another that was taken before.
    fn take(
        &mut self,
        of: &Project,
        cache: &str,
        needed: Option<ObjectId>,
    ) -> Result<Snapshot, Error> {
        loop {
            let snapshot = snapshot::take(of, self.state, &mut self.store, cache)?;
            let n_turns = self.log.turns.len();
            if snapshot.is_cut_short && n_turns > 1 {
                self.forget(n_turns / 2, needed.into_iter().chain([snapshot.id]))?;
            }
            if self.log.turns.len() == n_turns {
                return Ok(snapshot);
            }
        }
    }

    /// Forgets all but the newest turns, and removes what is needed by nobody then; `needed` are
    /// snapshots that nothing else names yet.
    fn forget(
        &mut self,
        n: usize,
        needed: impl IntoIterator<Item = ObjectId>,
    ) -> Result<(), Error> {
        // What was interrupted may still need contents that nobody else does.
        if apply::is_unfinished(self.state)? {
            return Ok(());
        }
        let n_forgotten = self.log.turns.len().saturating_sub(n);
        let mut number = 0;
        self.log.retain(|_| {
            number += 1;
            number > n_forgotten
        })?;
        let mut keep: BTreeSet<_> = pin::load(self.state)?.into_values().flatten().collect();
        keep.extend(needed);
        keep.extend(
            self.log
                .turns
                .iter()
                .flat_map(|turn| [Some(turn.before), turn.end.map(|end| end.after)])
                .flatten(),
        );
        self.store.prune(&keep)
    }
}

#[cfg(test)]
mod left;
#[cfg(test)]
mod over;
#[cfg(test)]
mod tests;
