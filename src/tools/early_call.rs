//! Read-only calls that start while the model is still writing its answer. Their events are held
//! until the answer is recorded; a call that the final answer does not contain leaves no trace.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use async_recursion::async_recursion as boxed;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::Finished;
use super::Pipeline;
use super::PipelineError;
use super::catalogue::ParsedCall;
use podbay_event::Event;
use podbay_event::Moment;
use podbay_event::Sink;
use podbay_event::ToolCall;
use podbay_policy::Verdict;

tokio::task_local! {
    /// The early call whose future is being polled.
    static CURRENT: Arc<EarlyState>;
}

/// A call that started before its answer was complete. Dropping it cancels it.
pub struct EarlyCall {
    call: ToolCall,
    held: Arc<EarlyState>,
    cancel: CancellationToken,
    sink: Sink,
    work: AbortOnDropHandle<Option<Result<Finished, PipelineError>>>,
}

/// The state shared between an early call and its task.
#[derive(Default)]
struct EarlyState {
    state: Mutex<Confirmation>,
    /// The task has ended.
    done: CancellationToken,
    /// The answer with this call is recorded.
    confirmed: CancellationToken,
}

#[derive(Default)]
struct Confirmation {
    /// Events that are held until the call is confirmed.
    events: Vec<Event>,
    is_confirmed: bool,
    /// Its permit among the calls that run at once.
    place: Option<OwnedSemaphorePermit>,
}

impl Pipeline {
    /// Starts a call before its answer is complete, as soon as one of the `places` is free.
    ///
    /// Returns `None` for a call that may change something, that is not allowed without a question,
    /// or that has hooks.
    pub fn begin_early(
        self: &Arc<Self>,
        call: &ToolCall,
        places: &Arc<Semaphore>,
        cancel: CancellationToken,
    ) -> Option<EarlyCall> {
        if !self.may_begin_early(call) {
            return None;
        }
        let held = Arc::<EarlyState>::default();
        let work = {
            let (pipeline, places) = (Arc::clone(self), Arc::clone(places));
            let (call, held, cancel) = (call.clone(), Arc::clone(&held), cancel.clone());
            async move {
                let place = places.acquire_owned().await.ok()?;
                if cancel.is_cancelled() {
                    return None;
                }
                held.state().place = Some(place);
                let result = CURRENT
                    .scope(Arc::clone(&held), pipeline.run(&call, &cancel))
                    .await;
                held.end();
                Some(result)
            }
        };
        let work = AbortOnDropHandle::new(tokio::spawn(work));
        Some(EarlyCall {
            call: call.clone(),
            held,
            cancel,
            sink: Arc::clone(&self.sink),
            work,
        })
    }

    fn may_begin_early(&self, call: &ToolCall) -> bool {
        let Ok(ParsedCall { action, .. }) = self.catalogue.parse(&call.name, &call.arguments)
        else {
            return false;
        };
        // Agents wait until the answer that starts them is complete.
        if !action.runs_beside_others() || !self.hooks.of(Moment::PreToolUse).is_empty() {
            return false;
        }
        let verdict = self
            .policy
            .lock()
            .expect("nothing panics while it holds this lock")
            .judge(action);
        matches!(verdict, Verdict::Allow { .. })
    }
}

impl EarlyCall {
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// Confirms the call, now that its answer is recorded: sends the held events, then waits for
    /// the result.
    ///
    /// Returns `None` if it never ran.
    #[boxed]
    pub async fn result(
        mut self,
        cancel: &CancellationToken,
    ) -> Option<Result<Finished, PipelineError>> {
        self.held.release(&self.sink);
        let ended = tokio::select! {
            biased;
            ended = &mut self.work => ended,
            () = cancel.cancelled() => {
                self.cancel.cancel();
                (&mut self.work).await
            }
        };
        ended.ok().flatten()
    }

    /// Cancels the call, which the final answer does not contain, and waits for its end. Its events
    /// are dropped.
    #[boxed]
    pub async fn take_back(mut self) {
        self.cancel.cancel();
        tokio::select! {
            _ended = &mut self.work => {}
            () = self.held.done.cancelled() => {}
        }
    }
}

impl EarlyState {
    fn state(&self) -> std::sync::MutexGuard<'_, Confirmation> {
        self.state
            .lock()
            .expect("nothing panics while it holds this lock")
    }

    /// Holds an event until the call is confirmed; later events pass at once.
    fn keep(&self, event: Event, sink: &Sink) {
        let mut state = self.state();
        if state.is_confirmed {
            drop(state);
            sink(event);
        } else {
            state.events.push(event);
        }
    }

    fn release(&self, sink: &Sink) {
        let mut state = self.state();
        // New events wait on the lock, so that the order stays.
        for event in std::mem::take(&mut state.events) {
            sink(event);
        }
        state.is_confirmed = true;
        self.confirmed.cancel();
    }

    fn end(&self) {
        self.state().place = None;
        self.done.cancel();
    }
}

/// Returns a sink that holds the events of an early call.
pub(super) fn holding(sink: Sink) -> Sink {
    Arc::new(move |event| match CURRENT.try_with(Arc::clone) {
        Ok(held) => held.keep(event, &sink),
        Err(_) => sink(event),
    })
}

/// Waits until the running call is confirmed, if it started early; returns how long that took.
pub(super) async fn confirmed() -> Duration {
    let Ok(held) = CURRENT.try_with(Arc::clone) else {
        return Duration::ZERO;
    };
    let since = Instant::now();
    held.end();
    held.confirmed.cancelled().await;
    since.elapsed()
}
