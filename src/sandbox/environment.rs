use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Error;
use super::Options;
use super::Project;
use super::Spec;
use super::docker::Filling;
use super::docker::Running;
use super::docker::greet;
use super::spec::GUEST_FOLDER;
use crate::engine::ContainerState;
use crate::engine::Engine;
use crate::engine::Labels;
use crate::engine::Role;

/// The box of `podbay up`: it stays when its controller has gone, until nobody has used it for a while.
pub struct Environment;

/// Whether a project has such a box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentState {
    pub id: String,
    pub name: String,
    pub started_at: String,
    /// Hash of the settings it was made from.
    spec: Option<String>,
}

impl EnvironmentState {
    /// Returns whether it was made from these very settings.
    pub fn is_made_from(&self, spec: &Spec) -> bool {
        self.spec.as_deref() == Some(spec.hash().as_str())
    }
}

impl Environment {
    /// Starts the box of a project, unless one of the same making runs; one of another making is replaced.
    ///
    /// Returns whether it was started now.
    pub async fn up(engine: &Engine, spec: &Spec, options: &Options, cancel: &CancellationToken) -> Result<bool, Error> {
        let doing = |what: &str| Error::engine(what);
        if let Some(state) = find(engine, &spec.project, cancel).await? {
            if state.running && is_same(&state, spec) {
                return Ok(false);
            }
            engine.remove(&state.id).await.map_err(doing("remove the old environment"))?;
        }
        let labels = Labels { spec: Some(spec.hash()), ..Labels::new(Role::Environment) };
        let mut filling = Filling::begin(engine, spec, cancel).await?;
        loop {
            let id = filling
                .create(cancel, |hosts| {
                    let mut container = spec.container(name(&spec.project), labels.clone(), hosts);
                    let lease = options.lease.get().to_string();
                    container.entrypoint = vec![format!("{GUEST_FOLDER}/podbay"), "guest".into(), "init".into(), "--lease".into(), lease];
                    container.attached = false;
                    container
                })
                .await?;
            let Err(error) = engine.start(&id, cancel).await else { return Ok(true) };
            engine.remove(&id).await.map_err(doing("remove an environment that did not start"))?;
            filling.refill(Error::engine("start the environment")(error), cancel).await?;
        }
    }

    /// Ends the box of a project; returns whether there was one.
    pub async fn down(engine: &Engine, project: &Project, cancel: &CancellationToken) -> Result<bool, Error> {
        match find(engine, project, cancel).await? {
            Some(state) => engine.remove(&state.id).await.map(|()| true).map_err(Error::engine("remove the environment")),
            None => Ok(false),
        }
    }

    /// Returns the project's environment, if one is up.
    pub async fn state(engine: &Engine, project: &Project, cancel: &CancellationToken) -> Result<Option<EnvironmentState>, Error> {
        let found = find(engine, project, cancel).await?;
        Ok(found.filter(|state| state.running).map(|state| EnvironmentState {
            spec: state.labels.and_then(|labels| labels.spec),
            name: name(project),
            id: state.id.0,
            started_at: state.started_at,
        }))
    }
}

fn name(project: &Project) -> String {
    format!("podbay-environment-{}", project.key())
}

fn is_same(state: &ContainerState, spec: &Spec) -> bool {
    state.labels.as_ref().and_then(|labels| labels.spec.as_deref()) == Some(spec.hash().as_str())
}

async fn find(engine: &Engine, project: &Project, cancel: &CancellationToken) -> Result<Option<ContainerState>, Error> {
    engine.state(&name(project), cancel).await.map_err(Error::engine("look for the environment"))
}

/// Joins the environment where one runs that was made from the same settings.
pub(super) async fn join(engine: &Engine, spec: &Spec, within: Duration, cancel: &CancellationToken) -> Result<Option<Running>, Error> {
    let Some(state) = find(engine, &spec.project, cancel).await? else { return Ok(None) };
    if !state.running || state.paused || !is_same(&state, spec) {
        return Ok(None);
    }
    let program = format!("{GUEST_FOLDER}/podbay");
    let stream =
        engine.exec(&state.id, spec.user(), &[&program, "guest", "serve"], cancel).await.map_err(Error::engine("join the environment"))?;
    greet(state.id, stream, false, spec.disk, within, cancel).await.map(Some)
}
