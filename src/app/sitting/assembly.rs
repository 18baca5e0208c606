//! The agent of a session, with all that it works with.

use std::sync::Arc;
use std::sync::Mutex;

use tokio_util::sync::CancellationToken;

use super::opened_session::OpenedSession;
use super::plan_task;
use super::startup::ReadyModel;
use super::startup::Startup;
use crate::Error;
use crate::Front;
use crate::Place;
use crate::PlanStart;
use crate::agents::SharedSibling;
use crate::agents::SpawnerParts;
use crate::bench::Bench;
use crate::host_hook::HostHooks;
use crate::memory::tell_memories;
use crate::resume::Aim;
use crate::rules;
use crate::seat::Seat;
use crate::services::HostServices;
use crate::session_install::SessionInstaller;
use crate::skills::Skills;
use crate::throwaway::ThrowawayRunner;
use podbay_agent::Agent;
use podbay_agent::Ledger;
use podbay_agent::gather_context;
use podbay_config::Config;
use podbay_event::Plan;
use podbay_event::PlanDecision;
use podbay_event::ProgressSink;
use podbay_search::Searcher;
use podbay_session::Artifacts;
use podbay_session::Memories;
use podbay_tools::AgentType;
use podbay_tools::Catalogue;
use podbay_tools::HookOptions;
use podbay_tools::Pipeline;

/// What an agent is made of.
pub(super) struct Assembly<'a> {
    pub(super) place: &'a Place,
    pub(super) aim: Aim<'a>,
    pub(super) front: &'a Front,
    pub(super) bench: &'a Bench,
    pub(super) progress: &'a ProgressSink,
    pub(super) opened: OpenedSession,
    pub(super) startup: Startup,
    /// `None`: the session has no agents.
    pub(super) agent_types: Option<Vec<AgentType>>,
    pub(super) skills: Arc<Skills>,
}

