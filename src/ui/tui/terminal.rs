//! The user's terminal while the chat has it, and the way back that always holds.

use std::fs::File;
use std::io;
use std::io::IsTerminal;
use std::io::Read;
use std::io::Seek;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use crossterm::cursor::Show;
use crossterm::event::DisableBracketedPaste;
use crossterm::event::DisableFocusChange;
use crossterm::event::EnableBracketedPaste;
use crossterm::event::EnableFocusChange;
use crossterm::execute;
use crossterm::terminal::EnterAlternateScreen;
use crossterm::terminal::LeaveAlternateScreen;
use nix::sys::termios;
use nix::sys::termios::SetArg;
use nix::sys::termios::Termios;

/// How the terminal was. It is the process's own, and so is its mode.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
/// What is written to the error stream meanwhile would fall into the frames: it goes to a file, and
/// to the terminal afterwards.
static ERRORS: Mutex<Option<Errors>> = Mutex::new(None);
/// So much of it is shown.
const MOST_ERRORS: u64 = 64 << 10;

struct Errors {
    stream: OwnedFd,
    file: File,
}

/// A panic gave the terminal back: nothing is drawn any more.
static IS_LOST: AtomicBool = AtomicBool::new(false);

/// Takes the terminal: no echo, keys one by one, a screen of its own.
pub(super) fn enter() -> io::Result<()> {
    let stdin = io::stdin();
    let before = termios::tcgetattr(&stdin)?;
    let mut raw = before.clone();
    termios::cfmakeraw(&mut raw);
    // Known first, so that there is no moment in which the way back is not.
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
    termios::tcsetattr(&stdin, SetArg::TCSADRAIN, &raw)?;
    hold_errors()?;
    execute!(
        io::stdout(),
        EnterAlternateScreen,
        EnableBracketedPaste,
        EnableFocusChange
    )
}

/// Gives the terminal back as it was; called again it does nothing.
pub fn restore() {
    let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() else {
        return;
    };
    let mut out = io::stdout();
    // A terminal that is gone needs nothing of this.
    let _ = execute!(
        out,
        DisableFocusChange,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    );
    let _ = out.flush();
    release_errors();
    let _ = termios::tcsetattr(io::stdin(), SetArg::TCSANOW, &before);
}

fn hold_errors() -> io::Result<()> {
    if !io::stderr().is_terminal() {
        return Ok(());
    }
    let file = tempfile::tempfile()?;
    let stream = nix::unistd::dup(io::stderr())?;
    nix::unistd::dup2_stderr(&file)?;
    *ERRORS.lock().unwrap_or_else(PoisonError::into_inner) = Some(Errors { stream, file });
    Ok(())
}

fn release_errors() {
    let held = ERRORS.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Errors { stream, mut file }) = held else {
        return;
    };
    let _ = nix::unistd::dup2_stderr(&stream);
    let mut text = Vec::new();
    // Who wrote it has cleaned it.
    if file.rewind().is_ok() && file.take(MOST_ERRORS).read_to_end(&mut text).is_ok() {
        let _ = io::stderr().write_all(&text);
    }
}

pub(super) fn is_lost() -> bool {
    IS_LOST.load(Ordering::Relaxed)
}

/// Has a panic of any thread give the terminal back before it says what happened.
pub(super) fn restore_on_panic() {
    static ONCE: AtomicBool = AtomicBool::new(false);
    if ONCE.swap(true, Ordering::Relaxed) {
        return;
    }
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let is_ours = BEFORE
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some();
        if is_ours {
            IS_LOST.store(true, Ordering::Relaxed);
            restore();
        }
        before(info);
    }));
}
