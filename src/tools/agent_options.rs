use serde::Deserialize;
use serde::Serialize;

use podbay_event::Seconds;

/// Agents that the model starts with `spawn_agent`: the section `[agents]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct AgentOptions {
    /// Whether the model may start agents.
    pub enabled: bool,
    /// Most agents that run at once; never more than the model server has slots, where it says so.
    pub parallel: u32,
    /// How many levels of agents may start others: with 0 only the agent that you talk to may.
    pub max_depth: u32,
    /// Longest time of one agent; 0 is no limit but that of the task.
    pub timeout: Seconds,
}

impl Default for AgentOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            parallel: 2,
            max_depth: 0,
            timeout: Seconds::new(300),
        }
    }
}
