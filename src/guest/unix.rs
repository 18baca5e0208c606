//! System calls that the standard library and nix do not wrap as needed.

use std::io;
use std::io::IoSlice;
use std::io::IoSliceMut;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;
use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::sys::signal::SigSet;
use nix::sys::signal::SigmaskHow;
use nix::sys::signal::sigprocmask;
use nix::sys::socket::ControlMessage;
use nix::sys::socket::ControlMessageOwned;
use nix::sys::socket::MsgFlags;
use nix::sys::socket::recvmsg;
use nix::sys::socket::sendmsg;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A process that ended, with its wait status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) pid: i32,
    pub(super) status: i32,
}

/// Result of [`reap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaped {
    Ended(Ended),
    /// There are children, but none has ended.
    Running,
    NoChildren,
}

/// The two sides of a fork.
pub(super) enum Fork {
    Parent(i32),
    Child,
}

/// Forks a single-threaded process.
///
/// With one thread the child may allocate and call anything; so this refuses to run in a process
/// with more.
#[expect(unsafe_code, reason = "fork has no safe form")]
pub(super) fn fork_single_threaded() -> io::Result<Fork> {
    // SAFETY: callers are the guest's start before any thread exists, the spawner and the
    // supervisor, which never create threads.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

/// Gives the calling thread the least priority, which is that of commands; a refusal is ignored.
#[expect(unsafe_code, reason = "raw setpriority")]
pub(super) fn lower_priority() {
    const LEAST: libc::c_int = 19;
    // SAFETY: takes plain numbers; on Linux 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LEAST) };
}

/// Reaps one ended child, without waiting.
///
/// nix's form fails for a child that a real-time signal killed, which any command can arrange. A
/// command can also ask to be traced by its parent; where that is this process, the kernel reports
/// that the child has stopped, and it is detached.
#[expect(unsafe_code, reason = "raw waitpid")]
pub(super) fn reap() -> Reaped {
    loop {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the call's result.
        match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
            0 => return Reaped::Running,
            -1 => return Reaped::NoChildren,
            pid if libc::WIFSTOPPED(status) => let_go(pid, libc::WSTOPSIG(status)),
            pid => return Reaped::Ended(Ended { pid, status }),
        }
    }
}

/// Detaches a traced child, and delivers the signal that it stopped for; the stop that only reports
/// an exec has none.
#[expect(unsafe_code, reason = "raw ptrace")]
fn let_go(pid: i32, signal: i32) {
    let signal = if signal == libc::SIGTRAP { 0 } else { signal };
    // SAFETY: takes plain numbers; a child that is gone meanwhile is an error.
    unsafe {
        libc::ptrace(
            libc::PTRACE_DETACH,
            pid,
            std::ptr::null_mut::<libc::c_void>(),
            signal as usize as *mut libc::c_void,
        )
    };
}

/// Sends a signal; errors, such as a process that is gone, are ignored.
#[expect(
    unsafe_code,
    reason = "raw kill: signal numbers that nix does not name must pass"
)]
pub(super) fn kill(pid: i32, signal: i32) {
    // SAFETY: kill takes plain numbers.
    unsafe { libc::kill(pid, signal) };
}

/// Ends this process at once, without running exit handlers or flushing what a fork copied.
#[expect(unsafe_code, reason = "_exit has no safe form")]
pub(super) fn exit_now(code: i32) -> ! {
    // SAFETY: never returns, touches nothing.
    unsafe { libc::_exit(code) }
}

/// Closes every file descriptor from `first` on.
#[expect(
    unsafe_code,
    reason = "close_range closes descriptors that Rust may own"
)]
pub(super) fn close_from(first: RawFd) {
    // SAFETY: used only between fork and exec (or `_exit`) on descriptors that nothing of this
    // process uses again.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
    if done == 0 {
        return;
    }
    // A kernel before 5.9, or a filter that does not know the call. The limit may be a million, so
    // only open descriptors are closed.
    let open: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for fd in open.into_iter().filter(|&fd| fd >= first) {
        // SAFETY: as above; the listed folder is closed already, which only gives an error here.
        unsafe { libc::close(fd) };
    }
}

/// Blocks every signal that can be blocked, for this thread and its descendants.
pub(super) fn block_signals() -> io::Result<()> {
    Ok(sigprocmask(
        SigmaskHow::SIG_SETMASK,
        Some(&SigSet::all()),
        None,
    )?)
}

