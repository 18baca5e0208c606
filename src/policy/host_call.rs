//! Calls that run on the host, not in the sandbox.

use podbay_wire::Hook;

/// A call that the host executes itself.
#[derive(Clone, Debug, PartialEq)]
pub enum HostCall {
    /// Reads lines of a result that was too long to show.
    ReadArtifact {
        id: String,
        /// First line, from 1.
        offset: u64,
        limit: u64,
    },
    /// Records a thought.
    Think {
        thought: String,
    },
    Tasks(TaskChange),
    /// Asks the user a question that is not about a permission.
    AskUser {
        question: String,
        /// Suggested answers; any other answer can always be typed.
        options: Vec<String>,
    },
    FindTools(FindTools),
    /// Runs a command from the user's own settings on their machine.
    Hook(Hook),
}

/// A change of the model's task list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskChange {
    Show,
    Add {
        task: String,
    },
    /// Sets the status of a task, given by its number from 1.
    Mark {
        id: u32,
        status: TaskStatus,
    },
    Remove {
        id: u32,
    },
    /// Replaces the list.
    Replace(Vec<Task>),
}

/// One task of the model's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub content: String,
    pub status: TaskStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    Pending,
    InProgress,
    Completed,
}

/// Searches for tools that are not in the model's tool list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindTools {
    /// Tools by name, to describe completely.
    pub names: Vec<String>,
    /// Words to search others by; `None`: all of them.
    pub query: Option<String>,
    pub max_results: u32,
}
