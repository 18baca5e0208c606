use serde::Deserialize;
use serde::Serialize;

use crate::BytesPath;

/// Most entries that are hidden from one box, and most that are made read-only in it.
pub const MOST_HIDDEN: usize = 256;

/// Most paths that are named of what was lost.
pub const MOST_LOST: usize = 16;

/// Longest path that one look tells; the kernel opens none that is longer.
const LONGEST_PATH: usize = 4096;

/// Looks through the project for what commands must not read or must not change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Find {
    /// Patterns as in `.gitignore`: secrets that commands may read.
    pub reveal: Vec<String>,
    /// Patterns as in `.gitignore`: files and folders that programs on the host run without being
    /// asked.
    pub auto_run: Vec<String>,
    /// How long it may look.
    pub budget_ms: u64,
    /// How long of that it may look for repositories below the top of folders that are ignored.
    #[serde(default)]
    pub ignored_ms: u64,
    /// What was covered before and stays so for as long as it is there: what commands did meanwhile
    /// must not uncover it.
    #[serde(default)]
    pub known: Known,
    /// Where the project's folder is on the person's machine: settings of git may say it.
    #[serde(default)]
    pub place: BytesPath,
    /// Looks in the project itself also where a session works on a copy of it.
    #[serde(default)]
    pub in_project: bool,
}

/// What was covered before; paths from the project's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    pub hidden: Vec<BytesPath>,
    pub read_only: Vec<BytesPath>,
}

/// What was found; paths from the project's folder, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub secrets: Vec<Secret>,
    pub auto_run: Vec<BytesPath>,
    /// Every `.git` below the top, folder or file.
    pub repositories: Vec<BytesPath>,
    /// Files that git's settings include and that were not read.
    #[serde(default)]
    pub unread: Vec<BytesPath>,
    /// Whether there was time to look everywhere.
    pub is_whole: bool,
    /// Folders that could not be read.
    pub n_unreadable: u32,
    /// What was found and is in none of the lists, because they are full.
    pub n_left_out: u32,
    /// What was hidden in a session's copy, was moved there and was not found again for certain: no
    /// box may come up without it.
    #[serde(default)]
    pub lost: Vec<BytesPath>,
}

impl Found {
    /// Returns whether this path is one of the secrets.
    pub fn is_hidden(&self, path: &BytesPath) -> bool {
        self.secrets.iter().any(|secret| secret.path == *path)
    }

    /// Returns whether it is more than a look can bring: whoever says so is none of ours.
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

/// One file or folder whose content is a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Secret {
    pub path: BytesPath,
    pub is_folder: bool,
}
