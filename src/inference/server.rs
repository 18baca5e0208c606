use std::fs;
use std::io::Write;
use std::net::Ipv4Addr;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Health;
use super::Hold;
use super::Model;
use super::Options;
use super::Paths;
use super::file;
use super::health::Probe;
use super::hold;
use super::paths::SOCKET;
use super::paths::make_for;
use super::plan::Host;
use super::plan::KEY;
use super::plan::PORT;
use super::plan::Plan;
use crate::engine;
use crate::engine::ContainerId;
use crate::engine::ContainerState;
use crate::engine::Engine;
use crate::engine::FileLock;
use crate::engine::ImageFacts;
use crate::engine::Network;
use crate::event::Progress;
use crate::event::ProgressSink;
use crate::event::Secret;
use crate::event::Unit;
use crate::llm::http::Endpoint;

/// How long a server that is up may take to say so; one that computes on all cores is slower than an idle one.
const ANSWER: Duration = Duration::from_secs(3);

/// How long one that says nothing is waited for before it is replaced.
const LAST_CHANCE: Duration = Duration::from_secs(10);

/// Between two looks at a server that starts.
const PAUSE: Duration = Duration::from_millis(50);

/// Lines of its log that explain why it ended.
const LOG_LINES: u32 = 15;

/// The one model server of a state folder.
#[derive(Clone)]
pub struct ModelServer {
    engine: Engine,
    options: Options,
    paths: Paths,
    name: String,
}

/// A model server that answers.
#[derive(Clone, Debug)]
pub struct Serving {
    pub endpoint: Endpoint,
    pub key: Secret,
    /// What it calls its model.
    pub model: String,
    /// Tokens it was started with.
    pub context: u64,
    pub container: ContainerId,
    /// Whether it ran already.
    pub reused: bool,
    /// While it is there, no other process ends the server.
    pub hold: Arc<Hold>,
}

/// What is known of the model server's container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerState {
    pub name: String,
    pub container: ContainerId,
    pub running: bool,
    pub started_at: String,
    pub image: String,
    pub health: Health,
    pub endpoint: String,
}

impl ModelServer {
    pub fn new(engine: &Engine, options: &Options, paths: &Paths) -> Self {
        let name = format!("podbay-llama-server-{}", paths.key());
        Self { engine: engine.clone(), options: options.clone(), paths: paths.clone(), name }
    }

