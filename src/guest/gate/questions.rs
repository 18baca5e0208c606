//! Calls that wait for the host's answer: one question at a time, and none is asked twice in a
//! call.

use std::collections::HashMap;

use super::listener::Question;
use super::process::Program;
use super::program_log::shortened;
use super::ticket::Ticket;
use podbay_wire::AskedProgram;
use podbay_wire::BytesPath;
use podbay_wire::MAX_QUESTIONS;

/// Most system calls that may wait for an answer at once: the default process limit of a sandbox,
/// with room.
const MOST: usize = 4096;

/// What a question is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    /// A program: the path that was called, the words, the rule that asks.
    Program {
        called: Vec<u8>,
        words: Vec<Vec<u8>>,
        rule: String,
    },
    /// All writes of the call, except those to protected names.
    Writes,
    /// Writes to this protected name.
    Name(BytesPath),
}

/// What a pending call does once it is answered.
#[derive(Debug)]
pub(super) enum HeldAt {
    /// A program before its exec, with the ticket for it.
    BeforeExec(Ticket),
    /// A program after its exec.
    AfterExec,
    Write(Question),
}

/// A system call that waits for an answer.
#[derive(Debug)]
pub(super) struct PendingCall {
    /// The id of the kernel's question.
    pub(super) id: u64,
    pub(super) process: i32,
    pub(super) about: Subject,
    pub(super) asked: AskedProgram,
    pub(super) waits: HeldAt,
}

/// The answers so far, the open question, and the calls that wait.
#[derive(Debug, Default)]
pub(super) struct Questions {
    held: Vec<PendingCall>,
    answers: HashMap<Subject, bool>,
    /// The open question: its number and its subject.
    open: Option<(u32, Subject)>,
    n_asked: u32,
}

/// A question with its number.
pub(super) type NumberedQuestion = (u32, AskedProgram);

impl Questions {
    /// Returns the answer already given about this.
    pub(super) fn answer(&self, about: &Subject) -> Option<bool> {
        self.answers.get(about).copied()
    }

    /// Adds a pending call, and returns the question to ask now. An error is the call with its
    /// answer: it is known already, or no question can be asked.
    pub(super) fn hold(
        &mut self,
        held: PendingCall,
    ) -> Result<Option<NumberedQuestion>, Box<(PendingCall, bool)>> {
        // An approval covers what was shown whole; of a write that is the path.
        let is_not_whole = held.asked.truncated && held.asked.write.is_none();
        let cannot_be_asked =
            is_not_whole || self.held.len() >= MOST || self.n_asked >= MAX_QUESTIONS;
        match self.answers.get(&held.about) {
            Some(&yes) => Err(Box::new((held, yes))),
            None if cannot_be_asked => Err(Box::new((held, false))),
            None => {
                self.held.push(held);
                Ok(self.next())
            }
        }
    }

    /// Returns the next question, where none is open.
    fn next(&mut self) -> Option<NumberedQuestion> {
        if self.open.is_some() {
            return None;
        }
        let held = self.held.first().filter(|_| self.n_asked < MAX_QUESTIONS)?;
        let number = self.n_asked;
        self.n_asked += 1;
        self.open = Some((number, held.about.clone()));
        Some((number, held.asked.clone()))
    }

    /// Takes an answer; returns all calls that waited for it, and the next question. An answer to a
    /// question that is not open changes nothing.
    pub(super) fn answered(
        &mut self,
        number: u32,
        yes: bool,
    ) -> (Vec<PendingCall>, Option<NumberedQuestion>) {
        let Some((_, about)) = self.open.take_if(|(open, _)| *open == number) else {
            return (Vec::new(), None);
        };
        let (answered, waiting) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|held| held.about == about);
        self.held = waiting;
        self.answers.insert(about, yes);
        let next = self.next();
        (answered, next)
    }

    /// Returns the calls that can no longer be asked about.
    pub(super) fn given_up(&mut self) -> Vec<PendingCall> {
        if self.open.is_none() && self.n_asked >= MAX_QUESTIONS {
            std::mem::take(&mut self.held)
        } else {
            Vec::new()
        }
    }

    /// Forgets calls whose thread is gone, as `is_there` tells.
    pub(super) fn retain(&mut self, is_there: impl Fn(u64) -> bool) {
        self.held.retain(|held| is_there(held.id));
    }
}

