use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use podbay_event::ByteSize;

/// How much of each session is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Options {
    /// Most bytes of one session's artifacts; the oldest are deleted first.
    pub artifacts_max: ByteSize,
    /// `events.jsonl` and `metrics.jsonl` are set aside, each with `.1` behind its name, when they
    /// are this large.
    pub events_max: ByteSize,
    /// `podbay gc` removes sessions not used for this many days; 0 keeps all.
    pub keep_days: u32,
    /// `podbay gc` keeps this many sessions, those used last; 0 keeps all.
    pub keep_sessions: u32,
}

/// Notes that later sessions are shown: the section `[memory]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MemoryOptions {
    /// Let the model save notes for later sessions, and show it those of earlier ones.
    pub enabled: bool,
    /// Ask the model, at the end of a session in which tools were used, what is worth keeping. That
    /// is one more request; what it answers is proposed and counts once you keep it.
    pub learn: bool,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            learn: false,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            artifacts_max: ByteSize::mib(256),
            events_max: ByteSize::mib(16),
            keep_days: 0,
            keep_sessions: 0,
        }
    }
}
