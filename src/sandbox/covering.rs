//! Starts sandboxes with the right masks, without waiting for a search of the project if nothing
//! has changed.
//!
//! A sandbox starts with the masks of the last one, and its guest searches the project before any
//! command runs. If the result differs, the sandbox is replaced. In a running sandbox, that of
//! `podbay up`, the guest is not trusted with this; there the keeper searches.

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
use super::git;
use super::git::SessionGit;
use super::git::outside;
use super::guest_volume;
use super::held::Held;
use super::keeper::Keeper;
use super::keeper::LineError;
use super::keeper::Purpose;
use super::keeper::Sees;
use super::kept::Made;
use super::renamed::Renamed;
use super::shared::SharedSandbox;
use super::shared::lost_words;
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

/// Attempts of one start; if they do not suffice, the project is being changed all the time.
const MOST_TRIES: u32 = 4;

/// Time limit for searching the rest.
const SEARCH: Duration = Duration::from_mins(10);

/// The result of searching what there was no time for before the first command.
pub(super) struct Searched {
    pub(super) hidden: Vec<String>,
    pub(super) read_only: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) is_whole: bool,
}

/// The masks of a session's sandboxes, and its keeper, once there is one.
pub(super) struct Covering {
    find: FindOrder,
    record: Record,
    purpose: Purpose,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    keeper: Option<Keeper>,
    /// The masks of the last sandbox.
    covers: Option<Covers>,
    warnings: Vec<String>,
    /// Whether the whole project was searched since the session began, and whether it had been
    /// before.
    is_whole: bool,
    was_whole: bool,
    /// The masks by the last search from outside of the sandbox.
    seen: Option<Covers>,
    /// Notes for the user about that.
    news: Vec<String>,
    /// Masked files of a project whose copy the commands work on.
    renamed: Renamed,
    /// Masked files that commands removed in their copy: the project's own do not show through
    /// there again.
    taken_away: BTreeSet<String>,
}

/// The parameters of a sandbox to start.
#[derive(Clone, Copy)]
struct Asked<'a> {
    engine: &'a Engine,
    spec: &'a Spec,
    labels: &'a Labels,
    git: Option<&'a SessionGit>,
    within: Duration,
    find: &'a FindOrder,
    /// Fires when volumes that begin with something have it.
    is_laid_out: &'a CancellationToken,
    cancel: &'a CancellationToken,
}

/// A sandbox, and the masks it should have had.
struct Attempt {
    running: Running,
    looked: Looked,
}

/// What came of joining a shared sandbox.
enum Joined {
    Shared(Box<Running>),
    /// Something at this path is protected in it no longer.
    Unprotected(BytesPath),
    /// It was at its end.
    Ended,
}

/// The result of a search.
struct Looked {
    covers: Covers,
    warnings: Vec<String>,
    /// Whether it was complete.
    is_whole: bool,
}

impl Looked {
    /// Adds what neither a sandbox nor a keeper can see.
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
    /// Records which masked files of the last sandbox are missing in the copy but not in the
    /// project: the user may delete and create them again, and then they show through.
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

    /// Tells the keeper that a turn begins or ends. An ended keeper is restarted.
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

