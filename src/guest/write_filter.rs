//! The system calls that the supervisor is asked about where a command is held at its first write.
//!
//! The flags of an open tell whether it may write, and a filter can see them. So a command that
//! only reads is never asked about.

use libc::sock_filter;

use super::call_filter::ALLOW;
use super::call_filter::ANSWER;
use super::call_filter::ASK;
use super::call_filter::ENOSYS;
use super::call_filter::HAS;
use super::call_filter::IS;
use super::call_filter::LOAD;
use super::call_filter::RENAMES;
use super::call_filter::answer_to;
use super::call_filter::argument;
use super::call_filter::step;

/// Opens, and the index of the flags argument.
#[cfg(target_arch = "x86_64")]
const OPENS: &[(i64, u32)] = &[(libc::SYS_openat, 2), (libc::SYS_open, 1)];
#[cfg(not(target_arch = "x86_64"))]
const OPENS: &[(i64, u32)] = &[(libc::SYS_openat, 2)];

/// Flags of an open that may change something.
const WRITES: u32 = (libc::O_WRONLY
    | libc::O_RDWR
    | libc::O_CREAT
    | libc::O_TRUNC
    | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;

/// Calls that change something by a path, or through a descriptor opened for reading. Renames are
/// separate.
const CHANGES: &[i64] = &[
    libc::SYS_truncate,
    libc::SYS_unlinkat,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

/// The older forms, which only x86-64 has.
#[cfg(target_arch = "x86_64")]
const OLDER: &[i64] = &[
    libc::SYS_creat,
    libc::SYS_unlink,
    libc::SYS_rmdir,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_mkdir,
    libc::SYS_mknod,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[i64] = &[];

/// `setxattrat` and `removexattrat`, since Linux 6.13. Programs fall back to the others.
const NEWER: [i64; 2] = [463, 466];

/// Returns all calls that change something, except opens.
pub(super) fn changes() -> impl Iterator<Item = i64> {
    [CHANGES, OLDER, RENAMES].into_iter().flatten().copied()
}

/// Returns the instructions that ask about all calls that may write. They begin and end with the
/// call's number loaded.
pub(super) fn steps() -> Vec<sock_filter> {
    let mut steps: Vec<sock_filter> = NEWER
        .iter()
        .flat_map(|&call| answer_to(call, ENOSYS))
        .collect();
    for &(call, flags) in OPENS {
        steps.extend([
            step(IS, call as u32, 0, 5),
            step(LOAD, argument(flags), 0, 0),
            // An open with O_PATH writes nothing, whatever its other flags.
            step(HAS, libc::O_PATH as u32, 2, 0),
            step(HAS, WRITES, 0, 1),
            step(ANSWER, ASK, 0, 0),
            step(ANSWER, ALLOW, 0, 0),
        ]);
    }
    steps.extend(changes().flat_map(|call| answer_to(call, ASK)));
    steps
}
