//! Commands that the user runs in the session's sandbox themselves.

use async_recursion::async_recursion as boxed;

use super::Agent;
use super::Failure;
use super::Interrupt;
use podbay_event::CallStatus;
use podbay_event::ToolCall;
use podbay_tools::Pipeline;

/// The result of a user's command.
#[derive(Debug)]
pub struct UserCommand {
    pub status: CallStatus,
    /// Some of it was executed.
    pub has_begun: bool,
    /// The output for the user; the model reads a command's output too, with the next message.
    pub text: String,
}

impl Agent {
    /// Returns the pipeline of the agent's calls.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Runs a command typed by the user through the pipeline, like every call; the model is told
    /// about it before the next message.
    #[boxed]
    pub async fn run_by_hand(
        &mut self,
        command: &str,
        interrupt: &Interrupt,
    ) -> Result<UserCommand, Failure> {
        let ran = self
            .call_for_user(
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

    /// Lists the folder tree below `path` for the user, through the pipeline like every call.
    /// Without a path it is the project.
    #[boxed]
    pub async fn tree_by_hand(
        &mut self,
        path: &str,
        interrupt: &Interrupt,
    ) -> Result<UserCommand, Failure> {
        let arguments = if path.is_empty() {
            serde_json::json!({})
        } else {
            serde_json::json!({ "path": path })
        };
        self.call_for_user("tree", &arguments, interrupt).await
    }

    async fn call_for_user(
        &mut self,
        tool: &str,
        arguments: &serde_json::Value,
        interrupt: &Interrupt,
    ) -> Result<UserCommand, Failure> {
        self.n_user_commands += 1;
        let call = ToolCall {
            id: format!("hand-{}", self.n_user_commands),
            name: tool.to_owned(),
            arguments: arguments.to_string(),
        };
        let finished = self.pipeline.run_by_hand(&call, &interrupt.step()).await;
        interrupt.idle();
        let finished = finished.map_err(Failure::Sandbox)?;
        Ok(UserCommand {
            status: finished.status,
            has_begun: finished.has_begun,
            text: finished.text,
        })
    }
}
