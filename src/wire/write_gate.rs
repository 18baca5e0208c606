//! Holds a command at its first write, in mode `ask`: it starts without a question, and runs as
//! long as it only reads.

use serde::Deserialize;
use serde::Serialize;

use super::BytesPath;

/// Most patterns of files that a command may write without a question, and most bytes of all of
/// them together.
const MAX_PATTERNS: usize = 256;
const MAX_PATTERN_BYTES: usize = 16 * 1024;

/// Holds a command at its first write outside `/tmp`, its home and `/dev`, until the host has
/// answered. An approval holds for the whole call, except for protected names: each of those is
/// asked about. A refusal holds for the whole call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteGate {
    /// Files of the project that are written without a question, as patterns of a `.gitignore`,
    /// such as `target/` and `__pycache__/`. They exempt no protected name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unasked: Vec<String>,
}

impl WriteGate {
    /// Returns whether these are more patterns than a call may have.
    pub fn is_too_much(&self) -> bool {
        self.unasked.len() > MAX_PATTERNS
            || self.unasked.iter().map(String::len).sum::<usize>() > MAX_PATTERN_BYTES
    }
}

/// A write for which a program waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedWrite {
    pub path: BytesPath,
    pub change: WriteChange,
    /// The name is protected, so that an approval of the call does not cover it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protected: bool,
}

/// How a file is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteChange {
    /// It is created or written to.
    Write,
    /// A file or a folder is removed.
    Remove,
    /// It is renamed, or another file is renamed to it.
    Rename,
    /// A folder is created.
    MakeFolder,
    /// A hard or a symbolic link is created.
    Link,
    /// Its mode, owner, times or extended attributes change.
    Attributes,
}
