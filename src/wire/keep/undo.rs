use std::fmt;

use serde::Deserialize;
use serde::Serialize;

use super::ApplyOutcome;
use super::CountedPath;
use super::NamedList;
use super::PathChange;
use super::UncapturedPath;
use crate::BytesPath;

/// An order about the beginning or end of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "turn", rename_all = "snake_case")]
pub enum TurnOrder {
    /// Before the first change of a turn.
    Begin {
        session: String,
        /// The number of the session's turn, counted from 1.
        n_turn: u64,
        /// The user's message; its first 80 characters are kept.
        words: String,
        /// As in [`Self::End`], since another turn may have to be ended first.
        #[serde(default)]
        place: BytesPath,
        #[serde(default)]
        auto_run: Vec<String>,
    },
    /// After the last change of the open turn.
    End {
        /// Path of the project's folder on the user's machine.
        place: BytesPath,
        /// The user's patterns of files that may run on their machine, besides the built-in ones.
        #[serde(default)]
        auto_run: Vec<String>,
    },
}

/// A user's order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "undo", rename_all = "snake_case")]
pub enum UndoOrder {
    List,
    /// Shows the changes of the last `n` turns that were not undone, each by itself.
    Diff {
        n: u32,
    },
    /// Undoes the last `n` turns that changed something.
    Back {
        n: u32,
        /// Merges files that were changed on both sides; without it such files are left.
        merge: bool,
        /// A sandbox of the project runs meanwhile: what may be masked in it is left.
        is_beside: bool,
    },
    /// Redoes the `n` turns that were undone last.
    Forward {
        n: u32,
        merge: bool,
        is_beside: bool,
    },
    /// Retries paths that an undo or redo left.
    Retry {
        merge: bool,
        is_beside: bool,
    },
    /// Finishes an interrupted application, if there is one.
    Resume,
    /// Gives up an interrupted application: what is done stays done, the rest is not.
    Abandon,
}

impl UndoOrder {
    /// Whether it changes the project's files.
    pub fn writes(&self) -> bool {
        match self {
            Self::List | Self::Diff { .. } => false,
            Self::Back { .. }
            | Self::Forward { .. }
            | Self::Retry { .. }
            | Self::Resume
            | Self::Abandon => true,
        }
    }

    /// Returns the same order for a project with a running sandbox.
    #[must_use]
    pub fn beside_a_sandbox(mut self) -> Self {
        match &mut self {
            Self::Back { is_beside, .. }
            | Self::Forward { is_beside, .. }
            | Self::Retry { is_beside, .. } => *is_beside = true,
            Self::List | Self::Diff { .. } | Self::Resume | Self::Abandon => {}
        }
        self
    }
}

/// The answer to a [`TurnOrder`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnAnswer {
    Began(TurnBegan),
    Ended(TurnEnded),
}

/// The answer to an [`UndoOrder`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoAnswer {
    Turns(TurnList),
    Differences {
        turns: Vec<TurnDifference>,
    },
    Undone(UndoOutcome),
    /// An interrupted apply of the review of this name was finished.
    Applied {
        name: String,
        applied: ApplyOutcome,
    },
    Abandoned,
    /// Nothing was interrupted.
    Nothing,
    /// Nothing was done: an earlier application was interrupted, and has to be finished or given up
    /// first.
    Unfinished,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnBegan {
    pub turn: u64,
    pub n_files: u64,
    /// What undo will not be able to restore.
    pub passed_over: NamedList<UncapturedPath>,
    /// Whether an apply was interrupted and waits to be resumed.
    pub is_unfinished: bool,
    /// Whether an undo was interrupted, which this turn ends: the undone turn counts as not undone.
    #[serde(default)]
    pub is_given_up: bool,
    /// Files of the turn before that may run on the user's machine later, if that turn was
    /// interrupted, so that they were not reported.
    #[serde(default)]
    pub may_run: NamedList<MayRun>,
}

/// What a turn changed. The default is one that changed nothing and is not on record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnded {
    pub turn: u64,
    /// Those nearest to the top first.
    pub changes: NamedList<CountedPath>,
    /// Lines of all files together, as far as they were counted.
    #[serde(default)]
    pub n_added: u64,
    #[serde(default)]
    pub n_removed: u64,
    /// Those of all changes that may run on the user's machine later.
    pub may_run: NamedList<MayRun>,
    /// Whether there may be others: hooks or git config name more than is examined.
    #[serde(default)]
    pub is_may_run_cut: bool,
    pub passed_over: NamedList<UncapturedPath>,
}

/// A new or changed file that programs on the host run or obey.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayRun {
    pub path: BytesPath,
    /// Which program, and when, as a message.
    pub why: String,
    pub when: RunTrigger,
}

/// When a program obeys a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunTrigger {
    /// As soon as the user opens or enters the folder, commits, or starts an agent there: such a
    /// file is not applied until they agree.
    ByItself,
    /// When the user builds, tests, installs or deploys: such a file is reported.
    WhenYouRunIt,
}

impl fmt::Display for RunTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ByItself => "by itself",
            Self::WhenYouRunIt => "when you run it",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    /// It has not ended.
    Open,
    Done,
    /// It can be redone.
    TakenBack,
}

/// A turn of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSummary {
    pub turn: u64,
    pub session: String,
    pub n_turn: u64,
    pub words: String,
    /// The time when it began, in seconds since 1970.
    pub at: u64,
    pub state: TurnState,
    /// Number of paths that it changed; unknown while it is open.
    pub n_changed: Option<u64>,
    /// Whether its end was never reported, so that all changes until the next look count as its
    /// own.
    pub is_interrupted: bool,
    /// Number of paths that its undo or redo left, and that may be retried.
    #[serde(default)]
    pub n_left: u64,
}

/// The turns that changed something, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnList {
    pub turns: NamedList<TurnSummary>,
    /// Bytes of all snapshots on the disk, and their limit.
    pub n_bytes: u64,
    pub most_bytes: u64,
    pub is_unfinished: bool,
}

/// The changes of one turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnDifference {
    pub turn: TurnSummary,
    pub changes: NamedList<PathChange>,
    /// A unified diff.
    pub text: String,
    /// Changed files that are not in the text because it would be too long.
    pub n_left_out: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoneTurn {
    pub turn: TurnSummary,
    pub applied: ApplyOutcome,
}

/// The outcome of an undo or redo; with fewer turns than asked for if there are no more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoOutcome {
    pub turns: Vec<UndoneTurn>,
    /// How many more can be undone, and redone, now.
    pub n_back: u64,
    pub n_forward: u64,
}
