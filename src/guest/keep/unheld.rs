//! Files that no snapshot holds, since they are too large or there was no room, and that come from
//! what the session worked on as they are.
//!
//! A snapshot knows such a file by a mark of what it is like from outside, which no other file ever
//! has. So what stood there, and what is brought in its place, is told apart by size, mode and
//! time, which a file keeps when it gets another name, and which the new one is given.

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
use super::read::Found;
use crate::root::file_type;
use crate::root::split;
use podbay_wire::keep::Unkept;

/// What a file is known by that nobody has written to since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Facts {
    pub(super) n_bytes: u64,
    pub(super) mode: u32,
    /// When its content was changed, in seconds since 1970 and nanoseconds.
    pub(super) changed: (i64, i64),
}

/// What is known of a change one side of which is such a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unheld {
    /// What stands there, if that is such a file, and the one that stood there at the beginning.
    pub(super) before: Option<Facts>,
    /// What comes there, if that is such a file, and the one that the session left.
    pub(super) after: Option<Facts>,
}

/// Whether such a file can be brought in.
pub(super) fn can_come(why: Unkept) -> bool {
    matches!(why, Unkept::TooLarge | Unkept::StoreFull)
}

impl Facts {
    fn of(stat: &FileStat) -> Self {
        Self {
            n_bytes: stat.st_size as u64,
            mode: stat.st_mode & 0o7777,
            changed: (stat.st_mtime, stat.st_mtime_nsec),
        }
    }

    pub(super) fn are_of(&self, found: &Found) -> bool {
        found
            .stat()
            .is_some_and(|stat| file_type(stat) == SFlag::S_IFREG && Self::of(stat) == *self)
    }

    /// Opens the file that has these.
    pub(super) fn open(&self, copy: &Project, path: &[u8]) -> Result<Option<File>, Errno> {
        let (file, stat) = open(copy, path)?;
        Ok((Self::of(&stat) == *self).then_some(file))
    }

    /// Whether an open file still has them.
    pub(super) fn are_of_open(&self, file: &File) -> Result<bool, Errno> {
        Ok(Self::of(&fstat(file)?) == *self)
    }
}

impl Unheld {
    /// Looks at both sides; `copy` is what the session worked on.
    pub(super) fn of(change: &Change, here: &Found, copy: Option<&Project>) -> Self {
        let before = here
            .stat()
            .filter(|stat| is_marked(change.before.as_ref(), stat))
            .map(Facts::of);
        let after = copy
            .filter(|_| why(change.after.as_ref()).is_some_and(can_come))
            .and_then(|copy| {
                let (_, stat) = open(copy, change.path.as_bytes()).ok()?;
                is_marked(change.after.as_ref(), &stat).then(|| Facts::of(&stat))
            });
        Self { before, after }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

pub(super) fn why(node: Option<&Node>) -> Option<Unkept> {
    match node {
        Some(Node::Unkept { why, .. }) => Some(*why),
        _ => None,
    }
}

/// Whether a file is the one that a snapshot saw and did not hold.
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
