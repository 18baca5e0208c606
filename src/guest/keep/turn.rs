//! The log of turns: one line for each thing that happens to one, never changed, repaired at its
//! end.

use serde::Deserialize;
use serde::Serialize;

use super::Error;
use super::Folder;
use super::ObjectId;
use super::Purpose;
use podbay_wire::BytesPath;
use podbay_wire::keep::TurnState;
use podbay_wire::keep::TurnTaken;

const NAME: &str = "turns.jsonl";

/// Characters that are kept of what the person wrote.
const MOST_WORDS: usize = 80;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Record {
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
        /// What was left as it was, and may be tried again.
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
    pub(super) end: Option<Ended>,
    pub(super) is_back: bool,
    /// What was left as it was when it was taken back, or brought back, last.
    pub(super) left: Vec<BytesPath>,
    /// It was taken back, and another turn came since.
    is_final: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) after: ObjectId,
    n_changed: u64,
    is_interrupted: bool,
}

impl Turn {
    /// Whether it is the application of this review.
    pub(super) fn applies(&self, review: &str) -> bool {
        // Turns of sessions are counted from one.
        self.session == review && self.n_turn == 0
    }

    /// Whether it is over and changed something.
    pub(super) fn has_changed(&self) -> bool {
        self.end.is_some_and(|end| end.after != self.before)
    }

