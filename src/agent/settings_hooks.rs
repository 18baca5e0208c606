//! Runs the hooks from the user's settings for events that only the loop knows.

use std::time::Duration;
use std::time::Instant;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Agent;
use super::Failure;
use super::Interrupt;
use super::Outcome;
use podbay_event::Kind;
use podbay_event::LimitKind;
use podbay_event::RunStatus;
use podbay_tools::HookStop;

/// What the hooks decided about a task before its start.
pub(super) enum TaskStart {
    /// It begins, and the model is told these texts as well.
    GoOn(Vec<String>),
    /// It does not begin.
    Not(RunStatus, Option<LimitKind>, Option<Failure>),
}

/// Runs work of a task that may take `seconds` since `begun`, where 0 is no limit; returns the
/// result, and whether the time ran out so that `cancel` was triggered.
pub(super) async fn in_time<T>(
    seconds: u64,
    begun: Instant,
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> (T, bool) {
    let late = async {
        match seconds {
            0 => std::future::pending().await,
            seconds => {
                tokio::time::sleep(Duration::from_secs(seconds).saturating_sub(begun.elapsed()))
                    .await;
            }
        }
    };
    let mut work = std::pin::pin!(work);
    tokio::select! {
        biased;
        () = late => {
            cancel.cancel();
            (work.await, true)
        }
        done = &mut work => (done, false),
    }
}

impl Agent {
    /// Runs the session-start hooks, once, and those for the user's message. A blocked message
    /// reaches neither the model nor the log.
    pub(super) async fn before_task(
        &mut self,
        text: Option<&str>,
        begun: Instant,
        interrupt: &Interrupt,
    ) -> TaskStart {
        let cancel = interrupt.step();
        let seconds = self.options.timeout.get();
        let (outcome, is_late) =
            in_time(seconds, begun, &cancel, self.ask_hooks(text, &cancel)).await;
        interrupt.idle();
        match outcome {
            Err(_) if is_late => {
                self.emit(Kind::LimitReached {
                    limit: LimitKind::Time,
                    at_end: true,
                });
                TaskStart::Not(RunStatus::Limit, Some(LimitKind::Time), None)
            }
            Ok(notes) => TaskStart::GoOn(notes),
            Err(HookStop::Blocked(reason)) => {
                self.emit(Kind::Warning {
                    message: format!(
                        "a hook blocked the message, and the model has not seen it: {reason}"
                    ),
                });
                TaskStart::Not(RunStatus::Blocked, None, None)
            }
            Err(HookStop::Cancelled) => {
                self.emit(Kind::Interrupted);
                TaskStart::Not(RunStatus::Interrupted, None, None)
            }
            Err(HookStop::Sandbox(error)) => {
                TaskStart::Not(RunStatus::Failed, None, Some(Failure::Sandbox(error)))
            }
        }
    }

    async fn ask_hooks(
        &mut self,
        text: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, HookStop> {
        if !self.has_begun {
            self.greeting = self.pipeline.session_begins(cancel).await?;
            self.has_begun = true;
        }
        let answer = match text {
            Some(text) => self.pipeline.prompted(text, cancel).await?,
            None => String::new(),
        };
        let notes = [std::mem::take(&mut self.greeting), answer];
        let told = |words: &String| format!("[a command of the user's settings says]\n{words}");
        Ok(notes
            .iter()
            .filter(|words| !words.is_empty())
            .map(told)
            .collect())
    }

    /// Runs the task-end hooks. Nothing depends on their result.
    pub(super) async fn after_task(&self, outcome: &Outcome, interrupt: &Interrupt) {
        let status = match outcome.status {
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Limit => "limit",
            RunStatus::Blocked => "blocked",
            RunStatus::Interrupted => "interrupted",
        };
        if let Err(held) = self.pipeline.stopped(status, interrupt.run()).await {
            tracing::debug!(?held, "a hook at the end of a task failed");
        }
    }

    /// Runs the hooks before a summary; returns whether it may proceed.
    pub(super) async fn before_summary(&self, cancel: &CancellationToken) -> bool {
        if let Err(held) = self.pipeline.compacts(cancel).await {
            tracing::debug!(?held, "a hook before a summary failed");
        }
        !cancel.is_cancelled()
    }

    /// Waits for hooks that run in the background, before the sandbox is removed.
    #[boxed]
    pub async fn settle(&self, cancel: &CancellationToken) {
        self.pipeline.settle(cancel).await;
    }
}
