use std::time::Duration;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::Ended;
use super::Lent;
use super::Options;
use super::below;
use super::below::Below;
use super::outside::outside;
use super::settle;
use super::top::SESSION;
use super::top::Top;
use super::volume;
use crate::Error;
use crate::Spec;
use crate::docker;
use crate::docker::Running;
use crate::keeper::Keeper;
use crate::keeper::Purpose;
use crate::keeper::Sees;
use podbay_engine::Engine;
use podbay_engine::Labels;
use podbay_event::InstanceId;
use podbay_event::SessionId;
use podbay_wire::BytesPath;
use podbay_wire::below as path_below;
use podbay_wire::keep::FindOrder;
use podbay_wire::keep::GitAnswer;
use podbay_wire::keep::GitOrder;
use podbay_wire::keep::GitRefusal;
use podbay_wire::keep::ObeyedPaths;
use podbay_wire::keep::PreparedGit;
use podbay_wire::keep::PreparedRepository;
use podbay_wire::keep::git_of_review;

/// The message where the sandbox has no git folder of its own.
const READ_ONLY: &str = "git can only read in this session";
/// The message where git cannot even read.
const NOTHING: &str = "git does not work in this session";
/// The message where it depends on the sandbox's git version.
const PERHAPS: &str = "git can at most read in this session";

/// The git of one session.
pub(crate) struct SessionGit {
    /// Identifies it to the keeper, and its volume. A resumed session has another one.
    id: String,
    /// The review of its changes, if there is one, which includes its commits.
    review: Option<SessionId>,
    options: Options,
    state: Mutex<State>,
}

/// What a sandbox of a session is made with.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) spec: &'a Spec,
    pub(crate) labels: &'a Labels,
    /// What the session's keeper is there for.
    pub(crate) purpose: Purpose,
    pub(crate) find: &'a FindOrder,
    pub(crate) within: Duration,
    /// Fires when the keeper is made, and with it what new volumes begin with.
    pub(crate) is_laid_out: &'a CancellationToken,
    pub(crate) cancel: &'a CancellationToken,
}

#[derive(Default)]
struct State {
    /// The masks when its folders were made, and the repositories.
    seen: Option<Seen>,
    /// What its sandboxes get, and the `.git` that was made from.
    lent: Option<Lent>,
    top: Option<(u64, u64)>,
    /// What the last sandbox got.
    given: Option<Lent>,
    /// Whether the keeper has recorded the project's state.
    is_on_record: bool,
    /// What the user's git obeys in the project.
    obeyed: ObeyedPaths,
    /// A command may have run, so the folder may hold unique data.
    is_sealed: bool,
    notes: Vec<String>,
    /// Masked files that git tracks, relative to the project.
    tracked: Vec<BytesPath>,
}

/// The parts of a project that determine the session's folders.
#[derive(PartialEq, Eq)]
struct Seen {
    hidden: Vec<String>,
    repositories: Vec<String>,
}

impl Seen {
    fn of(spec: &Spec) -> Self {
        Self {
            hidden: spec.covers.hidden().to_vec(),
            repositories: spec.covers.repositories().cloned().collect(),
        }
    }
}

impl SessionGit {
    pub(crate) fn new(session: &SessionId, options: Options) -> Self {
        Self {
            id: format!("{session}-{}", InstanceId::random()),
            review: None,
            options,
            state: Mutex::default(),
        }
    }

    /// The git of a session whose changes are pending review. A resumed review uses the same
    /// folder.
    pub(crate) fn of_review(session: &SessionId, options: Options) -> Self {
        Self {
            id: git_of_review(session.as_str()),
            review: Some(session.clone()),
            options,
            state: Mutex::default(),
        }
    }

