use serde::Deserialize;
use serde::Serialize;

use crate::event::ByteSize;
use crate::event::Seconds;

/// How far one task may go: the section `[agent]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// Requests to the model for one task.
    pub max_turns: u32,
    /// Time for one task, with all that `run` gets ready for it (engine, images, model, sandbox); 0 is no limit.
    pub timeout: Seconds,
    /// Tokens for one task, read and written, cached ones included; 0 is no limit.
    pub max_tokens: u64,
    /// Share of a limit after which the model is told to come to an end, in percent.
    pub wrap_up_percent: u8,
    /// Time for the last answer once the time limit is reached.
    pub last_answer: Seconds,
    /// Whether the model is shown the project's files at the start.
    pub show_files: bool,
    /// Most of them; they never take more than 5 % of the model's window.
    pub show_entries: u32,
    /// Levels of folders they are shown from.
    pub show_depth: u32,
    /// Whether the project's instructions (`PODBAY.md`, `AGENTS.md` and the like) are read.
    pub read_instructions: bool,
    /// Most lines of them; they never take more than 10 % of the model's window.
    pub instruction_lines: u32,
    /// Most bytes of them.
    pub instruction_bytes: ByteSize,
    /// How often in a row an answer that cannot be understood, or an empty one, is asked for again.
    pub misunderstandings: u32,
    /// Ends a run with code 4 if anything was denied, not only its last change.
    pub deny_is_failure: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_turns: 25,
            timeout: Seconds::minutes(60),
            max_tokens: 0,
            wrap_up_percent: 85,
            last_answer: Seconds::new(60),
            show_files: true,
            show_entries: 200,
            show_depth: 4,
            read_instructions: true,
            instruction_lines: 200,
            instruction_bytes: ByteSize::kib(25),
            misunderstandings: 3,
            deny_is_failure: false,
        }
    }
}
