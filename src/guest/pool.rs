//! A few threads, made at the start, for what must block.
//!
//! A runtime's own pool makes threads when there is work. In a box whose process table a command
//! has filled that fails, just when the guest has to keep working.

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

/// Threads made at the start, and work of the long kind that is done at once.
const N_WORKERS: usize = 4;

/// Threads at the most. Those above [`N_WORKERS`] are made when all others are busy, and only short
/// work ever needs them.
const MAX_WORKERS: usize = 2 * N_WORKERS;

/// Touched pages count, not reserved ones; the regex compiler and tree walks need some.
const STACK_BYTES: usize = 1024 * 1024;

type Job = Box<dyn FnOnce() + Send>;

/// How long work may take where nothing is the matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Short,
    /// It goes through what may be without end, such as the whole project. Some threads are left to
    /// the short work meanwhile.
    Long,
}

/// The threads end when the pool is dropped and they have done what was brought to it.
#[derive(Debug)]
pub(super) struct Pool {
    queue: Arc<Queue>,
}

/// Work that was brought to the pool.
#[derive(Debug)]
pub(super) struct Task<T> {
    queue: Arc<Queue>,
    number: u64,
    receiver: oneshot::Receiver<T>,
}

/// Each piece of work wakes one thread and no other, where there are few processors a second one
/// would take the first one's; and of those that wait the one that worked last, which the processor
/// still knows.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Work that waits, each with its number.
    short: VecDeque<(u64, Job)>,
    long: VecDeque<(u64, Job)>,
    n_brought: u64,
    n_workers: usize,
    n_busy: usize,
    /// Of the busy ones, those at long work.
    n_long: usize,
    waiting: Vec<Arc<Condvar>>,
    is_closed: bool,
}

impl Pool {
    pub(super) fn start() -> io::Result<Self> {
        let pool = Self {
            queue: Arc::default(),
        };
        pool.queue.lock().n_workers = N_WORKERS;
        for _ in 0..N_WORKERS {
            pool.queue.start_worker()?;
        }
        Ok(pool)
    }

    /// Runs `job` on one of the threads; `None`: it panicked.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        kind: Kind,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        self.begin(kind, job).end().await
    }

    /// Brings `job` to the threads. What waits is bounded by the calls under way on the stream.
    pub(super) fn begin<T: Send + 'static>(
        &self,
        kind: Kind,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Task<T> {
        let (sender, receiver) = oneshot::channel();
        let job = Box::new(move || {
            if let Ok(value) = catch_unwind(AssertUnwindSafe(job)) {
                let _ = sender.send(value);
            }
        });
        Task {
            number: self.queue.push(kind, job),
            queue: Arc::clone(&self.queue),
            receiver,
        }
    }
}

impl<T> Task<T> {
    /// Waits for what comes of it; `None`: it panicked, or was taken back.
    pub(super) async fn end(&mut self) -> Option<T> {
        (&mut self.receiver).await.ok()
    }

    /// Takes it out of what waits, so that it is never done; returns whether it still was there.
    pub(super) fn take_back(&self) -> bool {
        self.queue.remove(self.number)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.is_closed = true;
        state.waiting.drain(..).for_each(|woken| woken.notify_one());
    }
}

impl State {
    fn of(&mut self, kind: Kind) -> &mut VecDeque<(u64, Job)> {
        match kind {
            Kind::Short => &mut self.short,
            Kind::Long => &mut self.long,
        }
    }

    /// Takes the work that is to be done next, if a thread may.
    fn take(&mut self) -> Option<(Kind, Job)> {
        let kind = if self.short.is_empty() {
            Kind::Long
        } else {
            Kind::Short
        };
        if kind == Kind::Long && self.n_long >= N_WORKERS {
            return None;
        }
        let (_, job) = self.of(kind).pop_front()?;
        self.n_busy += 1;
        self.n_long += usize::from(kind == Kind::Long);
        Some((kind, job))
    }

    fn ended(&mut self, kind: Kind) {
        self.n_busy -= 1;
        self.n_long -= usize::from(kind == Kind::Long);
    }

    /// Returns whether more is to be done than there are threads, and another one may be made.
    fn wants_worker(&self) -> bool {
        let n_long = self.long.len().min(N_WORKERS.saturating_sub(self.n_long));
        self.n_workers < MAX_WORKERS && self.n_busy + self.short.len() + n_long > self.n_workers
    }
}