    /// Starts the session's sandbox, after or beside preparing the session's folder. The keeper
    /// that makes the folder stays in `keeper`; `look` is what it does next, beside the sandbox that
    /// starts.
    pub(crate) async fn start_box<T>(
        &self,
        asked: Asked<'_>,
        keeper: &mut Option<Keeper>,
        look: impl AsyncFnOnce(&mut Option<Keeper>) -> T,
    ) -> Result<(Result<Running, Error>, T), Error> {
        let Asked {
            engine,
            spec,
            labels,
            find,
            within,
            is_laid_out,
            cancel,
            ..
        } = asked;
        let mut state = self.state.lock().await;
        let start = |lent: Option<Lent>| {
            let spec = spec.lending(lent);
            async move { docker::start(engine, &spec, labels, find, within, is_laid_out, cancel).await }
        };
        if state.is_sealed || state.seen.as_ref() == Some(&Seen::of(spec)) {
            let is_same_top = top_identity(spec) == state.top;
            state.given = state.lent.clone().and_then(|lent| lent.still(is_same_top));
            let starting = Box::pin(start(state.given.clone()));
            return Ok(tokio::join!(starting, Box::pin(look(keeper))));
        }
        let top = Top::of(&spec.project);
        let below = match self.review {
            None => Below::of(spec, docker::facts_of(engine, cancel).await?),
            Some(_) => Below::of_review(spec),
        };
        *state = State {
            top: top_identity(spec),
            ..State::default()
        };
        if let Err(error) = self.make_volumes(asked, &top, &below).await {
            state.give_up(spec, &top, &error)?;
            return Ok(tokio::join!(Box::pin(start(None)), Box::pin(look(keeper))));
        }
        let preparing = Box::pin(async {
            let prepared = Box::pin(self.prepare(asked, (&top, &below), keeper)).await;
            (prepared, look(keeper).await)
        });
        let guess = if !below.is_empty() {
            None
        } else if top == Top::None {
            Some(None)
        } else {
            Lent::guess(&spec.project, &top, &volume::name(&self.id)).map(Some)
        };
        let (started, (prepared, looked)) = match &guess {
            Some(lent) => {
                let (started, prepared) = tokio::join!(Box::pin(start(lent.clone())), preparing);
                (Some(started), prepared)
            }
            // The sandbox's mounts depend on the preparation.
            None => (None, preparing.await),
        };
        match prepared {
            Ok(Outcome {
                lent,
                obeyed,
                notes,
                tracked,
            }) => {
                state.tracked = tracked;
                state.notes = notes;
                state.notes.extend(below.notes);
                state.lent = lent;
                state.obeyed = obeyed;
                state.is_on_record = true;
                state.seen = Some(Seen::of(spec));
            }
            Err(error) => {
                if let Some(Ok(running)) = &started
                    && cancel.is_cancelled()
                {
                    docker::discard(engine, running).await;
                }
                state.give_up(spec, &top, &error)?;
            }
        }
        let given = state.lent.clone();
        state.given = given;
        let started = match started {
            Some(started) if guess == Some(state.lent.clone()) => started,
            other => {
                if let Some(Ok(running)) = other {
                    docker::discard(engine, &running).await;
                }
                Box::pin(start(state.lent.clone())).await
            }
        };
        Ok((started, looked))
    }

    /// Records the project's state for a session in a shared sandbox, which has no folder for it.
    pub(crate) async fn look_on(
        &self,
        asked: Asked<'_>,
        keeper: &mut Option<Keeper>,
    ) -> Result<(), Error> {
        let spec = asked.spec;
        let mut state = self.state.lock().await;
        if state.is_sealed || state.is_on_record {
            return Ok(());
        }
        *state = State {
            top: top_identity(spec),
            ..State::default()
        };
        let looked = async {
            self.make_volumes(asked, &Top::None, &Below::default())
                .await?;
            Box::pin(self.prepare(asked, (&Top::None, &Below::default()), keeper)).await
        };
        match looked.await {
            Ok(_) => state.is_on_record = true,
            Err(error) => state.give_up(spec, &Top::None, &error)?,
        }
        if Top::of(&spec.project) != Top::None {
            state
                .notes
                .push(format!("{READ_ONLY}: the sandbox of `podbay up` has the project's own `.git`; `podbay down` first gives it one"));
        }
        Ok(())
    }

    /// Creates the session's volume, and the second one if needed.
    async fn make_volumes(&self, asked: Asked<'_>, top: &Top, below: &Below) -> Result<(), Error> {
        let Asked {
            engine,
            spec,
            labels,
            cancel,
            ..
        } = asked;
        // The session label connects it with its review.
        let of_review = self.review.clone().map(|session| Labels {
            session: Some(session),
            ..labels.clone()
        });
        let labels = of_review.as_ref().unwrap_or(labels);
        let (name, other) = (volume::name(&self.id), volume::name_of_below(&self.id));
        volume::make(engine, spec, labels, &name, cancel).await?;
        if has_other(top, below) {
            volume::make(engine, spec, labels, &other, cancel).await?;
        }
        Ok(())
    }

