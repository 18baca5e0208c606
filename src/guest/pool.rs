//! A few threads, made at the start, for what must block.
//!
//! A runtime's own pool makes threads when there is work. In a box whose process table a command has filled that fails, just when the
//! guest has to keep working.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use tokio::sync::oneshot;

/// File tools at work at once.
const N_WORKERS: usize = 4;

/// Touched pages count, not reserved ones; the regex compiler and tree walks need some.
const STACK_BYTES: usize = 1024 * 1024;

type Job = Box<dyn FnOnce() + Send>;

/// The threads end when the pool is dropped and they have done what was brought to it.
#[derive(Debug)]
pub(super) struct Pool {
    queue: Arc<Queue>,
}

/// Each piece of work wakes one thread and no other, where there are few processors a second one would take the first one's; and of those that
/// wait the one that worked last, which the processor still knows.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    waiting: Vec<Arc<Condvar>>,
    is_closed: bool,
}

impl Pool {
    pub(super) fn start() -> io::Result<Self> {
        let pool = Self { queue: Arc::default() };
        for _ in 0..N_WORKERS {
            let queue = Arc::clone(&pool.queue);
            let work = move || {
                let woken = Arc::default();
                while let Some(job) = queue.next(&woken) {
                    job();
                }
            };
            std::thread::Builder::new().name("podbay-worker".to_owned()).stack_size(STACK_BYTES).spawn(work)?;
        }
        Ok(pool)
    }

    /// Runs `job` on one of the threads; `None`: it panicked. The queue is bounded by the calls under way on the stream.
    pub(super) async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        let job = Box::new(move || {
            if let Ok(value) = catch_unwind(AssertUnwindSafe(job)) {
                let _ = sender.send(value);
            }
        });
        self.queue.push(job);
        receiver.await.ok()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.is_closed = true;
        state.waiting.drain(..).for_each(|woken| woken.notify_one());
    }
}

impl Queue {
    fn push(&self, job: Job) {
        let mut state = self.lock();
        state.jobs.push_back(job);
        if let Some(woken) = state.waiting.pop() {
            woken.notify_one();
        }
    }

    /// Waits for a piece of work, and is woken by its own `woken`; `None`: there is none and none will come.
    fn next(&self, woken: &Arc<Condvar>) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.is_closed {
                return None;
            }
            state.waiting.push(Arc::clone(woken));
            // Whoever takes it off the list means it; a thread may also wake for nothing.
            let waits = |state: &mut State| state.waiting.iter().any(|waiting| Arc::ptr_eq(waiting, woken));
            state = woken.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_costs_one_job_and_no_thread() {
        let pool = Pool::start().expect("threads");
        for _ in 0..2 * N_WORKERS {
            assert_eq!(pool.run(|| -> u8 { panic!("as the test wants it") }).await, None);
        }
        assert_eq!(pool.run(|| 7).await, Some(7));
    }

    #[tokio::test]
    async fn all_threads_work_at_once_and_what_comes_meanwhile_is_done_too() {
        let pool = Pool::start().expect("threads");
        let all_are_here = Arc::new(std::sync::Barrier::new(N_WORKERS));
        let jobs = (0..5 * N_WORKERS).map(|n| {
            let all_are_here = Arc::clone(&all_are_here);
            pool.run(move || {
                // None goes on before as many work as there are threads.
                all_are_here.wait();
                n
            })
        });
        let done =
            tokio::time::timeout(std::time::Duration::from_secs(60), futures::future::join_all(jobs)).await.expect("none is forgotten");
        assert_eq!(done, (0..5 * N_WORKERS).map(Some).collect::<Vec<_>>());
    }
}
