use serde::Deserialize;
use serde::Serialize;

use super::RunStatus;

/// What a task came to, written before anything is done that may take a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnd {
    pub status: RunStatus,
    /// What the user gets: the last answer, with what was said before it where that belongs to
    /// it.
    pub response: String,
    /// The calls that were denied, as the report names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
}

impl TaskEnd {
    /// Returns whether the last answer ends the task: whoever continues it has nothing to ask. A
    /// task that a limit, a failure or the user ended continues.
    pub fn is_settled(&self) -> bool {
        matches!(self.status, RunStatus::Completed | RunStatus::Blocked)
    }
}
