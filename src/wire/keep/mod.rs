//! The protocol between the host and the keeper, the container of ours in which no model's command
//! runs.
//!
//! The frames are those of the session's guest, the messages are others. Both ends send a hello;
//! then the host sends one order after the other and the keeper answers each. The keeper exits at
//! the end of its input.

mod change;
mod find;
mod git;
mod git_order;
mod named_list;
mod pending_git;
mod review;
mod truncate;
mod undo;

use serde::Deserialize;
use serde::Serialize;

pub use self::change::ApplyOutcome;
pub use self::change::ChangeKind;
pub use self::change::EntryType;
pub use self::change::LeftPath;
pub use self::change::LeftReason;
pub use self::change::ModeChange;
pub use self::change::PathChange;
pub use self::change::UncapturedPath;
pub use self::change::UncapturedReason;
pub use self::find::FindOrder;
pub use self::find::FindResult;
pub use self::find::KnownProtected;
pub use self::find::MOST_HIDDEN;
pub use self::find::MOST_LOST;
pub use self::find::SecretPath;
pub use self::git::AttributesFile;
pub use self::git::FoundGit;
pub use self::git::FoundRepository;
pub use self::git::GitKind;
pub use self::git::GitRefusal;
pub use self::git::Identity;
pub use self::git::ImportedGit;
pub use self::git::ImportedRepository;
pub use self::git::IndexImport;
pub use self::git::MoreImported;
pub use self::git::MovedOutGit;
pub use self::git::MovedOutRepository;
pub use self::git::MovedRef;
pub use self::git::NotImported;
pub use self::git::ObeyedPaths;
pub use self::git::OutsideRepositories;
pub use self::git::PreparedGit;
pub use self::git::PreparedRepository;
pub use self::git::UserGitSettings;
pub use self::git_order::GitAnswer;
pub use self::git_order::GitOrder;
pub use self::git_order::GitSource;
pub use self::git_order::ReviewedGit;
pub use self::git_order::SettledGit;
pub use self::named_list::MOST_NAMED;
pub use self::named_list::NamedList;
pub use self::pending_git::PendingGit;
pub use self::pending_git::PendingRef;
pub use self::pending_git::PendingRepository;
pub use self::pending_git::ellipsize;
pub use self::pending_git::short_ref_name;
pub use self::review::CountedPath;
pub use self::review::EndOfTurn;
pub use self::review::LineCount;
pub use self::review::PendingChanges;
pub use self::review::PendingReview;
pub use self::review::ProjectCopied;
pub use self::review::ReviewAnswer;
pub use self::review::ReviewApplied;
pub use self::review::ReviewBegan;
pub use self::review::ReviewDifference;
pub use self::review::ReviewOrder;
pub use self::review::ReviewedTurn;
pub use self::review::TakenHunks;
pub use self::review::TurnFate;
pub use self::review::git_of_review;
pub use self::review::name_of_review;
pub use self::undo::MayRun;
pub use self::undo::RunTrigger;
pub use self::undo::TurnAnswer;
pub use self::undo::TurnBegan;
pub use self::undo::TurnDifference;
pub use self::undo::TurnEnded;
pub use self::undo::TurnList;
pub use self::undo::TurnOrder;
pub use self::undo::TurnState;
pub use self::undo::TurnSummary;
pub use self::undo::UndoAnswer;
pub use self::undo::UndoOrder;
pub use self::undo::UndoOutcome;
pub use self::undo::UndoneTurn;

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
    /// The keeper exits after this.
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
    /// Whether it has a state folder that it can write to; `None`: it was given none.
    pub keeps: Option<bool>,
    /// What it sees of a review session's copy; `None`: it was given none.
    pub copy: Option<SeenCopy>,
}

/// The session's copy of the project for a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenCopy {
    /// Device and inode of its folder.
    pub identity: (u64, u64),
    /// Whether its unchanged files are those of the project.
    pub is_of_project: bool,
}

/// An order to the keeper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Order {
    Find(FindOrder),
    Turn { order: TurnOrder },
    Undo { order: UndoOrder },
    Review { order: ReviewOrder },
    Git { order: Box<GitOrder> },
}

/// The keeper's answer to an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Kept {
    Found(FindResult),
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
    /// It failed; nothing was changed.
    Failed {
        doing: String,
        problem: String,
    },
}
