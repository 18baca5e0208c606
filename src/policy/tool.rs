//! The tool names by which rules and answers refer to actions.

use super::Action;
use super::HostCall;
use podbay_wire::Call;
use podbay_wire::GitBranch;
use podbay_wire::GitQuery;
use podbay_wire::Processes;

/// The name of a command from the settings in rules: not a tool, so that rules about the model's
/// `bash` do not match it.
pub const HOOK: &str = "hook";

/// The tool that starts commands in the background.
pub const BACKGROUND: &str = "start_background_process";

/// The tool whose rules match branch names.
pub(super) const BRANCH: &str = "git_branch";

/// Returns the branch that an action creates or deletes.
pub(super) fn branch(action: &Action) -> Option<&str> {
    match action {
        Action::Box(Call::Git(git)) => match &git.query {
            GitQuery::Branch(GitBranch::Create { name } | GitBranch::Delete { name }) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the name of the tool that makes an action.
pub(super) fn tool(action: &Action) -> &'static str {
    match action {
        Action::Box(call) => of(call),
        Action::Host(HostCall::ReadArtifact { .. }) => "read_file",
        Action::Host(HostCall::Think { .. }) => "think",
        Action::Host(HostCall::Tasks(_)) => "task_list",
        Action::Host(HostCall::AskUser { .. }) => "ask_user",
        Action::Host(HostCall::FindTools(_)) => "more_tools",
        Action::Host(HostCall::Hook(_)) => HOOK,
    }
}

fn of(call: &Call) -> &'static str {
    match call {
        Call::ByName { call } => of(call),
        Call::ReadFile(_) => "read_file",
        Call::Env(_) => "env",
        Call::Cd(_) => "cd",
        Call::Git(git) => match git.query {
            GitQuery::Status => "git_status",
            GitQuery::Diff { .. } => "git_diff",
            GitQuery::Log { .. } => "git_log",
            GitQuery::Commit { .. } => "git_commit",
            GitQuery::Branch(_) => BRANCH,
            GitQuery::Checkout { .. } => "git_checkout",
            GitQuery::Stash(_) => "git_stash",
        },
        Call::Processes(Processes::List) => "list_processes",
        Call::Processes(Processes::Output { .. }) => "get_process_output",
        Call::Processes(Processes::Stop { .. }) => "stop_process",
        Call::Archive(_) => "archive",
        Call::UpdateConfig(_) => "update_config",
        Call::WriteFile(_) => "write_file",
        Call::EditFile(_) => "edit_file",
        Call::MultiEdit(_) => "multi_edit",
        Call::ApplyPatch(_) => "apply_patch",
        Call::EditLines(_) => "edit_lines",
        Call::DeleteFile(_) => "delete_file",
        Call::CopyFile(_) => "copy_file",
        Call::MoveFile(_) => "move_file",
        Call::Mkdir(_) => "mkdir",
        Call::Tree(_) => "tree",
        Call::ListDirectory(_) => "list_directory",
        Call::Glob(_) => "glob",
        Call::Grep(_) => "grep",
        Call::Bash(_) | Call::Exec(_) => "bash",
        Call::Hook(_) => HOOK,
    }
}
