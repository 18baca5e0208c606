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

/// Renames a file, a link itself or a folder. Parent folders are created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoveFile {
    pub source: BytesPath,
    pub destination: BytesPath,
    /// Whether an existing file may be replaced.
    pub overwrite: bool,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

impl ToolCall for MoveFile {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "move_file",
        aliases: &["MoveFile", "rename_file", "mv"],
        subject: RuleSubject::Paths,
        file_use: FileUse::Changes,
    }];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "move_file",
            kind: CallKind::File,
            effect: CallEffect::Files,
            needs: &[CallNeed::WriteFiles],
            paths: vec![
                PathFact::changed(&self.source),
                PathFact::made(&self.destination),
            ],
            scope: FileScope::Whole(vec![&self.source, &self.destination]),
            details: Some(flags(&[(self.overwrite, "overwrite")])),
            weight: 0,
            time: TimeLimit::Files,
            memory: FileMemory::Changed(self.known.as_ref()),
            verb: CallVerb::Paths("move", &self.source, "to", &self.destination),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        CallFields {
            paths: vec![&mut self.source, &mut self.destination],
            protected: Some(&mut self.protected),
            known: Some(&mut self.known),
        }
    }
}
