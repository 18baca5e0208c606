use serde::Deserialize;
use serde::Serialize;

use super::Capability;
use super::ToolCall;

/// What a user tells a running session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A message for the model.
    Say(String),
    /// Stop the generation or the call under way; the second one ends the run.
    Interrupt,
    Quit,
}

/// What a user is asked about: one call, as it will be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub call: ToolCall,
    pub capabilities: Vec<Capability>,
    pub lasting: Lasting,
    /// The agent whose call it is, where another one started it.
    pub agent: Option<String>,
}

/// For how long a yes may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// For this call alone.
    Once { because: String },
    /// Also for later calls that are exactly this.
    Exactly {
        /// What a call must be, in words.
        what: String,
        /// Whether it can be remembered for the project.
        always: bool,
        /// It is an edit, and a yes may hold for all edits until the session ends.
        edits: bool,
    },
    /// For the call that runs and waits in its middle.
    InCall {
        /// What of it a yes covers.
        means: String,
        /// What one that lasts covers; `None`: none may.
        lasting: Option<LastingCommand>,
    },
}

/// What a yes covers that lasts longer than the command that waits, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastingCommand {
    /// Until the session ends.
    pub session: String,
    /// In the project; `None`: it cannot be remembered.
    pub project: Option<String>,
}

/// What a user says to a question about one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// This once.
    Allow,
    /// This and every later call that is exactly this, until the session ends.
    AllowSession,
    /// This edit and every later one by a tool for edits, but of protected names, until the session
    /// ends.
    AllowEdits,
    /// This and every later call that is exactly this, in every session of this project.
    AllowAlways,
    Deny,
    /// This and every later call that is exactly this, until the session ends.
    DenySession,
    /// Deny, and end the session.
    Quit,
}

/// An answer with what the user says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    pub answer: Answer,
    /// Why not, or what to do instead; the model reads it.
    pub reason: Option<String>,
}

impl Answered {
    /// Whether it is a no for this once, without a word to the model.
    pub fn is_plain_no(&self) -> bool {
        self.answer == Answer::Deny && self.reason.is_none()
    }
}

impl From<Answer> for Answered {
    fn from(answer: Answer) -> Self {
        Self {
            answer,
            reason: None,
        }
    }
}
