//! The keeper: a small container beside that of a session, in which no command ever runs.
//!
//! It looks after the project where the controller must not (it runs nothing on a project and opens next to nothing in it) and where the
//! session's container cannot be trusted to. Start with [`Keeper::start`]; what it does in there is `guest::keep`.

mod line;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use self::line::Error as LineError;
use self::line::Line;
use super::Error;
use super::Spec;
use super::docker::Filling;
use super::docker::facts_of;
use super::docker::not_started;
use super::spec::GUEST_FOLDER;
use crate::engine;
use crate::engine::Attached;
use crate::engine::ContainerId;
use crate::engine::Engine;
use crate::engine::Labels;
use crate::engine::Role;
use crate::event::InstanceId;
use crate::guest;
use crate::wire::keep::Find;
use crate::wire::keep::Found;
use crate::wire::keep::Kept;
use crate::wire::keep::Order;

/// How long its answer may take beyond what it is told, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(20);

/// A keeper that answers.
pub(super) struct Keeper {
    id: ContainerId,
    line: Line<Attached>,
}

impl Keeper {
    /// Makes the container and waits for its first word.
    pub(super) async fn start(
        engine: &Engine,
        spec: &Spec,
        labels: &Labels,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Self, Error> {
        let mut filling = Filling::begin(engine, spec, cancel).await?;
        loop {
            let id = filling
                .create(cancel, |hosts| {
                    let instance = InstanceId::random();
                    let labels = Labels { role: Role::Keeper, instance: Some(instance.clone()), ..labels.clone() };
                    let mut container = spec.keeper(format!("podbay-keeper-{instance}"), labels, hosts);
                    container.entrypoint = vec![format!("{GUEST_FOLDER}/podbay"), "guest".to_owned(), "keep".to_owned()];
                    container
                })
                .await?;
            match run(engine, spec, &id, within, cancel).await {
                Ok(line) => return Ok(Self { id, line }),
                Err(error) => {
                    if cancel.is_cancelled() {
                        engine.discard_soon(&id).await;
                    } else {
                        engine.discard(&id).await;
                    }
                    filling.refill(error, cancel).await?;
                }
            }
        }
    }

    /// Looks through the project for what a box must cover.
    pub(super) async fn find(&mut self, find: Find, cancel: &CancellationToken) -> Result<Found, Error> {
        let within = Duration::from_millis(find.budget_ms) + PATIENCE;
        match self.ask(Order::Find(find), within, cancel).await? {
            Kept::Found(found) => Ok(found),
            Kept::Failed { .. } => Err(unexpected()),
        }
    }

    async fn ask(&mut self, order: Order, within: Duration, cancel: &CancellationToken) -> Result<Kept, Error> {
        self.line.ask(order, within, cancel).await.map_err(failed)
    }

    /// Ends it: without input it exits, and the engine removes it.
    pub(super) fn close(self) {
        drop(self.line);
    }

    /// Ends one that may not notice the end of its input.
    pub(super) async fn discard(self, engine: &Engine) {
        drop(self.line);
        engine.discard(&self.id).await;
    }
}

async fn run(
    engine: &Engine,
    spec: &Spec,
    id: &ContainerId,
    within: Duration,
    cancel: &CancellationToken,
) -> Result<Line<Attached>, Error> {
    let stream = engine.attach(id, cancel).await.map_err(Error::engine("attach to the keeper"))?;
    engine.start(id, cancel).await.map_err(|error| not_started("start the keeper", error))?;
    let diagnostics = stream.diagnostics();
    let (line, hello) = match Line::connect(stream, &guest::build_id(), within, cancel).await {
        Ok(connected) => connected,
        Err(error) => {
            let said = diagnostics();
            let said = said.trim();
            return Err(if said.is_empty() { failed(error) } else { Error::NotStarted { problem: said.chars().take(400).collect() } });
        }
    };
    let facts: &engine::Facts = facts_of(engine, cancel).await?;
    // The engine's machine may number its files in another way.
    let is_elsewhere = !facts.local || facts.desktop;
    if !is_elsewhere && hello.workspace != spec.project.identity() {
        return Err(Error::OtherFiles { path: spec.project.path().to_owned() });
    }
    Ok(line)
}

fn failed(source: LineError) -> Error {
    match source {
        LineError::Cancelled => Error::Cancelled,
        source => Error::Keeper { source },
    }
}

fn unexpected() -> Error {
    Error::Keeper { source: LineError::Protocol { problem: "the answer is not that of the order".to_owned() } }
}
