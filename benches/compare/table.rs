//! Times, and the table they end up in.

use std::fmt::Write as _;
use std::time::Duration;
use std::time::Instant;

/// Times of one side of a comparison.
#[derive(Debug, Default)]
pub(super) struct Times(pub(super) Vec<Duration>);

impl Times {
    pub(super) fn add<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = work();
        self.0.push(begun.elapsed());
        result
    }

    /// Returns the time below which this share of all lies.
    pub(super) fn at(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted
            .get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
            .copied()
            .unwrap_or_default()
    }

    /// Least, median and 95th percentile.
    pub(super) fn show(&self) -> String {
        format!(
            "{} / **{}** / {}",
            milliseconds(self.at(0)),
            milliseconds(self.at(50)),
            milliseconds(self.at(95))
        )
    }
}

fn milliseconds(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1000.0;
    if ms < 10.0 {
        format!("{ms:.2}")
    } else {
        format!("{ms:.0}")
    }
}

pub(super) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// Rows of the page.
pub(super) struct Table(String);

impl Table {
    pub(super) fn new() -> Self {
        Self("| what | ours, ms (least / p50 / p95) | peer, ms | ratio | bar | |\n| --- | --- | --- | --- | --- | --- |\n".to_owned())
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// A row whose bar is a ratio of medians.
    pub(super) fn row(&mut self, what: &str, ours: &Times, peer: &Times, bar: Option<f64>) {
        let ratio = ours.at(50).as_secs_f64() / peer.at(50).as_secs_f64();
        let ratio_text = if ratio < 0.1 {
            format!("1/{:.0}", 1.0 / ratio)
        } else {
            format!("{ratio:.2}")
        };
        let bar_text = bar.map_or(String::new(), |bar| {
            if bar < 0.1 {
                format!("≤ 1/{:.0}", 1.0 / bar)
            } else {
                format!("≤ {bar}")
            }
        });
        let verdict = bar.map_or("", |bar| verdict(ratio <= bar));
        let _ = writeln!(
            self.0,
            "| {what} | {} | {} | {ratio_text} | {bar_text} | {verdict} |",
            ours.show(),
            peer.show()
        );
    }

    /// A row whose bar is a figure; `bar` says it whole, with `≤` or `≥`.
    pub(super) fn figure(&mut self, what: &str, value: &str, bar: &str, holds: bool) {
        let _ = writeln!(
            self.0,
            "| {what} | {value} | | | {bar} | {} |",
            verdict(holds)
        );
    }

    /// A row without a bar of its own.
    pub(super) fn note(&mut self, what: &str, ours: &str, peer: &str) {
        let _ = writeln!(self.0, "| {what} | {ours} | {peer} | | | |");
    }
}

fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "**missed**" }
}
