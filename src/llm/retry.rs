//! Decides when a failed request is retried, and after how long.

use std::time::Duration;

use super::error::Error;

/// Longest pause a server may ask for; if it asks for more, there is no retry.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);

/// How often to retry, and with which pauses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Upper bound of the pause before each retry; the last one applies to all that follow.
    pub pauses: Vec<Duration>,
    /// Maximum number of retries.
    pub retries: u32,
    /// Interval for polling a server that loads its model or is unreachable.
    pub loading: Duration,
    /// How long to wait for an unreachable server: a restart may take longer than a few retries, or
    /// shorter.
    pub away: Duration,
    /// Time limit of the unstreamed retry after an empty stream.
    pub second: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            pauses: [1, 4, 16].map(Duration::from_secs).to_vec(),
            retries: 3,
            loading: Duration::from_secs(1),
            away: Duration::from_mins(1),
            second: Duration::from_secs(15),
        }
    }
}

impl RetryPolicy {
    /// Returns whether to keep waiting for an unreachable server after `waited`; never if retries
    /// are disabled.
    pub fn waits_for_server(&self, waited: Duration) -> bool {
        self.retries > 0 && waited < self.away
    }

    /// Returns the pause before the next retry, or `None` to give up.
    /// `n_tried` counts the retries already made; `chance`, within 0 to 1, spreads the pause over
    /// its whole range ("full jitter"), so that many clients do not come back at once.
    pub fn next(&self, error: &Error, n_tried: u32, chance: f64) -> Option<Duration> {
        if n_tried >= self.retries || !error.is_retryable() {
            return None;
        }
        let bound = self
            .pauses
            .get(n_tried as usize)
            .or(self.pauses.last())
            .copied()
            .unwrap_or_default();
        let pause = bound.mul_f64(chance.clamp(0.0, 1.0));
        match error {
            // A pause of zero, or a time in the past by our clock, must not make all retries happen
            // at once.
            Error::Status {
                retry_after: Some(asked),
                ..
            } => (*asked <= MAX_RETRY_AFTER).then_some(pause.max(*asked)),
            _ => Some(pause),
        }
    }
}

/// Returns a random number within 0 to 1.
pub(super) fn chance() -> f64 {
    let mut bytes = [0_u8; 4];
    getrandom::fill(&mut bytes).expect("the kernel gives random bytes once it has booted");
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}

/// Parses the header `Retry-After`: seconds, or a date.
pub(super) fn retry_after(header: &str, now: jiff::Timestamp) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(header).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, retry_after: Option<u64>) -> Error {
        Error::Status {
            code,
            message: String::new(),
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    #[test]
    fn retry_pauses_grow_and_end_after_three() {
        let policy = RetryPolicy::default();
        let pauses: Vec<Option<Duration>> = (0..4)
            .map(|n| policy.next(&status(503, None), n, 1.0))
            .collect();
        assert_eq!(
            pauses,
            [Some(1), Some(4), Some(16), None].map(|s| s.map(Duration::from_secs))
        );
        assert_eq!(
            policy.next(&status(503, None), 2, 0.25),
            Some(Duration::from_secs(4))
        );
    }

    #[test]
    fn an_unreachable_server_is_waited_for_with_a_limit() {
        let policy = RetryPolicy::default();
        let waits = |seconds| policy.waits_for_server(Duration::from_secs(seconds));
        assert_eq!([0, 21, 59, 60].map(waits), [true, true, true, false]);
        assert!(
            !RetryPolicy {
                retries: 0,
                ..policy
            }
            .waits_for_server(Duration::ZERO),
            "who wants no retries wants no waiting"
        );
    }

    #[test]
    fn retry_after_is_honoured_but_not_for_an_hour() {
        let policy = RetryPolicy::default();
        assert_eq!(
            policy.next(&status(429, Some(7)), 0, 0.5),
            Some(Duration::from_secs(7))
        );
        assert_eq!(policy.next(&status(429, Some(3600)), 0, 0.5), None);
        assert_eq!(policy.next(&status(400, Some(7)), 0, 0.5), None);
        let pauses: Vec<Option<Duration>> = (0..4)
            .map(|n| policy.next(&status(503, Some(0)), n, 1.0))
            .collect();
        assert_eq!(
            pauses,
            [Some(1), Some(4), Some(16), None].map(|s| s.map(Duration::from_secs)),
            "at once is no less than without"
        );
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: jiff::Timestamp = "2026-11-21T10:00:00Z".parse().expect("a time");
        let read = |header| retry_after(header, now).map(|pause| pause.as_secs());
        assert_eq!(
            [
                read("7"),
                read(" 0 "),
                read("Sat, 21 Nov 2026 10:00:09 GMT"),
                read("Sat, 21 Nov 2026 09:00:00 GMT"),
                read("soon")
            ],
            [Some(7), Some(0), Some(9), Some(0), None]
        );
    }
}
