//! Files that no snapshot holds, because they are too large or there was no room, and that are
//! copied from the session's copy as they are.
//!
//! A snapshot identifies such a file by a mark of its metadata, which no other file ever has. So
//! the old file, and the one that replaces it, are recognized by size, mode and time, which a file
//! keeps under another name, and which the copy is given.

use std::fs::File;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::FileStat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstat;
use serde::Deserialize;
use serde::Serialize;

use super::compare::Change;
use super::node::Node;
use super::project::Project;
use super::read::FoundEntry;
use crate::root::file_type;
use crate::root::split;
use podbay_wire::keep::UncapturedReason;

/// Metadata that identifies a file that was not written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileFacts {
    pub(super) n_bytes: u64,
    pub(super) mode: u32,
    /// The time of its last modification, in seconds since 1970 and nanoseconds.
    pub(super) changed: (i64, i64),
}

/// Facts about a change with such a file on one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UncapturedChange {
    /// The file there, if it is such a file, and the one at the beginning.
    pub(super) before: Option<FileFacts>,
    /// The file to be copied, if it is such a file, and the one that the session left.
    pub(super) after: Option<FileFacts>,
}

/// Whether such a file can be copied.
pub(super) fn can_come(why: UncapturedReason) -> bool {
    matches!(
        why,
        UncapturedReason::TooLarge | UncapturedReason::StoreFull
    )
}

impl FileFacts {
    fn of(stat: &FileStat) -> Self {
        Self {
            n_bytes: stat.st_size as u64,
            mode: stat.st_mode & 0o7777,
            changed: (stat.st_mtime, stat.st_mtime_nsec),
        }
    }

    pub(super) fn are_of(&self, found: &FoundEntry) -> bool {
        found
            .stat()
            .is_some_and(|stat| file_type(stat) == SFlag::S_IFREG && Self::of(stat) == *self)
    }

    /// Opens the file with this metadata.
    pub(super) fn open(&self, copy: &Project, path: &[u8]) -> Result<Option<File>, Errno> {
        let (file, stat) = open(copy, path)?;
        Ok((Self::of(&stat) == *self).then_some(file))
    }

    /// Whether an open file still has it.
    pub(super) fn are_of_open(&self, file: &File) -> Result<bool, Errno> {
        Ok(Self::of(&fstat(file)?) == *self)
    }
}

impl UncapturedChange {
    /// Examines both sides; `copy` is the session's copy of the project.
    pub(super) fn of(change: &Change, here: &FoundEntry, copy: Option<&Project>) -> Self {
        let before = here
            .stat()
            .filter(|stat| is_marked(change.before.as_ref(), stat))
            .map(FileFacts::of);
        let after = copy
            .filter(|_| why(change.after.as_ref()).is_some_and(can_come))
            .and_then(|copy| {
                let (_, stat) = open(copy, change.path.as_bytes()).ok()?;
                is_marked(change.after.as_ref(), &stat).then(|| FileFacts::of(&stat))
            });
        Self { before, after }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

pub(super) fn why(node: Option<&Node>) -> Option<UncapturedReason> {
    match node {
        Some(Node::Unkept { why, .. }) => Some(*why),
        _ => None,
    }
}

/// Whether a file is the one that a snapshot recorded without its content.
fn is_marked(node: Option<&Node>, stat: &FileStat) -> bool {
    let is_file = file_type(stat) == SFlag::S_IFREG;
    is_file && why(node).is_some_and(|why| can_come(why) && node == Some(&Node::unkept(why, stat)))
}

fn open(copy: &Project, path: &[u8]) -> Result<(File, FileStat), Errno> {
    let (parent, name) = split(path);
    let flags = OFlag::O_RDONLY
        | OFlag::O_NOFOLLOW
        | OFlag::O_NONBLOCK
        | OFlag::O_NOCTTY
        | OFlag::O_CLOEXEC;
    let file = File::from(openat(&copy.folder(parent)?, name, flags, Mode::empty())?);
    let stat = fstat(&file)?;
    if file_type(&stat) == SFlag::S_IFREG {
        Ok((file, stat))
    } else {
        Err(Errno::ENXIO)
    }
}
