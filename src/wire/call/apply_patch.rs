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
use super::PathAccess;
use super::PathFact;
use super::PathUse;
use super::RuleSubject;
use super::TimeLimit;
use super::ToolCall;
use super::ToolFacts;
use crate::BytesPath;
use crate::Known;

/// Changes several files by a patch, all or none. The host has parsed the patch, so that policy
/// knows every path in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApplyPatch {
    pub files: Vec<FilePatch>,
    /// Only checks whether it fits.
    pub dry_run: bool,
    /// Whether policy allowed protected names; otherwise the guest refuses them wherever the path
    /// leads.
    pub protected: bool,
    /// What is known of the files that this changes; `None`: the host keeps no memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

/// The changes of a patch to one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilePatch {
    pub path: BytesPath,
    pub action: PatchAction,
    /// Parts of the patch that are not applied, such as a mode.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum PatchAction {
    Add {
        content: String,
    },
    Delete {
        /// The expected contents; empty where the patch does not say.
        hunks: Vec<Hunk>,
    },
    Update {
        hunks: Vec<Hunk>,
        /// Its new name.
        to: Option<BytesPath>,
    },
}

/// Consecutive lines of a file, and their changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hunk {
    /// The line where it begins, from 1, where the patch says so.
    pub line: Option<u64>,
    /// Lines that precede it, the outermost first.
    pub anchors: Vec<String>,
    pub lines: Vec<PatchLine>,
    /// Its last line is the last one of the file.
    pub at_end: bool,
    /// The file ended without a newline.
    pub old_unended: bool,
    /// The result must end without one.
    pub new_unended: bool,
    #[serde(default)]
    pub form: PatchForm,
    /// Its header counts one line more or less than it has: it fits only at a single place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub miscounted: bool,
}

/// The form of a patch, which decides where a hunk goes that matches in several places or nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchForm {
    /// By line number, else a single place; outermost context lines may differ.
    #[default]
    Unified,
    /// The first place after the previous hunk.
    Sections,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchLine {
    Keep(String),
    Remove(String),
    Add(String),
}

impl Hunk {
    /// Returns the lines that must be there.
    pub fn old(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            PatchLine::Keep(text) | PatchLine::Remove(text) => Some(text.as_str()),
            PatchLine::Add(_) => None,
        })
    }

    /// Returns the lines that will be there.
    pub fn wanted(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            PatchLine::Keep(text) | PatchLine::Add(text) => Some(text.as_str()),
            PatchLine::Remove(_) => None,
        })
    }
}

impl ToolCall for ApplyPatch {
    const TOOLS: &'static [ToolFacts] = &[ToolFacts {
        name: "apply_patch",
        aliases: &["ApplyPatch", "patch"],
        subject: RuleSubject::Paths,
        file_use: FileUse::Changes,
    }];

    fn facts(&self) -> CallFacts<'_> {
        // The result of a trial reveals what is in the files, as reading them would.
        let (access, needs) = if self.dry_run {
            (PathAccess::Tries, [CallNeed::ReadFiles].as_slice())
        } else {
            (PathAccess::Writes, [CallNeed::WriteFiles].as_slice())
        };
        let named = self.files.iter().flat_map(|file| {
            let (usage, to) = match &file.action {
                PatchAction::Add { .. } => (PathUse::Makes, None),
                PatchAction::Delete { .. } => (PathUse::Finds, None),
                PatchAction::Update { to, .. } => (PathUse::Finds, to.as_ref()),
            };
            let to = to.map(|to| PathFact::new(to, access, PathUse::Makes));
            std::iter::once(PathFact::new(&file.path, access, usage)).chain(to)
        });
        // Together with the paths: which file is changed how.
        let done = self.files.iter().map(|file| match &file.action {
            PatchAction::Add { .. } => "create",
            PatchAction::Delete { .. } => "delete",
            PatchAction::Update { to: Some(_), .. } => "move",
            PatchAction::Update { to: None, .. } => "update",
        });
        let details = self.dry_run.then_some("dry_run").into_iter().chain(done);
        CallFacts {
            tool: "apply_patch",
            kind: CallKind::File,
            effect: CallEffect::AddsFiles,
            needs,
            paths: named.collect(),
            scope: FileScope::Named,
            details: Some(details.map(Cow::Borrowed).collect()),
            weight: self.files.iter().map(|file| file.action.weight()).sum(),
            time: TimeLimit::Files,
            memory: FileMemory::Changed(self.known.as_ref()),
            verb: CallVerb::Path("patch", self.files.first().map(|file| &file.path)),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        let paths = self.files.iter_mut().flat_map(|file| {
            let to = match &mut file.action {
                PatchAction::Update { to, .. } => to.as_mut(),
                PatchAction::Add { .. } | PatchAction::Delete { .. } => None,
            };
            [Some(&mut file.path), to]
        });
        CallFields {
            paths: paths.flatten().collect(),
            protected: Some(&mut self.protected),
            known: Some(&mut self.known),
        }
    }
}

impl PatchAction {
    fn weight(&self) -> usize {
        match self {
            Self::Add { content } => content.len(),
            Self::Delete { hunks } | Self::Update { hunks, .. } => {
                let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
                lines.map(PatchLine::weight).sum()
            }
        }
    }
}

impl PatchLine {
    fn weight(&self) -> usize {
        let (Self::Keep(line) | Self::Remove(line) | Self::Add(line)) = self;
        line.len()
    }
}
