use serde::Deserialize;
use serde::Serialize;

use super::BytesPath;

/// What a search or a listing skipped, although it may have been meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// Files whose names begin with a dot.
    pub hidden_files: u64,
    /// Files that an ignore file excludes.
    pub ignored_files: u64,
    /// Folders, with their contents.
    pub hidden_folders: u64,
    pub ignored_folders: u64,
    /// Some of these folders.
    pub folders: Vec<BytesPath>,
}

impl LeftOut {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
