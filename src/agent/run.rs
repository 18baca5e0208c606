use std::sync::Arc;
use std::time::Instant;

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
use super::meant::only_denies;
use super::moments::Before;
use super::nudge::UNREAD;
use super::nudge::UNSURE;
use super::nudge::nudge;
use super::nudge::nudge_to_run;
use super::nudge::waits;
use super::picture::Looked;
use super::prompt::Context;
use super::room::Room;
use super::task::Task;
use crate::event::CUT_OFF;
use crate::event::Kind;
use crate::event::LimitKind;
use crate::event::OpenAnswer;
use crate::event::RunStatus;
use crate::event::Sink;
use crate::event::ToolMode;
use crate::llm;
use crate::llm::Client;
use crate::llm::Finish;
use crate::llm::Message;
use crate::llm::Reply;
use crate::llm::Unsure;
use crate::session::Past;
use crate::tools::Pipeline;

/// Said where the server's filter cut what the model said.
const FILTERED: &str = "Your last answer was cut by the content filter of the server, and nothing of it was carried out. Give the whole \
                        answer again in other words, or go another way.";
/// Said where the model had spoken last before its task was broken off.
const GO_ON: &str = "Go on with the task where it was broken off.";

/// How much oftener it is asked about calls that it was shown, where each is another one.
const MAX_SHOWN: u32 = 3;

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
    /// Commands that the person ran themselves.
    pub(super) n_by_hand: u32,
}

