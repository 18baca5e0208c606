use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::AgentReport;
use super::Spawner;
use super::answer::answer;
use super::answer::verdict_of;
use super::asker::AgentAsker;
use crate::Error;
use crate::host_hook::HostHooks;
use crate::record::Recorder;
use crate::record::with_causes;
use crate::services::HostServices;
use podbay_agent as agent;
use podbay_agent::Agent;
use podbay_agent::Interrupt;
use podbay_agent::Outcome;
use podbay_agent::gather_context;
use podbay_agent::sub_agent_prompt;
use podbay_event::AgentEnd;
use podbay_event::Event;
use podbay_event::Kind;
use podbay_event::RunStatus;
use podbay_event::Seconds;
use podbay_event::SessionId;
use podbay_event::Sink;
use podbay_event::ToolTold;
use podbay_event::Usage;
use podbay_llm as llm;
use podbay_llm::Client;
use podbay_llm::ProbeResult;
use podbay_llm::Prompt;
use podbay_sandbox as sandbox;
use podbay_sandbox::Sibling;
use podbay_session::Artifacts;
use podbay_tools::AgentAnswer;
use podbay_tools::AgentParts;
use podbay_tools::AgentScope;
use podbay_tools::AgentType;
use podbay_tools::Catalogue;
use podbay_tools::SpawnOrder;
use podbay_tools::Workspace;

/// One agent, from its start to its answer.
pub(super) struct Child<'a> {
    pub(super) spawner: &'a Spawner,
    pub(super) kind: &'a AgentType,
    /// How it is called in questions, lines and logs.
    pub(super) name: String,
    pub(super) scope: AgentScope,
}

