//! What a run came to, in a line.

use podbay_event::LimitKind;
use podbay_event::RunStatus;
use podbay_event::Usage;

use super::call;
use super::note::limit_word;

/// Says what a run took.
pub(super) fn run_summary(turns: u32, tool_calls: u32, usage: &Usage, ms: u64) -> String {
    format!(
        "{}, {}, {}, {}",
        n("turn", turns),
        n("call", tool_calls),
        tokens(usage),
        call::duration(ms)
    )
}

pub(super) fn run_word(status: RunStatus, limit: Option<LimitKind>) -> String {
    match (status, limit) {
        (RunStatus::Completed, _) => "done".to_owned(),
        (RunStatus::Failed, _) => "failed".to_owned(),
        (RunStatus::Limit, Some(limit)) => format!("stopped at the limit of {}", limit_word(limit)),
        (RunStatus::Limit, None) => "stopped at a limit".to_owned(),
        (RunStatus::Blocked, _) => "blocked".to_owned(),
        (RunStatus::Interrupted, _) => "interrupted".to_owned(),
    }
}

fn n(what: &str, count: u32) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn tokens(usage: &Usage) -> String {
    let cached = if usage.cached > 0 {
        format!(" ({} cached)", usage.cached)
    } else {
        String::new()
    };
    let cost = usage
        .cost_usd
        .map(|cost| format!(", ${cost:.4}"))
        .unwrap_or_default();
    format!("{} tokens{cached}{cost}", usage.total())
}
