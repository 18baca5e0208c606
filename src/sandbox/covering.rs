//! How a box comes to cover what the project has to be covered, without waiting for a look at the
//! project where nothing has changed.
//!
//! A box starts with what the last one covered, and its guest looks through the project before
//! anything can run there. Where it finds something else, the box is made anew. Only in one that
//! was there before, that of `podbay up`, a guest's word would not do; there the keeper looks.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::Covers;
use super::Error;
use super::Options;
use super::Project;
use super::Spec;
use super::covers::NOT_SEARCHED;
use super::covers::Record;
use super::covers::SEARCHED_ON;
use super::docker;
use super::docker::Running;
use super::docker::discard;
use super::docker::is_covered;
use super::environment;
use super::git::SessionGit;
use super::git::outside;
use super::guest_volume;
use super::held::Held;
use super::keeper::Keeper;
use super::keeper::LineError;
use super::keeper::Purpose;
use super::kept::Made;
use super::renamed::Renamed;
use podbay_engine::ContainerId;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_wire::BytesPath;
use podbay_wire::keep::FindOrder;
use podbay_wire::keep::FindResult;
use podbay_wire::keep::ObeyedPaths;
use podbay_wire::keep::ReviewAnswer;
use podbay_wire::keep::ReviewOrder;
use podbay_wire::keep::TurnAnswer;
use podbay_wire::keep::TurnOrder;

/// How often a box is made for one start; somebody changes the project under our hands when these
/// do not do.
const MOST_TRIES: u32 = 4;

/// How long the search through what is left may take.
const SEARCH: Duration = Duration::from_mins(10);

/// What came of the search through what there was no time for before the first command.
pub(super) struct Searched {
    pub(super) hidden: Vec<String>,
    pub(super) read_only: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) is_whole: bool,
}

/// What a session's boxes have to cover, and the keeper, once there is one.
pub(super) struct Covering {
    find: FindOrder,
    record: Record,
    purpose: Purpose,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    keeper: Option<Keeper>,
    /// What the last box covers.
    covers: Option<Covers>,
    warnings: Vec<String>,
    /// Whether all of the project was looked through since the session began, and whether it had
    /// been before.
    is_whole: bool,
    was_whole: bool,
    /// What the last look from outside of the box would hide.
    seen: Option<Covers>,
    /// What a person should know of that.
    news: Vec<String>,
    /// What is hidden in the project that commands work on a copy of.
    renamed: Renamed,
    /// What a box of the session hid and its commands took away in their copy: nothing in the
    /// project is seen there again.
    taken_away: BTreeSet<String>,
}

/// What a box is made with.
#[derive(Clone, Copy)]
struct Asked<'a> {
    engine: &'a Engine,
    spec: &'a Spec,
    labels: &'a Labels,
    git: Option<&'a SessionGit>,
    within: Duration,
    find: &'a FindOrder,
    cancel: &'a CancellationToken,
}

/// A box, and what it should have covered.
struct Attempt {
    running: Running,
    looked: Looked,
}

/// What came of a look at the project.
struct Looked {
    covers: Covers,
    warnings: Vec<String>,
    /// Whether there was time for all of it.
    is_whole: bool,
}

impl Looked {
    /// Adds what no box and no keeper sees.
    fn of(spec: &Spec, mut found: FindResult) -> Self {
        let outside = outside(
            &spec.project,
            found.repositories.iter().map(BytesPath::as_bytes),
        );
        let (paths, unread) = (
            std::mem::take(&mut found.auto_run),
            std::mem::take(&mut found.unread),
        );
        let mut obeyed = ObeyedPaths {
            paths,
            unread,
            ..ObeyedPaths::default()
        };
        outside.add_to(&mut obeyed);
        (found.auto_run, found.unread) = (obeyed.paths, obeyed.unread);
        let (covers, warnings) = Covers::of(&found);
        let covers = if spec.review.is_some() {
            covers.in_view()
        } else {
            covers
        };
        Self {
            covers,
            warnings,
            is_whole: found.is_whole,
        }
    }
}

impl State {
    /// Notes what the box before hid that is not in the copy any more though it is in the project:
    /// what the person takes away there may come back, and shows through then.
    fn note_taken_away(&mut self, project: &Path, covers: &Covers) {
        let Some(before) = &self.covers else { return };
        let is_taken_away = |path: &&String| {
            !covers.hides(path) && fs::symlink_metadata(project.join(path)).is_ok()
        };
        self.taken_away
            .extend(before.hidden().iter().filter(is_taken_away).cloned());
    }

