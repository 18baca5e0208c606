//! What sessions changed that waits to be accepted.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::path::Path;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Front;
use super::Place;
use super::Report;
use super::bench::Bench;
use super::bench::Ground;
use super::error::Told;
use super::exit_code;
use podbay_event::Kind;
use podbay_event::ProgressSink;
use podbay_event::SessionId;
use podbay_sandbox as sandbox;
use podbay_sandbox::HeldReview;
use podbay_sandbox::LineError;
use podbay_sandbox::Lock;
use podbay_sandbox::Spec;
use podbay_sandbox::TurnSelection;
use podbay_sandbox::git;
use podbay_session::CommandRecord;
use podbay_wire::BytesPath;
use podbay_wire::keep::ApplyOutcome;
use podbay_wire::keep::LeftReason;
use podbay_wire::keep::PendingChanges;
use podbay_wire::keep::PendingGit;
use podbay_wire::keep::PendingReview;
use podbay_wire::keep::ReviewAnswer;
use podbay_wire::keep::ReviewApplied;
use podbay_wire::keep::ReviewOrder;

/// What a user wants of reviews. An id may be the beginning of one; without one there must be
/// only one review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewWish {
    List,
    /// The first of these may be an id, the others are paths or patterns.
    Diff {
        words: Vec<OsString>,
    },
    Apply {
        id: Option<String>,
        only: Vec<OsString>,
        /// Puts lines of both sides together where a file was changed since.
        merge: bool,
        /// Also what runs by itself on the user's machine.
        with_auto_run: bool,
        commits: Commits,
    },
    /// Applies what was chosen on a screen; `Apply` finds by patterns.
    Take {
        id: String,
        selection: TurnSelection,
    },
    Discard {
        id: Option<String>,
    },
}

/// Whether what the session did with git is taken over as it is: commits as commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commits {
    /// Once all files are in that go with them.
    #[default]
    WithTheRest,
    /// In any case.
    Now,
    /// They wait.
    Later,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reviewed {
    /// The review; empty for a list.
    pub name: String,
    pub answer: ReviewAnswer,
    /// What of the session's git was taken over, where that was tried.
    pub git: Option<git::Ended>,
}

/// Shows, applies or discards what waits. Whoever changes files holds the project for that time.
#[boxed]
pub async fn review(place: &Place, wish: ReviewWish, front: &Front) -> Result<Reviewed, Error> {
    let cancel = front.interrupt.run();
    let ground = match Ground::open(place)? {
        Ground::Socket(_) => return Err(Error::not_attached("`podbay review`")),
        project @ Ground::Project(_) => project,
    };
    let lock = if matches!(wish, ReviewWish::Apply { .. } | ReviewWish::Take { .. }) {
        Some(ground.lock(&place.state)?)
    } else {
        None
    };
    let detail = match &wish {
        ReviewWish::List | ReviewWish::Diff { .. } => None,
        ReviewWish::Apply { id, .. } => Some(("apply", id.clone())),
        ReviewWish::Take { id, .. } => Some(("apply", Some(id.clone()))),
        ReviewWish::Discard { id } => Some(("discard", id.clone())),
    };
    let mut record = detail.map(|(doing, id)| {
        CommandRecord::begin(
            &place.state,
            &place.config.session,
            "review",
            ground.text(),
            format!("{doing} {}", id.as_deref().unwrap_or_default()).trim_end(),
        )
    });
    let bench = Bench::open(&place.config, &place.state, ground, cancel).await?;
    bench.sweep_aside();
    let answer = Box::pin(carry_out(&bench, wish, front, cancel)).await;
    if let Some(record) = &mut record {
        record.end(match &answer {
            Ok(Reviewed {
                answer: ReviewAnswer::Applied(done),
                git,
                ..
            }) if !is_whole(done, git.as_ref()) => exit_code::LEFT_OUT,
            Ok(_) => exit_code::DONE,
            Err(error) => error.exit_code(),
        });
    }
    bench.tell_left(&front.sink);
    if let Some(lock) = lock {
        lock.release();
    }
    answer
}