/// Resets every signal to its default action, also those that our parent ignores: that would be
/// inherited by all commands.
#[expect(unsafe_code, reason = "signal dispositions")]
pub(super) fn default_signals() {
    // The kernel's own struct: handler, flags, restorer and mask, of which all zeros is the
    // default. The C library's form excludes its two reserved signals, which can be inherited as
    // ignored like any other.
    let default = [0_u64; 4];
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: `default` is as long as the kernel's structure; signals that cannot be changed
        // only return an error.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                std::ptr::null_mut::<u64>(),
                size_of::<u64>(),
            )
        };
    }
}

/// Sets whether other processes of this user may read this one.
pub(super) fn set_dumpable(dumpable: bool) -> io::Result<()> {
    Ok(nix::sys::prctl::set_dumpable(dumpable)?)
}

/// Sends one message with file descriptors.
pub(super) fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[RawFd]) -> io::Result<()> {
    let rights = [ControlMessage::ScmRights(fds)];
    let control = if fds.is_empty() {
        &rights[..0]
    } else {
        &rights[..]
    };
    sendmsg::<()>(
        socket.as_raw_fd(),
        &[IoSlice::new(bytes)],
        control,
        MsgFlags::MSG_NOSIGNAL,
        None,
    )?;
    Ok(())
}

/// Receives one message into `buffer`; returns its length and descriptors. Length 0: the other side
/// is gone.
pub(super) fn receive(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = nix::cmsg_space!([RawFd; MAX_FDS]);
    let mut slices = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(
        socket.as_raw_fd(),
        &mut slices,
        Some(&mut space),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    let mut fds = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(received) = control {
            fds.extend(received.into_iter().map(own));
        }
    }
    if message
        .flags
        .intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC)
    {
        return Err(Errno::EMSGSIZE.into());
    }
    Ok((message.bytes, fds))
}

/// Receives one message of any length. Empty: the other side is gone.
pub(super) fn receive_whole(socket: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    // With MSG_PEEK and MSG_TRUNC the kernel returns the length.
    let length = nix::sys::socket::recv(
        socket.as_raw_fd(),
        &mut [0; 1],
        MsgFlags::MSG_PEEK | MsgFlags::MSG_TRUNC,
    )?;
    let mut message = vec![0; length];
    if length > 0 {
        let (length, _) = receive(socket, &mut message)?;
        message.truncate(length);
    }
    Ok(message)
}

/// Most descriptors in one message.
pub(super) const MAX_FDS: usize = 8;

/// Takes ownership of a descriptor that the kernel just created.
#[expect(unsafe_code, reason = "the kernel hands descriptors as numbers")]
pub(super) fn own(fd: RawFd) -> OwnedFd {
    // SAFETY: callers pass a descriptor that was just received or opened and that has no other
    // owner.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Makes reads and writes on `fd` nonblocking.
pub(super) fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    use nix::fcntl::FcntlArg;
    use nix::fcntl::OFlag;
    use nix::fcntl::fcntl;
    let flags = OFlag::from_bits_retain(fcntl(&fd, FcntlArg::F_GETFL)?);
    fcntl(&fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

/// The cause of ENOSPC from epoll: the kernel counts watches by user, not by container.
pub const NO_WATCHES: &str = "the kernel gives this user no more epoll watches (`fs.epoll.max_user_watches`): some program of the same user \
                              holds them all, such as a command in another sandbox; end it, or raise that number";

/// Registers a descriptor that `fd` owns for as long as it lives.
pub(super) fn watch<T: AsFd + AsRawFd + 'static>(fd: T) -> io::Result<AsyncFd<T>> {
    watch_for(fd, Interest::READABLE | Interest::WRITABLE)
}

/// Like [`watch`], for the given interest only.
#[expect(
    unsafe_code,
    reason = "the runtime cannot check that the descriptor stays the same"
)]
pub(super) fn watch_for<T: AsFd + AsRawFd + 'static>(
    fd: T,
    interest: Interest,
) -> io::Result<AsyncFd<T>> {
    // SAFETY: used with `OwnedFd`, `File` and `SignalFd`, which own one descriptor and never
    // exchange it.
    unsafe { AsyncFd::register_with_interest(fd, interest) }
        .map_err(|error| not_watched(error.into()))
}

/// Replaces the kernel's message for a failed registration.
pub fn not_watched(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(libc::ENOSPC) {
        io::Error::other(NO_WATCHES)
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_epoll_watches_are_not_reported_as_a_full_disk() {
        assert_eq!(not_watched(Errno::ENOSPC.into()).to_string(), NO_WATCHES);
        assert_eq!(
            not_watched(Errno::EPERM.into()).raw_os_error(),
            Some(libc::EPERM)
        );
    }
}
