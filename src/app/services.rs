use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::agents::Spawner;
use super::host_hook::HostHooks;
use super::mcp::SessionUser;
use super::record::with_causes;
use super::session_install::SessionInstaller;
use super::skills::Skills;
use super::throwaway::ThrowawayRunner;
use podbay_config::Answers;
use podbay_event::Kind;
use podbay_event::Memory;
use podbay_event::Sink;
use podbay_mcp::Called;
use podbay_mcp::Caller;
use podbay_mcp::Servers;
use podbay_policy::DocumentSection;
use podbay_policy::ExactCall;
use podbay_policy::ForeignCall;
use podbay_policy::SandboxRun;
use podbay_policy::WebSearch;
use podbay_search::Searcher;
use podbay_session::Artifacts;
use podbay_session::Memories;
use podbay_session::SavedMemory;
use podbay_tools::AgentAnswer;
use podbay_tools::Asker;
use podbay_tools::Installed;
use podbay_tools::KeptLines;
use podbay_tools::Later;
use podbay_tools::OnChunk;
use podbay_tools::Services;
use podbay_tools::Skill;
use podbay_tools::SpawnOrder;
use podbay_wire as wire;
use podbay_wire::Fault;
use podbay_wire::Output;
use podbay_wire::message::Stream;

/// Why an agent cannot start another one.
const NO_AGENTS: &str = "agents cannot be started from here: `agents.enabled` and `agents.max_depth` \
                         say who may; do it yourself";

const NO_MEMORIES: &str =
    "notes for later sessions are switched off (`memory.enabled`), or not yours to write";

const NO_INSTALLER: &str = "this session's sandbox has no install phase; the user installs dependencies with `podbay install`";

/// What the host does for the tools of one session.
pub(super) struct HostServices {
    artifacts: Artifacts,
    sink: Sink,
    host: HostHooks,
    /// `None`: the project is in a sandbox that Podbay did not start, and has no folder to know it by.
    answers: Option<Answers>,
    /// `None`: the session has no MCP servers.
    servers: Option<Arc<Servers>>,
    /// `None`: the settings switch them off.
    memories: Option<Memories>,
    /// None where the session offers none.
    skills: Arc<Skills>,
    /// `None`: agents cannot be started.
    agents: Option<Spawner>,
    /// `None`: the sandbox is one that Podbay did not start.
    installer: Option<SessionInstaller>,
    /// `None`: the settings name no engine.
    searcher: Option<Searcher>,
    /// `None`: the sandbox is one that Podbay did not start.
    throwaway: Option<Arc<ThrowawayRunner>>,
}

/// Runs code in a sandbox of its own, where there can be one.
pub(super) fn run_apart<'a>(
    runner: Option<&'a ThrowawayRunner>,
    run: SandboxRun,
    on_chunk: OnChunk<'a>,
    cancel: &'a CancellationToken,
) -> Later<'a, Output> {
    Box::pin(async move {
        match runner {
            Some(runner) => runner.run(run, on_chunk, cancel).await,
            None => Output::Fault(Fault::NotStarted {
                problem: "beside a sandbox that Podbay did not start there is no throw-away one"
                    .to_owned(),
            }),
        }
    })
}

impl HostServices {
    pub(super) fn new(
        artifacts: Artifacts,
        sink: Sink,
        host: HostHooks,
        answers: Option<Answers>,
        servers: Option<Arc<Servers>>,
        memories: Option<Memories>,
    ) -> Self {
        Self {
            artifacts,
            sink,
            host,
            answers,
            servers,
            memories,
            skills: Arc::default(),
            agents: None,
            installer: None,
            searcher: None,
            throwaway: None,
        }
    }

    /// Lets calls start agents.
    pub(super) fn with_agents(self, agents: Option<Spawner>) -> Self {
        Self { agents, ..self }
    }

    /// Lets the model read skills.
    pub(super) fn with_skills(self, skills: &Arc<Skills>) -> Self {
        Self {
            skills: Arc::clone(skills),
            ..self
        }
    }

    /// Lets the model ask for the project's dependencies.
    #[must_use]
    pub(super) fn installing(self, installer: Option<SessionInstaller>) -> Self {
        Self { installer, ..self }
    }

    /// Lets the model search with an engine of the user's.
    #[must_use]
    pub(super) fn searching(self, searcher: Option<Searcher>) -> Self {
        Self { searcher, ..self }
    }

    /// Lets the model run code in a sandbox of its own.
    #[must_use]
    pub(super) fn running_apart(self, throwaway: Option<Arc<ThrowawayRunner>>) -> Self {
        Self { throwaway, ..self }
    }
}

impl Services for HostServices {
    fn store_artifact(&self, call: &str, bytes: &[u8]) -> Option<String> {
        match self.artifacts.store(call, bytes) {
            Ok(stored) => Some(stored.id),
            Err(error) => {
                // The result is then cut without a way to see the rest.
                let message = format!(
                    "the output of a call is not kept whole: {}",
                    with_causes(&error)
                );
                (self.sink)(Kind::Warning { message }.into());
                None
            }
        }
    }

