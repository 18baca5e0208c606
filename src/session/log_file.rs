use std::fs::File;
use std::fs::OpenOptions;
use std::fs::TryLockError;
use std::io;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use super::Error;

/// A log file; tests replace it by one that fails.
pub(super) trait LogFile: Send {
    /// Appends all bytes, or fails; after a failure some of them may be in the file.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    fn truncate(&mut self, length: u64) -> io::Result<()>;

    /// Waits until the appended bytes are on disk (fdatasync).
    fn sync(&mut self) -> io::Result<()>;
}

impl LogFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Locks a file, if need be after a moment: who lists has a shared lock that long, and a process
/// that starts a program has a copy of this one's until that is executed.
pub(super) fn lock_soon(file: &File) -> Result<(), TryLockError> {
    for _ in 0..20 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            other => return other,
        }
    }
    file.try_lock()
}

/// Opens a file for appending, mode 0600, without following symlinks.
pub(super) fn open_append(path: &Path, new: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .append(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW);
    if new {
        options.create_new(true)
    } else {
        options.create(true)
    };
    options.open(path).map_err(named)
}

/// Opens an existing regular file for reading, without following symlinks; a FIFO would block
/// forever.
pub(super) fn open_read(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .map_err(named)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

/// Opens an existing log for reading.
pub(super) fn open_log(path: &Path) -> Result<File, Error> {
    open_read(path).map_err(|source| {
        let is_link = std::fs::symlink_metadata(path).is_ok_and(|facts| facts.is_symlink());
        if is_link {
            Error::Linked {
                path: path.to_owned(),
            }
        } else {
            Error::io("open", path)(source)
        }
    })
}

/// Turns ELOOP into a message that names the symlink.
fn named(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(libc::ELOOP) {
        io::Error::other("it is a symbolic link, which is not followed")
    } else {
        error
    }
}

/// Refuses a file that another user owns or may write: they could put anything into what a model
/// reads.
pub(super) fn own_file(path: &Path) -> Result<(), Error> {
    let facts = std::fs::symlink_metadata(path).map_err(Error::io("look at", path))?;
    if facts.is_symlink() {
        return Err(Error::Linked {
            path: path.to_owned(),
        });
    }
    let (uid, mode, me) = (
        facts.uid(),
        facts.mode() & 0o7777,
        nix::unistd::geteuid().as_raw(),
    );
    if uid != me {
        return Err(Error::Foreign {
            path: path.to_owned(),
            uid,
            me,
        });
    }
    if facts.is_file() && mode & 0o022 != 0 {
        return Err(Error::Writable {
            path: path.to_owned(),
            mode,
        });
    }
    Ok(())
}

/// Returns the process that holds the lock on a file, if the kernel tells.
pub(super) fn holder(file: &File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino().to_string();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        // `1: FLOCK  ADVISORY  WRITE 4711 fd:01:123456 0 EOF`; a process that waits for the lock
        // has `->` behind the number.
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, pid, place, ..] = words[..] else {
            return None;
        };
        // Inside a container, a process of the host has the number 0.
        pid.parse()
            .ok()
            .filter(|pid| *pid != 0 && place.rsplit(':').next() == Some(&inode))
    })
}
