//! What a model knows of files. The host remembers it, with the session; the guest, which may be
//! another one by the next call, remembers nothing: it is told with each call that changes files,
//! and tells with each result what is to be remembered.

use serde::Deserialize;
use serde::Serialize;

use super::BytesPath;
use super::Call;
use super::Output;
use super::PatchAction;

/// What a file holds, as short as two looks at it can be compared by. Whoever gets one does nothing
/// with it but that.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mark(pub String);

/// What the host remembers of the files that a call may change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Of these, and of all that lies below them, `files` says everything. Paths from the project's
    /// folder, without links in them.
    pub told: Vec<BytesPath>,
    pub files: Vec<KnownFile>,
}

/// A file as the model has last seen it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownFile {
    pub path: BytesPath,
    pub mark: Mark,
}

/// Something to remember of a file, by where it lies from the project's folder, whatever links it
/// was named through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Memo {
    /// The model was shown some of its lines.
    Read {
        path: BytesPath,
        mark: Mark,
        /// From 1.
        first_line: u64,
        n_lines: u64,
        /// Whether something follows that was not shown.
        more: bool,
    },
    /// The model wrote all of it.
    Wrote { path: BytesPath, mark: Mark },
    /// The model changed a part of it, and nobody else had since it was seen.
    Changed { path: BytesPath, mark: Mark },
    /// The model had it taken away or replaced, with all below it.
    Gone { path: BytesPath },
    /// It, or what lies below it, has another name now.
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
    /// Returns where a call that changes files is told what is known of them.
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

    /// Returns what a call was told to be known; `None`: nobody remembers anything.
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

    /// Returns the paths of what a call changes, as they were named.
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
    /// Returns what is to be remembered of what a call did.
    pub fn memos(&self) -> &[Memo] {
        match self {
            Self::Read(read) => &read.memos,
            Self::Written(written) => &written.memos,
            Self::Edited(edited) => &edited.memos,
            Self::Changed(changed) => &changed.memos,
            _ => &[],
        }
    }

    /// Puts in what is to be remembered.
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

/// Returns what follows in a path after a file or folder that it is or lies in; the project's own
/// folder is the empty path.
pub fn below<'a>(path: &'a [u8], top: &[u8]) -> Option<&'a [u8]> {
    if top.is_empty() {
        return Some(path);
    }
    path.strip_prefix(top)
        .filter(|rest| rest.is_empty() || rest.starts_with(b"/"))
}
