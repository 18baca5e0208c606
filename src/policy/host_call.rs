//! What does not run in the box.

use podbay_wire::Hook;

/// Something that the host does itself.
#[derive(Clone, Debug, PartialEq)]
pub enum HostCall {
    /// Reads lines of a result that was too long to show.
    ReadArtifact {
        id: String,
        /// First line, from 1.
        offset: u64,
        limit: u64,
    },
    /// Writes a thought down.
    Think {
        thought: String,
    },
    Tasks(TaskChange),
    /// Asks the person something that is no permission.
    AskUser {
        question: String,
        /// What can be answered; another answer can always be typed.
        options: Vec<String>,
    },
    FindTools(FindTools),
    /// Runs a command of the person's own settings on their machine.
    Hook(Hook),
}

/// What is done to the model's list of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskChange {
    Show,
    Add {
        task: String,
    },
    /// Marks a task, named by its number from 1.
    Mark {
        id: u32,
        status: TaskStatus,
    },
    Remove {
        id: u32,
    },
    /// Puts a list in the place of the one that is there.
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

/// Looks for tools that the model is not told of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindTools {
    /// Tools by name, of which all is wanted.
    pub names: Vec<String>,
    /// Words to find others by; `None`: all of them.
    pub query: Option<String>,
    pub max_results: u32,
}
