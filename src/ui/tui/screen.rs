//! The state of the full-screen chat. Events, keys and time go in; [`super::draw`] shows it, and
//! [`Effect`]s come out. It does nothing by itself, so that a test can hold a frame of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;

use podbay_event::CallStatus;
use podbay_event::Command;
use podbay_event::Decision;
use podbay_event::Event;
use podbay_event::ExecutionReport;
use podbay_event::Kind;
use podbay_event::MessageQueue;
use podbay_event::Progress;
use podbay_event::ProjectChanges;
use podbay_event::QueuedMessage;

use super::editor::Editor;
use super::inbox::StreamedText;
use super::modal::Ask;
use super::modal::Modal;
use super::page::Page;
use super::panel::Panel;
use super::popup::Popup;
use super::search::Search;
use super::status;
use super::status::Facts;
use super::status::Phase;
use super::status::Status;
use super::status::Working;
use super::theme::Theme;
use super::transcript::Entry;
use super::transcript::Transcript;
use super::vi::Vi;
use crate::Keys;
use crate::agent_lines::AgentLines;
use crate::agent_lines::ShowCalls;
use crate::agent_lines::innermost;
use crate::execution_report;
use crate::note;
use crate::note::Tone;
use crate::slash;
use crate::text;
use crate::turn_summary;
use crate::turn_summary::Count;

/// What the terminal or the driver has to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Send(Command),
    /// Open the user's editor on what is typed.
    Edit(String),
    /// Stop the process until the shell has it continue.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Hand text to the terminal's clipboard.
    Copy(String),
}

/// What the driver and the session tell the screen.
pub(super) enum Told {
    Event(Box<Event>),
    /// Text that streams.
    Streamed(Arc<StreamedText>),
    /// Events of an earlier run of the session.
    Past(Vec<Event>),
    Note(Tone, String),
    Report(Box<ExecutionReport>),
    Ask(Ask),
    Facts(Facts),
    Branch(String),
    Files(Vec<String>),
    Custom(Vec<(String, String)>),
    History(Vec<String>),
    /// A message is waited for: what was queued goes first.
    Ready,
    /// What is typed from now on is queued.
    Busy,
    Clear,
    ToggleThinking,
    /// A message that was not typed here.
    Begun(String),
    Copy(String),
    /// Text for the editor.
    Prefill(String),
    /// What has the whole screen until it is answered.
    Page(Page),
    /// Have the user edit a text; `None` goes back where the editor failed.
    Edit {
        text: String,
        answer: oneshot::Sender<Option<String>>,
    },
    Suspend,
    Close,
}

/// A turn whose summary is on the screen.
struct EndedTurn {
    /// The summary's number in the transcript.
    note: usize,
    count: Count,
    duration_ms: u64,
}

/// All that is on the screen.
pub struct Screen {
    pub(super) theme: Theme,
    pub(super) transcript: Transcript,
    pub(super) editor: Editor,
    /// Where the keys are those of vi.
    pub(super) vi: Option<Vi>,
    pub(super) queue: MessageQueue,
    pub(super) modals: VecDeque<Modal>,
    /// What has the whole screen.
    pub(super) over: Option<Page>,
    pub(super) working: Option<Working>,
    pub(super) status: Status,
    pub(super) popup: Option<Popup>,
    pub(super) search: Option<Search>,
    pub(super) hint: Option<(String, Instant)>,
    /// Lines from the end; 0 follows what comes.
    pub(super) scroll: usize,
    /// How many lines of the conversation were shown last.
    pub(super) page: usize,
    pub(super) chosen: Option<usize>,
    pub(super) files: Vec<String>,
    pub(super) custom: Vec<(String, String)>,
    pub(super) pressed: Option<Instant>,
    /// When a key was typed last.
    pub(super) typed: Option<Instant>,
    /// Whether the terminal is in front, where it says so.
    pub(super) has_focus: Option<bool>,
    pub(super) notification: Option<&'static str>,
    /// The turn that ended last, whose changes are told when they are known.
    ended: Option<EndedTurn>,
    agents: AgentLines,
    progress: Option<Progress>,
    /// The driver waits for a message.
    is_wanted: bool,
    is_closed: bool,
    /// Events are those of an earlier run.
    is_past: bool,
    /// Words of the answer under way were shown as they came.
    is_streamed: bool,
}