/// Returns the name of the review that an id means, as [`review`] finds it.
#[boxed]
pub async fn chosen_review(
    place: &Place,
    id: Option<&str>,
    front: &Front,
) -> Result<String, Error> {
    chosen(&held(place, front).await?, id)
}

/// Returns the names of the reviews that wait.
#[boxed]
pub async fn review_names(place: &Place, front: &Front) -> Result<Vec<String>, Error> {
    let held = held(place, front).await?;
    Ok(held.iter().map(|held| held.session.to_string()).collect())
}

async fn held(place: &Place, front: &Front) -> Result<Vec<HeldReview>, Error> {
    let cancel = front.interrupt.run();
    let ground = Ground::open(place)?;
    if matches!(ground, Ground::Socket(_)) {
        return Err(Error::not_attached("`podbay review`"));
    }
    let bench = Bench::open(&place.config, &place.state, ground, cancel).await?;
    sandbox::reviews(bench.engine()?, bench.project()?, cancel)
        .await
        .map_err(Error::Sandbox)
}

/// Applies what a task that was done has changed, and says in its report what came of it. Returns
/// whether something of it waits because it runs by itself on the user's machine.
#[boxed]
pub async fn accept(
    place: &Place,
    report: &mut Report,
    with_auto_run: bool,
    front: &Front,
) -> bool {
    let Some(id) = report.review.clone() else {
        return false;
    };
    let (only, commits) = (Vec::new(), Commits::default());
    let wish = ReviewWish::Apply {
        id: Some(id.clone()),
        only,
        merge: false,
        with_auto_run,
        commits,
    };
    match review(place, wish, front).await {
        Ok(Reviewed {
            answer: ReviewAnswer::Applied(done),
            git,
            ..
        }) => {
            report.note_left_out(is_whole(&done, git.as_ref()));
            report.applied = is_in(&done) && git.as_ref().is_none_or(is_taken);
            if done.n_left == 0 && done.git.is_empty() {
                report.review = None;
            }
            if done.git.is_empty() {
                report.commits.clear();
            }
            if git.is_some() {
                report.take_git(git.as_ref());
            }
            for message in left_of(&id, &done) {
                (front.sink)(
                    Kind::Warning {
                        message: message.clone(),
                    }
                    .into(),
                );
                report.warnings.push(message);
            }
            if !report.applied {
                let (has_conflicts, is_stopped) = (
                    !done.applied.conflicts.is_empty(),
                    done.applied.stopped.is_some(),
                );
                report.fail(&Error::NotApplied {
                    id: id.clone(),
                    has_conflicts,
                    is_stopped,
                });
            }
            if report.review.is_some() {
                report.pending = waiting(place, id, front).await;
            }
            runs_by_itself(&done, git.as_ref())
        }
        Ok(_) => false,
        Err(error) => {
            report.fail(&error);
            false
        }
    }
}

/// Whether something was left that comes once the user says that it may run by itself.
pub fn runs_by_itself(done: &ReviewApplied, git: Option<&git::Ended>) -> bool {
    waits_to_be_run(&done.applied) || git.is_some_and(|git| !git.held().is_empty())
}

/// Whether nothing was left out of what was to be applied.
pub fn is_whole(done: &ReviewApplied, git: Option<&git::Ended>) -> bool {
    let applied = &done.applied;
    applied.stopped.is_none()
        && applied.conflicts.is_empty()
        && applied.refused.is_empty()
        && git.is_none_or(git::Ended::is_settled)
}

