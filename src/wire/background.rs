use serde::Deserialize;
use serde::Serialize;

use super::BytesPath;
use super::End;

/// Something about the commands that were left running in the background.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Processes {
    List,
    /// Reads the end of what one printed.
    Output {
        /// `None`: the one that was started last.
        id: Option<i32>,
        tail_lines: u32,
    },
    Stop {
        id: Option<i32>,
        /// Between TERM and KILL, in milliseconds.
        grace_ms: u64,
    },
}

/// Commands in the background: all of them, or the one that was asked about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Background {
    pub processes: Vec<Process>,
    /// The end of what the one printed, where that was asked for.
    pub printed: Option<String>,
    /// Where the next command would run; only of a list.
    #[serde(default)]
    pub directory: Option<BytesPath>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// What it is known by: its process id when it was started.
    pub id: i32,
    /// Its beginning, where it is long.
    pub command: String,
    pub end: End,
    /// How long it has run, or ran.
    pub duration_ms: u64,
    /// Bytes it printed.
    pub output_bytes: u64,
}
