//! The log of turns: one line for each event, append-only, repaired at its end.

use serde::Deserialize;
use serde::Serialize;

use super::Error;
use super::ObjectId;
use super::Purpose;
use super::StateFolder;
use podbay_wire::BytesPath;
use podbay_wire::keep::TurnState;
use podbay_wire::keep::TurnSummary;

const NAME: &str = "turns.jsonl";

/// Most characters of the user's message that are kept.
const MOST_WORDS: usize = 80;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum TurnRecord {
    Begin {
        turn: u64,
        session: String,
        n_turn: u64,
        words: String,
        at: u64,
        before: ObjectId,
    },
    End {
        turn: u64,
        after: ObjectId,
        n_changed: u64,
        is_interrupted: bool,
    },
    Back {
        turn: u64,
        /// Paths that were left undone and may be retried.
        #[serde(default)]
        left: Vec<BytesPath>,
        #[serde(default)]
        is_final: bool,
    },
    Forward {
        turn: u64,
        #[serde(default)]
        left: Vec<BytesPath>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) turn: u64,
    session: String,
    n_turn: u64,
    words: String,
    at: u64,
    pub(super) before: ObjectId,
    pub(super) end: Option<EndedTurn>,
    pub(super) is_back: bool,
    /// Paths that were left by the last undo or redo of the turn.
    pub(super) left: Vec<BytesPath>,
    /// Whether it was undone, and another turn followed.
    is_final: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndedTurn {
    pub(super) after: ObjectId,
    n_changed: u64,
    is_interrupted: bool,
}

impl Turn {
    /// Whether it is the apply of this review.
    pub(super) fn applies(&self, review: &str) -> bool {
        // Turns of sessions are counted from one.
        self.session == review && self.n_turn == 0
    }

    /// Whether it has ended and changed something.
    pub(super) fn has_changed(&self) -> bool {
        self.end.is_some_and(|end| end.after != self.before)
    }

    pub(super) fn told(&self) -> TurnSummary {
        TurnSummary {
            turn: self.turn,
            session: self.session.clone(),
            n_turn: self.n_turn,
            words: self.words.clone(),
            at: self.at,
            state: match (self.end, self.is_back) {
                (None, _) => TurnState::Open,
                (Some(_), false) => TurnState::Done,
                (Some(_), true) => TurnState::TakenBack,
            },
            n_changed: self.end.map(|end| end.n_changed),
            is_interrupted: self.end.is_some_and(|end| end.is_interrupted),
            n_left: self.left.len() as u64,
        }
    }

    fn records(&self) -> Vec<TurnRecord> {
        let Self {
            turn,
            session,
            n_turn,
            words,
            at,
            before,
            left,
            is_final,
            ..
        } = self.clone();
        let mut records = vec![TurnRecord::Begin {
            turn,
            session,
            n_turn,
            words,
            at,
            before,
        }];
        if let Some(EndedTurn {
            after,
            n_changed,
            is_interrupted,
        }) = self.end
        {
            records.push(TurnRecord::End {
                turn,
                after,
                n_changed,
                is_interrupted,
            });
        }
        if self.is_back {
            records.push(TurnRecord::Back {
                turn,
                left,
                is_final,
            });
        } else if !left.is_empty() {
            records.push(TurnRecord::Forward { turn, left });
        }
        records
    }
}

/// All recorded turns, the oldest first. Those that were undone are the last ones that changed
/// something.
#[derive(Debug)]
pub(super) struct TurnLog<'a> {
    state: &'a StateFolder,
    pub(super) turns: Vec<Turn>,
}

impl<'a> TurnLog<'a> {
    /// Reads the log. A partial last line is removed.
    pub(super) fn load(state: &'a StateFolder) -> Result<Self, Error> {
        let bytes = state.read(NAME)?.unwrap_or_default();
        let mut log = Self {
            state,
            turns: Vec::new(),
        };
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let mut is_torn = false;
        for line in &mut lines {
            match serde_json::from_slice(line) {
                Ok(record) if line.ends_with(b"\n") => log.take_in(record),
                // Also after a power failure, which may leave zeros there.
                _ => is_torn = true,
            }
        }
        if is_torn {
            log.rewrite()?;
        }
        Ok(log)
    }

    pub(super) fn next_turn(&self) -> u64 {
        self.turns
            .iter()
            .map(|turn| turn.turn)
            .max()
            .map_or(1, |turn| turn + 1)
    }

    /// Appends an event before it takes effect.
    pub(super) fn add(&mut self, record: TurnRecord) -> Result<(), Error> {
        let mut line = serde_json::to_vec(&record).expect("a record is plain data");
        line.push(b'\n');
        self.state.append(NAME, &line)?;
        self.take_in(record);
        Ok(())
    }

    /// Removes turns from the log.
    pub(super) fn retain(&mut self, keep: impl FnMut(&Turn) -> bool) -> Result<(), Error> {
        let n_before = self.turns.len();
        self.turns.retain(keep);
        if self.turns.len() == n_before {
            Ok(())
        } else {
            self.rewrite()
        }
    }

