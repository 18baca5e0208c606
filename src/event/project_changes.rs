use std::fmt::Write as _;

use serde::Deserialize;
use serde::Serialize;

/// What a turn of a chat or a run changed in the project, counted once: by the comparison of before
/// and after, where there is one, else by what file tools reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectChanges {
    /// How many paths, folders included.
    pub n: u64,
    /// The first of them.
    pub paths: Vec<ChangedPath>,
    /// Lines of all files together, where they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<ChangedLines>,
    /// New and changed files that may run on the user's machine later, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_run: Vec<String>,
    /// Whether they are pending review, and not in the project yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedPath {
    pub path: String,
    pub change: PathChanged,
    /// Where a renamed file was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_folder: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<ChangedLines>,
}

/// How a path changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathChanged {
    Created,
    Modified,
    Deleted,
    Renamed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedLines {
    pub added: u64,
    pub removed: u64,
}

impl ProjectChanges {
    /// Returns them in a few words: `3 files, +12 −4`.
    pub fn words(&self) -> String {
        let are_files = self.paths.iter().all(|path| !path.is_folder);
        let things = match (are_files, self.n) {
            (true, 1) => "file",
            (true, _) => "files",
            (false, 1) => "path",
            (false, _) => "paths",
        };
        let mut words = format!("{} {things}", self.n);
        if let Some(lines) = self.lines {
            write!(words, ", {}", lines.words()).expect("a string takes all that is written");
        }
        if self.pending {
            words.push_str(" pending review");
        }
        words
    }
}

impl ChangedLines {
    /// Returns them in words: `+12 −4`.
    pub fn words(self) -> String {
        format!("+{} −{}", self.added, self.removed)
    }
}

impl std::ops::AddAssign for ChangedLines {
    fn add_assign(&mut self, other: Self) {
        self.added = self.added.saturating_add(other.added);
        self.removed = self.removed.saturating_add(other.removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_in_a_few_words() {
        let path = |path: &str, is_folder| ChangedPath {
            path: path.to_owned(),
            change: PathChanged::Modified,
            from: None,
            is_folder,
            lines: None,
        };
        let mut changes = ProjectChanges {
            n: 1,
            paths: vec![path("a", false)],
            lines: Some(ChangedLines {
                added: 12,
                removed: 4,
            }),
            ..ProjectChanges::default()
        };
        assert_eq!(changes.words(), "1 file, +12 −4");
        changes.paths.push(path("b", true));
        (changes.n, changes.lines, changes.pending) = (2, None, true);
        assert_eq!(changes.words(), "2 paths pending review");
    }
}
