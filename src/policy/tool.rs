//! The tool names by which rules and answers refer to actions.

use super::Action;
use super::host_call::FOREIGN;
use super::host_call::HOST_TOOLS;
use podbay_wire::Call;
use podbay_wire::GitBranch;
use podbay_wire::GitQuery;
use podbay_wire::RuleSubject;

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
pub(super) fn tool(action: &Action) -> &str {
    match action {
        Action::Box(call) => call.facts().tool,
        Action::Host(call) => call.facts().tool,
    }
}

/// Returns what the pattern of a rule for this tool is compared with.
pub(super) fn subject(tool: &str) -> RuleSubject {
    if tool == HOOK {
        return RuleSubject::Commands;
    }
    if HOST_TOOLS.contains(&tool) || tool.starts_with(FOREIGN) {
        return RuleSubject::Nothing;
    }
    podbay_wire::tool(tool).map_or(RuleSubject::Paths, |tool| tool.subject)
}
