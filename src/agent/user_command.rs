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
use podbay_wire::ReadFile;

/// Files that are offered for completion at most.
const MOST_FILES: u32 = 20_000;
const FILES_WITHIN: Duration = Duration::from_secs(5);
const BRANCH_WITHIN: Duration = Duration::from_secs(1);

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

    /// Returns the branch that the project is on in the sandbox, or where its checkout is detached;
    /// `None` where it is no repository, or has its git elsewhere.
    #[boxed]
    pub async fn branch(&self, cancel: &CancellationToken) -> Option<String> {
        let call = Call::ReadFile(ReadFile {
            path: Some(".git/HEAD".into()),
            offset: 1,
            limit: 1,
            max_bytes: 1024,
            cursor: None,
            max_files: 1,
            images: false,
            protected: false,
        });
        let read = self
            .pipeline
            .peek(call, Box::new(|_, _| {}), cancel, BRANCH_WITHIN)
            .await;
        match read {
            Ok(Some(Output::Read(read))) => branch_of(&read.files.first()?.text),
            _ => None,
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

/// Reads what git writes into `HEAD`.
fn branch_of(head: &str) -> Option<String> {
    let head = head.trim();
    if let Some(name) = head.strip_prefix("ref: ") {
        return Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned());
    }
    let id = head.get(..12)?;
    let is_id = id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| format!("detached at {id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_named_as_git_names_it() {
        for (head, branch) in [
            ("ref: refs/heads/main\n", Some("main")),
            ("ref: refs/heads/fix/a-b\n", Some("fix/a-b")),
            (
                "ref: refs/remotes/origin/main",
                Some("refs/remotes/origin/main"),
            ),
            (
                "0123456789abcdef0123456789abcdef01234567\n",
                Some("detached at 0123456789ab"),
            ),
            ("", None),
            ("no reference at all", None),
        ] {
            assert_eq!(branch_of(head).as_deref(), branch, "{head}");
        }
    }
}
