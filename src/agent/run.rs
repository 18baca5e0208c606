use std::sync::Arc;
use std::time::Instant;

use async_recursion::async_recursion as boxed;
use tokio::sync::Semaphore;

use super::Conversation;
use super::Failure;
use super::Interrupt;
use super::Options;
use super::Outcome;
use super::adapt::Learnt;
use super::budget::LEAST_ANSWER;
use super::budget::Standing;
use super::budget::standing;
use super::budget::wrap_up;
use super::denials::Denials;
use super::early::take_back;
use super::gauge::Gauge;
use super::moments::Before;
use super::nudge::LOOKS_LIKE;
use super::picture::Looked;
use super::prompt::Context;
use super::room::Room;
use super::task::Task;
use podbay_event::CUT_OFF;
use podbay_event::Kind;
use podbay_event::LimitKind;
use podbay_event::OpenAnswer;
use podbay_event::RunStatus;
use podbay_event::Sink;
use podbay_event::TaskEnd;
use podbay_event::ToolMode;
use podbay_llm as llm;
use podbay_llm::Client;
use podbay_llm::Finish;
use podbay_llm::Message;
use podbay_session::ResumeState;
use podbay_tools::Pipeline;

/// Said where the model had spoken last before its task was broken off.
const GO_ON: &str = "Go on with the task where it was broken off.";

/// One conversation with a model that has tools.
pub struct Agent {
    pub(super) client: Client,
    pub(super) conversation: Conversation,
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) parallel: usize,
    /// One for each read-only call that may run at once, whenever it begins.
    pub(super) places: Arc<Semaphore>,
    pub(super) options: Options,
    pub(super) sink: Sink,
    pub(super) gauge: Gauge,
    /// Whether the person was told that calls are taken from the text.
    told_recovery: bool,
    /// Whether the commands of the settings were told that the session begins.
    pub(super) has_begun: bool,
    /// What they said then, until the model is told.
    pub(super) greeting: String,
    pub(super) learnt: Learnt,
    pub(super) denials: Denials,
    /// What the answer to an open task is read with, where an earlier run left it.
    pub(super) open: OpenAnswer,
    /// What the last task came to, where an earlier run was stopped before it could say so.
    settled: Option<TaskEnd>,
    /// Commands that the person ran themselves.
    pub(super) n_by_hand: u32,
}

/// What the loop does after one turn.
pub(super) enum Next {
    GoOn,
    Done(RunStatus),
    /// A limit after which nobody is asked for a last word: the answer stays without its end,
    /// however often it was gone on with, or the server was still waited for.
    Ended(LimitKind),
    Limit(LimitKind),
    Failed(Failure),
}

impl Agent {
    pub fn new(
        client: Client,
        conversation: impl Into<Conversation>,
        pipeline: Arc<Pipeline>,
        parallel: usize,
        options: Options,
        sink: Sink,
    ) -> Self {
        Self {
            client,
            conversation: conversation.into(),
            pipeline,
            parallel: parallel.max(1),
            places: Arc::new(Semaphore::new(parallel.max(1))),
            options,
            sink,
            gauge: Gauge::default(),
            told_recovery: false,
            has_begun: false,
            greeting: String::new(),
            learnt: Learnt::default(),
            denials: Denials::default(),
            open: OpenAnswer::default(),
            settled: None,
            n_by_hand: 0,
        }
    }

    /// Goes on as an earlier run of the session had learnt to.
    ///
    /// What the log tells of the conversation itself is in it already; here it is about the way
    /// this model has to be asked.
    #[must_use]
    pub fn after(mut self, past: &ResumeState) -> Self {
        let (mode, is_folded) = (
            self.conversation.prompt().mode(),
            self.conversation.prompt().is_folded(),
        );
        let is_held = past.is_held && mode == ToolMode::Native && self.may_change();
        (self.learnt.is_held, self.learnt.is_folded) = (is_held, is_folded);
        self.learnt.was_held = past.was_held && mode == ToolMode::Text;
        self.learnt.calls_work = past.history.messages().any(|message| {
            matches!(
                message,
                Message::ToolResult {
                    is_error: false,
                    ..
                }
            )
        });
        self.open.clone_from(&past.open_answer);
        self.settled = past.settled().cloned();
        if past.is_blind {
            self.pipeline.set_images(false);
        }
        let (before, after) = self.conversation.around_last_answer();
        self.gauge
            .recall(&past.fullness, self.gauge.told(&self.client), before, after);
        self
    }

