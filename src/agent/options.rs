use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use podbay_event::ByteSize;
use podbay_event::Seconds;

/// How far one task may go: the section `[agent]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// Requests to the model for one task; 0 is no limit. In the last of them no tool can be
    /// called: it says what was done and what is not. One that has to be made again counts once;
    /// one for a summary that makes room does not.
    pub max_turns: u32,
    /// Time for one task, with all that `run` gets ready for it (engine, images, model, sandbox); 0
    /// is no limit.
    pub timeout: Seconds,
    /// Tokens for one task, read and written, cached ones included; 0 is no limit.
    pub max_tokens: u64,
    /// US dollars for one task; 0 is no limit. The server must say what an answer cost, or a price
    /// be named for it.
    pub max_cost: f64,
    /// Share of a limit after which the model is told to come to an end, in percent.
    pub wrap_up_percent: u8,
    /// Time for the last answer once a limit is reached; where `timeout` is set, at most a tenth of
    /// it and two seconds at the least.
    pub last_answer: Seconds,
    /// Share of the model's window from which on a checkpoint is kept in the log, in percent: what
    /// the session had come to, put together without the model.
    pub checkpoint_percent: u8,
    /// Share of the window at which room is made: long old results are set aside first, then a
    /// summary replaces older messages. 0: never, until the server refuses.
    pub compact_percent: u8,
    /// Shares of the window at which a warning is given.
    pub context_warnings: Vec<u8>,
    /// Answers, each with what came of it, that stay as they are when room is made.
    pub keep_turns: u32,
    /// Whether the model is shown the project's files at the start.
    pub show_files: bool,
    /// Most of them; they never take more than 5 % of the model's window.
    pub show_entries: u32,
    /// Levels of folders they are shown from.
    pub show_depth: u32,
    /// Whether the model is shown the branch and what is not committed at the start, where the
    /// project is a git repository.
    pub show_git: bool,
    /// Whether the project's instructions (`PODBAY.md`, and the first of `AGENTS.md`, `ORCA.md`,
    /// `.orca/ORCA.md`, `OPENMONO.md` and `.orangutan-config/orangutan.md` in its folder) are read.
    pub read_instructions: bool,
    /// Most lines of them; they never take more than 10 % of the model's window.
    pub instruction_lines: u32,
    /// Most bytes of them.
    pub instruction_bytes: ByteSize,
    /// How often in a row an answer that cannot be understood, an empty one, or one that a filter
    /// of the server cut, may come until the run fails.
    pub misunderstandings: u32,
    /// How often a call may fail in the same way, or a circle of up to four answers with a failure
    /// in it be run through, until the model is told so.
    pub redirect_at: u32,
    /// …and how often until the run ends with code 3; 0 is never.
    pub break_at: u32,
    /// How often a call, or a circle of up to four answers, may bring the same results until the
    /// run ends with code 3; the model is told one before. Where the results differ it is told at
    /// twice as many, and the run ends at four times. 0 is never.
    pub abort_at: u32,
    /// After how many denied calls in a row the model is told to stop trying, and the person that
    /// it was; 0 is never.
    pub denials_in_a_row: u32,
    /// …and after how many in the whole session.
    pub denials_in_all: u32,
    /// Ends a run with code 4 if anything was denied, not only its last change.
    pub deny_is_failure: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_turns: 25,
            timeout: Seconds::minutes(60),
            max_tokens: 0,
            max_cost: 0.0,
            wrap_up_percent: 85,
            last_answer: Seconds::new(60),
            checkpoint_percent: 65,
            compact_percent: 80,
            context_warnings: vec![75, 90],
            keep_turns: 4,
            show_files: true,
            show_entries: 200,
            show_depth: 4,
            show_git: true,
            read_instructions: true,
            instruction_lines: 200,
            instruction_bytes: ByteSize::kib(25),
            misunderstandings: 3,
            redirect_at: 3,
            break_at: 4,
            abort_at: 3,
            denials_in_a_row: 3,
            denials_in_all: 20,
            deny_is_failure: false,
        }
    }
}

impl Options {
    /// Returns how long a task may take; without a limit that is for ever.
    pub(super) fn time(&self) -> Duration {
        match self.timeout.duration() {
            Duration::ZERO => Duration::MAX,
            time => time,
        }
    }

    /// The last answer comes after the time of the task: a tenth more of it at the most, but never
    /// less than a few words take.
    pub(super) fn time_for_last_answer(&self) -> Duration {
        let most = self.last_answer.duration();
        match self.timeout.duration() {
            Duration::ZERO => most,
            time => most.min((time / 10).max(Duration::from_secs(2))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_takes_a_tenth_of_the_time_at_the_most() {
        let of = |seconds| {
            Options {
                timeout: Seconds::new(seconds),
                ..Options::default()
            }
            .time_for_last_answer()
            .as_secs()
        };
        assert_eq!([0, 4, 100, 3600].map(of), [60, 2, 10, 60]);
    }
}