impl Assembly<'_> {
    pub(super) async fn seat(
        self,
        catalogue: Catalogue,
        searcher: Option<Searcher>,
        cancel: &CancellationToken,
    ) -> Result<Seat, Error> {
        let recorder = &self.opened.recorder;
        let hooks = rules::hooks(&self.opened.config.hooks, |message| recorder.warn(message));
        let ledger = Ledger::default();
        let spawner = self.spawner(&hooks, &ledger);
        let pipeline = self.pipeline(catalogue, searcher, hooks, spawner.as_ref());
        let Self {
            place,
            aim,
            opened,
            startup,
            ..
        } = self;
        let OpenedSession {
            config,
            memories,
            locks,
            recorder,
            mut past,
            is_planning,
            ..
        } = opened;
        let Startup {
            sandbox,
            started,
            servers,
            model,
            ..
        } = startup;
        let ReadyModel {
            client,
            probed,
            server,
            conversation,
            ..
        } = model;
        let parallel = config.tools.parallel as usize;
        let agent = Agent::new(
            client,
            conversation,
            Arc::new(pipeline),
            parallel,
            config.agent.clone(),
            recorder.sink(),
        );
        let mut agent = agent.with_past(&past).with_ledger(&ledger);
        // What an earlier run told stays as it was told.
        if past.history.is_empty() {
            let project = ToldProject {
                window: probed.context,
                memories: memories.as_ref(),
                mounted: started.mounted_words.as_deref(),
            };
            if let Err(error) = project
                .tell(&mut agent, spawner.as_deref(), &config, cancel)
                .await
            {
                sandbox.give_up().await;
                return Err(error);
            }
        }
        let plan = past.plan.take();
        let n_plans = plan.as_ref().map(|plan| plan.version);
        let begins_planning = is_planning && !past.planning;
        let plan_task = plan
            .as_ref()
            .filter(|_| place.plan == PlanStart::Implement)
            .map(plan_task);
        begin_plan(
            &mut agent,
            plan,
            past.planning,
            plan_task.is_some(),
            begins_planning,
        );
        // A server may call itself what it likes, also what it should keep to itself.
        let model = place.api_key.as_ref().map_or_else(
            || probed.model.clone(),
            |key| key.hide_in(probed.model.clone()),
        );
        let n_turns = past.history.said().len() as u64;
        let is_open = past.is_open() && !past.history.said().is_empty();
        let untold = past.task.filter(|_| matches!(aim, Aim::Open));
        Ok(Seat {
            agent,
            recorder,
            model,
            untold,
            plan_task,
            n_plans,
            server,
            is_open,
            sandbox,
            n_turns,
            mounted: started.mounted,
            locks,
            mcp: servers.servers,
            learner: memories.filter(|_| config.memory.learn),
            agents: spawner,
        })
    }

    /// Returns what starts agents, if the session may have any.
    fn spawner(&self, hooks: &HookOptions, ledger: &Ledger) -> Option<Arc<SpawnerParts>> {
        let (opened, startup) = (&self.opened, &self.startup);
        let denied = opened.policy.denied_tools();
        Some(Arc::new(SpawnerParts {
            place: self.place.clone(),
            config: opened.config.clone(),
            project: self.bench.ground_text(),
            types: self.agent_types.clone()?,
            skills: Arc::clone(&self.skills),
            client: startup.model.client.clone(),
            probed: startup.model.probed.clone(),
            foreign: startup.servers.tools.clone(),
            servers: startup.servers.servers.clone(),
            sandbox: startup.sandbox.clone(),
            sibling: SharedSibling::default(),
            languages: startup.model.languages.clone(),
            throwaway: self.throwaway(),
            answers: opened.answers.clone(),
            denied: denied.into_iter().map(str::to_owned).collect(),
            hooks: hooks.clone(),
            asker: Arc::clone(&self.front.asker),
            interrupt: self.front.interrupt.clone(),
            ledger: ledger.clone(),
            context: Mutex::default(),
            names: Mutex::default(),
            ended: Mutex::default(),
        }))
    }

    fn throwaway(&self) -> Option<Arc<ThrowawayRunner>> {
        ThrowawayRunner::of(self.bench, &self.startup.sandbox, self.progress).map(Arc::new)
    }

    fn pipeline(
        &self,
        catalogue: Catalogue,
        searcher: Option<Searcher>,
        hooks: HookOptions,
        spawner: Option<&Arc<SpawnerParts>>,
    ) -> Pipeline {
        let (opened, sandbox) = (&self.opened, &self.startup.sandbox);
        let (config, recorder) = (&opened.config, &opened.recorder);
        let (probed, past) = (&self.startup.model.probed, &opened.past);
        let session = recorder.session();
        let throwaway = match spawner {
            Some(spawner) => spawner.throwaway.clone(),
            None => self.throwaway(),
        };
        let services = HostServices::new(
            Artifacts::new(&self.place.state, session, &config.session),
            recorder.sink(),
            HostHooks::of(self.place),
            opened.answers.clone(),
            self.startup.servers.servers.clone(),
            opened.memories.clone(),
        )
        .with_skills(&self.skills)
        .with_agents(spawner.map(|spawner| spawner.main(session.clone(), recorder.sink())))
        .installing(SessionInstaller::of(self.bench, sandbox, recorder.sink()))
        .searching(searcher)
        .running_apart(throwaway);
        let pipeline = Pipeline::new(
            catalogue.restoring(&probed.tokens),
            opened.policy.clone(),
            Arc::new(sandbox.clone()),
            Arc::new(services),
            Arc::clone(&self.front.asker),
            recorder.sink(),
            config.tools.clone(),
        );
        let pipeline = pipeline.with_hooks(hooks, Some(session.clone()));
        pipeline.set_window(probed.context);
        pipeline.set_images(probed.images);
        pipeline.recall_tasks(&past.tasks);
        pipeline.recall_seen(&past.seen);
        pipeline
    }
}

/// What a model reads about the project before the first task.
struct ToldProject<'a> {
    window: Option<u64>,
    memories: Option<&'a Memories>,
    mounted: Option<&'a str>,
}

impl ToldProject<'_> {
    async fn tell(
        &self,
        agent: &mut Agent,
        spawner: Option<&SpawnerParts>,
        config: &Config,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let context = gather_context(agent.pipeline(), &config.agent, self.window, cancel).await;
        let mut context = context.map_err(Error::Sandbox)?.unwrap_or_default();
        if let Some(memories) = self.memories {
            tell_memories(&mut context, memories, self.window);
        }
        if let Some(fact) = self.mounted {
            context.add_fact(fact);
        }
        agent.add_context(&context);
        if let Some(spawner) = spawner {
            spawner.tell(context);
        }
        Ok(())
    }
}

/// Continues with the plan of an earlier run, or begins in plan mode.
fn begin_plan(
    agent: &mut Agent,
    plan: Option<Plan>,
    was_planning: bool,
    is_approved: bool,
    begins_planning: bool,
) {
    agent.pipeline().recall_plan(was_planning, plan);
    if is_approved {
        agent.pipeline().decide_plan(PlanDecision::Approved, None);
        agent.pipeline().continue_without_plan_mode();
    } else if begins_planning {
        let words = agent.pipeline().begin_in_plan_mode();
        agent.add_note(words);
    }
}