/// Says what was not applied, why, and how it would be.
fn left_of(id: &str, done: &ReviewApplied) -> Vec<String> {
    let mut left = Vec::new();
    for one in done
        .applied
        .conflicts
        .first
        .iter()
        .chain(&done.applied.refused.first)
    {
        left.push(format!("not applied: {} {}", one.path, one.reason));
    }
    if waits_to_be_run(&done.applied) {
        left.push(how_auto_run_comes(id));
    }
    left.extend(
        done.applied
            .stopped
            .iter()
            .map(|why| format!("not all is applied: {why}")),
    );
    if !done.git.is_empty() {
        let how = format!(
            "`podbay review diff {id}` shows it, `podbay review apply {id} --commits` takes it over"
        );
        left.push(format!("commits are pending: {how}"));
    }
    left
}

/// Returns what of a review is not in; `None`: nobody can tell.
async fn waiting(place: &Place, id: String, front: &Front) -> Option<PendingChanges> {
    match review(
        place,
        ReviewWish::Diff {
            words: vec![id.into()],
        },
        front,
    )
    .await
    {
        Ok(Reviewed {
            answer: ReviewAnswer::Difference(difference),
            ..
        }) => Some(difference.pending),
        _ => None,
    }
}

/// Whether something was left only because it may run on the user's machine.
pub fn waits_to_be_run(applied: &ApplyOutcome) -> bool {
    applied
        .refused
        .first
        .iter()
        .any(|left| matches!(left.reason, LeftReason::MayRun { .. }))
}

/// Says how that is applied.
pub fn how_auto_run_comes(id: &str) -> String {
    format!(
        "`podbay review apply {id} --accept-auto-run` applies what runs by itself on your machine, too"
    )
}

/// Whether all is in that is applied unasked.
fn is_in(done: &ReviewApplied) -> bool {
    let applied = &done.applied;
    let is_usual = |reason: &LeftReason| {
        // What is in a folder is as unusual as what was to take its place, which is among them.
        matches!(
            reason,
            LeftReason::MayRun { .. }
                | LeftReason::Renamed { .. }
                | LeftReason::HoldsLeft
                | LeftReason::InLeft { .. }
        )
    };
    let n_unusual = applied
        .refused
        .first
        .iter()
        .filter(|left| !is_usual(&left.reason))
        .count();
    applied.stopped.is_none() && applied.conflicts.is_empty() && n_unusual == 0
}

/// Whether all of a session's git is taken over that is unasked.
fn is_taken(ended: &git::Ended) -> bool {
    ended.is_settled() || !ended.held().is_empty()
}

