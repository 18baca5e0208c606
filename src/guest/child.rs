//! The command's own process sets itself up, between fork and exec.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::fd::RawFd;

use nix::errno::Errno;
use nix::sys::resource::Resource;
use nix::sys::resource::setrlimit;
use nix::sys::signal::SigHandler;
use nix::sys::signal::SigSet;
use nix::sys::signal::SigmaskHow;
use nix::sys::signal::Signal;
use nix::sys::signal::signal;
use nix::sys::signal::sigprocmask;

use super::order::Order;
use super::order::Stage;
use super::unix::close_from;
use super::unix::exit_now;
use super::unix::set_dumpable;

/// The OOM killer takes commands before the guest, which keeps the score that the engine gave it.
const OOM_SCORE: &str = "1000";

/// Niceness of commands: ending hundreds of busy processes needs CPU time for the guest, and a call
/// that reads a file must not wait for a build. Niceness is compared only within one sandbox.
const NICENESS: libc::c_int = 19;

/// Descriptors from here on survive `close_from`, above those that commands use.
const KEPT_FROM: RawFd = 3;

/// Descriptors that the command gets, in the order in which they are sent.
pub(super) struct Stdio {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) directory: OwnedFd,
    pub(super) report: Option<OwnedFd>,
}

/// Becomes the command; on failure writes stage and errno to `failure` and exits.
pub(super) fn become_command(order: &Order, stdio: &Stdio, failure: &OwnedFd) -> ! {
    let stage_and_errno = match prepare(order, stdio, failure) {
        Ok(failure) => (failure, Stage::Execute, execute(order)),
        Err((failure, error)) => (failure, Stage::Prepare, error),
    };
    let (failure, stage, errno) = stage_and_errno;
    let report = super::order::Report::Failed {
        stage,
        errno: errno as i32,
    };
    write_all(failure, &report.encode());
    exit_now(127)
}

#[expect(
    unsafe_code,
    reason = "descriptors are moved to fixed numbers, and a signal is ignored"
)]
fn prepare(order: &Order, stdio: &Stdio, failure: &OwnedFd) -> Result<RawFd, (RawFd, Errno)> {
    let at = failure.as_raw_fd();
    let fail = |errno: Errno| (at, errno);
    nix::unistd::setsid().map_err(fail)?;
    nix::unistd::fchdir(&stdio.directory).map_err(fail)?;
    // First everything is moved above the range in use, so that no `dup2` overwrites a descriptor
    // that is still needed.
    let report = if order.report == 0 {
        2
    } else {
        order.report as RawFd
    };
    // One number stays free between the two ranges, for the failure pipe.
    let base = report.max(KEPT_FROM) + 2;
    let lift = |fd: RawFd| -> Result<RawFd, (RawFd, Errno)> {
        // SAFETY: duplicates an open descriptor; the copy closes on exec.
        Errno::result(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, base) }).map_err(fail)
    };
    let place = |fd: RawFd, number: RawFd| -> Result<(), (RawFd, Errno)> {
        // SAFETY: `number` is one of the command's own; nothing of this process uses it any more.
        Errno::result(unsafe { libc::dup2(fd, number) })
            .map(drop)
            .map_err(fail)
    };
    let kept = lift(at)?;
    let fail = |errno: Errno| (kept, errno);
    let sources = [
        lift(stdio.stdin.as_raw_fd())?,
        lift(stdio.stdout.as_raw_fd())?,
        lift(stdio.stderr.as_raw_fd())?,
    ];
    let extra = stdio
        .report
        .as_ref()
        .map(|fd| lift(fd.as_raw_fd()))
        .transpose()?;
    for (number, fd) in sources.into_iter().enumerate() {
        place(fd, number as RawFd)?;
    }
    // Then the failure pipe gets the lowest free number, and everything above is closed.
    let last = if let Some(fd) = extra {
        place(fd, report)?;
        report
    } else {
        2
    };
    let failure_at = last + 1;
    // SAFETY: as above, and closed on exec.
    Errno::result(unsafe { libc::dup3(kept, failure_at, libc::O_CLOEXEC) }).map_err(fail)?;
    if extra.is_some() {
        close_between(3, report);
    }
    close_from(failure_at + 1);
    let fail = |errno: Errno| (failure_at, errno);
    if order.terminal {
        // SAFETY: makes the terminal on descriptor 0 the controlling one of this new session.
        Errno::result(unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) }).map_err(fail)?;
    }
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(fail)?;
    if order.no_writing {
        setrlimit(Resource::RLIMIT_FSIZE, 0, 0).map_err(fail)?;
        // The signal would kill a program that could handle the error. SAFETY: no handler runs.
        unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }.map_err(fail)?;
        super::filter::forbid_allocating()
            .map_err(|error| fail(error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)))?;
    }
    // The `/proc` files of a process that is not dumpable belong to root, its own too. All secrets
    // are closed by now.
    set_dumpable(true).map_err(|_| fail(Errno::last()))?;
    // Raising the score needs no privilege. Where `/proc` is read-only or hidden the command keeps
    // the guest's score.
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    // Lowering the priority needs none either; a refusal is ignored.
    // SAFETY: takes plain numbers.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
    // Signal dispositions are the default ones since the spawner's start; handlers do not survive
    // exec, but a blocked signal does.
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).map_err(fail)?;
    Ok(failure_at)
}

