use serde::Deserialize;
use serde::Serialize;

use super::BytesPath;

/// Asks git something, in a way that no setting of the repository can turn into a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Git {
    pub query: GitQuery,
    /// The folder to ask in.
    pub path: BytesPath,
    /// Whether policy allowed to show protected names; without it a difference leaves those out that say that they hold secrets.
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
}

impl GitQuery {
    pub fn file(&self) -> Option<&BytesPath> {
        match self {
            Self::Status => None,
            Self::Diff { file, .. } | Self::Log { file, .. } => file.as_ref(),
        }
    }
}