/// What the loop does after one turn.
pub(super) enum Next {
    GoOn,
    Done(RunStatus),
    /// The answer stays without its end, however often it was gone on with.
    Unended,
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
            n_by_hand: 0,
        }
    }

    /// Goes on as an earlier run of the session had learnt to.
    ///
    /// What the log tells of the conversation itself is in it already; here it is about the way this model has to be asked.
    #[must_use]
    pub fn after(mut self, past: &Past) -> Self {
        let (mode, is_folded) = (self.conversation.prompt().mode(), self.conversation.prompt().is_folded());
        let is_held = past.is_held && mode == ToolMode::Native && self.may_change();
        (self.learnt.is_held, self.learnt.is_folded) = (is_held, is_folded);
        self.learnt.calls_work = past.history.messages().any(|message| matches!(message, Message::ToolResult { is_error: false, .. }));
        self.open.clone_from(&past.open_answer);
        if past.is_blind {
            self.pipeline.set_images(false);
        }
        let (before, after) = self.conversation.around_last_answer();
        self.gauge.recall(&past.fullness, before, after);
        self
    }

    /// Tells the model something before the first task.
    pub fn add_context(&mut self, context: &Context) {
        self.emit(Kind::ContextAdded { text: context.text.clone(), seen: context.seen.clone() });
        self.conversation.tell(&context.text);
        self.pipeline.recall_seen(&context.seen);
    }

    /// Works on one task until the model answers, a limit is reached or somebody stops it. Never panics, never loses what was done.
    pub async fn run(&mut self, text: &str, interrupt: &Interrupt) -> Outcome {
        self.run_since(Instant::now(), Some(text), interrupt).await
    }

    /// Like [`Agent::run`], for a task whose time already runs: what getting ready took is part of it. Without a text the task that an
    /// earlier run left open goes on.
    pub async fn run_since(&mut self, begun: Instant, text: Option<&str>, interrupt: &Interrupt) -> Outcome {
        let outcome = match self.before_task(text, begun, interrupt).await {
            // Apart, as the whole loop is too much for every future that waits for it.
            Before::GoOn(notes) => Box::pin(self.work(begun, text, notes, interrupt)).await,
            Before::Not(status, limit, failure) => Task::new(begun).outcome(status, limit, failure),
        };
        self.after_task(&outcome, interrupt).await;
        outcome
    }

    async fn work(&mut self, begun: Instant, text: Option<&str>, notes: Vec<String>, interrupt: &Interrupt) -> Outcome {
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
                    self.emit(Kind::LimitReached { limit: LimitKind::Time, at_end: true });
                    return Task::new(begun).outcome(RunStatus::Limit, Some(LimitKind::Time), None);
                }
                Err(failure) => return Task::new(begun).outcome(RunStatus::Failed, None, Some(failure)),
            };
            self.emit(Kind::UserMessage { text: text.to_owned(), images: u32::try_from(images.len()).unwrap_or(u32::MAX) });
            self.conversation.say(text);
            self.show_images(images);
        } else if !self.conversation.history().is_open() {
            // Where the model is to speak next anyway the conversation stays as it was sent; else it must hear that it is its turn.
            self.recall_question();
            self.note(words_of(&self.open));
        }
        for note in notes {
            self.note(&note);
        }
        let text = self.conversation.history().said().last().cloned().unwrap_or_default();
        let mut task = Task { open: std::mem::take(&mut self.open), ..Task::new(begun) };
        task.is_talk = self.options.max_turns == 1;
        if task.is_talk {
            self.emit(Kind::Warning { message: "with one turn the model can call no tool: it answers from what it is told".to_owned() });
            self.note("No tool can be called. Answer from what you have been told.");
        }
        loop {
            task.spent.time = task.begun.elapsed();
            let next = match standing(&task.spent, &self.options) {
                _ if interrupt.is_ended() => Next::Done(RunStatus::Interrupted),
                Standing::Over(kind) => Next::Limit(kind),
                Standing::Near(kind) if !task.warned => {
                    task.warned = true;
                    self.emit(Kind::LimitReached { limit: kind, at_end: false });
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
                Next::Unended => {
                    let limit = LimitKind::Tokens;
                    self.emit(Kind::LimitReached { limit, at_end: true });
                    return task.outcome(RunStatus::Limit, Some(limit), None);
                }
                Next::Failed(failure) => return task.outcome(RunStatus::Failed, None, Some(failure)),
                Next::Limit(kind) => {
                    self.emit(Kind::LimitReached { limit: kind, at_end: true });
                    if kind == LimitKind::Context {
                        self.warn_of_full_window(interrupt).await;
                    }
                    let failure = self.last_answer(&mut task, kind, &text, interrupt).await;
                    let status = if interrupt.is_ended() { RunStatus::Interrupted } else { RunStatus::Limit };
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
            && let llm::Error::ContextExceeded { prompt, context } = error.root()
        {
            let said = (*prompt, *context);
            outcome = match self.refused(said, self.time_left(task), &mut task.spent.usage, interrupt).await {
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
                return match error.root() {
                    llm::Error::ContextExceeded { .. } => Next::Limit(LimitKind::Context),
                    llm::Error::Timeout { .. } if self.time_left(task).is_zero() => Next::Limit(LimitKind::Time),
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
            self.emit(Kind::Warning { message: "the answer was cut: it reached the most tokens that one answer may have".to_owned() });
        }
        if reply.recovered && !std::mem::replace(&mut self.told_recovery, true) {
            let message = "the model wrote its tool calls as text, where the server did not see them; they are taken from there";
            self.emit(Kind::Warning { message: message.to_owned() });
        }
        if !reply.calls.is_empty() {
            (task.n_misunderstood, task.n_silent, task.n_filtered) = (0, 0, 0);
            task.open.acted();
            // What was cut behind them is made again.
            task.open.half = reply.half.take();
            let next = self.calls(task, &reply.calls, interrupt).await;
            // Every call has its result first: servers refuse a conversation in which one is missing.
            if let (Next::GoOn, Some(fault)) = (&next, reply.fault) {
                self.note_open(task, &fault);
            }
            return task.cut.filter(|_| matches!(next, Next::GoOn)).map_or(next, Next::Limit);
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
            self.note_open(task, &fault);
            return Next::GoOn;
        }
        self.answered(task, &reply)
    }

    /// Asks again for an answer that the server's filter cut, which is none: nobody knows what it was to say and to do.
    fn filtered(&mut self, task: &mut Task, text: String) -> Next {
        self.emit(Kind::Warning { message: "the model server's content filter cut the answer; nothing of it is carried out".to_owned() });
        // What was let through is all that there may ever be.
        task.response = text;
        task.n_filtered += 1;
        if task.n_filtered >= self.options.misunderstandings {
            return Next::Failed(Failure::Filtered { count: task.n_filtered });
        }
        self.note_open(task, FILTERED);
        Next::GoOn
    }

    fn answered(&mut self, task: &mut Task, reply: &Reply) -> Next {
        if reply.text.trim().is_empty() {
            task.n_silent += 1;
            if task.n_silent >= self.options.misunderstandings {
                if let Some(first) = task.open.answer.take().filter(|first| !first.is_empty()) {
                    task.response = first;
                    return Next::Done(completed(&self.options, task));
                }
                return Next::Failed(Failure::Silent { count: task.n_silent });
            }
            // With a single turn no tool can be called, whatever the model was told.
            if !task.is_talk {
                self.learn_from_silence(reply);
            }
            let cut = "Your answer reached the limit of tokens before it said anything. Think less, then call a tool, or say what you did and what you saw.";
            let empty = "Your answer was empty. Call a tool, or say what you did and what you saw.";
            self.note_open(task, if reply.finish == Finish::Length { cut } else { empty });
            return Next::GoOn;
        }
        // As it was written: where no tool can be called, calls are left out of the text.
        if task.is_talk && ends_with_call(reply.written.as_ref().unwrap_or(&reply.text), self.conversation.prompt().known()) {
            // It was to answer, and wanted to do something first.
            task.response.clone_from(&reply.text);
            return Next::Limit(LimitKind::Turns);
        }
        if reply.finish == Finish::Length && task.open.pieces.len() < self.options.misunderstandings as usize {
            // A piece that goes on in plain words is in it still.
            task.open.in_object = reply.is_in_object || task.open.in_object && !task.open.pieces.is_empty();
            task.open.pieces.push(reply.text.clone());
            task.open.doubted.extend(reply.unsure.iter().flat_map(|unsure| unsure.calls.clone()));
            self.note_open(task, CUT_OFF);
            return Next::GoOn;
        }
        let unsure = task.unsure(reply);
        // Once, and again where the model meant it the time before, or comes with another call when it is asked about one.
        if let Some(unsure) = &unsure
            && !task.is_talk
            && !unsure.calls.is_empty()
            && task.open.n_asked >= self.most_questions(task, unsure)
        {
            // Another call each time is no answer to the question, and none of them is what the person is to read.
            task.response.clone_from(&unsure.text);
            return Next::Failed(Failure::Misunderstood { count: task.open.n_asked, last: UNSURE.to_owned(), is_cut: false });
        }
        if let Some(unsure) = &unsure
            && !task.is_talk
            && unsure.calls.is_empty()
            && task.open.n_asked > 0
            && (ends_as_call(&reply.text) || waits(&reply.text))
        {
            // What is said behind one may speak of it; but nothing is.
            task.response.clear();
            task.open.pieces.clear();
            return Next::Failed(Failure::Misunderstood { count: task.open.n_asked + 1, last: UNREAD.to_owned(), is_cut: false });
        }
        if let Some(unsure) = &unsure
            && !task.is_talk
            && (task.open.answer.as_ref().is_none_or(String::is_empty) || !unsure.calls.is_empty())
        {
            task.open.n_asked += 1;
            task.open.answer = Some(task.whole(&reply.text));
            task.open.asked.clone_from(&unsure.calls);
            self.note_open(task, if unsure.calls.is_empty() { UNREAD } else { UNSURE });
            return Next::GoOn;
        }
        // Asked about one command, it may well show the next one once it has done something.
        let is_first = task.open.answer.is_none();
        if task.open.answer.as_ref().is_none_or(String::is_empty)
            && !task.is_talk
            && !self.conversation.prompt().tools().is_empty()
            && let Some(words) = nudge(&reply.text, task.has_worked).filter(|_| is_first).or_else(|| self.nudge_to_run(task, &reply.text))
        {
            task.open.answer = Some(task.whole(&reply.text));
            self.note_open(task, words);
            return Next::GoOn;
        }
        let n_pieces = task.open.pieces.len() + 1;
        // What was said last counts: after a nudge it may well be a correction, unless it only says that none is needed.
        let is_remark = n_pieces == 1 && only_denies(&reply.text);
        task.response = match task.open.answer.take().filter(|first| is_remark && !first.trim().is_empty()) {
            Some(first) => first,
            None => task.whole(&reply.text),
        };
        if reply.finish == Finish::Length {
            // The next message may go on with it; whoever reads this one must know that it has no end.
            let message = format!(
                "the answer is incomplete: it reached the most tokens that one answer may have {}; a larger `llm.max_output_tokens`, or \
                 a task that asks for less at once, lets it come to its end",
                if n_pieces == 1 { "and is not gone on with".to_owned() } else { format!("{n_pieces} times in a row") },
            );
            self.emit(Kind::Warning { message });
            return Next::Unended;
        }
        Next::Done(completed(&self.options, task))
    }

    /// Returns how often the model is asked about calls that it does not make plainly. A text may show several, and each is a question of its own.
    fn most_questions(&self, task: &Task, unsure: &Unsure) -> u32 {
        let is_other = unsure.is_shown && !task.is_confirmed(&unsure.calls);
        self.options.misunderstandings.saturating_mul(if is_other { MAX_SHOWN } else { 1 })
    }

    fn nudge_to_run(&self, task: &Task, answer: &str) -> Option<&'static str> {
        let prompt = self.conversation.prompt();
        // A model whose server reports its calls makes them there.
        let is_by_text = prompt.mode() != ToolMode::Native || self.learnt.is_held;
        (is_by_text && prompt.tools().iter().any(|tool| tool.name == "bash")).then(|| nudge_to_run(answer, task.has_worked))?
    }

    /// Tells the model what its next answer is to be about, with what that is read with, whoever reads it.
    fn note_open(&mut self, task: &Task, text: &str) {
        if !task.open.is_none() {
            self.emit(Kind::AnswerOpen(task.open.clone()));
        }
        self.note(text);
    }

    /// Tells the model something of our own.
    pub(super) fn note(&mut self, text: &str) {
        self.emit(Kind::NoteAdded { text: text.to_owned() });
        self.conversation.push(Message::user(text));
    }

    pub(super) fn emit(&self, kind: Kind) {
        (self.sink)(kind.into());
    }
}

/// Returns whether a text holds calls, and no words behind them.
fn ends_with_call(text: &str, tools: &llm::text::Tools) -> bool {
    let parsed = llm::text::parse(text, tools, None);
    !parsed.calls.is_empty() && text.trim_start().starts_with(parsed.content.trim())
}

/// Returns whether an answer has an end like that of a call, with no words behind.
fn ends_as_call(text: &str) -> bool {
    llm::shown::undressed(text).trim_end().ends_with(['>', '}', ']'])
}

/// Returns what to tell a model that spoke last before its task was broken off.
fn words_of(open: &OpenAnswer) -> &'static str {
    if !open.asked.is_empty() {
        UNSURE
    } else if !open.pieces.is_empty() {
        CUT_OFF
    } else {
        GO_ON
    }
}

fn completed(options: &Options, task: &Task) -> RunStatus {
    let denied = task.blocked || (options.deny_is_failure && !task.denied.is_empty());
    if denied { RunStatus::Blocked } else { RunStatus::Completed }
}
