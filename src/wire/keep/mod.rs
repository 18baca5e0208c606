//! The language spoken between the host and the keeper: the box of ours in which no model's command
//! runs.
//!
//! The frames are those of the session's guest, the words are others. Both ends say hello; then the
//! host gives one order after the other and the keeper answers each. It ends with its input.

mod change;
mod find;
mod fit;
mod git;
mod git_order;
mod named;
mod review;
mod undo;
mod waiting;

use serde::Deserialize;
use serde::Serialize;

pub use self::change::Applied;
pub use self::change::EntryType;
pub use self::change::Left;
pub use self::change::LeftReason;
pub use self::change::ModeChange;
pub use self::change::PassedOver;
pub use self::change::PathChange;
pub use self::change::Unkept;
pub use self::change::What;
pub use self::find::Find;
pub use self::find::Found;
pub use self::find::Known;
pub use self::find::MOST_HIDDEN;
pub use self::find::MOST_LOST;
pub use self::find::Secret;
pub use self::git::Aside;
pub use self::git::AsideGit;
pub use self::git::Attributes;
pub use self::git::FoundGit;
pub use self::git::FoundRepository;
pub use self::git::GitKind;
pub use self::git::GitRefusal;
pub use self::git::Identity;
pub use self::git::ImportedGit;
pub use self::git::ImportedRepository;
pub use self::git::IndexImport;
pub use self::git::MoreImported;
pub use self::git::MovedRef;
pub use self::git::NotImported;
pub use self::git::Obeyed;
pub use self::git::Outside;
pub use self::git::Person;
pub use self::git::PreparedGit;
pub use self::git::PreparedRepository;
pub use self::git_order::GitAnswer;
pub use self::git_order::GitOrder;
pub use self::git_order::GitSource;
pub use self::git_order::ReviewedGit;
pub use self::git_order::SettledGit;
pub use self::named::MOST_NAMED;
pub use self::named::Named;
pub use self::review::Copied;
pub use self::review::EndOfTurn;
pub use self::review::LineCount;
pub use self::review::Pending;
pub use self::review::Review;
pub use self::review::ReviewAnswer;
pub use self::review::ReviewApplied;
pub use self::review::ReviewBegan;
pub use self::review::ReviewDifference;
pub use self::review::ReviewOrder;
pub use self::review::ReviewedPath;
pub use self::review::ReviewedTurn;
pub use self::review::TurnFate;
pub use self::review::git_of_review;
pub use self::review::name_of_review;
pub use self::undo::MayRun;
pub use self::undo::TurnAnswer;
pub use self::undo::TurnBegan;
pub use self::undo::TurnDifference;
pub use self::undo::TurnEnded;
pub use self::undo::TurnOrder;
pub use self::undo::TurnState;
pub use self::undo::TurnTaken;
pub use self::undo::Turns;
pub use self::undo::UndoAnswer;
pub use self::undo::UndoOrder;
pub use self::undo::Undone;
pub use self::undo::UndoneTurn;
pub use self::undo::When;
pub use self::waiting::WaitingGit;
pub use self::waiting::WaitingName;
pub use self::waiting::WaitingRepository;
pub use self::waiting::short;
pub use self::waiting::shortened;

/// From the host to the keeper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToKeeper {
    Hello { protocol: u32, build: String },
    Order { id: u32, order: Order },
}

/// From the keeper to the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromKeeper {
    Hello(KeeperHello),
    Done {
        id: u32,
        kept: Kept,
    },
    /// It ends after this.
    Closing {
        reason: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeeperHello {
    pub protocol: u32,
    pub build: String,
    /// Device and inode of the project's folder as the keeper sees it.
    pub workspace: (u64, u64),
    /// Whether it has a folder to keep something in, and can write there; `None`: it was given
    /// none.
    pub keeps: Option<bool>,
    /// What it sees of the copy that a review's session works on; `None`: it was given none.
    pub copy: Option<SeenCopy>,
}

/// The copy of the project that a session works on whose changes are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenCopy {
    /// Device and inode of its folder.
    pub identity: (u64, u64),
    /// Whether what nobody changed in it is that of the project.
    pub is_of_project: bool,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Order {
    Find(Find),
    Turn { order: TurnOrder },
    Undo { order: UndoOrder },
    Review { order: ReviewOrder },
    Git { order: Box<GitOrder> },
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Kept {
    Found(Found),
    Turn {
        answer: Box<TurnAnswer>,
    },
    Undo {
        answer: Box<UndoAnswer>,
    },
    Review {
        answer: Box<ReviewAnswer>,
    },
    Git {
        answer: Box<GitAnswer>,
    },
    /// It could not be done; nothing was changed.
    Failed {
        doing: String,
        problem: String,
    },
}