    /// Has the session's keeper write down how the project is, and make the session's folder.
    async fn prepare(
        &self,
        asked: Asked<'_>,
        (top, below): (&Top, &Below),
        slot: &mut Option<Keeper>,
    ) -> Result<Outcome, Error> {
        let Asked {
            engine,
            spec,
            labels,
            purpose,
            within,
            is_laid_out,
            cancel,
            ..
        } = asked;
        let name = volume::name(&self.id);
        let mut mounts = top.mounts(&name, false);
        mounts.extend(has_other(top, below).then(|| below::mount(&self.id, false)));
        let before = slot.take();
        let mut keeper = match before {
            Some(keeper) if keeper.sees(&mounts) => {
                is_laid_out.cancel();
                keeper
            }
            other => {
                if let Some(other) = other {
                    other.close();
                }
                let sees = Sees::Session(&mounts, is_laid_out);
                Keeper::start_with(engine, spec, labels, purpose, sees, within, cancel).await?
            }
        };
        let order = GitOrder::Prepare {
            id: self.id.clone(),
            sources: top
                .source(&spec.project)
                .into_iter()
                .chain(below.sources())
                .collect(),
            hidden: spec
                .covers
                .hidden()
                .iter()
                .map(|path| BytesPath::from_bytes(path.as_bytes()))
                .collect(),
            person: self.options.person.clone(),
            review: self.review.as_ref().map(ToString::to_string),
            place: BytesPath::from(spec.project.path()),
            outside: outside(
                &spec.project,
                spec.covers.repositories().map(String::as_bytes),
            ),
        };
        let answer = keeper.git(order, cancel).await;
        match &answer {
            Ok(_) => *slot = Some(keeper),
            // A late answer would be mistaken for the next one's.
            Err(_) => keeper.discard(engine).await,
        }
        let GitAnswer::Prepared(prepared) = answer? else {
            return Err(Keeper::unexpected());
        };
        let folder = if has_other(top, below) {
            let other = volume::name_of_below(&self.id);
            engine
                .volume_folder(&other, cancel)
                .await
                .map_err(Error::engine("look for the session's git folder"))?
        } else {
            None
        };
        let is_top_good = prepared
            .repositories
            .iter()
            .any(|one| one.path.as_bytes() == b".git" && one.refused.is_none());
        let top = if is_top_good { top } else { &Top::None };
        let lent = Lent::of(
            &spec.project,
            (top, &name),
            below,
            &prepared,
            folder.as_deref(),
        );
        Ok(Outcome {
            lent,
            notes: told(&prepared),
            tracked: tracked(&prepared),
            obeyed: prepared.obeyed,
        })
    }

    /// Returns what the user's git obeyed in the project by the real settings, before anything ran.
    pub(crate) async fn obeyed(&self) -> ObeyedPaths {
        self.state.lock().await.obeyed.clone()
    }

    /// Returns what the last sandbox has of the session's git.
    pub(crate) async fn lent(&self) -> Option<Lent> {
        self.state.lock().await.given.clone()
    }

    pub(crate) fn volume(&self) -> String {
        volume::name(&self.id)
    }

    /// Returns the masked paths that git tracks, or tracks something below: their committed content
    /// can be read.
    pub(crate) async fn tracked(&self, hidden: &[String]) -> Vec<String> {
        let state = self.state.lock().await;
        let is_tracked = |path: &&String| {
            state
                .tracked
                .iter()
                .any(|known| path_below(known.as_bytes(), path.as_bytes()).is_some())
        };
        hidden.iter().filter(is_tracked).cloned().collect()
    }

    /// Marks that commands may run from now on.
    pub(crate) async fn seal(&self) -> Vec<String> {
        let mut state = self.state.lock().await;
        state.is_sealed = true;
        std::mem::take(&mut state.notes)
    }

