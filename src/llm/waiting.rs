//! How long an answer may bring nothing on, whatever bytes come.

use std::time::Duration;

use tokio::time::Instant;

use super::error::Error;

/// How many times the limit comments alone may keep up: servers send them while they read a long
/// prompt, and proxies while the server hangs.
const MOST_LIMITS: u32 = 10;
/// So many bytes of one line are progress too: a call may come in a single long one.
const MANY: usize = 4096;

#[derive(Debug)]
pub(super) struct Waiting {
    limit: Duration,
    /// When something was heard last, and when it brought the answer on.
    heard: Instant,
    progressed: Instant,
    n_progress: u64,
    n_comments: u64,
    n_parts: usize,
    /// Something came since the answer was brought on last.
    has_bytes: bool,
}

impl Waiting {
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

    /// Returns whether something brings the answer on for the first time, if so many events have by
    /// now.
    pub(super) fn is_first(&self, n_progress: u64) -> bool {
        self.n_progress == 0 && n_progress > 0
    }

    /// Takes how much came so far: events that brought something on, comments, and bytes of the
    /// line under way. `limit` counts from the first progress on; what comes before it is still the
    /// reading of the prompt.
    pub(super) fn came(
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

    /// Returns an error that says how long nothing came, or how long what came brought nothing on:
    /// the whole time, not what was left of it.
    pub(super) fn told(&self, error: Error) -> Error {
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