    /// Tells the model something before the first task.
    pub fn add_context(&mut self, context: &Context) {
        for message in &context.warnings {
            self.emit(Kind::Warning {
                message: message.clone(),
            });
        }
        if context.text.is_empty() {
            return;
        }
        self.emit(Kind::ContextAdded {
            text: context.text.clone(),
            seen: context.seen.clone(),
        });
        self.conversation.tell(&context.text);
        self.pipeline.recall_seen(&context.seen);
    }

    /// Works on one task until the model answers, a limit is reached or somebody stops it. Never
    /// panics, never loses what was done.
    #[boxed]
    pub async fn run(&mut self, text: &str, interrupt: &Interrupt) -> Outcome {
        self.run_since(Instant::now(), Some(text), interrupt).await
    }

    /// Like [`Agent::run`], for a task whose time already runs: what getting ready took is part of
    /// it. Without a text the task that an earlier run left open goes on.
    #[boxed]
    pub async fn run_since(
        &mut self,
        begun: Instant,
        text: Option<&str>,
        interrupt: &Interrupt,
    ) -> Outcome {
        let settled = self.settled.take().filter(|_| text.is_none());
        let outcome = match self.before_task(text, begun, interrupt).await {
            Before::GoOn(_)
                if let Some(TaskEnd {
                    status,
                    response,
                    denied,
                }) = settled =>
            {
                Task {
                    denied,
                    response,
                    ..Task::new(begun)
                }
                .outcome(status, None, None)
            }
            // Apart, as the whole loop is too much for every future that waits for it.
            Before::GoOn(notes) => Box::pin(self.work(begun, text, notes, interrupt)).await,
            Before::Not(status, limit, failure) => Task::new(begun).outcome(status, limit, failure),
        };
        self.after_task(&outcome, interrupt).await;
        outcome
    }

    async fn work(
        &mut self,
        begun: Instant,
        text: Option<&str>,
        notes: Vec<String>,
        interrupt: &Interrupt,
    ) -> Outcome {
        if let Some(text) = text {
            // A new task has nothing to do with what was open.
            self.open = OpenAnswer::default();
            let images = match self.look_at(text, begun, interrupt).await {
                Ok(Looked::All(images)) => images,
                Ok(Looked::Stopped) => {
                    self.emit(Kind::Interrupted);
                    return Task::new(begun).outcome(RunStatus::Interrupted, None, None);
                }
                Ok(Looked::Late) => {
                    self.emit(Kind::LimitReached {
                        limit: LimitKind::Time,
                        at_end: true,
                    });
                    return Task::new(begun).outcome(RunStatus::Limit, Some(LimitKind::Time), None);
                }
                Err(failure) => {
                    return Task::new(begun).outcome(RunStatus::Failed, None, Some(failure));
                }
            };
            self.emit(Kind::UserMessage {
                text: text.to_owned(),
                images: u32::try_from(images.len()).unwrap_or(u32::MAX),
            });
            self.conversation.say(text);
            self.show_images(images);
        } else if !self.conversation.history().is_open() {
            // Where the model is to speak next anyway the conversation stays as it was sent; else
            // it must hear that it is its turn.
            self.note(words_of(&self.open));
        }
        for note in notes {
            self.note(&note);
        }
        let text = self
            .conversation
            .history()
            .said()
            .last()
            .cloned()
            .unwrap_or_default();
        let mut task = Task {
            open: std::mem::take(&mut self.open),
            ..Task::new(begun)
        };
        task.is_talk = self.options.max_turns == 1;
        if task.is_talk {
            self.emit(Kind::Warning {
                message:
                    "with one turn the model can call no tool: it answers from what it is told"
                        .to_owned(),
            });
            self.note("No tool can be called. Answer from what you have been told.");
        }
        let outcome = self.until_done(task, &text, interrupt).await;
        let (status, response, denied) = (
            outcome.status,
            outcome.response.clone(),
            outcome.denied.clone(),
        );
        // Before anything else is done, which may take a while.
        self.emit(Kind::TaskEnded(TaskEnd {
            status,
            response,
            denied,
        }));
        outcome
    }

