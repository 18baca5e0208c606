//! Descriptors of any kind as asynchronous streams, without threads.

use std::fs::File;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::ready;

use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::io::Interest;
use tokio::io::ReadBuf;
use tokio::io::unix::AsyncFd;

use super::unix::set_nonblocking;
use super::unix::watch;

/// A pipe, socket or terminal.
#[derive(Debug)]
pub(super) struct Pipe {
    fd: AsyncFd<File>,
}

impl Pipe {
    /// Takes a descriptor that can be polled; a regular file cannot.
    pub(super) fn new(fd: OwnedFd) -> io::Result<Self> {
        set_nonblocking(&fd)?;
        Ok(Self {
            fd: watch(File::from(fd))?,
        })
    }

    /// Returns when there may be something to read; cancel safe.
    pub(super) async fn readable(&self) {
        if let Ok(mut guard) = self.fd.readable().await {
            guard.retain_ready();
        }
    }

    pub(super) async fn writable(&self) {
        if let Ok(mut guard) = self.fd.writable().await {
            guard.retain_ready();
        }
    }

    /// Reads what is there now; `WouldBlock`: nothing.
    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fd
            .try_io(Interest::READABLE, |mut file| file.read(buffer))
    }

    /// Reads even where no readiness was noted yet: the last bytes of a process arrive just before
    /// the report of its end.
    pub(super) fn read_now(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fd.get_ref().read(buffer)
    }

    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.fd
            .try_io(Interest::WRITABLE, |mut file| file.write(bytes))
    }

    pub(super) fn file(&self) -> &File {
        self.fd.get_ref()
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.fd.poll_read_ready(context))?;
            let unfilled = buffer.initialize_unfilled();
            match guard.try_io(|fd| fd.get_ref().read(unfilled)) {
                Ok(result) => {
                    buffer.advance(result?);
                    return Poll::Ready(Ok(()));
                }
                Err(_would_block) => {}
            }
        }
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.fd.poll_write_ready(context))?;
            match guard.try_io(|fd| fd.get_ref().write(bytes)) {
                Ok(result) => return Poll::Ready(result),
                Err(_would_block) => {}
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
