//! What sessions changed that waits to be accepted.

use tokio_util::sync::CancellationToken;

use super::Error;
use super::Front;
use super::Place;
use super::Report;
use super::bench::Bench;
use super::bench::Ground;
use super::error::Told;
use crate::event::Kind;
use crate::event::ProgressSink;
use crate::event::SessionId;
use crate::sandbox;
use crate::sandbox::HeldReview;
use crate::sandbox::LineError;
use crate::sandbox::Lock;
use crate::wire::BytesPath;
use crate::wire::keep::LeftReason;
use crate::wire::keep::Review;
use crate::wire::keep::ReviewAnswer;
use crate::wire::keep::ReviewApplied;
use crate::wire::keep::ReviewOrder;

/// What a person wants of reviews. An id may be the beginning of one; without one there must be only one review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewWish {
    List,
    /// The first of these may be an id, the others are paths or patterns.
    Diff {
        words: Vec<String>,
    },
    Apply {
        id: Option<String>,
        only: Vec<String>,
        /// Puts lines of both sides together where a file was changed since.
        merge: bool,
        /// Also what may run on the person's machine later.
        with_auto_run: bool,
    },
    Discard {
        id: Option<String>,
    },
}

/// Shows, brings in or discards what waits. Whoever changes files holds the project for that time.
pub async fn review(place: &Place, wish: ReviewWish, front: &Front) -> Result<(String, ReviewAnswer), Error> {
    let cancel = front.interrupt.run();
    let ground = match Ground::open(place)? {
        Ground::Socket(_) => return Err(Error::not_attached("`podbay review`")),
        project @ Ground::Project(_) => project,
    };
    let lock = if matches!(wish, ReviewWish::Apply { .. }) { Some(ground.lock(&place.state)?) } else { None };
    let bench = Bench::open(&place.config, &place.state, ground, cancel).await?;
    bench.sweep_aside();
    let answer = Box::pin(carry_out(&bench, wish, front, cancel)).await;
    bench.tell_left(&front.sink);
    if let Some(lock) = lock {
        lock.release();
    }
    answer
}

/// Brings in what a task that was done has changed, and says in its report what came of it.
pub async fn accept(place: &Place, report: &mut Report, front: &Front) {
    let Some(id) = report.review.clone() else { return };
    let wish = ReviewWish::Apply { id: Some(id.clone()), only: Vec::new(), merge: false, with_auto_run: false };
    match review(place, wish, front).await {
        Ok((_, ReviewAnswer::Applied(done))) => {
            report.applied = is_in(&done);
            if done.n_left == 0 {
                report.review = None;
            }
            for left in done.applied.conflicts.first.iter().chain(&done.applied.refused.first) {
                report.warnings.push(format!("not applied: {} {}", left.path, left.reason));
            }
            report.warnings.extend(done.applied.stopped.iter().map(|why| format!("not all is applied: {why}")));
            if !report.applied {
                report.fail(&Error::NotApplied { id });
            }
        }
        Ok(_) => {}
        Err(error) => report.fail(&error),
    }
}

/// Whether all is in that is brought in unasked.
pub fn is_in(done: &ReviewApplied) -> bool {
    let applied = &done.applied;
    let is_usual = |reason: &LeftReason| matches!(reason, LeftReason::MayRun { .. });
    let n_unusual = applied.refused.first.iter().filter(|left| !is_usual(&left.reason)).count();
    applied.stopped.is_none() && applied.conflicts.is_empty() && n_unusual == 0
}