#[expect(unsafe_code, reason = "closes descriptors by number")]
fn close_between(first: RawFd, end: RawFd) {
    for fd in first..end {
        // SAFETY: between fork and exec; nothing of this process uses these numbers again.
        unsafe { libc::close(fd) };
    }
}

/// Executes the program; returns only the error.
fn execute(order: &Order) -> Errno {
    let strings = |items: &[Vec<u8>]| {
        items
            .iter()
            .map(|item| CString::new(item.as_slice()))
            .collect::<Result<Vec<_>, _>>()
    };
    let (Ok(argv), Ok(environment)) = (strings(&order.argv), strings(&order.environment)) else {
        return Errno::EINVAL;
    };
    let Some(name) = (if order.program.is_empty() {
        order.argv.first()
    } else {
        Some(&order.program)
    }) else {
        return Errno::EINVAL;
    };
    let mut errno = Errno::ENOENT;
    for candidate in candidates(name, &order.environment) {
        let Ok(path) = CString::new(candidate) else {
            return Errno::EINVAL;
        };
        let Err(error) = nix::unistd::execve(&path, &argv, &environment);
        match error {
            // Like a shell: EACCES is reported unless a later folder has an executable file.
            Errno::EACCES => errno = Errno::EACCES,
            Errno::ENOENT | Errno::ENOTDIR => {}
            other => return other,
        }
    }
    errno
}

/// Returns the files that a program's name may refer to.
fn candidates(name: &[u8], environment: &[Vec<u8>]) -> Vec<Vec<u8>> {
    if name.is_empty() || name.contains(&b'/') {
        return vec![name.to_vec()];
    }
    let path = environment
        .iter()
        .find_map(|variable| variable.strip_prefix(b"PATH="))
        .unwrap_or(b"/usr/bin:/bin");
    path.split(|&byte| byte == b':')
        .map(|folder| {
            let mut file = folder.to_vec();
            if !file.is_empty() {
                file.push(b'/');
            }
            file.extend(name);
            file
        })
        .collect()
}

#[expect(unsafe_code, reason = "the descriptor is known by its number only")]
fn write_all(fd: RawFd, bytes: &[u8]) {
    // SAFETY: writes from a valid slice. A pipe takes these few bytes at once or not at all.
    let _: io::Result<isize> = match unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) }
    {
        -1 => Err(io::Error::last_os_error()),
        n => Ok(n),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, path: &str, expected: &[&str]) {
        let environment = [format!("PATH={path}").into_bytes()];
        let found = candidates(name.as_bytes(), &environment);
        assert_eq!(
            found
                .iter()
                .map(|file| String::from_utf8_lossy(file))
                .collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn programs_are_looked_up_as_a_shell_does() {
        check("ls", "/bin:/usr/bin", &["/bin/ls", "/usr/bin/ls"]);
        check("./ls", "/bin", &["./ls"]);
        check("ls", ":/bin", &["ls", "/bin/ls"]);
    }
}
