//! Exit codes of processes that are not our children: since Linux 6.15 a pidfd tells them.

use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::unix::own;

/// `PIDFD_GET_INFO` with the first version of its struct, and the mask bit for the exit code. libc
/// has neither.
const GET_INFO: libc::Ioctl = 0xc040_ff0b_u32 as libc::Ioctl;
const EXIT: u64 = 1 << 3;

#[repr(C)]
#[derive(Default)]
struct Info {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

/// Opens a pidfd, which can be queried after the process has ended. `None` for a thread that is not
/// the first of its process.
#[expect(unsafe_code, reason = "nix has no pidfd")]
pub(super) fn hold(process: i32) -> Option<OwnedFd> {
    // SAFETY: takes plain numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    i32::try_from(fd).ok().filter(|&fd| fd >= 0).map(own)
}

/// Kills a process by its pidfd, so that a reused pid is safe.
#[expect(unsafe_code, reason = "nix has no pidfd")]
pub(super) fn kill_held(held: &OwnedFd) {
    // SAFETY: a descriptor and plain numbers; the siginfo pointer may be null.
    unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            held.as_raw_fd(),
            libc::SIGKILL,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
}

/// Returns the exit code of a process that has ended, as a shell reports it.
#[expect(unsafe_code, reason = "nix has no pidfd")]
pub(super) fn of(held: &OwnedFd) -> Option<i32> {
    let mut info = Info {
        mask: EXIT,
        ..Info::default()
    };
    // SAFETY: the kernel fills the 64 bytes whose number is part of the request.
    let done = unsafe { libc::ioctl(held.as_raw_fd(), GET_INFO, &raw mut info) };
    (done == 0 && info.mask & EXIT != 0).then(|| as_in_a_shell(info.exit_code))
}

/// Turns a status word of `wait` into an exit code: 128 plus the number for a signal.
pub(super) fn as_in_a_shell(status: i32) -> i32 {
    let status = ExitStatus::from_raw(status);
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::process::Stdio;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test needs real processes")]
    fn a_pidfd_tells_the_exit_code_after_the_end_and_can_kill() {
        assert_eq!(size_of::<Info>(), 64, "as the request says");
        let mut child = Command::new("sh")
            .args(["-c", "read x; exit 7"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("sh");
        let held = hold(child.id() as i32).expect("held");
        assert_eq!(of(&held), None, "it runs");
        drop(child.stdin.take());
        assert_eq!(child.wait().expect("ended").code(), Some(7));
        // A kernel before 6.15 does not report it.
        assert!([None, Some(7)].contains(&of(&held)), "{:?}", of(&held));
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .spawn()
            .expect("cat");
        kill_held(&hold(child.id() as i32).expect("held"));
        assert_eq!(as_in_a_shell(child.wait().expect("ended").into_raw()), 137);
        assert!(hold(i32::MAX).is_none());
    }
}
