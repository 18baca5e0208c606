//! A terminal for a command, opened by the guest itself and never by the engine.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::open;
use nix::sys::stat::Mode;

use super::unix::own;

/// Both ends of a new terminal: ours, and the command's.
pub(super) struct Pty {
    pub(super) master: OwnedFd,
    pub(super) slave: OwnedFd,
}

/// Opens a terminal of the given size.
#[expect(unsafe_code, reason = "the terminal's ioctls have no safe form")]
pub(super) fn open_pty(rows: u16, columns: u16) -> io::Result<Pty> {
    let master = open(
        "/dev/ptmx",
        OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC,
        Mode::empty(),
    )?;
    let unlocked: libc::c_int = 0;
    // SAFETY: the ioctl reads one int.
    Errno::result(unsafe {
        libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked)
    })?;
    // The other end comes from the kernel, not from a path that may be mounted over.
    // SAFETY: the ioctl takes open flags and returns a new descriptor.
    let slave = Errno::result(unsafe {
        libc::ioctl(
            master.as_raw_fd(),
            libc::TIOCGPTPEER,
            libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC,
        )
    })?;
    let slave = own(slave);
    resize(&File::from(master.try_clone()?), rows, columns)?;
    Ok(Pty { master, slave })
}

/// Sets the size; the kernel signals the programs in the terminal.
#[expect(unsafe_code, reason = "the terminal's ioctls have no safe form")]
pub(super) fn resize(master: &File, rows: u16, columns: u16) -> io::Result<()> {
    let size = libc::winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the ioctl reads one `winsize`.
    Errno::result(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) })?;
    Ok(())
}