async fn carry_out(
    bench: &Bench,
    wish: ReviewWish,
    front: &Front,
    cancel: &CancellationToken,
) -> Result<Reviewed, Error> {
    let engine = bench.engine()?;
    let mut taking = None;
    let auto_run = || bench.config.sandbox.auto_run.clone();
    let project = bench.project()?.path();
    let held = sandbox::reviews(engine, bench.project()?, cancel)
        .await
        .map_err(Error::Sandbox)?;
    let (name, order) = match wish {
        ReviewWish::List => return list(bench, held, front, cancel).await,
        ReviewWish::Diff { mut words } => {
            let first = words.first().and_then(|word| word.to_str());
            let id = first
                .filter(|word| held.iter().any(|held| begins(held, word)))
                .map(str::to_owned);
            if id.is_some() {
                words.remove(0);
            }
            let name = chosen(&held, id.as_deref())?;
            (
                name.clone(),
                ReviewOrder::Diff {
                    name,
                    only: paths(project, &words),
                    auto_run: auto_run(),
                },
            )
        }
        ReviewWish::Apply {
            id,
            only,
            merge,
            with_auto_run,
            commits,
        } => {
            let name = chosen(&held, id.as_deref())?;
            taking = Some(Taking {
                commits,
                is_whole: only.is_empty(),
                with_auto_run,
            });
            (
                name.clone(),
                ReviewOrder::Apply {
                    name,
                    only: paths(project, &only),
                    merge,
                    with_auto_run,
                    auto_run: auto_run(),
                    hunks: Vec::new(),
                },
            )
        }
        ReviewWish::Take { id, selection } => {
            let name = chosen(&held, Some(&id))?;
            let TurnSelection {
                only,
                hunks,
                with_auto_run,
            } = selection;
            taking = Some(Taking {
                commits: Commits::default(),
                is_whole: only.is_empty(),
                with_auto_run,
            });
            (
                name.clone(),
                ReviewOrder::Apply {
                    name,
                    only,
                    merge: false,
                    with_auto_run,
                    auto_run: auto_run(),
                    hunks,
                },
            )
        }
        ReviewWish::Discard { id } => {
            let name = chosen(&held, id.as_deref())?;
            let is_held = held.iter().any(|held| held.session.as_str() == name);
            (name.clone(), ReviewOrder::Discard { name, is_held })
        }
    };
    // Its session may be at work on it.
    let lock = Lock::take_review(&bench.state.locks(), &name).map_err(Error::Sandbox)?;
    let held = held.into_iter().find(|held| held.session.as_str() == name);
    if let Some(path) = held.as_ref().and_then(|held| held.elsewhere.as_ref()) {
        let hint = format!(
            "move the project back to {path}, where it was when the session worked on it, for as long as this takes"
        );
        return Err(Error::usage(
            format!(
                "the review {name} is of the project at {path}, and nothing of it can be found from here"
            ),
            hint,
        ));
    }
    // To forget it needs no look at what the session worked on.
    let looked_at = held
        .as_ref()
        .filter(|_| !matches!(order, ReviewOrder::Discard { .. }));
    let spec = spec(bench, front, cancel).await?;
    let mut answer = ask(bench, &spec, looked_at, order, cancel).await?;
    let mut git = None;
    if let (ReviewAnswer::Applied(done), Some(taking), Some(held)) = (&mut answer, &taking, &held)
        && taking.is_due(done)
    {
        let ended = taking.take_over(bench, &spec, held, cancel).await?;
        if ended.is_settled() {
            done.git = PendingGit::default();
        } else {
            ended.remove_taken(&mut done.git);
        }
        ended
            .told()
            .into_iter()
            .chain(ended.told_what_may_run())
            .for_each(|kind| (front.sink)(kind.into()));
        git = Some(ended);
    }
    let is_over = match &answer {
        ReviewAnswer::Discarded | ReviewAnswer::InAlready { .. } => true,
        ReviewAnswer::Applied(done) => done.n_left == 0 && done.git.is_empty(),
        _ => false,
    };
    if let Some(held) = held.filter(|_| is_over) {
        sandbox::remove_review(engine, &held, cancel)
            .await
            .map_err(Error::Sandbox)?;
    }
    lock.release();
    Ok(Reviewed { name, answer, git })
}

/// How commits are taken over with the files that are applied.
struct Taking {
    commits: Commits,
    /// Whether all files were to be applied.
    is_whole: bool,
    with_auto_run: bool,
}

impl Taking {
    /// Whether it is their turn, now that this was applied: unasked no commit comes without the
    /// files that go with it.
    fn is_due(&self, done: &ReviewApplied) -> bool {
        let is_all_in = self.is_whole && done.n_left == 0 && done.applied.stopped.is_none();
        !done.git.is_empty()
            && match self.commits {
                Commits::WithTheRest => is_all_in,
                Commits::Now => true,
                Commits::Later => false,
            }
    }

    async fn take_over(
        &self,
        bench: &Bench,
        spec: &Spec,
        held: &HeldReview,
        cancel: &CancellationToken,
    ) -> Result<git::Ended, Error> {
        let options = &bench.config.sandbox;
        let is_asked = self.with_auto_run || self.commits == Commits::Now;
        let with = (options, &bench.git_options());
        let taken = Box::pin(git::take_over(
            bench.engine()?,
            spec,
            with,
            &held.session,
            is_asked,
            cancel,
        ))
        .await;
        taken.map_err(of_keeper)
    }
}

