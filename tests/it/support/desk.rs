//! An agent at work without an engine: the real loop, pipeline and guest, a scripted model.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use podbay::agent;
use podbay::agent::Agent;
use podbay::agent::Conversation;
use podbay::agent::Interrupt;
use podbay::agent::Outcome;
use podbay::agent::Profile;
use podbay::agent::system_prompt;
use podbay::event::Answer;
use podbay::event::Answered;
use podbay::event::Asked;
use podbay::event::Event;
use podbay::event::Kind;
use podbay::event::SessionId;
use podbay::event::Sink;
use podbay::llm;
use podbay::llm::Client;
use podbay::llm::Endpoint;
use podbay::llm::Prompt;
use podbay::mcp::Caller;
use podbay::mcp::Servers;
use podbay::policy;
use podbay::policy::ForeignCall;
use podbay::policy::Mode;
use podbay::policy::Policy;
use podbay::sandbox;
use podbay::sandbox::link::Asks;
use podbay::session;
use podbay::session::Artifacts;
use podbay::session::ResumeState;
use podbay::session::State;
use podbay::tools;
use podbay::tools::Asker;
use podbay::tools::Catalogue;
use podbay::tools::ForeignTool;
use podbay::tools::KeptLines;
use podbay::tools::Later;
use podbay::tools::OnChunk;
use podbay::tools::Pipeline;
use podbay::tools::Services;
use podbay::tools::Workspace;
use podbay::wire::Call;
use podbay::wire::ExecGate;
use podbay::wire::Output;
use podbay::wire::message::Stream;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::guest::PATIENCE;
use super::guest::TestGuest;
use super::scripted_model::Running;

/// What a test may want otherwise.
pub(crate) struct Wishes {
    pub(crate) mode: Mode,
    pub(crate) policy: policy::Options,
    pub(crate) agent: agent::Options,
    pub(crate) tools: tools::Options,
    pub(crate) hooks: tools::HookOptions,
    pub(crate) llm: llm::Options,
    /// What the user says, one answer after the other; then they think for ever.
    pub(crate) answers: Vec<Answered>,
    /// Nobody is there to be asked.
    pub(crate) alone: bool,
    /// The user is asked at the limit on requests, as in a chat: an answer that allows lets the task continue.
    pub(crate) asks_at_limit: bool,
    /// An earlier conversation to continue.
    pub(crate) past: ResumeState,
    /// Tools of MCP servers, and who is called for them.
    pub(crate) foreign: Vec<ForeignTool>,
    pub(crate) servers: Option<Arc<Servers>>,
}

impl Default for Wishes {
    fn default() -> Self {
        let llm = llm::Options {
            retries: 0,
            ..llm::Options::default()
        };
        Self {
            mode: Mode::Auto,
            policy: policy::Options::default(),
            agent: agent::Options::default(),
            tools: tools::Options::default(),
            hooks: tools::HookOptions::default(),
            llm,
            answers: Vec::new(),
            alone: false,
            asks_at_limit: false,
            past: ResumeState::default(),
            foreign: Vec::new(),
            servers: None,
        }
    }
}

pub(crate) struct Desk {
    pub(crate) guest: TestGuest,
    pub(crate) model: Running,
    pub(crate) interrupt: Interrupt,
    /// The prompt that the conversation began with.
    pub(crate) prompt: Prompt,
    pub(crate) agent: tokio::sync::Mutex<Agent>,
    events: Arc<Mutex<Vec<Event>>>,
    reached: Arc<Mutex<Vec<String>>>,
    /// Pressed when a user is asked, before they answer.
    pub(crate) before_answer: Arc<Mutex<Option<Interrupt>>>,
    /// What its calls left to be read again.
    pub(crate) artifacts: Artifacts,
    _state: TempDir,
}

impl Desk {
    pub(crate) async fn new(model: Running, wishes: Wishes) -> Self {
        let guest = TestGuest::start().await;
        let workspace = guest.link.clone();
        Self::over(guest, Arc::new(workspace), model, wishes).await
    }