    /// Reopens the last turn, if it is the apply of this review and the project is as it left it;
    /// returns whether it did.
    pub(super) fn reopen(&mut self, review: &str, now: ObjectId) -> Result<bool, Error> {
        let is_it = |turn: &&mut Turn| {
            turn.applies(review) && !turn.is_back && turn.end.is_some_and(|end| end.after == now)
        };
        let Some(last) = self.turns.last_mut().filter(is_it) else {
            return Ok(false);
        };
        last.end = None;
        self.rewrite()?;
        Ok(true)
    }

    /// Ends an interrupted undo or redo: its turn counts as not undone, so that all recorded states
    /// can be restored.
    pub(super) fn give_up(&mut self, purpose: &Purpose, left: Vec<BytesPath>) -> Result<(), Error> {
        match *purpose {
            Purpose::Forward { turn, .. } => self.add(TurnRecord::Forward { turn, left }),
            // What was left of a turn before is retried with the rest.
            Purpose::Back { turn, .. } if self.find(turn).is_some_and(|turn| turn.is_back) => {
                let mut all = self
                    .find(turn)
                    .map(|turn| turn.left.clone())
                    .unwrap_or_default();
                all.extend(left);
                all.sort_unstable();
                all.dedup();
                self.add(TurnRecord::Back {
                    turn,
                    left: all,
                    is_final: false,
                })
            }
            Purpose::Back { .. } | Purpose::Review { .. } => Ok(()),
        }
    }

    /// Removes turns that were undone completely, and marks others so that none can be redone:
    /// another turn followed.
    pub(super) fn end_forward(&mut self) -> Result<(), Error> {
        if !self.turns.iter().any(|turn| turn.is_back && !turn.is_final) {
            return Ok(());
        }
        self.turns
            .retain(|turn| !turn.is_back || !turn.left.is_empty());
        for turn in self.turns.iter_mut().filter(|turn| turn.is_back) {
            turn.is_final = true;
        }
        self.rewrite()
    }

    pub(super) fn find(&self, number: u64) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.turn == number)
    }

    /// The turn that has not ended.
    pub(super) fn open(&self) -> Option<&Turn> {
        self.turns.last().filter(|turn| turn.end.is_none())
    }

    /// The turns that can be undone, the newest first.
    pub(super) fn back(&self) -> impl Iterator<Item = &Turn> {
        self.turns
            .iter()
            .rev()
            .filter(|turn| turn.has_changed() && !turn.is_back)
    }

    /// The turns that can be redone, the oldest first.
    pub(super) fn forward(&self) -> impl Iterator<Item = &Turn> {
        self.turns
            .iter()
            .filter(|turn| turn.has_changed() && turn.is_back && !turn.is_final)
    }

    /// The turns with paths left, in the order of a retry.
    pub(super) fn left(&self) -> impl Iterator<Item = &Turn> {
        let back = self.turns.iter().rev().filter(|turn| turn.is_back);
        back.chain(self.turns.iter().filter(|turn| !turn.is_back))
            .filter(|turn| !turn.left.is_empty())
    }

    fn take_in(&mut self, record: TurnRecord) {
        let find = |turns: &[Turn], number: u64| turns.iter().position(|turn| turn.turn == number);
        match record {
            TurnRecord::Begin {
                turn,
                session,
                n_turn,
                words,
                at,
                before,
            } => {
                let (left, is_final) = (Vec::new(), false);
                self.turns.push(Turn {
                    turn,
                    session,
                    n_turn,
                    words,
                    at,
                    before,
                    end: None,
                    is_back: false,
                    left,
                    is_final,
                });
            }
            TurnRecord::End {
                turn,
                after,
                n_changed,
                is_interrupted,
            } => {
                if let Some(at) = find(&self.turns, turn) {
                    self.turns[at].end = Some(EndedTurn {
                        after,
                        n_changed,
                        is_interrupted,
                    });
                }
            }
            TurnRecord::Back {
                turn,
                left,
                is_final,
            } => {
                if let Some(at) = find(&self.turns, turn) {
                    let turn = &mut self.turns[at];
                    turn.is_final |= is_final;
                    (turn.is_back, turn.left) = (true, left);
                }
            }
            TurnRecord::Forward { turn, left } => {
                if let Some(at) = find(&self.turns, turn) {
                    (self.turns[at].is_back, self.turns[at].left) = (false, left);
                }
            }
        }
    }

    fn rewrite(&self) -> Result<(), Error> {
        let mut bytes = Vec::new();
        for record in self.turns.iter().flat_map(Turn::records) {
            bytes.extend(serde_json::to_vec(&record).expect("a record is plain data"));
            bytes.push(b'\n');
        }
        self.state.replace(NAME, &bytes)
    }
}

/// Returns the beginning of the user's message: of its first non-empty line.
pub(super) fn first_words(words: &str) -> String {
    let line = words
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    line.chars().take(MOST_WORDS).collect()
}

#[cfg(test)]
mod tests;
