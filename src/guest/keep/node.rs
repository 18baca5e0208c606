use nix::sys::stat::FileStat;
use serde::Deserialize;
use serde::Serialize;
use sha2::Digest;
use sha2::Sha256;

use super::object::ObjectId;
use podbay_wire::BytesPath;
use podbay_wire::keep::EntryType;
use podbay_wire::keep::UncapturedReason;

/// The mode bits of a folder that matter; whether new files get its group is left to the user.
pub(super) const FOLDER_MODE: u32 = 0o1777;

/// The recorded state of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Node {
    Folder {
        mode: u32,
        tree: ObjectId,
    },
    File {
        mode: u32,
        n_bytes: u64,
        object: ObjectId,
    },
    Link {
        target: BytesPath,
    },
    /// An entry that is not captured; `mark` differs if it has changed, as far as that is known.
    Unkept {
        why: UncapturedReason,
        mark: ObjectId,
    },
}

impl Node {
    pub(super) fn folder(stat: &FileStat, tree: ObjectId) -> Self {
        Self::Folder {
            mode: stat.st_mode & FOLDER_MODE,
            tree,
        }
    }

    pub(super) fn file(stat: &FileStat, n_bytes: u64, object: ObjectId) -> Self {
        Self::File {
            mode: stat.st_mode & 0o7777,
            n_bytes,
            object,
        }
    }

    /// Returns an uncaptured entry that is recognized by its metadata.
    pub(super) fn unkept(why: UncapturedReason, stat: &FileStat) -> Self {
        let mut hash = Sha256::new();
        for number in [
            stat.st_size,
            stat.st_mtime,
            stat.st_mtime_nsec,
            stat.st_ctime,
            stat.st_ctime_nsec,
        ] {
            hash.update(number.to_le_bytes());
        }
        for number in [stat.st_ino, u64::from(stat.st_mode), stat.st_rdev] {
            hash.update(number.to_le_bytes());
        }
        Self::Unkept {
            why,
            mark: ObjectId::from_bytes(hash.finalize().into()),
        }
    }

    /// Returns an uncaptured entry that counts as unchanged as long as it exists.
    pub(super) fn ignored(why: UncapturedReason) -> Self {
        Self::Unkept {
            why,
            mark: ObjectId::of(b""),
        }
    }

    pub(super) fn entry_type(&self) -> EntryType {
        match self {
            Self::Folder { .. } => EntryType::Folder,
            Self::File { .. } => EntryType::File,
            Self::Link { .. } => EntryType::Link,
            Self::Unkept { .. } => EntryType::Unkept,
        }
    }

    pub(super) fn mode(&self) -> Option<u32> {
        match self {
            Self::Folder { mode, .. } | Self::File { mode, .. } => Some(*mode),
            Self::Link { .. } | Self::Unkept { .. } => None,
        }
    }

    pub(super) fn is_folder(&self) -> bool {
        matches!(self, Self::Folder { .. })
    }

    /// Whether the two are equal without the contents of folders.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Folder { mode, .. }, Self::Folder { mode: other, .. }) => mode == other,
            (one, other) => one == other,
        }
    }
}

/// [`Node::is_like`] where either may be missing.
pub(super) fn are_alike(one: Option<&Node>, other: Option<&Node>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one.is_like(other),
        _ => false,
    }
}
