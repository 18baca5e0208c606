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

    /// Returns a stream to the gateway of the session, which takes the requests of a proxy, for the
    /// server of this name; the error says why there is none.
    fn gateway<'a>(
        &'a self,
        _server: &'a str,
        _cancel: &'a CancellationToken,
    ) -> Later<'a, Result<ByteStream, String>> {
        Box::pin(std::future::ready(Err("there is no gateway".to_owned())))
    }

    /// Returns the value of a variable of the user.
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    /// Returns whether servers may be told that there is a user to ask.
    fn can_ask(&self) -> bool {
        false
    }

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

    /// Notes what went wrong last.
    pub(super) fn replace(&self, how: String) {
        self.state().how = Some(how);
    }

    /// Returns the last line of its standard error.
    pub(super) fn last_line(&self) -> Option<String> {
        let state = self.state();
        let stderr = String::from_utf8_lossy(&state.stderr);
        let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
        last.map(|line| plain_line(line, 200))
    }

    pub(super) fn is_with_sandbox(&self) -> bool {
        self.state().is_with_sandbox
    }

    /// Returns what is known of the end, to stand behind "it ended".
    pub(super) fn words(&self) -> String {
        let how = self.state().how.clone();
        let how = how.map_or_else(String::new, |how| format!(": {}", plain_line(&how, 300)));
        let last = self
            .last_line()
            .map_or_else(String::new, |line| format!(" (it wrote: {line})"));
        format!("{how}{last}")
    }

    fn state(&self) -> std::sync::MutexGuard<'_, EndState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