    fn read_artifact(&self, id: &str, offset: u64, limit: u64) -> Result<KeptLines, String> {
        let page = self
            .artifacts
            .page(id, offset, limit)
            .map_err(|error| error.to_string())?;
        Ok(KeptLines {
            text: page.text,
            next: page.next,
            bytes: page.bytes,
        })
    }

    fn run_hook<'a>(
        &'a self,
        hook: wire::Hook,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Output> {
        Box::pin(self.host.run(hook, on_chunk, cancel))
    }

    fn call_foreign<'a>(
        &'a self,
        call: ForeignCall,
        mut on_chunk: OnChunk<'a>,
        asker: &'a dyn Asker,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Result<String, String>> {
        Box::pin(async move {
            let servers = self
                .servers
                .as_ref()
                .ok_or("this session has no MCP servers")?;
            let mut on_progress =
                |line: &str| on_chunk(Stream::Stdout, format!("{line}\n").as_bytes());
            let user = SessionUser(asker);
            let mut caller = Caller {
                on_progress: &mut on_progress,
                user: Some(&user),
            };
            let Called { text, is_ok } = servers
                .call_tool(&call.name, call.arguments, &mut caller, cancel)
                .await;
            if is_ok { Ok(text) } else { Err(text) }
        })
    }

    fn plan_install(&self, ecosystems: &[String]) -> Result<String, String> {
        let installer = self.installer.as_ref();
        installer.ok_or(NO_INSTALLER)?.plan(ecosystems)
    }

    fn install<'a>(
        &'a self,
        ecosystems: Vec<String>,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Result<Installed, String>> {
        Box::pin(async move {
            let installer = self.installer.as_ref().ok_or(NO_INSTALLER)?;
            installer.install(ecosystems, on_chunk, cancel).await
        })
    }

    fn search_web<'a>(
        &'a self,
        search: &'a WebSearch,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Result<String, String>> {
        Box::pin(async move {
            let searcher = self.searcher.as_ref();
            let searcher = searcher.ok_or("the user's settings name no search engine")?;
            let most = search.max_results as usize;
            tokio::select! {
                () = cancel.cancelled() => Err("cancelled before the engine answered".to_owned()),
                found = searcher.search(&search.query, most) => found,
            }
        })
    }

    fn run_apart<'a>(
        &'a self,
        run: SandboxRun,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Output> {
        run_apart(self.throwaway.as_deref(), run, on_chunk, cancel)
    }

    fn save_memory(&self, memory: Memory) -> Result<String, String> {
        let memories = self.memories.as_ref().ok_or(NO_MEMORIES)?;
        let SavedMemory {
            memory,
            replaced,
            pruned,
        } = memories
            .save(&memory)
            .map_err(|error| with_causes(&error))?;
        let gone = if pruned.is_empty() {
            String::new()
        } else {
            format!("; removed as the oldest: {}", pruned.join(", "))
        };
        let said = format!(
            "saved as {}: later sessions of this project are shown it, and the user can read and remove it{gone}",
            memory.name
        );
        (self.sink)(
            Kind::MemorySaved {
                memory,
                replaced,
                pruned,
            }
            .into(),
        );
        Ok(said)
    }

    fn write_section(&self, section: &DocumentSection) -> Result<String, String> {
        let memories = self.memories.as_ref().ok_or(NO_MEMORIES)?;
        let saved = memories.write_section(&section.heading, &section.content);
        let SavedMemory {
            memory,
            replaced,
            pruned,
        } = saved.map_err(|error| with_causes(&error))?;
        let how = if memory.content.is_empty() {
            "removed"
        } else {
            "saved"
        };
        let said = format!(
            "{how} in {}: later sessions of this project are shown it, and the user can read and change it",
            memory.name
        );
        (self.sink)(
            Kind::MemorySaved {
                memory,
                replaced,
                pruned,
            }
            .into(),
        );
        Ok(said)
    }

    fn use_skill(&self, name: &str) -> Result<Skill, String> {
        let chosen = self.skills.choose(name)?;
        for message in chosen.warnings {
            (self.sink)(Kind::Warning { message }.into());
        }
        Ok(chosen.skill)
    }

    fn spawn_agent<'a>(
        &'a self,
        order: SpawnOrder<'a>,
        cancel: &'a CancellationToken,
    ) -> Later<'a, AgentAnswer> {
        Box::pin(async move {
            match &self.agents {
                Some(agents) => agents.spawn(order, cancel).await,
                None => AgentAnswer::failed(NO_AGENTS),
            }
        })
    }

    fn agent_only_reads(&self, agent: &str) -> bool {
        self.agents
            .as_ref()
            .is_some_and(|agents| agents.only_reads(agent))
    }

    fn keeps_answers(&self) -> bool {
        self.answers.is_some()
    }

    fn keep_answer(&self, exact: &ExactCall) -> Result<(), String> {
        let answers = self
            .answers
            .as_ref()
            .ok_or("a project in a sandbox that Podbay did not start has no stored answers")?;
        answers.add(exact).map_err(|error| with_causes(&error))
    }
    fn forget_answer(&self, exact: &ExactCall) -> Result<(), String> {
        self.answers
            .as_ref()
            .map_or(Ok(false), |answers| answers.remove(exact))
            .map(drop)
            .map_err(|error| with_causes(&error))
    }
}
