//! Undoes or redoes turns, one after the other.

use std::collections::BTreeSet;

use super::Resumed;
use super::UndoOptions;
use super::UndoWork;
use crate::keep::Error;
use crate::keep::Project;
use crate::keep::Store;
use crate::keep::apply;
use crate::keep::compare::Change;
use crate::keep::find;
use crate::keep::forbidden::Origin;
use crate::keep::journal::Journal;
use crate::keep::journal::Purpose;
use crate::keep::node::Node;
use crate::keep::path_entry::NameCheck;
use crate::keep::path_entry::PathEntry;
use crate::keep::plan::Outcome;
use crate::keep::plan::Request;
use crate::keep::plan::wanted_changes;
use crate::keep::read::FoundEntry;
use crate::keep::review;
use crate::keep::turn_log::TurnRecord;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::SecretName;
use podbay_wire::keep::LeftPath;
use podbay_wire::keep::LeftReason;
use podbay_wire::keep::UndoOutcome;
use podbay_wire::keep::UndoneTurn;
use podbay_wire::secret_name;
use podbay_wire::secret_path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Back,
    Forward,
}

impl Direction {
    pub(super) fn purpose(self, turn: u64, then: u32, merge: bool) -> Purpose {
        match self {
            Self::Back => Purpose::Back { turn, then, merge },
            Self::Forward => Purpose::Forward { turn, then, merge },
        }
    }

    fn record(self, turn: u64, left: Vec<BytesPath>) -> TurnRecord {
        match self {
            Self::Back => TurnRecord::Back {
                turn,
                left,
                is_final: false,
            },
            Self::Forward => TurnRecord::Forward { turn, left },
        }
    }
}

