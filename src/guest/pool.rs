//! A few threads, created at the start, for blocking work.
//!
//! A runtime's own pool creates threads on demand. That fails in a sandbox whose process table a
//! command has filled, just when the guest has to keep working.

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

/// Threads created at the start, and most long jobs that run at once.
const N_WORKERS: usize = 4;

/// Most threads. Those above [`N_WORKERS`] are created when all others are busy, and only short
/// jobs need them.
const MAX_WORKERS: usize = 2 * N_WORKERS;

/// Touched pages count, not reserved ones; the regex compiler and tree walks need some.
const STACK_BYTES: usize = 1024 * 1024;

type Job = Box<dyn FnOnce() + Send>;

/// How long a job may normally take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobKind {
    Short,
    /// It processes unbounded data, such as the whole project. Some threads stay reserved for short
    /// jobs.
    Long,
}

/// The threads end when the pool is dropped and the queued jobs are done.
#[derive(Debug)]
pub(super) struct Pool {
    queue: Arc<Queue>,
}

/// A job that was queued.
#[derive(Debug)]
pub(super) struct Task<T> {
    queue: Arc<Queue>,
    number: u64,
    receiver: oneshot::Receiver<T>,
}

/// Each job wakes exactly one thread (on few processors a second one would compete with it), and of
/// the waiting ones the one that worked last, whose caches are warm.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Waiting jobs, each with its number.
    short: VecDeque<(u64, Job)>,
    long: VecDeque<(u64, Job)>,
    n_brought: u64,
    n_workers: usize,
    n_busy: usize,
    /// Busy threads with a long job.
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
        kind: JobKind,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        self.begin(kind, job).end().await
    }

    /// Queues `job`. The queue is bounded by the calls in progress on the stream.
    pub(super) fn begin<T: Send + 'static>(
        &self,
        kind: JobKind,
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
    /// Waits for the result; `None`: it panicked, or was removed.
    pub(super) async fn end(&mut self) -> Option<T> {
        (&mut self.receiver).await.ok()
    }

    /// Removes it from the queue, so that it never runs; returns whether it was still there.
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
    fn of(&mut self, kind: JobKind) -> &mut VecDeque<(u64, Job)> {
        match kind {
            JobKind::Short => &mut self.short,
            JobKind::Long => &mut self.long,
        }
    }

    /// Takes the next job, if a thread may run it.
    fn take(&mut self) -> Option<(JobKind, Job)> {
        let kind = if self.short.is_empty() {
            JobKind::Long
        } else {
            JobKind::Short
        };
        if kind == JobKind::Long && self.n_long >= N_WORKERS {
            return None;
        }
        let (_, job) = self.of(kind).pop_front()?;
        self.n_busy += 1;
        self.n_long += usize::from(kind == JobKind::Long);
        Some((kind, job))
    }

    fn ended(&mut self, kind: JobKind) {
        self.n_busy -= 1;
        self.n_long -= usize::from(kind == JobKind::Long);
    }

    /// Returns whether there are more jobs than threads, and another thread may be created.
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

    /// Returns the number of the job.
    fn push(self: &Arc<Self>, kind: JobKind, job: Job) -> u64 {
        let mut state = self.lock();
        state.n_brought += 1;
        let number = state.n_brought;
        state.of(kind).push_back((number, job));
        let more = state.wants_worker();
        state.n_workers += usize::from(more);
        // Otherwise a thread with a long job runs it after that.
        let is_allowed = kind == JobKind::Short || state.n_long < N_WORKERS;
        if let Some(woken) = state.waiting.pop_if(|_| is_allowed) {
            woken.notify_one();
        }
        drop(state);
        // At the sandbox's process limit none can be created; the others run the job later.
        if more && self.start_worker().is_err() {
            self.lock().n_workers -= 1;
        }
        number
    }

    fn remove(&self, number: u64) -> bool {
        let mut state = self.lock();
        // Its contents are dropped after the lock.
        let found = [JobKind::Short, JobKind::Long]
            .into_iter()
            .find_map(|kind| {
                let jobs = state.of(kind);
                let at = jobs.iter().position(|(own, _)| *own == number)?;
                jobs.remove(at)
            });
        drop(state);
        found.is_some()
    }

    /// Waits for a job on its own `woken`; `None`: there is none and none will come. `done` is the
    /// job it did last.
    fn next(&self, woken: &Arc<Condvar>, done: Option<JobKind>) -> Option<(JobKind, Job)> {
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
            // The waker removes it from the list; a wakeup may also be spurious.
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

    /// Queues long jobs that end when they are released.
    fn fill(pool: &Pool, n: usize, go: &Arc<Barrier>) -> Vec<Task<()>> {
        let jobs = (0..n).map(|_| {
            let go = Arc::clone(go);
            pool.begin(JobKind::Long, move || {
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
                pool.run(JobKind::Short, || -> u8 { panic!("as the test wants it") })
                    .await,
                None
            );
        }
        assert_eq!(pool.run(JobKind::Short, || 7).await, Some(7));
    }

    #[tokio::test]
    async fn all_threads_work_at_once_and_queued_jobs_run_later() {
        for (kind, n_threads) in [(JobKind::Long, N_WORKERS), (JobKind::Short, MAX_WORKERS)] {
            let pool = Pool::start().expect("threads");
            let all_are_here = Arc::new(Barrier::new(n_threads));
            let jobs = (0..5 * n_threads).map(|n| {
                let all_are_here = Arc::clone(&all_are_here);
                pool.run(kind, move || {
                    // None continues before there are as many jobs as threads.
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
    async fn long_jobs_do_not_delay_short_ones() {
        let pool = Pool::start().expect("threads");
        let go = Arc::new(Barrier::new(N_WORKERS + 1));
        let mut long = fill(&pool, 2 * N_WORKERS, &go);
        for n in 0..3 {
            let short = tokio::time::timeout(PATIENCE, pool.run(JobKind::Short, move || n)).await;
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
    async fn a_job_removed_while_it_waits_never_runs() {
        let pool = Pool::start().expect("threads");
        let go = Arc::new(Barrier::new(N_WORKERS + 1));
        let mut long = fill(&pool, N_WORKERS, &go);
        let was_done = Arc::new(AtomicBool::new(false));
        let mut waiting = {
            let was_done = Arc::clone(&was_done);
            pool.begin(JobKind::Long, move || {
                was_done.store(true, Ordering::Relaxed);
            })
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
