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
use super::PathFact;
use super::TimeLimit;
use super::ToolCall;
use super::ToolFacts;
use crate::BytesPath;

/// Runs one program with the user's own input; an empty `argv` means the sandbox's shell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exec {
    pub argv: Vec<BytesPath>,
    pub working_directory: Option<BytesPath>,
    /// Name and value, in addition to those of every command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<(String, String)>,
    /// With a terminal both streams come as `Stdout`.
    pub terminal: Option<Terminal>,
    pub timeout_ms: Option<u64>,
    pub grace_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terminal {
    pub rows: u16,
    pub columns: u16,
    /// The user's `TERM`.
    pub kind: String,
}

impl ToolCall for Exec {
    const TOOLS: &'static [ToolFacts] = &[];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "bash",
            kind: CallKind::Command,
            effect: CallEffect::Files,
            needs: &[CallNeed::RunInSandbox],
            paths: self
                .working_directory
                .iter()
                .map(PathFact::working_directory)
                .collect(),
            scope: FileScope::Named,
            details: Some(Vec::new()),
            weight: self.argv.iter().map(|word| word.as_bytes().len()).sum(),
            time: TimeLimit::Own {
                timeout_ms: self.timeout_ms,
                grace_ms: self.grace_ms,
            },
            memory: FileMemory::Nothing,
            verb: CallVerb::Program("run", self.argv.first()),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        CallFields::of(self.working_directory.iter_mut().collect())
    }
}