    fn keeper_copy(&self) -> Option<(u64, u64)> {
        self.keeper.as_ref()?.copy
    }
}

impl Covering {
    pub(super) fn new(
        options: &Options,
        records: &Path,
        project: &Project,
        purpose: Purpose,
    ) -> Self {
        let find = FindOrder {
            place: BytesPath::from(project.path()),
            ..options.find()
        };
        Self {
            find,
            record: Record::new(records, project),
            purpose,
            state: Mutex::default(),
        }
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
        let is_end = matches!(order, TurnOrder::End { .. });
        let answer = self
            .ask(
                engine,
                spec,
                labels,
                within,
                async |keeper| keeper.turn(order, cancel).await,
                cancel,
            )
            .await;
        if is_end {
            self.see(&mut *self.state.lock().await, cancel).await;
        }
        answer
    }

    /// Tells the keeper where a session begins or ends whose changes are held back.
    pub(super) async fn review(
        &self,
        engine: &Engine,
        spec: &Spec,
        labels: &Labels,
        within: Duration,
        order: ReviewOrder,
        cancel: &CancellationToken,
    ) -> Result<ReviewAnswer, Error> {
        let is_end = matches!(order, ReviewOrder::End { .. } | ReviewOrder::Turn { .. });
        let answer = self
            .ask(
                engine,
                spec,
                labels,
                within,
                async |keeper| keeper.review(order, cancel).await,
                cancel,
            )
            .await;
        // What the person does in the project is seen by commands only where that shows through.
        if is_end && answer.is_ok() && spec.review.as_ref().is_some_and(Held::is_laid_over) {
            self.see_below(&mut *self.state.lock().await, spec, cancel)
                .await;
        }
        answer
    }

    async fn ask<T>(
        &self,
        engine: &Engine,
        spec: &Spec,
        labels: &Labels,
        within: Duration,
        ask: impl AsyncFnOnce(&mut Keeper) -> Result<T, Error>,
        cancel: &CancellationToken,
    ) -> Result<T, Error> {
        let mut state = self.state.lock().await;
        let mut keeper = match state.keeper.take() {
            Some(keeper) => keeper,
            None => Keeper::start(engine, spec, labels, self.purpose, within, cancel).await?,
        };
        let answer = ask(&mut keeper).await;
        match &answer {
            Ok(_)
            | Err(Error::Keeper {
                source: LineError::Failed { .. },
            }) => state.keeper = Some(keeper),
            // Its answer may still come.
            Err(_) => keeper.discard(engine).await,
        }
        answer
    }

    /// Looks from outside of the box, for the next one: a guest cannot tell whether what it does
    /// not see is still worth hiding, and what came since is not hidden from it.
    async fn see(&self, state: &mut State, cancel: &CancellationToken) {
        let (Some(mut keeper), Some(covers)) = (state.keeper.take(), &state.covers) else {
            return;
        };
        let Ok(found) = keeper.find(self.knowing(covers), cancel).await else {
            return keeper.close();
        };
        state.keeper = Some(keeper);
        let (seen, _) = Covers::of(&found);
        let before = state.seen.as_ref().unwrap_or(covers);
        if seen != *before {
            self.remember(&seen, found.is_whole);
            let new = seen.newly_hidden(before);
            if !new.is_empty() {
                // Of what nobody had looked at nobody knows when it came.
                let why = if state.is_whole {
                    "came after the sandbox was made"
                } else {
                    "was not found before the sandbox was made"
                };
                state
                    .news
                    .push(format!("commands of this session can read {}, which {why}; from the next one it is hidden", new.join(", ")));
            }
            state.seen = Some(seen);
        }
    }

    /// Looks at the project that shows through in what commands worked on: nothing there has told
    /// what the person did meanwhile.
    async fn see_below(&self, state: &mut State, spec: &Spec, cancel: &CancellationToken) {
        let (Some(mut keeper), Some(covers)) = (state.keeper.take(), &state.covers) else {
            return;
        };
        let found = keeper
            .find(
                FindOrder {
                    in_project: true,
                    ..self.knowing(covers)
                },
                cancel,
            )
            .await;
        let Ok(found) = found else {
            return keeper.close();
        };
        state.keeper = Some(keeper);
        let (seen, _) = Covers::of(&found);
        let new: Vec<String> = seen
            .newly_hidden(covers)
            .into_iter()
            .filter(|path| !state.taken_away.contains(path))
            .collect();
        if !new.is_empty() {
            let why = if state.is_whole {
                "came after the sandbox was made"
            } else {
                "was not found before the sandbox was made"
            };
            let news = format!(
                "commands of this session could read {}, which {why}; from the next one it is hidden",
                new.join(", ")
            );
            state.news.push(news);
        }
        let is_told = |path: &String| covers.hides(path) || new.contains(path);
        for (was, now) in state
            .renamed
            .now(spec.project.path())
            .into_iter()
            .filter(|(_, now)| !is_told(now))
        {
            state.news.push(format!(
                "commands of this session could read {now}, which was {was}, and hidden, until it was renamed; by that name it is not hidden \
                 from the next one either"
            ));
        }
    }

