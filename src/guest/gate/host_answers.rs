//! Holding a system call until the host has answered, and applying the answer.

use std::sync::Arc;

use nix::errno::Errno;

use super::call_gate::Gate;
use super::call_gate::STACK;
use super::call_gate::State;
use super::exit_code::hold;
use super::listener::Question;
use super::process;
use super::process::Arguments;
use super::process::Program;
use super::questions;
use super::questions::HeldAt;
use super::questions::NumberedQuestion;
use super::questions::PendingCall;
use super::questions::Subject;
use super::ticket::Ticket;
use crate::order::Answer;
use crate::order::Report;
use crate::supervisor::tell;
use podbay_wire::Because;

impl Gate {
    /// Holds a program until the host has answered. Without a ticket its exec has already happened.
    pub(super) fn ask(
        &self,
        state: &mut State,
        id: u64,
        process: i32,
        program: &Program,
        because: &Because,
        ticket: Option<Ticket>,
    ) {
        let Because::Rule { rule, .. } = because else {
            return self.listener().refuse(id, Errno::EACCES);
        };
        let about = Subject::Program {
            called: program.called.clone(),
            words: program.argv.words.clone(),
            rule: rule.clone(),
        };
        let asked = questions::question(program, process::directory(process), rule);
        let waits = ticket.map_or(HeldAt::AfterExec, HeldAt::BeforeExec);
        self.hold(
            state,
            PendingCall {
                id,
                process,
                about,
                asked,
                waits,
            },
        );
    }

    /// Holds a pending call, or answers it at once where the answer is known or no question can be
    /// asked.
    pub(super) fn hold(&self, state: &mut State, held: PendingCall) {
        state.questions.retain(|id| self.listener().is_waiting(id));
        match state.questions.hold(held) {
            Ok(next) => self.put(next),
            Err(answered) => {
                let (held, yes) = *answered;
                if let Some(question) = self.settle(state, held, yes) {
                    self.listener().continue_call(question.id);
                }
            }
        }
    }

    fn put(&self, next: Option<NumberedQuestion>) {
        if let Some((question, program)) = next {
            tell(
                &self.teller,
                &Report::Asks {
                    question,
                    program: Box::new(program),
                },
            );
        }
    }

    /// Receives the host's answer.
    pub(crate) fn answered(self: &Arc<Self>, Answer { question, go_on }: Answer) {
        let mut state = self.state();
        state.questions.retain(|id| self.listener().is_waiting(id));
        let (answered, next) = state.questions.answered(question, go_on);
        let writes: Vec<Question> = answered
            .into_iter()
            .filter_map(|held| self.settle(&mut state, held, go_on))
            .collect();
        self.put(next);
        for held in state.questions.given_up() {
            self.settle(&mut state, held, false);
        }
        drop(state);
        self.write_again(writes);
    }

    /// Answers a pending call; returns a write that may continue.
    fn settle(&self, state: &mut State, held: PendingCall, yes: bool) -> Option<Question> {
        let PendingCall {
            id,
            process,
            about,
            waits,
            asked,
            ..
        } = held;
        match (yes, waits) {
            (true, HeldAt::Write(question)) => return Some(question),
            (true, waits) => {
                if let HeldAt::BeforeExec(ticket) = waits {
                    state.tickets.insert(process, ticket.allowed());
                }
                self.listener().continue_call(id);
            }
            (false, waits) => {
                let (argv, because) = match (about, asked.write) {
                    (Subject::Program { words, rule, .. }, _) => (
                        Arguments {
                            words,
                            truncated: false,
                        },
                        Because::Refused { rule },
                    ),
                    (_, write) => {
                        let words = asked
                            .argv
                            .iter()
                            .map(|word| word.as_bytes().to_vec())
                            .collect();
                        let path = write.map(|write| write.path).unwrap_or_default();
                        (
                            Arguments {
                                words,
                                truncated: asked.truncated,
                            },
                            Because::Write { path },
                        )
                    }
                };
                let has_begun = matches!(waits, HeldAt::AfterExec);
                state.denied.add(&argv, because, has_begun);
                if !has_begun {
                    self.listener().refuse(id, Errno::EACCES);
                } else if self.listener().is_waiting(id) {
                    self.end(id, hold(process).as_ref());
                }
            }
        }
        None
    }

    /// Inspects approved writes again: their path may lead elsewhere by now. On a thread of its
    /// own, because the thread that receives answers must not wait for a file system.
    fn write_again(self: &Arc<Self>, writes: Vec<Question>) {
        if writes.is_empty() {
            return;
        }
        let writes = Arc::new(writes);
        let (gate, waiting) = (Arc::clone(self), Arc::clone(&writes));
        let writing = std::thread::Builder::new()
            .name("write".to_owned())
            .stack_size(STACK)
            .spawn(move || gate.write_all(&waiting));
        if writing.is_err() {
            self.write_all(&writes);
        }
    }

    fn write_all(self: &Arc<Self>, writes: &[Question]) {
        for question in writes {
            self.write(question);
        }
    }
}
