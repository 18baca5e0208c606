use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Error;
use super::Place;
use super::holes;
use super::install;
use super::network;
use super::record::Recorder;
use podbay_config::Answers;
use podbay_config::Config;
use podbay_engine as engine;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_engine::Owner;
use podbay_engine::Provision;
use podbay_engine::Role;
use podbay_event::InstanceId;
use podbay_event::Kind;
use podbay_event::ProgressSink;
use podbay_event::SessionId;
use podbay_event::Sink;
use podbay_sandbox as sandbox;
use podbay_sandbox::Backend;
use podbay_sandbox::ImageUsers;
use podbay_sandbox::Lock;
use podbay_sandbox::NetworkMode;
use podbay_sandbox::Project;
use podbay_sandbox::Sandbox;
use podbay_sandbox::Socket;
use podbay_sandbox::Spec;
use podbay_session::Memories;
use podbay_session::State;
use podbay_wire::ExecGate;
use podbay_wire::keep::ReviewAnswer;
use podbay_wire::keep::ReviewOrder;
use podbay_wire::keep::UserGitSettings;

/// What every use of a project stands on: what is worked on, the settings, the engine.
pub(super) struct Bench {
    pub(super) config: Config,
    pub(super) state: State,
    ground: Ground,
    /// `None`: the sandbox is somebody else's, and no engine is contacted.
    engine: Option<Engine>,
    /// Whether somebody is there who may allow hosts.
    grantable: bool,
    /// Whether the sandbox begins in plan mode.
    read_only: bool,
}

/// What is worked on.
#[derive(Clone, Debug)]
pub(super) enum Ground {
    /// A folder, of which we make the sandbox.
    Project(Project),
    /// What the sandbox behind a socket has as its project.
    Socket(Socket),
}

impl Ground {
    /// Opens what the settings and the user name, and refuses what must not be worked on.
    /// Contacts nobody yet.
    pub(super) fn open(place: &Place) -> Result<Self, Error> {
        match place.config.sandbox.check().map_err(Error::Sandbox)? {
            Backend::Attach => Socket::open(&place.config.sandbox)
                .map(Self::Socket)
                .map_err(Error::Sandbox),
            Backend::Docker | Backend::Native => {
                open_project(&place.project, &place.state).map(Self::Project)
            }
        }
    }

    /// Takes it for this process. Whoever only joins a sandbox that is shared needs no lock.
    pub(super) fn lock(&self, state: &State) -> Result<Lock, Error> {
        match self {
            Self::Project(project) => Lock::take(&state.locks(), project),
            Self::Socket(socket) => Lock::take_socket(&state.locks(), socket),
        }
        .map_err(Error::Sandbox)
    }

    /// Returns where the user's lasting answers about it are kept.
    pub(super) fn answers(&self, state: &State) -> Option<Answers> {
        match self {
            Self::Project(project) => Some(Answers::new(
                &state.answers(),
                &project.key(),
                project.path(),
            )),
            Self::Socket(_) => None,
        }
    }

    /// Returns the notes of earlier sessions for it.
    pub(super) fn memories(&self, state: &State) -> Memories {
        match self {
            Self::Project(project) => Memories::new(state, Some((&project.key(), project.path()))),
            Self::Socket(_) => Memories::new(state, None),
        }
    }

    /// Returns the project's folder, if it is one of this machine.
    pub(super) fn project(&self) -> Option<&Project> {
        match self {
            Self::Project(project) => Some(project),
            Self::Socket(_) => None,
        }
    }

    /// Returns what a session calls it.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Project(project) => project.text().to_owned(),
            Self::Socket(socket) => socket.path().display().to_string(),
        }
    }
}

/// Opens a project folder and refuses what must not be one.
pub(super) fn open_project(path: &Path, state: &State) -> Result<Project, Error> {
    open_project_at(path, state.root())
}

/// Like [`open_project`], where the state folder need not be there.
pub(super) fn open_project_at(path: &Path, state: &Path) -> Result<Project, Error> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    Project::open(path, home.as_deref(), state).map_err(Error::Sandbox)
}

impl Bench {
    /// Returns what a session calls what is worked on.
    pub(super) fn ground_text(&self) -> String {
        self.ground.text()
    }