/// Lists those that the keeper knows, and those of which it was never told: their session was
/// killed while it started.
async fn list(
    bench: &Bench,
    held: Vec<HeldReview>,
    front: &Front,
    cancel: &CancellationToken,
) -> Result<Reviewed, Error> {
    let spec = spec(bench, front, cancel).await?;
    let mut answer = ask(bench, &spec, None, ReviewOrder::List, cancel).await?;
    if let ReviewAnswer::Reviews { reviews } = &mut answer {
        for HeldReview {
            session, elsewhere, ..
        } in held
        {
            if !reviews
                .first
                .iter()
                .any(|review| review.name == session.as_str())
            {
                let (name, git) = (session.to_string(), PendingGit::default());
                reviews.add(PendingReview {
                    name,
                    words: String::new(),
                    at: 0,
                    n_changes: None,
                    git,
                    elsewhere,
                });
            }
        }
    }
    Ok(Reviewed {
        name: String::new(),
        answer,
        git: None,
    })
}

/// Returns what is known of all that waits; nothing where no keeper can say it.
pub(super) async fn all_waiting(
    bench: &Bench,
    front: &Front,
    cancel: &CancellationToken,
) -> Result<Vec<PendingReview>, Error> {
    let progress: ProgressSink = std::sync::Arc::new(|_| {});
    let image = bench
        .config
        .sandbox
        .image
        .as_deref()
        .unwrap_or(sandbox::DEFAULT_IMAGE);
    // Whoever asks what runs does not wait for an image.
    if bench
        .provision(&progress)?
        .find(image, cancel)
        .await
        .map_err(Error::Engine)?
        .is_none()
    {
        return Ok(Vec::new());
    }
    let spec = spec(bench, front, cancel).await?;
    match ask(bench, &spec, None, ReviewOrder::List, cancel).await? {
        ReviewAnswer::Reviews { reviews } => Ok(reviews.first),
        _ => Ok(Vec::new()),
    }
}

async fn spec(bench: &Bench, front: &Front, cancel: &CancellationToken) -> Result<Spec, Error> {
    let sink = std::sync::Arc::clone(&front.sink);
    let progress: ProgressSink = std::sync::Arc::new(move |step| sink(Kind::Progress(step).into()));
    bench.spec(&progress, cancel).await
}

async fn ask(
    bench: &Bench,
    spec: &Spec,
    held: Option<&HeldReview>,
    order: ReviewOrder,
    cancel: &CancellationToken,
) -> Result<ReviewAnswer, Error> {
    sandbox::review(
        bench.engine()?,
        spec,
        &bench.config.sandbox,
        held,
        order,
        cancel,
    )
    .await
    .map_err(of_keeper)
}

fn of_keeper(error: sandbox::Error) -> Error {
    match error {
        sandbox::Error::Keeper {
            source: LineError::Failed { problem, .. },
        } => Error::Review {
            problem: Told(problem),
        },
        error => Error::Sandbox(error),
    }
}

