//! The kernel's questions, and the answers to them.

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

/// Where the kernel asks. Who made the call waits for the answer, and gets the error ENOSYS when
/// this is closed.
#[derive(Debug)]
pub(crate) struct Listener(OwnedFd);

/// A system call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) id: u64,
    /// The thread that made the call, by its number here.
    pub(crate) thread: i32,
    pub(crate) call: i64,
    pub(crate) arguments: [u64; 6],
}

/// What comes of a wait for a question.
#[derive(Debug)]
pub(crate) enum Asked {
    Question(Question),
    /// Whoever asked is gone, or the time is over.
    Nothing,
    /// No process is left that could ask.
    Over,
}

/// What the kernel fills, with room for what a later one adds.
#[repr(C)]
struct Filled {
    question: libc::seccomp_notif,
    added: [u64; 32],
}

impl Listener {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Waits for a question, for ever where no time is given.
    #[expect(unsafe_code, reason = "neither nix nor seccompiler has this request")]
    pub(crate) fn wait(&self, within: Option<Duration>) -> Asked {
        let timeout = within.map_or(PollTimeout::NONE, |time| {
            PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX)
        });
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return Asked::Over,
        }
        let events = fds[0].revents().unwrap_or(PollFlags::empty());
        if !events.contains(PollFlags::POLLIN) {
            return if events.intersects(PollFlags::POLLHUP | PollFlags::POLLERR) {
                Asked::Over
            } else {
                Asked::Nothing
            };
        }
        // SAFETY: it consists of numbers, which may be zero; the kernel wants it so.
        let mut filled: Filled = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills what it is given, which has more room than it needs.
        if unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                &raw mut filled,
            )
        } != 0
        {
            // Whoever asked may be gone by now.
            return Asked::Nothing;
        }
        let Filled {
            question: libc::seccomp_notif { id, pid, data, .. },
            ..
        } = filled;
        Asked::Question(Question {
            id,
            thread: pid as i32,
            call: i64::from(data.nr),
            arguments: data.args,
        })
    }

    /// Lets the kernel carry out the call. What its arguments lead to may be another by then.
    pub(crate) fn go_on(&self, question: u64) {
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

    /// Answers in the kernel's place that the call was carried out.
    pub(crate) fn done(&self, question: u64) {
        self.answer(question, 0, 0, 0);
    }

    /// Answers an open with a file that is open here.
    pub(crate) fn hand_over(
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
    pub(crate) fn can_hand_over(&self) -> bool {
        // No question has this number.
        self.0
            .try_clone()
            .is_ok_and(|file| self.add(u64::MAX, &file, true, 0) == Err(Errno::ENOENT))
    }

    /// Puts a file among those of the process that asked, and returns its number there.
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
        // SAFETY: the kernel reads what it is given.
        Errno::result(unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ADDFD,
                &raw const added,
            )
        })
    }

    /// Returns whether whoever asked still waits, so that what was read by its number was its own.
    #[expect(unsafe_code, reason = "neither nix nor seccompiler has this request")]
    pub(crate) fn is_waiting(&self, question: u64) -> bool {
        // SAFETY: the kernel reads the number that it is given.
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
        // SAFETY: the kernel reads what it is given. Whoever asked may be gone, which is an error
        // and none of ours.
        unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw const answer,
            )
        };
    }

    /// Returns whether an answer to go on is one that the kernel knows: before Linux 5.5 it is not.
    #[expect(unsafe_code, reason = "neither nix nor seccompiler has this request")]
    pub(crate) fn can_go_on(&self, id: u64) -> io::Result<()> {
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        let answer = libc::seccomp_notif_resp {
            id,
            val: 0,
            error: 0,
            flags,
        };
        // SAFETY: the kernel reads what it is given.
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
