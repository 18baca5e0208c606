use serde::Deserialize;
use serde::Serialize;

use super::BytesPath;

/// Asks git something, or has it do something in the session's own repository, in a way that no
/// setting of the repository can turn into a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Git {
    pub query: GitQuery,
    /// The folder to ask in.
    pub path: BytesPath,
    /// Whether policy allowed to show protected names; without it a difference leaves those out
    /// that say that they hold secrets.
    pub protected: bool,
    pub timeout_ms: u64,
    /// Between TERM and KILL when it is stopped, in milliseconds.
    pub grace_ms: u64,
    /// As of [`super::Bash`].
    pub stream_bytes: u64,
    pub tail_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "query", rename_all = "snake_case")]
pub enum GitQuery {
    Status,
    Diff {
        /// What is staged, not what is only in the files.
        staged: bool,
        /// One file or folder of the project; `None`: all that are not protected by their names.
        file: Option<BytesPath>,
        /// What has come since this commit and the present one parted.
        base: Option<String>,
    },
    Log {
        count: u32,
        oneline: bool,
        file: Option<BytesPath>,
        author: Option<String>,
    },
    Commit {
        message: String,
        /// Empty: all that has changed.
        files: Vec<BytesPath>,
    },
    Branch(GitBranch),
    Checkout {
        target: String,
        /// Makes the branch first.
        create: bool,
    },
    Stash(GitStash),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "branch", rename_all = "snake_case")]
pub enum GitBranch {
    List,
    Create { name: String },
    Delete { name: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stash", rename_all = "snake_case")]
pub enum GitStash {
    List,
    Push { message: Option<String> },
    Pop { index: u32 },
    Apply { index: u32 },
    Drop { index: u32 },
}

impl GitQuery {
    /// Returns whether it leaves the repository as it is.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Status
            | Self::Diff { .. }
            | Self::Log { .. }
            | Self::Branch(GitBranch::List)
            | Self::Stash(GitStash::List) => true,
            Self::Commit { .. } | Self::Branch(_) | Self::Checkout { .. } | Self::Stash(_) => false,
        }
    }

    /// Returns whether it changes files of the project.
    pub fn writes_files(&self) -> bool {
        match self {
            Self::Checkout { .. } => true,
            Self::Stash(stash) => !matches!(stash, GitStash::List | GitStash::Drop { .. }),
            Self::Status
            | Self::Diff { .. }
            | Self::Log { .. }
            | Self::Commit { .. }
            | Self::Branch(_) => false,
        }
    }

    pub fn file(&self) -> Option<&BytesPath> {
        match self {
            Self::Status
            | Self::Commit { .. }
            | Self::Branch(_)
            | Self::Checkout { .. }
            | Self::Stash(_) => None,
            Self::Diff { file, .. } | Self::Log { file, .. } => file.as_ref(),
        }
    }
}