impl Child<'_> {
    pub(super) async fn run(
        self,
        order: SpawnOrder<'_>,
        cancel: &CancellationToken,
    ) -> AgentAnswer {
        let begun = Instant::now();
        let session = SessionId::random();
        let (call, sink) = (order.call.to_owned(), &self.spawner.sink);
        sink(
            Kind::AgentStarted {
                call: call.clone(),
                session: session.clone(),
                agent: self.name.clone(),
                description: order.wanted.description.clone(),
            }
            .into(),
        );
        let outcome = match self.begin(&order, &session) {
            Ok(recorder) => {
                let interrupt = Interrupt::under(cancel, self.spawner.parts.interrupt.haste());
                let outcome = match self.model(interrupt.run()).await {
                    Ok((client, probed)) => {
                        let sibling = self.sibling().await;
                        let workspace = sibling.clone().map(|own| own as Arc<dyn Workspace>);
                        let mut made = self.make(&order, &recorder, workspace, client, &probed);
                        let outcome = self.work(&mut made, &order.wanted.task, &interrupt).await;
                        made.settle(interrupt.run()).await;
                        self.leave(sibling).await;
                        outcome.map_err(Error::Sandbox)
                    }
                    Err(error) => Err(error),
                };
                recorder.emit(run_finished(&outcome, begun));
                recorder.sync();
                outcome.map_err(|error| with_causes(&error))
            }
            Err(error) => Err(error),
        };
        let (outcome, error) = match outcome {
            Ok(mut outcome) => {
                let error = outcome.failure.take().map(|failure| with_causes(&failure));
                (outcome, error)
            }
            Err(error) => (nothing_done(), Some(error)),
        };
        let (found, usage) = (verdict_of(&outcome), outcome.usage);
        let verdict = found.map(|found| found.counts);
        let end = AgentEnd {
            agent: &self.name,
            status: outcome.status,
            limit: outcome.limit,
            verdict,
            turns: outcome.turns,
            tool_calls: outcome.tool_calls,
            usage: &usage,
        };
        self.spawner.parts.report(AgentReport {
            agent: self.name.clone(),
            session: session.clone(),
            status: outcome.status,
            verdict,
            turns: outcome.turns,
            tool_calls: outcome.tool_calls,
            usage: outcome.usage,
        });
        sink(
            Kind::AgentFinished {
                call,
                session: session.clone(),
                agent: self.name.clone(),
                status: outcome.status,
                limit: outcome.limit,
                verdict,
                turns: outcome.turns,
                tool_calls: outcome.tool_calls,
                usage: outcome.usage,
                error: error.clone(),
                duration_ms: elapsed_ms(begun),
            }
            .into(),
        );
        answer(outcome, &end, found, &session, error.as_deref())
    }

    /// Begins its log, which names the session that it belongs to.
    fn begin(&self, order: &SpawnOrder<'_>, session: &SessionId) -> Result<Recorder, String> {
        let parts = &self.spawner.parts;
        let header = Kind::SessionStarted {
            version: podbay_session::VERSION,
            session: session.clone(),
            podbay: env!("CARGO_PKG_VERSION").to_owned(),
            project: parts.project.clone(),
            mode: order.parent.mode().as_str().to_owned(),
            task: Some(order.wanted.task.clone()),
        };
        let recorder = Recorder::begin(
            &parts.place.state,
            &parts.config.session,
            header,
            parts.place.api_key.as_ref(),
            self.watcher(order.call, session),
        )
        .map_err(|error| with_causes(&error))?;
        recorder.emit(Kind::SessionSpawned {
            parent: self.spawner.session.clone(),
            call: order.call.to_owned(),
            agent: self.name.clone(),
        });
        Ok(recorder)
    }

    /// Returns where its events go beside its own log: to those who watch the agent above it.
    fn watcher(&self, call: &str, session: &SessionId) -> Sink {
        let sink = Arc::clone(&self.spawner.sink);
        let (call, session, agent) = (call.to_owned(), session.clone(), self.name.clone());
        Arc::new(move |event: Event| {
            sink(Event {
                at: event.at,
                kind: Kind::AgentEvent {
                    call: call.clone(),
                    session: session.clone(),
                    agent: agent.clone(),
                    event: Box::new(event),
                },
            });
        })
    }

    /// Returns the model that it uses: the session's, or another one of the same server.
    async fn model(&self, cancel: &CancellationToken) -> Result<(Client, ProbeResult), Error> {
        let parts = &self.spawner.parts;
        let Some(model) = &self.kind.model else {
            return Ok((parts.client.clone(), parts.probed.clone()));
        };
        if *model == parts.probed.model {
            return Ok((parts.client.clone(), parts.probed.clone()));
        }
        if parts.config.llm.endpoint.is_none() {
            return Err(Error::usage(
                format!(
                    "the agent {} wants the model `{model}`, and Podbay's own server has one model at a time",
                    self.kind.name
                ),
                "take `model` out of its file, or use an endpoint that serves both",
            ));
        }
        let options = llm::Options {
            model: Some(model.clone()),
            // What is set is the price of the session's model.
            price: llm::Price::default(),
            ..parts.client.options().clone()
        };
        let (endpoint, key) = (parts.client.endpoint().clone(), parts.place.api_key.clone());
        let client = Client::new(endpoint, key, options).map_err(Error::Model)?;
        let probed = client
            .probe(cancel, parts.client.options().probe_timeout())
            .await
            .map_err(Error::Model)?;
        Ok((client, probed))
    }

    fn make(
        &self,
        order: &SpawnOrder<'_>,
        recorder: &Recorder,
        workspace: Option<Arc<dyn Workspace>>,
        client: Client,
        probed: &ProbeResult,
    ) -> Agent {
        let parts = &self.spawner.parts;
        let config = &parts.config;
        let spawner = self.spawner.below(
            recorder.session().clone(),
            recorder.sink(),
            self.scope.clone(),
        );
        let catalogue = self.catalogue(spawner.is_some());
        let system = sub_agent_prompt(&self.kind.prompt, order.wanted.system_prompt.as_deref());
        let tools = catalogue.listed_tools();
        let (mode, thinking) = (probed.tools, probed.replay_thinking());
        let prompt = Prompt::new(&system, &tools, mode)
            .with_thinking_replayed(thinking)
            .with_untold(&catalogue.unlisted_tools())
            .with_dialect(client.dialect())
            .with_tokens(&probed.tokens);
        recorder.emit(Kind::ModelReady {
            model: probed.model.clone(),
            context: probed.context,
            tools: probed.tools,
            reason: probed.reason.clone(),
        });
        let told = |tool: podbay_llm::ToolSpec| ToolTold {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters,
        };
        recorder.emit(Kind::PromptBegun {
            system,
            tools: tools.into_iter().map(told).collect(),
            mode,
            thinking,
            folded: false,
        });
        let artifacts = Artifacts::new(&parts.place.state, recorder.session(), &config.session);
        let services = HostServices::new(
            artifacts,
            recorder.sink(),
            HostHooks::of(&parts.place),
            parts.answers.clone(),
            parts.servers.clone(),
            None,
        );
        let pipeline = order.parent.for_agent(AgentParts {
            catalogue: catalogue.restoring(&probed.tokens),
            services: Arc::new(
                services
                    .with_skills(&parts.skills)
                    .with_agents(spawner)
                    .running_apart(parts.throwaway.clone()),
            ),
            asker: Arc::new(AgentAsker {
                inner: Arc::clone(&parts.asker),
                agent: self.name.clone(),
            }),
            sink: recorder.sink(),
            hooks: parts.hooks.clone(),
            workspace,
            session: recorder.session().clone(),
            only_reads: self.scope.only_reads,
        });
        pipeline.set_window(probed.context);
        pipeline.set_images(probed.images);
        Agent::new(
            client,
            prompt,
            Arc::new(pipeline),
            config.tools.parallel as usize,
            self.options(),
            recorder.sink(),
        )
        .for_another(&parts.ledger)
    }

    /// Returns the sandbox that it works in, where that is not the one of the agent above it: the
    /// one that all share who only read, or its own.
    async fn sibling(&self) -> Option<Arc<Sibling>> {
        let parts = &self.spawner.parts;
        if self.scope.only_reads {
            return parts.sibling.join(&parts.sandbox).await;
        }
        let own = parts.sandbox.sibling().filter(|_| self.kind.own_sandbox);
        let own = own.map(Arc::new);
        if let Some(own) = &own {
            // While the model reads its task.
            own.begin_soon();
        }
        own
    }

    async fn leave(&self, sibling: Option<Arc<Sibling>>) {
        match sibling {
            Some(_) if self.scope.only_reads => self.spawner.parts.sibling.leave().await,
            Some(own) => own.close().await,
            None => {}
        }
    }

    /// Returns the tools that it may use, at most.
    fn catalogue(&self, may_spawn: bool) -> Catalogue {
        let parts = &self.spawner.parts;
        let mut catalogue = Catalogue::new(&parts.config.tools)
            .without_memory()
            .with_skills(&parts.skills.offers())
            .with_languages(&parts.languages);
        // The user's search engine serves the agent that they talk to.
        catalogue = catalogue.without_search();
        if parts.config.offline {
            catalogue = catalogue.offline();
        }
        if may_spawn {
            catalogue = catalogue.with_agents(&parts.types);
        } else {
            catalogue = catalogue.without_agents();
        }
        let foreign = if self.scope.only_reads {
            Vec::new()
        } else {
            let its = parts
                .foreign
                .iter()
                .filter(|tool| self.scope.has(&tool.name));
            its.cloned().collect()
        };
        let denied: BTreeSet<&str> = parts.denied.iter().map(String::as_str).collect();
        catalogue
            .for_agent(&self.scope)
            .without(&denied)
            .with_foreign(foreign)
    }

    /// Returns its own limits; those of the user's task count for all agents together.
    fn options(&self) -> agent::Options {
        let parts = &self.spawner.parts;
        let own = parts.config.agents.timeout.duration();
        // Some of it is left to the agent that waits for the answer.
        let left = parts.ledger.time_left().map(|left| left * 9 / 10);
        let time = left
            .into_iter()
            .chain((!own.is_zero()).then_some(own))
            .min()
            .map_or(0, |time| time.max(Duration::from_secs(1)).as_secs());
        agent::Options {
            max_turns: self.kind.turns,
            timeout: Seconds::new(time),
            context_warnings: Vec::new(),
            ..parts.config.agent.clone()
        }
    }

    /// Works on the task.
    async fn work(
        &self,
        agent: &mut Agent,
        task: &str,
        interrupt: &Interrupt,
    ) -> Result<Outcome, sandbox::Error> {
        let parts = &self.spawner.parts;
        let known = parts
            .context
            .lock()
            .expect("nothing panics while it holds this lock")
            .clone();
        let context = match known {
            Some(known) => known,
            None => gather_context(
                agent.pipeline(),
                &parts.config.agent,
                parts.probed.context,
                interrupt.run(),
            )
            .await?
            .unwrap_or_default(),
        };
        agent.add_context(&context);
        Ok(agent.run(task, interrupt).await)
    }
}

/// What is left of an agent that did not begin.
fn nothing_done() -> Outcome {
    Outcome {
        status: RunStatus::Failed,
        response: String::new(),
        turns: 0,
        tool_calls: 0,
        usage: Usage::default(),
        limit: None,
        failure: None,
        denied: Vec::new(),
        n_succeeded: 0,
        changed: Vec::new(),
    }
}

fn run_finished(outcome: &Result<Outcome, Error>, begun: Instant) -> Kind {
    let nothing = nothing_done();
    let (outcome, error) = match outcome {
        Ok(outcome) => (
            outcome,
            outcome.failure.as_ref().map(|error| with_causes(error)),
        ),
        Err(error) => (&nothing, Some(with_causes(error))),
    };
    Kind::RunFinished {
        status: outcome.status,
        exit_code: crate::exit_code::of_status(outcome.status),
        response: outcome.response.clone(),
        turns: outcome.turns,
        tool_calls: outcome.tool_calls,
        usage: outcome.usage,
        limit: outcome.limit,
        error,
        duration_ms: elapsed_ms(begun),
    }
}

fn elapsed_ms(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}