    /// Imports what the session left; `None` if the project's state was not recorded.
    /// `is_top_theirs` says whether the `.git` at the top is the user's.
    pub(crate) async fn settle(
        &self,
        engine: &Engine,
        spec: &Spec,
        labels: &Labels,
        within: Duration,
        is_top_theirs: bool,
    ) -> Option<Result<Ended, Error>> {
        let state = self.state.lock().await;
        if !state.is_on_record {
            volume::remove(engine, &self.id).await;
            return None;
        }
        let top = if state.lent.as_ref().is_some_and(Lent::has_top) {
            Top::of(&spec.project)
        } else {
            Top::None
        };
        let left = settle::Left {
            id: &self.id,
            top,
            has_folder: state.lent.is_some(),
            is_top_theirs: Some(is_top_theirs),
            review: None,
        };
        Some(
            Box::pin(settle::settle(
                engine,
                spec,
                labels,
                &self.options,
                left,
                within,
            ))
            .await,
        )
    }

    /// Has the session's keeper forget how the project was, if the session did nothing with git.
    /// Returns whether nothing is left to be settled. `has_run`: whether something ran in a sandbox of
    /// it.
    pub(crate) async fn is_forgotten(
        &self,
        keeper: &mut Option<Keeper>,
        has_run: bool,
        cancel: &CancellationToken,
    ) -> bool {
        let mut state = self.state.lock().await;
        if !state.is_on_record {
            return !has_run;
        }
        let Some(one) = keeper else { return false };
        let order = GitOrder::Forget {
            id: self.id.clone(),
            has_run,
            session: state
                .lent
                .as_ref()
                .is_some_and(Lent::has_top)
                .then(|| SESSION.into()),
        };
        let answer = one.git(order, cancel).await;
        let is_forgotten = matches!(answer, Ok(GitAnswer::Forgotten { is_forgotten: true }));
        state.is_on_record = !is_forgotten;
        is_forgotten
    }

    /// Discards what the session did with git.
    pub(crate) async fn drop_folder(&self, engine: &Engine) {
        volume::remove(engine, &self.id).await;
    }

    /// Prepares a new folder for a session whose git was imported, from the project's present
    /// state.
    pub(crate) async fn begin_anew(
        &self,
        engine: &Engine,
        spec: &Spec,
        session: &SessionId,
        cancel: &CancellationToken,
    ) {
        *self.state.lock().await = State::default();
        if let Err(error) = super::keep_for_review(engine, spec, session, cancel).await {
            tracing::debug!(%error, "the folder is not there yet");
        }
    }

    /// Removes the folder of a session that never started; a recorded one is settled at the next
    /// start.
    pub(crate) async fn forget(&self, engine: &Engine) {
        // The folder of a review is removed with the review.
        if self.review.is_none() && !self.state.lock().await.is_on_record {
            volume::remove(engine, &self.id).await;
        }
    }
}

/// The result of the preparation.
struct Outcome {
    lent: Option<Lent>,
    obeyed: ObeyedPaths,
    notes: Vec<String>,
    tracked: Vec<BytesPath>,
}

/// Returns whether something must be mounted by its path on the engine's machine.
fn has_other(top: &Top, below: &Below) -> bool {
    matches!(top, Top::Worktree { .. }) || !below.is_empty()
}

impl State {
    /// Continues without a session folder, unless the run was cancelled.
    fn give_up(&mut self, spec: &Spec, top: &Top, error: &Error) -> Result<(), Error> {
        if matches!(error, Error::Cancelled) {
            return Err(Error::Cancelled);
        }
        self.seen = Some(Seen::of(spec));
        if *top == Top::None {
            tracing::debug!(%error, "how the repositories were is not on record");
        } else {
            self.notes.push(format!(
                "{READ_ONLY}: its own git folder could not be made: {}",
                with_causes(error)
            ));
        }
        Ok(())
    }
}

fn top_identity(spec: &Spec) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(spec.project.path().join(".git"))
        .ok()
        .map(|facts| (facts.dev(), facts.ino()))
}

/// How many items of one kind are listed.
const MOST_TOLD: usize = 20;

