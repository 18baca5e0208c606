use std::fs::File;
use std::io::Read;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::Duration;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::Flock;
use nix::fcntl::FlockArg;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::fcntl::renameat;
use nix::sys::stat::Mode;
use nix::sys::stat::fstat;
use nix::sys::stat::mkdirat;
use nix::unistd::UnlinkatFlags;
use nix::unistd::fdatasync;
use nix::unistd::fsync;
use nix::unistd::ftruncate;
use nix::unistd::unlinkat;

use super::Error;
use crate::tools::save::errno_of;

/// Suffix of a file that is being written; such a file was left by a killed process.
const UNFINISHED: &str = ".tmp";

/// Attempts to get the lock while another process holds it.
const LOCK_ATTEMPTS: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// A folder of our own state. Only the keeper writes there, so its names can be trusted.
#[derive(Debug)]
pub struct StateFolder {
    fd: OwnedFd,
}

impl StateFolder {
    pub fn new(fd: OwnedFd) -> Self {
        Self { fd }
    }

    pub fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let fd = nix::fcntl::open(path, flags, Mode::empty())
            .map_err(failed("open", &path.display().to_string()))?;
        Ok(Self { fd })
    }

    /// Opens a folder in this one; makes it if it is missing.
    pub(super) fn below(&self, name: &str) -> Result<Self, Error> {
        match mkdirat(&self.fd, name, Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(failed("make", name)(errno)),
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::empty()).map_err(failed("open", name))?;
        Ok(Self { fd })
    }

    /// Waits for the exclusive lock; it ends when the value is dropped or the process dies.
    pub(super) fn lock(&self) -> Result<Flock<File>, Error> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = openat(&self.fd, "lock", flags, Mode::from_bits_truncate(0o600))
            .map_err(failed("open", "lock"))?;
        let mut file = File::from(fd);
        for _ in 0..LOCK_ATTEMPTS {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(lock),
                Err((again, Errno::EWOULDBLOCK | Errno::EINTR)) => file = again,
                Err((_, errno)) => return Err(failed("lock", "lock")(errno)),
            }
            thread::sleep(LOCK_PAUSE);
        }
        Err(Error::Busy)
    }

    pub(super) fn open_file(&self, name: &str) -> Result<File, Error> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        openat(&self.fd, name, flags, Mode::empty())
            .map(File::from)
            .map_err(failed("open", name))
    }

    /// Reads a whole file; `None` where there is none.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let mut file = match self.open_file(name) {
            Err(Error::State {
                source: Errno::ENOENT,
                ..
            }) => return Ok(None),
            other => other?,
        };
        let mut content = Vec::new();
        file.read_to_end(&mut content)
            .map_err(|error| failed("read", name)(errno_of(&error)))?;
        Ok(Some(content))
    }

    /// Starts a file under a temporary name.
    pub(super) fn begin(&self, name: &str) -> Result<File, Error> {
        let flags =
            OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_TRUNC | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = openat(
            &self.fd,
            unfinished(name).as_str(),
            flags,
            Mode::from_bits_truncate(0o600),
        );
        fd.map(File::from).map_err(failed("make", name))
    }

    /// Flushes a started file and renames it to its final name.
    pub(super) fn finish(&self, name: &str, file: &File) -> Result<(), Error> {
        fdatasync(file).map_err(failed("write", name))?;
        renameat(&self.fd, unfinished(name).as_str(), &self.fd, name)
            .map_err(failed("name", name))?;
        fsync(&self.fd).map_err(failed("write", name))
    }

    /// Removes a started file.
    pub(super) fn give_up(&self, name: &str) {
        let _ = unlinkat(
            &self.fd,
            unfinished(name).as_str(),
            UnlinkatFlags::NoRemoveDir,
        );
    }

    /// Replaces a file atomically.
    pub(super) fn replace(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        let mut file = self.begin(name)?;
        let written = file
            .write_all(content)
            .map_err(|error| failed("write", name)(errno_of(&error)));
        let finished = written.and_then(|()| self.finish(name, &file));
        if finished.is_err() {
            self.give_up(name);
        }
        finished
    }

    /// Like [`StateFolder::replace`] without a flush: for files that may be lost in a power failure
    /// if that is detected.
    pub(super) fn replace_unflushed(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        let mut file = self.begin(name)?;
        let written = file.write_all(content).map_err(|error| errno_of(&error));
        let named =
            written.and_then(|()| renameat(&self.fd, unfinished(name).as_str(), &self.fd, name));
        named.map_err(|errno| {
            self.give_up(name);
            failed("write", name)(errno)
        })
    }

    /// Appends to a file; a partial write on a full disk is undone.
    pub(super) fn append(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        let flags = OFlag::O_WRONLY
            | OFlag::O_APPEND
            | OFlag::O_CREAT
            | OFlag::O_NOFOLLOW
            | OFlag::O_CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::from_bits_truncate(0o600))
            .map_err(failed("open", name))?;
        let length = fstat(&fd).map_err(failed("look at", name))?.st_size;
        let mut file = File::from(fd);
        let written = file
            .write_all(content)
            .map_err(|error| errno_of(&error))
            .and_then(|()| fdatasync(&file));
        written.map_err(|errno| {
            let _ = ftruncate(&file, length);
            failed("write", name)(errno)
        })
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), Error> {
        match unlinkat(&self.fd, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(failed("remove", name)(errno)),
        }
    }

    /// Returns the names in the folder, sorted; removes unfinished files of killed processes.
    pub(super) fn names(&self) -> Result<Vec<String>, Error> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut entries =
            Dir::openat(&self.fd, ".", flags, Mode::empty()).map_err(failed("list", "."))?;
        let mut names = Vec::new();
        for entry in entries.iter() {
            let entry = entry.map_err(failed("list", "."))?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            match name.strip_suffix(UNFINISHED) {
                Some(finished) => self.give_up(finished),
                None if name.starts_with('.') => {}
                None => names.push(name.to_owned()),
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

impl AsFd for StateFolder {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn unfinished(name: &str) -> String {
    format!("{name}{UNFINISHED}")
}

/// Turns an error of the kernel about our own state into an [`Error`].
pub(super) fn failed(doing: &'static str, name: &str) -> impl FnOnce(Errno) -> Error {
    let name = name.to_owned();
    move |source| Error::State {
        doing,
        name,
        source,
    }
}
