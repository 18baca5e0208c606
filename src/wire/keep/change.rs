use serde::Deserialize;
use serde::Serialize;

use super::NamedList;
use crate::BytesPath;

/// Why a snapshot does not hold an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum UncapturedReason {
    #[error("larger than 64 MiB")]
    TooLarge,
    #[error("the snapshots of this project use all of their space")]
    StoreFull,
    #[error("it cannot be read")]
    Unreadable,
    #[error("not a file, folder or link")]
    Special,
    #[error("a git folder, which git itself keeps")]
    GitFolder,
    #[error("another file system")]
    OtherFileSystem,
    #[error("its path is longer than 4,000 bytes")]
    TooDeep,
}

/// An entry that a snapshot does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncapturedPath {
    pub path: BytesPath,
    pub why: UncapturedReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryType {
    File,
    Folder,
    Link,
    /// An entry that no snapshot holds.
    Unkept,
}

/// How a path changed between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Created,
    /// The content, or the target of a link.
    Modified,
    Deleted,
    /// Only the mode.
    Mode,
    /// Another type, such as a folder in place of a file.
    Type {
        before: EntryType,
    },
    /// A file of the same content is gone from there.
    Renamed {
        from: BytesPath,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeChange {
    pub before: u32,
    pub after: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathChange {
    pub path: BytesPath,
    pub what: ChangeKind,
    /// The present type; for something deleted, the old one.
    pub entry: EntryType,
    pub mode: Option<ModeChange>,
    /// The new size of a file; for a deleted one, the old size.
    pub n_bytes: Option<u64>,
    /// Set if one of the two states is not in its snapshot and so can neither be shown nor
    /// restored.
    pub unkept: Option<UncapturedReason>,
}

/// Why a path was left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "left", rename_all = "snake_case")]
pub enum LeftReason {
    #[error("was changed by another program since")]
    ChangedSince,
    #[error("holds entries that are left, or that another program added since")]
    NotEmpty,
    #[error("its parent folder is gone, or is not a folder any more")]
    NoFolder,
    #[error("would get a set-user-id or set-group-id bit; set it by hand if you want it")]
    SetId,
    #[error("would be a link to {target}, out of the project; make it by hand if you want it")]
    LeadsOut { target: BytesPath },
    #[error("is in a git folder, and only git changes those")]
    Git,
    #[error(
        "is part of a repository that a turn made, or leads to one; git on your machine would obey \
        it"
    )]
    MadeGit,
    #[error("may run on your machine: {why}")]
    MayRun { why: String },
    #[error("is applied completely or not at all, and {path} is not applied")]
    NotWhole { path: BytesPath },
    #[error("was renamed to {to}, which is left out, so the old name stays")]
    Renamed { to: BytesPath },
    #[error("is not in the snapshot ({why}), so it could not be restored")]
    Unkept { why: UncapturedReason },
    #[error(
        "is not in the snapshot ({why}), so undo could not restore it, and it stays; remove or \
        replace it by hand if you want that"
    )]
    ForGood { why: UncapturedReason },
    #[error(
        "is not in the snapshot ({why}), so only `podbay review apply` can copy it, from the \
        session's copy"
    )]
    FromCopy { why: UncapturedReason },
    #[error("has a name reserved for Podbay's temporary files; rename it")]
    OwnName,
    #[error("is a folder of which everything is left, so it is left too")]
    HoldsLeft,
    #[error("is in {folder}, which is left as it is")]
    InLeft { folder: BytesPath },
    #[error(
        "was not captured at the end of the turn ({why}), so it is neither overwritten nor \
        removed: move it away, then `podbay undo retry`"
    )]
    NotKept { why: UncapturedReason },
    #[error(
        "may be a secret that the running sandbox could read meanwhile: `podbay undo retry` when \
        that has ended"
    )]
    BesideSandbox,
    #[error("{problem}")]
    Failed { problem: String },
}

impl LeftReason {
    /// Whether it may work at another time, or after an action of the user.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::ChangedSince
            | Self::NotEmpty
            | Self::NoFolder
            | Self::NotKept { .. }
            | Self::BesideSandbox
            | Self::Failed { .. } => true,
            Self::SetId
            | Self::LeadsOut { .. }
            | Self::Git
            | Self::MadeGit
            | Self::Unkept { .. }
            | Self::ForGood { .. }
            | Self::FromCopy { .. }
            | Self::OwnName
            | Self::HoldsLeft
            | Self::InLeft { .. }
            | Self::MayRun { .. }
            | Self::NotWhole { .. }
            | Self::Renamed { .. } => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftPath {
    pub path: BytesPath,
    pub reason: LeftReason,
}

/// The outcome of changing paths from one state to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyOutcome {
    pub changed: NamedList<BytesPath>,
    /// Those of the changed ones where nothing exists any more.
    #[serde(default)]
    pub removed: NamedList<BytesPath>,
    /// Those of the changed ones that were merged from both sides.
    pub merged: NamedList<BytesPath>,
    /// Those of the changed ones that were restored without the set-user-id and set-group-id bits.
    #[serde(default)]
    pub without_set_id: NamedList<BytesPath>,
    /// How many were as wanted before.
    pub n_already: u64,
    /// Changed by another program meanwhile; untouched.
    pub conflicts: NamedList<LeftPath>,
    /// Never done, or failed; untouched.
    pub refused: NamedList<LeftPath>,
    /// Why it stopped before its end, such as a full disk; starting it again finishes it.
    pub stopped: Option<String>,
}
