use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Health;
use super::Model;
use super::Options;
use super::Paths;
use super::ServerUse;
use super::atomic_file;
use super::health::Probe;
use super::paths::SOCKET;
use super::paths::make_for;
use super::paths::make_private;
use super::plan::HostPaths;
use super::plan::KEY;
use super::plan::PORT;
use super::plan::Plan;
use super::server_use;
use super::start::Started;
use super::start::cancelled;
use podbay_engine as engine;
use podbay_engine::ContainerId;
use podbay_engine::ContainerState;
use podbay_engine::Engine;
use podbay_engine::FileLock;
use podbay_engine::ImageFacts;
use podbay_engine::Provision;
use podbay_event::Progress;
use podbay_event::ProgressSink;
use podbay_event::Secret;
use podbay_event::Unit;
use podbay_llm::http::Endpoint;
use podbay_sandbox as sandbox;

/// Time limit for one health check; a server that computes on all cores is slower than an idle one.
pub(super) const ANSWER: Duration = Duration::from_secs(3);

/// How long a silent server is waited for before it is replaced.
const LAST_CHANCE: Duration = Duration::from_secs(10);

/// The one model server of a state folder.
#[derive(Clone)]
pub struct ModelServer {
    pub(super) engine: Engine,
    pub(super) options: Options,
    pub(super) paths: Paths,
    name: String,
}

/// A model server that answers.
#[derive(Clone, Debug)]
pub struct Serving {
    pub endpoint: Endpoint,
    pub key: Secret,
    /// The name under which it serves its model.
    pub model: String,
    /// Context length in tokens it was started with.
    pub context: u64,
    pub container: ContainerId,
    /// Whether it was running already.
    pub reused: bool,
    /// Warnings for the user, if it was just started.
    pub warnings: Vec<String>,
    /// While this exists, no other process stops the server.
    pub hold: Arc<ServerUse>,
}

/// Host paths mounted into its container, with device and inode from when they were opened.
pub(super) type Sources = Vec<(PathBuf, (u64, u64))>;

