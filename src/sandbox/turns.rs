//! Turns: how the project was before and after each, kept so that it can be taken back.
//!
//! Keeping it takes a moment, the first time more than one. So a turn begins beside whatever else is to be done, such as the model's
//! thinking, and only a call that may change something waits for it.

use std::sync::Mutex;
use std::sync::PoisonError;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Options;
use super::Sandbox;
use super::Spec;
use super::keeper::Keeper;
use super::keeper::Purpose;
use super::kept::Way;
use crate::engine::Engine;
use crate::engine::Labels;
use crate::event::Kind;
use crate::wire::Call;
use crate::wire::GitQuery;
use crate::wire::keep::TurnAnswer;
use crate::wire::keep::TurnEnded;
use crate::wire::keep::TurnOrder;
use crate::wire::keep::UndoAnswer;
use crate::wire::keep::UndoOrder;

/// Whether a turn is under way, and since when it may change something.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// Becomes true when how the project was is kept, or cannot be.
    begun: Mutex<Option<watch::Receiver<bool>>>,
}

impl Turn {
    fn begin(&self) -> watch::Sender<bool> {
        let (sender, receiver) = watch::channel(false);
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(receiver);
        sender
    }

    /// Waits until the turn under way, if one is, may change something.
    pub(super) async fn has_begun(&self, cancel: &CancellationToken) {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(mut begun) = begun else { return };
        tokio::select! {
            // Whoever was to say it may be gone.
            _ = begun.wait_for(|is_kept| *is_kept) => {}
            () = cancel.cancelled() => {}
        }
    }

    fn end(&self) -> bool {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }
}

impl Sandbox {
    /// Begins a turn: keeps how the project is, beside whatever comes next. Where that fails it is said, and the turn cannot be taken back.
    pub fn begin_turn(&self, session: &str, n_turn: u64, words: &str) {
        if matches!(self.inner.way, Way::Attached(_)) {
            return;
        }
        let begun = self.inner.turn.begin();
        let sandbox = self.clone();
        let order = TurnOrder::Begin { session: session.to_owned(), n_turn, words: words.to_owned() };
        tokio::spawn(async move {
            match sandbox.tell_turn(order).await {
                Ok(TurnAnswer::Began(began)) => {
                    if !began.passed_over.is_empty() {
                        let first: Vec<String> =
                            began.passed_over.first.iter().take(3).map(|over| format!("{} ({})", over.path, over.why)).collect();
                        let n_more = began.passed_over.n.saturating_sub(first.len() as u64);
                        let more = if n_more > 0 { format!(" and {n_more} more") } else { String::new() };
                        sandbox.say_once(format!("`podbay undo` cannot bring back what is not kept: {}{more}", first.join(", ")));
                    }
                }
                Ok(TurnAnswer::Ended(_)) => {}
                Err(error) => sandbox.say_once(not_kept(&error)),
            }
            let _ = begun.send(true);
        });
    }

    /// Ends the turn that was begun and returns what changed in it; `None`: none was begun, or it could not be kept.
    pub async fn end_turn(&self) -> Option<TurnEnded> {
        self.inner.turn.has_begun(&CancellationToken::new()).await;
        if !self.inner.turn.end() {
            return None;
        }
        match self.tell_turn(TurnOrder::End).await {
            Ok(TurnAnswer::Ended(ended)) => Some(ended),
            Ok(TurnAnswer::Began(_)) => None,
            Err(error) => {
                tracing::debug!(%error, "the turn was not ended");
                None
            }
        }
    }

    async fn tell_turn(&self, order: TurnOrder) -> Result<TurnAnswer, Error> {
        let Way::Engine(made) = &self.inner.way else { return Err(Error::Cancelled) };
        let within = self.inner.options.start_timeout.duration();
        let cancel = CancellationToken::new();
        Box::pin(made.covering.turn(&made.engine, &made.spec, &made.labels, within, order, &cancel)).await
    }

    /// Shows or takes back what turns of this project changed, while the session goes on.
    pub async fn undo(&self, order: UndoOrder, cancel: &CancellationToken) -> Result<UndoAnswer, Error> {
        let Way::Engine(made) = &self.inner.way else {
            let key = "sandbox.backend";
            return Err(Error::Setting { key, problem: "a sandbox that somebody else keeps has no undo".to_owned() });
        };
        Box::pin(undo(&made.engine, &made.spec, &self.inner.options, made.labels.clone(), order, cancel)).await
    }

    fn say_once(&self, message: String) {
        (self.inner.sink)(Kind::Warning { message }.into());
    }
}

/// Shows or takes back what turns of a project changed, by a keeper of its own.
pub async fn undo(
    engine: &Engine,
    spec: &Spec,
    options: &Options,
    labels: Labels,
    order: UndoOrder,
    cancel: &CancellationToken,
) -> Result<UndoAnswer, Error> {
    let purpose = if order.writes() { Purpose::Restore } else { Purpose::Keep };
    let mut keeper = Keeper::start(engine, spec, &labels, purpose, options.start_timeout.duration(), cancel).await?;
    let answer = keeper.undo(order, cancel).await;
    match &answer {
        Ok(_) => keeper.close(),
        Err(_) => keeper.discard(engine).await,
    }
    answer
}

fn not_kept(error: &Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source()).map(|cause| format!(": {cause}"));
    format!("what is changed now cannot be taken back by `podbay undo`: {error}{}", causes.collect::<String>())
}

/// Returns whether a call may change the project. What only looks need not wait.
pub(super) fn may_change(call: &Call) -> bool {
    match call {
        Call::ReadFile(_) | Call::Tree(_) | Call::ListDirectory(_) | Call::Glob(_) | Call::Grep(_) | Call::Env(_) | Call::Cd(_) => false,
        Call::Git(git) => match git.query {
            GitQuery::Status | GitQuery::Diff { .. } | GitQuery::Log { .. } => false,
        },
        _ => true,
    }
}