    /// Has the model speak and does what it asks for, until the task has its end.
    async fn until_done(&mut self, mut task: Task, text: &str, interrupt: &Interrupt) -> Outcome {
        loop {
            task.spent.time = task.begun.elapsed();
            let next = match standing(&task.spent, &self.options) {
                _ if interrupt.is_ended() => Next::Done(RunStatus::Interrupted),
                Standing::Over(kind) => Next::Limit(kind),
                Standing::Near(kind) if !task.warned => {
                    task.warned = true;
                    self.emit(Kind::LimitReached {
                        limit: kind,
                        at_end: false,
                    });
                    self.note(&wrap_up(kind, &task.spent, &self.options));
                    self.turn(&mut task, interrupt).await
                }
                _ => self.turn(&mut task, interrupt).await,
            };
            // What began early and is not carried out after all.
            take_back(std::mem::take(&mut task.early)).await;
            match next {
                Next::GoOn => {}
                Next::Done(status) => return task.outcome(status, None, None),
                Next::Ended(limit) => {
                    self.emit(Kind::LimitReached {
                        limit,
                        at_end: true,
                    });
                    return task.outcome(RunStatus::Limit, Some(limit), None);
                }
                Next::Failed(failure) => {
                    return task.outcome(RunStatus::Failed, None, Some(failure));
                }
                Next::Limit(kind) => {
                    self.emit(Kind::LimitReached {
                        limit: kind,
                        at_end: true,
                    });
                    if kind == LimitKind::Context {
                        self.warn_of_full_window(interrupt).await;
                    }
                    let failure = self.last_answer(&mut task, kind, text, interrupt).await;
                    let status = if interrupt.is_ended() {
                        RunStatus::Interrupted
                    } else {
                        RunStatus::Limit
                    };
                    return task.outcome(status, Some(kind), failure);
                }
            }
        }
    }

