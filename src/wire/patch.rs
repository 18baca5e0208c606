use serde::Deserialize;
use serde::Serialize;

use super::BytesPath;
use super::Known;

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
