//! Commands that the person runs in the session's sandbox themselves.

use super::Agent;
use super::Failure;
use super::Interrupt;
use crate::event::CallStatus;
use crate::event::ToolCall;
use crate::tools::Pipeline;

/// What came of a command of the person's own.
#[derive(Debug)]
pub struct ByHand {
    pub status: CallStatus,
    /// What the model reads of it, with their next message.
    pub text: String,
}

impl Agent {
    /// Returns the pipeline that its calls go through.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Runs a command that the person typed, through the pipeline like every call; the model is told of it before their next words.
    pub async fn run_by_hand(&mut self, command: &str, interrupt: &Interrupt) -> Result<ByHand, Failure> {
        self.n_by_hand += 1;
        let arguments = serde_json::json!({ "command": command }).to_string();
        let call = ToolCall { id: format!("hand-{}", self.n_by_hand), name: "bash".to_owned(), arguments };
        let finished = self.pipeline.run_by_hand(&call, &interrupt.step()).await;
        interrupt.idle();
        let finished = finished.map_err(Failure::Sandbox)?;
        self.note(&format!("The person ran this in the sandbox themselves:\n$ {command}\n{}", finished.text));
        Ok(ByHand { status: finished.status, text: finished.text })
    }
}
