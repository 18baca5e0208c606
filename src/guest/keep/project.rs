use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use crate::beneath::Beneath;
use crate::beneath::Links;
use crate::root::where_is;

/// The folder whose files are kept: whatever is in it may be hostile, and may change while we look.
#[derive(Debug)]
pub struct Project {
    beneath: Beneath,
}

impl Project {
    pub fn new(fd: OwnedFd) -> Self {
        Self {
            beneath: Beneath::new(fd),
        }
    }

    pub fn open(path: &Path) -> io::Result<Self> {
        let fd = nix::fcntl::open(
            path,
            OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Self::new(fd))
    }

    /// Returns where it lies, as the kernel says.
    pub(super) fn place(&self) -> Result<Vec<u8>, Errno> {
        where_is(&self.beneath)
    }

    /// Opens a folder to read its names; no link on the way is followed.
    pub(super) fn list(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.beneath
            .open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Links::Refuse)
    }

    /// Returns whether a path leads out of the project, followed over the links that are on it; one
    /// that leads round in circles counts as well. What is not there leads nowhere.
    pub(super) fn leads_out(&self, path: &[u8]) -> bool {
        matches!(
            self.beneath.open(path, OFlag::O_PATH, Links::Follow),
            Err(Errno::EXDEV | Errno::ELOOP)
        )
    }

    /// Opens a folder to work on what is in it, which needs no permission to read its names.
    pub(super) fn folder(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.beneath
            .open(path, OFlag::O_PATH | OFlag::O_DIRECTORY, Links::Refuse)
    }
}
