use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

use podbay_event::ByteSize;

/// What is kept of a session, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Options {
    /// What the artifacts of one session may take together; the oldest go first.
    pub artifacts_max: ByteSize,
    /// `events.jsonl` is set aside as `events.jsonl.1` when it is this large.
    pub events_max: ByteSize,
    /// `podbay gc` removes sessions that were not written for so many days; 0 keeps them all.
    pub keep_days: u32,
    /// `podbay gc` keeps so many sessions, those written last; 0 keeps them all.
    pub keep_sessions: u32,
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
