use serde::Deserialize;
use serde::Serialize;

use super::BytesPath;
use super::End;

/// A query or order about the session's background commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Processes {
    List,
    /// Reads the end of a command's output.
    Output {
        /// `None`: the command that was started last.
        id: Option<i32>,
        tail_lines: u32,
    },
    Stop {
        id: Option<i32>,
        /// Time between TERM and KILL, in milliseconds.
        grace_ms: u64,
    },
}

/// The background commands: all of them, or the one that was asked about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Background {
    pub processes: Vec<Process>,
    /// The end of its output, where that was requested.
    pub printed: Option<String>,
    /// Working directory of the next command; only in a list.
    #[serde(default)]
    pub directory: Option<BytesPath>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its process id when it was started.
    pub id: i32,
    /// Truncated where it is long.
    pub command: String,
    pub end: End,
    /// How long it has run, or ran.
    pub duration_ms: u64,
    /// Bytes of its output.
    pub output_bytes: u64,
}