/// The state of the model server's container.
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
        Self {
            engine: engine.clone(),
            options: options.clone(),
            paths: paths.clone(),
            name,
        }
    }

    /// Returns a server of this model and these settings that answers; starts one, or replaces
    /// another, where that is needed.
    ///
    /// There is one server per state folder. One that another process uses is not replaced: that is
    /// an error.
    #[boxed]
    pub async fn ensure(
        &self,
        image: &ImageFacts,
        model: &Model,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<Serving, Error> {
        let facts = self
            .engine
            .facts(cancel)
            .await
            .map_err(Error::engine("ask the engine what it is"))?;
        let (plan, sources) = self.plan(facts, image, model)?;
        let hold = {
            let _gate = self.gate(cancel).await?;
            Arc::new(ServerUse::take(
                &self.paths.holds(),
                &plan.hash,
                &model.name,
            )?)
        };
        let serving =
            |container: ContainerId, endpoint: Endpoint, key: Secret, reused: bool| Serving {
                endpoint,
                key,
                model: model.name.clone(),
                context: plan.context,
                container,
                reused,
                warnings: Vec::new(),
                hold: Arc::clone(&hold),
            };
        // Without the lock: while one controller starts a server, others with their own must not
        // wait.
        if let Some((state, probe, key)) = self.running(&plan, cancel).await?
            && cancelled(cancel, probe.ask(ANSWER)).await? == Health::Ready
        {
            return Ok(serving(state.id.clone(), self.endpoint(&state), key, true));
        }
        let task = format!("starting the model server for {}", model.name);
        let show = |detail: &str, finished: bool| {
            progress(Progress {
                task: task.clone(),
                done: 0,
                total: None,
                unit: Unit::Steps,
                detail: detail.to_owned(),
                finished,
            });
        };
        let folder = self.paths.locks();
        let lock = FileLock::wait(
            &folder,
            "model-server",
            || show("another Podbay is starting it", false),
            cancel,
        );
        let _lock = lock
            .await
            .map_err(Error::engine("wait for the start of the model server"))?;
        if let Some((state, probe, key)) = self.running(&plan, cancel).await? {
            let ready = self
                .wait(&state.id, &probe, LAST_CHANCE, &show, cancel)
                .await;
            match ready {
                Ok(()) => {
                    show("", true);
                    return Ok(serving(state.id.clone(), self.endpoint(&state), key, true));
                }
                Err(error @ Error::Cancelled { .. }) => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, "the model server does not answer and is replaced");
                }
            }
        }
        self.look(&plan, image, progress, cancel).await?;
        let Started {
            state,
            key,
            warnings,
        } = self.start(&plan, &sources, &show, cancel).await?;
        atomic_file::write_json(&self.paths.serving(), &model.files)?;
        show("", true);
        let warnings = plan.warning.clone().into_iter().chain(warnings).collect();
        Ok(Serving {
            warnings,
            ..serving(state.id.clone(), self.endpoint(&state), key, false)
        })
    }

    /// Stops the server, unless another process uses it; returns whether there was one.
    #[boxed]
    pub async fn stop(&self, cancel: &CancellationToken) -> Result<bool, Error> {
        if !self.remove(|| (), cancel).await? {
            return Ok(false);
        }
        let folder = self.paths.socket_folder();
        atomic_file::remove(&folder.join(SOCKET))?;
        atomic_file::remove(&self.paths.key_folder().join(KEY))?;
        atomic_file::remove(&self.paths.serving())?;
        // The folder may be in a shared temporary folder; it is created again when it is needed.
        if let Err(error) = fs::remove_dir(&folder) {
            tracing::debug!(%error, "the folder of the socket stays");
        }
        Ok(true)
    }

    /// Returns the model files of the running server; none if no server runs.
    #[boxed]
    pub async fn serves(&self, cancel: &CancellationToken) -> Result<Vec<PathBuf>, Error> {
        if !self
            .container(cancel)
            .await?
            .is_some_and(|state| state.running)
        {
            return Ok(Vec::new());
        }
        let text = fs::read(self.paths.serving()).unwrap_or_default();
        // A server started by an older Podbay has no such file: it is assumed to use none, since
        // the kernel keeps its open file anyway.
        Ok(serde_json::from_slice(&text).unwrap_or_default())
    }

    /// Returns the state of the server; `None` if there is none.
    #[boxed]
    pub async fn state(&self, cancel: &CancellationToken) -> Result<Option<ServerState>, Error> {
        let Some(state) = self.container(cancel).await? else {
            return Ok(None);
        };
        let endpoint = self.endpoint(&state);
        let health = match self.paths.read_key() {
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

    /// Returns endpoint and key of the running server; `None` if none runs or its key is missing.
    #[boxed]
    pub async fn endpoint_and_key(
        &self,
        cancel: &CancellationToken,
    ) -> Result<Option<(Endpoint, Secret)>, Error> {
        let state = self
            .container(cancel)
            .await?
            .filter(|state| state.running && !state.paused);
        Ok(state.and_then(|state| Some((self.endpoint(&state), self.paths.read_key()?))))
    }

    /// Streams the server's log: its last lines, and with `follow` new ones until `cancel` fires.
    /// Returns whether there is a server.
    pub async fn logs(
        &self,
        lines: u32,
        follow: bool,
        mut write: impl FnMut(&[u8]),
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        let Some(state) = self.container(cancel).await? else {
            return Ok(false);
        };
        let failed = Error::engine("read the log of the model server");
        if follow {
            self.engine
                .follow_log(&state.id, lines, write, cancel)
                .await
                .map_err(failed)?;
        } else {
            write(
                self.engine
                    .last_lines(&state.id, lines, cancel)
                    .await
                    .map_err(failed)?
                    .as_bytes(),
            );
        }
        Ok(true)
    }

    fn plan(
        &self,
        facts: &engine::Facts,
        image: &ImageFacts,
        model: &Model,
    ) -> Result<(Plan, Sources), Error> {
        let unsupported = |problem: &str| {
            Err(Error::Unsupported {
                problem: problem.to_owned(),
            })
        };
        if !facts.local {
            return unsupported(
                "the engine runs on another machine, which does not have the model's file",
            );
        }
        if facts.userns {
            return unsupported(
                "the engine shifts user ids (userns-remap), so nothing in a container could read the server's key",
            );
        }
        // In a rootless engine uid 0 is the user; any other uid may read none of their files.
        let owner = self.paths.user()?;
        let user = if facts.rootless { (0, 0) } else { owner };
        readable(
            model,
            if facts.rootless {
                (
                    nix::unistd::geteuid().as_raw(),
                    nix::unistd::getegid().as_raw(),
                )
            } else {
                user
            },
        )?;
        let text = |path: PathBuf| {
            path.into_os_string()
                .into_string()
                .map_err(|path| Error::Unsupported {
                    problem: format!(
                        "the path `{}` is not UTF-8, and an engine takes no other",
                        Path::new(&path).display()
                    ),
                })
        };
        let mut sources: Sources = model
            .files
            .iter()
            .cloned()
            .zip(model.identities.iter().copied())
            .collect();
        let mut absolute = |path: &Path| {
            make_for(path, owner)?;
            let failed = |source| Error::File {
                doing: "look at",
                path: path.to_owned(),
                source,
            };
            let real = fs::canonicalize(path).map_err(failed)?;
            let facts = fs::metadata(&real).map_err(failed)?;
            sources.push((real.clone(), (facts.dev(), facts.ino())));
            Ok(real)
        };
        let key_folder = text(absolute(&self.paths.key_folder())?)?;
        // A unix socket does not cross the border of a virtual machine.
        let by_socket = !self.options.publish && !facts.desktop;
        let socket_folder = if by_socket {
            Some(text(absolute(&self.paths.socket_folder())?)?)
        } else {
            None
        };
        let host = HostPaths {
            name: self.name.clone(),
            user,
            key_folder: &key_folder,
            socket_folder: socket_folder.as_deref(),
        };
        Ok((
            Plan::new(model, image, facts, &self.options, &host)?,
            sources,
        ))
    }

    /// Refuses an image in which symlinks would redirect a mount. Images that Podbay builds need no
    /// check.
    async fn look(
        &self,
        plan: &Plan,
        image: &ImageFacts,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let name = self.options.image_name();
        if Provision::is_own(name) {
            return Ok(());
        }
        let seen = self.paths.images();
        make_private(&seen)?;
        let places = plan.places();
        let found = Box::pin(sandbox::look(
            &self.engine,
            &plan.container,
            image,
            &places,
            &seen,
            progress,
            cancel,
        ))
        .await;
        match found.map_err(Error::engine("look at the image of the model server"))? {
            Err(problem) => Err(Error::Image {
                image: name.to_owned(),
                problem,
            }),
            Ok(_) => Ok(()),
        }
    }

    pub(super) async fn container(
        &self,
        cancel: &CancellationToken,
    ) -> Result<Option<ContainerState>, Error> {
        self.engine
            .state(&self.name, cancel)
            .await
            .map_err(Error::engine("look for the model server"))
    }

    /// Returns a running server with the same plan.
    async fn running(
        &self,
        plan: &Plan,
        cancel: &CancellationToken,
    ) -> Result<Option<(ContainerState, Probe, Secret)>, Error> {
        let Some(state) = self.container(cancel).await? else {
            return Ok(None);
        };
        let spec = state
            .labels
            .as_ref()
            .and_then(|labels| labels.spec.as_deref());
        if !state.running || state.paused || spec != Some(plan.hash.as_str()) {
            return Ok(None);
        }
        let Some(key) = self.paths.read_key() else {
            return Ok(None);
        };
        let probe = Probe::new(self.endpoint(&state), key.clone())?;
        Ok(Some((state, probe, key)))
    }

    pub(super) fn endpoint(&self, state: &ContainerState) -> Endpoint {
        match state.ports.iter().find(|(inside, _)| *inside == PORT) {
            Some((_, outside)) => Endpoint::parse(&format!("http://127.0.0.1:{outside}"))
                .expect("a loopback address is an endpoint"),
            None => Endpoint::unix(self.paths.socket_folder().join(SOCKET)),
        }
    }

    /// Removes the server's container, unless another process uses it; returns whether there was
    /// one.
    pub(super) async fn remove(
        &self,
        beforehand: impl FnOnce(),
        cancel: &CancellationToken,
    ) -> Result<bool, Error> {
        let _gate = self.gate(cancel).await?;
        let Some(state) = self.container(cancel).await? else {
            return Ok(false);
        };
        // A stopped container has no users.
        let plan = state
            .labels
            .as_ref()
            .and_then(|labels| labels.spec.as_deref())
            .filter(|_| state.running);
        if let Some(user) = plan.and_then(|plan| server_use::user(&self.paths.holds(), plan)) {
            return Err(Error::Used {
                pid: user.pid,
                model: user.model,
            });
        }
        beforehand();
        self.engine
            .remove_and_look(&state.id)
            .await
            .map_err(|source| Error::Left {
                name: self.name.clone(),
                source,
            })?;
        Ok(true)
    }

    /// Locks against races between stopping a server and marking oneself as its user.
    async fn gate(&self, cancel: &CancellationToken) -> Result<FileLock, Error> {
        let folder = self.paths.locks();
        let lock = FileLock::wait(&folder, "model-server-gate", || (), cancel);
        lock.await.map_err(Error::engine(
            "wait for another Podbay that ends the model server",
        ))
    }
}

/// Checks that the server's user may read the model; with a state folder of root's, that is another
/// user.
fn readable(model: &Model, (uid, gid): (u32, u32)) -> Result<(), Error> {
    for path in &model.files {
        let facts = fs::metadata(path).map_err(|source| Error::File {
            doing: "look at",
            path: path.clone(),
            source,
        })?;
        let bit = match facts {
            _ if facts.uid() == uid => 0o400,
            _ if facts.gid() == gid => 0o040,
            _ => 0o004,
        };
        if facts.mode() & bit == 0 {
            let problem = format!("the model server runs as uid {uid}, which may not read it");
            return Err(Error::Model {
                path: path.clone(),
                problem,
                hint: Some("let everybody read it: `chmod a+r FILE`"),
            });
        }
    }
    Ok(())
}
