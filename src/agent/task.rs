use std::time::Instant;

use super::Failure;
use super::Outcome;
use super::budget::Spent;
use super::stuck::Stuck;
use podbay_event::LimitKind;
use podbay_event::OpenAnswer;
use podbay_event::RunStatus;
use podbay_tools::EarlyCall;
use podbay_tools::FileChangeKind;
use podbay_wire::BytesPath;

/// What one task has come to so far.
pub(super) struct Task {
    pub(super) begun: Instant,
    pub(super) spent: Spent,
    pub(super) tool_calls: u32,
    pub(super) n_succeeded: u32,
    pub(super) denied: Vec<String>,
    /// Whether the last call that could change something was denied.
    pub(super) blocked: bool,
    /// Whether the model was told that the end is near.
    pub(super) warned: bool,
    pub(super) n_misunderstood: u32,
    pub(super) n_silent: u32,
    /// What the next answer is read with.
    pub(super) open: OpenAnswer,
    pub(super) response: String,
    pub(super) changed: Vec<(BytesPath, FileChangeKind)>,
    /// A call that could change something did what was asked.
    pub(super) has_worked: bool,
    pub(super) stuck: Stuck,
    /// It has one answer, and no tool can be called in that.
    pub(super) is_talk: bool,
    /// What some answer cost is not known.
    pub(super) is_unpriced: bool,
    /// The last answer ended where this limit of the task did.
    pub(super) cut: Option<LimitKind>,
    /// Answers in a row that a filter of the server cut.
    pub(super) n_filtered: u32,
    /// The calls of the last answer that began while it came.
    pub(super) early: Vec<EarlyCall>,
}

impl Task {
    pub(super) fn new(begun: Instant) -> Self {
        Self {
            begun,
            spent: Spent::default(),
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
            stuck: Stuck::default(),
            is_talk: false,
            is_unpriced: false,
            cut: None,
            n_filtered: 0,
            early: Vec::new(),
        }
    }

    /// Returns an answer with what was said of it before it was cut.
    pub(super) fn whole(&mut self, rest: &str) -> String {
        std::mem::take(&mut self.open.pieces).concat() + rest
    }

    /// Puts together what is reported of a self.
    pub(super) fn outcome(
        mut self,
        status: RunStatus,
        limit: Option<LimitKind>,
        failure: Option<Failure>,
    ) -> Outcome {
        if self.response.is_empty() {
            // Nothing went on with it: half an answer is what there is.
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
