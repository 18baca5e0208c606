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

/// Searches file contents with ripgrep's engine and its rules about ignored, hidden and binary
/// files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grep {
    pub pattern: String,
    pub path: BytesPath,
    /// Which files, as in [`Glob::pattern`].
    pub glob: Option<String>,
    /// Whether hidden and ignored names are searched as well.
    #[serde(default)]
    pub include_ignored: bool,
    /// Lines shown before and after each match.
    pub context: u32,
    pub case_insensitive: bool,
    pub output: GrepOutput,
    pub max_results: u32,
    /// When the search stops with what it has, in milliseconds.
    pub timeout_ms: u64,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrepOutput {
    Content,
    FilesOnly,
    Count,
}

impl ToolCall for Grep {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "grep",
        aliases: &["Grep", "search_content", "search_regex", "search"],
        subject: RuleSubject::Paths,
        file_use: FileUse::Neither,
    }];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "grep",
            kind: CallKind::LongFile,
            effect: CallEffect::Nothing,
            needs: &[CallNeed::ReadFiles],
            paths: vec![PathFact::read(&self.path)],
            scope: FileScope::Whole(vec![&self.path]),
            details: Some(vec![Cow::Borrowed(self.pattern.as_str())]),
            weight: self.pattern.len(),
            time: TimeLimit::Search {
                timeout_ms: self.timeout_ms,
            },
            memory: FileMemory::Nothing,
            verb: CallVerb::Pattern("search for", &self.pattern),
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
