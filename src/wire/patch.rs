use serde::Deserialize;
use serde::Serialize;

use super::BytesPath;
use super::Known;

/// Changes several files by a patch, all of it or nothing. The host has read the patch, so that
/// policy knows every path in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApplyPatch {
    pub files: Vec<FilePatch>,
    /// Only finds out whether it fits.
    pub dry_run: bool,
    /// Whether policy allowed to touch protected names; without it the guest refuses them wherever
    /// the path leads.
    pub protected: bool,
    /// What is remembered of what this changes; `None`: nobody remembers anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<Known>,
}

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FilePatch {
    pub path: BytesPath,
    pub action: PatchAction,
    /// What of the patch is not carried out, such as a mode.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum PatchAction {
    Add {
        content: String,
    },
    Delete {
        /// What it must hold; nothing where the patch does not say.
        hunks: Vec<Hunk>,
    },
    Update {
        hunks: Vec<Hunk>,
        /// Its new name.
        to: Option<BytesPath>,
    },
}

/// Lines that stand together in a file, and what becomes of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hunk {
    /// The line where it begins, from 1, where the patch says so.
    pub line: Option<u64>,
    /// Lines that stand before it, the outermost first.
    pub anchors: Vec<String>,
    pub lines: Vec<PatchLine>,
    /// Its last line is the last one of the file.
    pub at_end: bool,
    /// The file ended without a newline.
    pub old_unended: bool,
    /// It shall end without one.
    pub new_unended: bool,
    #[serde(default)]
    pub form: PatchForm,
    /// Its head counts one line more or less than it has: it fits where its lines stand in one
    /// place alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub miscounted: bool,
}

/// How a patch is written, which says what is meant where the lines of a hunk stand in several
/// places or in none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchForm {
    /// The number of a line, else one place alone; the outermost lines around it may be others.
    #[default]
    Unified,
    /// The first place behind the hunk before.
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
    /// Returns the lines that must stand there.
    pub fn old(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            PatchLine::Keep(text) | PatchLine::Remove(text) => Some(text.as_str()),
            PatchLine::Add(_) => None,
        })
    }

    /// Returns the lines that will stand there.
    pub fn wanted(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            PatchLine::Keep(text) | PatchLine::Add(text) => Some(text.as_str()),
            PatchLine::Remove(_) => None,
        })
    }
}
