use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;

use nix::sys::termios;
use nix::sys::termios::SetArg;
use nix::sys::termios::Termios;

/// How the terminal was before. It is the process's own, and so is its mode.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The user's terminal, handed through byte by byte until this is dropped.
pub(super) struct RawTerminal;

impl RawTerminal {
    pub(super) fn enter() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = termios::tcgetattr(&stdin)?;
        let mut raw = before.clone();
        termios::cfmakeraw(&mut raw);
        // Known first, so that there is no moment in which the way back is not.
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        let entered = Self;
        termios::tcsetattr(&stdin, SetArg::TCSADRAIN, &raw)?;
        Ok(entered)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back as it was, also where the process ends without dropping anything.
pub(super) fn restore() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // A terminal that is gone needs no mode, and one that stands still must not hold up the
        // end.
        let _ = termios::tcsetattr(io::stdin(), SetArg::TCSANOW, &before);
    }
}

/// Returns rows and columns of the terminal, whichever of the two streams is one.
pub(super) fn window_size() -> Option<(u16, u16)> {
    use std::os::fd::AsRawFd;
    let (out, err) = (io::stdout().as_raw_fd(), io::stderr().as_raw_fd());
    size_of(out).or_else(|| size_of(err))
}

fn size_of(terminal: std::os::fd::RawFd) -> Option<(u16, u16)> {
    nix::ioctl_read_bad!(get_window_size, libc::TIOCGWINSZ, libc::winsize);
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    #[expect(unsafe_code, reason = "nix has no safe call for the window's size")]
    // SAFETY: the kernel writes one winsize into `size`, which lives until after the call.
    let outcome = unsafe { get_window_size(terminal, &raw mut size) };
    (outcome.is_ok() && size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}
