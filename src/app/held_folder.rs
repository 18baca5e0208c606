//! A folder that new files go into. Nothing that is there is written over, and no link in it is
//! followed.

use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;
use nix::sys::stat::fchmod;
use nix::sys::stat::fstat;
use nix::sys::stat::fstatat;
use nix::sys::stat::mkdirat;
use nix::unistd::Gid;
use nix::unistd::Uid;
use nix::unistd::UnlinkatFlags;
use nix::unistd::unlinkat;

use super::Error;
use podbay_sandbox::Project;

/// Longest file that is looked into.
const LONGEST: u64 = 64 * 1024;

/// A folder that is held open: nobody can swap it for another meanwhile.
pub(super) struct HeldFolder {
    fd: OwnedFd,
    /// Whom it belongs to, where this is root: what is made is theirs.
    owner: Option<(Uid, Gid)>,
    is_new: bool,
}

impl HeldFolder {
    pub(super) fn open(project: &Project) -> Result<Self, Error> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = nix::fcntl::open(project.path(), flags, Mode::empty())
            .map_err(failed("open the project folder"))?;
        Ok(Self {
            fd,
            owner: owner(project),
            is_new: false,
        })
    }

    /// Holds the folder that the project lies in. What is made there belongs to the project's owner
    /// too.
    pub(super) fn around(project: &Project) -> Result<Self, Error> {
        // Its names need not be listed, so it may be one that only lets through.
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let around = project
            .path()
            .parent()
            .expect("a project is never the root");
        let fd = nix::fcntl::open(around, flags, Mode::empty())
            .map_err(failed("open the folder that the project lies in"))?;
        Ok(Self {
            fd,
            owner: owner(project),
            is_new: false,
        })
    }

    /// Opens the folder of this name, and makes it where there is none. `shown` is what a user
    /// calls it.
    pub(super) fn folder(&self, name: &str, shown: &str) -> Result<Self, Error> {
        let is_new = match mkdirat(&self.fd, name, Mode::from_bits_truncate(0o755)) {
            Ok(()) => true,
            Err(Errno::EEXIST) => false,
            Err(error) => return Err(failed(&format!("make the folder {shown}"))(error)),
        };
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::empty()).map_err(|error| match error {
            Errno::ELOOP | Errno::ENOTDIR => Error::usage(
                format!("`{shown}` is a link or a file, and a folder of that name is needed"),
                format!("move it away: mv '{shown}' '{shown}.old'"),
            ),
            error => failed(&format!("open the folder {shown}"))(error),
        })?;
        if is_new {
            self.give(fd.as_fd()).map_err(failed(&format!(
                "give the folder {shown} to the project's owner"
            )))?;
        }
        Ok(Self {
            fd,
            owner: self.owner,
            is_new,
        })
    }

    /// Lets all others look into a folder that was made here, whatever this process lets new ones
    /// be.
    pub(super) fn let_others_look(&self) -> Result<(), Error> {
        if self.is_new {
            fchmod(&self.fd, Mode::from_bits_truncate(0o755))
                .map_err(failed("let others look into a new folder"))
        } else {
            Ok(())
        }
    }

    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Says whether a name in it is taken, by whatever it may be.
    pub(super) fn has(&self, name: &str) -> bool {
        fstatat(&self.fd, name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok()
    }

    /// Returns whose it is.
    pub(super) fn uid(&self) -> Result<u32, Error> {
        fstat(&self.fd)
            .map(|facts| facts.st_uid)
            .map_err(failed("look at a folder"))
    }

    /// Makes a file; returns false where its name is taken, by whatever it may be.
    pub(super) fn create(
        &self,
        name: &str,
        shown: &str,
        content: &[u8],
        mode: u32,
    ) -> Result<bool, Error> {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = match openat(&self.fd, name, flags, Mode::from_bits_truncate(mode)) {
            Ok(fd) => fd,
            Err(Errno::EEXIST) => return Ok(false),
            Err(error) => return Err(failed(&format!("make {shown}"))(error)),
        };
        let mut file = File::from(fd);
        let written = file
            .write_all(content)
            .and_then(|()| file.sync_all())
            .and_then(|()| Ok(self.give(file.as_fd())?));
        if let Err(source) = written {
            // Half a file would be left alone the next time.
            let _ = unlinkat(&self.fd, name, UnlinkatFlags::NoRemoveDir);
            return Err(Error::Io {
                doing: format!("write {shown}"),
                source,
            });
        }
        Ok(true)
    }

    /// Reads a plain file that is not large.
    pub(super) fn read(&self, name: &str) -> Option<String> {
        // Without waiting: the name may be a pipe's.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.fd, name, flags, Mode::empty()).ok()?);
        let facts = file.metadata().ok()?;
        if !facts.is_file() || facts.len() > LONGEST {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn give(&self, to: BorrowedFd<'_>) -> Result<(), Errno> {
        match self.owner {
            Some((uid, gid)) => nix::unistd::fchown(to, Some(uid), Some(gid)),
            None => Ok(()),
        }
    }
}

/// Returns whom what root makes is given to.
fn owner(project: &Project) -> Option<(Uid, Gid)> {
    let (uid, gid) = project.owner();
    nix::unistd::geteuid()
        .is_root()
        .then(|| (Uid::from_raw(uid), Gid::from_raw(gid)))
}

fn failed(doing: &str) -> impl Fn(Errno) -> Error {
    let doing = doing.to_owned();
    move |error| Error::Io {
        doing: doing.clone(),
        source: io::Error::from(error),
    }
}
