//! `metrics.jsonl`: what each run and each chat took, a line each, for whoever adds it up.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde::Serialize;

use podbay_event::CallStatus;
use podbay_event::Event;
use podbay_event::Kind;
use podbay_event::RunStatus;
use podbay_event::SessionId;
use podbay_event::Usage;
use podbay_event::json_line;

use super::journal::Journal;

/// Different tools that are counted by name; a server may have any number of them.
const MOST_TOOLS: usize = 200;

/// What is counted of a session's events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) n_requests: u64,
    pub(super) n_calls: u64,
    pub(super) n_denied: u64,
    /// How long the model's answers took together.
    pub(super) model_ms: u64,
    /// How often each tool was executed.
    pub(super) tools: BTreeMap<String, u64>,
}

impl Tally {
    pub(super) fn take(&mut self, kind: &Kind) {
        match kind {
            Kind::ModelAsked => self.n_requests += 1,
            Kind::AssistantMessage { duration_ms, .. } => {
                self.model_ms = self.model_ms.saturating_add(*duration_ms);
            }
            Kind::CallStarted { name, .. } => {
                if let Some(n) = self.tools.get_mut(name) {
                    *n += 1;
                } else if self.tools.len() < MOST_TOOLS {
                    self.tools.insert(name.clone(), 1);
                }
            }
            Kind::CallFinished { status, .. } => {
                self.n_calls += 1;
                self.n_denied += u64::from(*status == CallStatus::Denied);
            }
            _ => {}
        }
    }
}

/// Gathers from a session's events what its line says, and writes it at the end.
pub(super) struct Metrics {
    session: SessionId,
    journal: Journal,
    parent: Option<SessionId>,
    project: String,
    model: String,
    sandbox_ms: Option<u64>,
    tally: Tally,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
pub(super) struct RunMetrics {
    pub(super) at: Timestamp,
    pub(super) session: SessionId,
    /// The session of which it is an agent's; that one's usage has its own in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<SessionId>,
    pub(super) project: String,
    model: String,
    status: RunStatus,
    exit_code: u8,
    turns: u32,
    pub(super) requests: u64,
    pub(super) tool_calls: u32,
    pub(super) denied: u64,
    /// How often each tool was executed.
    #[serde(default)]
    pub(super) tools: BTreeMap<String, u64>,
    pub(super) usage: Usage,
    /// How long the sandbox took to start.
    sandbox_ms: Option<u64>,
    /// How long the model's answers took together.
    pub(super) model_ms: u64,
    pub(super) duration_ms: u64,
}

impl Metrics {
    pub(super) fn new(session: SessionId, journal: Journal) -> Self {
        Self {
            session,
            journal,
            parent: None,
            project: String::new(),
            model: String::new(),
            sandbox_ms: None,
            tally: Tally::default(),
        }
    }

    /// Takes from the events of an earlier run what does not change: whose session it is.
    pub(super) fn resume(&mut self, events: &[Event]) {
        for event in events.iter().take(2) {
            self.take_origin(&event.kind);
        }
    }

    fn take_origin(&mut self, kind: &Kind) {
        match kind {
            Kind::SessionStarted { project, .. } => self.project.clone_from(project),
            Kind::SessionSpawned { parent, .. } => self.parent = Some(parent.clone()),
            _ => {}
        }
    }

    pub(super) fn take(&mut self, event: &Event) {
        self.take_origin(&event.kind);
        self.tally.take(&event.kind);
        match &event.kind {
            Kind::ModelReady { model, .. } => self.model.clone_from(model),
            Kind::SandboxStarted { duration_ms, .. } => self.sandbox_ms = Some(*duration_ms),
            Kind::RunFinished {
                status,
                exit_code,
                turns,
                tool_calls,
                usage,
                duration_ms,
                ..
            } => {
                let line = json_line(&RunMetrics {
                    at: event.at,
                    session: self.session.clone(),
                    parent: self.parent.clone(),
                    project: self.project.clone(),
                    model: self.model.clone(),
                    status: *status,
                    exit_code: *exit_code,
                    turns: *turns,
                    requests: self.tally.n_requests,
                    tool_calls: *tool_calls,
                    denied: self.tally.n_denied,
                    tools: self.tally.tools.clone(),
                    usage: *usage,
                    sandbox_ms: self.sandbox_ms,
                    model_ms: self.tally.model_ms,
                    duration_ms: *duration_ms,
                })
                .expect("a line is made of strings and numbers");
                self.journal.append(&(line + "\n"));
            }
            _ => {}
        }
    }
}
