use serde::Deserialize;
use serde::Serialize;

use super::Named;
use crate::BytesPath;

/// Why a snapshot does not hold what stands somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Unkept {
    #[error("larger than 64 MiB")]
    TooLarge,
    #[error("the room for snapshots of this project is used up")]
    StoreFull,
    #[error("it cannot be read")]
    Unreadable,
    #[error("neither a file nor a folder nor a link")]
    Special,
    #[error("a git folder, which is kept by git itself")]
    GitFolder,
    #[error("another file system")]
    OtherFileSystem,
    #[error("its path is longer than 4,000 bytes")]
    TooDeep,
}

/// Something that a snapshot does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOver {
    pub path: BytesPath,
    pub why: Unkept,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryType {
    File,
    Folder,
    Link,
    /// What no snapshot holds.
    Unkept,
}

/// What became of a path between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    Created,
    /// The content, or where a link leads.
    Modified,
    Deleted,
    /// The mode alone.
    Mode,
    /// A file turned into a folder or a link, and the like.
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
    pub what: What,
    /// What it is now; of something deleted, what it was.
    pub entry: EntryType,
    pub mode: Option<ModeChange>,
    /// The new size of a file; of a deleted one, the old size.
    pub n_bytes: Option<u64>,
    /// Set where one of the two states is not in its snapshot and so can neither be shown nor
    /// brought back.
    pub unkept: Option<Unkept>,
}

/// Why a path was left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "left", rename_all = "snake_case")]
pub enum LeftReason {
    #[error("was changed by somebody else since")]
    ChangedSince,
    #[error("holds what is left in it, or what somebody else put there since")]
    NotEmpty,
    #[error("the folder it belongs in is no folder now, or is gone")]
    NoFolder,
    #[error("would get a set-user-id or set-group-id bit; set it by hand if it is wanted")]
    SetId,
    #[error("would be a link to {target}, out of the project; make it by hand if it is wanted")]
    LeadsOut { target: BytesPath },
    #[error("belongs to git, whose folders are brought in by git alone")]
    Git,
    #[error(
        "is part of a repository that a turn made, or leads to one, and git on your machine would obey it"
    )]
    MadeGit,
    #[error("may run on your machine: {why}")]
    MayRun { why: String },
    #[error("comes with all that is in it or not at all, and {path} does not come")]
    NotWhole { path: BytesPath },
    #[error("has another name now, {to}, which is left, so the old one is too")]
    Renamed { to: BytesPath },
    #[error("is not held by the snapshot ({why}), so it could not be brought back")]
    Unkept { why: Unkept },
    #[error(
        "is not held by the snapshot ({why}), so undo could not bring it back, and it stays; remove or replace it by hand if that is wanted"
    )]
    ForGood { why: Unkept },
    #[error(
        "is not held by the snapshot ({why}), so it comes from what the session worked on alone, by `podbay review apply`"
    )]
    FromCopy { why: Unkept },
    #[error(
        "has a name that only Podbay's own unfinished files have, which are cleared up; it can come under another one"
    )]
    OwnName,
    #[error("is a folder in which all is left, so it is too")]
    HoldsLeft,
    #[error("is in {folder}, which is left as it is, so it is too")]
    InLeft { folder: BytesPath },
    #[error(
        "was not kept when the turn ended ({why}), so what stands there is neither overwritten nor removed: move it away, then `podbay undo retry`"
    )]
    NotKept { why: Unkept },
    #[error(
        "may be a secret, which the sandbox that runs could read on its way: `podbay undo retry` when that is over"
    )]
    BesideSandbox,
    #[error("{problem}")]
    Failed { problem: String },
}

impl LeftReason {
    /// Whether it may go at another time, or after the person did something.
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
pub struct Left {
    pub path: BytesPath,
    pub reason: LeftReason,
}

/// What came of bringing paths from one state to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    pub changed: Named<BytesPath>,
    /// Those of the changed ones where nothing stands any more.
    #[serde(default)]
    pub removed: Named<BytesPath>,
    /// Those of the changed ones in which lines of both sides were put together.
    pub merged: Named<BytesPath>,
    /// Those of the changed ones that came back without the bits that let them act for their owner.
    #[serde(default)]
    pub without_set_id: Named<BytesPath>,
    /// How many were as wanted before.
    pub n_already: u64,
    /// What somebody else changed meanwhile; untouched.
    pub conflicts: Named<Left>,
    /// What is never done, or could not be; untouched.
    pub refused: Named<Left>,
    /// Why it stopped before its end, such as a full disk; it is finished by being begun again.
    pub stopped: Option<String>,
}
