//! Sandbox and model start side by side: neither needs the other, and each takes its time.

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::opened_session::Applied;
use super::opened_session::OpenedSession;
use super::prompt::first_prompt;
use super::prompt::keep_mode;
use crate::Error;
use crate::Front;
use crate::Place;
use crate::bench::Bench;
use crate::mcp::session::BegunServers;
use crate::mcp::session::NamedServers;
use crate::model;
use crate::own_server::OwnServer;
use crate::resume::Aim;
use crate::throwaway;
use podbay_agent::Conversation;
use podbay_event::Kind;
use podbay_event::ProgressSink;
use podbay_event::Sink;
use podbay_llm::Client;
use podbay_llm::ProbeResult;
use podbay_sandbox::Sandbox;
use podbay_sandbox::Started;
use podbay_tools::Catalogue;
use podbay_tools::ForeignTool;

/// What a start needs.
pub(super) struct Start<'a> {
    pub(super) place: &'a Place,
    pub(super) aim: Aim<'a>,
    pub(super) front: &'a Front,
    pub(super) opened: &'a OpenedSession,
    pub(super) bench: &'a Bench,
    pub(super) progress: &'a ProgressSink,
    pub(super) servers: &'a NamedServers,
    pub(super) cancel: &'a CancellationToken,
}

/// Sandbox and model, ready.
pub(super) struct Startup {
    pub(super) sandbox: Sandbox,
    pub(super) started: Started,
    pub(super) servers: BegunServers,
    /// What is to be said where the programs of a command cannot be seen.
    pub(super) unseen: Option<String>,
    pub(super) model: ReadyModel,
}

pub(super) struct ReadyModel {
    pub(super) client: Client,
    pub(super) probed: ProbeResult,
    /// What the user should know of it.
    pub(super) notes: Vec<String>,
    /// The server, where it is ours.
    pub(super) server: Option<OwnServer>,
    /// Languages of `sandbox_run`.
    pub(super) languages: Vec<&'static str>,
    pub(super) conversation: Conversation,
    /// The event that says how requests begin, where the log has none of it.
    pub(super) begins: Option<Kind>,
    /// Images that were taken out of the conversation, which this model cannot see.
    pub(super) n_images: usize,
}

impl Start<'_> {
    /// Returns the catalogue with what sandbox and model add to it, too.
    pub(super) async fn both(&self, catalogue: Catalogue) -> Result<(Startup, Catalogue), Error> {
        // Only the tools of servers, which run in the sandbox, are waited for before the first
        // prompt is made.
        let (tell_tools, tools) = oneshot::channel();
        let (made, model) = tokio::join!(
            Box::pin(self.sandbox(tell_tools)),
            Box::pin(self.model(catalogue, tools))
        );
        let sink = self.opened.recorder.sink();
        self.bench.tell_left(&sink);
        let (sandbox, started, servers) = made?;
        sandbox.hurry_at(self.front.interrupt.haste());
        let unseen = self.bench.gate_lack(started.facts.exec_gate);
        match unseen.and_then(|unseen| Ok((unseen, model?))) {
            Ok((unseen, (model, catalogue))) => {
                let startup = Startup {
                    sandbox,
                    started,
                    servers,
                    unseen,
                    model: model.kept(&sink),
                };
                Ok((startup, catalogue))
            }
            Err(error) => {
                sandbox.give_up().await;
                Err(error)
            }
        }
    }

    /// Starts the sandbox, and then the MCP servers, whose tools are sent on.
    async fn sandbox(
        &self,
        tell_tools: oneshot::Sender<Vec<ForeignTool>>,
    ) -> Result<(Sandbox, Started, BegunServers), Error> {
        let (sandbox, started) = self.sandbox_alone().await?;
        let mut begun = BegunServers::default();
        if !self.servers.are_none() {
            sandbox.hurry_at(self.front.interrupt.haste());
            begun = self
                .servers
                .begin(
                    &self.opened.config,
                    &self.place.project,
                    &sandbox,
                    &self.opened.policy,
                    &self.place.state,
                    self.cancel,
                )
                .await;
        }
        let _ = tell_tools.send(begun.tools.clone());
        Ok((sandbox, started, begun))
    }

    async fn sandbox_alone(&self) -> Result<(Sandbox, Started), Error> {
        let (bench, recorder, cancel) = (self.bench, &self.opened.recorder, self.cancel);
        let (session, sink) = (recorder.session(), recorder.sink());
        let is_by_turn = match self.opened.applied {
            Applied::AtOnce => {
                let starting = bench.start(self.progress, Some(session), sink, cancel);
                return Box::pin(starting).await;
            }
            applied => applied == Applied::ByTurn,
        };
        let no_task = if is_by_turn { "a chat" } else { "(continues)" };
        let words = self.aim.task().unwrap_or(no_task);
        Box::pin(bench.start_reviewed(self.progress, session, words, is_by_turn, sink, cancel))
            .await
    }

    /// Finds a model that answers, and makes the conversation with it.
    async fn model(
        &self,
        catalogue: Catalogue,
        tools: oneshot::Receiver<Vec<ForeignTool>>,
    ) -> Result<(FoundModel, Catalogue), Error> {
        let (bench, opened, cancel) = (self.bench, self.opened, self.cancel);
        let (config, past) = (&opened.config, &opened.past);
        let key = self.place.api_key.clone();
        let mut found = Box::pin(model::connect(bench, key, self.progress, cancel)).await?;
        keep_mode(&mut found.probed, past, config.llm.tool_mode);
        let languages = throwaway::languages(bench, self.progress, cancel);
        let (foreign, languages) = tokio::join!(tools, languages);
        let catalogue = catalogue
            .with_languages(&languages)
            .with_foreign(foreign.unwrap_or_default())
            .restoring(&found.probed.tokens);
        let (prompt, begins) = first_prompt(&catalogue, &found.probed, past, opened.profile());
        let mut history = past.history.clone();
        // Another model may continue the session, and one that sees nothing would be refused
        // every request.
        let n_images = if found.probed.images {
            0
        } else {
            history.take_images_out()
        };
        let prompt = prompt
            .with_untold(&catalogue.unlisted_tools())
            .with_dialect(found.client.dialect())
            .with_tokens(&found.probed.tokens);
        let conversation = Conversation::resume(prompt, history);
        let warm_up = config.inference.warm_up.duration();
        if found.own.is_some()
            && !warm_up.is_zero()
            && let Err(error) = found
                .client
                .warm(conversation.prompt(), cancel, warm_up)
                .await
        {
            // It only saves time, and the first request will say what is wrong.
            tracing::debug!(%error, "the model could not read ahead");
        }
        let model = FoundModel {
            found,
            languages,
            conversation,
            begins,
            n_images,
        };
        Ok((model, catalogue))
    }
}

/// A model whose server ends with this value.
struct FoundModel {
    found: model::Found,
    languages: Vec<&'static str>,
    conversation: Conversation,
    begins: Option<Kind>,
    n_images: usize,
}

impl FoundModel {
    /// Keeps its server for as long as the session lasts.
    fn kept(self, sink: &Sink) -> ReadyModel {
        let model::Found {
            client,
            probed,
            notes,
            own,
        } = self.found;
        ReadyModel {
            client,
            probed,
            notes,
            server: own.map(|(server, serving)| OwnServer::keep(server, serving, sink.clone())),
            languages: self.languages,
            conversation: self.conversation,
            begins: self.begins,
            n_images: self.n_images,
        }
    }
}