/// Returns the name of the review that is meant.
fn chosen(held: &[HeldReview], id: Option<&str>) -> Result<String, Error> {
    const HOW: &str = "`podbay review list` shows those that wait; the beginning of an id will do";
    let names = |held: &[&HeldReview]| {
        held.iter()
            .map(|held| held.session.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let meant: Vec<&HeldReview> = held
        .iter()
        .filter(|held| id.is_none_or(|id| begins(held, id)))
        .collect();
    match (meant.as_slice(), id) {
        ([one], _) => Ok(one.session.to_string()),
        // Its volumes may be gone, and what is kept of it not.
        ([], Some(id)) if id.parse::<SessionId>().is_ok() => Ok(id.to_owned()),
        ([], Some(id)) => Err(Error::usage(format!("`{id}` is no id of a review"), HOW)),
        ([], None) => Err(Error::usage(
            "no pending review",
            "`podbay run \"…\"` holds its changes back, unless they are to be live",
        )),
        (several, Some(id)) => Err(Error::usage(
            format!("`{id}` may be each of these: {}", names(several)),
            HOW,
        )),
        (several, None) => Err(Error::usage(
            format!("several reviews wait: {}", names(several)),
            HOW,
        )),
    }
}

fn begins(held: &HeldReview, id: &str) -> bool {
    !id.is_empty() && held.session.as_str().starts_with(id)
}

fn paths(project: &Path, words: &[OsString]) -> Vec<BytesPath> {
    words.iter().map(|word| in_project(project, word)).collect()
}

/// Returns a path as it is from the project's folder. One that begins elsewhere stays as it is, and
/// names nothing there.
fn in_project(project: &Path, word: &OsStr) -> BytesPath {
    let path = Path::new(word);
    if path.is_relative() {
        return word
            .to_str()
            .map_or_else(|| BytesPath::from(path), BytesPath::from_text);
    }
    // The way to the project may lead over links; what has the name itself may be one that the
    // session made.
    let real = |above: &Path| {
        Some(
            above
                .canonicalize()
                .ok()?
                .join(path.strip_prefix(above).ok()?),
        )
    };
    let real = path
        .ancestors()
        .skip(1)
        .find_map(real)
        .into_iter()
        .chain(path.canonicalize());
    let inside = std::iter::once(path.to_owned())
        .chain(real)
        .find_map(|path| Some(path.strip_prefix(project).ok()?.to_owned()));
    match inside {
        Some(inside) if inside.as_os_str().is_empty() => ".".into(),
        Some(inside) => BytesPath::from(inside.as_path()),
        None => BytesPath::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_be_given_from_the_root() {
        let place = tempfile::tempdir().expect("a folder");
        let place = place.path().canonicalize().expect("a folder");
        let project = place.join("project");
        std::fs::create_dir_all(project.join("src")).expect("made");
        std::os::unix::fs::symlink(&project, place.join("link")).expect("linked");
        std::os::unix::fs::symlink("/etc", project.join("away")).expect("linked");
        let check = |word: &OsStr, expected: &[u8]| {
            assert_eq!(in_project(&project, word).as_bytes(), expected, "{word:?}");
        };
        for (word, expected) in [
            (project.clone(), &b"."[..]),
            (place.join("link"), b"."),
            (place.join("link/src/new/file"), b"src/new/file"),
            (project.join("src/*.rs"), b"src/*.rs"),
            (project.join("away"), b"away"),
            ("/etc/passwd".into(), b"/etc/passwd"),
            ("./src".into(), b"./src"),
        ] {
            check(word.as_os_str(), expected);
        }
        check(
            std::os::unix::ffi::OsStrExt::from_bytes(b"src/\xff"),
            b"src/\xff",
        );
    }

    #[test]
    fn the_review_that_is_meant_is_found_by_the_beginning_of_its_id() {
        let held: Vec<HeldReview> = ["abc1", "abd2", "xyz3"]
            .map(|id| HeldReview::of(&id.parse().expect("an id")))
            .into_iter()
            .collect();
        let check = |held: &[HeldReview], id: Option<&str>, expected: &str| {
            let said = chosen(held, id).unwrap_or_else(|error| error.to_string());
            assert!(said.contains(expected), "{id:?}: {said}");
        };
        check(&held, Some("abc"), "abc1");
        check(&held, Some("xyz3"), "xyz3");
        check(&held, Some("ab"), "may be each of these: abc1, abd2");
        check(&held, Some("q7"), "q7");
        check(&held, Some("no id"), "no id of a review");
        check(&held, None, "several reviews wait: abc1, abd2, xyz3");
        check(&held[..1], None, "abc1");
        check(&[], None, "no pending review");
    }
}
