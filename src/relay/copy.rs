//! Bytes that are copied: read into a buffer that all connections of a thread share, and written
//! from there. Only what the other end does not take at once is kept for it.

use std::cell::RefCell;
use std::io;
use std::os::fd::AsRawFd;

use nix::sys::socket::MsgFlags;
use nix::sys::socket::recv;
use nix::sys::socket::send;
use tokio::io::Interest;

use crate::Socket;

/// Bytes of one read, and the most that is kept for an end that does not take them.
pub(crate) const CHUNK: usize = 64 * 1024;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; CHUNK]);
}

/// What one read gave.
struct Passed {
    n_read: usize,
    n_sent: usize,
    unsent: Vec<u8>,
}

/// Carries what one read gives, and returns how much that is: nothing at the end of the stream.
pub(crate) async fn once<A: Socket, B: Socket>(
    from: &A,
    to: &B,
    count: &(impl Fn(usize) + Sync),
) -> io::Result<usize> {
    let Passed {
        n_read,
        n_sent,
        unsent,
    } = from.when(Interest::READABLE, || pass(from, to)).await?;
    if n_sent > 0 {
        count(n_sent);
    }
    let mut unsent = unsent.as_slice();
    while !unsent.is_empty() {
        let n_sent = to.when(Interest::WRITABLE, || write(to, unsent)).await?;
        count(n_sent);
        unsent = &unsent[n_sent..];
    }
    Ok(n_read)
}

fn pass(from: &impl Socket, to: &impl Socket) -> io::Result<Passed> {
    BUFFER.with_borrow_mut(|buffer| {
        let n_read = recv(from.as_fd().as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT)?;
        let read = &buffer[..n_read];
        let n_sent = if read.is_empty() {
            0
        } else {
            match write(to, read) {
                Ok(n_sent) => n_sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(error) => return Err(error),
            }
        };
        Ok(Passed {
            n_read,
            n_sent,
            unsent: read[n_sent..].to_vec(),
        })
    })
}

fn write(to: &impl Socket, bytes: &[u8]) -> io::Result<usize> {
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    send(to.as_fd().as_raw_fd(), bytes, flags).map_err(io::Error::from)
}
