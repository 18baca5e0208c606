use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Error;
use super::record::Recorder;
use crate::config::Config;
use crate::engine::Engine;
use crate::engine::Labels;
use crate::engine::Owner;
use crate::engine::Provision;
use crate::engine::Role;
use crate::event::InstanceId;
use crate::event::Kind;
use crate::event::ProgressSink;
use crate::event::SessionId;
use crate::event::Sink;
use crate::sandbox;
use crate::sandbox::Lock;
use crate::sandbox::Project;
use crate::sandbox::Sandbox;
use crate::sandbox::Spec;
use crate::session::State;

/// What every use of a project stands on: the folder, the settings, the engine.
pub(super) struct Bench {
    pub(super) config: Config,
    pub(super) state: State,
    pub(super) project: Project,
    pub(super) engine: Engine,
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
    pub(super) async fn open(config: &Config, state: &State, project: Project, cancel: &CancellationToken) -> Result<Self, Error> {
        let engine = Engine::connect(&config.engine, cancel).await.map_err(Error::Engine)?;
        Ok(Self { config: config.clone(), state: state.clone(), project, engine })
    }

    /// Makes sure the image is there and puts the box together from it.
    pub(super) async fn spec(&self, progress: &ProgressSink, cancel: &CancellationToken) -> Result<Spec, Error> {
        let name = self.config.sandbox.image.as_deref().unwrap_or(sandbox::DEFAULT_IMAGE);
        if !sandbox::is_image_name(name) {
            let problem = format!("`{name}` is not the name of an image");
            return Err(Error::Sandbox(sandbox::Error::Setting { key: "sandbox.image", problem }));
        }
        let image = self.provision(progress).ensure(name, cancel).await.map_err(Error::Engine)?;
        Spec::new(&self.project, &image, self.engine.facts(), &self.config.sandbox, &sandbox::guest_volume_name()).map_err(Error::Sandbox)
    }

    pub(super) fn provision(&self, progress: &ProgressSink) -> Provision {
        Provision::new(&self.engine, &self.config.engine, self.state.locks(), progress)
    }

    /// Takes the project for this process. Whoever only joins the box of `podbay up` needs no lock.
    pub(super) fn lock(&self) -> Result<Lock, Error> {
        Lock::take(&self.state.locks(), &self.project).map_err(Error::Sandbox)
    }

    /// Starts the session's box, or joins that of `podbay up`.
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
        Sandbox::start(&self.engine, spec, &self.config.sandbox, labels, sink, cancel).await.map_err(Error::Sandbox)
    }

    /// Removes what controllers that were killed left behind. It must not delay anybody, and its failure is nobody's.
    pub(super) fn sweep_aside(&self) {
        let engine = self.engine.clone();
        tokio::spawn(async move {
            let within = Duration::from_secs(30);
            let cancel = CancellationToken::new();
            match tokio::time::timeout(within, engine.sweep(&sandbox::guest_volume_name(), None, &cancel)).await {
                Ok(Ok(swept)) if !swept.removed.is_empty() => tracing::info!(removed = ?swept.removed, "removed leftovers"),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "sweeping failed"),
                Err(_) => tracing::debug!("sweeping took too long"),
            }
        });
    }
}

/// Returns a progress sink that turns steps into events.
pub(super) fn progress_of(recorder: &Recorder) -> ProgressSink {
    let sink = recorder.sink();
    Arc::new(move |step| sink(Kind::Progress(step).into()))
}
