//! Detects an answer that makes no progress, whatever bytes arrive.

use std::time::Duration;

use tokio::time::Instant;

use super::error::Error;

/// How many times the limit comments alone may last: servers send them while they read a long
/// prompt, and proxies while the server hangs.
const MOST_LIMITS: u32 = 10;
/// This many bytes of one line are progress too: a call may come in a single long one.
const MANY: usize = 4096;

#[derive(Debug)]
pub(super) struct IdleTimer {
    limit: Duration,
    /// When something arrived last, and when there was progress last.
    heard: Instant,
    progressed: Instant,
    n_progress: u64,
    n_comments: u64,
    n_parts: usize,
    /// Something arrived since the last progress.
    has_bytes: bool,
}

impl IdleTimer {
    pub(super) fn new(limit: Duration) -> Self {
        let now = Instant::now();
        Self {
            limit,
            heard: now,
            progressed: now,
            n_progress: 0,
            n_comments: 0,
            n_parts: 0,
            has_bytes: false,
        }
    }

    /// Returns how long to wait for more.
    pub(super) fn left(&self) -> Duration {
        let until_bound = self
            .limit
            .saturating_mul(MOST_LIMITS)
            .saturating_sub(self.progressed.elapsed());
        self.limit
            .saturating_sub(self.heard.elapsed())
            .min(until_bound)
    }

    /// Returns whether `n_progress` events mean the first progress.
    pub(super) fn is_first(&self, n_progress: u64) -> bool {
        self.n_progress == 0 && n_progress > 0
    }

    /// Records what arrived so far: events with progress, comments, and bytes of the current line.
    /// `limit` counts from the first progress on; before it, the prompt is still being read.
    pub(super) fn record(
        &mut self,
        limit: Duration,
        n_progress: u64,
        n_comments: u64,
        pending: usize,
    ) {
        let n_parts = pending / MANY;
        let is_progress = n_progress > self.n_progress || n_parts > self.n_parts;
        self.has_bytes = !is_progress;
        if is_progress {
            self.limit = limit;
            self.progressed = Instant::now();
        }
        if is_progress || n_comments > self.n_comments {
            self.heard = Instant::now();
        }
        (self.n_progress, self.n_comments, self.n_parts) = (n_progress, n_comments, n_parts);
    }

    /// Returns an idle error with the total time without bytes, or without progress, instead of the
    /// last wait.
    pub(super) fn with_elapsed(&self, error: Error) -> Error {
        match error {
            Error::IdleTimeout { .. } if self.has_bytes => Error::IdleTimeout {
                after: self.progressed.elapsed(),
                has_bytes: true,
            },
            Error::IdleTimeout { .. } => Error::IdleTimeout {
                after: self.limit,
                has_bytes: false,
            },
            other => other,
        }
    }
}
