use std::time::Instant;

use super::Failure;
use super::Outcome;
use super::budget::Spent;
use super::loop_detector::LoopDetector;
use podbay_event::LimitKind;
use podbay_event::OpenAnswer;
use podbay_event::RunStatus;
use podbay_tools::EarlyCall;
use podbay_tools::FileChangeKind;
use podbay_wire::BytesPath;

/// The state of one task.
pub(super) struct Task {
    pub(super) begun: Instant,
    pub(super) spent: Spent,
    /// How often the user let it continue at the limit on requests.
    pub(super) n_continued: u32,
    pub(super) tool_calls: u32,
    pub(super) n_succeeded: u32,
    pub(super) denied: Vec<String>,
    /// Whether the last call that could change something was denied.
    pub(super) blocked: bool,
    /// Whether the model was told that a limit is near.
    pub(super) warned: bool,
    pub(super) n_misunderstood: u32,
    pub(super) n_silent: u32,
    /// How the next answer is to be parsed.
    pub(super) open: OpenAnswer,
    pub(super) response: String,
    pub(super) changed: Vec<(BytesPath, FileChangeKind)>,
    /// A call that could change something has succeeded.
    pub(super) has_worked: bool,
    pub(super) stuck: LoopDetector,
    /// It has a single answer, in which no tool can be called.
    pub(super) is_talk: bool,
    /// The cost of some answer is unknown.
    pub(super) is_unpriced: bool,
    /// The limit of the task that truncated the last answer.
    pub(super) cut: Option<LimitKind>,
    /// Answers in a row that the server's filter truncated.
    pub(super) n_filtered: u32,
    /// Calls of the last answer that were started early.
    pub(super) early: Vec<EarlyCall>,
}

impl Task {
    pub(super) fn new(begun: Instant) -> Self {
        Self {
            begun,
            spent: Spent::default(),
            n_continued: 0,
            tool_calls: 0,
            n_succeeded: 0,
            denied: Vec::new(),
            blocked: false,
            warned: false,
            n_misunderstood: 0,
            n_silent: 0,
            open: OpenAnswer::default(),
            response: String::new(),
            changed: Vec::new(),
            has_worked: false,
            stuck: LoopDetector::default(),
            is_talk: false,
            is_unpriced: false,
            cut: None,
            n_filtered: 0,
            early: Vec::new(),
        }
    }

    /// Returns an answer together with its earlier pieces.
    pub(super) fn whole(&mut self, rest: &str) -> String {
        std::mem::take(&mut self.open.pieces).concat() + rest
    }

    /// Builds the report of the task.
    pub(super) fn outcome(
        mut self,
        status: RunStatus,
        limit: Option<LimitKind>,
        failure: Option<Failure>,
    ) -> Outcome {
        if self.response.is_empty() {
            // It was not continued: the partial answer is all there is.
            self.response = self.whole("");
        }
        Outcome {
            status: if failure.is_some() {
                RunStatus::Failed
            } else {
                status
            },
            response: self.response,
            turns: self.spent.turns,
            tool_calls: self.tool_calls,
            usage: self.spent.usage,
            limit,
            failure,
            denied: self.denied,
            n_succeeded: self.n_succeeded,
            changed: self.changed,
        }
    }
}
