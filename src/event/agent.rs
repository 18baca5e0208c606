use serde::Deserialize;
use serde::Serialize;

use super::LimitKind;
use super::RunStatus;
use super::Usage;

/// What an agent that was to check something found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentVerdict {
    Pass,
    Fail,
    /// Something could not be checked, or nothing was run.
    Partial,
}

impl AgentVerdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Partial => "PARTIAL",
        }
    }
}

/// How an agent that another one started came to its end.
#[derive(Clone, Copy, Debug)]
pub struct AgentEnd<'a> {
    pub agent: &'a str,
    pub status: RunStatus,
    pub limit: Option<LimitKind>,
    pub verdict: Option<AgentVerdict>,
    pub turns: u32,
    pub tool_calls: u32,
    pub usage: &'a Usage,
}

impl AgentEnd<'_> {
    /// Says how it ended, such as `explore: completed (3 requests, 5 calls, 1200 tokens)`.
    pub fn words(&self) -> String {
        let Self {
            agent,
            status,
            limit,
            verdict,
            turns,
            tool_calls,
            usage,
        } = *self;
        let how = match (status, limit) {
            (RunStatus::Completed, _) => "completed".to_owned(),
            (RunStatus::Failed, _) => "failed".to_owned(),
            (RunStatus::Blocked, _) => "blocked".to_owned(),
            (RunStatus::Interrupted, _) => "interrupted".to_owned(),
            (RunStatus::Limit, None) => "stopped at a limit".to_owned(),
            (RunStatus::Limit, Some(limit)) => {
                format!("stopped at the limit of {}", limit_word(limit))
            }
        };
        let cost = usage
            .cost_usd
            .map(|cost| format!(", ${cost:.4}"))
            .unwrap_or_default();
        let verdict = verdict.map_or_else(String::new, |verdict| {
            format!(", verdict {}", verdict.as_str())
        });
        format!(
            "{agent}: {how}{verdict} ({}, {}, {} tokens{cost})",
            counted("request", turns),
            counted("call", tool_calls),
            usage.total()
        )
    }
}

fn limit_word(limit: LimitKind) -> &'static str {
    match limit {
        LimitKind::Turns => "requests",
        LimitKind::Time => "time",
        LimitKind::Tokens => "tokens",
        LimitKind::Cost => "cost",
        LimitKind::Stuck => "repeated calls",
        LimitKind::Context => "context",
    }
}

fn counted(what: &str, n: u32) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_agent_says_how_and_what_it_took() {
        let usage = Usage {
            prompt: 1000,
            completion: 200,
            ..Usage::default()
        };
        let end = AgentEnd {
            agent: "explore",
            status: RunStatus::Limit,
            limit: Some(LimitKind::Turns),
            verdict: Some(AgentVerdict::Partial),
            turns: 1,
            tool_calls: 2,
            usage: &usage,
        };
        assert_eq!(
            end.words(),
            "explore: stopped at the limit of requests, verdict PARTIAL (1 request, 2 calls, 1200 tokens)"
        );
    }
}
