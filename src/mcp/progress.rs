//! How far a call is, as its server tells it: plain lines, and not too often.

use std::time::Duration;
use std::time::Instant;

use rmcp::model::ProgressNotificationParam;

use super::plain_line;

/// Shortest time between two lines; what comes sooner is left out.
const BETWEEN: Duration = Duration::from_millis(200);

/// The lines of one call.
#[derive(Default)]
pub(super) struct ProgressLines {
    last: Option<Instant>,
}

impl ProgressLines {
    /// Returns the line to show, without its end; `None` for one that comes too soon.
    pub(super) fn next(&mut self, progress: &ProgressNotificationParam) -> Option<String> {
        self.next_at(progress, Instant::now())
    }

    fn next_at(&mut self, progress: &ProgressNotificationParam, now: Instant) -> Option<String> {
        if self.last.is_some_and(|last| now < last + BETWEEN) {
            return None;
        }
        self.last = Some(now);
        Some(line(progress))
    }
}

fn line(progress: &ProgressNotificationParam) -> String {
    let done = progress.progress;
    let far = match progress.total {
        Some(total) => format!("{done} of {total}"),
        None => done.to_string(),
    };
    match progress
        .message
        .as_deref()
        .map(|words| plain_line(words, 200))
    {
        Some(words) if !words.is_empty() => format!("{far}: {words}"),
        _ => far,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use serde_json::json;

    #[track_caller]
    fn check(value: Value, expected: &str) {
        let progress = serde_json::from_value(value).expect("a notification");
        assert_eq!(line(&progress), expected);
    }

    #[test]
    fn progress_is_one_plain_line() {
        check(
            json!({"progressToken": 1, "progress": 3, "total": 10}),
            "3 of 10",
        );
        check(
            json!({"progressToken": 1, "progress": 0.5, "message": "read\u{1b}[2J\nb"}),
            "0.5: read [2J b",
        );
        check(
            json!({"progressToken": 1, "progress": 2, "message": " "}),
            "2",
        );
    }

    #[test]
    fn lines_that_come_too_soon_are_left_out() {
        let mut lines = Vec::new();
        let mut told = ProgressLines::default();
        let begun = Instant::now();
        for n in 0..1000 {
            let progress = json!({"progressToken": 1, "progress": n});
            let progress = serde_json::from_value(progress).expect("a notification");
            lines.extend(told.next_at(&progress, begun + Duration::from_millis(n)));
        }
        assert_eq!(lines, ["0", "200", "400", "600", "800"]);
    }
}
