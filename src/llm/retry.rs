//! When a failed request is tried again, and after how long.

use std::time::Duration;

use super::error::Error;

/// Longest pause a server may ask for; who asks for more is not asked again.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);

/// How often and how patiently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Upper bound of the pause before each retry; the last one counts for all that follow.
    pub pauses: Vec<Duration>,
    /// How many retries there are at most.
    pub retries: u32,
    /// Pause between two questions whether the model is loaded, or whether the server is there
    /// again.
    pub loading: Duration,
    /// How long a server that cannot be reached is waited for: one that is started anew takes
    /// longer than a few retries, or shorter, as chance has it.
    pub away: Duration,
    /// How long the second question may take after a stream without a word.
    pub second: Duration,
}

impl Default for Policy {
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

impl Policy {
    /// Returns whether a server that cannot be reached is worth waiting for after so long; never
    /// where nothing is to be tried again.
    pub fn waits_for_server(&self, waited: Duration) -> bool {
        self.retries > 0 && waited < self.away
    }

    /// Returns how long to wait before trying again, or `None` to give up.
    ///
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
            // At once, or at a time that is over by our clock, is no reason to come back with all
            // retries before it can have mended.
            Error::Status {
                retry_after: Some(asked),
                ..
            } => (*asked <= MAX_RETRY_AFTER).then_some(pause.max(*asked)),
            _ => Some(pause),
        }
    }
}

/// Returns a number within 0 to 1.
pub(super) fn chance() -> f64 {
    let mut bytes = [0_u8; 4];
    getrandom::fill(&mut bytes).expect("the kernel gives random bytes once it has booted");
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}

/// Reads the header `Retry-After`: seconds, or a date.
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
    fn pauses_grow_and_end_after_three() {
        let policy = Policy::default();
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
    fn a_server_that_is_away_is_waited_for_against_a_clock() {
        let policy = Policy::default();
        let waits = |seconds| policy.waits_for_server(Duration::from_secs(seconds));
        assert_eq!([0, 21, 59, 60].map(waits), [true, true, true, false]);
        assert!(
            !Policy {
                retries: 0,
                ..policy
            }
            .waits_for_server(Duration::ZERO),
            "who wants no retries wants no waiting"
        );
    }

    #[test]
    fn the_server_may_ask_for_a_pause_but_not_for_an_hour() {
        let policy = Policy::default();
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
    fn a_pause_is_given_in_seconds_or_as_a_date() {
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
