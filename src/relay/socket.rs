//! The sockets that bytes are carried between.

use std::io;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;

use nix::sys::socket::Shutdown;
use nix::sys::socket::shutdown;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::net::UnixStream;

/// A connected stream that does not block.
pub trait Socket: AsFd + Sync {
    /// Waits until the socket is ready, and tries; where that would block, waits again.
    fn when<T: Send>(
        &self,
        ready: Interest,
        attempt: impl FnMut() -> io::Result<T> + Send,
    ) -> impl Future<Output = io::Result<T>> + Send;
}

impl Socket for TcpStream {
    fn when<T: Send>(
        &self,
        ready: Interest,
        attempt: impl FnMut() -> io::Result<T> + Send,
    ) -> impl Future<Output = io::Result<T>> + Send {
        self.async_io(ready, attempt)
    }
}

impl Socket for UnixStream {
    fn when<T: Send>(
        &self,
        ready: Interest,
        attempt: impl FnMut() -> io::Result<T> + Send,
    ) -> impl Future<Output = io::Result<T>> + Send {
        self.async_io(ready, attempt)
    }
}

/// Says that no more bytes come.
pub(crate) fn end(socket: &impl Socket) -> io::Result<()> {
    shutdown(socket.as_fd().as_raw_fd(), Shutdown::Write).map_err(io::Error::from)
}
