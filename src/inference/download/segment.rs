//! Downloads one segment of a file, over as many connections as it takes.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;

use reqwest::Response;
use reqwest::StatusCode;

use super::AttemptError;
use super::DownloadLimits;
use super::bytes_done;
use super::partial_file::PartialFile;
use super::partial_file::Segment;
use super::remedies::CHANGED;
use super::remedies::ELSEWHERE;
use super::remedies::LOGIN;
use super::remedies::PROXY;
use super::request::HubMetadata;
use super::request::Requester;
use super::request::chain;
use super::request::text;
use podbay_event::ProgressSink;

/// State shared by the connections of one file.
pub(super) struct Loader<'a> {
    pub(super) requester: &'a Requester<'a>,
    pub(super) part: &'a PartialFile,
    pub(super) patience: &'a DownloadLimits,
    pub(super) task: &'a str,
    pub(super) progress: &'a ProgressSink,
    pub(super) shown_at: Mutex<Instant>,
}

impl Loader<'_> {
    /// Downloads a segment to its end.
    pub(super) async fn load(&self, segment: &Segment) -> Result<(), AttemptError> {
        let (mut failures, mut furthest) = (0, segment.done());
        // Terminates: a round that does not count as a failure got considerably further than all
        // before it.
        while !segment.is_whole() {
            let (problem, was_slow) = match self.attempt(segment).await {
                Ok(()) if segment.is_whole() => return Ok(()),
                Ok(()) => (
                    format!(
                        "the connection ended after {} of {} bytes",
                        segment.at(),
                        segment.end
                    ),
                    false,
                ),
                Err(AttemptError::Early(problem)) => (problem, false),
                Err(AttemptError::Slow(problem)) => (problem, true),
                Err(ended) => return Err(ended),
            };
            let is_progress = segment.done() >= furthest + self.patience.least.max(1) && !was_slow;
            furthest = furthest.max(segment.done());
            failures = if is_progress { 0 } else { failures + 1 };
            if failures > self.patience.retries {
                return Err(self.requester.given_up(problem));
            }
            tracing::info!(%problem, "a download continues on a new connection");
            tokio::time::sleep(self.patience.pause * 2_u32.pow(failures.min(6))).await;
        }
        Ok(())
    }

    fn is_alone(&self) -> bool {
        self.part.segments.len() == 1
    }

    /// Downloads over one connection.
    async fn attempt(&self, segment: &Segment) -> Result<(), AttemptError> {
        let range = match (self.is_alone(), segment.done()) {
            (true, 0) => None,
            (true, _) => Some(format!("bytes={}-", segment.at())),
            (false, _) => Some(format!("bytes={}-{}", segment.at(), segment.end - 1)),
        };
        let goal = &self.part.goal;
        // If the hash is known, it decides; a cache on the way may change validators.
        let if_range = goal
            .validator
            .as_deref()
            .filter(|_| goal.sha256.is_none() && range.is_some());
        let (response, linked) = self.requester.get(range.as_deref(), if_range).await?;
        self.check(&response, &linked, segment)?;
        self.take(response, segment).await
    }

    /// Checks that a response is the requested range.
    fn check(
        &self,
        response: &Response,
        linked: &HubMetadata,
        segment: &Segment,
    ) -> Result<(), AttemptError> {
        let goal = &self.part.goal;
        if let (Some(announced), Some(expected)) = (&linked.sha256, &goal.sha256)
            && announced != expected
        {
            return Err(self
                .requester
                .fatal("the hub has another file under this name by now", CHANGED));
        }
        if text(response, "content-encoding")
            .is_some_and(|encoding| !encoding.eq_ignore_ascii_case("identity"))
        {
            return Err(self.requester.fatal(
                "the server sends it compressed, though it was asked not to",
                PROXY,
            ));
        }
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let (start, total) = text(response, "content-range")
                    .and_then(parse_range)
                    .unwrap_or_default();
                if let Some(total) = total.filter(|&total| total != goal.size) {
                    return Err(self
                        .requester
                        .fatal(wrong_size(total, goal.size), ELSEWHERE));
                }
                if start == segment.at() {
                    return Ok(());
                }
                self.again("the server sent another part than was asked for", segment)
            }
            StatusCode::RANGE_NOT_SATISFIABLE => {
                self.again("the server has no such part of the file", segment)
            }
            // Also if a range was requested: a server may not support ranges, and sends the whole
            // file if it has changed.
            _ if !self.is_alone() => Err(AttemptError::Whole),
            _ => {
                if is_page(response) {
                    return Err(self.requester.fatal(PAGE, LOGIN));
                }
                if let Some(announced) = response
                    .content_length()
                    .filter(|&announced| announced != goal.size)
                {
                    return Err(self
                        .requester
                        .fatal(wrong_size(announced, goal.size), ELSEWHERE));
                }
                self.part.empty().map_err(AttemptError::Fatal)
            }
        }
    }

    /// Falls back to the whole file without ranges.
    fn again(&self, problem: &str, segment: &Segment) -> Result<(), AttemptError> {
        if !self.is_alone() || segment.done() == 0 {
            return Err(AttemptError::Whole);
        }
        self.part.empty().map_err(AttemptError::Fatal)?;
        Err(AttemptError::Early(problem.to_owned()))
    }

    async fn take(&self, mut response: Response, segment: &Segment) -> Result<(), AttemptError> {
        let mut rate = Rate::new(self.part.done());
        loop {
            let bytes = match tokio::time::timeout(self.patience.idle, response.chunk()).await {
                Err(_) => {
                    return Err(AttemptError::Early(format!(
                        "the server said nothing for {} s",
                        self.patience.idle.as_secs_f32()
                    )));
                }
                Ok(Err(error)) => return Err(AttemptError::Early(chain(&error))),
                Ok(Ok(None)) => return Ok(()),
                Ok(Ok(Some(bytes))) => bytes,
            };
            if segment.at() + bytes.len() as u64 > segment.end {
                // The data is of unknown origin, so all of it is discarded.
                self.part.empty().map_err(AttemptError::Fatal)?;
                return Err(self.requester.fatal(
                    format!(
                        "the server sends more than the {} bytes of the file",
                        self.part.goal.size
                    ),
                    ELSEWHERE,
                ));
            }
            self.part
                .write(segment, &bytes)
                .map_err(AttemptError::Fatal)?;
            self.show();
            // Measured over the whole file: four connections may share a slow line.
            if let Some(came) = rate.too_slow(self.part.done(), self.patience) {
                return Err(AttemptError::Slow(format!(
                    "only {came} bytes came within {} s",
                    self.patience.idle.as_secs_f32()
                )));
            }
        }
    }

    fn show(&self) {
        let mut shown_at = self.shown_at.lock().unwrap_or_else(PoisonError::into_inner);
        if shown_at.elapsed() > Duration::from_millis(100) {
            *shown_at = Instant::now();
            (self.progress)(bytes_done(
                self.task,
                self.part.done(),
                self.part.goal.size,
                false,
            ));
        }
    }
}