/// Builds the question about a program.
pub(super) fn question(program: &Program, directory: Vec<u8>, rule: &str) -> AskedProgram {
    let (words, truncated) = shortened(&program.argv);
    let argv = words.into_iter().map(BytesPath::from_bytes).collect();
    let file = program
        .file
        .as_ref()
        .map(|file| file.name.clone())
        .unwrap_or_default();
    let (file, directory) = (
        BytesPath::from_bytes(file),
        BytesPath::from_bytes(directory),
    );
    AskedProgram {
        argv,
        truncated,
        directory,
        file,
        rule: rule.to_owned(),
        write: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(id: u64, words: &str) -> PendingCall {
        let about = Subject::Program {
            called: Vec::new(),
            words: vec![words.into()],
            rule: String::new(),
        };
        let asked = AskedProgram {
            argv: vec![words.into()],
            truncated: words.ends_with('…'),
            directory: "/".into(),
            file: "/x".into(),
            rule: String::new(),
            write: None,
        };
        PendingCall {
            id,
            process: 1,
            about,
            asked,
            waits: HeldAt::AfterExec,
        }
    }

    type Holding = Result<Option<NumberedQuestion>, Box<(PendingCall, bool)>>;

    /// Returns the number of the question that was asked.
    fn is_asked(holding: &Holding) -> Option<u32> {
        holding.as_ref().ok()?.as_ref().map(|(number, _)| *number)
    }

    fn waits(holding: &Holding) -> bool {
        holding.is_ok() && is_asked(holding).is_none()
    }

    fn is_answered(holding: &Holding) -> Option<bool> {
        holding.as_ref().err().map(|answered| answered.1)
    }

    fn ids(held: &[PendingCall]) -> Vec<u64> {
        held.iter().map(|held| held.id).collect()
    }

    #[test]
    fn one_question_is_open_and_its_answer_goes_to_all_equal_calls() {
        let mut questions = Questions::default();
        assert_eq!(is_asked(&questions.hold(held(1, "push"))), Some(0));
        for (id, words) in [(2, "push"), (3, "publish"), (4, "push")] {
            assert!(waits(&questions.hold(held(id, words))));
        }
        assert_eq!(
            questions.answered(7, true).0.len(),
            0,
            "no such question is open"
        );
        let (answered, next) = questions.answered(0, true);
        assert_eq!(
            (ids(&answered), next.as_ref().map(|(number, _)| *number)),
            (vec![1, 2, 4], Some(1))
        );
        assert_eq!(
            questions.answered(0, false).0.len(),
            0,
            "a repeated answer changes nothing"
        );
        assert_eq!(is_answered(&questions.hold(held(5, "push"))), Some(true));
        assert!(waits(&questions.hold(held(6, "publish"))));
        let (answered, next) = questions.answered(1, false);
        assert_eq!((ids(&answered), next), (vec![3, 6], None));
        assert_eq!(
            is_answered(&questions.hold(held(8, "publish"))),
            Some(false)
        );
    }

    #[test]
    fn gone_truncated_and_excess_calls_are_not_asked_about() {
        let mut questions = Questions::default();
        assert_eq!(is_answered(&questions.hold(held(1, "long …"))), Some(false));
        for n in 0..MOST as u64 {
            assert!(questions.hold(held(n, "storm")).is_ok());
        }
        assert_eq!(
            is_answered(&questions.hold(held(999, "storm"))),
            Some(false)
        );
        questions.retain(|id| id == 5);
        assert_eq!(ids(&questions.answered(0, true).0), [5]);
        for n in 1..MAX_QUESTIONS {
            assert_eq!(is_asked(&questions.hold(held(1, &n.to_string()))), Some(n));
            questions.answered(n, true);
        }
        assert_eq!(
            is_answered(&questions.hold(held(1, "one more"))),
            Some(false)
        );
    }
}
