//! What rules and answers call an action: by the tool that makes it.

use super::Action;
use super::HostCall;
use crate::wire::Call;
use crate::wire::GitQuery;
use crate::wire::Processes;

/// What rules call a command of the settings' own: no tool, so that what is said of the model's `bash` does not speak of it.
pub const HOOK: &str = "hook";

/// Returns the name of the tool that makes an action.
pub(super) fn tool(action: &Action) -> &'static str {
    match action {
        Action::Box(Call::ReadFile(_)) | Action::Host(HostCall::ReadArtifact { .. }) => "read_file",
        Action::Host(HostCall::Think { .. }) => "think",
        Action::Host(HostCall::Tasks(_)) => "task_list",
        Action::Host(HostCall::AskUser { .. }) => "ask_user",
        Action::Host(HostCall::FindTools(_)) => "more_tools",
        Action::Box(Call::Env(_)) => "env",
        Action::Box(Call::Cd(_)) => "cd",
        Action::Box(Call::Git(git)) => match git.query {
            GitQuery::Status => "git_status",
            GitQuery::Diff { .. } => "git_diff",
            GitQuery::Log { .. } => "git_log",
            GitQuery::Commit { .. } => "git_commit",
            GitQuery::Branch(_) => "git_branch",
            GitQuery::Checkout { .. } => "git_checkout",
            GitQuery::Stash(_) => "git_stash",
        },
        Action::Box(Call::Processes(Processes::List)) => "list_processes",
        Action::Box(Call::Processes(Processes::Output { .. })) => "get_process_output",
        Action::Box(Call::Processes(Processes::Stop { .. })) => "stop_process",
        Action::Box(Call::Archive(_)) => "archive",
        Action::Box(Call::UpdateConfig(_)) => "update_config",
        Action::Box(Call::WriteFile(_)) => "write_file",
        Action::Box(Call::EditFile(_)) => "edit_file",
        Action::Box(Call::MultiEdit(_)) => "multi_edit",
        Action::Box(Call::ApplyPatch(_)) => "apply_patch",
        Action::Box(Call::EditLines(_)) => "edit_lines",
        Action::Box(Call::DeleteFile(_)) => "delete_file",
        Action::Box(Call::CopyFile(_)) => "copy_file",
        Action::Box(Call::MoveFile(_)) => "move_file",
        Action::Box(Call::Mkdir(_)) => "mkdir",
        Action::Box(Call::Tree(_)) => "tree",
        Action::Box(Call::ListDirectory(_)) => "list_directory",
        Action::Box(Call::Glob(_)) => "glob",
        Action::Box(Call::Grep(_)) => "grep",
        Action::Box(Call::Bash(_) | Call::Exec(_)) => "bash",
        Action::Box(Call::Hook(_)) | Action::Host(HostCall::Hook(_)) => HOOK,
    }
}
