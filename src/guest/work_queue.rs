//! A work queue for several threads whose items produce more items, such as folders in folders.
//!
//! Last in, first out keeps it short: a tree is walked depth first. Items pushed to the other end
//! are walked breadth first.

use std::collections::VecDeque;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::thread;

/// Most threads; more only wait for each other in the kernel.
const MAX_THREADS: usize = 8;

/// Queued items before other threads are started: a small tree is walked faster than they start.
const WORTH_A_THREAD: usize = 4;

/// Items not yet taken, until there are none and none will come, or a step ends the work with an
/// `E`.
pub(super) struct Queue<W, E = ()> {
    state: Mutex<State<W, E>>,
    changed: Condvar,
}

struct State<W, E> {
    /// The next one is at the back.
    work: VecDeque<W>,
    n_busy: usize,
    ended: Option<E>,
}

impl<W, E> Default for Queue<W, E> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                work: VecDeque::new(),
                n_busy: 0,
                ended: None,
            }),
            changed: Condvar::new(),
        }
    }
}

impl<W: Send, E: Send> Queue<W, E> {
    /// Processes all items with `step`; returns the state of each thread.
    ///
    /// Where no thread can be started, as at a sandbox's process limit, the caller's thread works
    /// alone.
    pub(super) fn work<S: Default + Send>(&self, step: impl Fn(&mut S, W) + Sync) -> Vec<S> {
        let next = |state: &mut S| {
            let Some((work, _taken)) = self.take() else {
                return false;
            };
            step(state, work);
            true
        };
        let mut own = S::default();
        let mut states = Vec::new();
        while self.len() < WORTH_A_THREAD && next(&mut own) {}
        if self.len() >= WORTH_A_THREAD {
            let n_threads = thread::available_parallelism()
                .map_or(1, usize::from)
                .min(MAX_THREADS);
            thread::scope(|scope| {
                let work = || {
                    let mut state = S::default();
                    while next(&mut state) {}
                    state
                };
                let others: Vec<_> = (1..n_threads)
                    .map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok())
                    .collect();
                while next(&mut own) {}
                states.extend(
                    others
                        .into_iter()
                        .map(|other| other.join().expect("a step does not panic")),
                );
            });
        }
        states.push(own);
        states
    }

    pub(super) fn push(&self, work: Vec<W>) {
        self.bring(work, VecDeque::push_back);
    }

    /// Pushes items that are processed after all queued ones.
    pub(super) fn push_behind(&self, work: Vec<W>) {
        self.bring(work, VecDeque::push_front);
    }

    fn bring(&self, work: Vec<W>, put: impl Fn(&mut VecDeque<W>, W)) {
        if work.is_empty() {
            return;
        }
        let several = work.len() > 1;
        let mut state = self.lock();
        for one in work {
            put(&mut state.work, one);
        }
        drop(state);
        if several {
            self.changed.notify_all();
        } else {
            self.changed.notify_one();
        }
    }

    /// Takes an item; waits while a running step may produce one; `None`: none will come.
    fn take(&self) -> Option<(W, ActiveItem<'_, W, E>)> {
        let mut state = self.lock();
        loop {
            if state.ended.is_some() {
                return None;
            }
            if let Some(work) = state.work.pop_back() {
                state.n_busy += 1;
                return Some((work, ActiveItem(self)));
            }
            if state.n_busy == 0 {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the work; the first reason counts.
    pub(super) fn end(&self, reason: E) {
        self.lock().ended.get_or_insert(reason);
        self.changed.notify_all();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lock().ended.is_some()
    }

    /// Returns why the work was ended, if it was.
    pub(super) fn into_end(self) -> Option<E> {
        self.state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .ended
    }

    fn len(&self) -> usize {
        let state = self.lock();
        if state.ended.is_some() {
            0
        } else {
            state.work.len()
        }
    }
}

impl<W, E> Queue<W, E> {
    fn lock(&self) -> MutexGuard<'_, State<W, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An item in progress. Its drop, also by a panic, tells the others that no more items come from
/// it.
struct ActiveItem<'a, W, E>(&'a Queue<W, E>);

impl<W, E> Drop for ActiveItem<'_, W, E> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.n_busy -= 1;
        if state.n_busy == 0 && state.work.is_empty() {
            drop(state);
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_found_by_a_step_are_processed_once() {
        let queue: Queue<u32> = Queue::default();
        queue.push(vec![1]);
        let states: Vec<Vec<u32>> = queue.work(|done: &mut Vec<u32>, number| {
            done.push(number);
            queue.push(
                [2 * number, 2 * number + 1]
                    .into_iter()
                    .filter(|&next| next < 2000)
                    .collect(),
            );
        });
        let mut all = states.concat();
        all.sort_unstable();
        assert_eq!(all, (1..2000).collect::<Vec<_>>());
        assert_eq!(queue.into_end(), None);
    }

    #[test]
    fn items_pushed_behind_come_last() {
        let queue: Queue<u32> = Queue::default();
        // With several threads the order is not deterministic.
        let take = || queue.lock().work.pop_back();
        queue.push(vec![3, 2]);
        assert_eq!(take(), Some(2));
        queue.push_behind(vec![4, 5]);
        queue.push(vec![6]);
        assert_eq!(
            [take(), take(), take(), take(), take()],
            [Some(6), Some(3), Some(4), Some(5), None]
        );
    }

    #[test]
    fn the_first_end_reason_counts_and_leaves_the_rest() {
        let queue: Queue<u32, u32> = Queue::default();
        queue.push((0..100).collect());
        let states: Vec<Vec<u32>> = queue.work(|done: &mut Vec<u32>, number| {
            done.push(number);
            queue.end(7);
            queue.end(8);
        });
        let n_threads = states.len();
        assert!(states.concat().len() <= n_threads && queue.has_ended());
        assert_eq!(queue.into_end(), Some(7));
    }

    #[test]
    fn a_panic_in_a_step_leaves_no_thread_waiting() {
        let queue: Queue<u32> = Queue::default();
        queue.push((0..100).collect());
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            queue.work(|(): &mut (), number| assert!(number != 50, "meant"));
        }));
        assert!(outcome.is_err());
        assert_eq!(queue.lock().n_busy, 0);
    }
}
