//! The kernel's seccomp notifications, and the answers to them.

use std::io;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::PollFd;
use nix::poll::PollFlags;
use nix::poll::PollTimeout;
use nix::poll::poll;

/// The descriptor on which the kernel asks. The calling thread waits for the answer, and gets
/// ENOSYS when this is closed.
#[derive(Debug)]
pub(crate) struct Listener(OwnedFd);

/// A system call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) id: u64,
    /// The thread that made the call, by its id in this pid namespace.
    pub(crate) thread: i32,
    pub(crate) call: i64,
    pub(crate) arguments: [u64; 6],
}

/// The result of waiting for a question.
#[derive(Debug)]
pub(crate) enum Received {
    Question(Question),
    /// The asking thread is gone, or the time is over.
    Nothing,
    /// No process is left that could ask.
    Closed,
}

/// Buffer for the kernel, with room for fields that a later version adds.
#[repr(C)]
struct NotificationBuffer {
    question: libc::seccomp_notif,
    added: [u64; 32],
}

impl Listener {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Waits for a question, forever where no time is given.
    #[expect(unsafe_code, reason = "neither nix nor seccompiler has this request")]
    pub(crate) fn wait(&self, within: Option<Duration>) -> Received {
        let timeout = within.map_or(PollTimeout::NONE, |time| {
            PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX)
        });
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return Received::Closed,
        }
        let events = fds[0].revents().unwrap_or(PollFlags::empty());
        if !events.contains(PollFlags::POLLIN) {
            return if events.intersects(PollFlags::POLLHUP | PollFlags::POLLERR) {
                Received::Closed
            } else {
                Received::Nothing
            };
        }
        // SAFETY: it consists of numbers, which may be zero; the kernel requires zeroes.
        let mut filled: NotificationBuffer = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills the buffer, which is larger than the struct.
        if unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                &raw mut filled,
            )
        } != 0
        {
            // The asking thread may be gone by now.
            return Received::Nothing;
        }
        let NotificationBuffer {
            question: libc::seccomp_notif { id, pid, data, .. },
            ..
        } = filled;
        Received::Question(Question {
            id,
            thread: pid as i32,
            call: i64::from(data.nr),
            arguments: data.args,
        })
    }

    /// Lets the kernel execute the call, which resolves its arguments anew.
    pub(crate) fn continue_call(&self, question: u64) {
        self.answer(
            question,
            0,
            0,
            libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        );
    }

    pub(crate) fn refuse(&self, question: u64, errno: Errno) {
        self.answer(question, 0, -(errno as i32), 0);
    }

    /// Answers in the kernel's place that the call succeeded.
    pub(crate) fn done(&self, question: u64) {
        self.answer(question, 0, 0, 0);
    }

    /// Answers an open with a file that is open here.
    pub(crate) fn answer_with_file(
        &self,
        id: u64,
        file: &OwnedFd,
        close_on_exec: bool,
    ) -> Result<(), Errno> {
        match self.add(
            id,
            file,
            close_on_exec,
            libc::SECCOMP_ADDFD_FLAG_SEND as u32,
        ) {
            // Both in one step is known since Linux 5.14.
            Err(Errno::EINVAL) => {
                let fd = self.add(id, file, close_on_exec, 0)?;
                self.answer(id, fd.into(), 0, 0);
                Ok(())
            }
            done => done.map(drop),
        }
    }

    /// Returns whether the kernel can be answered with a file: since Linux 5.9.
    pub(crate) fn can_answer_with_file(&self) -> bool {
        // No question has this id.
        self.0
            .try_clone()
            .is_ok_and(|file| self.add(u64::MAX, &file, true, 0) == Err(Errno::ENOENT))
    }

    /// Adds a file to the descriptors of the asking process; returns its number there.
    #[expect(unsafe_code, reason = "neither nix nor seccompiler has this request")]
    fn add(&self, id: u64, file: &OwnedFd, close_on_exec: bool, flags: u32) -> Result<i32, Errno> {
        let newfd_flags = if close_on_exec {
            libc::O_CLOEXEC as u32
        } else {
            0
        };
        let added = libc::seccomp_notif_addfd {
            id,
            flags,
            srcfd: file.as_raw_fd() as u32,
            newfd: 0,
            newfd_flags,
        };
        // SAFETY: the kernel only reads the struct.
        Errno::result(unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ADDFD,
                &raw const added,
            )
        })
    }

    /// Returns whether the asking thread still waits: only then what was read by its id was its
    /// own.
    #[expect(unsafe_code, reason = "neither nix nor seccompiler has this request")]
    pub(crate) fn is_waiting(&self, question: u64) -> bool {
        // SAFETY: the kernel only reads the id.
        unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
                &raw const question,
            ) == 0
        }
    }

    #[expect(unsafe_code, reason = "neither nix nor seccompiler has this request")]
    fn answer(&self, id: u64, val: i64, error: i32, flags: u32) {
        let answer = libc::seccomp_notif_resp {
            id,
            val,
            error,
            flags,
        };
        // SAFETY: the kernel only reads the struct. The asking thread may be gone: that error is
        // ignored.
        unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw const answer,
            )
        };
    }

    /// Answers a question with "continue"; an error: the kernel does not know that answer (before
    /// Linux 5.5).
    #[expect(unsafe_code, reason = "neither nix nor seccompiler has this request")]
    pub(crate) fn can_continue(&self, id: u64) -> io::Result<()> {
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        let answer = libc::seccomp_notif_resp {
            id,
            val: 0,
            error: 0,
            flags,
        };
        // SAFETY: the kernel only reads the struct.
        Errno::result(unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw const answer,
            )
        })?;
        Ok(())
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
