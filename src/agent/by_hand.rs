//! What the person runs and looks at in the session's sandbox themselves.

use async_recursion::async_recursion as boxed;

use super::Agent;
use super::Failure;
use super::Interrupt;
use podbay_event::CallStatus;
use podbay_event::ToolCall;
use podbay_tools::Pipeline;

/// What came of a command of the person's own.
#[derive(Debug)]
pub struct ByHand {
    pub status: CallStatus,
    /// Something of it was carried out.
    pub has_begun: bool,
    /// What the person reads of it; of a command the model does too, with their next message.
    pub text: String,
}

impl Agent {
    /// Returns the pipeline that its calls go through.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Runs a command that the person typed, through the pipeline like every call; the model is
    /// told of it before their next words.
    #[boxed]
    pub async fn run_by_hand(
        &mut self,
        command: &str,
        interrupt: &Interrupt,
    ) -> Result<ByHand, Failure> {
        let ran = self
            .call_by_hand(
                "bash",
                &serde_json::json!({ "command": command }),
                interrupt,
            )
            .await?;
        self.note(&format!(
            "The person ran this in the sandbox themselves:\n$ {command}\n{}",
            ran.text
        ));
        Ok(ran)
    }

    /// Looks at the folders below one for the person, through the pipeline like every call. Without
    /// a path it is the project.
    #[boxed]
    pub async fn tree_by_hand(
        &mut self,
        path: &str,
        interrupt: &Interrupt,
    ) -> Result<ByHand, Failure> {
        let arguments = if path.is_empty() {
            serde_json::json!({})
        } else {
            serde_json::json!({ "path": path })
        };
        self.call_by_hand("tree", &arguments, interrupt).await
    }

    async fn call_by_hand(
        &mut self,
        tool: &str,
        arguments: &serde_json::Value,
        interrupt: &Interrupt,
    ) -> Result<ByHand, Failure> {
        self.n_by_hand += 1;
        let call = ToolCall {
            id: format!("hand-{}", self.n_by_hand),
            name: tool.to_owned(),
            arguments: arguments.to_string(),
        };
        let finished = self.pipeline.run_by_hand(&call, &interrupt.step()).await;
        interrupt.idle();
        let finished = finished.map_err(Failure::Sandbox)?;
        Ok(ByHand {
            status: finished.status,
            has_begun: finished.has_begun,
            text: finished.text,
        })
    }
}
