use std::borrow::Cow;

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

/// Finds files by name, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Glob {
    pub pattern: String,
    pub path: BytesPath,
    pub exclude: Option<String>,
    /// Whether hidden and ignored names are searched as well.
    #[serde(default)]
    pub include_ignored: bool,
    pub max_results: u32,
}

impl ToolCall for Glob {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "glob",
        aliases: &["Glob", "search_files", "find_files"],
        subject: RuleSubject::Paths,
        file_use: FileUse::Neither,
    }];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "glob",
            kind: CallKind::LongFile,
            effect: CallEffect::Nothing,
            needs: &[CallNeed::ReadFiles],
            paths: vec![PathFact::named(&self.path)],
            scope: FileScope::Whole(vec![&self.path]),
            details: Some(vec![Cow::Borrowed(self.pattern.as_str())]),
            weight: self.pattern.len(),
            time: TimeLimit::Files,
            memory: FileMemory::Nothing,
            verb: CallVerb::Pattern("find", &self.pattern),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        CallFields::of(vec![&mut self.path])
    }
}
