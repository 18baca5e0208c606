use serde::Deserialize;
use serde::Serialize;

use super::RunStatus;

/// What a task came to with its last answer: given as it stands by whoever goes on with a run that was stopped before it could end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// `Completed`, or `Blocked` where something that the task needs was denied.
    pub status: RunStatus,
    /// What the person gets: the last answer, with what was said before it where that belongs to it.
    pub response: String,
    /// The calls that were denied, as the report names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
}