impl UndoWork<'_> {
    pub(super) fn go(
        &mut self,
        way: Direction,
        n: u32,
        how: UndoOptions,
    ) -> Result<UndoOutcome, Error> {
        self.make_ready()?;
        let mut turns = Vec::new();
        self.step_by_step(way, n, how, &mut turns)?;
        Ok(self.undone(turns))
    }

    pub(super) fn retry(&mut self, how: UndoOptions) -> Result<UndoOutcome, Error> {
        self.make_ready()?;
        let left: Vec<(u64, Vec<BytesPath>)> = self
            .log
            .left()
            .map(|turn| (turn.turn, turn.left.clone()))
            .collect();
        let mut turns = Vec::new();
        for (number, paths) in left {
            let way = if self.log.find(number).is_some_and(|turn| turn.is_back) {
                Direction::Back
            } else {
                Direction::Forward
            };
            if !self.step(way, number, 0, how, Some(&paths), &mut turns)? {
                break;
            }
        }
        Ok(self.undone(turns))
    }

    fn make_ready(&mut self) -> Result<(), Error> {
        if apply::is_unfinished(self.state)? {
            return Err(Error::Unfinished);
        }
        // First, since what is in the project until then belongs to the open turn.
        if self.log.open().is_some() {
            let snapshot = self.look()?;
            self.close(&snapshot, true)?;
        }
        apply::clean_up(self.project, self.state)
    }

    pub(super) fn resume(&mut self, copy: Option<&Project>) -> Result<Resumed, Error> {
        apply::clean_up(self.project, self.state)?;
        if let Some(purpose) = apply::discard_unstarted(self.project, self.state)? {
            return self.begin_anew(&purpose);
        }
        let is_cut_off = match Journal::load(self.state)?.map(|journal| journal.purpose) {
            Some(Purpose::Review { name }) => self.continue_review_turn(&name)?,
            _ => false,
        };
        let (project, state, store, log) = (self.project, self.state, &self.store, &mut self.log);
        let resumed = apply::resume(
            (project, copy),
            state,
            store,
            |journal, outcome| match &journal.purpose {
                Purpose::Back { turn, .. } => {
                    log.add(Direction::Back.record(*turn, outcome.left.clone()))
                }
                Purpose::Forward { turn, .. } => {
                    log.add(Direction::Forward.record(*turn, outcome.left.clone()))
                }
                Purpose::Review { name } => review::resumed(project, state, store, name, journal),
            },
        )?;
        let Some((purpose, applied)) = resumed else {
            return Ok(Resumed::Nothing);
        };
        let (way, turn, then, merge) = match purpose {
            Purpose::Back { turn, then, merge } => (Direction::Back, turn, then, merge),
            Purpose::Forward { turn, then, merge } => (Direction::Forward, turn, then, merge),
            Purpose::Review { name } => {
                // What was applied stays; a turn without an end is ended by the next one.
                let _ = self
                    .look()
                    .and_then(|snapshot| self.close(&snapshot, is_cut_off));
                return Ok(Resumed::Review {
                    name,
                    applied: Box::new(applied),
                });
            }
        };
        let is_stopped = applied.stopped.is_some();
        let mut turns: Vec<UndoneTurn> = self
            .log
            .find(turn)
            .map(|turn| UndoneTurn {
                turn: turn.told(),
                applied,
            })
            .into_iter()
            .collect();
        if !is_stopped {
            self.step_by_step(
                way,
                then,
                UndoOptions {
                    merge,
                    is_beside: false,
                },
                &mut turns,
            )?;
        }
        Ok(Resumed::Turns(self.undone(turns)))
    }

    /// Restarts an interrupted application of which nothing was done.
    fn begin_anew(&mut self, purpose: &Purpose) -> Result<Resumed, Error> {
        let (way, turn, then, merge) = match *purpose {
            Purpose::Back { turn, then, merge } => (Direction::Back, turn, then, merge),
            Purpose::Forward { turn, then, merge } => (Direction::Forward, turn, then, merge),
            Purpose::Review { .. } => return Ok(Resumed::Nothing),
        };
        // A turn in that state already was interrupted in a retry of its left paths, which is
        // repeated on request.
        if self
            .log
            .find(turn)
            .is_none_or(|turn| turn.is_back == (way == Direction::Back))
        {
            return Ok(Resumed::Nothing);
        }
        let mut turns = Vec::new();
        self.step_by_step(
            way,
            then.saturating_add(1),
            UndoOptions {
                merge,
                is_beside: false,
            },
            &mut turns,
        )?;
        Ok(Resumed::Turns(self.undone(turns)))
    }

    fn step_by_step(
        &mut self,
        way: Direction,
        n: u32,
        how: UndoOptions,
        turns: &mut Vec<UndoneTurn>,
    ) -> Result<(), Error> {
        for then in (0..n).rev() {
            let next = match way {
                Direction::Back => self.log.back().next(),
                Direction::Forward => self.log.forward().next(),
            };
            let Some(number) = next.map(|turn| turn.turn) else {
                break;
            };
            if !self.step(way, number, then, how, None, turns)? {
                break;
            }
        }
        Ok(())
    }

    /// Undoes or redoes one turn; returns whether it was finished.
    fn step(
        &mut self,
        way: Direction,
        number: u64,
        then: u32,
        how: UndoOptions,
        only: Option<&[BytesPath]>,
        turns: &mut Vec<UndoneTurn>,
    ) -> Result<bool, Error> {
        let turn = self
            .log
            .find(number)
            .and_then(|turn| Some((turn.before, turn.end?.after)));
        let Some((before, after)) = turn else {
            return Ok(true);
        };
        let (from, to) = match way {
            Direction::Back => (after, before),
            Direction::Forward => (before, after),
        };
        let purpose = way.purpose(number, then, how.merge);
        let request = Request {
            from,
            to,
            only: Vec::new(),
            merge: how.merge,
            origin: Origin::Before,
            copy: None,
            purpose,
        };
        let mut wanted = wanted_changes(&self.store, &request)?;
        if let Some(only) = only {
            let only: BTreeSet<&BytesPath> = only.iter().collect();
            wanted.retain(|change| only.contains(&change.path));
            // What the user moved away, and asks for again, is in no one's way.
            for change in &mut wanted {
                if let Ok(PathEntry {
                    found: FoundEntry::Nothing,
                    ..
                }) = PathEntry::at(self.project, change.path.as_bytes(), NameCheck::Ambiguous)
                {
                    change.before = None;
                }
            }
        }
        let mut found = Outcome::default();
        if how.is_beside {
            leave_secrets(&self.store, &mut wanted, &mut found);
        }
        self.leave_out_made(way, number, &mut wanted, &mut found)?;
        let log = &mut self.log;
        let done = |_: &Store, _: &Journal, outcome: &Outcome| {
            log.add(way.record(number, outcome.left.clone()))
        };
        let applied = apply::apply_wanted(
            self.project,
            self.state,
            &mut self.store,
            &request,
            wanted,
            found,
            done,
        )?;
        let is_stopped = applied.stopped.is_some();
        turns.extend(self.log.find(number).map(|turn| UndoneTurn {
            turn: turn.told(),
            applied,
        }));
        Ok(!is_stopped)
    }

    fn undone(&self, turns: Vec<UndoneTurn>) -> UndoOutcome {
        UndoOutcome {
            turns,
            n_back: self.log.back().count() as u64,
            n_forward: self.log.forward().count() as u64,
        }
    }
}

/// Leaves out what a running sandbox may mask: while it is written it has another name, which is
/// not masked.
fn leave_secrets(store: &Store, wanted: &mut Vec<Change>, found: &mut Outcome) {
    let is_secret = |change: &mut Change| {
        let (folder, _) = split(change.path.as_bytes());
        let is_in_one = folder
            .split(|byte| *byte == b'/')
            .any(|name| secret_name(name) == Some(SecretName::IfFolder));
        let is_one = match (secret_path(change.path.as_bytes()), &change.after) {
            (Some(SecretName::IfKey), Some(Node::File { object, .. })) => store
                .get(object)
                .map_or(true, |content| find::holds_key(&content)),
            (kind, _) => kind.is_some(),
        };
        is_in_one || is_one
    };
    for change in wanted.extract_if(.., is_secret) {
        found.leave(LeftPath {
            path: change.path,
            reason: LeftReason::BesideSandbox,
        });
    }
}
