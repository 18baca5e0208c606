use serde::Deserialize;
use serde::Serialize;

use super::Applied;
use super::MayRun;
use super::Named;
use super::PassedOver;
use super::PathChange;
use super::WaitingGit;
use crate::BytesPath;

/// What is asked about changes that are held back until a person accepts them. A review is called
/// by the session that made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "review", rename_all = "snake_case")]
pub enum ReviewOrder {
    /// Copies the whole project, where no file system can be laid over it.
    Copy,
    /// Before a session works on a copy: keeps how the project is. One that waits already goes on
    /// from how it began.
    Begin {
        name: String,
        /// What the person wrote; its first 80 characters are kept.
        words: String,
        /// The whole project was copied before, so that the copy is what counts.
        is_copied: bool,
        /// Where the project's folder is on the person's machine.
        place: BytesPath,
        /// Each turn goes into the project at its end.
        #[serde(default)]
        by_turn: bool,
    },
    /// After the session's box has ended: finds what it changed.
    End { name: String, auto_run: Vec<String> },
    /// At the end of a turn that goes into the project as a whole; the session goes on.
    Turn { name: String, turn: EndOfTurn },
    /// Lists all that wait.
    List,
    /// Shows what is not in the project yet.
    Diff {
        name: String,
        only: Vec<BytesPath>,
        auto_run: Vec<String>,
    },
    /// Brings changes into the project.
    Apply {
        name: String,
        /// Paths with what is in them, or patterns where they hold `*`, `?` or `[`; all if there
        /// are none.
        only: Vec<BytesPath>,
        /// Puts lines of both sides together where a file was changed since; without it such files
        /// are left.
        merge: bool,
        /// Also what may run on the person's machine later.
        with_auto_run: bool,
        /// Patterns of such files beside those that are known.
        auto_run: Vec<String>,
    },
    /// What it did with git is taken over; paths may still wait.
    GitTaken { name: String },
    /// Forgets it.
    Discard {
        name: String,
        /// Whether volumes of it are there: one of which nothing else is known, either, is no
        /// review.
        #[serde(default)]
        is_held: bool,
    },
}

impl ReviewOrder {
    /// Whether it changes the project's files.
    pub fn writes(&self) -> bool {
        matches!(self, Self::Apply { .. } | Self::Turn { .. })
    }

    /// The review that it is about.
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

/// What becomes of what a turn changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnFate {
    /// It goes into the project.
    Keep,
    /// What was left at the end of the turn goes there, too, also what runs by itself on the
    /// person's machine; what was changed since does not.
    Accept,
    Drop,
    /// It is only counted, as what waits, and the turn goes on.
    Count,
}

/// How a turn ends whose changes go into the project then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndOfTurn {
    pub fate: TurnFate,
    /// Which turn of the session, counted from 1.
    pub n_turn: u64,
    /// What the person wrote; its first 80 characters are kept.
    pub words: String,
    /// The session goes on in what it worked on, and not in a new copy.
    pub keeps_view: bool,
    /// The number of that, if so.
    pub next_view: u32,
    /// Also what programs on the person's machine run by themselves.
    pub with_auto_run: bool,
    /// Patterns of such files beside those that are known.
    pub auto_run: Vec<String>,
}

/// Names the git of a session whose changes wait in a review: a session has only one review at a
/// time.
pub fn git_of_review(name: &str) -> String {
    format!("{name}-review")
}

/// Returns the name of the review whose git has this one.
pub fn name_of_review(git: &str) -> &str {
    git.strip_suffix("-review").unwrap_or(git)
}

/// What is answered to a [`ReviewOrder`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewAnswer {
    Copied(Copied),
    Began(ReviewBegan),
    Ended(Pending),
    Turn(Box<ReviewedTurn>),
    Reviews {
        reviews: Named<Review>,
    },
    Difference(ReviewDifference),
    Applied(Box<ReviewApplied>),
    /// To an apply: all of it is in since an earlier one, which was cut off before its volumes were
    /// removed.
    InAlready {
        /// It was taken back since, and whether it can be brought back.
        is_taken_back: bool,
        has_redo: bool,
    },
    GitTaken,
    Discarded,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    pub n_files: u64,
    pub n_bytes: u64,
    /// Pipes, sockets, devices and what cannot be read.
    pub n_passed_over: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewBegan {
    /// Whether it waited already.
    pub goes_on: bool,
    /// What is not kept of how the project is; nothing of one that goes on, of which it was said
    /// before.
    pub passed_over: Named<PassedOver>,
    /// What the person changed where a session that goes on has its own version, which it still
    /// sees.
    #[serde(default)]
    pub hidden_changes: Named<BytesPath>,
}

/// One review that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    pub name: String,
    pub words: String,
    /// When it began, in seconds since 1970.
    pub at: u64,
    /// How many paths are not in the project yet; `None`: its session was cut off or goes on, or
    /// what it needs is broken.
    pub n_changes: Option<u64>,
    /// What its session did with git that waits, too.
    pub git: WaitingGit,
    /// Where the project was that it is of, if that is elsewhere now. The keeper there alone knows
    /// more of it.
    #[serde(default)]
    pub elsewhere: Option<String>,
}

/// What of a review is not in the project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    pub changes: Named<ReviewedPath>,
    /// Lines of all files together, as far as they were counted.
    pub n_added: u64,
    pub n_removed: u64,
    /// Files whose lines were not counted: too large, too many, or not kept.
    #[serde(default)]
    pub n_uncounted: u64,
    /// Which of all of them may run on the person's machine later.
    pub may_run: Named<MayRun>,
    /// Whether there may be others: hooks or settings of git name more than is looked at.
    #[serde(default)]
    pub is_may_run_cut: bool,
    /// What the session did with git.
    pub git: WaitingGit,
}

impl Pending {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.git.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewedPath {
    pub change: PathChange,
    /// Lines that are added and removed; `None` where they were not counted.
    pub lines: Option<LineCount>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineCount {
    pub n_added: u64,
    pub n_removed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewDifference {
    pub review: Review,
    pub pending: Pending,
    /// A unified diff.
    pub text: String,
    /// How many changed files are not in the text because it would be too long.
    pub n_left_out: u64,
    /// Of how many only the beginning is, of which the whole is shown where it is asked for alone.
    #[serde(default)]
    pub n_cut: u64,
}

/// What came of bringing changes in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewApplied {
    pub applied: Applied,
    /// What was finished first because it had been interrupted.
    pub resumed: Option<Applied>,
    /// Which of what was brought in may run on the person's machine later.
    #[serde(default)]
    pub may_run: Named<MayRun>,
    /// How many paths still wait.
    pub n_left: u64,
    /// What the session did with git, none of which is brought in by this. With no path left and
    /// nothing here the review is over.
    pub git: WaitingGit,
}

/// What came of a turn that went into the project at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewedTurn {
    /// What is in the project now.
    pub came: Pending,
    pub applied: Applied,
    /// What was finished first because it had been interrupted.
    pub resumed: Option<Applied>,
    /// How many paths still wait, as those that were changed on both sides.
    pub n_left: u64,
}

impl ReviewedTurn {
    /// Whether the session gets another copy to work on: what it has is the project's now, and
    /// nothing waits there.
    pub fn needs_view(&self, turn: &EndOfTurn) -> bool {
        match turn.fate {
            TurnFate::Keep | TurnFate::Accept => {
                !turn.keeps_view && self.n_left == 0 && !self.came.changes.is_empty()
            }
            TurnFate::Drop => true,
            TurnFate::Count => false,
        }
    }
}
