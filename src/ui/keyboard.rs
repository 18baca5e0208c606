use std::io;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use nix::errno::Errno;
use nix::poll::PollFd;
use nix::poll::PollFlags;
use nix::poll::poll;
use nix::sys::termios::FlushArg;
use nix::sys::termios::tcflush;
use tokio_util::sync::CancellationToken;

/// How long a withdrawn read may still hold its thread, and how soon after a line the next one of a
/// paste is there, in milliseconds.
const PATIENCE: u8 = 50;
const LINE_MAX: usize = 1 << 20;

/// Where lines are typed: a terminal, or a pipe. Clones read the same lines.
#[derive(Clone)]
pub struct Keyboard {
    inner: Arc<Inner>,
}

struct Inner {
    input: OwnedFd,
    /// What was read and not yet taken. Whoever reads holds it, so that two readers never tear a
    /// line.
    buffer: Mutex<Vec<u8>>,
}

/// What came of waiting for a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// Without its newline.
    Line(String),
    /// Nothing more comes.
    End,
    /// The wait was called off.
    Cancelled,
}

impl Keyboard {
    /// Opens the standard input.
    pub fn stdin() -> io::Result<Self> {
        Ok(Self::new(io::stdin().as_fd().try_clone_to_owned()?))
    }

    pub fn new(input: OwnedFd) -> Self {
        Self {
            inner: Arc::new(Inner {
                input,
                buffer: Mutex::default(),
            }),
        }
    }

    pub fn is_terminal(&self) -> bool {
        self.inner.input.is_terminal()
    }

    /// Returns a whole line that was read before it was wanted.
    pub fn waiting(&self) -> Option<String> {
        let mut buffer = self
            .inner
            .buffer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        take_line(&mut buffer)
    }

    /// Returns a whole line that is there already. Waits for nothing, and takes nothing from a reader
    /// that waits for an answer.
    pub fn typed(&self) -> Option<String> {
        let mut buffer = self.inner.buffer.try_lock().ok()?;
        let mut fds = [PollFd::new(self.inner.input.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, 0_u8).is_ok_and(|n_ready| n_ready > 0) {
            let mut bytes = [0; 4096];
            let n = nix::unistd::read(&self.inner.input, &mut bytes).unwrap_or(0);
            buffer.extend_from_slice(&bytes[..n]);
        }
        take_line(&mut buffer)
    }

    /// Forgets what was typed so far.
    pub fn discard(&self) {
        self.inner
            .buffer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        let _ = tcflush(&self.inner.input, FlushArg::TCIFLUSH);
    }

    /// Returns whether another line is there already, or comes before a user could have typed it.
    pub(super) async fn has_more(&self) -> bool {
        let inner = Arc::clone(&self.inner);
        let look = move || {
            let buffer = inner.buffer.lock().unwrap_or_else(PoisonError::into_inner);
            let mut fds = [PollFd::new(inner.input.as_fd(), PollFlags::POLLIN)];
            !buffer.is_empty() || poll(&mut fds, PATIENCE).is_ok_and(|n_ready| n_ready > 0)
        };
        tokio::task::spawn_blocking(look).await.unwrap_or(false)
    }

    /// Waits for a line. A wait that is cancelled or dropped gives its thread back soon after, and
    /// takes nothing with it.
    pub async fn line(&self, cancel: &CancellationToken) -> Typed {
        let inner = Arc::clone(&self.inner);
        let cancel = cancel.child_token();
        let _called_off_when_dropped = cancel.clone().drop_guard();
        tokio::task::spawn_blocking(move || inner.line(&cancel))
            .await
            .unwrap_or(Typed::Cancelled)
    }
}

impl Inner {
    fn line(&self, cancel: &CancellationToken) -> Typed {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if cancel.is_cancelled() {
                return Typed::Cancelled;
            }
            if let Some(line) = take_line(&mut buffer) {
                return Typed::Line(line);
            }
            let mut fds = [PollFd::new(self.input.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, PATIENCE) {
                Ok(0) | Err(Errno::EINTR) => continue,
                Ok(_) => {}
                Err(_) => return Typed::End,
            }
            let mut bytes = [0; 4096];
            match nix::unistd::read(&self.input, &mut bytes) {
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                Ok(0) | Err(_) if buffer.is_empty() => return Typed::End,
                Ok(0) | Err(_) => return Typed::Line(decode(&std::mem::take(&mut *buffer))),
                Ok(n) => buffer.extend_from_slice(&bytes[..n]),
            }
            if buffer.len() > LINE_MAX && !buffer.contains(&b'\n') {
                return Typed::Line(decode(&std::mem::take(&mut *buffer)));
            }
        }
    }
}

/// Takes the first whole line.
fn take_line(buffer: &mut Vec<u8>) -> Option<String> {
    let end = buffer.iter().position(|byte| *byte == b'\n')?;
    let line: Vec<u8> = buffer.drain(..=end).collect();
    Some(decode(&line))
}

fn decode(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    String::from_utf8_lossy(line).into_owned()
}