    /// Whether a session is to look through what there was no time for before its first command.
    pub(super) async fn is_to_be_searched(&self) -> bool {
        self.purpose != Purpose::Look && !self.state.lock().await.is_whole
    }

    /// Looks through all of the project, once, by a keeper of its own. The next box covers what it
    /// finds; returns what is to be said of that, if anything was found.
    pub(super) async fn search(
        &self,
        made: &Made,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Searched, Error> {
        let Made {
            engine,
            spec,
            labels,
            ..
        } = made;
        // In a copy are the session's own doings; what it is a copy of tells what is the person's.
        let spec = &spec.in_place();
        let known = self.state.lock().await.covers.clone().unwrap_or_default();
        let mut keeper = Keeper::start(engine, spec, labels, Purpose::Look, within, cancel).await?;
        let budget_ms = SEARCH.as_millis() as u64;
        let find = FindOrder {
            budget_ms,
            ignored_ms: budget_ms,
            ..self.knowing(&known)
        };
        let found = match keeper.find(find, cancel).await {
            Ok(found) => found,
            Err(error) => {
                keeper.discard(engine).await;
                return Err(error);
            }
        };
        keeper.close();
        let Looked {
            covers: seen,
            warnings,
            is_whole,
        } = Looked::of(spec, found);
        let mut state = self.state.lock().await;
        let is_new = |warning: &String| !state.warnings.contains(warning);
        let warnings = warnings.into_iter().filter(is_new).collect();
        self.remember(&seen, is_whole);
        let seen = if made.spec.review.is_some() {
            seen.in_view()
        } else {
            seen
        };
        let (hidden, read_only) = (seen.newly_hidden(&known), seen.newly_read_only(&known));
        state.is_whole |= is_whole;
        // It may have been made anew meanwhile, and have found more.
        let covers = state.covers.as_ref().map_or_else(
            || seen.clone(),
            |covers| {
                if *covers == known {
                    seen.clone()
                } else {
                    covers.and(&seen)
                }
            },
        );
        state.covers = Some(covers);
        state.seen = None;
        Ok(Searched {
            hidden,
            read_only,
            warnings,
            is_whole,
        })
    }

    /// Returns what a person should know that came out since it was last asked.
    pub(super) async fn news(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().await.news)
    }

    fn knowing(&self, covers: &Covers) -> FindOrder {
        FindOrder {
            known: covers.known(),
            ..self.find.clone()
        }
    }

    fn remembered(&self) -> Covers {
        self.record.read(&self.find.auto_run)
    }

    fn remember(&self, covers: &Covers, is_whole: bool) {
        self.record.write(covers, &self.find, is_whole);
    }

