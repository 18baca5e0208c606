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
use super::TimeLimit;
use super::ToolCall;
use super::ToolFacts;
use crate::ExecRule;

/// Runs a command of the user's settings in the project's folder, to its end; with separate
/// streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hook {
    pub command: String,
    /// Its whole standard input.
    pub input: String,
    /// Name and value, in addition to those of every command.
    pub environment: Vec<(String, String)>,
    pub timeout_ms: u64,
    /// Time between TERM and KILL, in milliseconds.
    pub grace_ms: u64,
    /// How many bytes of output are sent; the rest is read and discarded, so that the command does
    /// not block.
    pub output_bytes: u64,
    /// Rules about the programs that it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ExecRule>,
}

impl ToolCall for Hook {
    const TOOLS: &'static [ToolFacts] = &[];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "hook",
            kind: CallKind::Command,
            effect: CallEffect::Files,
            needs: &[CallNeed::Command],
            paths: Vec::new(),
            scope: FileScope::Named,
            details: Some(Vec::new()),
            weight: self.command.len() + self.input.len(),
            time: TimeLimit::Command {
                timeout_ms: self.timeout_ms,
                grace_ms: self.grace_ms,
            },
            memory: FileMemory::Nothing,
            verb: CallVerb::CommandLine("run the hook", &self.command),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        CallFields::of(Vec::new())
    }
}
