//! `/proc`, held open.
//!
//! An absolute path is looked up in the image's file system, name by name. Where that is served by
//! a process, as by fuse-overlayfs, each `/proc/…` costs a round trip to it.

use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::open;
use nix::fcntl::openat;
use nix::fcntl::readlinkat;
use nix::sys::stat::Mode;

static PROC: OnceLock<OwnedFd> = OnceLock::new();

/// Returns `/proc`. `self` in it is resolved anew each time, so a forked process can use it too.
fn folder() -> Result<BorrowedFd<'static>, Errno> {
    if let Some(folder) = PROC.get() {
        return Ok(folder.as_fd());
    }
    let opened = open(
        "/proc",
        OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC,
        Mode::empty(),
    )?;
    Ok(PROC.get_or_init(|| opened).as_fd())
}

/// Reads a file below `/proc`, up to a length.
pub(super) fn read(name: &str, most: u64) -> io::Result<Vec<u8>> {
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let file = File::from(openat(folder()?, name, flags, Mode::empty())?);
    let mut content = Vec::new();
    file.take(most).read_to_end(&mut content)?;
    Ok(content)
}

/// Returns the names in a folder below `/proc`, or in itself. What ends meanwhile is left out.
pub(super) fn names(name: &str) -> io::Result<impl Iterator<Item = String>> {
    let name = if name.is_empty() { "." } else { name };
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let entries = Dir::openat(folder()?, name, flags, Mode::empty())?.into_iter();
    let name = |entry: nix::dir::Entry| entry.file_name().to_str().ok().map(str::to_owned);
    Ok(entries
        .flatten()
        .filter_map(name)
        .filter(|name| !name.starts_with('.')))
}

/// Reads a link below `/proc`.
pub(super) fn link(name: &str) -> Result<Vec<u8>, Errno> {
    Ok(readlinkat(folder()?, name)?.into_encoded_bytes())
}
