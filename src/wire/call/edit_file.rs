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
use crate::BytesPath;
use crate::Known;

/// Replaces text in one file, all replacements or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditFile {
    pub path: BytesPath,
    /// Applied in order, each on the result of the one before.
    pub edits: Vec<Replacement>,
    /// Creates the file from the first `new_string` where it does not exist and the first
    /// `old_string` is empty.
    pub create_if_missing: bool,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replacement {
    pub old_string: String,
    pub new_string: String,
    pub replace_all: bool,
}

impl ToolCall for EditFile {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "edit_file",
        aliases: &["FileEdit", "Edit", "str_replace"],
        subject: RuleSubject::Paths,
        file_use: FileUse::Changes,
    }];

    fn facts(&self) -> CallFacts<'_> {
        let path = if self.create_if_missing {
            PathFact::written(&self.path)
        } else {
            PathFact::changed(&self.path)
        };
        CallFacts {
            tool: "edit_file",
            kind: CallKind::File,
            effect: CallEffect::AddsFiles,
            needs: &[CallNeed::WriteFiles],
            paths: vec![path],
            scope: FileScope::Named,
            details: Some(Vec::new()),
            weight: self.edits.iter().map(Replacement::weight).sum(),
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

impl Replacement {
    pub(super) fn weight(&self) -> usize {
        self.old_string.len() + self.new_string.len()
    }
}