async fn carry_out(bench: &Bench, wish: ReviewWish, front: &Front, cancel: &CancellationToken) -> Result<(String, ReviewAnswer), Error> {
    let engine = bench.engine()?;
    let auto_run = || bench.config.sandbox.auto_run.clone();
    let held = sandbox::reviews(engine, bench.project()?, cancel).await.map_err(Error::Sandbox)?;
    let (name, order) = match wish {
        ReviewWish::List => return list(bench, held, front, cancel).await,
        ReviewWish::Diff { mut words } => {
            let is_id = words.first().is_some_and(|word| held.iter().any(|held| begins(held, word)));
            let id = is_id.then(|| words.remove(0));
            let name = chosen(&held, id.as_deref())?;
            (name.clone(), ReviewOrder::Diff { name, only: paths(&words), auto_run: auto_run() })
        }
        ReviewWish::Apply { id, only, merge, with_auto_run } => {
            let name = chosen(&held, id.as_deref())?;
            (name.clone(), ReviewOrder::Apply { name, only: paths(&only), merge, with_auto_run, auto_run: auto_run() })
        }
        ReviewWish::Discard { id } => {
            let name = chosen(&held, id.as_deref())?;
            (name.clone(), ReviewOrder::Discard { name })
        }
    };
    // Its session may be at work on it.
    let lock = Lock::take_review(&bench.state.locks(), &name).map_err(Error::Sandbox)?;
    let held = held.into_iter().find(|held| held.session.as_str() == name);
    // To forget it needs no look at what the session worked on.
    let looked_at = held.as_ref().filter(|_| !matches!(order, ReviewOrder::Discard { .. }));
    let answer = ask(bench, looked_at, order, front, cancel).await?;
    let is_over = match &answer {
        ReviewAnswer::Discarded => true,
        ReviewAnswer::Applied(done) => done.n_left == 0,
        _ => false,
    };
    if let Some(held) = held.filter(|_| is_over) {
        sandbox::remove_review(engine, &held, cancel).await.map_err(Error::Sandbox)?;
    }
    lock.release();
    Ok((name, answer))
}

/// Lists those that the keeper knows, and those of which it was never told: their session was killed while it started.
async fn list(bench: &Bench, held: Vec<HeldReview>, front: &Front, cancel: &CancellationToken) -> Result<(String, ReviewAnswer), Error> {
    let mut answer = ask(bench, None, ReviewOrder::List, front, cancel).await?;
    if let ReviewAnswer::Reviews { reviews } = &mut answer {
        for HeldReview { session } in held {
            if !reviews.first.iter().any(|review| review.name == session.as_str()) {
                reviews.add(Review { name: session.to_string(), words: String::new(), at: 0, n_changes: None });
            }
        }
    }
    Ok((String::new(), answer))
}

async fn ask(
    bench: &Bench,
    held: Option<&HeldReview>,
    order: ReviewOrder,
    front: &Front,
    cancel: &CancellationToken,
) -> Result<ReviewAnswer, Error> {
    let sink = std::sync::Arc::clone(&front.sink);
    let progress: ProgressSink = std::sync::Arc::new(move |step| sink(Kind::Progress(step).into()));
    let spec = bench.spec(&progress, cancel).await?;
    let asked = sandbox::review(bench.engine()?, &spec, &bench.config.sandbox, held, order, cancel).await;
    asked.map_err(|error| match error {
        sandbox::Error::Keeper { source: LineError::Failed { problem, .. } } => Error::Review { problem: Told(problem) },
        error => Error::Sandbox(error),
    })
}

/// Returns the name of the review that is meant.
fn chosen(held: &[HeldReview], id: Option<&str>) -> Result<String, Error> {
    const HOW: &str = "`podbay review list` shows those that wait; the beginning of an id will do";
    let names = |held: &[&HeldReview]| held.iter().map(|held| held.session.as_str()).collect::<Vec<_>>().join(", ");
    let meant: Vec<&HeldReview> = held.iter().filter(|held| id.is_none_or(|id| begins(held, id))).collect();
    match (meant.as_slice(), id) {
        ([one], _) => Ok(one.session.to_string()),
        // Its volumes may be gone, and what is kept of it not.
        ([], Some(id)) if id.parse::<SessionId>().is_ok() => Ok(id.to_owned()),
        ([], Some(id)) => Err(Error::usage(format!("`{id}` is no id of a review"), HOW)),
        ([], None) => {
            Err(Error::usage("nothing waits to be reviewed", "`podbay run \"…\"` holds its changes back, unless they are to be live"))
        }
        (several, Some(id)) => Err(Error::usage(format!("`{id}` may be each of these: {}", names(several)), HOW)),
        (several, None) => Err(Error::usage(format!("several reviews wait: {}", names(several)), HOW)),
    }
}

fn begins(held: &HeldReview, id: &str) -> bool {
    !id.is_empty() && held.session.as_str().starts_with(id)
}

fn paths(words: &[String]) -> Vec<BytesPath> {
    words.iter().map(|word| BytesPath::from_text(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_review_that_is_meant_is_found_by_the_beginning_of_its_id() {
        let held: Vec<HeldReview> =
            ["abc1", "abd2", "xyz3"].map(|id| HeldReview { session: id.parse().expect("an id") }).into_iter().collect();
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
        check(&[], None, "nothing waits");
    }
}
