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

/// Sets the working directory of later commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cd {
    pub path: BytesPath,
}

impl ToolCall for Cd {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "cd",
        aliases: &["Cd", "change_directory", "chdir", "set_working_directory"],
        subject: RuleSubject::Paths,
        file_use: FileUse::Neither,
    }];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "cd",
            kind: CallKind::Session,
            effect: CallEffect::Directory,
            needs: &[CallNeed::ReadFiles],
            paths: vec![PathFact::named(&self.path)],
            scope: FileScope::Listed(&self.path),
            details: Some(Vec::new()),
            weight: 0,
            time: TimeLimit::Files,
            memory: FileMemory::Nothing,
            verb: CallVerb::Path("go to", Some(&self.path)),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        CallFields::of(vec![&mut self.path])
    }
}
