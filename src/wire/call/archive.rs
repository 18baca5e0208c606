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

/// Packs files into an archive, unpacks one, or lists its contents. The archive's extension tells
/// its format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Archive {
    pub action: ArchiveAction,
    pub archive: BytesPath,
    /// Most entries that are listed.
    pub max_entries: u32,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ArchiveAction {
    List,
    /// The archive must not exist.
    Create {
        source: BytesPath,
    },
    /// Existing files are never replaced.
    Extract {
        into: BytesPath,
    },
}

impl ToolCall for Archive {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "archive",
        aliases: &["Archive", "zip", "unzip", "tar"],
        subject: RuleSubject::Paths,
        file_use: FileUse::Neither,
    }];

    fn facts(&self) -> CallFacts<'_> {
        let archive = &self.archive;
        let (verb, action) = match &self.action {
            ArchiveAction::List => ("list", "list"),
            ArchiveAction::Create { .. } => ("pack", "create"),
            ArchiveAction::Extract { .. } => ("unpack", "extract"),
        };
        let (effect, paths, scope) = match &self.action {
            ArchiveAction::List => (
                CallEffect::Nothing,
                vec![PathFact::read(archive)],
                FileScope::Named,
            ),
            ArchiveAction::Create { source } => (
                CallEffect::AddsFiles,
                vec![PathFact::made(archive), PathFact::read(source)],
                FileScope::Whole(vec![source]),
            ),
            ArchiveAction::Extract { into } => (
                CallEffect::AddsFiles,
                vec![PathFact::read(archive), PathFact::written(into)],
                FileScope::Whole(vec![into]),
            ),
        };
        CallFacts {
            tool: "archive",
            kind: CallKind::LongFile,
            effect,
            needs: &[],
            paths,
            scope,
            details: Some(flags(&[(true, action)])),
            weight: 0,
            time: TimeLimit::Files,
            memory: FileMemory::Nothing,
            verb: CallVerb::Path(verb, Some(archive)),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        let other = match &mut self.action {
            ArchiveAction::List => None,
            ArchiveAction::Create { source: other } | ArchiveAction::Extract { into: other } => {
                Some(other)
            }
        };
        let paths = [Some(&mut self.archive), other];
        CallFields {
            paths: paths.into_iter().flatten().collect(),
            protected: Some(&mut self.protected),
            known: None,
        }
    }
}
