//! What is running, and where: the line above the editor and the one at the bottom.

use std::time::Instant;

use podbay_event::Progress;
use podbay_event::ProjectChanges;
use podbay_event::Unit;
use podbay_event::Usage;

use super::transcript::tokens;
use crate::call;
use crate::text;

/// What is known of the session besides its events.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub project: String,
    pub mode: String,
    pub model: String,
    /// Such as `2 cores, 2 GiB, no network`.
    pub limits: String,
    pub branch: Option<String>,
    /// Plan mode is possible here.
    pub has_plan_mode: bool,
}

/// The numbers of one turn, or of all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) requests: u32,
    pub(super) calls: u32,
    pub(super) usage: Usage,
}

/// A turn under way.
pub(super) struct Working {
    pub(super) begun: Instant,
    pub(super) phase: Phase,
    pub(super) count: Count,
    pub(super) is_stopping: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Phase {
    /// Something slow that says how far it is.
    Step(String),
    Waiting,
    Thinking,
    Writing,
    Asking,
}

/// What the bottom line shows.
#[derive(Default)]
pub(super) struct Status {
    pub(super) facts: Facts,
    pub(super) image: String,
    pub(super) used: u64,
    pub(super) window: Option<u64>,
    pub(super) speed: Option<f64>,
    pub(super) all: Count,
    pub(super) is_ready: bool,
    /// Plan mode is on.
    pub(super) is_planning: bool,
}

impl Status {
    /// Returns its parts, the most important first: a narrow terminal shows fewer.
    pub(super) fn parts(&self) -> Vec<String> {
        let mode = text::line(&self.facts.mode);
        let mut parts = vec![if self.is_planning {
            format!("plan ({mode})")
        } else {
            mode
        }];
        if !self.facts.model.is_empty() {
            parts.push(text::line(&self.facts.model));
        }
        if let Some(window) = self.window.filter(|window| *window > 0 && self.used > 0) {
            let percent = self.used.saturating_mul(100) / window;
            let full = (percent.min(100) / 10) as usize;
            parts.push(format!(
                "{}{} {percent} %",
                "▰".repeat(full),
                "▱".repeat(10 - full)
            ));
        }
        if let Some(branch) = &self.facts.branch {
            parts.push(text::line(branch));
        }
        if let Some(cost) = self.all.usage.cost_usd.filter(|cost| *cost > 0.0) {
            parts.push(format!("${cost:.2}"));
        }
        if let Some(speed) = self.speed {
            parts.push(format!("{speed:.0} tok/s"));
        }
        if !self.image.is_empty() {
            parts.push(text::line(&self.image));
        }
        if !self.facts.limits.is_empty() {
            parts.push(text::line(&self.facts.limits));
        }
        parts
    }
}

/// Says how far a slow step is.
pub(super) fn step(progress: &Progress) -> String {
    let mut words = text::line(&progress.task);
    match (progress.total, progress.unit) {
        (Some(total), Unit::Bytes | Unit::Tokens | Unit::Steps | Unit::Percent) if total > 0 => {
            let percent = progress.done.saturating_mul(100) / total;
            words.push_str(&format!(" {} %", percent.min(100)));
        }
        (None, Unit::Tokens) if progress.done > 0 => {
            words.push_str(&format!(" {} tokens", tokens(progress.done)));
        }
        _ => {}
    }
    let detail = text::line(progress.detail.trim());
    if !detail.is_empty() {
        words.push_str(&format!(": {detail}"));
    }
    words
}

/// Says what a turn came to: `3 files, +12 −4, 8 requests, 14.2 k tokens (91 % cached), 3.1 s`.
pub(super) fn summary(count: &Count, changes: Option<&ProjectChanges>, ms: u64) -> String {
    let mut parts: Vec<String> = changes.map(ProjectChanges::words).into_iter().collect();
    parts.push(match count.requests {
        1 => "1 request".to_owned(),
        n => format!("{n} requests"),
    });
    let usage = &count.usage;
    if usage.total() > 0 {
        let cached = usage.cached.saturating_mul(100) / usage.prompt.max(1);
        parts.push(format!(
            "{} tokens ({cached} % cached)",
            tokens(usage.total())
        ));
    }
    parts.push(call::duration(ms));
    if let Some(cost) = usage.cost_usd {
        parts.push(format!("${cost:.2}"));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use podbay_event::ChangedLines;

    use super::*;

    #[test]
    fn a_turn_is_summed_up_in_a_line() {
        let usage = Usage {
            prompt: 13_000,
            cached: 11_830,
            completion: 1200,
            cost_usd: Some(0.02),
        };
        let count = Count {
            requests: 8,
            calls: 9,
            usage,
        };
        let changes = ProjectChanges {
            n: 3,
            lines: Some(ChangedLines {
                added: 12,
                removed: 4,
            }),
            ..ProjectChanges::default()
        };
        assert_eq!(
            summary(&count, Some(&changes), 3100),
            "3 files, +12 −4, 8 requests, 14.2 k tokens (91 % cached), 3.1 s, $0.02"
        );
        assert_eq!(summary(&Count::default(), None, 5), "0 requests, 5 ms");
    }

    #[test]
    fn a_slow_step_says_how_far_it_is() {
        let progress = Progress {
            task: "reading the prompt".to_owned(),
            done: 400,
            total: Some(1000),
            unit: Unit::Tokens,
            detail: "x\x1b[2J".to_owned(),
            finished: false,
        };
        assert_eq!(step(&progress), "reading the prompt 40 %: x\\x1b[2J");
    }
}