    /// Returns a server of this model and these settings that answers; starts it, or replaces another, where that is needed.
    ///
    /// There is one server for a state folder. One that another process works with is not replaced: that is an error.
    pub async fn ensure(
        &self,
        image: &ImageFacts,
        model: &Model,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<Serving, Error> {
        let facts = self.engine.facts(cancel).await.map_err(Error::engine("ask the engine what it is"))?;
        let plan = self.plan(facts, image, model)?;
        let hold = {
            let _gate = self.gate(cancel).await?;
            Arc::new(Hold::take(&self.paths.holds(), &plan.hash, &model.name)?)
        };
        let serving = |container: ContainerId, endpoint: Endpoint, key: Secret, reused: bool| Serving {
            endpoint,
            key,
            model: model.name.clone(),
            context: plan.context,
            container,
            reused,
            hold: Arc::clone(&hold),
        };
        // Without the lock: while one controller starts a server, others with their own must not wait.
        if let Some((state, probe, key)) = self.running(&plan, cancel).await?
            && cancelled(cancel, probe.ask(ANSWER)).await? == Health::Ready
        {
            return Ok(serving(state.id.clone(), self.endpoint(&state), key, true));
        }
        let task = format!("starting the model server for {}", model.name);
        let show = |detail: &str, finished: bool| {
            progress(Progress { task: task.clone(), done: 0, total: None, unit: Unit::Steps, detail: detail.to_owned(), finished });
        };
        let folder = self.paths.locks();
        let lock = FileLock::wait(&folder, "model-server", || show("another Podbay is starting it", false), cancel);
        let _lock = lock.await.map_err(Error::engine("wait for the start of the model server"))?;
        if let Some((state, probe, key)) = self.running(&plan, cancel).await? {
            let ready = self.wait(&state.id, &probe, LAST_CHANCE, &show, cancel).await;
            match ready {
                Ok(()) => {
                    show("", true);
                    return Ok(serving(state.id.clone(), self.endpoint(&state), key, true));
                }
                Err(error @ Error::Cancelled { .. }) => return Err(error),
                Err(error) => tracing::warn!(%error, "the model server does not answer and is replaced"),
            }
        }
        let (state, key) = self.start(&plan, &show, cancel).await?;
        file::write_json(&self.paths.serving(), &model.files)?;
        show("", true);
        Ok(serving(state.id.clone(), self.endpoint(&state), key, false))
    }

    /// Ends the server, unless another process works with it; returns whether there was one.
    pub async fn stop(&self, cancel: &CancellationToken) -> Result<bool, Error> {
        if !self.remove(|| (), cancel).await? {
            return Ok(false);
        }
        let folder = self.paths.socket_folder();
        file::remove(&folder.join(SOCKET))?;
        file::remove(&self.paths.key_folder().join(KEY))?;
        file::remove(&self.paths.serving())?;
        // It may lie where others have their temporary files, and is made anew when it is needed.
        if let Err(error) = fs::remove_dir(&folder) {
            tracing::debug!(%error, "the folder of the socket stays");
        }
        Ok(true)
    }

    /// Returns the files of the model that the running server has; none if no server runs.
    pub async fn serves(&self, cancel: &CancellationToken) -> Result<Vec<PathBuf>, Error> {
        if !self.container(cancel).await?.is_some_and(|state| state.running) {
            return Ok(Vec::new());
        }
        let text = fs::read(self.paths.serving()).unwrap_or_default();
        // Without the note a server that an older Podbay started is taken to use none: the kernel keeps its file anyway.
        Ok(serde_json::from_slice(&text).unwrap_or_default())
    }

    /// Returns how the server is, `None` if there is none.
    pub async fn state(&self, cancel: &CancellationToken) -> Result<Option<ServerState>, Error> {
        let Some(state) = self.container(cancel).await? else { return Ok(None) };
        let endpoint = self.endpoint(&state);
        let health = match self.key() {
            _ if !state.running => Health::NoAnswer("it does not run".to_owned()),
            None => Health::NoAnswer("its key is gone".to_owned()),
            Some(key) => cancelled(cancel, Probe::new(endpoint.clone(), key)?.ask(ANSWER)).await?,
        };
        Ok(Some(ServerState {
            name: self.name.clone(),
            container: state.id,
            running: state.running,
            started_at: state.started_at,
            image: state.image,
            health,
            endpoint: endpoint.to_string(),
        }))
    }

    /// Returns where a running server is asked, and with which key; `None` if none runs or its key is gone.
    pub async fn way_in(&self, cancel: &CancellationToken) -> Result<Option<(Endpoint, Secret)>, Error> {
        let state = self.container(cancel).await?.filter(|state| state.running && !state.paused);
        Ok(state.and_then(|state| Some((self.endpoint(&state), self.key()?))))
    }

    /// Passes the server's log on: its last lines, and with `follow` what comes until `cancel` fires. Returns whether there is a server.
    pub async fn logs(&self, lines: u32, follow: bool, mut write: impl FnMut(&[u8]), cancel: &CancellationToken) -> Result<bool, Error> {
        let Some(state) = self.container(cancel).await? else { return Ok(false) };
        let failed = Error::engine("read the log of the model server");
        if follow {
            self.engine.follow_log(&state.id, lines, write, cancel).await.map_err(failed)?;
        } else {
            write(self.engine.last_lines(&state.id, lines, cancel).await.map_err(failed)?.as_bytes());
        }
        Ok(true)
    }

    fn plan(&self, facts: &engine::Facts, image: &ImageFacts, model: &Model) -> Result<Plan, Error> {
        let unsupported = |problem: &str| Err(Error::Unsupported { problem: problem.to_owned() });
        if !facts.local {
            return unsupported("the engine runs on another machine, which does not have the model's file");
        }
        if facts.userns {
            return unsupported("the engine shifts user ids (userns-remap), so nothing in a container could read the server's key");
        }
        // In a rootless engine uid 0 is the person; every other id is one that may read nothing of theirs.
        let owner = self.paths.user()?;
        let user = if facts.rootless { (0, 0) } else { owner };
        readable(model, if facts.rootless { (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw()) } else { user })?;
        let text = |path: PathBuf| {
            path.into_os_string().into_string().map_err(|path| Error::Unsupported {
                problem: format!("the path `{}` is not UTF-8, and an engine takes no other", Path::new(&path).display()),
            })
        };
        let absolute = |path: &Path| {
            make_for(path, owner)?;
            fs::canonicalize(path).map_err(|source| Error::File { doing: "look at", path: path.to_owned(), source })
        };
        let key_folder = text(absolute(&self.paths.key_folder())?)?;
        // A socket does not reach through a virtual machine's border.
        let by_socket = !self.options.publish && !facts.desktop;
        let socket_folder = if by_socket { Some(text(absolute(&self.paths.socket_folder())?)?) } else { None };
        let host = Host { name: self.name.clone(), user, key_folder: &key_folder, socket_folder: socket_folder.as_deref() };
        Plan::new(model, image, facts, &self.options, &host)
    }

    async fn container(&self, cancel: &CancellationToken) -> Result<Option<ContainerState>, Error> {
        self.engine.state(&self.name, cancel).await.map_err(Error::engine("look for the model server"))
    }

    /// Returns a running server that was made from the same plan.
    async fn running(&self, plan: &Plan, cancel: &CancellationToken) -> Result<Option<(ContainerState, Probe, Secret)>, Error> {
        let Some(state) = self.container(cancel).await? else { return Ok(None) };
        let spec = state.labels.as_ref().and_then(|labels| labels.spec.as_deref());
        if !state.running || state.paused || spec != Some(plan.hash.as_str()) {
            return Ok(None);
        }
        let Some(key) = self.key() else { return Ok(None) };
        let probe = Probe::new(self.endpoint(&state), key.clone())?;
        Ok(Some((state, probe, key)))
    }

    fn endpoint(&self, state: &ContainerState) -> Endpoint {
        match state.ports.iter().find(|(inside, _)| *inside == PORT) {
            Some((_, outside)) => Endpoint::parse(&format!("http://127.0.0.1:{outside}")).expect("a loopback address is an endpoint"),
            None => Endpoint::unix(self.paths.socket_folder().join(SOCKET)),
        }
    }

    /// Removes the server's container, unless another process works with it; returns whether there was one.
    async fn remove(&self, beforehand: impl FnOnce(), cancel: &CancellationToken) -> Result<bool, Error> {
        let _gate = self.gate(cancel).await?;
        let Some(state) = self.container(cancel).await? else { return Ok(false) };
        // What has ended is of use to nobody.
        let plan = state.labels.as_ref().and_then(|labels| labels.spec.as_deref()).filter(|_| state.running);
        if let Some(user) = plan.and_then(|plan| hold::user(&self.paths.holds(), plan)) {
            return Err(Error::Used { pid: user.pid, model: user.model });
        }
        beforehand();
        self.engine.remove(&state.id).await.map_err(Error::engine("remove the model server"))?;
        Ok(true)
    }

    /// Takes the lock that nobody ends a server without, and nobody says without that they work with one: the two never cross.
    async fn gate(&self, cancel: &CancellationToken) -> Result<FileLock, Error> {
        let folder = self.paths.locks();
        let lock = FileLock::wait(&folder, "model-server-gate", || (), cancel);
        lock.await.map_err(Error::engine("wait for another Podbay that ends the model server"))
    }

    async fn start(&self, plan: &Plan, show: &impl Fn(&str, bool), cancel: &CancellationToken) -> Result<(ContainerState, Secret), Error> {
        self.remove(|| show("ending the one with other settings", false), cancel).await?;
        let (uid, gid) = self.paths.user()?;
        let key = self.write_key((uid, gid))?;
        let mut container = plan.container.clone();
        match container.network {
            Network::None | Network::Bare => {
                // llama.cpp does not start where a file has its socket's name.
                file::remove(&self.paths.socket_folder().join(SOCKET))?;
            }
            Network::Published { host_port, port } => {
                let is_free = TcpListener::bind((Ipv4Addr::LOCALHOST, host_port)).is_ok();
                container.network = Network::Published { host_port: if is_free { host_port } else { 0 }, port };
            }
        }
        show("", false);
        let id = self.engine.create(&container, cancel).await.map_err(Error::engine("make the model server's container"))?;
        let started = async {
            self.engine.start(&id, cancel).await.map_err(|error| match error {
                engine::Error::Answer { ref message, .. }
                    if message.contains("executable file not found") || message.contains("no such file") =>
                {
                    let problem = format!("the image `{}` has no program `{}`", self.options.image_name(), self.options.program);
                    Error::Setting { key: "inference.program", problem }
                }
                error => Error::engine("start the model server")(error),
            })?;
            let gone = || Error::NotStarted { problem: "somebody removed it".to_owned(), log: String::new() };
            // Only now is it known which port the engine chose.
            let state = self.container(cancel).await?.ok_or_else(gone)?;
            let probe = Probe::new(self.endpoint(&state), key.clone())?;
            self.wait(&id, &probe, self.options.start_timeout.duration(), show, cancel).await?;
            Ok(state)
        };
        match started.await {
            Ok(state) => Ok((state, key)),
            Err(error) => {
                if let Err(left) = self.engine.remove(&id).await {
                    tracing::warn!(%left, "a model server that did not start could not be removed");
                }
                Err(error)
            }
        }
    }

    /// Waits until the server is ready; while it loads, as long as the settings allow, and else for `silence`.
    async fn wait(
        &self,
        id: &ContainerId,
        probe: &Probe,
        silence: Duration,
        show: &impl Fn(&str, bool),
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let within = self.options.start_timeout.duration();
        let began = Instant::now();
        let (mut heard_at, mut looked_at) = (began, began);
        loop {
            match cancelled(cancel, probe.ask(ANSWER)).await? {
                Health::Ready => return Ok(()),
                Health::Loading => {
                    heard_at = Instant::now();
                    show(&format!("loading the model, {} s", began.elapsed().as_secs()), false);
                }
                Health::NoAnswer(problem) => tracing::trace!(problem, "the model server is not there yet"),
            }
            if looked_at.elapsed() > Duration::from_millis(250) {
                looked_at = Instant::now();
                let state = self.engine.state(&id.0, cancel).await.map_err(Error::engine("look at the model server"))?;
                if state.as_ref().is_none_or(|state| !state.running) {
                    return Err(Error::NotStarted { problem: ending(state.as_ref()), log: self.log(id).await });
                }
            }
            if began.elapsed() > within || heard_at.elapsed() > silence {
                return Err(Error::TooSlow { within: began.elapsed(), log: self.log(id).await });
            }
            cancelled(cancel, tokio::time::sleep(PAUSE)).await?;
        }
    }

    async fn log(&self, id: &ContainerId) -> String {
        let text = self.engine.last_lines(id, LOG_LINES, &CancellationToken::new()).await;
        let text = text.unwrap_or_else(|error| error.to_string());
        // Its words are the words of a program that reads files from anywhere.
        let clean = |line: &str| line.chars().filter(|c| !c.is_control()).take(300).collect::<String>();
        text.lines().map(|line| format!("  {}", clean(line))).collect::<Vec<_>>().join("\n")
    }

    /// Returns the key of the server that runs.
    fn key(&self) -> Option<Secret> {
        let text = fs::read_to_string(self.paths.key_folder().join(KEY)).ok()?;
        Some(text.trim()).filter(|key| !key.is_empty()).map(Secret::new)
    }

    /// Makes a new key for a new server.
    fn write_key(&self, (uid, gid): (u32, u32)) -> Result<Secret, Error> {
        let path = self.paths.key_folder().join(KEY);
        let failed = |source| Error::File { doing: "write", path: path.clone(), source };
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).map_err(|error| failed(std::io::Error::other(error)))?;
        let key = URL_SAFE_NO_PAD.encode(bytes);
        let part = file::part_of(&path);
        file::remove(&part)?;
        let mut out = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part).map_err(failed)?;
        out.write_all(key.as_bytes()).map_err(failed)?;
        if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::fchown(&out, Some(uid), Some(gid)).map_err(failed)?;
        }
        fs::rename(&part, &path).map_err(failed)?;
        Ok(Secret::new(key))
    }
}