    /// Connects to the engine, and knows what it is before anything else starts.
    pub(super) async fn open(
        config: &Config,
        state: &State,
        ground: Ground,
        cancel: &CancellationToken,
    ) -> Result<Self, Error> {
        let bench = Self::reach(config, state, ground, cancel).await?;
        if let Some(engine) = &bench.engine {
            engine.facts(cancel).await.map_err(Error::Engine)?;
        }
        Ok(bench)
    }

    /// Connects to the engine for a sandbox that is all that is wanted: what the engine is gets asked
    /// while its image is looked up.
    pub(super) async fn reach(
        config: &Config,
        state: &State,
        ground: Ground,
        cancel: &CancellationToken,
    ) -> Result<Self, Error> {
        engine::keep_machine_id(state.root());
        let engine = match &ground {
            Ground::Project(_) => Some(
                Engine::open(&config.engine, cancel)
                    .await
                    .map_err(Error::Engine)?
                    .keeping_facts_in(&state.engines()),
            ),
            Ground::Socket(_) => None,
        };
        let mut config = config.clone();
        if let Ground::Project(project) = &ground {
            config
                .sandbox
                .auto_run
                .extend(sandbox::git::obeyed_around(project));
        }
        if config.network.mode() != NetworkMode::None && engine.is_none() {
            return Err(Error::not_attached("a network (`network.mode`, --network)"));
        }
        Ok(Self {
            config,
            state: state.clone(),
            ground,
            engine,
            grantable: false,
            read_only: false,
        })
    }

    /// Says that somebody is there who may allow hosts while the session lasts.
    pub(super) fn let_grant(&mut self) {
        self.grantable = true;
    }

    /// Has the session's sandbox begin in plan mode.
    pub(super) fn begin_read_only(&mut self) {
        self.read_only = true;
    }

    pub(super) fn engine(&self) -> Result<&Engine, Error> {
        self.engine
            .as_ref()
            .ok_or_else(|| Error::not_attached("what needs a container engine"))
    }

    pub(super) fn project(&self) -> Result<&Project, Error> {
        match &self.ground {
            Ground::Project(project) => Ok(project),
            Ground::Socket(_) => Err(Error::not_attached("what needs the project's folder")),
        }
    }

    /// Returns the socket of a sandbox that Podbay did not start.
    pub(super) fn socket(&self) -> Option<&Socket> {
        match &self.ground {
            Ground::Project(_) => None,
            Ground::Socket(socket) => Some(socket),
        }
    }

