use std::fmt;

use serde::Deserialize;
use serde::Serialize;

use super::Applied;
use super::Named;
use super::PassedOver;
use super::PathChange;
use crate::BytesPath;

/// Tells the keeper where turns begin and end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "turn", rename_all = "snake_case")]
pub enum TurnOrder {
    /// Before the first change of a turn.
    Begin {
        session: String,
        /// Which turn of the session, counted from 1.
        n_turn: u64,
        /// What the person wrote; its first 80 characters are kept.
        words: String,
        /// As in [`Self::End`]: it may be that another turn has to be ended first.
        #[serde(default)]
        place: BytesPath,
        #[serde(default)]
        auto_run: Vec<String>,
    },
    /// After the last change of the turn that was begun.
    End {
        /// Where the project's folder is on the person's machine.
        place: BytesPath,
        /// The person's patterns of files that may run on their machine, beside those that are
        /// known.
        #[serde(default)]
        auto_run: Vec<String>,
    },
}

/// What a person asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "undo", rename_all = "snake_case")]
pub enum UndoOrder {
    List,
    /// Shows what the last `n` turns changed that were not taken back, each by itself.
    Diff {
        n: u32,
    },
    /// Takes back the last `n` turns that changed something.
    Back {
        n: u32,
        /// Puts lines of both sides together where a file was changed since; without it such files
        /// are left.
        merge: bool,
        /// A sandbox of the project runs meanwhile: what may be a secret that is hidden from it is
        /// left.
        is_beside: bool,
    },
    /// Brings back the `n` turns that were taken back last.
    Forward {
        n: u32,
        merge: bool,
        is_beside: bool,
    },
    /// Tries again what was left when turns were taken back, or brought back.
    Retry {
        merge: bool,
        is_beside: bool,
    },
    /// Finishes what was interrupted, if anything was.
    Resume,
    /// Gives up what was interrupted: what is done stays done, the rest is not.
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

    /// Returns the same for a project of which a sandbox runs.
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

/// What is answered to a [`TurnOrder`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnAnswer {
    Began(TurnBegan),
    Ended(TurnEnded),
}

/// What is answered to an [`UndoOrder`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoAnswer {
    Turns(Turns),
    Differences {
        turns: Vec<TurnDifference>,
    },
    Undone(Undone),
    /// Changes of that name, which were interrupted, are in.
    Applied {
        name: String,
        applied: Applied,
    },
    Abandoned,
    /// Nothing was interrupted.
    Nothing,
    /// Nothing was done: an earlier one was interrupted, and has to be finished or given up first.
    Unfinished,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnBegan {
    pub turn: u64,
    pub n_files: u64,
    /// What undo will not be able to bring back.
    pub passed_over: Named<PassedOver>,
    /// Whether an application of changes from elsewhere was interrupted and waits for being
    /// resumed.
    pub is_unfinished: bool,
    /// Whether an undo was interrupted, which this turn ends: the turn it was about counts as not
    /// taken back.
    #[serde(default)]
    pub is_given_up: bool,
    /// Which files that the turn before changed may run on the person's machine later, if that turn
    /// was cut off, so that nobody said it.
    #[serde(default)]
    pub may_run: Named<MayRun>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnded {
    pub turn: u64,
    /// Those nearest to the top first.
    pub changes: Named<PathChange>,
    /// Which of all of them may run on the person's machine later.
    pub may_run: Named<MayRun>,
    /// Whether there may be others: hooks or settings of git name more than is looked at.
    #[serde(default)]
    pub is_may_run_cut: bool,
    pub passed_over: Named<PassedOver>,
}

/// A new or changed file that programs on the host run or obey.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayRun {
    pub path: BytesPath,
    /// Which program, and when, in words.
    pub why: String,
    pub when: When,
}

/// When a program obeys a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// As soon as the person opens or enters the folder, commits, or starts an agent there: such a
    /// file waits until they say yes.
    ByItself,
    /// When they build, test, install or deploy: such a file is named.
    WhenYouRunIt,
}

impl fmt::Display for When {
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
    /// Its end was not told yet.
    Open,
    Done,
    /// Can be brought back.
    TakenBack,
}

/// One turn of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnTaken {
    pub turn: u64,
    pub session: String,
    pub n_turn: u64,
    pub words: String,
    /// When it began, in seconds since 1970.
    pub at: u64,
    pub state: TurnState,
    /// How many paths it changed; unknown while it is open.
    pub n_changed: Option<u64>,
    /// Its end was never told, so whatever was changed until the next look counts as its change.
    pub is_interrupted: bool,
    /// How many paths were left as they were when it was taken back, or brought back, and may be
    /// tried again.
    #[serde(default)]
    pub n_left: u64,
}

/// The turns that changed something, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    pub turns: Named<TurnTaken>,
    /// What the snapshots take on disk, and may take.
    pub n_bytes: u64,
    pub most_bytes: u64,
    pub is_unfinished: bool,
}

/// What one turn changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnDifference {
    pub turn: TurnTaken,
    pub changes: Named<PathChange>,
    /// A unified diff.
    pub text: String,
    /// How many changed files are not in the text because it would be too long.
    pub n_left_out: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoneTurn {
    pub turn: TurnTaken,
    pub applied: Applied,
}

/// What came of going back or forward; fewer turns than were asked for where there are no more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    pub turns: Vec<UndoneTurn>,
    /// How many more could be taken back, and brought back, now.
    pub n_back: u64,
    pub n_forward: u64,
}
