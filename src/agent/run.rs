use std::sync::Arc;
use std::time::Instant;

use async_recursion::async_recursion as boxed;
use tokio::sync::Semaphore;

use super::Conversation;
use super::Failure;
use super::Interrupt;
use super::Options;
use super::Outcome;
use super::adapt::ModelQuirks;
use super::budget::BudgetState;
use super::budget::LEAST_ANSWER;
use super::budget::Spent;
use super::budget::wrap_up;
use super::context_window::WindowFit;
use super::denials::Denials;
use super::early_calls::cancel_all;
use super::folder_instructions::FolderInstructions;
use super::ledger::Account;
use super::ledger::Ledger;
use super::named_images::ImageLookup;
use super::nudge::LOOKS_LIKE;
use super::prompt::ProjectContext;
use super::request_limit::AtLimit;
use super::settings_hooks::TaskStart;
use super::task::Task;
use super::window_gauge::WindowGauge;
use podbay_event::CUT_OFF;
use podbay_event::Kind;
use podbay_event::LimitKind;
use podbay_event::MessageQueue;
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
use podbay_tools::Asker;
use podbay_tools::Pipeline;

/// The message to the model if it had spoken last before its task was interrupted.
const GO_ON: &str = "Continue the task where it was interrupted.";

/// A conversation with a model that has tools.
pub struct Agent {
    pub(super) client: Client,
    pub(super) conversation: Conversation,
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) parallel: usize,
    /// One permit for each read-only call that may run at once, early ones included.
    pub(super) places: Arc<Semaphore>,
    pub(super) options: Options,
    pub(super) sink: Sink,
    pub(super) gauge: WindowGauge,
    /// Whether the user was told that calls are parsed from the text.
    reported_recovery: bool,
    /// Whether the session-start hooks have run.
    pub(super) has_begun: bool,
    /// Their output, until the model is told.
    pub(super) greeting: String,
    pub(super) quirks: ModelQuirks,
    pub(super) denials: Denials,
    /// How the answer to an open task is to be parsed, if an earlier run left one.
    pub(super) open: OpenAnswer,
    /// The result of the last task, if an earlier run was stopped before it could report it.
    settled: Option<TaskEnd>,
    /// Number of commands that the user ran themselves.
    pub(super) n_user_commands: u32,
    /// Who is asked at the limit on requests; without one it ends a task.
    pub(super) asks_for_more: Option<Arc<dyn Asker>>,
    /// What it uses, among the agents of its task.
    pub(super) account: Account,
    /// Messages that the user types while a task runs.
    queue: MessageQueue,
    pub(super) folder_instructions: FolderInstructions,
}

