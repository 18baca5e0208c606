use serde::Deserialize;
use serde::Serialize;

use podbay_wire::WriteChange;

/// What executing an action needs; policy derives it and a user is asked about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "capability", rename_all = "snake_case")]
pub enum Capability {
    ReadFiles,
    WriteFiles,
    RunInSandbox,
    ChangeSessionGit,
    SpawnAgent,
    /// A note that later sessions are shown.
    SaveMemory,
    /// An install phase: package managers with their commands, and the hosts that they reach.
    InstallDependencies {
        what: String,
    },
    /// The project's own instructions for agents.
    UpdateInstructions,
    /// A second file of such, beside one that is in use.
    AddInstructions,
    Network {
        host: String,
    },
    ChangeOutsideSandbox,
    /// A call of an MCP server that the user's settings run on their machine.
    UseHostServer {
        server: String,
    },
    /// A call of an MCP server elsewhere, which gets a key of the user.
    UseServerWithKey {
        server: String,
    },
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
    /// A write for which a program waits in the middle of a call, as the sandbox tells it.
    HeldWrite {
        path: String,
        change: WriteChange,
        /// Whether the name is a protected one, so that a yes opens this write alone.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        protected: bool,
        program: String,
        file: String,
        directory: String,
    },
}

impl Capability {
    /// Stands for a host that cannot be read.
    pub const UNKNOWN_HOST: &str = "unknown";

    /// Returns the words a user reads: "allow the agent to …".
    pub fn describe(&self) -> String {
        match self {
            Self::ReadFiles => "read files".to_owned(),
            Self::WriteFiles => "change files in the project".to_owned(),
            Self::RunInSandbox => "run a command in the sandbox".to_owned(),
            Self::ChangeSessionGit => "change the session's git repository".to_owned(),
            Self::SpawnAgent => "start another agent".to_owned(),
            Self::SaveMemory => "save a note that later sessions are shown".to_owned(),
            Self::InstallDependencies { what } => format!("install dependencies with {what}"),
            Self::UpdateInstructions => "change the project's instructions for agents".to_owned(),
            Self::AddInstructions => {
                "make PODBAY.md beside the instructions for agents that the project has".to_owned()
            }
            Self::Network { host } if host == Self::UNKNOWN_HOST => {
                "reach a host over the network that its words do not say".to_owned()
            }
            Self::Network { host } => format!("reach {host} over the network"),
            Self::ChangeOutsideSandbox => "change something outside of the sandbox".to_owned(),
            Self::UseHostServer { server } => {
                format!("have the MCP server `{server}` do it on your machine")
            }
            Self::UseServerWithKey { server } => {
                format!("have the MCP server `{server}` do it with your key")
            }
            Self::ProtectedName { name } => format!("touch the protected file {name}"),
            Self::BlockedCommand { reason } => format!("run a blocked command ({reason})"),
            Self::RunProgram {
                program,
                file,
                directory,
                rule,
            } => {
                format!(
                    "run the program `{program}` ({file}) in {directory}, about which the rule `{rule}` asks"
                )
            }
            Self::HeldWrite {
                path,
                change,
                protected,
                program,
                ..
            } => {
                format!(
                    "let `{program}` {}{}",
                    changing(*change, path),
                    if *protected { ", a protected name" } else { "" }
                )
            }
            Self::GatedGit { operation } => format!("run git {operation}"),
        }
    }

    /// Names what a user who cannot be asked gives it with, where that is one flag.
    pub fn grant(&self) -> Option<&'static str> {
        match self {
            Self::InstallDependencies { .. } => {
                Some("`--allow install_dependencies`, or that rule in `policy.allow`,")
            }
            _ => None,
        }
    }

    /// Returns what a program that waits in the middle of a call wants; `None` for what a call
    /// needs before it begins.
    pub fn wanted(&self) -> Option<String> {
        match self {
            Self::RunProgram {
                program,
                file,
                directory,
                rule,
            } => Some(format!(
                "`{program}` ({file}) wants to run in {directory}, and the rule `{rule}` asks about it"
            )),
            Self::HeldWrite {
                path,
                change,
                protected,
                program,
                file,
                ..
            } => {
                let protected = if *protected {
                    ", which is a protected name"
                } else {
                    ""
                };
                // A program chooses its first word itself.
                let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
                let is_named = file.is_empty()
                    || name(file).contains(&name(program.split(' ').next().unwrap_or_default()));
                let file = if is_named {
                    String::new()
                } else {
                    format!(" ({file})")
                };
                Some(format!(
                    "`{program}`{file} wants to {}{protected}",
                    changing(*change, path)
                ))
            }
            _ => None,
        }
    }
}

/// Says what becomes of a file: "remove build/x.o".
fn changing(change: WriteChange, path: &str) -> String {
    match change {
        WriteChange::Write => format!("write {path}"),
        WriteChange::Remove => format!("remove {path}"),
        WriteChange::Rename => format!("rename {path}"),
        WriteChange::MakeFolder => format!("make the folder {path}"),
        WriteChange::Link => format!("make the link {path}"),
        WriteChange::Attributes => format!("change the mode, owner or times of {path}"),
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
    use super::WriteChange;

    #[test]
    fn a_held_write_says_what_becomes_of_which_file() {
        let wanted = |change, protected| {
            let words =
                ["build/x.o", "make test", "/usr/bin/make", "/workspace"].map(str::to_owned);
            let [path, program, file, directory] = words;
            Capability::HeldWrite {
                path,
                change,
                protected,
                program,
                file,
                directory,
            }
            .wanted()
            .expect("it waits")
        };
        for (change, words) in [
            (WriteChange::Write, "write build/x.o"),
            (WriteChange::Remove, "remove build/x.o"),
            (WriteChange::Rename, "rename build/x.o"),
            (WriteChange::MakeFolder, "make the folder build/x.o"),
            (WriteChange::Link, "make the link build/x.o"),
            (
                WriteChange::Attributes,
                "change the mode, owner or times of build/x.o",
            ),
        ] {
            assert_eq!(
                wanted(change, false),
                format!("`make test` wants to {words}")
            );
        }
        assert_eq!(
            wanted(WriteChange::Write, true),
            "`make test` wants to write build/x.o, which is a protected name"
        );
        let [path, program, file, directory] =
            ["x", "ls -l", "/usr/bin/python3.13", "/workspace"].map(str::to_owned);
        let other = Capability::HeldWrite {
            path,
            change: WriteChange::Write,
            protected: false,
            program,
            file,
            directory,
        };
        assert_eq!(
            other.wanted().expect("it waits"),
            "`ls -l` (/usr/bin/python3.13) wants to write x"
        );
        assert_eq!(Capability::WriteFiles.wanted(), None);
    }

    #[test]
    fn a_host_is_named_or_it_is_said_that_none_is_known() {
        let reach = |host: &str| {
            Capability::Network {
                host: host.to_owned(),
            }
            .describe()
        };
        assert_eq!(reach("example.com"), "reach example.com over the network");
        assert_eq!(
            reach(Capability::UNKNOWN_HOST),
            "reach a host over the network that its words do not say"
        );
    }
}