    /// Puts something of the test's own between the pipeline and the guest.
    pub(crate) async fn over(
        guest: TestGuest,
        inner: Arc<dyn Workspace>,
        model: Running,
        wishes: Wishes,
    ) -> Self {
        let events = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&events);
        let sink: Sink = Arc::new(move |event| {
            kept.lock()
                .expect("no test panics while it holds this")
                .push(event);
        });
        let endpoint = Endpoint::parse(&model.endpoint()).expect("an address");
        let client = Client::new(endpoint, None, wishes.llm.clone()).expect("a client");
        let probed = client
            .probe(&CancellationToken::new(), PATIENCE)
            .await
            .expect("answers");
        // Nothing is kept here for later sessions, and there are no skills.
        let catalogue = Catalogue::new(&wishes.tools)
            .without_memory()
            .without_agents()
            .with_skills(&[])
            .with_foreign(wishes.foreign);
        let specs = catalogue.listed_tools();
        let folded = wishes
            .past
            .beginning
            .as_ref()
            .is_some_and(|beginning| beginning.folded);
        let prompt = Prompt::new(&system_prompt(Profile::Standard), &specs, probed.tools)
            .with_thinking_replayed(probed.replay_thinking());
        let prompt = prompt
            .with_tokens(&probed.tokens)
            .with_system_folded(folded)
            .with_untold(&catalogue.unlisted_tools());
        let folder = tempfile::tempdir().expect("a folder");
        let state = State::open(&folder.path().join("state")).expect("a state folder");
        let artifacts = Artifacts::new(&state, &SessionId::random(), &session::Options::default());
        let reached = Arc::<Mutex<Vec<String>>>::default();
        let before_answer = Arc::<Mutex<Option<Interrupt>>>::default();
        let asker = Arc::new(Person {
            answers: Mutex::new(wishes.answers),
            alone: wishes.alone,
            before: Arc::clone(&before_answer),
        });
        let pipeline = Pipeline::new(
            catalogue.restoring(&probed.tokens),
            Policy::new(wishes.mode, &wishes.policy).expect("good rules"),
            Arc::new(Watched {
                inner,
                reached: Arc::clone(&reached),
            }),
            Arc::new(Kept(artifacts.clone(), wishes.servers)),
            Arc::clone(&asker) as Arc<dyn Asker>,
            Arc::clone(&sink),
            wishes.tools.clone(),
        );
        let pipeline = pipeline.with_hooks(wishes.hooks, None);
        pipeline.set_window(probed.context);
        pipeline.set_images(probed.images);
        pipeline.recall_tasks(&wishes.past.tasks);
        let conversation = Conversation::resume(prompt.clone(), wishes.past.history.clone());
        let mut agent = Agent::new(
            client,
            conversation,
            Arc::new(pipeline),
            wishes.tools.parallel as usize,
            wishes.agent,
            sink,
        );
        if wishes.asks_at_limit {
            agent.ask_at_request_limit(asker);
        }
        let agent = tokio::sync::Mutex::new(agent.with_past(&wishes.past));
        Self {
            guest,
            model,
            interrupt: Interrupt::new(),
            prompt,
            agent,
            events,
            reached,
            before_answer,
            artifacts,
            _state: folder,
        }
    }

    /// Works on a task to its end.
    pub(crate) async fn work(&self, task: &str) -> Outcome {
        let mut agent = self.agent.lock().await;
        tokio::time::timeout(PATIENCE, agent.run(task, &self.interrupt))
            .await
            .expect("ends")
    }

    /// Continues with the task that the earlier conversation left open.
    pub(crate) async fn go_on(&self) -> Outcome {
        let mut agent = self.agent.lock().await;
        tokio::time::timeout(
            PATIENCE,
            agent.run_since(Instant::now(), None, &self.interrupt),
        )
        .await
        .expect("ends")
    }

    /// Returns all events so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.events
            .lock()
            .expect("no test panics while it holds this")
            .clone()
    }

    /// Returns the kinds of all events so far.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.events
            .lock()
            .expect("no test panics while it holds this")
            .iter()
            .map(|event| event.kind.clone())
            .collect()
    }

    /// Returns the calls that reached the guest, each by its tool's name.
    pub(crate) fn reached(&self) -> Vec<String> {
        self.reached
            .lock()
            .expect("no test panics while it holds this")
            .clone()
    }

    /// Returns the results that the model was told in its request `n`, from 0.
    pub(crate) fn results(&self, n: usize) -> Vec<String> {
        let requests = self.model.requests();
        let messages = requests[n]["messages"].as_array().expect("messages");
        let results = messages.iter().filter(|message| message["role"] == "tool");
        results
            .filter_map(|message| message["content"].as_str().map(str::to_owned))
            .collect()
    }

    /// Returns the last message of request `n`, from 0: what the model was told then.
    pub(crate) fn told(&self, n: usize) -> String {
        let requests = self.model.requests();
        let last = requests[n]["messages"]
            .as_array()
            .and_then(|messages| messages.last())
            .expect("messages");
        last["content"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits for a file in the workspace.
    pub(crate) async fn wait_for(&self, name: &str) {
        let path = self.guest.path(name);
        let found = async {
            while !path.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, found)
            .await
            .expect("appears");
    }
}

/// Notes what passes.
pub(crate) struct Watched {
    pub(crate) inner: Arc<dyn Workspace>,
    pub(crate) reached: Arc<Mutex<Vec<String>>>,
}

impl Watched {
    fn note(&self, call: &Call) {
        let name = serde_json::to_value(call.plain()).expect("plain data")["type"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        self.reached
            .lock()
            .expect("no test panics while it holds this")
            .push(name);
    }
}

impl Workspace for Watched {
    fn call<'a>(
        &'a self,
        call: Call,
        on_chunk: OnChunk<'a>,
        cancel: &'a CancellationToken,
        deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        self.note(&call);
        self.inner.call(call, on_chunk, cancel, deadline)
    }

    fn call_asking<'a>(
        &'a self,
        call: Call,
        on_chunk: OnChunk<'a>,
        asks: &'a dyn Asks,
        cancel: &'a CancellationToken,
        deadline: Duration,
    ) -> Later<'a, Result<Output, sandbox::Error>> {
        self.note(&call);
        self.inner
            .call_asking(call, on_chunk, asks, cancel, deadline)
    }

    fn exec_gate(&self) -> Later<'_, ExecGate> {
        self.inner.exec_gate()
    }

    fn ended(&self) -> Later<'_, sandbox::Ended> {
        self.inner.ended()
    }

    fn tell_ended(&self, ended: sandbox::Ended) -> Later<'_, String> {
        self.inner.tell_ended(ended)
    }
}

