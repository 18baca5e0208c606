//! What the fields of records are made of.

use serde::Deserialize;
use serde::Serialize;

/// One call as the model asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// JSON text, byte for byte as the model wrote it.
    pub arguments: String,
}

/// What stands in the place of a result from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evicted {
    pub call: String,
    pub text: String,
}

/// One tool as the model is told about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolTold {
    pub name: String,
    pub description: String,
    /// A JSON schema.
    pub parameters: serde_json::Value,
}

/// How the model is told about tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolMode {
    /// By the server's own tool calls.
    Native,
    /// By a JSON schema that the answer must fit.
    Constrained,
    /// By text that is searched for calls.
    Text,
}

impl ToolMode {
    /// Returns the word that `llm.tool_mode` has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Constrained => "constrained",
            Self::Text => "text",
        }
    }
}

/// When a command of the user's settings runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    SessionStart,
    UserPrompt,
    PreToolUse,
    PostToolUse,
    PreCompact,
    Stop,
}

impl Moment {
    /// Returns the key of the settings that has its commands.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionStart => "session_start",
            Self::UserPrompt => "user_prompt",
            Self::PreToolUse => "pre_tool_use",
            Self::PostToolUse => "post_tool_use",
            Self::PreCompact => "pre_compact",
            Self::Stop => "stop",
        }
    }
}

/// How a command of the user's settings ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookOutcome {
    Passed,
    /// It kept back what it was asked about.
    Blocked,
    /// It failed, and that held nothing back.
    Failed,
    Cancelled,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    Ok,
    /// It ran and failed, or the command's exit code was not 0.
    Failed,
    /// What it was to change is no longer as the model read it; nothing was changed.
    Conflict,
    /// It met the limit of its time.
    TimedOut,
    /// It never ran: unknown tool or bad arguments.
    Invalid,
    Denied,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    Turns,
    Time,
    Tokens,
    Cost,
    Stuck,
    Context,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Completed,
    Failed,
    Limit,
    Blocked,
    Interrupted,
}

/// How far a slow step is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// What is being done, such as "downloading model smollm2".
    pub task: String,
    pub done: u64,
    /// `None` where the end is not known.
    pub total: Option<u64>,
    pub unit: Unit,
    /// The last line of what happens, such as a build step; at the end of a wait in vain,
    /// [`super::GIVEN_UP`].
    pub detail: String,
    pub finished: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Bytes,
    Tokens,
    Steps,
    Percent,
    /// Of a wait: how long it has been, and how long it may be at most. Nothing is ready before it
    /// ends.
    Seconds,
}
