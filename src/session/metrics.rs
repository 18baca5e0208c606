//! `metrics.jsonl`: what each run and each chat took, a line each, for whoever adds it up.

use jiff::Timestamp;
use serde::Serialize;

use podbay_event::Event;
use podbay_event::Kind;
use podbay_event::RunStatus;
use podbay_event::SessionId;
use podbay_event::Usage;
use podbay_event::json_line;

use super::journal::Journal;

/// Gathers from a session's events what its line says, and writes it at the end.
pub(super) struct Metrics {
    session: SessionId,
    journal: Journal,
    project: String,
    model: String,
    sandbox_ms: Option<u64>,
    model_ms: u64,
    n_requests: u64,
    n_denied: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    at: Timestamp,
    session: &'a SessionId,
    project: &'a str,
    model: &'a str,
    status: RunStatus,
    exit_code: u8,
    turns: u32,
    requests: u64,
    tool_calls: u32,
    denied: u64,
    usage: &'a Usage,
    /// How long the sandbox took to start.
    sandbox_ms: Option<u64>,
    /// How long the model's answers took together.
    model_ms: u64,
    duration_ms: u64,
}

impl Metrics {
    pub(super) fn new(session: SessionId, journal: Journal) -> Self {
        Self {
            session,
            journal,
            project: String::new(),
            model: String::new(),
            sandbox_ms: None,
            model_ms: 0,
            n_requests: 0,
            n_denied: 0,
        }
    }

    pub(super) fn take(&mut self, event: &Event) {
        match &event.kind {
            Kind::SessionStarted { project, .. } => self.project.clone_from(project),
            Kind::ModelReady { model, .. } => self.model.clone_from(model),
            Kind::SandboxStarted { duration_ms, .. } => self.sandbox_ms = Some(*duration_ms),
            Kind::ModelAsked => self.n_requests += 1,
            Kind::AssistantMessage { duration_ms, .. } => {
                self.model_ms = self.model_ms.saturating_add(*duration_ms);
            }
            Kind::CallFinished {
                status: podbay_event::CallStatus::Denied,
                ..
            } => self.n_denied += 1,
            Kind::RunFinished {
                status,
                exit_code,
                turns,
                tool_calls,
                usage,
                duration_ms,
                ..
            } => {
                let line = json_line(&Line {
                    at: event.at,
                    session: &self.session,
                    project: &self.project,
                    model: &self.model,
                    status: *status,
                    exit_code: *exit_code,
                    turns: *turns,
                    requests: self.n_requests,
                    tool_calls: *tool_calls,
                    denied: self.n_denied,
                    usage,
                    sandbox_ms: self.sandbox_ms,
                    model_ms: self.model_ms,
                    duration_ms: *duration_ms,
                })
                .expect("a line is made of strings and numbers");
                self.journal.append(&(line + "\n"));
            }
            _ => {}
        }
    }
}
