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

/// Changes lines of one file by number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditLines {
    pub path: BytesPath,
    pub operation: LineOperation,
    /// Counted from 1. Inserted lines come before it; the number of lines plus one is the end of
    /// the file.
    pub start_line: u64,
    /// The last line that is replaced or deleted.
    pub end_line: u64,
    /// Empty where lines are deleted.
    pub new_content: String,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineOperation {
    Insert,
    Replace,
    Delete,
}

impl ToolCall for EditLines {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "edit_lines",
        aliases: &["replace_lines", "insert_lines", "delete_lines"],
        subject: RuleSubject::Paths,
        file_use: FileUse::Changes,
    }];

    fn facts(&self) -> CallFacts<'_> {
        let operation = match self.operation {
            LineOperation::Insert => "insert",
            LineOperation::Replace => "replace",
            LineOperation::Delete => "delete",
        };
        CallFacts {
            tool: "edit_lines",
            kind: CallKind::File,
            effect: CallEffect::AddsFiles,
            needs: &[CallNeed::WriteFiles],
            paths: vec![PathFact::changed(&self.path)],
            scope: FileScope::Named,
            details: Some(flags(&[(true, operation)])),
            weight: self.new_content.len(),
            time: TimeLimit::Files,
            memory: FileMemory::Changed(self.known.as_ref()),
            verb: CallVerb::Path("edit", Some(&self.path)),
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
