//! The log and the store of turns while they are locked.

use std::collections::BTreeSet;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use super::super::Error;
use super::super::ObjectId;
use super::super::Project;
use super::super::Snapshot;
use super::super::StateFolder;
use super::super::Store;
use super::super::apply;
use super::super::compare::Change;
use super::super::compare::compare;
use super::super::compare::path_changes;
use super::super::journal::Journal;
use super::super::journal::Purpose;
use super::super::pin;
use super::super::snapshot;
use super::super::turn_log::TurnLog;
use super::super::turn_log::TurnRecord;
use super::super::turn_log::first_words;
use super::CACHE;
use super::MOST_TURNS;
use super::nearest_first;
use super::review_description;
use podbay_wire::keep::NamedList;
use podbay_wire::keep::PathChange;
use podbay_wire::keep::TurnBegan;

/// The log and the store of turns, locked.
pub(super) struct UndoWork<'a> {
    pub(super) project: &'a Project,
    pub(super) state: &'a StateFolder,
    pub(super) store: Store,
    pub(super) log: TurnLog<'a>,
    pub(super) most_turns: usize,
}

impl<'a> UndoWork<'a> {
    pub(super) fn open(project: &'a Project, state: &'a StateFolder) -> Result<Self, Error> {
        Self::with(project, state, Store::open(state)?)
    }

    pub(super) fn with(
        project: &'a Project,
        state: &'a StateFolder,
        store: Store,
    ) -> Result<Self, Error> {
        Ok(Self {
            project,
            state,
            store,
            log: TurnLog::load(state)?,
            most_turns: MOST_TURNS,
        })
    }

    /// Begins a turn, and returns the changes of the one before if it was not ended.
    pub(super) fn begin(
        &mut self,
        session: &str,
        n_turn: u64,
        words: &str,
    ) -> Result<(TurnBegan, Vec<PathChange>), Error> {
        let is_given_up = self.end_interrupted()?;
        let snapshot = self.look()?;
        let mut cut_off = Vec::new();
        if self.log.open().is_some() {
            cut_off = path_changes(&self.close(&snapshot, true)?);
            nearest_first(&mut cut_off);
        }
        if self.log.turns.len() > self.most_turns + self.most_turns / 4 {
            self.forget(self.most_turns, [snapshot.id])?;
        }
        let turn = self.add(session, n_turn, words, snapshot.id)?;
        let is_unfinished = apply::is_unfinished(self.state)?;
        let may_run = NamedList::default();
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

    pub(super) fn add(
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
        self.log.add(TurnRecord::Begin {
            turn,
            session: session.to_owned(),
            n_turn,
            words: first_words(words),
            at,
            before,
        })?;
        Ok(turn)
    }

    /// Assigns the rest of a review that is about to be applied to a turn: to the one that applied
    /// the beginning, if nothing has changed since, else to one of its own. Returns whether that
    /// turn was interrupted.
    pub(super) fn continue_review_turn(&mut self, review: &str) -> Result<bool, Error> {
        if self.log.open().is_some_and(|turn| turn.applies(review)) {
            return Ok(true);
        }
        let snapshot = self.look()?;
        if self.log.open().is_some() {
            self.close(&snapshot, true)?;
        }
        if !self.log.reopen(review, snapshot.id)? {
            self.add(review, 0, &review_description(review), snapshot.id)?;
        }
        Ok(false)
    }

    /// Ends an interrupted undo before anything of its turn is removed. The project may not be
    /// writable now, so its temporary files are removed by the next undo.
    pub(super) fn end_interrupted(&mut self) -> Result<bool, Error> {
        let journal = match Journal::load(self.state) {
            // Giving it up reports that.
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

    /// Ends the open turn with the present state.
    pub(super) fn close(
        &mut self,
        snapshot: &Snapshot,
        is_interrupted: bool,
    ) -> Result<Vec<Change>, Error> {
        self.close_at(snapshot.id, is_interrupted)
    }

    pub(super) fn close_at(
        &mut self,
        after: ObjectId,
        is_interrupted: bool,
    ) -> Result<Vec<Change>, Error> {
        let Some((turn, before)) = self.log.open().map(|turn| (turn.turn, turn.before)) else {
            return Err(Error::NoTurn);
        };
        let changes = match compare(&self.store, &before, &after) {
            // Its first snapshot is lost, and with it all that could be undone.
            Err(Error::Broken { .. }) => {
                self.log.retain(|each| each.turn != turn)?;
                return Ok(Vec::new());
            }
            changes => changes?,
        };
        self.log.add(TurnRecord::End {
            turn,
            after,
            n_changed: path_changes(&changes).len() as u64,
            is_interrupted,
        })?;
        if before == after {
            self.log.retain(|each| each.turn != turn)?;
        } else {
            self.log.end_forward()?;
        }
        Ok(changes)
    }

    /// Takes a snapshot; if there is no room, once more without the older half of the turns.
    pub(super) fn look(&mut self) -> Result<Snapshot, Error> {
        let snapshot = snapshot::take(self.project, self.state, &mut self.store, CACHE)?;
        if !snapshot.is_cut_short || self.log.turns.len() < 2 {
            return Ok(snapshot);
        }
        self.forget(self.log.turns.len() / 2, [snapshot.id])?;
        snapshot::take(self.project, self.state, &mut self.store, CACHE)
    }

    /// Takes a snapshot; as long as there is no room, again without the older half of the turns,
    /// except the newest one. `needed`: another snapshot to keep.
    pub(super) fn take(
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

    /// Removes all but the newest turns, and unneeded contents; `needed` are snapshots without
    /// other references.
    pub(super) fn forget(
        &mut self,
        n: usize,
        needed: impl IntoIterator<Item = ObjectId>,
    ) -> Result<(), Error> {
        // An interrupted application may need contents that nothing else references.
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
