//! Commands that the user runs in the session's sandbox themselves.

use std::time::Duration;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Agent;
use super::Failure;
use super::Interrupt;
use podbay_event::CallStatus;
use podbay_event::ToolCall;
use podbay_tools::Pipeline;
use podbay_wire::Call;
use podbay_wire::Glob;
use podbay_wire::Output;

/// Files that are offered for completion at most.
const MOST_FILES: u32 = 20_000;
const FILES_WITHIN: Duration = Duration::from_secs(5);

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
            "The user ran this in the sandbox themselves:\n$ {command}\n{}",
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

    /// Returns the project's files as they are offered for completion: what git ignores is left out.
    #[boxed]
    pub async fn files(&self, cancel: &CancellationToken) -> Vec<String> {
        let call = Call::Glob(Glob {
            pattern: "**/*".to_owned(),
            path: ".".into(),
            exclude: None,
            include_ignored: false,
            max_results: MOST_FILES,
        });
        let found = self
            .pipeline
            .peek(call, Box::new(|_, _| {}), cancel, FILES_WITHIN)
            .await;
        match found {
            Ok(Some(Output::Files(files))) => files.paths.iter().map(ToString::to_string).collect(),
            // Completion without files is no reason to stop.
            _ => Vec::new(),
        }
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
