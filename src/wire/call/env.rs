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
use super::RuleSubject;
use super::TimeLimit;
use super::ToolCall;
use super::ToolFacts;

/// Returns the environment of commands. Values that look like secrets stay in the sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Env {
    /// One variable; `None`: all.
    pub name: Option<String>,
    /// Only those with this prefix.
    pub prefix: Option<String>,
}

impl ToolCall for Env {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "env",
        aliases: &["Env", "environment", "get_env"],
        subject: RuleSubject::Nothing,
        file_use: FileUse::Neither,
    }];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "env",
            kind: CallKind::Session,
            effect: CallEffect::Nothing,
            needs: &[CallNeed::ReadFiles],
            paths: Vec::new(),
            scope: FileScope::Named,
            details: Some(Vec::new()),
            weight: 0,
            time: TimeLimit::Files,
            memory: FileMemory::Nothing,
            verb: CallVerb::Plain("look at the environment"),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        CallFields::of(Vec::new())
    }
}
