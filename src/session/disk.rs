use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A file as a log sees it; tests put a failing one in its place.
pub(super) trait Disk: Send {
    /// Appends all of it or fails; after a failure some of it may be there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    fn truncate(&mut self, length: u64) -> io::Result<()>;

    /// Waits until what was appended would survive a power cut.
    fn sync(&mut self) -> io::Result<()>;
}

impl Disk for File {
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

/// Opens a file for appending, mode 0600, and never through a link.
pub(super) fn open_append(path: &Path, new: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    if new {
        options.create_new(true)
    } else {
        options.create(true)
    };
    options.open(path)
}

/// Opens an existing file for reading, never through a link, and never one that is not a plain file: a pipe would wait forever.
pub(super) fn open_read(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no plain file")) }
}
