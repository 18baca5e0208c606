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

/// Reads a page of one file, or the first page of each file of a cursor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadFile {
    /// The file; `None` only together with `cursor`.
    pub path: Option<BytesPath>,
    /// First line, counted from 1.
    pub offset: u64,
    /// Most lines.
    pub limit: u64,
    /// Most bytes of text, over all files.
    pub max_bytes: u64,
    /// A cursor that `grep` or `glob` returned: reads its next files.
    pub cursor: Option<String>,
    /// How many files of the cursor to read.
    pub max_files: u32,
    /// Whether an image is returned as it is; otherwise, and through a cursor, an image is a fault.
    #[serde(default)]
    pub images: bool,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
}

impl ToolCall for ReadFile {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "read_file",
        aliases: &["FileRead", "view_file", "Read"],
        subject: RuleSubject::Paths,
        file_use: FileUse::Shows,
    }];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "read_file",
            kind: CallKind::File,
            effect: CallEffect::Nothing,
            needs: &[CallNeed::ReadFiles],
            paths: self.path.iter().map(PathFact::read).collect(),
            scope: match self.path {
                Some(_) => FileScope::Named,
                // It reads files that a search has found.
                None => FileScope::Unnamed,
            },
            details: Some(Vec::new()),
            weight: self.cursor.as_ref().map_or(0, String::len),
            time: TimeLimit::Files,
            memory: FileMemory::Shown,
            verb: CallVerb::Path("read", self.path.as_ref()),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        CallFields {
            paths: self.path.iter_mut().collect(),
            protected: Some(&mut self.protected),
            known: None,
        }
    }
}
