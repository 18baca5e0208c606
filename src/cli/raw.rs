use std::io;

use nix::sys::termios;
use nix::sys::termios::SetArg;
use nix::sys::termios::Termios;

/// The person's terminal, handed through byte by byte until this is dropped.
pub(super) struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    pub(super) fn enter() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = termios::tcgetattr(&stdin)?;
        let mut raw = before.clone();
        termios::cfmakeraw(&mut raw);
        termios::tcsetattr(&stdin, SetArg::TCSADRAIN, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no mode.
        let _ = termios::tcsetattr(io::stdin(), SetArg::TCSADRAIN, &self.before);
    }
}

/// Returns rows and columns of the terminal.
pub(super) fn window_size() -> Option<(u16, u16)> {
    use std::os::fd::AsRawFd;
    nix::ioctl_read_bad!(get_window_size, libc::TIOCGWINSZ, libc::winsize);
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    #[expect(unsafe_code, reason = "nix has no safe call for the window's size")]
    // SAFETY: the kernel writes one winsize into `size`, which lives until after the call.
    let outcome = unsafe { get_window_size(io::stdout().as_raw_fd(), &raw mut size) };
    (outcome.is_ok() && size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}
