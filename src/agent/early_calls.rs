//! Calls that start while the model is still writing its answer.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use podbay_event::ToolCall;
use podbay_llm::ReadyCall;
use podbay_tools::EarlyCall;
use podbay_tools::Pipeline;

/// Starts the calls of one answer that need not wait for its end: read-only ones, up to the first
/// that may change something, since later reads must see its effect.
pub(super) struct EarlyCalls {
    pipeline: Arc<Pipeline>,
    places: Arc<Semaphore>,
    cancel: CancellationToken,
    begun: Vec<EarlyCall>,
    /// A call that may change something has come.
    is_over: bool,
}

impl EarlyCalls {
    /// The calls are cancelled by `cancel`; at most as many run at once as `places` has permits.
    pub(super) fn new(
        pipeline: &Arc<Pipeline>,
        places: &Arc<Semaphore>,
        cancel: &CancellationToken,
    ) -> Self {
        let (pipeline, places) = (Arc::clone(pipeline), Arc::clone(places));
        Self {
            pipeline,
            places,
            cancel: cancel.clone(),
            begun: Vec::new(),
            is_over: false,
        }
    }

    /// Processes the next call of the answer.
    pub(super) fn take(&mut self, ready: &ReadyCall) {
        self.is_over |= !self.pipeline.runs_beside_others(ready.call());
        if self.is_over {
            return;
        }
        if let Some(early) =
            self.pipeline
                .begin_early(ready.call(), &self.places, self.cancel.child_token())
        {
            ready.begin();
            self.begun.push(early);
        }
    }

    /// Forgets the calls so far, none of which was started: the answer is requested again.
    pub(super) fn anew(&mut self) {
        self.is_over = false;
    }

    /// Returns those that the answer contains byte for byte, and cancels the others.
    pub(super) async fn end(self, calls: &[ToolCall]) -> Vec<EarlyCall> {
        let (meant, others) = self
            .begun
            .into_iter()
            .partition(|early| calls.contains(early.call()));
        cancel_all(others).await;
        meant
    }
}

/// Cancels calls whose results are not needed.
pub(super) async fn cancel_all(begun: Vec<EarlyCall>) {
    futures::future::join_all(begun.into_iter().map(EarlyCall::take_back)).await;
}
