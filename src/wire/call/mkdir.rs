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

/// Creates a folder and its missing parents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mkdir {
    pub path: BytesPath,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
}

impl ToolCall for Mkdir {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "mkdir",
        aliases: &["create_directory", "make_directory"],
        subject: RuleSubject::Paths,
        file_use: FileUse::Changes,
    }];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "mkdir",
            kind: CallKind::File,
            effect: CallEffect::AddsFiles,
            needs: &[CallNeed::WriteFiles],
            paths: vec![PathFact::written(&self.path)],
            scope: FileScope::Named,
            details: Some(Vec::new()),
            weight: 0,
            time: TimeLimit::Files,
            memory: FileMemory::Nothing,
            verb: CallVerb::Path("make the folder", Some(&self.path)),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        CallFields {
            paths: vec![&mut self.path],
            protected: Some(&mut self.protected),
            known: None,
        }
    }
}
