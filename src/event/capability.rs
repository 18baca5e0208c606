use serde::Deserialize;
use serde::Serialize;

/// What carrying out an action needs; policy derives it and a person is asked about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "capability", rename_all = "snake_case")]
pub enum Capability {
    ReadFiles,
    WriteFiles,
    RunInBox,
    ChangeSessionGit,
    SpawnAgent,
    /// The project's own instructions for agents.
    UpdateInstructions,
    /// A second file of such, beside one that is in use.
    AddInstructions,
    Network {
        host: String,
    },
    ChangeOutsideBox,
    /// A file whose name is protected.
    ProtectedName {
        name: String,
    },
    BlockedCommand {
        reason: String,
    },
    GatedGit {
        operation: String,
    },
    /// A program that waits in the middle of a call, as the sandbox tells it.
    RunProgram {
        program: String,
        file: String,
        directory: String,
        /// The rule that asks.
        rule: String,
    },
}

impl Capability {
    /// Stands for a host that cannot be read.
    pub const UNKNOWN_HOST: &str = "unknown";

    /// Returns the words a person reads: "allow the agent to …".
    pub fn describe(&self) -> String {
        match self {
            Self::ReadFiles => "read files".to_owned(),
            Self::WriteFiles => "change files in the project".to_owned(),
            Self::RunInBox => "run a command in the sandbox".to_owned(),
            Self::ChangeSessionGit => "change the session's git repository".to_owned(),
            Self::SpawnAgent => "start another agent".to_owned(),
            Self::UpdateInstructions => "change the project's instructions for agents".to_owned(),
            Self::AddInstructions => "make PODBAY.md beside the instructions for agents that the project has".to_owned(),
            Self::Network { host } if host == Self::UNKNOWN_HOST => "reach a host over the network that its words do not say".to_owned(),
            Self::Network { host } => format!("reach {host} over the network"),
            Self::ChangeOutsideBox => "change something outside of the sandbox".to_owned(),
            Self::ProtectedName { name } => format!("touch the protected file {name}"),
            Self::BlockedCommand { reason } => format!("run a blocked command ({reason})"),
            Self::RunProgram { program, file, directory, rule } => {
                format!("run the program `{program}` ({file}) in {directory}, about which the rule `{rule}` asks")
            }
            Self::GatedGit { operation } => format!("run git {operation}"),
        }
    }
}

/// What policy says of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    Ask,
    Deny,
}

#[cfg(test)]
mod tests {
    use super::Capability;

    #[test]
    fn a_host_is_named_or_it_is_said_that_none_is_known() {
        let reach = |host: &str| Capability::Network { host: host.to_owned() }.describe();
        assert_eq!(reach("example.com"), "reach example.com over the network");
        assert_eq!(reach(Capability::UNKNOWN_HOST), "reach a host over the network that its words do not say");
    }
}
