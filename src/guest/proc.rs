//! `/proc`, held open.
//!
//! An absolute path is looked up in the image's file system, name by name. Where that is served by
//! a process, as by fuse-overlayfs, each `/proc/…` costs a round trip to it.

use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::open;
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

/// Reads a link below `/proc`.
pub(super) fn link(name: &str) -> Result<Vec<u8>, Errno> {
    Ok(readlinkat(folder()?, name)?.into_encoded_bytes())
}
