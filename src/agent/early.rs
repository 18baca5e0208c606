//! Calls that begin while the model still writes its answer.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use podbay_event::ToolCall;
use podbay_llm::ReadyCall;
use podbay_tools::EarlyCall;
use podbay_tools::Pipeline;

/// Begins the calls of one answer that need not wait for its end: those that only read, up to the
/// first that may change something, since what is read behind that must be what it left.
pub(super) struct Starter {
    pipeline: Arc<Pipeline>,
    places: Arc<Semaphore>,
    cancel: CancellationToken,
    begun: Vec<EarlyCall>,
    /// Something came that may change something.
    is_over: bool,
}

impl Starter {
    /// The calls end with `cancel`; not more run at once than there are `places`.
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

    /// Takes the next call of the answer.
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

    /// Forgets the calls so far, none of which was begun: the answer is asked for again.
    pub(super) fn anew(&mut self) {
        self.is_over = false;
    }

    /// Returns those that the answer holds byte for byte, and takes the others back.
    pub(super) async fn end(self, calls: &[ToolCall]) -> Vec<EarlyCall> {
        let (meant, others) = self
            .begun
            .into_iter()
            .partition(|early| calls.contains(early.call()));
        take_back(others).await;
        meant
    }
}

/// Ends calls that are not to be carried out.
pub(super) async fn take_back(begun: Vec<EarlyCall>) {
    futures::future::join_all(begun.into_iter().map(EarlyCall::take_back)).await;
}