    /// One request and what it asks for.
    async fn turn(&mut self, task: &mut Task, interrupt: &Interrupt) -> Next {
        let left = self.time_left(task);
        let room = self.watch(left, &mut task.spent.usage, interrupt).await;
        if interrupt.is_ended() {
            return Next::Done(RunStatus::Interrupted);
        }
        // With nothing done yet, a window that is nearly full may hold the answer all the same.
        if room == Room::None && (task.spent.turns > 0 || !self.holds_an_answer(interrupt).await) {
            return Next::Limit(LimitKind::Context);
        }
        if let Some((LimitKind::Tokens, left)) = self.left(task, interrupt).await
            && left < LEAST_ANSWER
            && task.spent.turns > 0
        {
            // The next answer would pass the limit; the last one may, and is short.
            return Next::Limit(LimitKind::Tokens);
        }
        task.spent.turns += 1;
        let mut outcome = self.ask_adapting(task, interrupt).await;
        if let Err(error) = &outcome
            && let Some((said, is_sure)) = self.says_too_long(error, interrupt).await
        {
            outcome = match self
                .refused(said, self.time_left(task), &mut task.spent.usage, interrupt)
                .await
            {
                Room::None if !is_sure => outcome,
                Room::None => {
                    if error.partial().is_none() {
                        task.spent.turns -= 1;
                    }
                    return Next::Limit(LimitKind::Context);
                }
                Room::Enough => {
                    // What had come of the answer stands there already.
                    if !self.conversation.history().is_open() {
                        self.note(GO_ON);
                    }
                    self.ask_adapting(task, interrupt).await
                }
            };
        }
        let mut reply = match outcome {
            Ok(reply) => reply,
            // What broke off in the middle broke off for the reason at its root.
            Err(error) => {
                if error.partial().is_none() {
                    // Nobody answered.
                    task.spent.turns -= 1;
                }
                let is_late = self.time_left(task).is_zero();
                return match error.root() {
                    llm::Error::ContextExceeded { .. } => Next::Limit(LimitKind::Context),
                    llm::Error::Timeout { .. } if is_late => Next::Limit(LimitKind::Time),
                    // It might have passed: what ended is the task's own time, which was spent
                    // waiting.
                    root if is_late && root.is_retryable() => {
                        self.emit(Kind::Warning {
                            message: format!("the time of this task ended in waiting for the model server: {root}"),
                        });
                        Next::Ended(LimitKind::Time)
                    }
                    _ => Next::Failed(Failure::Model(error)),
                };
            }
        };
        if self.options.max_cost > 0.0 && task.is_unpriced {
            return Next::Failed(Failure::NoPrice);
        }
        if reply.finish == Finish::Interrupted {
            if reply.text.is_empty() && reply.thinking.is_empty() {
                task.spent.turns -= 1;
            }
            self.emit(Kind::Interrupted);
            return Next::Done(RunStatus::Interrupted);
        }
        if reply.finish == Finish::ContentFilter {
            return self.filtered(task, reply.text);
        }
        self.learn_from_form(&reply);
        if reply.finish == Finish::Length && task.cut.is_none() {
            self.emit(Kind::Warning {
                message: "the answer was cut: it reached the most tokens that one answer may have"
                    .to_owned(),
            });
        }
        if reply.recovered && !std::mem::replace(&mut self.told_recovery, true) {
            let message = "the model wrote its tool calls as text, where the server did not see them; they are taken from there";
            self.emit(Kind::Warning {
                message: message.to_owned(),
            });
        }
        if !reply.calls.is_empty() {
            (task.n_misunderstood, task.n_silent, task.n_filtered) = (0, 0, 0);
            task.open.acted();
            // What was cut behind them is made again.
            task.open.half = reply.half.take();
            let next = self.calls(task, &reply.calls, interrupt).await;
            // Every call has its result first: servers refuse a conversation in which one is
            // missing.
            if let (Next::GoOn, Some(fault)) = (&next, reply.fault) {
                self.note_fault(task, &fault);
            }
            return task
                .cut
                .filter(|_| matches!(next, Next::GoOn))
                .map_or(next, Next::Limit);
        }
        if let Some(kind) = task.cut {
            // Half an answer is better than none where the last one fails.
            task.response = task.whole(&reply.text);
            return Next::Limit(kind);
        }
        let tail = task.tail(&reply, self.conversation.prompt().known());
        let has_tail = tail.is_some();
        if let Some(fault) = reply.fault.take().or(tail) {
            task.n_misunderstood += 1;
            if task.n_misunderstood >= self.options.misunderstandings {
                // What was said beside it is all that the person gets.
                task.response = if has_tail { String::new() } else { reply.text };
                return Next::Failed(Failure::Misunderstood {
                    count: task.n_misunderstood,
                    last: fault,
                    is_cut: reply.finish == Finish::Length,
                });
            }
            self.note_fault(task, &fault);
            return Next::GoOn;
        }
        self.answered(task, &reply)
    }

    /// Tells the model what its next answer is to be about, with what that is read with, whoever
    /// reads it.
    pub(super) fn note_open(&mut self, task: &Task, text: &str) {
        if !task.open.is_none() {
            self.emit(Kind::AnswerOpen(task.open.clone()));
        }
        self.note(text);
    }

    /// Tells the model what was wrong with a call and to write it again: it may well do that in its
    /// text, whoever reads its calls else.
    fn note_fault(&mut self, task: &mut Task, fault: &str) {
        self.note_open(task, fault);
    }

    /// Tells the model something of our own.
    pub(super) fn note(&mut self, text: &str) {
        self.emit(Kind::NoteAdded {
            text: text.to_owned(),
        });
        self.conversation.push(Message::user(text));
    }

    pub(super) fn emit(&self, kind: Kind) {
        (self.sink)(kind.into());
    }
}

/// Returns what to tell a model that spoke last before its task was broken off.
fn words_of(open: &OpenAnswer) -> &'static str {
    if open
        .answer
        .as_ref()
        .is_some_and(|answer| !answer.is_empty())
    {
        LOOKS_LIKE
    } else if !open.pieces.is_empty() {
        CUT_OFF
    } else {
        GO_ON
    }
}
