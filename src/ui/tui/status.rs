//! What is running, and where: the line above the editor and the one at the bottom.

use std::time::Instant;

use podbay_event::Progress;
use podbay_event::Unit;

use super::transcript::tokens;
use crate::text;
use crate::turn_summary::Count;

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
    /// The model has answered: the changes are applied, or counted for a question.
    Ending,
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

#[cfg(test)]
mod tests {
    use super::*;

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
