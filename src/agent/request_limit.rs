//! The limit on requests, where a user is there to let a task continue beyond it.

use std::sync::Arc;
use std::time::Instant;

use super::Agent;
use super::Interrupt;
use super::Options;
use super::task::Task;
use podbay_tools::Asker;

/// What the user wants at the limit.
pub(super) enum AtLimit {
    /// It is not reached, or the task may continue.
    GoOn,
    Stop,
    /// The turn was interrupted while the question stood.
    Interrupted,
}

impl Agent {
    /// Asks at the limit on requests whether the task may continue, instead of ending it there. No
    /// request is kept back for a last answer then, and the model is not told to come to an end.
    pub fn ask_at_request_limit(&mut self, asker: Arc<dyn Asker>) {
        self.asks_for_more = Some(asker);
    }

    /// Returns the limits that end a task without a question.
    pub(super) fn own_limits(&self) -> Options {
        let mut limits = self.options.clone();
        if self.limit_asker().is_some() {
            limits.max_turns = 0;
        }
        limits
    }

    /// Asks the user each time that as many requests were used as the limit says. The time until the
    /// answer does not count.
    pub(super) async fn at_request_limit(&self, task: &mut Task, interrupt: &Interrupt) -> AtLimit {
        let Some(asker) = self.limit_asker() else {
            return AtLimit::GoOn;
        };
        let most = self.options.max_turns;
        let n_requests = self.account.others().and(&task.spent).turns;
        if n_requests < most.saturating_mul(task.n_continued.saturating_add(1)) {
            return AtLimit::GoOn;
        }
        let question = format!("{n_requests} requests used. Continue?");
        let asked = Instant::now();
        let step = interrupt.step();
        let may_continue = tokio::select! {
            () = step.cancelled() => return AtLimit::Interrupted,
            may_continue = asker.may_continue(&question) => may_continue,
        };
        task.begun += asked.elapsed();
        if !may_continue {
            return AtLimit::Stop;
        }
        // Agents may have used more than one more share.
        task.n_continued = n_requests / most.max(1);
        AtLimit::GoOn
    }

    fn limit_asker(&self) -> Option<&dyn Asker> {
        let asker = self.asks_for_more.as_deref()?;
        (asker.can_answer() && self.options.max_turns > 1).then_some(asker)
    }
}