async fn cancelled<T>(cancel: &CancellationToken, future: impl Future<Output = T>) -> Result<T, Error> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Error::Cancelled { doing: "wait for the model server".to_owned() }),
        value = future => Ok(value),
    }
}

fn ending(state: Option<&ContainerState>) -> String {
    match state {
        None => "somebody removed it".to_owned(),
        Some(state) if state.oom_killed => "it needed more memory than it may have".to_owned(),
        Some(state) => match state.exit_code {
            Some(137) => "it was killed, most likely because it needed more memory than it may have".to_owned(),
            Some(132) => "it uses instructions that this processor does not have".to_owned(),
            Some(code) => format!("its exit code was {code}"),
            None => "it gave no exit code".to_owned(),
        },
    }
}

/// Checks that the server's user may read the model, which a state folder of root's makes somebody else.
fn readable(model: &Model, (uid, gid): (u32, u32)) -> Result<(), Error> {
    for path in &model.files {
        let facts = fs::metadata(path).map_err(|source| Error::File { doing: "look at", path: path.clone(), source })?;
        let bit = match facts {
            _ if facts.uid() == uid => 0o400,
            _ if facts.gid() == gid => 0o040,
            _ => 0o004,
        };
        if facts.mode() & bit == 0 {
            let problem = format!("the model server runs as uid {uid}, which may not read it");
            return Err(Error::Model { path: path.clone(), problem, hint: Some("let everybody read it: `chmod a+r FILE`") });
        }
    }
    Ok(())
}
