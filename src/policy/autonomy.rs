use serde::Deserialize;
use serde::Serialize;

use super::Mode;

/// How much the agent decides by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Autonomy {
    /// Nothing: each change and each command is asked about, and what the task leaves open too.
    Architect,
    /// Whatever only reads.
    Ask,
    /// Whatever stays in the sandbox.
    Auto,
    /// The same, and nobody is asked anything.
    Unattended,
}

impl Autonomy {
    pub fn mode(self) -> Mode {
        match self {
            Self::Architect | Self::Ask => Mode::Ask,
            Self::Auto | Self::Unattended => Mode::Auto,
        }
    }

    /// Returns the turns of a task where the settings name none: whoever asks often needs few, and
    /// whom nobody helps needs many.
    pub fn max_turns(self) -> Option<u32> {
        match self {
            Self::Architect => Some(10),
            Self::Ask | Self::Auto => None,
            Self::Unattended => Some(50),
        }
    }
}
