use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use super::Conversation;
use super::Failure;
use super::Interrupt;
use super::Options;
use super::Outcome;
use super::budget::Spent;
use super::budget::Standing;
use super::budget::last_word;
use super::budget::standing;
use super::budget::wrap_up;
use super::calls::carry_out;
use super::gauge::Gauge;
use super::room::Room;
use crate::event::CallStatus;
use crate::event::Kind;
use crate::event::LimitKind;
use crate::event::Progress;
use crate::event::RunStatus;
use crate::event::Sink;
use crate::event::ToolCall;
use crate::event::Unit;
use crate::event::Usage;
use crate::llm;
use crate::llm::Client;
use crate::llm::Finish;
use crate::llm::Message;
use crate::llm::Prompt;
use crate::llm::Reply;
use crate::llm::Request;
use crate::llm::Update;
use crate::tools::Finished;
use crate::tools::Pipeline;
use crate::tools::PipelineError;
use crate::wire::BytesPath;

/// Said where the model had spoken last before its task was broken off.
const GO_ON: &str = "Go on with the task where it was broken off.";

/// One conversation with a model that has tools.
pub struct Agent {
    pub(super) client: Client,
    pub(super) conversation: Conversation,
    pub(super) pipeline: Arc<Pipeline>,
    parallel: usize,
    pub(super) options: Options,
    pub(super) sink: Sink,
    pub(super) gauge: Gauge,
    /// Whether the person was told that calls are taken from the text.
    told_recovery: bool,
}

/// What one task has come to so far.
struct Task {
    begun: Instant,
    spent: Spent,
    tool_calls: u32,
    n_succeeded: u32,
    denied: Vec<String>,
    /// Whether the last call that could change something was denied.
    blocked: bool,
    /// Whether the model was told that the end is near.
    warned: bool,
    n_misunderstood: u32,
    n_silent: u32,
    response: String,
    changed: Vec<(BytesPath, bool)>,
}

