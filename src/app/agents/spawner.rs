use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;

use serde::Serialize;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::SharedSibling;
use super::child::Child;
use crate::Place;
use crate::skills::Skills;
use crate::throwaway::ThrowawayRunner;
use podbay_agent::Interrupt;
use podbay_agent::Ledger;
use podbay_agent::ProjectContext;
use podbay_config::Answers;
use podbay_config::Config;
use podbay_event::AgentVerdict;
use podbay_event::RunStatus;
use podbay_event::SessionId;
use podbay_event::Sink;
use podbay_event::Usage;
use podbay_llm::Client;
use podbay_llm::ProbeResult;
use podbay_mcp::Servers;
use podbay_sandbox::Sandbox;
use podbay_tools::AgentAnswer;
use podbay_tools::AgentScope;
use podbay_tools::AgentType;
use podbay_tools::Asker;
use podbay_tools::ForeignTool;
use podbay_tools::HookOptions;
use podbay_tools::SpawnOrder;

/// Most agents of a session: each keeps a log.
const MOST_AGENTS: usize = 200;

/// Starts the agents that the calls of one agent ask for.
pub(crate) struct Spawner {
    pub(super) parts: Arc<SpawnerParts>,
    /// The session of the agent that starts them.
    pub(super) session: SessionId,
    /// Where that one's events go.
    pub(super) sink: Sink,
    /// 0: the agent that the user talks to.
    pub(super) depth: u32,
    /// What the agent itself may use.
    pub(super) scope: AgentScope,
    /// One permit for each that may run at once.
    slots: Semaphore,
}

/// What all agents of a session have in common.
pub(crate) struct SpawnerParts {
    pub(crate) place: Place,
    pub(crate) config: Config,
    /// What the session calls its project.
    pub(crate) project: String,
    pub(crate) types: Vec<AgentType>,
    pub(crate) skills: Arc<Skills>,
    pub(crate) client: Client,
    pub(crate) probed: ProbeResult,
    pub(crate) foreign: Vec<ForeignTool>,
    pub(crate) servers: Option<Arc<Servers>>,
    pub(crate) sandbox: Sandbox,
    /// For the agents that only read.
    pub(crate) sibling: SharedSibling,
    /// Languages of `sandbox_run`.
    pub(crate) languages: Vec<&'static str>,
    pub(crate) throwaway: Option<Arc<ThrowawayRunner>>,
    pub(crate) answers: Option<Answers>,
    /// Tools that rules deny as a whole.
    pub(crate) denied: BTreeSet<String>,
    pub(crate) hooks: HookOptions,
    pub(crate) asker: Arc<dyn Asker>,
    pub(crate) interrupt: Interrupt,
    pub(crate) ledger: Ledger,
    /// What the model was told of the project at the start of this run.
    pub(crate) context: Mutex<Option<ProjectContext>>,
    /// Agents of each type so far.
    pub(crate) names: Mutex<BTreeMap<String, usize>>,
    /// How those ended that have.
    pub(crate) ended: Mutex<Vec<AgentReport>>,
}

/// How an agent ended, for the report of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgentReport {
    /// Its type, with a number where several of it were started.
    pub agent: String,
    pub session: SessionId,
    pub status: RunStatus,
    /// What it found, where it was to check something.
    pub verdict: Option<AgentVerdict>,
    pub turns: u32,
    pub tool_calls: u32,
    pub usage: Usage,
}

impl SpawnerParts {
    /// Returns the spawner of the agent that the user talks to.
    pub(crate) fn main(self: &Arc<Self>, session: SessionId, sink: Sink) -> Spawner {
        let most = self.config.agents.parallel;
        let most = self
            .probed
            .n_slots
            .map_or(most, |n_slots| n_slots.min(most));
        Spawner {
            parts: Arc::clone(self),
            session,
            sink,
            depth: 0,
            scope: AgentScope::default(),
            slots: Semaphore::new(most.max(1) as usize),
        }
    }

