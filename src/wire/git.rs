use serde::Deserialize;
use serde::Serialize;

use super::BytesPath;

/// Queries git, or changes the session's own repository, so that no setting of the repository can
/// start a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Git {
    pub query: GitQuery,
    /// The folder to run git in.
    pub path: BytesPath,
    /// Whether policy allowed protected names; otherwise a diff excludes names that look like
    /// secrets.
    pub protected: bool,
    pub timeout_ms: u64,
    /// Time between TERM and KILL, in milliseconds.
    pub grace_ms: u64,
    /// Like that of [`super::Bash`].
    pub stream_bytes: u64,
    pub tail_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "query", rename_all = "snake_case")]
pub enum GitQuery {
    Status,
    Diff {
        /// Staged changes instead of unstaged ones.
        staged: bool,
        /// One file or folder of the project; `None`: all without protected names.
        file: Option<BytesPath>,
        /// Changes since the merge base of this commit and the current one.
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
        /// Empty: all changes.
        files: Vec<BytesPath>,
    },
    Branch(GitBranch),
    Checkout {
        target: String,
        /// Creates the branch first.
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
    /// Returns whether it leaves the repository unchanged.
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
