//! Calls that are begun while the model still writes. They only read; what they say is held back
//! until the answer that holds them is recorded, and of one that is taken back nothing is ever
//! said.

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
use super::catalogue::Understood;
use podbay_event::Event;
use podbay_event::Moment;
use podbay_event::Sink;
use podbay_event::ToolCall;
use podbay_policy::Verdict;

tokio::task_local! {
    /// The early call whose future is polled.
    static HELD: Arc<Held>;
}

/// A call that was begun before its answer was whole. Dropped, it ends at once.
pub struct Early {
    call: ToolCall,
    held: Arc<Held>,
    cancel: CancellationToken,
    sink: Sink,
    work: AbortOnDropHandle<Option<Result<Finished, PipelineError>>>,
}

/// How far an early call is.
#[derive(Default)]
struct Held {
    state: Mutex<State>,
    /// Nothing of it runs any more.
    done: CancellationToken,
    /// The answer that holds it is recorded.
    meant: CancellationToken,
}

#[derive(Default)]
struct State {
    /// What it said before it was meant.
    events: Vec<Event>,
    is_meant: bool,
    /// Its place among those that run at once.
    place: Option<OwnedSemaphorePermit>,
}

impl Pipeline {
    /// Begins a call before its answer is whole, as soon as one of the `places` is free.
    ///
    /// Returns `None` where it is not to be: it may change something, it is not allowed without a
    /// question, or a hook has to be asked.
    pub fn begin_early(
        self: &Arc<Self>,
        call: &ToolCall,
        places: &Arc<Semaphore>,
        cancel: CancellationToken,
    ) -> Option<Early> {
        if !self.may_begin_early(call) {
            return None;
        }
        let held = Arc::<Held>::default();
        let work = {
            let (pipeline, places) = (Arc::clone(self), Arc::clone(places));
            let (call, held, cancel) = (call.clone(), Arc::clone(&held), cancel.clone());
            async move {
                let place = places.acquire_owned().await.ok()?;
                if cancel.is_cancelled() {
                    return None;
                }
                held.state().place = Some(place);
                let result = HELD
                    .scope(Arc::clone(&held), pipeline.run(&call, &cancel))
                    .await;
                held.end();
                Some(result)
            }
        };
        let work = AbortOnDropHandle::new(tokio::spawn(work));
        Some(Early {
            call: call.clone(),
            held,
            cancel,
            sink: Arc::clone(&self.sink),
            work,
        })
    }

    fn may_begin_early(&self, call: &ToolCall) -> bool {
        let Ok(Understood { action, .. }) = self.catalogue.parse(&call.name, &call.arguments)
        else {
            return false;
        };
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

impl Early {
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// Waits for what came of it, now that the answer that holds it is recorded; what it said until
    /// now goes out first.
    ///
    /// Returns `None` where it did not come to run.
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

    /// Ends it, because no answer holds it, and waits for that. Nothing is said of it.
    #[boxed]
    pub async fn take_back(mut self) {
        self.cancel.cancel();
        tokio::select! {
            _ended = &mut self.work => {}
            () = self.held.done.cancelled() => {}
        }
    }
}

impl Held {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("nothing panics while it holds this lock")
    }

    /// Keeps an event until the call is meant; then it goes on.
    fn keep(&self, event: Event, sink: &Sink) {
        let mut state = self.state();
        if state.is_meant {
            drop(state);
            sink(event);
        } else {
            state.events.push(event);
        }
    }

    fn release(&self, sink: &Sink) {
        let mut state = self.state();
        // What is said meanwhile waits, so that the order stays.
        for event in std::mem::take(&mut state.events) {
            sink(event);
        }
        state.is_meant = true;
        self.meant.cancel();
    }

    fn end(&self) {
        self.state().place = None;
        self.done.cancel();
    }
}

/// Returns a sink that holds back what an early call says.
pub(super) fn holding(sink: Sink) -> Sink {
    Arc::new(move |event| match HELD.try_with(Arc::clone) {
        Ok(held) => held.keep(event, &sink),
        Err(_) => sink(event),
    })
}

/// Waits until the call under way is meant, where it was begun early, so that one that is taken
/// back leaves nothing behind; returns how long.
pub(super) async fn meant() -> Duration {
    let Ok(held) = HELD.try_with(Arc::clone) else {
        return Duration::ZERO;
    };
    let since = Instant::now();
    held.end();
    held.meant.cancelled().await;
    since.elapsed()
}
