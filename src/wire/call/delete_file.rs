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

/// Deletes a file, a link itself or a folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeleteFile {
    pub path: BytesPath,
    /// Whether a folder may be deleted with its contents.
    pub recursive: bool,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

impl ToolCall for DeleteFile {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "delete_file",
        aliases: &["DeleteFile", "remove_file", "rm"],
        subject: RuleSubject::Paths,
        file_use: FileUse::Changes,
    }];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "delete_file",
            kind: CallKind::LongFile,
            effect: CallEffect::Files,
            needs: &[CallNeed::WriteFiles],
            paths: vec![PathFact::changed(&self.path)],
            scope: if self.recursive {
                FileScope::Whole(vec![&self.path])
            } else {
                FileScope::Named
            },
            details: Some(flags(&[(self.recursive, "recursive")])),
            weight: 0,
            time: TimeLimit::Files,
            memory: FileMemory::Changed(self.known.as_ref()),
            verb: CallVerb::Path("delete", Some(&self.path)),
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
