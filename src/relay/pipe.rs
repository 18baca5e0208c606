//! The pipes that bytes are spliced through.

use std::io;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;

use nix::fcntl::FcntlArg;
use nix::fcntl::OFlag;
use nix::fcntl::SpliceFFlags;
use nix::fcntl::fcntl;
use nix::fcntl::splice;
use nix::unistd::pipe2;
use tokio::sync::Semaphore;
use tokio::sync::SemaphorePermit;

/// Pipes at once. Each has two descriptors, and the kernel lets a user have 64 MiB of them.
pub(crate) const PIPES: usize = 64;

/// Bytes in a pipe. A larger one is no faster.
pub(crate) const SIZE: usize = 256 * 1024;

static PLACES: Semaphore = Semaphore::const_new(PIPES);

pub(crate) struct Pipe {
    from: OwnedFd,
    to: OwnedFd,
    _place: SemaphorePermit<'static>,
}

impl Pipe {
    /// `None`: there are as many as may be, or no descriptor is left.
    pub(crate) fn open() -> Option<Self> {
        let place = PLACES.try_acquire().ok()?;
        let (from, to) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).ok()?;
        let size = i32::try_from(SIZE).expect("it is small");
        // Where the user has no more of it, one that is smaller serves as well.
        let _ = fcntl(&to, FcntlArg::F_SETPIPE_SZ(size));
        Some(Self {
            from,
            to,
            _place: place,
        })
    }

    /// Fills an empty pipe with what there is, and returns how much that is: nothing at the end of
    /// the stream.
    pub(crate) fn fill(&self, socket: &impl AsFd) -> io::Result<usize> {
        splice(socket, None, &self.to, None, SIZE, flags()).map_err(io::Error::from)
    }

    /// Empties it of so many bytes, which are in it, and returns how many went.
    pub(crate) fn empty(&self, socket: &impl AsFd, n_bytes: usize) -> io::Result<usize> {
        splice(&self.from, None, socket, None, n_bytes, flags()).map_err(io::Error::from)
    }
}

fn flags() -> SpliceFFlags {
    SpliceFFlags::SPLICE_F_MOVE | SpliceFFlags::SPLICE_F_NONBLOCK
}
