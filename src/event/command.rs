use serde::Deserialize;
use serde::Serialize;

/// What a person tells a running session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A message for the model.
    Say(String),
    /// Stop the generation or the call under way; the second one ends the run.
    Interrupt,
    Quit,
}

/// What a person says to a question about one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// This once.
    Allow,
    /// This and every later call with the same capability, until the session ends.
    AllowSession,
    Deny,
    /// Deny, and end the session.
    Quit,
}
