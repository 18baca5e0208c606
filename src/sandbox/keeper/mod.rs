//! The keeper: a small container beside that of a session, in which no command ever runs.
//!
//! It looks after the project where the controller must not (it runs nothing on a project and opens
//! next to nothing in it) and where the session's container cannot be trusted to. Start with
//! [`Keeper::start`]; what it does in there is `guest::keep`.

mod image;
mod line;
mod volume;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use self::line::Error as LineError;
use self::line::Line;
pub use self::volume::Abandoned;
pub use self::volume::abandoned;
use super::Error;
use super::Spec;
use super::docker::Filling;
use super::docker::facts_of;
use super::docker::not_started;
use super::git::DOT_GIT;
use super::held::Held;
use super::spec::GUEST_FOLDER;
use podbay_engine as engine;
use podbay_engine::Attached;
use podbay_engine::ContainerId;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_engine::Mount;
use podbay_engine::Role;
use podbay_event::InstanceId;
use podbay_guest as guest;
use podbay_wire::keep::FindOrder;
use podbay_wire::keep::FindResult;
use podbay_wire::keep::GitAnswer;
use podbay_wire::keep::GitOrder;
use podbay_wire::keep::KeeperHello;
use podbay_wire::keep::Kept;
use podbay_wire::keep::Order;
use podbay_wire::keep::ReviewAnswer;
use podbay_wire::keep::ReviewOrder;
use podbay_wire::keep::TurnAnswer;
use podbay_wire::keep::TurnOrder;
use podbay_wire::keep::UndoAnswer;
use podbay_wire::keep::UndoOrder;

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

/// What a keeper sees besides the project and our own state.
#[derive(Clone, Copy)]
pub(super) enum Sees<'a> {
    /// For the one that stays as long as the session: the folders of the session's git, which it
    /// makes before the first command. The token fires when it is made, and with it what new
    /// volumes begin with, or when it cannot be.
    Session(&'a [Mount], &'a CancellationToken),
    /// For one that comes and goes beside it.
    Aside(&'a [Mount]),
}

