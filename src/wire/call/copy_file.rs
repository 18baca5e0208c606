use serde::Deserialize;
use serde::Serialize;

use super::CallEffect;
use super::CallFacts;
use super::CallFields;
use super::CallKind;
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

/// Copies a file or a folder to a new name. Parent folders are created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CopyFile {
    pub source: BytesPath,
    pub destination: BytesPath,
    /// Whether a folder may be copied with its contents.
    pub recursive: bool,
    /// Whether an existing file may be replaced.
    pub overwrite: bool,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

impl ToolCall for CopyFile {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "copy_file",
        aliases: &["CopyFile", "cp"],
        subject: RuleSubject::Paths,
        file_use: FileUse::Changes,
    }];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "copy_file",
            kind: CallKind::LongFile,
            effect: CallEffect::AddsFiles,
            needs: &[],
            paths: vec![
                PathFact::read(&self.source),
                PathFact::made(&self.destination),
            ],
            scope: if self.recursive {
                FileScope::Whole(vec![&self.source, &self.destination])
            } else {
                FileScope::Named
            },
            details: Some(flags(&[
                (self.recursive, "recursive"),
                (self.overwrite, "overwrite"),
            ])),
            weight: 0,
            time: TimeLimit::Files,
            memory: FileMemory::Changed(self.known.as_ref()),
            verb: CallVerb::Paths("copy", &self.source, "to", &self.destination),
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