impl Screen {
    /// `queue` takes what is typed while the driver has a message.
    pub fn new(theme: Theme, facts: Facts, keys: Keys, queue: MessageQueue) -> Self {
        Self {
            theme,
            transcript: Transcript::default(),
            editor: Editor::default(),
            vi: (keys == Keys::Vi).then(Vi::default),
            queue,
            modals: VecDeque::new(),
            over: None,
            working: None,
            status: Status {
                facts,
                ..Status::default()
            },
            popup: None,
            search: None,
            hint: None,
            scroll: 0,
            page: 0,
            chosen: None,
            files: Vec::new(),
            custom: Vec::new(),
            pressed: None,
            typed: None,
            has_focus: None,
            notification: None,
            ended: None,
            agents: AgentLines::default(),
            progress: None,
            is_wanted: false,
            is_closed: false,
            is_past: false,
            is_streamed: false,
        }
    }

    /// Takes a message of the driver's.
    pub(super) fn told(&mut self, told: Told, now: Instant) -> Vec<Effect> {
        match told {
            Told::Event(event) => self.event(&event, now),
            Told::Streamed(text) => self.event(&text.take().into(), now),
            Told::Past(events) => {
                self.is_past = true;
                self.status.is_planning = false;
                for event in &events {
                    self.event(event, now);
                }
                self.is_past = false;
                self.working = None;
            }
            Told::Report(report) => {
                let lines = execution_report::lines(&report);
                self.transcript.push(Entry::Report(lines));
            }
            Told::Note(tone, words) => self.transcript.note(tone, &words),
            Told::Ask(ask) => self.modals.push_back(Modal::new(ask)),
            Told::Facts(facts) => self.status.facts = facts,
            Told::Branch(branch) => self.status.facts.branch = Some(branch),
            Told::Files(files) => {
                self.files = files;
                // Somebody may have typed the beginning of a name by now.
                if self.popup.is_none() {
                    self.popup = Popup::of(&self.editor, &self.files, &self.custom);
                }
            }
            Told::Custom(custom) => self.custom = custom,
            Told::History(history) => self.editor.set_history(history),
            Told::Ready => {
                let was_stopped = self
                    .working
                    .as_ref()
                    .is_some_and(|working| working.is_stopping);
                if was_stopped {
                    self.return_queued();
                }
                self.working = None;
                self.progress = None;
                self.is_wanted = true;
                self.status.is_ready = true;
                return self.send_next(now);
            }
            Told::Busy => self.is_wanted = false,
            Told::Clear => self.transcript.clear(),
            Told::Begun(message) => {
                self.status.is_ready = true;
                self.transcript.push(Entry::User(message));
                self.begin_working(now, Phase::Waiting);
            }
            Told::ToggleThinking => self.transcript.toggle_thinking(),
            Told::Copy(text) => return vec![Effect::Copy(text)],
            Told::Prefill(words) => self.editor.set(&words),
            Told::Page(page) => self.over = Some(page),
            // The loop has seen to it: it has the terminal.
            Told::Edit { .. } => {}
            Told::Suspend => return vec![Effect::Suspend],
            Told::Close => self.is_closed = true,
        }
        Vec::new()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns whether something moves by itself, so that it is drawn now and then.
    pub(super) fn is_live(&self) -> bool {
        self.working.is_some() || self.progress.is_some() || self.hint.is_some()
    }

    /// Forgets what has had its time.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.hint.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.hint = None;
        }
        if self.over.as_ref().is_some_and(Page::is_withdrawn) {
            self.over = None;
        }
        while self.modals.front().is_some_and(Modal::is_withdrawn) {
            self.modals.pop_front();
        }
    }

    /// Sends a message, or queues it while the driver has one.
    pub(super) fn submit(&mut self, message: String, now: Instant) -> Vec<Effect> {
        self.scroll = 0;
        self.chosen = None;
        self.queue.push(slash::queued(message));
        self.send_next(now)
    }

    /// Sends it before what is queued.
    pub(super) fn submit_first(&mut self, message: &str, now: Instant) -> Vec<Effect> {
        self.scroll = 0;
        self.chosen = None;
        self.queue.push_first(slash::queued(message.to_owned()));
        self.send_next(now)
    }

    fn send_next(&mut self, now: Instant) -> Vec<Effect> {
        if !self.is_wanted {
            return Vec::new();
        }
        let Some(QueuedMessage { text: message, .. }) = self.queue.take_oldest() else {
            return Vec::new();
        };
        self.is_wanted = false;
        let is_ours = message.trim_start().starts_with('/') && !message.trim().starts_with("//");
        if is_ours {
            self.transcript
                .note(Tone::Dim, &format!("\n› {}", message.trim()));
        } else {
            self.transcript.push(Entry::User(message.clone()));
        }
        self.begin_working(now, Phase::Waiting);
        vec![Effect::Send(Command::Say(message))]
    }

    /// Puts what waited for a turn that was stopped back into the editor: it may have been about that
    /// turn.
    fn return_queued(&mut self) {
        let mut texts = self.queue.take_all();
        if texts.is_empty() {
            return;
        }
        if !self.editor.is_empty() {
            texts.push(self.editor.whole());
        }
        self.editor.set(&texts.join("\n"));
    }

    fn begin_working(&mut self, now: Instant, phase: Phase) {
        self.ended = None;
        self.working = Some(Working {
            begun: now,
            phase,
            count: Count::default(),
            is_stopping: false,
        });
    }

    /// Ends the turn under way, once.
    pub(super) fn stop(&mut self) -> Vec<Effect> {
        match &mut self.working {
            Some(working) if !working.is_stopping => {
                working.is_stopping = true;
                vec![Effect::Send(Command::Interrupt)]
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn event(&mut self, event: &Event, now: Instant) {
        let is_past = self.is_past;
        match &event.kind {
            Kind::TextDelta { text } => {
                self.is_streamed = true;
                self.transcript.push_text(text);
                self.phase(Phase::Writing);
            }
            Kind::ThinkingDelta { text } => {
                self.transcript.push_thinking(text);
                self.phase(Phase::Thinking);
            }
            Kind::AssistantMessage {
                text,
                thinking,
                calls: _,
                usage,
                interrupted,
                duration_ms,
                ..
            } => {
                if !std::mem::take(&mut self.is_streamed) && !text.trim().is_empty() {
                    if is_past && !thinking.is_empty() {
                        self.transcript.push_thinking(thinking);
                    }
                    self.transcript.push_text(text);
                }
                self.transcript.end_thinking();
                self.transcript.end_text();
                if *interrupted {
                    self.transcript.note(Tone::Warn, "(cut short)");
                }
                self.counted(*usage, *duration_ms);
                self.phase(Phase::Waiting);
            }
            Kind::UserMessage { text, .. } if is_past => {
                self.transcript.push(Entry::User(text.clone()));
            }
            Kind::UserMessageAdded { text } => {
                self.transcript.end_thinking();
                self.transcript.end_text();
                self.transcript.push(Entry::User(text.clone()));
            }
            Kind::CallStarted {
                call,
                name,
                arguments,
            } => {
                self.transcript.end_thinking();
                self.transcript.end_text();
                let panel = Panel::new(call, name, arguments, now);
                self.transcript.push(Entry::Call(Box::new(panel)));
                if let Some(working) = &mut self.working {
                    working.count.calls += 1;
                }
            }
            Kind::CallOutput { call, text } => {
                if let Some(panel) = self.transcript.panel(call) {
                    panel.push_output(text);
                }
            }
            Kind::CallFinished {
                call,
                name,
                status,
                result,
                duration_ms,
                ..
            } => self.finished(call, name, *status, result, *duration_ms, now),
            Kind::CallDecided {
                name,
                decision: Decision::Deny,
                reason,
                ..
            } => {
                let words = format!("denied: {}: {}", text::line(name), text::line(reason));
                self.transcript.note(Tone::Warn, &words);
            }
            Kind::PermissionAsked { .. } | Kind::QuestionAsked { .. } => self.phase(Phase::Asking),
            Kind::ModelAsked | Kind::PermissionAnswered { .. } => self.phase(Phase::Waiting),
            Kind::ModelReady { model, context, .. } => {
                self.status.facts.model.clone_from(model);
                self.status.window = *context;
            }
            kind @ Kind::SandboxStarted { image, hidden, .. } => {
                self.status.image.clone_from(image);
                if !hidden.is_empty() {
                    self.note(kind);
                }
            }
            Kind::ModeChanged { mode } => self.status.facts.mode.clone_from(mode),
            Kind::SessionStarted { .. } => self.status.is_planning = false,
            kind @ Kind::PlanModeChanged { on, .. } => {
                self.status.is_planning = *on;
                self.note(kind);
            }
            Kind::PlanMade { version, text, .. } => {
                self.transcript.end_thinking();
                self.transcript.end_text();
                self.transcript
                    .note(Tone::Plain, &format!("plan {version}:"));
                self.transcript.push_text(text);
                self.transcript.end_text();
            }
            Kind::ProjectChanged(changes) => self.project_changed(changes),
            Kind::AgentStarted { call, .. }
            | Kind::AgentEvent { call, .. }
            | Kind::AgentFinished { call, .. } => self.agent_event(call, &event.kind),
            Kind::ContextNear { used, window, .. } => {
                self.status.used = *used;
                self.status.window = Some(*window);
            }
            kind @ Kind::ConversationCompacted { after, .. } => {
                self.status.used = *after;
                self.note(kind);
            }
            Kind::Progress(progress) => {
                self.progress = (!progress.finished).then(|| progress.clone());
                if !progress.finished {
                    self.phase(Phase::Step(status::step(progress)));
                } else if self
                    .working
                    .as_ref()
                    .is_some_and(|working| matches!(working.phase, Phase::Step(_)))
                {
                    self.phase(Phase::Waiting);
                }
            }
            Kind::TaskEnded(_) if !is_past => self.end_turn(now),
            // They were about a run that is over.
            Kind::Warning { .. } if is_past => {}
            Kind::SessionResumed { .. } => {}
            kind => self.note(kind),
        }
    }

    fn note(&mut self, kind: &Kind) {
        if let Some((tone, words)) = note::note(kind) {
            self.transcript.note(tone, &words);
        }
    }

    /// Shows what an agent does in the panel of the call that started it.
    fn agent_event(&mut self, call: &str, kind: &Kind) {
        let line = self
            .agents
            .line(kind, ShowCalls::Beginning, crate::Paint::NONE);
        if let (Some(line), Some(panel)) = (line, self.transcript.panel(call)) {
            panel.push_output(&format!("{line}\n"));
        }
        match innermost(kind) {
            Kind::PermissionAsked { .. } | Kind::QuestionAsked { .. } => self.phase(Phase::Asking),
            Kind::PermissionAnswered { .. } => self.phase(Phase::Waiting),
            // Its own window is not the one that the status line tells of.
            Kind::AssistantMessage { usage, .. } => {
                self.status.all.usage += *usage;
                self.status.all.requests += 1;
                if let Some(working) = &mut self.working {
                    working.count.usage += *usage;
                    working.count.requests += 1;
                }
            }
            _ => {}
        }
    }

    fn phase(&mut self, phase: Phase) {
        if let Some(working) = &mut self.working {
            working.phase = phase;
        }
    }

    /// Returns what a step says that continues where no turn is.
    pub(super) fn step(&self) -> Option<String> {
        self.progress.as_ref().map(status::step)
    }

    fn counted(&mut self, usage: podbay_event::Usage, duration_ms: u64) {
        self.status.used = usage.prompt.saturating_add(usage.completion);
        if usage.completion >= 16 && duration_ms > 0 {
            self.status.speed = Some(usage.completion as f64 * 1000.0 / duration_ms as f64);
        }
        self.status.all.usage += usage;
        self.status.all.requests += 1;
        if let Some(working) = &mut self.working {
            working.count.usage += usage;
            working.count.requests += 1;
        }
    }

    fn finished(
        &mut self,
        id: &str,
        name: &str,
        status: CallStatus,
        result: &str,
        duration_ms: u64,
        now: Instant,
    ) {
        if self.transcript.panel(id).is_none() {
            // A call that never began has its end alone.
            let panel = Panel::new(id, name, "{}", now);
            self.transcript.push(Entry::Call(Box::new(panel)));
        }
        let Some(panel) = self.transcript.panel(id) else {
            return;
        };
        panel.finish(status, result, duration_ms);
        if name == "task_list" && status == CallStatus::Ok {
            panel.is_open = false;
            self.transcript.note(Tone::Plain, &check_list(result));
        }
        self.phase(Phase::Waiting);
    }

    fn end_turn(&mut self, now: Instant) {
        self.transcript.end_thinking();
        self.transcript.end_text();
        if let Some(working) = &self.working {
            let ms = now.saturating_duration_since(working.begun).as_millis() as u64;
            let (begun, count) = (working.begun, working.count);
            let words = turn_summary::summary(&count, None, ms);
            let note = self
                .transcript
                .numbered_note(Tone::Dim, &format!("\n{words}"));
            self.ended = Some(EndedTurn {
                note,
                count,
                duration_ms: ms,
            });
            self.turn_is_over(begun, now);
            self.phase(Phase::Ending);
        }
    }

    /// Shows what a turn changed: in its summary, where that is on the screen.
    fn project_changed(&mut self, changes: &ProjectChanges) {
        match self.ended.take() {
            Some(ended) => {
                let words = turn_summary::summary(&ended.count, Some(changes), ended.duration_ms);
                self.transcript
                    .change_note(ended.note, &format!("\n{words}"));
            }
            None => self.transcript.note(Tone::Dim, &changes.words()),
        }
    }

    pub(super) fn say(&mut self, words: &str, now: Instant) {
        self.hint = Some((words.to_owned(), now + std::time::Duration::from_secs(2)));
    }
}

/// Returns a task list as it is read: `[x]` is `☑`.
fn check_list(result: &str) -> String {
    let mut out = String::new();
    for line in result.lines() {
        let line = line
            .replacen("[ ]", "☐", 1)
            .replacen("[>]", "▸", 1)
            .replacen("[x]", "☑", 1);
        out.push_str("  ");
        out.push_str(&line);
        out.push('\n');
    }
    out
}