    /// Makes sure the image is there and puts the sandbox together from it.
    pub(super) async fn spec(
        &self,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<Spec, Error> {
        let name = self
            .config
            .sandbox
            .image
            .as_deref()
            .unwrap_or(sandbox::DEFAULT_IMAGE);
        let (engine, provision) = (self.engine()?, self.provision(progress)?);
        // What it is takes an engine longest to say, and what it says tells best what is wrong with
        // one that is none.
        let (facts, found) = tokio::join!(engine.facts(cancel), provision.find(name, cancel));
        let facts = facts.map_err(Error::Engine)?;
        let image = match found.map_err(Error::Engine)? {
            Some(image) => image,
            None => provision
                .ensure(name, cancel)
                .await
                .map_err(Error::Engine)?,
        };
        let spec = Spec::new(
            self.project()?,
            &image,
            facts,
            &self.config.sandbox,
            &sandbox::guest_volume_name(),
        )
        .map_err(Error::Sandbox)?;
        let spec = spec
            .reading_only(self.read_only)
            .covering_as_before(&self.state.covers(), &self.config.sandbox.auto_run)
            .with_network(network::plan(
                &self.config,
                self.grantable,
                self.ground.answers(&self.state).as_ref(),
            ));
        if self.config.sandbox.strict
            && let Some(problem) = holes::ways_out(facts)
        {
            return Err(Error::Sandbox(sandbox::Error::Strict { problem }));
        }
        // What we build ourselves is known.
        let spec = if name == sandbox::DEFAULT_IMAGE {
            spec.for_users(&ImageUsers::of_workspace())
        } else {
            spec.fit_to_image(engine, &image, &self.state.images(), progress, cancel)
                .await
                .map_err(Error::Sandbox)?
        };
        let caches = install::caches_of(engine, self.project()?, &self.config, cancel).await?;
        Ok(spec.with_caches(caches))
    }

    pub(super) fn provision(&self, progress: &ProgressSink) -> Result<Provision, Error> {
        Ok(Provision::new(
            self.engine()?,
            &self.config.engine,
            self.config.offline,
            self.state.locks(),
            progress,
        ))
    }

    /// Says which holes of the engine let a container out, where that was not said before. The
    /// engine has told of itself by now.
    pub(super) async fn holes_once(&self, cancel: &CancellationToken) -> Option<String> {
        let facts = self.engine.as_ref()?.facts(cancel).await.ok()?;
        holes::ways_out_once(facts, &self.state.engines())
    }

    /// Says what it means where the guest does not see which programs run; with `sandbox.strict` no
    /// sandbox is used there.
    pub(super) fn gate_lack(&self, gate: ExecGate) -> Result<Option<String>, Error> {
        let Some(lack) = sandbox::gate_lack(gate) else {
            return Ok(None);
        };
        if self.config.sandbox.strict {
            return Err(Error::Sandbox(sandbox::Error::Strict {
                problem: lack.words(),
            }));
        }
        Ok(Some(lack.words()))
    }

    pub(super) fn lock(&self) -> Result<Lock, Error> {
        self.ground.lock(&self.state)
    }

    /// Gets the session's sandbox: a new one, that of `podbay up`, or the one that is attached to.
    pub(super) async fn start(
        &self,
        progress: &ProgressSink,
        session: Option<&SessionId>,
        sink: Sink,
        cancel: &CancellationToken,
    ) -> Result<(Sandbox, sandbox::Started), Error> {
        if let Some(socket) = self.socket() {
            return Sandbox::attach(socket, &self.config.sandbox, sink, cancel)
                .await
                .map_err(Error::Sandbox);
        }
        let spec = self.spec(progress, cancel).await?;
        self.sandbox(&spec, session, sink, cancel).await
    }

    /// Starts a sandbox whose changes are pending under the session's name; `by_turn`: to the end of
    /// each turn.
    pub(super) async fn start_reviewed(
        &self,
        progress: &ProgressSink,
        session: &SessionId,
        words: &str,
        by_turn: bool,
        sink: Sink,
        cancel: &CancellationToken,
    ) -> Result<(Sandbox, sandbox::Started), Error> {
        let (engine, spec) = (self.engine()?, self.spec(progress, cancel).await?);
        let held = sandbox::reviews(engine, self.project()?, cancel)
            .await
            .map_err(Error::Sandbox)?;
        if by_turn {
            self.tell_waiting(&spec, &held, session, &sink, cancel)
                .await;
        }
        let review = sandbox::HeldReview::of(session);
        let is_new = held.iter().all(|held| held.session != *session);
        let started = Box::pin(self.hold_back(&spec, session, by_turn, sink, cancel)).await;
        if let Ok((sandbox, _)) = &started {
            if by_turn {
                sandbox.begin_view(words);
            } else {
                sandbox.begin_review(words, is_new, cancel);
            }
        } else if is_new {
            // Nothing has run in it.
            if let Err(error) =
                sandbox::remove_review(engine, &review, &CancellationToken::new()).await
            {
                tracing::debug!(%error, "the volumes of a review that did not begin are left");
            }
        }
        started
    }

    /// Says what of other sessions waits whose turns went into the project: their last ones, which
    /// were cut off. What changed nothing is removed.
    async fn tell_waiting(
        &self,
        spec: &Spec,
        held: &[sandbox::HeldReview],
        session: &SessionId,
        sink: &Sink,
        cancel: &CancellationToken,
    ) {
        let Ok(engine) = self.engine() else { return };
        for held in held
            .iter()
            .filter(|held| held.is_by_turn && held.session != *session && held.elsewhere.is_none())
        {
            // That of a session that continues is nobody else's business.
            let Ok(lock) = sandbox::Lock::take_review(&self.state.locks(), held.session.as_str())
            else {
                continue;
            };
            let order = ReviewOrder::End {
                name: held.session.to_string(),
                auto_run: self.config.sandbox.auto_run.clone(),
            };
            match Box::pin(sandbox::review(
                engine,
                spec,
                &self.config.sandbox,
                Some(held),
                order,
                cancel,
            ))
            .await
            {
                Ok(ReviewAnswer::Ended(pending)) if pending.is_empty() => {
                    if let Err(error) = sandbox::remove_review(engine, held, cancel).await {
                        tracing::debug!(%error, "the volumes of a session without changes are left");
                    }
                }
                Ok(ReviewAnswer::Ended(pending)) => {
                    let (n, id) = (pending.changes.n, &held.session);
                    let message = format!(
                        "the last turn of the session {id} was interrupted, and its changes are pending ({n} paths): `podbay review diff {id}`, then `apply` or \
                         `discard`"
                    );
                    sink(Kind::Warning { message }.into());
                }
                other => tracing::debug!(?other, "what waits of a session is not known"),
            }
            lock.release();
        }
    }

    async fn hold_back(
        &self,
        spec: &Spec,
        session: &SessionId,
        by_turn: bool,
        sink: Sink,
        cancel: &CancellationToken,
    ) -> Result<(Sandbox, sandbox::Started), Error> {
        let (engine, options) = (self.engine()?, &self.config.sandbox);
        let held = sandbox::hold_back(engine, spec, options, session, by_turn, cancel)
            .await
            .map_err(Error::Sandbox)?;
        let mut started =
            Box::pin(self.sandbox(&held, Some(session), Arc::clone(&sink), cancel)).await;
        if matches!(&started, Err(Error::Sandbox(error)) if sandbox::cannot_lay_over(error)) {
            let why = "no file system can be laid over it";
            let held = sandbox::copy_whole(engine, spec, options, session, by_turn, why, cancel)
                .await
                .map_err(Error::Sandbox)?;
            started = Box::pin(self.sandbox(&held, Some(session), sink, cancel)).await;
        }
        started
    }

    /// Starts the session's sandbox, or joins that of `podbay up`.
    pub(super) async fn sandbox(
        &self,
        spec: &Spec,
        session: Option<&SessionId>,
        sink: Sink,
        cancel: &CancellationToken,
    ) -> Result<(Sandbox, sandbox::Started), Error> {
        let labels = Labels {
            instance: Some(InstanceId::random()),
            owner: Some(Owner::current()),
            session: session.cloned(),
            ..Labels::new(Role::Workspace)
        };
        let spec = if session.is_some() {
            &spec.with_git(self.git_options())
        } else {
            spec
        };
        Sandbox::start(
            self.engine()?,
            spec,
            &self.config.sandbox,
            labels,
            &self.state.covers(),
            sink,
            cancel,
        )
        .await
        .map_err(Error::Sandbox)
    }

    /// Returns what a session's git needs.
    pub(super) fn git_options(&self) -> sandbox::git::Options {
        let auto_run = self.config.sandbox.auto_run.clone();
        sandbox::git::Options {
            aside: self.state.aside(),
            person: own_settings(),
            auto_run,
            file_size: self.config.sandbox.file_size.bytes(),
        }
    }

    /// Says which containers could not be removed while something else was to be said.
    pub(super) fn tell_left(&self, sink: &Sink) {
        for left in self.engine.iter().flat_map(Engine::take_left) {
            sink(
                Kind::Warning {
                    message: left.to_string(),
                }
                .into(),
            );
        }
    }

    /// Removes what controllers that were killed left behind. It must not delay anybody, and its
    /// failure is nobody's.
    pub(super) fn sweep_aside(&self) {
        let Some(engine) = self.engine.clone() else {
            return;
        };
        tokio::spawn(async move {
            let within = Duration::from_secs(30);
            let cancel = CancellationToken::new();
            match tokio::time::timeout(
                within,
                engine.sweep(&sandbox::guest_volume_name(), None, &cancel),
            )
            .await
            {
                Ok(Ok(swept)) if !swept.removed.is_empty() => {
                    tracing::info!(removed = ?swept.removed, "removed leftovers");
                }
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "sweeping failed"),
                Err(_) => tracing::debug!("sweeping took too long"),
            }
        });
    }
}

/// Returns what the user's own settings of git say of a session.
fn own_settings() -> UserGitSettings {
    let var = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let home = var("HOME");
    let config = var("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
    sandbox::git::person(home.as_deref(), config.as_deref(), Some(Path::new("/etc")))
}

/// Returns a progress sink that turns steps into events.
pub(super) fn progress_of(recorder: &Recorder) -> ProgressSink {
    let sink = recorder.sink();
    Arc::new(move |step| sink(Kind::Progress(step).into()))
}
