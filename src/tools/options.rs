use serde::Deserialize;
use serde::Serialize;

use super::ToolSet;
use podbay_event::ByteSize;
use podbay_event::Seconds;

/// Which tools the model has, and their limits: the section `[tools]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Options {
    /// Which tools are listed for the model: `small`, `standard` or `full`.
    pub set: ToolSet,
    /// Most read-only calls of one answer that run at once.
    pub parallel: u32,
    /// Time limit of a command if the model gives none.
    pub bash_timeout: Seconds,
    /// Longest time limit that the model may ask for.
    pub bash_timeout_max: Seconds,
    /// Time between TERM and KILL for a command that timed out.
    pub bash_grace: Seconds,
    /// Most characters of a command's output that the model reads.
    pub bash_output: ByteSize,
    /// Most output of a command that is streamed while it runs; of the rest only the end is kept.
    pub bash_stream: ByteSize,
    /// How much of the end is kept.
    pub bash_tail: ByteSize,
    /// Memory of a sandbox of `sandbox_run`, at least 64MiB; the model may ask for less, and it is
    /// never more than `sandbox.memory`.
    pub sandbox_run_memory: ByteSize,
    /// Lines that `read_file` returns if the model gives no number.
    pub read_lines: u64,
    /// Most bytes that `read_file` returns.
    pub read_bytes: ByteSize,
    /// Results of `grep` and `glob` if the model gives no number.
    pub search_results: u32,
    /// Most results that the model may ask for.
    pub search_results_max: u32,
    /// Time limit of `grep`.
    pub search_timeout: Seconds,
    /// Entries that `list_directory` returns if the model gives no number.
    pub list_entries: u32,
    /// Share of the model's window that one result may take, in percent.
    pub result_percent: u8,
    /// A result over this size, other than what `read_file` shows, is also kept as an artifact.
    pub artifact_threshold: ByteSize,
    /// Time limit of a file tool.
    pub file_timeout: Seconds,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            set: ToolSet::Standard,
            parallel: 8,
            bash_timeout: Seconds::new(120),
            bash_timeout_max: Seconds::new(600),
            bash_grace: Seconds::new(1),
            bash_output: ByteSize::new(30_000),
            bash_stream: ByteSize::mib(8),
            bash_tail: ByteSize::mib(1),
            sandbox_run_memory: ByteSize::gib(1),
            read_lines: 2000,
            read_bytes: ByteSize::kib(50),
            search_results: 250,
            search_results_max: 500,
            search_timeout: Seconds::new(120),
            list_entries: 1000,
            result_percent: 15,
            artifact_threshold: ByteSize::kib(10),
            file_timeout: Seconds::new(60),
        }
    }
}
