use std::os::fd::AsFd;
use std::os::fd::OwnedFd;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use super::project::Project;
use super::read::Found;
use crate::guest::root::split;

/// What stands at a path of the project now, and the folder it lies in: whatever is done to it is done through that folder.
pub(super) struct Look {
    /// `None` where there is no such folder, or a link on the way to it.
    pub(super) folder: Option<OwnedFd>,
    pub(super) found: Found,
}

/// Whether a file system could take the name for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Plain,
    /// Only the folder's own list tells whether the very name is there.
    Ambiguous,
}

impl Look {
    pub(super) fn at(project: &Project, path: &[u8], kind: Name) -> Result<Self, Errno> {
        let (parent, name) = split(path);
        let folder = match project.folder(parent) {
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => return Ok(Self { folder: None, found: Found::Nothing }),
            other => other?,
        };
        let mut found = Found::at(&folder, name)?;
        if kind == Name::Ambiguous && !matches!(found, Found::Nothing) && !is_listed(&folder, name)? {
            found = Found::Nothing;
        }
        Ok(Self { folder: Some(folder), found })
    }
}

fn is_listed(folder: impl AsFd, name: &[u8]) -> Result<bool, Errno> {
    let mut entries = Dir::openat(folder, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    for entry in entries.iter() {
        if entry?.file_name().to_bytes() == name {
            return Ok(true);
        }
    }
    Ok(false)
}