struct Kept(Artifacts, Option<Arc<Servers>>);

impl Services for Kept {
    fn store_artifact(&self, call: &str, bytes: &[u8]) -> Option<String> {
        self.0.store(call, bytes).ok().map(|stored| stored.id)
    }

    fn read_artifact(&self, id: &str, offset: u64, limit: u64) -> Result<KeptLines, String> {
        let page = self
            .0
            .page(id, offset, limit)
            .map_err(|error| error.to_string())?;
        Ok(KeptLines {
            text: page.text,
            next: page.next,
            bytes: page.bytes,
        })
    }

    fn call_foreign<'a>(
        &'a self,
        call: ForeignCall,
        mut on_chunk: OnChunk<'a>,
        _asker: &'a dyn Asker,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Result<String, String>> {
        Box::pin(async move {
            let servers = self.1.as_ref().ok_or("no servers")?;
            let mut on_progress =
                |line: &str| on_chunk(Stream::Stdout, format!("{line}\n").as_bytes());
            let mut caller = Caller {
                on_progress: &mut on_progress,
                user: None,
            };
            let called = servers
                .call_tool(&call.name, call.arguments, &mut caller, cancel)
                .await;
            if called.is_ok {
                Ok(called.text)
            } else {
                Err(called.text)
            }
        })
    }
}

struct Person {
    answers: Mutex<Vec<Answered>>,
    alone: bool,
    before: Arc<Mutex<Option<Interrupt>>>,
}

impl Asker for Person {
    fn ask<'a>(&'a self, _asked: &'a Asked) -> Later<'a, Answered> {
        if let Some(interrupt) = &*self
            .before
            .lock()
            .expect("no test panics while it holds this")
        {
            interrupt.press();
        }
        let mut answers = self
            .answers
            .lock()
            .expect("no test panics while it holds this");
        let answer = if answers.is_empty() {
            None
        } else {
            Some(answers.remove(0))
        };
        // A user who says nothing keeps everybody waiting.
        Box::pin(async move {
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }

    fn may_continue<'a>(&'a self, question: &'a str) -> Later<'a, bool> {
        assert!(
            question.ends_with(" requests used. Continue?"),
            "{question}"
        );
        let mut answers = self
            .answers
            .lock()
            .expect("no test panics while it holds this");
        let may = !answers.is_empty() && answers.remove(0).answer == Answer::Allow;
        Box::pin(std::future::ready(may))
    }

    /// Takes the first answer, or says what was asked.
    fn question<'a>(
        &'a self,
        question: &'a str,
        options: &'a [String],
    ) -> Later<'a, Option<String>> {
        let answer = options
            .first()
            .cloned()
            .unwrap_or_else(|| format!("what is `{question}`?"));
        Box::pin(std::future::ready(Some(answer)))
    }

    fn can_answer(&self) -> bool {
        !self.alone
    }
}
