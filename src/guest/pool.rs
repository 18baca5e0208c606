//! A few threads, made at the start, for what must block.
//!
//! A runtime's own pool makes threads when there is work. In a box whose process table a command has filled that fails, just when the
//! guest has to keep working.

use std::io;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc;

use tokio::sync::oneshot;

/// File tools at work at once.
const N_WORKERS: usize = 4;

/// Touched pages count, not reserved ones; the regex compiler and tree walks need some.
const STACK_BYTES: usize = 1024 * 1024;

type Job = Box<dyn FnOnce() + Send>;

/// The threads end when the pool is dropped and they have finished what they work on.
#[derive(Debug)]
pub(super) struct Pool {
    jobs: mpsc::Sender<Job>,
}

impl Pool {
    pub(super) fn start() -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..N_WORKERS {
            let queue = Arc::clone(&queue);
            std::thread::Builder::new().name("podbay-worker".to_owned()).stack_size(STACK_BYTES).spawn(move || work(&queue))?;
        }
        Ok(Self { jobs })
    }

    /// Runs `job` on one of the threads; `None`: it panicked. The queue is bounded by the calls under way on the stream.
    pub(super) async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        let job = Box::new(move || {
            if let Ok(value) = catch_unwind(AssertUnwindSafe(job)) {
                let _ = sender.send(value);
            }
        });
        self.jobs.send(job).ok()?;
        receiver.await.ok()
    }
}

fn work(queue: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        // The lock is held while waiting: one thread waits for a job, the others for it.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => job(),
            Err(_) => return,
        }
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
}
