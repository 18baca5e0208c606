use serde::Deserialize;
use serde::Serialize;

use super::ApplyOutcome;
use super::MayRun;
use super::NamedList;
use super::PathChange;
use super::PendingGit;
use super::UncapturedPath;
use crate::BytesPath;

/// An order about changes that are pending until the user accepts them. A review has the name of
/// its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "review", rename_all = "snake_case")]
pub enum ReviewOrder {
    /// Copies the whole project, where no overlay can be mounted over it.
    Copy,
    /// Before a session works on a copy: captures the project. A pending review is resumed with its
    /// first state.
    Begin {
        name: String,
        /// The user's message; its first 80 characters are kept.
        words: String,
        /// Whether the whole project was copied before, so that the copy is what counts.
        is_copied: bool,
        /// Path of the project's folder on the user's machine.
        place: BytesPath,
        /// Whether each turn is applied at its end.
        #[serde(default)]
        by_turn: bool,
    },
    /// After the session's sandbox has ended: finds what it changed.
    End { name: String, auto_run: Vec<String> },
    /// At the end of a turn that is applied as a whole; the session continues.
    Turn { name: String, turn: EndOfTurn },
    /// Lists all pending reviews.
    List,
    /// Shows the pending changes.
    Diff {
        name: String,
        only: Vec<BytesPath>,
        auto_run: Vec<String>,
    },
    /// Applies changes to the project.
    Apply {
        name: String,
        /// Paths with their contents, or patterns if they hold `*`, `?` or `[`; all if there are
        /// none.
        only: Vec<BytesPath>,
        /// Merges files that were changed on both sides; without it such files are left.
        merge: bool,
        /// Also applies files that may run on the user's machine later.
        with_auto_run: bool,
        /// Patterns of such files besides the built-in ones.
        auto_run: Vec<String>,
        /// Files of which only some hunks are applied.
        #[serde(default)]
        hunks: Vec<TakenHunks>,
    },
    /// Its git work was imported; paths may still be pending.
    GitTaken { name: String },
    /// Removes it.
    Discard {
        name: String,
        /// Whether it has volumes: without those and without a record there is no such review.
        #[serde(default)]
        is_held: bool,
    },
}

impl ReviewOrder {
    /// Whether it changes the project's files.
    pub fn writes(&self) -> bool {
        matches!(self, Self::Apply { .. } | Self::Turn { .. })
    }

    /// The name of its review.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Copy | Self::List => None,
            Self::Begin { name, .. }
            | Self::End { name, .. }
            | Self::Turn { name, .. }
            | Self::Diff { name, .. }
            | Self::Apply { name, .. }
            | Self::GitTaken { name }
            | Self::Discard { name, .. } => Some(name),
        }
    }
}

/// What happens to the changes of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnFate {
    /// They are applied to the project.
    Keep,
    /// What was left at the end of the turn is applied, too, also what runs without being asked for
    /// on the user's machine; later changes are not.
    Accept,
    Drop,
    /// They are only counted as pending, and the turn continues.
    Count,
    /// All that is pending is shown, and the turn continues.
    Show,
}

/// The end of a turn that is applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndOfTurn {
    pub fate: TurnFate,
    /// The number of the session's turn, counted from 1.
    pub n_turn: u64,
    /// The user's message; its first 80 characters are kept.
    pub words: String,
    /// Whether the session continues in its copy, and not in a new one.
    pub keeps_view: bool,
    /// The number of the new copy otherwise.
    pub next_view: u32,
    /// Also applies files that programs on the user's machine run without being asked.
    pub with_auto_run: bool,
    /// Patterns of such files besides the built-in ones.
    pub auto_run: Vec<String>,
    /// Paths that are applied; all if there are none.
    #[serde(default)]
    pub only: Vec<BytesPath>,
    /// Files of which only some hunks are applied.
    #[serde(default)]
    pub hunks: Vec<TakenHunks>,
}

/// The hunks of a file that are applied; its others stay pending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenHunks {
    pub path: BytesPath,
    /// How many hunks its unified diff had when it was shown.
    pub n_hunks: u32,
    /// Those that are applied, counted from 0, in order.
    pub taken: Vec<u32>,
}

/// Returns the git session id for a review's session: a session has only one review at a time.
pub fn git_of_review(name: &str) -> String {
    format!("{name}-review")
}

/// Returns the name of the review with this git session id.
pub fn name_of_review(git: &str) -> &str {
    git.strip_suffix("-review").unwrap_or(git)
}

