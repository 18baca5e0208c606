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
use super::RuleSubject;
use super::TimeLimit;
use super::ToolCall;
use super::ToolFacts;
use crate::Known;

/// File with the project's instructions for agents.
pub const INSTRUCTIONS: &str = "PODBAY.md";

/// Files with instructions in projects that other agents work on; the first non-empty one is read
/// as well.
pub const OTHER_INSTRUCTIONS: [&str; 6] = [
    "AGENTS.md",
    "CLAUDE.md",
    "ORCA.md",
    ".orca/ORCA.md",
    "OPENMONO.md",
    ".orangutan-config/orangutan.md",
];

/// Replaces a section of the project's instructions for agents, `PODBAY.md`, by its heading.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpdateConfig {
    /// The heading, without its `#`.
    pub section: String,
    /// The text below it; empty removes the section.
    pub content: String,
    /// Whether the file may be created beside another one with instructions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beside: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

impl ToolCall for UpdateConfig {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "update_config",
        aliases: &["UpdateConfig", "update_instructions"],
        subject: RuleSubject::Nothing,
        file_use: FileUse::Neither,
    }];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "update_config",
            kind: CallKind::File,
            effect: CallEffect::AddsFiles,
            needs: if self.beside {
                &[CallNeed::AddInstructions]
            } else {
                &[CallNeed::UpdateInstructions]
            },
            paths: Vec::new(),
            scope: FileScope::Named,
            details: Some(Vec::new()),
            weight: self.content.len(),
            time: TimeLimit::Files,
            memory: FileMemory::Instructions(self.known.as_ref()),
            verb: CallVerb::Plain("change the project's instructions"),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        CallFields {
            paths: Vec::new(),
            protected: None,
            known: Some(&mut self.known),
        }
    }
}