    /// Tells the keeper that a session under review begins or ends.
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
        // Commands see the user's changes only where the project shows through.
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
            // A late answer would be mistaken for the next one's.
            Err(_) => keeper.discard(engine).await,
        }
        answer
    }

    /// Searches from outside of the sandbox, for the next one: a guest cannot tell whether masked
    /// files still need it, and new ones are not masked for it yet.
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
                // It is unknown when files appeared that were not searched before.
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

    /// Searches the project below a copy-on-write view: nothing in the view tells what the user
    /// changed meanwhile.
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

    /// Returns whether a session must search what there was no time for before its first command.
    pub(super) async fn is_to_be_searched(&self) -> bool {
        self.purpose != Purpose::Look && !self.state.lock().await.is_whole
    }

    /// Searches the whole project once, with a keeper of its own. The next sandbox masks what it
    /// finds; returns a note, if something was found.
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
        // A copy has the session's changes; the original tells which files are the user's.
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
        // The sandbox may have been replaced meanwhile, with more masks.
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

    /// Returns and clears the notes for the user.
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

    /// Starts a sandbox with the right masks, or joins that of `podbay up`. Notes about a sandbox
    /// that was not joined go into `beside`.
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
            // The guest cannot judge what is masked for it either.
            let find = &self.knowing(&known.and(&covers));
            let is_laid_out = &CancellationToken::new();
            if !spec.is_laid_over() || state.keeper.is_some() {
                is_laid_out.cancel();
            }
            let asked = Asked {
                engine,
                spec: &covering,
                labels,
                git,
                within,
                find,
                is_laid_out,
                cancel,
            };
            // Commands can write in a shared one.
            let present = if spec.review.is_some() || spec.is_read_only() {
                environment::Present::None
            } else {
                environment::present(engine, &covering, cancel).await?
            };
            let made = match present {
                environment::Present::None if spec.review.is_some() => {
                    Box::pin(self.start_copy(&mut state, asked)).await
                }
                environment::Present::Same(shared) => {
                    match Box::pin(self.join_shared(&mut state, shared, asked)).await? {
                        Joined::Shared(running) => return Ok(*running),
                        Joined::Unprotected(path) => {
                            let _ = beside.set(lost_words(&path));
                        }
                        Joined::Ended => {}
                    }
                    Box::pin(self.start(&mut state, asked)).await
                }
                // Said with the first sandbox only; its replacements are beside the same shared
                // one.
                environment::Present::Other(words) => {
                    let _ = beside.set(words);
                    Box::pin(self.start(&mut state, asked)).await
                }
                environment::Present::None => Box::pin(self.start(&mut state, asked)).await,
            };
            let is_last = n_tries == MOST_TRIES;
            n_tries += 1;
            covers = match made {
                Ok(attempt) => {
                    // A shared sandbox has nothing of the session's.
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
                        // A copy tells nothing about the project.
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
                // The masks were a guess, which may be the cause.
                Err(Error::Engine { .. } | Error::OtherFiles { .. })
                    if covers != Covers::default() =>
                {
                    Covers::default()
                }
                Err(error) => return Err(error),
            };
        }
    }

    /// Starts a sandbox. Its own guest searches before anything runs, which needs no second
    /// container.
    async fn start(&self, state: &mut State, asked: Asked<'_>) -> Result<Attempt, Error> {
        let (running, ()) = self
            .start_looking(&mut state.keeper, asked, async |_| ())
            .await?;
        Ok(Self::seen_from_inside(running?, asked).await)
    }

    /// Starts a sandbox; the session's keeper looks meanwhile, when it has made what the sandbox has of
    /// git.
    async fn start_looking<T>(
        &self,
        keeper: &mut Option<Keeper>,
        asked: Asked<'_>,
        look: impl AsyncFnOnce(&mut Option<Keeper>) -> T,
    ) -> Result<(Result<Running, Error>, T), Error> {
        let Asked {
            engine,
            spec,
            labels,
            git,
            within,
            find,
            is_laid_out,
            cancel,
        } = asked;
        if let Some(git) = git {
            return git.start_box(self.of_git(asked), keeper, look).await;
        }
        let starting = Box::pin(docker::start(
            engine,
            spec,
            labels,
            find,
            within,
            is_laid_out,
            cancel,
        ));
        Ok(tokio::join!(starting, Box::pin(look(keeper))))
    }

    fn of_git<'a>(&self, asked: Asked<'a>) -> git::Asked<'a> {
        git::Asked {
            engine: asked.engine,
            spec: asked.spec,
            labels: asked.labels,
            purpose: self.purpose,
            find: asked.find,
            within: asked.within,
            is_laid_out: asked.is_laid_out,
            cancel: asked.cancel,
        }
    }

    async fn seen_from_inside(mut running: Running, asked: Asked<'_>) -> Attempt {
        let mut found = running.found.take().unwrap_or_default();
        // The repository settings are masked for the guest.
        if let Some(git) = asked.git {
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
        Attempt {
            running,
            looked: Looked::of(asked.spec, found),
        }
    }

    /// Starts a sandbox on a copy of the project. A keeper that sees both confirms that it is a
    /// copy of this project.
    async fn start_copy(&self, state: &mut State, asked: Asked<'_>) -> Result<Attempt, Error> {
        // Both would fill the volume.
        guest_volume::ready(asked.engine, asked.spec, asked.cancel).await?;
        let (running, found) = self
            .start_looking(&mut state.keeper, asked, async |keeper| {
                self.look(keeper, asked).await
            })
            .await?;
        // What keeps the keeper from looking may be why the sandbox did not start, too.
        let (looked, running) = match (found, running) {
            (Ok(looked), running) => (looked, running?),
            (Err(error), Ok(running)) => {
                discard(asked.engine, &running).await;
                return Err(error);
            }
            (Err(error), Err(_)) => return Err(error),
        };
        if state.keeper_copy() == Some(running.facts.workspace) {
            return Ok(Attempt { running, looked });
        }
        discard(asked.engine, &running).await;
        Err(Error::OtherFiles {
            path: asked.spec.project.path().to_owned(),
        })
    }

    /// Joins the sandbox of `podbay up` with the masks that it has, unless one is lost. What came
    /// since is searched beside the calls.
    async fn join_shared(
        &self,
        state: &mut State,
        present: SharedSandbox,
        asked: Asked<'_>,
    ) -> Result<Joined, Error> {
        let Asked {
            engine,
            find,
            within,
            cancel,
            ..
        } = asked;
        let covers = &present.covers.covers;
        let spec = asked.spec.covering(covers);
        let joining = environment::join(engine, &spec, &present, find, within, cancel);
        let Some(running) = Box::pin(joining).await? else {
            return Ok(Joined::Ended);
        };
        if let Some(path) = present.covers.lost(&spec.project, &running.facts.mounts) {
            discard(engine, &running).await;
            return Ok(Joined::Unprotected(path));
        }
        // What the search finds is only told: this sandbox gets no other masks.
        state.is_whole = true;
        state.covers = Some(covers.clone());
        Ok(Joined::Shared(Box::new(running)))
    }

    /// Returns what to say of files that came after the sandbox of `podbay up` was made, as a search
    /// in it found them. Each file is named once.
    pub(super) fn told_of_shared(
        &self,
        spec: &Spec,
        shared: &SharedSandbox,
        found: FindResult,
    ) -> Vec<String> {
        let Looked {
            covers,
            mut warnings,
            is_whole,
        } = Looked::of(spec, found);
        let later = shared.covers.later(&spec.project, &covers);
        let container = &shared.id.0;
        if let Some(words) = later.words(&self.record.told(container)) {
            warnings.push(words);
            self.record.tell(container, later.paths());
        }
        warnings.extend((!is_whole).then(|| NOT_SEARCHED.to_owned()));
        warnings
    }

    /// Records the repositories of the project for a session that joined the sandbox of `podbay up`,
    /// before it changes anything. Returns notes for the user.
    pub(super) async fn record_git(
        &self,
        made: &Made,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, Error> {
        let (Some(git), mut state) = (&made.git, self.state.lock().await) else {
            return Ok(Vec::new());
        };
        let spec = made
            .spec
            .covering(&state.covers.clone().unwrap_or_default());
        let asked = git::Asked {
            engine: &made.engine,
            spec: &spec,
            labels: &made.labels,
            purpose: self.purpose,
            find: &self.find,
            within,
            is_laid_out: &CancellationToken::new(),
            cancel,
        };
        Box::pin(git.look_on(asked, &mut state.keeper)).await?;
        Ok(git.seal().await)
    }

    async fn look(&self, slot: &mut Option<Keeper>, asked: Asked<'_>) -> Result<Looked, Error> {
        let Asked {
            engine,
            spec,
            labels,
            within,
            find,
            is_laid_out,
            cancel,
            ..
        } = asked;
        let mut is_new = false;
        let found = loop {
            let mut keeper = if let Some(keeper) = slot.take() {
                keeper
            } else {
                is_new = true;
                let sees = Sees::Session(&[], is_laid_out);
                Keeper::start_with(engine, spec, labels, self.purpose, sees, within, cancel).await?
            };
            match keeper.find(find.clone(), cancel).await {
                Ok(found) => {
                    *slot = Some(keeper);
                    break found;
                }
                // A late answer would be mistaken for the next one's.
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

    /// Returns the masks of the session's sandbox.
    pub(super) async fn present(&self) -> Covers {
        self.state.lock().await.covers.clone().unwrap_or_default()
    }

    /// Returns the masked paths, and warnings about what cannot be masked.
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

    /// Has the keeper forget the git of a session that did nothing with it; returns whether it has.
    pub(super) async fn forget_git(
        &self,
        git: &SessionGit,
        has_run: bool,
        cancel: &CancellationToken,
    ) -> bool {
        git.is_forgotten(&mut self.state.lock().await.keeper, has_run, cancel)
            .await
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

/// Returns the spec with the present masks, for a sandbox that others join later.
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
            &mut state.keeper,
            Asked {
                engine,
                spec,
                labels: &labels,
                git: None,
                within: options.start_timeout.duration(),
                find,
                is_laid_out: &CancellationToken::new(),
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
    spec.warnings.extend(git::why_no_git(&spec.project, false));
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
    fn deletions_by_the_session_and_by_the_user_are_distinguished() {
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
        // The user may create `gone.env` again, and commands would see it.
        assert_eq!(state.taken_away, BTreeSet::from(["moved.env".to_owned()]));
    }
}