/// A keeper that answers.
pub(super) struct Keeper {
    id: ContainerId,
    mounts: Vec<Mount>,
    line: Line<Attached>,
    /// What it says on its error stream, where it ends against all expectation.
    said: Box<dyn Fn() -> String + Send + Sync>,
    /// Device and inode of the copy that a review's session works on.
    pub(super) copy: Option<(u64, u64)>,
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
        let sees = Sees::Session(&[], &CancellationToken::new());
        Self::start_with(engine, spec, labels, purpose, sees, within, cancel).await
    }

    /// The same for one that sees more than the project and our own state.
    pub(super) async fn start_with(
        engine: &Engine,
        spec: &Spec,
        labels: &Labels,
        purpose: Purpose,
        sees: Sees<'_>,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Self, Error> {
        let (kind, mounts, is_made, image) = match sees {
            Sees::Session(mounts, is_made) => {
                let is_made = Some(is_made.clone().drop_guard());
                ("", mounts, is_made, Some(image::name(spec)))
            }
            Sees::Aside(mounts) => ("git-", mounts, None, None),
        };
        let mut is_made = is_made;
        let mut keep = match purpose {
            Purpose::Look => None,
            Purpose::Keep | Purpose::Restore => {
                Some(volume::ready(engine, spec, false, cancel).await?)
            }
        };
        let mut filling = Filling::begin(engine, spec, cancel).await?;
        let mut n_made = 1;
        let mut has_image = false;
        loop {
            let created = filling
                .create(cancel, |hosts| {
                    let instance = InstanceId::random();
                    let labels = Labels {
                        role: Role::Keeper,
                        instance: Some(instance.clone()),
                        ..labels.clone()
                    };
                    let mut container = spec.keeper(
                        format!("podbay-keeper-{kind}{instance}"),
                        labels,
                        hosts,
                        keep.as_deref(),
                        purpose == Purpose::Restore,
                    );
                    container.mounts.extend_from_slice(mounts);
                    match &image {
                        Some(image) => image.clone_into(&mut container.image),
                        // What is to be written to, or moved, must be no place of its own.
                        None => container.readonly_paths.retain(|path| path != DOT_GIT),
                    }
                    container.entrypoint = vec![
                        format!("{GUEST_FOLDER}/podbay"),
                        "guest".to_owned(),
                        "keep".to_owned(),
                    ];
                    if let Some(layer) = spec
                        .review
                        .as_ref()
                        .map(Held::layer)
                        .filter(|layer| !layer.is_empty())
                    {
                        container.entrypoint.extend(["--layer".to_owned(), layer]);
                    }
                    container
                })
                .await;
            let id = match created {
                Err(Error::Engine { source, .. }) if source.is_not_found() && !has_image => {
                    image::make(engine, spec, cancel)
                        .await
                        .map_err(Error::engine("make the keeper's image"))?;
                    has_image = true;
                    continue;
                }
                created => created?,
            };
            drop(is_made.take());
            match run(engine, spec, &id, within, cancel).await {
                Ok((
                    line,
                    KeeperHello {
                        keeps: Some(false), ..
                    },
                    _,
                )) if n_made == 1 => {
                    // Whoever made the volume was killed before it belonged to anybody.
                    drop(line);
                    keep = Some(volume::ready(engine, spec, true, cancel).await?);
                    n_made += 1;
                }
                Ok((line, hello, said)) => {
                    return Ok(Self {
                        id,
                        mounts: mounts.to_vec(),
                        line,
                        said,
                        copy: hello.copy.map(|copy| copy.identity),
                    });
                }
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

    /// Whether it sees this besides the project.
    pub(super) fn sees(&self, mounts: &[Mount]) -> bool {
        self.mounts == mounts
    }

    /// Looks through the project for what a sandbox must cover.
    pub(super) async fn find(
        &mut self,
        find: FindOrder,
        cancel: &CancellationToken,
    ) -> Result<FindResult, Error> {
        let within = Duration::from_millis(find.budget_ms) + PATIENCE;
        match self.ask(Order::Find(find), within, cancel).await? {
            Kept::Found(found) => Ok(found),
            _ => Err(unexpected()),
        }
    }

    /// Tells where a turn begins or ends.
    pub(super) async fn turn(
        &mut self,
        order: TurnOrder,
        cancel: &CancellationToken,
    ) -> Result<TurnAnswer, Error> {
        match self.ask(Order::Turn { order }, SNAPSHOT, cancel).await? {
            Kept::Turn { answer } => Ok(*answer),
            _ => Err(unexpected()),
        }
    }

    /// Shows or undoes what turns changed.
    pub(super) async fn undo(
        &mut self,
        order: UndoOrder,
        cancel: &CancellationToken,
    ) -> Result<UndoAnswer, Error> {
        match self.ask(Order::Undo { order }, SNAPSHOT, cancel).await? {
            Kept::Undo { answer } => Ok(*answer),
            _ => Err(unexpected()),
        }
    }

    /// Looks after what is pending until a user accepts it.
    pub(super) async fn review(
        &mut self,
        order: ReviewOrder,
        cancel: &CancellationToken,
    ) -> Result<ReviewAnswer, Error> {
        match self.ask(Order::Review { order }, SNAPSHOT, cancel).await? {
            Kept::Review { answer } => Ok(*answer),
            _ => Err(unexpected()),
        }
    }

    /// Has it look after the project's repositories.
    pub(super) async fn git(
        &mut self,
        order: GitOrder,
        cancel: &CancellationToken,
    ) -> Result<GitAnswer, Error> {
        match self
            .ask(
                Order::Git {
                    order: Box::new(order),
                },
                SNAPSHOT,
                cancel,
            )
            .await?
        {
            Kept::Git { answer } => Ok(*answer),
            _ => Err(Self::unexpected()),
        }
    }

    /// An answer that is not that of the order.
    pub(super) fn unexpected() -> Error {
        unexpected()
    }

    async fn ask(
        &mut self,
        order: Order,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Kept, Error> {
        self.line
            .ask(order, within, cancel)
            .await
            .map_err(|error| match error {
                LineError::Ended { reason } => {
                    let said: String = (self.said)().trim().chars().take(400).collect();
                    failed(LineError::Ended {
                        reason: if said.is_empty() {
                            reason
                        } else {
                            format!("{reason}: {said}")
                        },
                    })
                }
                error => failed(error),
            })
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
) -> Result<
    (
        Line<Attached>,
        KeeperHello,
        Box<dyn Fn() -> String + Send + Sync>,
    ),
    Error,
> {
    let stream = engine
        .attach(id, cancel)
        .await
        .map_err(Error::engine("attach to the keeper"))?;
    engine
        .start(id, cancel)
        .await
        .map_err(|error| not_started("start the keeper", error))?;
    let diagnostics = stream.diagnostics();
    let (line, hello) = match Line::connect(stream, &guest::build_id(), within, cancel).await {
        Ok(connected) => connected,
        Err(error) => {
            let said = diagnostics();
            let said = said.trim();
            return Err(if said.is_empty() {
                failed(error)
            } else {
                Error::NotStarted {
                    problem: said.chars().take(400).collect(),
                }
            });
        }
    };
    let facts: &engine::Facts = facts_of(engine, cancel).await?;
    // The engine's machine may number its files in another way.
    let is_elsewhere = !facts.local || facts.desktop;
    let is_project = is_elsewhere || hello.workspace == spec.project.identity();
    // The engine found the project's folder once more to lay something over it.
    if !is_project
        || spec.review.as_ref().is_some_and(Held::is_laid_over)
            && !hello.copy.is_some_and(|copy| copy.is_of_project)
    {
        return Err(Error::OtherFiles {
            path: spec.project.path().to_owned(),
        });
    }
    Ok((line, hello, Box::new(diagnostics)))
}

fn failed(source: LineError) -> Error {
    match source {
        LineError::Cancelled => Error::Cancelled,
        source => Error::Keeper { source },
    }
}

fn unexpected() -> Error {
    Error::Keeper {
        source: LineError::Protocol {
            problem: "the answer is not that of the order".to_owned(),
        },
    }
}