/// The answer to a [`ReviewOrder`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewAnswer {
    Copied(ProjectCopied),
    Began(ReviewBegan),
    Ended(PendingChanges),
    Turn(Box<ReviewedTurn>),
    Reviews {
        reviews: NamedList<PendingReview>,
    },
    Difference(ReviewDifference),
    Applied(Box<ReviewApplied>),
    /// To an apply: all of it was applied by an earlier one, which was interrupted before it
    /// removed the volumes.
    InAlready {
        /// Whether it was undone since, and if so whether it can be redone.
        is_taken_back: bool,
        has_redo: bool,
    },
    GitTaken,
    Discarded,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectCopied {
    pub n_files: u64,
    pub n_bytes: u64,
    /// Pipes, sockets, devices and unreadable entries.
    pub n_passed_over: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewBegan {
    /// Whether it was pending already.
    pub goes_on: bool,
    /// What the snapshot of the project does not hold; empty for a resumed review, for which it was
    /// reported before.
    pub passed_over: NamedList<UncapturedPath>,
    /// Changes of the user where a resumed session has its own version, which it still sees.
    #[serde(default)]
    pub hidden_changes: NamedList<BytesPath>,
}

/// A pending review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingReview {
    pub name: String,
    pub words: String,
    /// The time when it began, in seconds since 1970.
    pub at: u64,
    /// Number of pending paths; `None`: its session was interrupted or still runs, or its data is
    /// broken.
    pub n_changes: Option<u64>,
    /// Its pending git work.
    pub git: PendingGit,
    /// The old path of its project, if that has been moved. Only the keeper there knows more of it.
    #[serde(default)]
    pub elsewhere: Option<String>,
}

/// The pending changes of a review.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingChanges {
    pub changes: NamedList<CountedPath>,
    /// Lines of all files together, as far as they were counted.
    pub n_added: u64,
    pub n_removed: u64,
    /// Files whose lines were not counted: too large, too many, or not captured.
    #[serde(default)]
    pub n_uncounted: u64,
    /// Those of all changes that may run on the user's machine later.
    pub may_run: NamedList<MayRun>,
    /// Whether there may be others: hooks or git config name more than is examined.
    #[serde(default)]
    pub is_may_run_cut: bool,
    /// Those that another program changed in the project since.
    #[serde(default)]
    pub conflicts: NamedList<BytesPath>,
    /// The session's git work.
    pub git: PendingGit,
}

impl PendingChanges {
    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.git.is_empty()
    }
}

/// A changed path with its lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedPath {
    pub change: PathChange,
    /// Added and removed lines; `None` if they were not counted.
    pub lines: Option<LineCount>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineCount {
    pub n_added: u64,
    pub n_removed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewDifference {
    pub review: PendingReview,
    pub pending: PendingChanges,
    /// A unified diff.
    pub text: String,
    /// Changed files that are not in the text because it would be too long.
    pub n_left_out: u64,
    /// Files of which only the beginning is shown; a single requested file is shown completely.
    #[serde(default)]
    pub n_cut: u64,
}

/// The outcome of an apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewApplied {
    pub applied: ApplyOutcome,
    /// The outcome of an interrupted application that was finished first.
    pub resumed: Option<ApplyOutcome>,
    /// Applied files that may run on the user's machine later.
    #[serde(default)]
    pub may_run: NamedList<MayRun>,
    /// Number of paths that are still pending.
    pub n_left: u64,
    /// The session's git work, none of which is imported by this. With no path left and nothing
    /// here the review is finished.
    pub git: PendingGit,
}

/// The outcome of applying a turn at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewedTurn {
    /// What was applied.
    pub came: PendingChanges,
    pub applied: ApplyOutcome,
    /// The outcome of an interrupted application that was finished first.
    pub resumed: Option<ApplyOutcome>,
    /// Number of paths that are still pending, such as those that were changed on both sides.
    pub n_left: u64,
    /// A unified diff of what is pending, where it was to be shown.
    #[serde(default)]
    pub text: String,
}

impl ReviewedTurn {
    /// Whether the session gets a new copy: the changes in its own are the project's now, and
    /// nothing is pending there.
    pub fn needs_view(&self, turn: &EndOfTurn) -> bool {
        match turn.fate {
            TurnFate::Keep | TurnFate::Accept => {
                !turn.keeps_view && self.n_left == 0 && !self.came.changes.is_empty()
            }
            TurnFate::Drop => true,
            TurnFate::Count | TurnFate::Show => false,
        }
    }
}
