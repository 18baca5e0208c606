//! The last seccomp filter on a call, which its supervisor installs once the call has its domain:
//! see [`domain`](super::domain).
//!
//! It denies landlock: a rule of a command's own would hold unlinked files where nothing finds
//! them. And it decides on `ptrace`, which is allowed in a domain only, because without one a
//! command could trace all others.
//!
//! One option of `ptrace` can keep processes from ending, so the supervisor is asked about it: see
//! [`exit_stop`](super::exit_stop). It is also asked about each program that begins, and about
//! writes: see [`gate`](super::gate). One filter asks about all of it, since a process can have
//! only one listener.
//!
//! `kill` of all processes at once is refused here, and not for the supervisor, which uses it.

use std::io;
use std::os::fd::OwnedFd;

use libc::sock_filter;

use super::exit_stop::TRACE_EXIT;
use super::unix::own;
use super::write_filter;

/// What a call may do with `ptrace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tracing {
    Refused,
    /// The kernel lets it trace processes of its own domain.
    Own,
}

/// Further system calls that the supervisor is asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AskedCalls {
    /// Each program after its exec, before it runs.
    pub(super) begun: bool,
    /// Each exec.
    pub(super) execs: bool,
    /// Each rename: in an overlay the kernel refuses to rename some folders.
    pub(super) renames: bool,
    /// Each call that may write: see [`write_filter`](super::write_filter).
    pub(super) writes: bool,
}

/// Offset of the call's number in what a filter sees: the number, then the architecture, the
/// instruction pointer and six arguments of eight bytes.
const NUMBER: u32 = 0;

/// Returns the offset of the lower half of an argument, which contains all relevant bits. A
/// `ptrace` request with other bits set is unknown to the kernel.
pub(super) const fn argument(index: u32) -> u32 {
    16 + index * 8
}

const LANDLOCK: [i64; 3] = [
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
];

/// The pid argument of `kill` for all processes that the caller may signal, as 32 bits.
const EVERY_PROCESS: u32 = u32::MAX;

const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
pub(super) const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
pub(super) const ASK: u32 = libc::SECCOMP_RET_USER_NOTIF;
pub(super) const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

/// The call that sets up the first thread's memory before a program runs, once.
#[cfg(target_arch = "x86_64")]
pub(super) const CHECKPOINT: (i64, Option<u32>) = (libc::SYS_arch_prctl, Some(0x1002));
#[cfg(not(target_arch = "x86_64"))]
pub(super) const CHECKPOINT: (i64, Option<u32>) = (libc::SYS_set_tid_address, None);

#[cfg(target_arch = "x86_64")]
pub(super) const RENAMES: &[i64] = &[libc::SYS_rename, libc::SYS_renameat, libc::SYS_renameat2];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const RENAMES: &[i64] = &[libc::SYS_renameat, libc::SYS_renameat2];

/// `SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV`, since Linux 5.19: a question that was received is not
/// repeated for each signal.
const WAIT_KILLABLE: libc::c_ulong = 1 << 5;

/// Installs the filter on this process and its descendants. Returns the listener, where the filter
/// asks.
pub(super) fn apply(tracing: Tracing, watched: AskedCalls) -> io::Result<Option<OwnedFd>> {
    nix::sys::prctl::set_no_new_privs()?;
    if tracing == Tracing::Own || watched != AskedCalls::default() {
        match listen(&program(tracing, Some(watched))) {
            Ok(listener) => return Ok(Some(listener)),
            // A listener outside exists already, and the kernel allows only one; or it supports
            // none.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EINVAL)) => {}
            Err(error) => return Err(error),
        }
    }
    install(&program(tracing, None), 0)?;
    Ok(None)
}

/// Installs a filter that asks about `getppid` of this thread, to test whether the kernel asks at
/// all.
pub(super) fn ask_about_parents() -> io::Result<OwnedFd> {
    nix::sys::prctl::set_no_new_privs()?;
    let mut steps = vec![step(LOAD, NUMBER, 0, 0)];
    steps.extend(answer_to(libc::SYS_getppid, ASK));
    steps.push(step(ANSWER, ALLOW, 0, 0));
    listen(&steps)
}

fn listen(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let listener = match install(
        program,
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT_KILLABLE,
    ) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            install(program, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER)?
        }
        listener => listener?,
    };
    Ok(own(listener))
}

