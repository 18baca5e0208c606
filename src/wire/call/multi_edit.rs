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
use super::Replacement;
use super::RuleSubject;
use super::TimeLimit;
use super::ToolCall;
use super::ToolFacts;
use crate::BytesPath;
use crate::Known;

/// Replaces text in several files, all replacements or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MultiEdit {
    /// Applied in order, each on the result of those before.
    pub edits: Vec<FileEdit>,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileEdit {
    pub path: BytesPath,
    pub edit: Replacement,
}

impl ToolCall for MultiEdit {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "multi_edit",
        aliases: &["MultiEdit"],
        subject: RuleSubject::Paths,
        file_use: FileUse::Changes,
    }];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "multi_edit",
            kind: CallKind::File,
            effect: CallEffect::AddsFiles,
            needs: &[CallNeed::WriteFiles],
            paths: self
                .edits
                .iter()
                .map(|edit| PathFact::changed(&edit.path))
                .collect(),
            scope: FileScope::Named,
            details: Some(Vec::new()),
            weight: self.edits.iter().map(|edit| edit.edit.weight()).sum(),
            time: TimeLimit::Files,
            memory: FileMemory::Changed(self.known.as_ref()),
            verb: CallVerb::Path("edit", self.edits.first().map(|edit| &edit.path)),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        CallFields {
            paths: self.edits.iter_mut().map(|edit| &mut edit.path).collect(),
            protected: Some(&mut self.protected),
            known: Some(&mut self.known),
        }
    }
}
