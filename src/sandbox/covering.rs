//! How a box comes to cover what the project has to be covered, without waiting for a look at the project where nothing has changed.
//!
//! The keeper starts and looks while the box starts, which covers what the last one did. Where it finds something else, the box is made anew
//! before anything has run in it.

use std::path::Path;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::Covers;
use super::Error;
use super::Options;
use super::Project;
use super::Spec;
use super::covers::Record;
use super::docker::Running;
use super::guest_volume;
use super::keeper::Keeper;
use super::keeper::LineError;
use super::keeper::Purpose;
use crate::engine::Engine;
use crate::engine::Labels;
use crate::wire::keep::Find;
use crate::wire::keep::TurnAnswer;
use crate::wire::keep::TurnOrder;

/// How often a box is made for one start; somebody changes the project under our hands when these do not do.
const MOST_TRIES: u32 = 4;

/// The keeper of a session, and what it found.
pub(super) struct Covering {
    find: Find,
    record: Record,
    purpose: Purpose,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    keeper: Option<Keeper>,
    covers: Covers,
    warnings: Vec<String>,
}

impl Covering {
    pub(super) fn new(options: &Options, records: &Path, project: &Project, purpose: Purpose) -> Self {
        Self { find: options.find(), record: Record::new(records, project), purpose, state: Mutex::default() }
    }

    /// Tells the keeper where a turn begins or ends. One that has ended is started anew.
    pub(super) async fn turn(
        &self,
        engine: &Engine,
        spec: &Spec,
        labels: &Labels,
        within: Duration,
        order: TurnOrder,
        cancel: &CancellationToken,
    ) -> Result<TurnAnswer, Error> {
        let mut state = self.state.lock().await;
        let mut keeper = match state.keeper.take() {
            Some(keeper) => keeper,
            None => Keeper::start(engine, spec, labels, self.purpose, within, cancel).await?,
        };
        let answer = keeper.turn(order, cancel).await;
        match &answer {
            Ok(_) | Err(Error::Keeper { source: LineError::Failed { .. } }) => state.keeper = Some(keeper),
            // Its answer may still come.
            Err(_) => keeper.discard(engine).await,
        }
        answer
    }

    /// Makes a box by `make` that covers what is to be covered now.
    pub(super) async fn make<F>(
        &self,
        engine: &Engine,
        spec: &Spec,
        labels: &Labels,
        within: Duration,
        make: impl Fn(Covers) -> F,
        cancel: &CancellationToken,
    ) -> Result<Running, Error>
    where
        F: Future<Output = Result<Running, Error>>,
    {
        let mut state = self.state.lock().await;
        let mut covers = if state.keeper.is_some() {
            // It has the answer before a box could be made for the wrong one.
            Box::pin(self.look(&mut state, engine, spec, labels, within, cancel)).await?
        } else {
            // Both would fill it.
            guest_volume::ready(engine, spec, cancel).await?;
            self.record.read()
        };
        let mut n_tries = 1;
        loop {
            let making = Box::pin(make(covers.clone()));
            let looking = Box::pin(self.look(&mut state, engine, spec, labels, within, cancel));
            let (made, found) = tokio::join!(making, looking);
            let made = match (made, found) {
                (Ok(running), Ok(found)) if found == covers => {
                    self.record.write(&covers);
                    state.covers = covers;
                    return Ok(running);
                }
                (Ok(running), found) => {
                    discard(engine, &running).await;
                    found
                }
                (Err(Error::Uncovered { .. }), Ok(found)) if n_tries < MOST_TRIES => Ok(found),
                // What it was to cover was a guess, which may be what was wrong with it.
                (Err(_), Ok(found)) if found != covers && n_tries < MOST_TRIES => Ok(found),
                (Err(error), _) => Err(error),
            };
            if n_tries == MOST_TRIES {
                let path = "what is to be hidden or read-only".to_owned();
                return Err(made.err().unwrap_or(Error::Uncovered { path }));
            }
            covers = made?;
            n_tries += 1;
        }
    }

    async fn look(
        &self,
        state: &mut State,
        engine: &Engine,
        spec: &Spec,
        labels: &Labels,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Covers, Error> {
        let mut is_new = false;
        let found = loop {
            let mut keeper = if let Some(keeper) = state.keeper.take() {
                keeper
            } else {
                is_new = true;
                Keeper::start(engine, spec, labels, self.purpose, within, cancel).await?
            };
            match keeper.find(self.find.clone(), cancel).await {
                Ok(found) => {
                    state.keeper = Some(keeper);
                    break found;
                }
                // Its answer may still come: another one takes its place.
                Err(error) => {
                    keeper.discard(engine).await;
                    if is_new || cancel.is_cancelled() {
                        return Err(error);
                    }
                }
            }
        };
        let (covers, warnings) = Covers::of(&found);
        state.warnings = warnings;
        Ok(covers)
    }

    /// Returns what the box hides, and what a person should know of what it cannot cover.
    pub(super) async fn told(&self) -> (Vec<String>, Vec<String>) {
        let state = self.state.lock().await;
        (state.covers.hidden().to_vec(), state.warnings.clone())
    }

    pub(super) async fn close(&self) {
        if let Some(keeper) = self.state.lock().await.keeper.take() {
            keeper.close();
        }
    }
}

/// Returns the same box covering what there is to cover now: for one that is made for whoever comes later.
pub async fn look_through(
    engine: &Engine,
    spec: &Spec,
    options: &Options,
    labels: Labels,
    records: &Path,
    cancel: &CancellationToken,
) -> Result<Spec, Error> {
    let covering = Covering::new(options, records, &spec.project, Purpose::Look);
    let mut state = covering.state.lock().await;
    let found = covering.look(&mut state, engine, spec, &labels, options.start_timeout.duration(), cancel).await;
    let warnings = std::mem::take(&mut state.warnings);
    drop(state);
    covering.close().await;
    let covers = found?;
    covering.record.write(&covers);
    let mut spec = spec.covering(&covers);
    spec.warnings.extend(warnings);
    Ok(spec)
}

/// Ends a box that covers the wrong things. Nothing has run in it.
async fn discard(engine: &Engine, running: &Running) {
    running.link.close();
    if let Some(id) = running.id.as_ref().filter(|_| running.owned) {
        engine.discard(id).await;
    }
}
