//! What a turn came to, in a line.

use std::time::Instant;

use podbay_event::Kind;
use podbay_event::ProjectChanges;
use podbay_event::Usage;

use super::agent_lines::innermost;
use super::call;
use super::tui::tokens;

/// The numbers of one turn, or of all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) requests: u32,
    pub(super) calls: u32,
    pub(super) usage: Usage,
}

/// Counts the turn under way, where its summary is made of events alone.
#[derive(Debug, Default)]
pub(super) struct TurnCount {
    begun: Option<Instant>,
    count: Count,
}

impl TurnCount {
    /// Takes an event; returns the summary of a turn that it ends. What the turn changed is an event
    /// of its own, behind it.
    pub(super) fn take(&mut self, kind: &Kind) -> Option<String> {
        match innermost(kind) {
            Kind::UserMessage { .. } if is_own(kind) => {
                *self = Self {
                    begun: Some(Instant::now()),
                    count: Count::default(),
                };
            }
            Kind::AssistantMessage { usage, .. } => {
                self.count.requests += 1;
                self.count.usage += *usage;
            }
            Kind::TaskEnded(_) if is_own(kind) => {
                let took = self.begun.take()?.elapsed();
                let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                return Some(summary(&self.count, None, ms));
            }
            _ => {}
        }
        None
    }
}

/// Returns whether an event is none of an agent that this one started.
fn is_own(kind: &Kind) -> bool {
    !matches!(kind, Kind::AgentEvent { .. })
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
    use podbay_event::RunStatus;
    use podbay_event::TaskEnd;

    use super::*;

    #[test]
    fn a_turn_of_events_is_counted_from_its_message_to_its_end() {
        let said = || Kind::UserMessage {
            text: "go".to_owned(),
            images: 0,
        };
        let answered = |completion| Kind::AssistantMessage {
            text: String::new(),
            thinking: String::new(),
            calls: Vec::new(),
            raw: None,
            usage: Usage {
                prompt: 100,
                cached: 50,
                completion,
                cost_usd: None,
            },
            interrupted: false,
            cut: false,
            duration_ms: 1,
        };
        let ended = || {
            Kind::TaskEnded(TaskEnd {
                status: RunStatus::Completed,
                response: String::new(),
                denied: Vec::new(),
            })
        };
        let mut turn = TurnCount::default();
        for _ in 0..2 {
            for kind in [said(), answered(5), answered(5)] {
                assert_eq!(turn.take(&kind), None);
            }
            let summary = turn.take(&ended()).expect("it is over");
            assert!(
                summary.starts_with("2 requests, 210 tokens (50 % cached), "),
                "{summary}"
            );
        }
        assert_eq!(turn.take(&ended()), None, "no turn is under way");
    }

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
}