pub(super) const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
pub(super) const IS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
pub(super) const HAS: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
pub(super) const ANSWER: u32 = libc::BPF_RET | libc::BPF_K;

/// `jt` and `jf` say how many instructions are skipped where the test is true, and where it is
/// false.
pub(super) fn step(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

/// Returns the instructions that give one answer to a call.
pub(super) fn answer_to(call: i64, answer: u32) -> [sock_filter; 2] {
    [step(IS, call as u32, 0, 1), step(ANSWER, answer, 0, 0)]
}

/// Returns the filter; without `asked` it has no listener.
fn program(tracing: Tracing, asked: Option<AskedCalls>) -> Vec<sock_filter> {
    let (ptrace, trace_exit) = match (tracing, asked) {
        (Tracing::Refused, _) => (EPERM, EPERM),
        (Tracing::Own, Some(_)) => (ALLOW, ASK),
        (Tracing::Own, None) => (ALLOW, EPERM),
    };
    let mut steps = vec![step(LOAD, NUMBER, 0, 0)];
    steps.extend(LANDLOCK.iter().flat_map(|&call| answer_to(call, ENOSYS)));
    steps.extend([
        step(IS, libc::SYS_ptrace as u32, 0, 7),
        step(LOAD, argument(0), 0, 0),
        step(IS, libc::PTRACE_SEIZE, 1, 0),
        step(IS, libc::PTRACE_SETOPTIONS, 0, 2),
        step(LOAD, argument(3), 0, 0),
        step(HAS, TRACE_EXIT, 1, 0),
        step(ANSWER, ptrace, 0, 0),
        step(ANSWER, trace_exit, 0, 0),
        step(IS, libc::SYS_kill as u32, 0, 4),
        step(LOAD, argument(0), 0, 0),
        step(IS, EVERY_PROCESS, 0, 1),
        step(ANSWER, EPERM, 0, 0),
        step(ANSWER, ALLOW, 0, 0),
    ]);
    if asked.is_some_and(|asked| asked.execs) {
        steps.extend(
            [libc::SYS_execve, libc::SYS_execveat]
                .iter()
                .flat_map(|&call| answer_to(call, ASK)),
        );
    }
    if asked.is_some_and(|asked| asked.writes) {
        steps.extend(write_filter::steps());
    } else if asked.is_some_and(|asked| asked.renames) {
        steps.extend(RENAMES.iter().flat_map(|&call| answer_to(call, ASK)));
    }
    if asked.is_some_and(|asked| asked.begun) {
        match CHECKPOINT {
            (call, None) => steps.extend(answer_to(call, ASK)),
            (call, Some(code)) => steps.extend([
                step(IS, call as u32, 0, 4),
                step(LOAD, argument(0), 0, 0),
                step(IS, code, 0, 1),
                step(ANSWER, ASK, 0, 0),
                step(ANSWER, ALLOW, 0, 0),
            ]),
        }
    }
    steps.push(step(ANSWER, ALLOW, 0, 0));
    steps
}

/// Returns the kernel's result, which is a descriptor where a listener is requested.
#[expect(
    unsafe_code,
    reason = "neither libc nor seccompiler has this call with a listener"
)]
fn install(program: &[sock_filter], flags: libc::c_ulong) -> io::Result<libc::c_int> {
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel reads `filter` and its instructions, which outlive the call, and writes
    // nothing.
    let done = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const filter,
        )
    };
    Ok(nix::errno::Errno::result(done)? as libc::c_int)
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;

    /// Asks for options of a process that does not exist.
    fn trace(options: u32) -> Errno {
        called(
            libc::SYS_ptrace,
            [libc::PTRACE_SETOPTIONS.into(), -1, 0, options.into()],
        )
    }

    #[expect(unsafe_code, reason = "raw calls, to see which answer they get")]
    fn called(number: i64, [first, second, third, fourth]: [i64; 4]) -> Errno {
        // SAFETY: numbers alone; the kernel rejects them where it lets the call through.
        Errno::result(unsafe { libc::syscall(number, first, second, third, fourth) })
            .expect_err("nothing is there")
    }

    /// A filter stays with its thread: each test runs in a thread that ends with it.
    fn alone(act: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(act).join().expect("no panic"));
    }

    #[test]
    fn without_a_domain_ptrace_and_landlock_are_refused() {
        alone(|| {
            assert!(
                apply(Tracing::Refused, AskedCalls::default())
                    .expect("applied")
                    .is_none()
            );
            assert_eq!((trace(0), trace(TRACE_EXIT)), (Errno::EPERM, Errno::EPERM));
            for call in LANDLOCK {
                assert_eq!(called(call, [-1; 4]), Errno::ENOSYS);
            }
        });
    }

    #[test]
    fn kill_of_all_processes_is_refused_and_of_one_is_not() {
        alone(|| {
            apply(Tracing::Refused, AskedCalls::default()).expect("applied");
            // Signal 0 only checks for permission.
            let signalled = |process: i64| called(libc::SYS_kill, [process, 0, 0, 0]);
            assert_eq!(
                (
                    signalled(-1),
                    signalled(0xffff_ffff),
                    signalled(i64::from(i32::MAX))
                ),
                (Errno::EPERM, Errno::EPERM, Errno::ESRCH)
            );
            nix::sys::signal::kill(nix::unistd::getpid(), None).expect("this one");
        });
    }

    /// Returns the answer of a filter, executing its instructions like the kernel.
    fn answered(steps: &[sock_filter], call: i64, arguments: [u64; 6]) -> u32 {
        let (mut at, mut accumulator) = (0, 0_u32);
        loop {
            let sock_filter { code, jt, jf, k } = steps[at];
            at += 1;
            match u32::from(code) {
                LOAD if k == NUMBER => accumulator = call as u32,
                LOAD => accumulator = arguments[(k as usize - 16) / 8] as u32,
                IS => at += usize::from(if accumulator == k { jt } else { jf }),
                HAS => at += usize::from(if accumulator & k != 0 { jt } else { jf }),
                ANSWER => return k,
                other => panic!("no step of ours: {other}"),
            }
        }
    }

    #[test]
    fn calls_that_may_write_are_asked_about_and_reads_never() {
        let watched = AskedCalls {
            begun: true,
            execs: true,
            renames: true,
            writes: true,
        };
        let (asks, silent) = (
            program(Tracing::Own, Some(watched)),
            program(
                Tracing::Own,
                Some(AskedCalls {
                    writes: false,
                    ..watched
                }),
            ),
        );
        let open = |flags: i32| [libc::AT_FDCWD as u64, 1, flags as u64, 0, 0, 0];
        for writes in [
            libc::O_WRONLY,
            libc::O_RDWR,
            libc::O_CREAT,
            libc::O_TRUNC,
            libc::O_TMPFILE | libc::O_RDWR,
        ] {
            assert_eq!(
                answered(&asks, libc::SYS_openat, open(writes)),
                ASK,
                "{writes:o}"
            );
            assert_eq!(answered(&silent, libc::SYS_openat, open(writes)), ALLOW);
        }
        for reads in [
            0,
            libc::O_CLOEXEC | libc::O_DIRECTORY | libc::O_NOFOLLOW,
            libc::O_PATH | libc::O_RDWR,
        ] {
            assert_eq!(
                answered(&asks, libc::SYS_openat, open(reads)),
                ALLOW,
                "{reads:o}"
            );
        }
        for call in write_filter::changes() {
            assert_eq!(answered(&asks, call, [0; 6]), ASK, "{call}");
            assert_eq!(
                answered(&silent, call, [0; 6]),
                if RENAMES.contains(&call) { ASK } else { ALLOW },
                "{call}"
            );
        }
        for (call, answer) in [
            (libc::SYS_read, ALLOW),
            (463, ENOSYS),
            (libc::SYS_execve, ASK),
            (LANDLOCK[0], ENOSYS),
            (libc::SYS_kill, ALLOW),
        ] {
            assert_eq!(answered(&asks, call, [0; 6]), answer, "{call}");
        }
        assert!(asks.len() < 160, "{}", asks.len());
    }

    #[test]
    fn with_a_listener_outside_only_the_exit_stop_option_is_refused() {
        alone(|| {
            let listener = apply(Tracing::Own, AskedCalls::default()).expect("applied");
            assert!(listener.is_some(), "no other listener exists");
            assert_eq!(
                (trace(0), called(LANDLOCK[0], [-1; 4])),
                (Errno::ESRCH, Errno::ENOSYS)
            );
            assert!(
                apply(Tracing::Own, AskedCalls::default())
                    .expect("applied")
                    .is_none()
            );
            assert_eq!(
                (trace(0), trace(TRACE_EXIT), trace(TRACE_EXIT | 1)),
                (Errno::ESRCH, Errno::EPERM, Errno::EPERM)
            );
        });
    }
}