/// What the loop does after one turn.
pub(super) enum NextStep {
    GoOn,
    Done(RunStatus),
    /// A limit without a final answer: the answer was continued too often and stays incomplete, or
    /// the server was unreachable until the end.
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
            gauge: WindowGauge::default(),
            reported_recovery: false,
            has_begun: false,
            greeting: String::new(),
            quirks: ModelQuirks::default(),
            denials: Denials::default(),
            open: OpenAnswer::default(),
            settled: None,
            n_user_commands: 0,
            asks_for_more: None,
            account: Ledger::default().main(),
            queue: MessageQueue::default(),
            folder_instructions: FolderInstructions::default(),
        }
    }

    /// Has messages that the user types while a task runs join it, from this queue.
    pub fn read_queue(&mut self, queue: MessageQueue) {
        self.queue = queue;
    }

    /// Restores what an earlier run of the session learnt about this model.
    /// The conversation itself contains the rest of the log already.
    #[must_use]
    pub fn with_past(mut self, past: &ResumeState) -> Self {
        let (mode, is_folded) = (
            self.conversation.prompt().mode(),
            self.conversation.prompt().is_folded(),
        );
        let is_held = past.is_held && mode == ToolMode::Native && self.may_change();
        (self.quirks.is_held, self.quirks.is_folded) = (is_held, is_folded);
        self.quirks.was_held = past.was_held && mode == ToolMode::Text;
        self.quirks.calls_work = past.history.messages().any(|message| {
            matches!(
                message,
                Message::ToolResult {
                    is_error: false,
                    ..
                }
            )
        });
        self.folder_instructions.recall(&past.instructions);
        self.open.clone_from(&past.open_answer);
        self.settled = past.settled().cloned();
        if past.is_blind {
            self.pipeline.set_images(false);
        }
        let (before, with_past) = self.conversation.around_last_answer();
        self.gauge.recall(
            &past.fullness,
            self.gauge.told(&self.client),
            before,
            with_past,
        );
        self
    }

    /// Adds context for the model before the first task.
    pub fn add_context(&mut self, context: &ProjectContext) {
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
            instructions: context.instructions.clone(),
            seen: context.seen.clone(),
        });
        self.conversation.tell(&context.text);
        self.pipeline.recall_seen(&context.seen);
    }

    /// Tells the model something that is not about the project, at this point of the conversation.
    pub fn add_note(&mut self, text: &str) {
        self.note(text);
    }

    /// Returns how many messages of the user begin a turn of this conversation.
    pub fn n_turns(&self) -> usize {
        self.conversation.history().n_turns()
    }

    /// Works on one task until the model answers, a limit is reached or the user stops it. Never
    /// panics, never loses what was done.
    #[boxed]
    pub async fn run(&mut self, text: &str, interrupt: &Interrupt) -> Outcome {
        self.run_since(Instant::now(), Some(text), interrupt).await
    }

    /// Like [`Agent::run`], for a task whose time began earlier, including its preparation. Without
    /// a text the open task of an earlier run is resumed.
    #[boxed]
    pub async fn run_since(
        &mut self,
        begun: Instant,
        text: Option<&str>,
        interrupt: &Interrupt,
    ) -> Outcome {
        let settled = self.settled.take().filter(|_| text.is_none());
        self.account.begin(self.own_limits(), begun);
        let mut outcome = match self.before_task(text, begun, interrupt).await {
            TaskStart::GoOn(_)
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
            // A separate future, as the whole loop is too large for every future that awaits it.
            TaskStart::GoOn(notes) => Box::pin(self.work(begun, text, notes, interrupt)).await,
            TaskStart::Not(status, limit, failure) => {
                Task::new(begun).outcome(status, limit, failure)
            }
        };
        self.after_task(&outcome, interrupt).await;
        self.account.publish(Spent {
            turns: outcome.turns,
            usage: outcome.usage,
            ..Spent::default()
        });
        outcome.usage = self.account.total(outcome.usage);
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
            // A new task is independent of the open one.
            self.open = OpenAnswer::default();
            let images = match self.look_at(text, begun, interrupt).await {
                Ok(ImageLookup::All(images)) => images,
                Ok(ImageLookup::Stopped) => {
                    self.emit(Kind::Interrupted);
                    return Task::new(begun).outcome(RunStatus::Interrupted, None, None);
                }
                Ok(ImageLookup::Late) => {
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
            // If the model is to speak next anyway the conversation stays as it was sent; else it
            // is told to continue.
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
        // Before anything else, which may take a while.
        self.emit(Kind::TaskEnded(TaskEnd {
            status,
            response,
            denied,
        }));
        outcome
    }

    /// Runs turns until the task ends.
    async fn until_done(&mut self, mut task: Task, text: &str, interrupt: &Interrupt) -> Outcome {
        loop {
            task.spent.time = task.begun.elapsed();
            self.account.publish(task.spent);
            if task.spent.turns > 0 && task.open.is_none() && !interrupt.is_ended() {
                self.add_queued();
            }
            let bill = self.account.bill(&task.spent, &self.own_limits());
            let next = match bill.state {
                _ if interrupt.is_ended() => NextStep::Done(RunStatus::Interrupted),
                BudgetState::Over(kind) => NextStep::Limit(kind),
                BudgetState::Near(kind) if !task.warned => {
                    task.warned = true;
                    self.emit(Kind::LimitReached {
                        limit: kind,
                        at_end: false,
                    });
                    self.note(&wrap_up(kind, &bill.spent, &bill.limits));
                    self.turn(&mut task, interrupt).await
                }
                _ => match self.at_request_limit(&mut task, interrupt).await {
                    AtLimit::GoOn => self.turn(&mut task, interrupt).await,
                    AtLimit::Stop => NextStep::Ended(LimitKind::Turns),
                    AtLimit::Interrupted => {
                        self.emit(Kind::Interrupted);
                        NextStep::Done(RunStatus::Interrupted)
                    }
                },
            };
            // Early calls whose results are not needed after all.
            cancel_all(std::mem::take(&mut task.early)).await;
            match next {
                NextStep::GoOn => {}
                NextStep::Done(status) => return task.outcome(status, None, None),
                NextStep::Ended(limit) => {
                    self.emit(Kind::LimitReached {
                        limit,
                        at_end: true,
                    });
                    return task.outcome(RunStatus::Limit, Some(limit), None);
                }
                NextStep::Failed(failure) => {
                    return task.outcome(RunStatus::Failed, None, Some(failure));
                }
                NextStep::Limit(kind) => {
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

    /// Adds what the user typed meanwhile: every call has its result, and no answer is half there.
    fn add_queued(&mut self) {
        while let Some(message) = self.queue.take_for_task() {
            self.emit(Kind::UserMessageAdded {
                text: message.text.clone(),
            });
            self.conversation.say_more(&message.text);
        }
    }

    /// One request and the execution of its calls.
    async fn turn(&mut self, task: &mut Task, interrupt: &Interrupt) -> NextStep {
        let left = self.time_left(task);
        let room = self.watch(left, &mut task.spent.usage, interrupt).await;
        if interrupt.is_ended() {
            return NextStep::Done(RunStatus::Interrupted);
        }
        // With nothing done yet, a nearly full window may still hold the answer.
        if room == WindowFit::None
            && (task.spent.turns > 0 || !self.has_room_for_answer(interrupt).await)
        {
            return NextStep::Limit(LimitKind::Context);
        }
        if let Some((LimitKind::Tokens, left)) = self.left(task, interrupt).await
            && left < LEAST_ANSWER
            && task.spent.turns > 0
        {
            // The next answer would exceed the limit; the final one is short and may not.
            return NextStep::Limit(LimitKind::Tokens);
        }
        task.spent.turns += 1;
        let mut outcome = self.ask_adapting(task, interrupt).await;
        if let Err(error) = &outcome
            && let Some((said, is_sure)) = self.refusal_sizes(error, interrupt).await
        {
            outcome = match self
                .refused(said, self.time_left(task), &mut task.spent.usage, interrupt)
                .await
            {
                WindowFit::None if !is_sure => outcome,
                WindowFit::None => {
                    if error.partial().is_none() {
                        task.spent.turns -= 1;
                    }
                    return NextStep::Limit(LimitKind::Context);
                }
                WindowFit::Enough => {
                    // The part received so far is already in it.
                    if !self.conversation.history().is_open() {
                        self.note(GO_ON);
                    }
                    self.ask_adapting(task, interrupt).await
                }
            };
        }
        let mut reply = match outcome {
            Ok(reply) => reply,
            // An interrupted answer has the cause of its root error.
            Err(error) => {
                if error.partial().is_none() {
                    // The server was unreachable.
                    task.spent.turns -= 1;
                }
                let is_late = self.time_left(task).is_zero();
                return match error.root() {
                    llm::Error::ContextExceeded { .. } => NextStep::Limit(LimitKind::Context),
                    llm::Error::Timeout { .. } if is_late => NextStep::Limit(LimitKind::Time),
                    // More time might have helped: the task's own time ended while waiting.
                    root if is_late && root.is_retryable() => {
                        self.emit(Kind::Warning {
                            message: format!("the time of this task ran out while waiting for the model server: {root}"),
                        });
                        NextStep::Ended(LimitKind::Time)
                    }
                    _ => NextStep::Failed(Failure::Model(error)),
                };
            }
        };
        if self.options.max_cost > 0.0 && task.is_unpriced {
            return NextStep::Failed(Failure::NoPrice);
        }
        if reply.finish == Finish::Interrupted {
            if reply.text.is_empty() && reply.thinking.is_empty() {
                task.spent.turns -= 1;
            }
            self.emit(Kind::Interrupted);
            return NextStep::Done(RunStatus::Interrupted);
        }
        if reply.finish == Finish::ContentFilter {
            return self.filtered(task, reply.text);
        }
        self.learn_from_form(&reply);
        if reply.finish == Finish::Length && task.cut.is_none() {
            self.emit(Kind::Warning {
                message: "the answer was truncated: it reached the token limit of one answer"
                    .to_owned(),
            });
        }
        if reply.recovered && !std::mem::replace(&mut self.reported_recovery, true) {
            let message = "the model wrote its tool calls as text, which the server did not parse; they are parsed from the text";
            self.emit(Kind::Warning {
                message: message.to_owned(),
            });
        }
        if !reply.calls.is_empty() {
            (task.n_misunderstood, task.n_silent, task.n_filtered) = (0, 0, 0);
            task.open.acted();
            // Truncated calls after it are requested again.
            task.open.half = reply.half.take();
            let next = self.calls(task, &reply.calls, interrupt).await;
            // Every call has its result first: servers refuse a conversation in which one is
            // missing.
            if let (NextStep::GoOn, Some(fault)) = (&next, reply.fault) {
                // Calls that were made and are not executed are the user's to know of, too.
                self.emit(Kind::Warning {
                    message: format!("not all of the model's calls were made: {fault}"),
                });
                self.note_fault(task, &fault);
            }
            return task
                .cut
                .filter(|_| matches!(next, NextStep::GoOn))
                .map_or(next, NextStep::Limit);
        }
        if let Some(kind) = task.cut {
            // A partial answer is better than none if the final one fails.
            task.response = task.whole(&reply.text);
            return NextStep::Limit(kind);
        }
        let tail = task.tail(&reply, self.conversation.prompt().known());
        let has_tail = tail.is_some();
        if let Some(fault) = reply.fault.take().or(tail) {
            task.n_misunderstood += 1;
            if task.n_misunderstood >= self.options.misunderstandings {
                // The text beside it is all that the user gets.
                task.response = if has_tail { String::new() } else { reply.text };
                return NextStep::Failed(Failure::Misunderstood {
                    count: task.n_misunderstood,
                    last: fault,
                    is_cut: reply.finish == Finish::Length,
                });
            }
            self.note_fault(task, &fault);
            return NextStep::GoOn;
        }
        self.answered(task, &reply)
    }

    /// Tells the model what its next answer is to be about, and records how to parse it for a
    /// resumed session.
    pub(super) fn note_open(&mut self, task: &Task, text: &str) {
        if !task.open.is_none() {
            self.emit(Kind::AnswerOpen(task.open.clone()));
        }
        self.note(text);
    }

    /// Tells the model what was wrong with a call and to write it again: it may do that in its
    /// text, even with native tool calls.
    fn note_fault(&mut self, task: &mut Task, fault: &str) {
        self.note_open(task, fault);
    }

    /// Adds a notice from Podbay to the conversation.
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

/// Returns the message to a model that spoke last before its task was interrupted.
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
