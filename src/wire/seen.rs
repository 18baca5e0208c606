//! What a model knows of files. The host remembers it with the session; the guest, which may be
//! replaced between calls, remembers nothing: it receives what it needs with each call that changes
//! files, and returns with each result what to remember.

use serde::Deserialize;
use serde::Serialize;

use super::BytesPath;
use super::Output;

/// A fingerprint of a file's contents, which is only compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mark(pub String);

/// What the host knows of the files that a call may change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// `files` is complete for these and for everything below them. Paths from the project's
    /// folder, with links resolved.
    pub told: Vec<BytesPath>,
    pub files: Vec<KnownFile>,
}

/// A file as the model has last seen it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownFile {
    pub path: BytesPath,
    pub mark: Mark,
}

/// Something to remember of a file, by its path from the project's folder with links resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Memo {
    /// The model was shown some of its lines.
    Read {
        path: BytesPath,
        mark: Mark,
        /// Counted from 1.
        first_line: u64,
        n_lines: u64,
        /// Whether lines follow that were not shown.
        more: bool,
    },
    /// The model wrote all of it.
    Wrote { path: BytesPath, mark: Mark },
    /// The model changed a part of it, and nothing else had changed it since it was seen.
    Changed { path: BytesPath, mark: Mark },
    /// The model had it removed or replaced, with everything below it.
    Gone { path: BytesPath },
    /// It, with everything below it, was renamed.
    Moved { from: BytesPath, to: BytesPath },
}

impl Memo {
    /// Returns the paths in it.
    pub fn paths(&self) -> impl Iterator<Item = &BytesPath> {
        let (first, second) = match self {
            Self::Read { path, .. }
            | Self::Wrote { path, .. }
            | Self::Changed { path, .. }
            | Self::Gone { path } => (path, None),
            Self::Moved { from, to } => (from, Some(to)),
        };
        [Some(first), second].into_iter().flatten()
    }

    pub fn mark(&self) -> Option<&Mark> {
        match self {
            Self::Read { mark, .. } | Self::Wrote { mark, .. } | Self::Changed { mark, .. } => {
                Some(mark)
            }
            Self::Gone { .. } | Self::Moved { .. } => None,
        }
    }
}

impl Output {
    /// Returns what to remember of a call.
    pub fn memos(&self) -> &[Memo] {
        match self {
            Self::Read(read) => &read.memos,
            Self::Written(written) => &written.memos,
            Self::Edited(edited) => &edited.memos,
            Self::Changed(changed) => &changed.memos,
            _ => &[],
        }
    }

    /// Sets what to remember.
    pub fn set_memos(&mut self, memos: Vec<Memo>) {
        match self {
            Self::Read(read) => read.memos = memos,
            Self::Written(written) => written.memos = memos,
            Self::Edited(edited) => edited.memos = memos,
            Self::Changed(changed) => changed.memos = memos,
            _ => {}
        }
    }
}

/// Returns the rest of a path below a file or folder, empty for that itself; the project's own
/// folder is the empty path.
pub fn below<'a>(path: &'a [u8], top: &[u8]) -> Option<&'a [u8]> {
    if top.is_empty() {
        return Some(path);
    }
    path.strip_prefix(top)
        .filter(|rest| rest.is_empty() || rest.starts_with(b"/"))
}
