//! Reads entries of the project: consistently, as far as that can be told, and without blocking.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::fcntl::readlinkat;
use nix::sys::stat::FileStat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstat;
use nix::sys::stat::fstatat;

use super::node::Node;
use super::object::ObjectId;
use crate::root::file_type;
use crate::tools::save::errno_of;
use podbay_wire::BytesPath;
use podbay_wire::keep::UncapturedReason;

/// The largest file that is captured.
pub const MOST_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// How often a file that changes meanwhile is read.
const ATTEMPTS: u32 = 3;

/// The entry at a name, as it was read.
pub(super) enum FoundEntry {
    Nothing,
    File {
        content: Vec<u8>,
        stat: FileStat,
        /// Whether it did not change while it was read.
        is_settled: bool,
    },
    Link {
        target: BytesPath,
        stat: FileStat,
    },
    Folder {
        stat: FileStat,
    },
    Unkept {
        why: UncapturedReason,
        stat: FileStat,
    },
}

impl FoundEntry {
    /// Reads the entry of a name in an open folder.
    pub(super) fn at(folder: impl AsFd + Copy, name: &[u8]) -> Result<Self, Errno> {
        for last in (0..ATTEMPTS).map(|n| n + 1 == ATTEMPTS) {
            let stat = match fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
                Err(Errno::ENOENT) => return Ok(Self::Nothing),
                other => other?,
            };
            let found = match file_type(&stat) {
                SFlag::S_IFREG => Self::file(folder, name, &stat),
                SFlag::S_IFLNK => readlinkat(folder, name).map(|target| Self::Link {
                    target: BytesPath::from(target),
                    stat,
                }),
                SFlag::S_IFDIR => Ok(Self::Folder { stat }),
                _ => Ok(Self::Unkept {
                    why: UncapturedReason::Special,
                    stat,
                }),
            };
            match found {
                // It changed, or was replaced before it was opened.
                Ok(Self::File {
                    is_settled: false, ..
                })
                | Err(
                    Errno::ELOOP
                    | Errno::EINVAL
                    | Errno::ENOENT
                    | Errno::ENXIO
                    | Errno::EISDIR
                    | Errno::ESTALE,
                ) if !last => {}
                Ok(found) => return Ok(found),
                Err(Errno::ENOENT) => return Ok(Self::Nothing),
                Err(_) => {
                    return Ok(Self::Unkept {
                        why: UncapturedReason::Unreadable,
                        stat,
                    });
                }
            }
        }
        Ok(Self::Nothing)
    }

    fn file(folder: impl AsFd, name: &[u8], stat: &FileStat) -> Result<Self, Errno> {
        if stat.st_size as u64 > MOST_FILE_BYTES {
            return Ok(Self::Unkept {
                why: UncapturedReason::TooLarge,
                stat: *stat,
            });
        }
        let flags = OFlag::O_RDONLY
            | OFlag::O_NOFOLLOW
            | OFlag::O_NONBLOCK
            | OFlag::O_NOCTTY
            | OFlag::O_CLOEXEC;
        let file = File::from(openat(folder, name, flags, Mode::empty())?);
        let before = fstat(&file)?;
        if file_type(&before) != SFlag::S_IFREG {
            return Err(Errno::ENXIO);
        }
        let mut content =
            Vec::with_capacity((before.st_size as u64).min(MOST_FILE_BYTES) as usize + 1);
        (&file)
            .take(MOST_FILE_BYTES + 1)
            .read_to_end(&mut content)
            .map_err(|error| errno_of(&error))?;
        let after = fstat(&file)?;
        if content.len() as u64 > MOST_FILE_BYTES {
            return Ok(Self::Unkept {
                why: UncapturedReason::TooLarge,
                stat: after,
            });
        }
        let is_settled = stamp(&before) == stamp(&after) && content.len() as i64 == after.st_size;
        Ok(Self::File {
            content,
            stat: after,
            is_settled,
        })
    }

    /// Returns its recorded state, without the contents.
    pub(super) fn node(&self) -> Option<Node> {
        match self {
            Self::Nothing => None,
            Self::File { content, stat, .. } => Some(Node::file(
                stat,
                content.len() as u64,
                ObjectId::of(content),
            )),
            Self::Link { target, .. } => Some(Node::Link {
                target: target.clone(),
            }),
            Self::Folder { stat } => Some(Node::folder(stat, ObjectId::of(b""))),
            Self::Unkept { why, stat } => Some(Node::unkept(*why, stat)),
        }
    }

    pub(super) fn stat(&self) -> Option<&FileStat> {
        match self {
            Self::Nothing => None,
            Self::File { stat, .. }
            | Self::Link { stat, .. }
            | Self::Folder { stat }
            | Self::Unkept { stat, .. } => Some(stat),
        }
    }
}

/// Changes whenever a file does: size, both times and the inode.
pub(super) type Stamp = [i64; 6];

pub(super) fn stamp(stat: &FileStat) -> Stamp {
    [
        stat.st_size,
        stat.st_mtime,
        stat.st_mtime_nsec,
        stat.st_ctime,
        stat.st_ctime_nsec,
        stat.st_ino as i64,
    ]
}
