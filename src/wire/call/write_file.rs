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
use crate::Known;

/// Writes a whole file, or appends to it. Parent folders are created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteFile {
    pub path: BytesPath,
    pub content: String,
    pub append: bool,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

impl ToolCall for WriteFile {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "write_file",
        aliases: &["FileWrite", "Write", "create_file"],
        subject: RuleSubject::Paths,
        file_use: FileUse::Changes,
    }];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "write_file",
            kind: CallKind::File,
            effect: CallEffect::AddsFiles,
            needs: &[CallNeed::WriteFiles],
            paths: vec![PathFact::written(&self.path)],
            scope: FileScope::Named,
            details: Some(flags(&[(self.append, "append")])),
            weight: self.content.len(),
            time: TimeLimit::Files,
            memory: FileMemory::Changed(self.known.as_ref()),
            verb: CallVerb::Path("write", Some(&self.path)),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        CallFields {
            paths: vec![&mut self.path],
            protected: Some(&mut self.protected),
            known: Some(&mut self.known),
        }
    }
}