    pub(super) fn told(&self) -> TurnTaken {
        TurnTaken {
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

    fn records(&self) -> Vec<Record> {
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
        let mut records = vec![Record::Begin {
            turn,
            session,
            n_turn,
            words,
            at,
            before,
        }];
        if let Some(Ended {
            after,
            n_changed,
            is_interrupted,
        }) = self.end
        {
            records.push(Record::End {
                turn,
                after,
                n_changed,
                is_interrupted,
            });
        }
        if self.is_back {
            records.push(Record::Back {
                turn,
                left,
                is_final,
            });
        } else if !left.is_empty() {
            records.push(Record::Forward { turn, left });
        }
        records
    }
}

/// All turns that are kept, the oldest first. Those that were taken back are the last ones that
/// changed something.
#[derive(Debug)]
pub(super) struct TurnLog<'a> {
    state: &'a Folder,
    pub(super) turns: Vec<Turn>,
}

impl<'a> TurnLog<'a> {
    /// Reads the log. What was not written to its end never happened; it is taken away.
    pub(super) fn load(state: &'a Folder) -> Result<Self, Error> {
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
                // Also after a power cut, when zeros may stand there.
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

    /// Writes down what happens, before it counts.
    pub(super) fn add(&mut self, record: Record) -> Result<(), Error> {
        let mut line = serde_json::to_vec(&record).expect("a record is plain data");
        line.push(b'\n');
        self.state.append(NAME, &line)?;
        self.take_in(record);
        Ok(())
    }

    /// Forgets turns.
    pub(super) fn retain(&mut self, keep: impl FnMut(&Turn) -> bool) -> Result<(), Error> {
        let n_before = self.turns.len();
        self.turns.retain(keep);
        if self.turns.len() == n_before {
            Ok(())
        } else {
            self.rewrite()
        }
    }

    /// Takes its end from the last turn, if that is the application of this review and all is as it
    /// left it; returns whether it did.
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

    /// Ends what was interrupted: the turn that it was about counts as not taken back, so that all
    /// that is kept of it can be had.
    pub(super) fn give_up(&mut self, purpose: &Purpose, left: Vec<BytesPath>) -> Result<(), Error> {
        match *purpose {
            Purpose::Forward { turn, .. } => self.add(Record::Forward { turn, left }),
            // What was left of a turn before is tried again with all else.
            Purpose::Back { turn, .. } if self.find(turn).is_some_and(|turn| turn.is_back) => {
                let mut all = self
                    .find(turn)
                    .map(|turn| turn.left.clone())
                    .unwrap_or_default();
                all.extend(left);
                all.sort_unstable();
                all.dedup();
                self.add(Record::Back {
                    turn,
                    left: all,
                    is_final: false,
                })
            }
            Purpose::Back { .. } | Purpose::Review { .. } => Ok(()),
        }
    }

    /// Forgets the turns that were taken back whole, and lets none of them be brought back: another
    /// one came since.
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

    /// The turn whose end was not told yet.
    pub(super) fn open(&self) -> Option<&Turn> {
        self.turns.last().filter(|turn| turn.end.is_none())
    }

    /// The turns that can be taken back, the newest first.
    pub(super) fn back(&self) -> impl Iterator<Item = &Turn> {
        self.turns
            .iter()
            .rev()
            .filter(|turn| turn.has_changed() && !turn.is_back)
    }

    /// The turns that can be brought back, the oldest first.
    pub(super) fn forward(&self) -> impl Iterator<Item = &Turn> {
        self.turns
            .iter()
            .filter(|turn| turn.has_changed() && turn.is_back && !turn.is_final)
    }

    /// The turns of which something was left, in the order in which that is tried again, and
    /// whether they were taken back.
    pub(super) fn left(&self) -> impl Iterator<Item = &Turn> {
        let back = self.turns.iter().rev().filter(|turn| turn.is_back);
        back.chain(self.turns.iter().filter(|turn| !turn.is_back))
            .filter(|turn| !turn.left.is_empty())
    }

    fn take_in(&mut self, record: Record) {
        let find = |turns: &[Turn], number: u64| turns.iter().position(|turn| turn.turn == number);
        match record {
            Record::Begin {
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
            Record::End {
                turn,
                after,
                n_changed,
                is_interrupted,
            } => {
                if let Some(at) = find(&self.turns, turn) {
                    self.turns[at].end = Some(Ended {
                        after,
                        n_changed,
                        is_interrupted,
                    });
                }
            }
            Record::Back {
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
            Record::Forward { turn, left } => {
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

/// Returns the beginning of what a person wrote: of its first line that says something.
pub(super) fn shortened(words: &str) -> String {
    let line = words
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    line.chars().take(MOST_WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keep::testing::Scene;

    fn begin(turn: u64) -> Record {
        let before = ObjectId::of(b"before");
        Record::Begin {
            turn,
            session: "s".to_owned(),
            n_turn: turn,
            words: format!("turn {turn}"),
            at: 7,
            before,
        }
    }

    fn end(turn: u64) -> Record {
        Record::End {
            turn,
            after: ObjectId::of(b"after"),
            n_changed: 3,
            is_interrupted: false,
        }
    }

    #[test]
    fn what_was_written_is_read_and_what_was_half_written_is_taken_away() {
        let scene = Scene::new();
        let state = scene.state();
        let mut log = TurnLog::load(&state).expect("loads");
        assert_eq!(log.next_turn(), 1);
        let back = || Record::Back {
            turn: 2,
            left: vec!["a".into()],
            is_final: false,
        };
        for record in [
            begin(1),
            end(1),
            begin(2),
            end(2),
            back(),
            Record::Forward {
                turn: 2,
                left: Vec::new(),
            },
            back(),
        ] {
            log.add(record).expect("added");
        }
        let turns = log.turns.clone();
        assert_eq!(
            (log.back().count(), log.forward().count(), log.next_turn()),
            (1, 1, 3)
        );
        let whole = state.read(NAME).expect("reads").expect("there");
        for end in [
            &b"{\"type\":\"begin\",\"turn\":3"[..],
            b"\0\0\0\0",
            b"{}\n",
            b"\xff\n",
        ] {
            state.replace(NAME, &[&whole, end].concat()).expect("torn");
            let mut log = TurnLog::load(&state).expect("loads");
            assert_eq!(log.turns, turns, "{end:?}");
            log.add(begin(3)).expect("added");
            assert_eq!(
                TurnLog::load(&state).expect("loads").turns.len(),
                3,
                "{end:?}"
            );
        }
        // A line that lost its end alone never happened, either.
        state
            .replace(NAME, &whole[..whole.len() - 1])
            .expect("torn");
        assert!(!TurnLog::load(&state).expect("loads").turns[1].is_back);
        // As it was written before anything was told of what was left.
        state
            .replace(
                NAME,
                &[&whole, &b"{\"type\":\"back\",\"turn\":1}\n"[..]].concat(),
            )
            .expect("added");
        let log = TurnLog::load(&state).expect("loads");
        assert_eq!(
            (
                log.back().count(),
                log.forward().count(),
                log.left().count()
            ),
            (0, 2, 1)
        );
    }

    #[test]
    fn a_turn_of_which_something_was_left_is_kept_when_another_one_comes() {
        let scene = Scene::new();
        let state = scene.state();
        let mut log = TurnLog::load(&state).expect("loads");
        for turn in 1..=2 {
            log.add(begin(turn)).expect("added");
            log.add(end(turn)).expect("added");
        }
        log.add(Record::Back {
            turn: 2,
            left: Vec::new(),
            is_final: false,
        })
        .expect("added");
        log.add(Record::Back {
            turn: 1,
            left: vec!["a".into()],
            is_final: false,
        })
        .expect("added");
        log.end_forward().expect("ended");
        for log in [log, TurnLog::load(&state).expect("loads")] {
            assert_eq!(
                (
                    log.turns.len(),
                    log.back().count(),
                    log.forward().count(),
                    log.left().count()
                ),
                (1, 0, 0, 1)
            );
        }
    }

    #[test]
    fn the_first_line_that_says_something_is_kept() {
        assert_eq!(shortened("\n  fix it \nplease"), "fix it");
        assert_eq!(shortened(&"ä".repeat(100)), "ä".repeat(80));
        assert_eq!(shortened(""), "");
    }
}
