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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListDirectory {
    pub path: BytesPath,
    pub recursive: bool,
    pub show_hidden: bool,
    /// Whether sizes of files are returned.
    pub show_size: bool,
    pub max_entries: u32,
}

impl ToolCall for ListDirectory {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "list_directory",
        aliases: &["ListDirectory", "ls", "list_dir", "list_files"],
        subject: RuleSubject::Paths,
        file_use: FileUse::Neither,
    }];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "list_directory",
            kind: CallKind::File,
            effect: CallEffect::Nothing,
            needs: &[CallNeed::ReadFiles],
            paths: vec![PathFact::named(&self.path)],
            scope: if self.recursive {
                FileScope::Whole(vec![&self.path])
            } else {
                FileScope::Listed(&self.path)
            },
            details: Some(flags(&[(self.recursive, "recursive")])),
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