/// Bytes received since a point in time.
struct Rate {
    since: Instant,
    done: u64,
}

impl Rate {
    fn new(done: u64) -> Self {
        Self {
            since: Instant::now(),
            done,
        }
    }

    /// Returns how many bytes came in the period, if it is over and they are too few.
    fn too_slow(&mut self, done: u64, patience: &DownloadLimits) -> Option<u64> {
        let elapsed = self.since.elapsed();
        if elapsed < patience.idle {
            return None;
        }
        // Fewer than before if another connection reset it.
        let came = done.saturating_sub(self.done);
        *self = Self::new(done);
        ((came as f64) < patience.slowest as f64 * elapsed.as_secs_f64()).then_some(came)
    }
}

pub(super) const PAGE: &str = "the server sent a web page instead of the file";

/// Returns whether a response is an HTML page: a login, or an error with a success status.
pub(super) fn is_page(response: &Response) -> bool {
    text(response, "content-type").is_some_and(|kind| {
        kind.trim_start()
            .to_ascii_lowercase()
            .starts_with("text/html")
    })
}

pub(super) fn wrong_size(found: u64, expected: u64) -> String {
    format!("the server's file has {found} bytes instead of {expected}")
}

/// Parses `Content-Range`, `bytes 5-9/10`: the start of the range and the size of the file.
pub(super) fn parse_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split_once('-')?.0.parse().ok()?, total.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_range_is_parsed() {
        assert_eq!(parse_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(parse_range("bytes 5-9/*"), Some((5, None)));
        for other in ["", "bytes */10", "bytes 5/10", "lines 5-9/10"] {
            assert_eq!(parse_range(other), None, "{other}");
        }
    }
}
