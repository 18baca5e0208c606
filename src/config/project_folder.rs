//! A folder of a project whose files are read on the host.
//!
//! The project is untrusted, and a command may be changing it: each part of the path is opened by
//! itself, no symlink is followed, and a FIFO does not block.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;

use super::user_file;

pub(super) struct ProjectFolder(OwnedFd);

impl ProjectFolder {
    /// Opens the folder at `path`, which is relative to the project's.
    pub(super) fn open(project: &Path, path: &str) -> io::Result<Self> {
        let mut opened = nix::fcntl::open(project, by_path(), Mode::empty());
        for part in path.split('/') {
            opened = opened.and_then(|above| openat(&above, part, by_path(), Mode::empty()));
        }
        opened.map(Self).map_err(no_folder)
    }

    /// Opens a folder in it by its name.
    pub(super) fn folder(&self, name: &str) -> io::Result<Self> {
        openat(&self.0, name, by_path(), Mode::empty())
            .map(Self)
            .map_err(no_folder)
    }

    /// Returns where its entries can be listed.
    pub(super) fn listed(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// Reads a regular file in it that is text of at most `most` bytes.
    pub(super) fn read(&self, name: &str, most: u64) -> io::Result<String> {
        let flags = OFlag::O_RDONLY
            | OFlag::O_NONBLOCK
            | OFlag::O_NOCTTY
            | OFlag::O_NOFOLLOW
            | OFlag::O_CLOEXEC;
        let opened = openat(&self.0, name, flags, Mode::empty());
        let file = File::from(opened.map_err(|error| match error {
            Errno::ELOOP => io::Error::other("it is a symbolic link"),
            Errno::ENXIO => io::Error::other("it is not a regular file"),
            error => error.into(),
        })?);
        if !file.metadata().is_ok_and(|facts| facts.is_file()) {
            return Err(io::Error::other("it is not a regular file"));
        }
        user_file::text(file, most)
    }
}

fn by_path() -> OFlag {
    OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

fn no_folder(error: Errno) -> io::Error {
    match error {
        Errno::ENOTDIR | Errno::ELOOP => {
            io::Error::other("it is, or is reached through, no folder but a link or a file")
        }
        error => error.into(),
    }
}