impl Queue {
    /// Starts a thread, which is counted already.
    fn start_worker(self: &Arc<Self>) -> io::Result<()> {
        let queue = Arc::clone(self);
        let work = move || {
            let woken = Arc::default();
            let mut done = None;
            while let Some((kind, job)) = queue.next(&woken, done) {
                job();
                done = Some(kind);
            }
        };
        std::thread::Builder::new()
            .name("podbay-worker".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(work)?;
        Ok(())
    }

    /// Returns the number of the work.
    fn push(self: &Arc<Self>, kind: Kind, job: Job) -> u64 {
        let mut state = self.lock();
        state.n_brought += 1;
        let number = state.n_brought;
        state.of(kind).push_back((number, job));
        let more = state.wants_worker();
        state.n_workers += usize::from(more);
        // Otherwise one of those at long work comes to it after that.
        let is_allowed = kind == Kind::Short || state.n_long < N_WORKERS;
        if let Some(woken) = state.waiting.pop_if(|_| is_allowed) {
            woken.notify_one();
        }
        drop(state);
        // At the box's limit of processes none can be made; the others then come to it later.
        if more && self.start_worker().is_err() {
            self.lock().n_workers -= 1;
        }
        number
    }

    fn remove(&self, number: u64) -> bool {
        let mut state = self.lock();
        // What it holds is dropped after the lock.
        let found = [Kind::Short, Kind::Long].into_iter().find_map(|kind| {
            let jobs = state.of(kind);
            let at = jobs.iter().position(|(own, _)| *own == number)?;
            jobs.remove(at)
        });
        drop(state);
        found.is_some()
    }

    /// Waits for a piece of work, and is woken by its own `woken`; `None`: there is none and none
    /// will come. `done` is what was done last.
    fn next(&self, woken: &Arc<Condvar>, done: Option<Kind>) -> Option<(Kind, Job)> {
        let mut state = self.lock();
        if let Some(kind) = done {
            state.ended(kind);
        }
        loop {
            if let Some(work) = state.take() {
                return Some(work);
            }
            if state.is_closed {
                return None;
            }
            state.waiting.push(Arc::clone(woken));
            // Whoever takes it off the list means it; a thread may also wake for nothing.
            let waits = |state: &mut State| {
                state
                    .waiting
                    .iter()
                    .any(|waiting| Arc::ptr_eq(waiting, woken))
            };
            state = woken
                .wait_while(state, waits)
                .unwrap_or_else(PoisonError::into_inner);
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
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Brings long work that ends when it is let go.
    fn fill(pool: &Pool, n: usize, go: &Arc<Barrier>) -> Vec<Task<()>> {
        let jobs = (0..n).map(|_| {
            let go = Arc::clone(go);
            pool.begin(Kind::Long, move || {
                go.wait();
            })
        });
        jobs.collect()
    }

    #[tokio::test]
    async fn a_panic_costs_one_job_and_no_thread() {
        let pool = Pool::start().expect("threads");
        for _ in 0..2 * MAX_WORKERS {
            assert_eq!(
                pool.run(Kind::Short, || -> u8 { panic!("as the test wants it") })
                    .await,
                None
            );
        }
        assert_eq!(pool.run(Kind::Short, || 7).await, Some(7));
    }

    #[tokio::test]
    async fn all_threads_work_at_once_and_what_comes_meanwhile_is_done_too() {
        for (kind, n_threads) in [(Kind::Long, N_WORKERS), (Kind::Short, MAX_WORKERS)] {
            let pool = Pool::start().expect("threads");
            let all_are_here = Arc::new(Barrier::new(n_threads));
            let jobs = (0..5 * n_threads).map(|n| {
                let all_are_here = Arc::clone(&all_are_here);
                pool.run(kind, move || {
                    // None goes on before as many work as there are threads.
                    all_are_here.wait();
                    n
                })
            });
            let done = tokio::time::timeout(PATIENCE, futures::future::join_all(jobs))
                .await
                .expect("none is forgotten");
            assert_eq!(done, (0..5 * n_threads).map(Some).collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn long_work_keeps_no_short_one_waiting() {
        let pool = Pool::start().expect("threads");
        let go = Arc::new(Barrier::new(N_WORKERS + 1));
        let mut long = fill(&pool, 2 * N_WORKERS, &go);
        for n in 0..3 {
            let short = tokio::time::timeout(PATIENCE, pool.run(Kind::Short, move || n)).await;
            assert_eq!(short.expect("a thread is left to it"), Some(n));
        }
        for _ in 0..2 {
            go.wait();
        }
        for task in &mut long {
            assert_eq!(task.end().await, Some(()));
        }
    }

    #[tokio::test]
    async fn work_that_is_taken_back_while_it_waits_is_never_done() {
        let pool = Pool::start().expect("threads");
        let go = Arc::new(Barrier::new(N_WORKERS + 1));
        let mut long = fill(&pool, N_WORKERS, &go);
        let was_done = Arc::new(AtomicBool::new(false));
        let mut waiting = {
            let was_done = Arc::clone(&was_done);
            pool.begin(Kind::Long, move || was_done.store(true, Ordering::Relaxed))
        };
        assert!(waiting.take_back(), "no thread is left to it");
        assert!(!waiting.take_back());
        assert_eq!(waiting.end().await, None);
        go.wait();
        for task in &mut long {
            assert_eq!(task.end().await, Some(()));
            assert!(!task.take_back());
        }
        assert!(!was_done.load(Ordering::Relaxed));
    }
}
