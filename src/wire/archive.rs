use serde::Deserialize;
use serde::Serialize;

use super::BytesPath;

/// Packs files into an archive, takes them out, or says what is in it. Its name says of which kind
/// it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Archive {
    pub action: ArchiveAction,
    pub archive: BytesPath,
    /// Entries that are listed at the most.
    pub max_entries: u32,
    /// Whether policy allowed to touch protected names; without it the guest refuses them wherever
    /// the path leads.
    pub protected: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ArchiveAction {
    List,
    /// The archive must not exist.
    Create {
        source: BytesPath,
    },
    /// Nothing that is there is replaced.
    Extract {
        into: BytesPath,
    },
}

impl ArchiveAction {
    /// Returns the path besides the archive's.
    pub fn path(&self) -> Option<&BytesPath> {
        match self {
            Self::List => None,
            Self::Create { source } => Some(source),
            Self::Extract { into } => Some(into),
        }
    }
}