    /// Makes a box, or joins that of `podbay up`, that covers what is to be covered now. What is to
    /// be said of one that was not joined goes into `beside`.
    pub(super) async fn make(
        &self,
        made: &Made,
        spec: &Spec,
        within: Duration,
        beside: &OnceLock<String>,
        cancel: &CancellationToken,
    ) -> Result<Running, Error> {
        let Made {
            engine,
            labels,
            git,
            ..
        } = made;
        let git = git.as_ref();
        let mut state = self.state.lock().await;
        if state.covers.is_none() {
            state.was_whole = self.record.is_whole(&self.find);
        }
        let known = state.covers.clone().unwrap_or_else(|| self.remembered());
        let known = if spec.review.is_some() {
            known.in_view()
        } else {
            known
        };
        let mut covers = known.clone();
        let mut n_tries = 1;
        loop {
            let covering = spec.covering(&covers);
            // What this box covers cannot be judged from in there either.
            let find = &self.knowing(&known.and(&covers));
            let asked = Asked {
                engine,
                spec: &covering,
                labels,
                git,
                within,
                find,
                cancel,
            };
            let present = if spec.review.is_some() {
                environment::Present::None
            } else {
                environment::present(engine, &covering, cancel).await?
            };
            let made = match present {
                environment::Present::None if spec.review.is_some() => {
                    Box::pin(self.start_copy(&mut state, asked)).await
                }
                environment::Present::Same(id) => {
                    match Box::pin(self.join(&mut state, &id, asked)).await {
                        Ok(Some(attempt)) => Ok(attempt),
                        Ok(None) => Box::pin(self.start(asked)).await,
                        Err(error) => Err(error),
                    }
                }
                // Told with the first box; one that takes its place is beside the same environment.
                environment::Present::Other(words) => {
                    let _ = beside.set(words);
                    Box::pin(self.start(asked)).await
                }
                environment::Present::None => Box::pin(self.start(asked)).await,
            };
            let is_last = n_tries == MOST_TRIES;
            n_tries += 1;
            covers = match made {
                Ok(attempt) => {
                    // A box that somebody else keeps has nothing of the session's.
                    let lent = match git.filter(|_| attempt.running.owned) {
                        Some(git) => git.lent().await,
                        None => None,
                    };
                    let uncovered = is_covered(&covering.lending(lent), &attempt.running.facts);
                    let Looked {
                        covers: seen,
                        warnings,
                        is_whole,
                    } = attempt.looked;
                    if seen == covers && uncovered.is_ok() {
                        // What lies in a copy tells nothing of the project.
                        if spec.review.is_none() {
                            self.remember(&covers, is_whole);
                        }
                        if spec.review.as_ref().is_some_and(Held::is_laid_over) {
                            state.renamed.watch(spec.project.path(), covers.hidden());
                            state.note_taken_away(spec.project.path(), &covers);
                        }
                        state.warnings = warnings;
                        state.is_whole |= is_whole;
                        state.covers = Some(covers);
                        return Ok(attempt.running);
                    }
                    discard(engine, &attempt.running).await;
                    if is_last {
                        return Err(unsettled(uncovered.err()));
                    }
                    seen
                }
                Err(error) if is_last || cancel.is_cancelled() => return Err(error),
                Err(Error::Uncovered { .. }) => Covers::default(),
                // What it was to cover was a guess, which may be what was wrong with it.
                Err(Error::Engine { .. } | Error::OtherFiles { .. })
                    if covers != Covers::default() =>
                {
                    Covers::default()
                }
                Err(error) => return Err(error),
            };
        }
    }

    /// Starts a box. Its own guest looks before anything runs there, so that nobody waits for
    /// another container.
    async fn start(&self, asked: Asked<'_>) -> Result<Attempt, Error> {
        let Asked {
            engine,
            spec,
            labels,
            git,
            within,
            find,
            cancel,
        } = asked;
        let mut running = match git {
            Some(git) => {
                git.start_box(engine, spec, labels, find, within, cancel)
                    .await?
            }
            None => docker::start(engine, spec, labels, find, within, cancel).await?,
        };
        let mut found = running.found.take().unwrap_or_default();
        // The settings that name it are hidden from the guest there.
        if let Some(git) = git {
            let obeyed = git.obeyed().await;
            for (list, more) in [
                (&mut found.auto_run, obeyed.paths),
                (&mut found.unread, obeyed.unread),
            ] {
                list.extend(more);
                list.sort();
                list.dedup();
            }
        }
        Ok(Attempt {
            running,
            looked: Looked::of(spec, found),
        })
    }

    /// Starts a box that works on a copy of the project. That it is one of this project a keeper
    /// says, which has both before it.
    async fn start_copy(&self, state: &mut State, asked: Asked<'_>) -> Result<Attempt, Error> {
        // Both would fill it.
        guest_volume::ready(asked.engine, asked.spec, asked.cancel).await?;
        let starting = Box::pin(self.start(asked));
        let looking = Box::pin(self.look(state, asked));
        let (started, found) = tokio::join!(starting, looking);
        let Attempt { running, .. } = started?;
        match found {
            Ok(looked) if state.keeper_copy() == Some(running.facts.workspace) => {
                Ok(Attempt { running, looked })
            }
            found => {
                discard(asked.engine, &running).await;
                found.and_then(|_| {
                    Err(Error::OtherFiles {
                        path: asked.spec.project.path().to_owned(),
                    })
                })
            }
        }
    }

