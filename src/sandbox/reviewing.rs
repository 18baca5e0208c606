//! Begins and ends sessions whose changes are pending review.

use std::sync::Arc;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::HeldReview;
use super::Sandbox;
use super::keeper::LineError;
use super::kept::Way;
use super::lost::must_go;
use super::review::remove_review;
use super::turns::with_causes;
use podbay_event::SessionId;
use podbay_wire::BytesPath;
use podbay_wire::keep::PendingChanges;
use podbay_wire::keep::ReviewAnswer;
use podbay_wire::keep::ReviewBegan;
use podbay_wire::keep::ReviewOrder;
use podbay_wire::keep::UncapturedReason;

impl Sandbox {
    /// Records the project's state in the background; only calls that may change something wait for
    /// it. If it fails, a warning is sent and no such call is executed. `is_new` says that no
    /// session has worked on this review before.
    pub fn begin_review(&self, words: &str, is_new: bool, cancel: &CancellationToken) {
        let Some(order) = self.begin_order(words) else {
            return;
        };
        let beginning = self.inner.base.begin(is_new);
        let (sandbox, cancel) = (self.clone(), cancel.clone());
        tokio::spawn(async move {
            // The copy of the turn before may be just being replaced.
            drop(sandbox.inner.state.lock().await);
            let kept = sandbox.tell_review(order, &cancel).await;
            match &kept {
                Ok(ReviewAnswer::Began(began)) => {
                    told(began)
                        .into_iter()
                        .chain(told_hidden(began))
                        .for_each(|message| sandbox.say_once(message));
                }
                Err(error) if !cancel.is_cancelled() => sandbox.say_once(not_kept(error)),
                _ => {}
            }
            beginning.end(kept.map(|_| ()).map_err(Arc::new));
        });
    }

    /// Returns the order that records the project's state; `None` if there is no review.
    pub(super) fn begin_order(&self, words: &str) -> Option<ReviewOrder> {
        let (name, Way::Engine(made)) = (self.reviewed()?, &self.inner.way) else {
            return None;
        };
        let is_copied = made
            .spec
            .review
            .as_ref()
            .is_some_and(|held| !held.is_laid_over());
        Some(ReviewOrder::Begin {
            name: name.to_string(),
            words: words.to_owned(),
            is_copied,
            place: BytesPath::from(made.spec.project.path()),
            by_turn: made.spec.is_by_turn(),
        })
    }

