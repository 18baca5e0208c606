use serde::Deserialize;
use serde::Serialize;

use super::CallEffect;
use super::CallFacts;
use super::CallFields;
use super::CallKind;
use super::CallNeed;
use super::CallVerb;
use super::FileMemory;
use super::FileScope;
use super::FileUse;
use super::PathFact;
use super::RuleSubject;
use super::TimeLimit;
use super::ToolCall;
use super::ToolFacts;
use super::flags;
use crate::BytesPath;
use crate::ExecRule;
use crate::WriteGate;

/// Runs one shell command. Its output, both streams in the order written, comes as chunks on
/// [`crate::message::Stream::Stdout`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bash {
    pub command: String,
    /// Working directory; `None`: where the last command of the session ended.
    pub working_directory: Option<BytesPath>,
    pub timeout_ms: u64,
    /// Time between TERM and KILL, in milliseconds.
    pub grace_ms: u64,
    /// How many bytes of output are streamed; after these the guest keeps only the last
    /// `tail_bytes` and sends them at the end.
    pub stream_bytes: u64,
    pub tail_bytes: u64,
    /// Lets it run on when the call ends; its output goes to a file in the sandbox.
    pub background: bool,
    /// Rules about the programs that it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ExecRule>,
    /// Holds it at its first write; `None`: it writes without a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_gate: Option<WriteGate>,
}

impl ToolCall for Bash {
    const TOOLS: &'static [ToolFacts] = &[
        ToolFacts {
            name: "bash",
            aliases: &[
                "Bash",
                "run_command",
                "shell",
                "execute_command",
                "execute_bash",
            ],
            subject: RuleSubject::Commands,
            file_use: FileUse::Neither,
        },
        ToolFacts {
            name: "start_background_process",
            aliases: &[
                "StartBackgroundProcess",
                "run_in_background",
                "start_process",
            ],
            subject: RuleSubject::Commands,
            file_use: FileUse::Neither,
        },
    ];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "bash",
            kind: CallKind::Command,
            effect: CallEffect::Files,
            needs: &[CallNeed::Command],
            paths: self
                .working_directory
                .iter()
                .map(PathFact::working_directory)
                .collect(),
            scope: FileScope::Named,
            details: Some(flags(&[(self.background, "background")])),
            weight: self.command.len(),
            time: TimeLimit::Command {
                timeout_ms: self.timeout_ms,
                grace_ms: self.grace_ms,
            },
            memory: FileMemory::Nothing,
            verb: CallVerb::CommandLine("run", &self.command),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        CallFields::of(self.working_directory.iter_mut().collect())
    }
}
