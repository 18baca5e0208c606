use serde::Deserialize;
use serde::Serialize;

use super::Mode;

/// How much the agent decides by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Autonomy {
    /// Nothing: each change and each command is asked about, and what the task leaves open too.
    Architect,
    /// Reading only.
    Ask,
    /// Whatever stays in the sandbox.
    Auto,
    /// The same, without any questions.
    Unattended,
}

impl Autonomy {
    pub fn mode(self) -> Mode {
        match self {
            Self::Architect | Self::Ask => Mode::Ask,
            Self::Auto | Self::Unattended => Mode::Auto,
        }
    }

    /// Returns the default limit of turns per task: an agent that often asks needs few, one that
    /// works alone needs many.
    pub fn max_turns(self) -> Option<u32> {
        match self {
            Self::Architect => Some(10),
            Self::Ask | Self::Auto => None,
            Self::Unattended => Some(50),
        }
    }
}
