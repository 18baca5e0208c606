//! One attempt to reach a host, from its request to its end, with the bytes that went each way. It
//! is told when it ends, however it does.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use podbay_wire::EgressAccess;
use podbay_wire::EgressAttempt;
use tokio::sync::mpsc::OwnedPermit;
use tokio::time::Instant;

use super::limits::REASON;

/// When something last happened on a connection.
#[derive(Debug)]
pub(crate) struct Activity {
    started: Instant,
    /// Milliseconds from the start to it.
    last: AtomicU64,
}

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            started: Instant::now(),
            last: AtomicU64::new(0),
        })
    }

    /// Says that something happened just now.
    pub(crate) fn touch(&self) {
        self.last
            .store(milliseconds(self.started.elapsed()), Ordering::Relaxed);
    }

    /// Waits until nothing has happened for so long.
    pub(crate) async fn until_idle(&self, idle: Duration) {
        loop {
            let until =
                self.started + Duration::from_millis(self.last.load(Ordering::Relaxed)) + idle;
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }
}

/// Bytes each way.
#[derive(Debug)]
pub(crate) struct Traffic {
    sent: AtomicU64,
    received: AtomicU64,
    activity: Arc<Activity>,
    /// Why it was ended, where the gateway did.
    ended: OnceLock<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToServer,
    ToClient,
}

impl Traffic {
    pub(crate) fn count(&self, direction: Direction, n_bytes: usize) {
        let counter = if direction == Direction::ToServer {
            &self.sent
        } else {
            &self.received
        };
        counter.fetch_add(n_bytes as u64, Ordering::Relaxed);
        self.activity.touch();
    }

    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// Says why the gateway ended it; the first reason counts.
    pub(crate) fn end(&self, why: &str) {
        // A later reason is a consequence of the first.
        drop(self.ended.set(bounded(why)));
    }
}

/// An attempt that is not over. Its end is told when it is dropped, in a place that was kept for
/// it.
pub(crate) struct OpenAttempt {
    attempt: EgressAttempt,
    started: Instant,
    traffic: Arc<Traffic>,
    place: Option<OwnedPermit<EgressAttempt>>,
}

impl OpenAttempt {
    /// `program`: the one that asked, where it is known.
    pub(crate) fn new(
        place: OwnedPermit<EgressAttempt>,
        activity: Arc<Activity>,
        program: Option<String>,
    ) -> Self {
        let attempt = EgressAttempt {
            host: String::new(),
            port: 0,
            access: EgressAccess::Unknown,
            allowed: false,
            because: String::new(),
            failure: None,
            bytes_sent: 0,
            bytes_received: 0,
            milliseconds: 0,
            program,
        };
        let traffic = Traffic {
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            activity,
            ended: OnceLock::new(),
        };
        Self {
            attempt,
            started: Instant::now(),
            traffic: Arc::new(traffic),
            place: Some(place),
        }
    }

    pub(crate) fn is_for(&mut self, host: &str, port: u16, access: EgressAccess) {
        host.clone_into(&mut self.attempt.host);
        self.attempt.port = port;
        self.attempt.access = access;
    }

    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    pub(crate) fn allow(&mut self, access: EgressAccess, rule: &str) {
        self.attempt.access = access;
        self.attempt.allowed = true;
        self.attempt.because = bounded(rule);
    }

    pub(crate) fn deny(&mut self, reason: &str) {
        self.attempt.allowed = false;
        self.attempt.because = bounded(reason);
    }

    pub(crate) fn fail(&mut self, problem: &str) {
        self.attempt.failure = Some(bounded(problem));
    }
}

impl Drop for OpenAttempt {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else {
            return;
        };
        let mut attempt = self.attempt.clone();
        attempt.bytes_sent = self.traffic.sent.load(Ordering::Relaxed);
        attempt.bytes_received = self.traffic.received.load(Ordering::Relaxed);
        attempt.milliseconds = milliseconds(self.started.elapsed());
        if attempt.failure.is_none() {
            attempt.failure = self.traffic.ended.get().cloned();
        }
        place.send(attempt);
    }
}

fn bounded(text: &str) -> String {
    text.chars().take(REASON).collect()
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use podbay_wire::EgressEvent;
    use podbay_wire::MAX_ATTEMPT_LINE;

    use super::*;

    #[tokio::test]
    async fn an_attempt_is_told_once_and_fits_its_line_whatever_is_in_it() {
        let (told, mut heard) = tokio::sync::mpsc::channel(1);
        let place = told.reserve_owned().await.expect("room");
        // Each letter takes six bytes in JSON.
        let long = "\u{1}".repeat(100_000);
        let program = "\u{1}".repeat(crate::limits::PROGRAM);
        let mut attempt = OpenAttempt::new(place, Activity::new(), Some(program));
        attempt.is_for(&"a".repeat(253), 443, EgressAccess::Tls);
        attempt.allow(EgressAccess::Tls, &long);
        attempt.traffic().count(Direction::ToServer, 7);
        attempt.traffic().end(&long);
        drop(attempt);
        let attempt = heard.recv().await.expect("an attempt");
        assert_eq!((attempt.allowed, attempt.bytes_sent), (true, 7));
        let line = serde_json::to_vec(&EgressEvent::Attempt(attempt)).expect("a line");
        assert!(line.len() < MAX_ATTEMPT_LINE, "{}", line.len());
        assert!(heard.recv().await.is_none());
    }
}
