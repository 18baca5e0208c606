use serde::Deserialize;
use serde::Serialize;

use super::BytesPath;
use super::Denied;
use super::End;
use super::Programs;
use super::programs::tells_too_much;

/// Most ended commands whose programs one answer tells.
pub const MAX_RAN: usize = 8;

/// The background commands: all of them, or the one that was asked about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Background {
    pub processes: Vec<Process>,
    /// The end of its output, where that was requested.
    pub printed: Option<String>,
    /// Working directory of the next command; only in a list.
    #[serde(default)]
    pub directory: Option<BytesPath>,
    /// What ended commands had started; each is told once, at most [`MAX_RAN`] in one answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ran: Vec<RanInBackground>,
}

impl Background {
    /// Returns whether this exceeds what a guest may report about programs.
    pub fn tells_too_much(&self) -> bool {
        self.ran.len() > MAX_RAN
            || self
                .ran
                .iter()
                .any(|ran| tells_too_much(&ran.programs, &ran.denied))
    }
}

/// The programs of a background command that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RanInBackground {
    /// Truncated where it is long.
    pub command: String,
    pub programs: Programs,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<Denied>,
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