    /// Joins a box in which commands have run: what must be covered there is for a keeper to say,
    /// which looks meanwhile.
    async fn join(
        &self,
        state: &mut State,
        id: &ContainerId,
        asked: Asked<'_>,
    ) -> Result<Option<Attempt>, Error> {
        let Asked {
            engine,
            spec,
            within,
            cancel,
            ..
        } = asked;
        let joining = Box::pin(environment::join(engine, spec, id, within, cancel));
        let looking = Box::pin(self.look(state, asked));
        let (joined, found) = tokio::join!(joining, looking);
        match (joined?, found) {
            (Some(running), Ok(looked)) => {
                if let Some(git) = asked.git {
                    Box::pin(git.look_on(engine, spec, asked.labels, within, cancel)).await?;
                }
                Ok(Some(Attempt { running, looked }))
            }
            (Some(running), Err(error)) => {
                discard(engine, &running).await;
                Err(error)
            }
            (None, found) => found.map(|_| None),
        }
    }

    async fn look(&self, state: &mut State, asked: Asked<'_>) -> Result<Looked, Error> {
        let Asked {
            engine,
            spec,
            labels,
            within,
            find,
            cancel,
            ..
        } = asked;
        let mut is_new = false;
        let found = loop {
            let mut keeper = if let Some(keeper) = state.keeper.take() {
                keeper
            } else {
                is_new = true;
                Keeper::start(engine, spec, labels, self.purpose, within, cancel).await?
            };
            match keeper.find(find.clone(), cancel).await {
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
        if found.lost.is_empty() {
            Ok(Looked::of(spec, found))
        } else {
            Err(Error::lost_from_view(&found.lost))
        }
    }

    /// Returns what the box hides, and what a person should know of what it cannot cover.
    pub(super) async fn told(&self) -> (Vec<String>, Vec<String>) {
        let state = self.state.lock().await;
        let words = if self.purpose == Purpose::Look {
            NOT_SEARCHED
        } else {
            SEARCHED_ON
        };
        let not_whole = (!state.is_whole && !state.was_whole).then(|| words.to_owned());
        (
            state
                .covers
                .as_ref()
                .map_or_else(Vec::new, |covers| covers.hidden().to_vec()),
            state.warnings.iter().cloned().chain(not_whole).collect(),
        )
    }

    /// Ends the keeper and waits until it is gone.
    pub(super) async fn discard(&self, engine: &Engine) {
        if let Some(keeper) = self.state.lock().await.keeper.take() {
            keeper.discard(engine).await;
        }
    }

    pub(super) async fn close(&self) {
        if let Some(keeper) = self.state.lock().await.keeper.take() {
            keeper.close();
        }
    }
}

/// Returns the same box covering what there is to cover now: for one that is made for whoever comes
/// later.
#[boxed]
pub async fn look_through(
    engine: &Engine,
    spec: &Spec,
    options: &Options,
    labels: Labels,
    records: &Path,
    cancel: &CancellationToken,
) -> Result<Spec, Error> {
    let covering = Covering::new(options, records, &spec.project, Purpose::Look);
    let find = &covering.knowing(&covering.remembered());
    let mut state = covering.state.lock().await;
    let found = covering
        .look(
            &mut state,
            Asked {
                engine,
                spec,
                labels: &labels,
                git: None,
                within: options.start_timeout.duration(),
                find,
                cancel,
            },
        )
        .await;
    drop(state);
    covering.close().await;
    let Looked {
        covers,
        warnings,
        is_whole,
    } = found?;
    covering.remember(&covers, is_whole);
    let is_known = is_whole || covering.record.is_whole(&covering.find);
    let mut spec = spec.covering(&covers);
    spec.warnings.extend(warnings);
    spec.warnings
        .extend((!is_known).then(|| NOT_SEARCHED.to_owned()));
    Ok(spec)
}

fn unsettled(uncovered: Option<Error>) -> Error {
    uncovered.unwrap_or_else(|| Error::Uncovered {
        path: "what is to be hidden or read-only".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::keep::SecretPath;

    #[test]
    fn what_the_session_took_away_is_told_from_what_the_person_did() {
        let place = tempfile::tempdir().expect("a folder");
        for name in ["moved.env", "kept.env"] {
            fs::write(place.path().join(name), "A=1").expect("written");
        }
        let covers = |paths: &[&str]| {
            let secrets = paths
                .iter()
                .map(|&path| SecretPath {
                    path: BytesPath::from(path),
                    is_folder: false,
                })
                .collect();
            Covers::of(&FindResult {
                secrets,
                ..FindResult::default()
            })
            .0
        };
        let mut state = State::default();
        state.note_taken_away(place.path(), &covers(&[]));
        state.covers = Some(covers(&["moved.env", "kept.env", "gone.env"]));
        state.note_taken_away(place.path(), &covers(&["kept.env", "new/moved.env"]));
        // The person may make `gone.env` again, and commands would see it.
        assert_eq!(state.taken_away, BTreeSet::from(["moved.env".to_owned()]));
    }
}