/// What the loop does after one turn.
enum Next {
    GoOn,
    Done(RunStatus),
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
        Self { client, conversation: conversation.into(), pipeline, parallel, options, sink, gauge: Gauge::default(), told_recovery: false }
    }

    /// Tells the model something before the first task.
    pub fn add_context(&mut self, text: &str) {
        self.emit(Kind::ContextAdded { text: text.to_owned() });
        self.conversation.tell(text);
    }

    /// Works on one task until the model answers, a limit is reached or somebody stops it. Never panics, never loses what was done.
    pub async fn run(&mut self, text: &str, interrupt: &Interrupt) -> Outcome {
        self.run_since(Instant::now(), Some(text), interrupt).await
    }

    /// Like [`Agent::run`], for a task whose time already runs: what getting ready took is part of it. Without a text the task that an
    /// earlier run left open goes on.
    pub async fn run_since(&mut self, begun: Instant, text: Option<&str>, interrupt: &Interrupt) -> Outcome {
        if let Some(text) = text {
            self.emit(Kind::UserMessage { text: text.to_owned() });
            self.conversation.say(text);
        } else if !self.conversation.history().is_open() {
            // Where the model is to speak next anyway the conversation stays as it was sent; else it must hear that it is its turn.
            self.note(GO_ON);
        }
        let text = self.conversation.history().said().last().cloned().unwrap_or_default();
        let mut task = Task {
            begun,
            spent: Spent::default(),
            tool_calls: 0,
            n_succeeded: 0,
            denied: Vec::new(),
            blocked: false,
            warned: false,
            n_misunderstood: 0,
            n_silent: 0,
            response: String::new(),
            changed: Vec::new(),
        };
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
            match next {
                Next::GoOn => {}
                Next::Done(status) => return outcome(task, status, None, None),
                Next::Failed(failure) => return outcome(task, RunStatus::Failed, None, Some(failure)),
                Next::Limit(kind) => {
                    self.emit(Kind::LimitReached { limit: kind, at_end: true });
                    let failure = self.last_answer(&mut task, kind, &text, interrupt).await;
                    let status = if interrupt.is_ended() { RunStatus::Interrupted } else { RunStatus::Limit };
                    return outcome(task, status, Some(kind), failure);
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
        if room == Room::None {
            return Next::Limit(LimitKind::Context);
        }
        let mut outcome = self.ask(task, &Request::default(), left, interrupt).await;
        if let Err(error) = &outcome
            && let llm::Error::ContextExceeded { prompt, context } = error.root()
        {
            let said = (*prompt, *context);
            outcome = match self.refused(said, self.time_left(task), &mut task.spent.usage, interrupt).await {
                Room::None => return Next::Limit(LimitKind::Context),
                Room::Enough => {
                    // What had come of the answer stands there already.
                    if !self.conversation.history().is_open() {
                        self.note(GO_ON);
                    }
                    self.ask(task, &Request::default(), self.time_left(task), interrupt).await
                }
            };
        }
        let reply = match outcome {
            Ok(reply) => reply,
            // What broke off in the middle broke off for the reason at its root.
            Err(error) => {
                return match error.root() {
                    llm::Error::ContextExceeded { .. } => Next::Limit(LimitKind::Context),
                    llm::Error::Timeout { .. } if self.time_left(task).is_zero() => Next::Limit(LimitKind::Time),
                    _ => Next::Failed(Failure::Model(error)),
                };
            }
        };
        if reply.finish == Finish::Interrupted {
            self.emit(Kind::Interrupted);
            return Next::Done(RunStatus::Interrupted);
        }
        if reply.recovered && !std::mem::replace(&mut self.told_recovery, true) {
            let message = "the model wrote its tool calls as text, where the server did not see them; they are taken from there";
            self.emit(Kind::Warning { message: message.to_owned() });
        }
        if !reply.calls.is_empty() {
            task.n_misunderstood = 0;
            task.n_silent = 0;
            let next = self.calls(task, &reply.calls, interrupt).await;
            // Every call has its result first: servers refuse a conversation in which one is missing.
            if let (Next::GoOn, Some(fault)) = (&next, reply.fault) {
                self.note(&fault);
            }
            return next;
        }
        if let Some(fault) = reply.fault {
            task.n_misunderstood += 1;
            if task.n_misunderstood >= self.options.misunderstandings {
                return Next::Failed(Failure::Misunderstood { count: task.n_misunderstood, last: fault });
            }
            self.note(&fault);
            return Next::GoOn;
        }
        self.answered(task, &reply)
    }

    fn answered(&mut self, task: &mut Task, reply: &Reply) -> Next {
        if reply.text.trim().is_empty() {
            task.n_silent += 1;
            if task.n_silent >= self.options.misunderstandings {
                return Next::Failed(Failure::Silent { count: task.n_silent });
            }
            self.note("Your answer was empty. Call a tool, or say what you did and what you saw.");
            return Next::GoOn;
        }
        if reply.finish == Finish::Length {
            self.emit(Kind::Warning { message: "the answer was cut: it reached the most tokens that one answer may have".to_owned() });
        }
        task.response.clone_from(&reply.text);
        let denied = task.blocked || (self.options.deny_is_failure && !task.denied.is_empty());
        Next::Done(if denied { RunStatus::Blocked } else { RunStatus::Completed })
    }

    async fn calls(&mut self, task: &mut Task, calls: &[ToolCall], interrupt: &Interrupt) -> Next {
        let results = match self.carry_out_in_time(task, calls, interrupt).await {
            Ok(results) => results,
            Err(error) => return Next::Failed(Failure::Sandbox(error)),
        };
        interrupt.idle();
        let mut quit = false;
        for (call, finished) in calls.iter().zip(results) {
            task.tool_calls += 1;
            quit |= finished.quit;
            match finished.status {
                CallStatus::Ok => task.n_succeeded += 1,
                CallStatus::Denied => task.denied.push(format!("{} {}", call.name, short(&call.arguments))),
                CallStatus::Failed | CallStatus::Invalid | CallStatus::Cancelled => {}
            }
            if let Some((path, created)) = finished.changed
                && !task.changed.iter().any(|(known, _)| *known == path)
            {
                task.changed.push((path, created));
            }
            if !finished.read_only {
                task.blocked = finished.status == CallStatus::Denied;
            }
            self.conversation.push(Message::ToolResult {
                call: call.id.clone(),
                name: call.name.clone(),
                is_error: finished.status != CallStatus::Ok,
                text: finished.text,
            });
        }
        if quit || interrupt.is_ended() {
            self.emit(Kind::Interrupted);
            return Next::Done(RunStatus::Interrupted);
        }
        Next::GoOn
    }

    /// Carries out the calls, and cancels what is under way when the time of the task is up: a command must not outlive it.
    async fn carry_out_in_time(&self, task: &Task, calls: &[ToolCall], interrupt: &Interrupt) -> Result<Vec<Finished>, PipelineError> {
        let is_late = AtomicBool::new(false);
        let step = || {
            let step = interrupt.step();
            if is_late.load(Ordering::Relaxed) {
                step.cancel();
            }
            step
        };
        let mut work = std::pin::pin!(carry_out(&self.pipeline, calls, self.parallel, step));
        let left = match self.options.timeout.get() {
            0 => return work.await,
            seconds => Duration::from_secs(seconds).saturating_sub(task.begun.elapsed()),
        };
        match tokio::time::timeout(left, &mut work).await {
            Ok(results) => results,
            Err(_elapsed) => {
                is_late.store(true, Ordering::Relaxed);
                interrupt.end_step();
                work.await
            }
        }
    }

    /// Lets the model say where things stand, without tools. That it fails now is no news worth an error of its own.
    async fn last_answer(&mut self, task: &mut Task, kind: LimitKind, text: &str, interrupt: &Interrupt) -> Option<Failure> {
        if kind == LimitKind::Context {
            // There is no room for another word; what was said last stands.
            return None;
        }
        self.note(&last_word(kind, text));
        let request = Request { no_tools: true, max_tokens: Some(self.last_answer_tokens()), ..Request::default() };
        match self.ask(task, &request, self.options.time_for_last_answer(), interrupt).await {
            Ok(reply) => {
                task.response = reply.text;
                None
            }
            Err(error) if matches!(error.root(), llm::Error::Cancelled) => Some(Failure::Model(error)),
            Err(error) => {
                self.emit(Kind::Warning { message: format!("no summary: {}", error.root()) });
                None
            }
        }
    }

    /// Sends the conversation and records what comes back.
    async fn ask(&mut self, task: &mut Task, request: &Request, within: Duration, interrupt: &Interrupt) -> Result<Reply, llm::Error> {
        let begun = Instant::now();
        let sink = Arc::clone(&self.sink);
        let mut show = |update: Update| {
            if let Some(kind) = shown(update) {
                sink(kind.into());
            }
        };
        let cancel = interrupt.step();
        self.emit(Kind::ModelAsked);
        self.conversation.asked();
        let outcome = self.client.stream(self.conversation.prompt(), request, &mut show, &cancel, within).await;
        interrupt.idle();
        task.spent.turns += 1;
        let (mut reply, error) = match outcome {
            Ok(reply) => (reply, None),
            // What came before it broke off was shown, so it is recorded too.
            Err(error) => (error.partial().cloned().unwrap_or_default(), Some(error)),
        };
        let n_bytes = self.conversation.prompt().n_bytes();
        let interrupted = error.is_some() || reply.finish == Finish::Interrupted;
        if interrupted || request.no_tools {
            // They will not be carried out, and a conversation in which a call has no result is refused.
            reply.calls.clear();
        }
        let usage = if reply.usage.total() == 0 { estimate(self.conversation.prompt(), &reply) } else { reply.usage };
        if error.is_none() || !reply.text.is_empty() {
            task.spent.usage += usage;
            self.emit(Kind::AssistantMessage {
                text: reply.text.clone(),
                thinking: reply.thinking.clone(),
                calls: reply.calls.clone(),
                raw: reply.raw.clone(),
                usage,
                interrupted,
                duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            });
            if !reply.text.is_empty() || !reply.calls.is_empty() {
                self.conversation.push(reply.message());
            }
        }
        if error.is_none() {
            self.gauge.counted(&reply.usage, n_bytes, self.conversation.prompt().n_bytes());
        }
        error.map_or(Ok(reply), Err)
    }

    /// Returns how long a last answer may be: a few paragraphs, unless answers are to be shorter still.
    fn last_answer_tokens(&self) -> u64 {
        let set = self.client.options().max_output_tokens.and_then(|tokens| u64::try_from(tokens).ok());
        set.unwrap_or(1024).min(1024)
    }

    fn time_left(&self, task: &Task) -> Duration {
        let most = self.client.options().request_timeout();
        match self.options.timeout.get() {
            0 => most,
            seconds => Duration::from_secs(seconds).saturating_sub(task.begun.elapsed()).min(most),
        }
    }

    /// Tells the model something of our own.
    fn note(&mut self, text: &str) {
        self.emit(Kind::NoteAdded { text: text.to_owned() });
        self.conversation.push(Message::user(text));
    }

    pub(super) fn emit(&self, kind: Kind) {
        (self.sink)(kind.into());
    }
}

/// Puts together what is reported of a task.
fn outcome(task: Task, status: RunStatus, limit: Option<LimitKind>, failure: Option<Failure>) -> Outcome {
    Outcome {
        status: if failure.is_some() { RunStatus::Failed } else { status },
        response: task.response,
        turns: task.spent.turns,
        tool_calls: task.tool_calls,
        usage: task.spent.usage,
        limit,
        failure,
        denied: task.denied,
        n_succeeded: task.n_succeeded,
        changed: task.changed,
    }
}

fn shown(update: Update) -> Option<Kind> {
    match update {
        Update::Text(text) => Some(Kind::TextDelta { text }),
        Update::Thinking(text) => Some(Kind::ThinkingDelta { text }),
        Update::CallStarted { .. } => None,
        // What is read in a moment needs no bar.
        Update::Prefill { total, .. } if total < 1024 => None,
        Update::Prefill { done, total } => Some(Kind::Progress(Progress {
            task: "the model reads".to_owned(),
            done,
            total: Some(total),
            unit: Unit::Tokens,
            detail: String::new(),
            finished: done >= total,
        })),
        Update::Loading { waited } => Some(Kind::Progress(Progress {
            task: "the model server loads its model".to_owned(),
            done: waited.as_secs(),
            total: None,
            unit: Unit::Steps,
            detail: String::new(),
            finished: false,
        })),
        Update::Retrying { attempt, wait, reason } => {
            Some(Kind::Warning { message: format!("{reason}; trying again in {:.1} s (attempt {attempt})", wait.as_secs_f64()) })
        }
    }
}

/// Counts four bytes a token where the server counts nothing.
fn estimate(prompt: &Prompt, reply: &Reply) -> Usage {
    let written = reply.text.len() + reply.thinking.len() + reply.calls.iter().map(|call| call.arguments.len()).sum::<usize>();
    Usage { prompt: prompt.n_bytes() as u64 / 4, cached: 0, completion: written as u64 / 4, cost_usd: None }
}

fn short(arguments: &str) -> String {
    let end = arguments.floor_char_boundary(120);
    if end < arguments.len() { format!("{}…", &arguments[..end]) } else { arguments.to_owned() }
}
