use serde::Deserialize;
use serde::Serialize;

use super::BytesPath;

/// Packs files into an archive, unpacks one, or lists its contents. The archive's extension tells
/// its format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Archive {
    pub action: ArchiveAction,
    pub archive: BytesPath,
    /// Most entries that are listed.
    pub max_entries: u32,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
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
    /// Existing files are never replaced.
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
