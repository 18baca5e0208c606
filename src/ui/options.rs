use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;

/// How things are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Options {
    /// Whether text is coloured: `auto` colours a terminal, unless `NO_COLOR` is set.
    pub color: Color,
    /// Show the output of a command while it runs.
    pub stream_during_tools: bool,
    /// Show what the model thinks aloud, where the server tells it apart.
    pub show_thinking: bool,
    /// Show the execution report at the end of a run: what was done, with which files and commands.
    pub report: bool,
    /// Which keys edit a message in a chat at a terminal.
    pub keys: Keys,
}

/// The keys of a line editor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Keys {
    #[default]
    Emacs,
    Vi,
}

/// When text is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Color {
    #[default]
    Auto,
    Always,
    Never,
}
