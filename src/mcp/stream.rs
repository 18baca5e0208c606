//! The stream that a server is reached by, and what is known of its end.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio_util::sync::CancellationToken;

use super::Later;
use super::ServerOptions;
use super::plain_line;

/// How much of the end of its standard error is kept.
const STDERR_TAIL: usize = 4 << 10;

/// Starts servers. `app` starts them in the sandbox or on the host; tests give streams in memory.
pub trait Opener: Send + Sync {
    /// Starts a server; the error says why it cannot be started.
    fn open<'a>(
        &'a self,
        server: &'a ServerOptions,
        cancel: &'a CancellationToken,
    ) -> Later<'a, Result<ByteStream, String>>;

    /// Waits until all servers whose streams were dropped have ended.
    fn close(&self) -> Later<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A server's standard streams. Dropping both ends its process.
pub struct ByteStream {
    /// Its standard output.
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    /// Its standard input.
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
    pub end: ServerEnd,
    /// The project's folder as the server sees it, a URI.
    pub root: String,
}

/// How a server ended, as far as it is known, and the end of what it wrote to its standard error.
#[derive(Clone, Debug, Default)]
pub struct ServerEnd(Arc<Mutex<EndState>>);

#[derive(Debug, Default)]
struct EndState {
    stderr: Vec<u8>,
    how: Option<String>,
    /// The sandbox ended, so that the server did not end by itself.
    is_with_sandbox: bool,
}

impl ServerEnd {
    /// Keeps the end of what the server writes to its standard error.
    pub fn keep_stderr(&self, bytes: &[u8]) {
        let mut state = self.state();
        state.stderr.extend_from_slice(bytes);
        let n_over = state.stderr.len().saturating_sub(STDERR_TAIL);
        state.stderr.drain(..n_over);
    }

    /// Notes how it ended; the first note counts.
    pub fn note(&self, how: impl Into<String>) {
        self.state().how.get_or_insert_with(|| how.into());
    }

    /// Notes that it ended because its sandbox did.
    pub fn note_sandbox(&self) {
        self.state().is_with_sandbox = true;
        self.note("its sandbox ended");
    }

    pub(super) fn is_with_sandbox(&self) -> bool {
        self.state().is_with_sandbox
    }

    /// Returns what is known of the end, to stand behind "it ended".
    pub(super) fn words(&self) -> String {
        let state = self.state();
        let how = state
            .how
            .as_ref()
            .map(|how| format!(": {}", plain_line(how, 200)))
            .unwrap_or_default();
        let stderr = String::from_utf8_lossy(&state.stderr);
        let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
        let last = last
            .map(|line| format!(" (it wrote: {})", plain_line(line, 200)))
            .unwrap_or_default();
        format!("{how}{last}")
    }

    fn state(&self) -> std::sync::MutexGuard<'_, EndState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
