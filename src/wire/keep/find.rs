use serde::Deserialize;
use serde::Serialize;

use crate::BytesPath;

/// Most entries that are hidden from one sandbox, and most that are read-only in it.
pub const MOST_HIDDEN: usize = 256;

/// Most lost paths that are named.
pub const MOST_LOST: usize = 16;

/// Longest path in an answer; the kernel accepts no longer ones.
const LONGEST_PATH: usize = 4096;

/// Order to search the project for what commands must not read or must not change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindOrder {
    /// Patterns as in `.gitignore`: secrets that commands may read.
    pub reveal: Vec<String>,
    /// Patterns as in `.gitignore`: files and folders that programs on the host run without being
    /// asked.
    pub auto_run: Vec<String>,
    /// Time limit of the search.
    pub budget_ms: u64,
    /// Its part for repositories deep in ignored folders.
    #[serde(default)]
    pub ignored_ms: u64,
    /// What was protected before and stays so as long as it exists: commands must not be able to
    /// uncover it.
    #[serde(default)]
    pub known: KnownProtected,
    /// Path of the project's folder on the user's machine, which settings of git may hold.
    #[serde(default)]
    pub place: BytesPath,
    /// Whether to search the project itself where a session works on a copy of it.
    #[serde(default)]
    pub in_project: bool,
}

/// What was protected before; paths are relative to the project's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownProtected {
    pub hidden: Vec<BytesPath>,
    pub read_only: Vec<BytesPath>,
}

/// The result of a search; paths are relative to the project's folder, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindResult {
    pub secrets: Vec<SecretPath>,
    pub auto_run: Vec<BytesPath>,
    /// Every `.git` below the top, folder or file.
    pub repositories: Vec<BytesPath>,
    /// Files that git config includes and that were not read.
    #[serde(default)]
    pub unread: Vec<BytesPath>,
    /// Whether there was time to search everything.
    pub is_whole: bool,
    /// Folders that could not be read.
    pub n_unreadable: u32,
    /// Entries that are in none of the lists because those are full.
    pub n_left_out: u32,
    /// Hidden paths that were moved in a session's copy and not found again for certain: no sandbox
    /// may start without them.
    #[serde(default)]
    pub lost: Vec<BytesPath>,
}

impl FindResult {
    /// Returns whether this path is one of the secrets.
    pub fn is_hidden(&self, path: &BytesPath) -> bool {
        self.secrets.iter().any(|secret| secret.path == *path)
    }

    /// Returns whether it exceeds the limits of a search, so that it cannot be from our keeper.
    pub fn is_too_much(&self) -> bool {
        let paths = self
            .secrets
            .iter()
            .map(|secret| &secret.path)
            .chain(&self.auto_run)
            .chain(&self.repositories)
            .chain(&self.unread)
            .chain(&self.lost);
        let is_long = |path: &BytesPath| path.as_bytes().len() > LONGEST_PATH;
        [
            self.secrets.len(),
            self.auto_run.len(),
            self.repositories.len(),
            self.unread.len(),
            self.lost.len(),
        ]
        .into_iter()
        .any(|n| n > MOST_HIDDEN)
            || paths.into_iter().any(is_long)
    }
}

/// A file or folder whose content is a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SecretPath {
    pub path: BytesPath,
    pub is_folder: bool,
}
