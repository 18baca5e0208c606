//! The keeper: a small container beside that of a session, in which no command ever runs.
//!
//! It looks after the project where the controller must not (it runs nothing on a project and opens next to nothing in it) and where the
//! session's container cannot be trusted to. Start with [`Keeper::start`]; what it does in there is `guest::keep`.

mod line;
mod volume;

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
use crate::wire::keep::TurnAnswer;
use crate::wire::keep::TurnOrder;
use crate::wire::keep::UndoAnswer;
use crate::wire::keep::UndoOrder;

/// How long its answer may take beyond what it is told, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long keeping the project, or bringing it back, may take: the first time all of it is read.
const SNAPSHOT: Duration = Duration::from_mins(10);

/// What a keeper is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To look at the project.
    Look,
    /// To keep how it was, too.
    Keep,
    /// To bring back how it was.
    Restore,
}

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
        purpose: Purpose,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Self, Error> {
        let mut keep = match purpose {
            Purpose::Look => None,
            Purpose::Keep | Purpose::Restore => Some(volume::ready(engine, spec, false, cancel).await?),
        };
        let mut filling = Filling::begin(engine, spec, cancel).await?;
        let mut n_made = 1;
        loop {
            let id = filling
                .create(cancel, |hosts| {
                    let instance = InstanceId::random();
                    let labels = Labels { role: Role::Keeper, instance: Some(instance.clone()), ..labels.clone() };
                    let mut container =
                        spec.keeper(format!("podbay-keeper-{instance}"), labels, hosts, keep.as_deref(), purpose == Purpose::Restore);
                    container.entrypoint = vec![format!("{GUEST_FOLDER}/podbay"), "guest".to_owned(), "keep".to_owned()];
                    container
                })
                .await?;
            match run(engine, spec, &id, within, cancel).await {
                Ok((line, Some(false))) if n_made == 1 => {
                    // Whoever made the volume was killed before it belonged to anybody.
                    Self { id, line }.close();
                    keep = Some(volume::ready(engine, spec, true, cancel).await?);
                    n_made += 1;
                }
                Ok((line, _)) => return Ok(Self { id, line }),
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
            _ => Err(unexpected()),
        }
    }

    /// Tells where a turn begins or ends.
    pub(super) async fn turn(&mut self, order: TurnOrder, cancel: &CancellationToken) -> Result<TurnAnswer, Error> {
        match self.ask(Order::Turn { order }, SNAPSHOT, cancel).await? {
            Kept::Turn { answer } => Ok(*answer),
            _ => Err(unexpected()),
        }
    }

    /// Shows or takes back what turns changed.
    pub(super) async fn undo(&mut self, order: UndoOrder, cancel: &CancellationToken) -> Result<UndoAnswer, Error> {
        match self.ask(Order::Undo { order }, SNAPSHOT, cancel).await? {
            Kept::Undo { answer } => Ok(*answer),
            _ => Err(unexpected()),
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
) -> Result<(Line<Attached>, Option<bool>), Error> {
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
    Ok((line, hello.keeps))
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