    pub(super) fn find(&self, agent: &str) -> Option<&AgentType> {
        self.types.iter().find(|known| known.name == agent)
    }

    /// Returns the name of a new agent: its type, with a number from the second one on; `None`:
    /// there were too many.
    fn name(&self, agent: &str) -> Option<String> {
        let mut names = self
            .names
            .lock()
            .expect("nothing panics while it holds this lock");
        if names.values().sum::<usize>() >= MOST_AGENTS {
            return None;
        }
        let n = names.entry(agent.to_owned()).or_default();
        *n += 1;
        Some(if *n == 1 {
            agent.to_owned()
        } else {
            format!("{agent}-{n}")
        })
    }

    /// Says what the model was told of the project, which agents are told too.
    pub(crate) fn tell(&self, context: ProjectContext) {
        *self
            .context
            .lock()
            .expect("nothing panics while it holds this lock") = Some(ProjectContext {
            warnings: Vec::new(),
            ..context
        });
    }

    pub(super) fn report(&self, report: AgentReport) {
        self.ended
            .lock()
            .expect("nothing panics while it holds this lock")
            .push(report);
    }

    /// Returns how the agents so far ended.
    pub(crate) fn reports(&self) -> Vec<AgentReport> {
        self.ended
            .lock()
            .expect("nothing panics while it holds this lock")
            .clone()
    }
}

impl Spawner {
    /// Returns the spawner of an agent, where it may start others.
    pub(super) fn below(&self, session: SessionId, sink: Sink, scope: AgentScope) -> Option<Self> {
        let depth = self.depth + 1;
        (depth <= self.parts.config.agents.max_depth).then(|| Self {
            parts: Arc::clone(&self.parts),
            session,
            sink,
            depth,
            scope,
            // It runs in the place of the one that started it.
            slots: Semaphore::new(1),
        })
    }

    /// Returns whether agents of this type only read.
    pub(crate) fn only_reads(&self, agent: &str) -> bool {
        self.scope.only_reads || self.parts.find(agent).is_some_and(|known| known.only_reads)
    }

    /// Starts an agent and waits for its answer.
    pub(crate) async fn spawn(
        &self,
        order: SpawnOrder<'_>,
        cancel: &CancellationToken,
    ) -> AgentAnswer {
        let Some(kind) = self.parts.find(&order.wanted.agent) else {
            let names: Vec<&str> = self.parts.types.iter().map(|kind| &*kind.name).collect();
            let shown: String = order.wanted.agent.chars().take(60).collect();
            return AgentAnswer::failed(format!(
                "there is no agent type `{shown}`; the types are {}",
                names.join(", ")
            ));
        };
        let mut scope = self.scope.clone().within(&kind.tools, kind.only_reads);
        if let Some(wanted) = &order.wanted.tools {
            let catalogue = order.parent.catalogue();
            let own = catalogue.names();
            let is_known = |pattern: &&String| {
                own.iter()
                    .any(|name| podbay_policy::matches_pattern(pattern, name) && scope.has(name))
            };
            if let Some(unknown) = wanted.iter().find(|pattern| !is_known(pattern)) {
                let shown: String = unknown.chars().take(60).collect();
                return AgentAnswer::failed(format!(
                    "an agent of type {} has no tool `{shown}`; `tools` can only leave out some of those that it has",
                    kind.name
                ));
            }
            scope = scope.within(wanted, false);
        }
        let _place = tokio::select! {
            biased;
            () = cancel.cancelled() => return AgentAnswer::failed("cancelled before the agent began"),
            place = self.slots.acquire() => place,
        };
        let Some(name) = self.parts.name(&kind.name) else {
            return AgentAnswer::failed(format!(
                "this session has started {MOST_AGENTS} agents, which is the most; do the rest yourself"
            ));
        };
        let child = Child {
            spawner: self,
            kind,
            name,
            scope,
        };
        Box::pin(child.run(order, cancel)).await
    }
}
