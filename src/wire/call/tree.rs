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

/// Lists folders recursively, without hidden and ignored names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    pub path: BytesPath,
    /// Greatest depth; names in the folder itself have depth 1.
    pub depth: u32,
    pub max_entries: u32,
}

impl ToolCall for Tree {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "tree",
        aliases: &["Tree", "directory_tree"],
        subject: RuleSubject::Paths,
        file_use: FileUse::Neither,
    }];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "tree",
            kind: CallKind::LongFile,
            effect: CallEffect::Nothing,
            needs: &[CallNeed::ReadFiles],
            paths: vec![PathFact::named(&self.path)],
            scope: FileScope::Whole(vec![&self.path]),
            details: Some(Vec::new()),
            weight: 0,
            time: TimeLimit::Files,
            memory: FileMemory::Nothing,
            verb: CallVerb::Path("list", Some(&self.path)),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        CallFields::of(vec![&mut self.path])
    }
}
