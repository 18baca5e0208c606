use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use crate::beneath::Beneath;
use crate::beneath::Links;
use crate::root::where_is;

/// The project's folder: its contents may be hostile, and may change at any time.
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

    /// Returns its path, as the kernel reports it.
    pub(super) fn place(&self) -> Result<Vec<u8>, Errno> {
        where_is(&self.beneath)
    }

    /// Opens a folder for listing; no link on the way is followed.
    pub(super) fn list(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.beneath
            .open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Links::Refuse)
    }

    /// Returns whether a path leads out of the project through links; a loop counts as well. A
    /// missing path leads nowhere.
    pub(super) fn leads_out(&self, path: &[u8]) -> bool {
        matches!(
            self.beneath.open(path, OFlag::O_PATH, Links::Follow),
            Err(Errno::EXDEV | Errno::ELOOP)
        )
    }

    /// Opens a folder to work in it, which needs no permission to list it.
    pub(super) fn folder(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.beneath
            .open(path, OFlag::O_PATH | OFlag::O_DIRECTORY, Links::Refuse)
    }
}
