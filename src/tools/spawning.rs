//! Agents that a call starts: what the pipeline hands over, and what comes back.
//!
//! The host makes them; here is that their calls go the same way as those of the agent above them,
//! under the very same policy.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use super::Asker;
use super::Catalogue;
use super::FileChangeKind;
use super::HookOptions;
use super::Pipeline;
use super::Services;
use super::Workspace;
use podbay_event::SessionId;
use podbay_event::Sink;
use podbay_policy::SpawnCall;
use podbay_wire::BytesPath;

/// An agent that is to be started.
pub struct SpawnOrder<'a> {
    /// The id of the call that starts it.
    pub call: &'a str,
    pub wanted: SpawnCall,
    /// The pipeline of the agent that starts it.
    pub parent: &'a Pipeline,
}

/// What became of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentAnswer {
    pub is_ok: bool,
    /// Its answer, for the model.
    pub text: String,
    /// How it ended and where all of it is; never truncated.
    pub footer: String,
    /// What was denied to it, one line each.
    pub denied: Vec<String>,
    /// Files that its file tools changed.
    pub changed: Vec<(BytesPath, FileChangeKind)>,
}

impl AgentAnswer {
    /// An agent that did not begin.
    pub fn failed(problem: impl Into<String>) -> Self {
        Self {
            text: problem.into(),
            footer: "no agent was started".to_owned(),
            ..Self::default()
        }
    }
}

/// What the pipeline of an agent does not share with the one above it.
pub struct AgentParts {
    pub catalogue: Catalogue,
    pub services: Arc<dyn Services>,
    pub asker: Arc<dyn Asker>,
    pub sink: Sink,
    pub hooks: HookOptions,
    /// A sandbox of its own; `None`: that of the agent above it.
    pub workspace: Option<Arc<dyn Workspace>>,
    pub session: SessionId,
    /// Whether each call that may change something is denied.
    pub only_reads: bool,
}

impl Pipeline {
    /// Returns the pipeline of an agent that a call of this one starts. It has the same policy and
    /// the same limits, and the same sandbox unless it has one of its own: a mode or an answer that changes here changes there.
    #[must_use]
    pub fn for_agent(&self, parts: AgentParts) -> Self {
        let policy = self
            .policy
            .lock()
            .expect("nothing panics while it holds this lock")
            .clone();
        let made = Self::new(
            parts.catalogue,
            policy,
            parts
                .workspace
                .clone()
                .unwrap_or_else(|| Arc::clone(&self.workspace)),
            parts.services,
            parts.asker,
            parts.sink,
            self.options.clone(),
        );
        let hooks = HookOptions {
            session_start: Vec::new(),
            user_prompt: Vec::new(),
            pre_compact: Vec::new(),
            stop: Vec::new(),
            ..parts.hooks
        };
        Self {
            policy: Arc::clone(&self.policy),
            here: if parts.workspace.is_some() {
                made.here.clone()
            } else {
                Arc::clone(&self.here)
            },
            only_reads: self.only_reads || parts.only_reads,
            window: AtomicU64::new(self.window.load(Ordering::Relaxed)),
            images: AtomicBool::new(self.images.load(Ordering::Relaxed)),
            ..made.with_hooks(hooks, Some(parts.session))
        }
    }
}