/// Describes what the user should know about a session's folder at the start.
fn told(prepared: &PreparedGit) -> Vec<String> {
    let (mut refused, mut notes) = (Vec::new(), Vec::new());
    for repository in &prepared.repositories {
        if let Some(refusal) = &repository.refused {
            let words = match refusal {
                GitRefusal::Extension { .. } => PERHAPS,
                refusal if refusal.lets_read() => READ_ONLY,
                _ => NOTHING,
            };
            let what = if repository.path.as_bytes() == b".git" {
                words.to_owned()
            } else {
                format!("{words} at {}", repository.path)
            };
            refused.push(format!("{what}: {refusal}"));
        }
        let place = if repository.path.as_bytes() == b".git" {
            String::new()
        } else {
            format!(" at {}", repository.path)
        };
        notes.extend(
            repository
                .notes
                .iter()
                .map(|note| format!("git in this session{place}: {note}")),
        );
    }
    let cut = |mut list: Vec<String>, n_more: u64, words: &str| {
        let n_more = list.len().saturating_sub(MOST_TOLD) as u64 + n_more;
        list.truncate(MOST_TOLD);
        list.extend((n_more > 0).then(|| format!("{words}: {n_more} more")));
        list
    };
    let refused = cut(
        refused,
        prepared.n_more,
        "git can only read in other repositories of the project",
    );
    [refused, cut(notes, 0, "git in this session")].concat()
}

/// Returns the masked files that git tracks, relative to the project; those of submodules are not
/// known.
fn tracked(prepared: &PreparedGit) -> Vec<BytesPath> {
    let of = |one: &PreparedRepository| -> Vec<BytesPath> {
        let Some(folder) = one.path.as_bytes().strip_suffix(b".git") else {
            return Vec::new();
        };
        one.hidden
            .iter()
            .map(|path| BytesPath::from_bytes([folder, path.as_bytes()].concat()))
            .collect()
    };
    prepared.repositories.iter().flat_map(of).collect()
}

pub(super) fn with_causes(error: &Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source())
        .map(|cause| format!(": {cause}"));
    format!("{error}{}", causes.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_in_which_git_cannot_read_is_reported() {
        let said = |path: &str, refusal: GitRefusal| {
            let repositories = vec![PreparedRepository::refused(&path.into(), refusal)];
            told(&PreparedGit {
                repositories,
                ..PreparedGit::default()
            })
            .concat()
        };
        let lent = || GitRefusal::Alternates {
            from: "/elsewhere".into(),
        };
        assert!(
            said(".git", lent()).starts_with(
                "git does not work in this session: it borrows objects from /elsewhere"
            )
        );
        assert!(
            said("sub/.git", lent())
                .starts_with("git does not work in this session at sub/.git: it borrows")
        );
        assert!(
            said(".git", GitRefusal::NoHead)
                .starts_with("git does not work in this session: it has no HEAD")
        );
        let unknown = said(
            ".git",
            GitRefusal::Extension {
                name: "future".to_owned(),
            },
        );
        assert!(
            unknown.starts_with(
                "git can at most read in this session: it has the unknown extension `future`"
            ),
            "{unknown}"
        );
        assert!(
            said(".git", GitRefusal::Sha256)
                .starts_with("git can only read in this session: it uses SHA-256")
        );
    }

    #[tokio::test]
    async fn tracked_masked_files_are_known_by_their_project_path() {
        let repository = |path: &str, hidden: &[&str]| PreparedRepository {
            hidden: hidden.iter().map(|&path| BytesPath::from(path)).collect(),
            refused: None,
            ..PreparedRepository::refused(&path.into(), GitRefusal::NoHead)
        };
        let repositories = vec![
            repository(".git", &[".env", ".aws/credentials"]),
            repository("sub/.git", &["a.pem"]),
        ];
        let git = SessionGit::new(&SessionId::random(), Options::default());
        git.state.lock().await.tracked = tracked(&PreparedGit {
            repositories,
            ..PreparedGit::default()
        });
        let hidden = [
            ".aws",
            ".env",
            ".env.local",
            "a.pem",
            "sub/a.pem",
            "other/.env",
        ]
        .map(str::to_owned);
        assert_eq!(git.tracked(&hidden).await, [".aws", ".env", "sub/a.pem"]);
    }

    #[test]
    fn many_repositories_are_named_up_to_a_bound() {
        let refused = |n: usize| {
            PreparedRepository::refused(
                &format!("{n}/.git").as_str().into(),
                GitRefusal::WorktreeBelow,
            )
        };
        let prepared = |n: usize, n_more: u64| PreparedGit {
            repositories: (0..n).map(refused).collect(),
            n_more,
            ..PreparedGit::default()
        };
        assert_eq!(told(&prepared(20, 0)).len(), 20);
        let told = told(&prepared(300, 700));
        assert_eq!(told.len(), 21);
        assert!(
            told[0].contains(" at 0/.git: ")
                && told[20].ends_with("in other repositories of the project: 980 more"),
            "{told:?}"
        );
    }
}
