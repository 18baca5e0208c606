//! What a model knows of files. The host remembers it with the session; the guest, which may be
//! replaced between calls, remembers nothing: it receives what it needs with each call that changes
//! files, and returns with each result what to remember.

use serde::Deserialize;
use serde::Serialize;

use super::BytesPath;
use super::Call;
use super::Output;
use super::PatchAction;

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

impl Call {
    /// Returns where the knowledge of a call that changes files goes.
    pub fn known_mut(&mut self) -> Option<&mut Option<Known>> {
        match self {
            Self::WriteFile(call) => Some(&mut call.known),
            Self::EditFile(call) => Some(&mut call.known),
            Self::MultiEdit(call) => Some(&mut call.known),
            Self::ApplyPatch(call) => Some(&mut call.known),
            Self::EditLines(call) => Some(&mut call.known),
            Self::DeleteFile(call) => Some(&mut call.known),
            Self::CopyFile(call) => Some(&mut call.known),
            Self::MoveFile(call) => Some(&mut call.known),
            Self::UpdateConfig(call) => Some(&mut call.known),
            _ => None,
        }
    }

    /// Returns the knowledge in a call; `None`: the host keeps no memory.
    pub fn known(&self) -> Option<&Known> {
        match self {
            Self::WriteFile(call) => call.known.as_ref(),
            Self::EditFile(call) => call.known.as_ref(),
            Self::MultiEdit(call) => call.known.as_ref(),
            Self::ApplyPatch(call) => call.known.as_ref(),
            Self::EditLines(call) => call.known.as_ref(),
            Self::DeleteFile(call) => call.known.as_ref(),
            Self::CopyFile(call) => call.known.as_ref(),
            Self::MoveFile(call) => call.known.as_ref(),
            Self::UpdateConfig(call) => call.known.as_ref(),
            _ => None,
        }
    }

    /// Returns the paths that a call changes, as it names them.
    pub fn changes(&self) -> Vec<BytesPath> {
        match self {
            Self::WriteFile(call) => vec![call.path.clone()],
            Self::EditFile(call) => vec![call.path.clone()],
            Self::MultiEdit(call) => call.edits.iter().map(|edit| edit.path.clone()).collect(),
            Self::ApplyPatch(call) => {
                let names = |action: &PatchAction| match action {
                    PatchAction::Update { to, .. } => to.clone(),
                    PatchAction::Add { .. } | PatchAction::Delete { .. } => None,
                };
                call.files
                    .iter()
                    .flat_map(|file| [Some(file.path.clone()), names(&file.action)])
                    .flatten()
                    .collect()
            }
            Self::EditLines(call) => vec![call.path.clone()],
            Self::DeleteFile(call) => vec![call.path.clone()],
            Self::CopyFile(call) => vec![call.destination.clone()],
            Self::MoveFile(call) => vec![call.source.clone(), call.destination.clone()],
            Self::UpdateConfig(_) => vec![BytesPath::from_text(super::INSTRUCTIONS)],
            _ => Vec::new(),
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
