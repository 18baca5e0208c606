use std::time::Duration;

use serde::Deserialize;
use serde::Serialize;

use podbay_event::ByteSize;
use podbay_event::Seconds;

/// The section `[agent]` of the configuration: limits of a task and the agent's behaviour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// Maximum number of requests to the model per task; 0 is no limit. In the last of them no tool
    /// can be called: it reports what was done and what is missing. A retried request counts once;
    /// a request for a summary does not count. A chat asks at this limit whether to continue with as
    /// many more.
    pub max_turns: u32,
    /// Maximum time per task, including the preparation by `run` (engine, images, model, sandbox);
    /// 0 is no limit.
    pub timeout: Seconds,
    /// Maximum number of tokens per task, read and generated, including cached ones; 0 is no limit.
    pub max_tokens: u64,
    /// Maximum cost per task in US dollars; 0 is no limit. The server must report the cost of an
    /// answer, or a price must be set.
    pub max_cost: f64,
    /// Percentage of a limit at which the model is told to finish.
    pub wrap_up_percent: u8,
    /// Time for the final answer once a limit is reached; if `timeout` is set, at most a tenth of
    /// it and at least two seconds.
    pub last_answer: Seconds,
    /// Percentage of the model's window at which the conversation is compacted: long old results are
    /// replaced by references first, then older messages by a summary. 0: only when the server
    /// refuses it.
    pub compact_percent: u8,
    /// Share of the window below which setting results aside is enough, so that no summary is made.
    pub compact_to_percent: u8,
    /// Percentages of the window at which a warning is shown.
    pub context_warnings: Vec<u8>,
    /// Number of latest answers, with their results, that compaction leaves unchanged.
    pub keep_turns: u32,
    /// Whether the model is shown the project's files at the start.
    pub show_files: bool,
    /// Maximum number of files shown; they never take more than 5 % of the model's window.
    pub show_entries: u32,
    /// Maximum folder depth of the files shown.
    pub show_depth: u32,
    /// Whether the model is shown at the start how the project is built and tested, by its own files
    /// at the top (`Makefile`, `package.json` and others); it never takes more than 2 % of the
    /// model's window.
    pub show_commands: bool,
    /// Whether the model is shown the branch and uncommitted changes at the start, if the project
    /// is a git repository.
    pub show_git: bool,
    /// Whether the project's instructions (`PODBAY.md`, and the first of `AGENTS.md`, `CLAUDE.md`,
    /// `ORCA.md`, `.orca/ORCA.md`, `OPENMONO.md` and `.orangutan-config/orangutan.md` in its
    /// folder) are read, those of its folders once a file there is read or changed, and what all of
    /// them import with `@path`.
    pub read_instructions: bool,
    /// Maximum number of lines of a file of instructions; those of the project never take more than
    /// 10 % of the model's window, those of its folders as much again.
    pub instruction_lines: u32,
    /// Maximum size of a file of instructions.
    pub instruction_bytes: ByteSize,
    /// How many answers in a row may be unusable, empty or truncated by the server's filter until
    /// the run fails.
    pub misunderstandings: u32,
    /// How often a call may fail in the same way, or a cycle of up to four answers including a
    /// failure may repeat, until the model is told so.
    pub redirect_at: u32,
    /// How often the same until the run ends with code 3; 0 is never.
    pub break_at: u32,
    /// How often a call, or a cycle of up to four answers, may have the same results until the run
    /// ends with code 3; the model is told one repetition earlier. If the results differ the model
    /// is told at twice as many, and the run ends at four times. 0 is never.
    pub abort_at: u32,
    /// After how many denied calls in a row the model is told to stop trying, and the user is
    /// notified; 0 is never.
    pub denials_in_a_row: u32,
    /// After how many denied calls in the whole session the same happens.
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
            compact_percent: 80,
            compact_to_percent: 65,
            context_warnings: vec![75, 90],
            keep_turns: 4,
            show_files: true,
            show_entries: 200,
            show_depth: 4,
            show_commands: true,
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
    /// Returns how long a task may take; without a limit practically forever.
    pub(super) fn time(&self) -> Duration {
        match self.timeout.duration() {
            Duration::ZERO => Duration::MAX,
            time => time,
        }
    }

    /// Returns the additional time for the final answer: at most a tenth of the task's time, but
    /// enough for a few words.
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
    fn the_final_answer_takes_at_most_a_tenth_of_the_time() {
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