    /// Ends the sandbox and finds its changes; `None` if there is no review. A review without
    /// changes is removed.
    ///
    /// On cancellation the changes are found later.
    #[boxed]
    pub async fn end_review(&self) -> Option<Result<PendingChanges, Error>> {
        if self.is_by_turn() {
            return None;
        }
        let session = self.reviewed()?;
        let cancel = self.inner.haste.get_or_init(CancellationToken::new);
        self.end_processes().await;
        // It must have begun before it can end.
        let _ = self.inner.base.is_kept(cancel).await;
        let order = ReviewOrder::End {
            name: session.to_string(),
            auto_run: self.inner.options.auto_run.clone(),
        };
        let ended = self.tell_review(order, cancel).await;
        let is_in_vain = ended.is_err() && self.inner.base.is_in_vain();
        if is_in_vain || matches!(&ended, Ok(ReviewAnswer::Ended(pending)) if pending.is_empty()) {
            self.remove_empty(session, cancel).await;
        } else {
            self.remove_ending().await;
        }
        match ended {
            Ok(ReviewAnswer::Ended(pending)) => Some(Ok(pending)),
            Ok(_) => Some(Ok(PendingChanges::default())),
            Err(error) if is_in_vain => {
                tracing::debug!(%error, "a review that never began is removed");
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// Ends a sandbox that was not used, and removes what was created for it.
    #[boxed]
    pub async fn give_up(&self) {
        if self.is_by_turn() {
            self.end_by_turn().await;
        } else if let Some(Err(error)) = self.end_review().await {
            tracing::debug!(%error, "a review that was begun is left");
        }
        // Nothing has run there, so the session's git is removed too.
        self.close_session().await;
    }

    /// Returns whether changes are pending until the user accepts them.
    pub fn is_reviewed(&self) -> bool {
        self.reviewed().is_some() && !self.is_by_turn()
    }

    pub(super) fn reviewed(&self) -> Option<SessionId> {
        match &self.inner.way {
            Way::Engine(made) => made.spec.review.as_ref().map(|held| held.session().clone()),
            Way::Attached(_) => None,
        }
    }

    pub(super) async fn tell_review(
        &self,
        order: ReviewOrder,
        cancel: &CancellationToken,
    ) -> Result<ReviewAnswer, Error> {
        let Way::Engine(made) = &self.inner.way else {
            return Err(Error::Cancelled);
        };
        let within = self.inner.options.start_timeout.duration();
        let spec = &made.newest();
        let ask = |order| {
            Box::pin(
                made.covering
                    .review(&made.engine, spec, &made.labels, within, order, cancel),
            )
        };
        let answer = match ask(order.clone()).await {
            // Whatever the ended keeper did, another one repeats.
            Err(Error::Keeper {
                source: source @ (LineError::Ended { .. } | LineError::Broken(_)),
            }) => {
                tracing::warn!(error = %source, "the keeper ended, and another one takes its place");
                ask(order).await
            }
            other => other,
        };
        for message in made.covering.news().await {
            self.say_once(message);
        }
        answer
    }

    async fn remove_empty(&self, session: SessionId, cancel: &CancellationToken) {
        let Way::Engine(made) = &self.inner.way else {
            return;
        };
        tokio::join!(self.remove_ending(), made.covering.discard(&made.engine));
        if let Err(error) = remove_review(&made.engine, &HeldReview::of(&session), cancel).await {
            tracing::debug!(%error, "the volumes of a review without changes are left");
        }
    }

    /// Ends the sandbox for good, and with it all processes of the session; the keeper stays. Where
    /// nothing has run, nobody has to wait for that: it is removed with the keeper.
    #[boxed]
    pub async fn end_processes(&self) {
        self.inner.searching.cancel();
        if self.inner.has_run() {
            self.end_background().await;
        }
        {
            let mut state = self.inner.state.lock().await;
            state.end();
            let Some(running) = state.running.take() else {
                return;
            };
            let must_go = must_go(&running);
            running.link.close();
            state.ending = must_go.then_some(running);
        }
        if self.inner.has_run() {
            self.remove_ending().await;
        }
    }

    /// Removes the sandbox that was ended.
    pub(super) async fn remove_ending(&self) {
        let ending = self.inner.state.lock().await.ending.take();
        if let Some(running) = ending {
            self.inner.remove(&running).await;
        }
    }
}

/// Describes what the user should know about a review that has begun.
fn told(began: &ReviewBegan) -> Option<String> {
    if began.passed_over.is_empty() {
        return None;
    }
    let first: Vec<String> = began
        .passed_over
        .first
        .iter()
        .take(3)
        .map(|over| format!("{} ({})", over.path, over.why))
        .collect();
    let n_more = began.passed_over.n.saturating_sub(first.len() as u64);
    let more = if n_more > 0 {
        format!(" and {n_more} more")
    } else {
        String::new()
    };
    let is_full = began
        .passed_over
        .first
        .iter()
        .any(|over| over.why == UncapturedReason::StoreFull);
    let room = if is_full {
        "; there is more room when other reviews are applied or discarded (`podbay review list`)"
    } else {
        ""
    };
    Some(format!(
        "what the run changes in these is not shown line by line, since they are not kept: {}{more}{room}",
        first.join(", ")
    ))
}

/// Names files of which the session has its own version, so that the user's is not visible.
fn told_hidden(began: &ReviewBegan) -> Option<String> {
    if began.hidden_changes.is_empty() {
        return None;
    }
    let first: Vec<String> = began
        .hidden_changes
        .first
        .iter()
        .take(3)
        .map(ToString::to_string)
        .collect();
    let n_more = began.hidden_changes.n.saturating_sub(first.len() as u64);
    let more = if n_more > 0 {
        format!(" and {n_more} more")
    } else {
        String::new()
    };
    Some(format!(
        "both sides changed {}{more}: the session keeps its own version, which waits, and yours stays",
        first.join(", ")
    ))
}

fn not_kept(error: &Error) -> String {
    format!(
        "nothing can be changed in this run, since how the project is could not be kept before: {}",
        with_causes(error)
    )
}
