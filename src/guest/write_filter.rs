//! Which system calls of a command its supervisor is asked about where the command is held at its
//! first write.
//!
//! An open tells by its flags whether it may write: they are an argument, which a filter can see.
//! So a command that only reads is never asked about.

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

/// Opens, and which of their arguments the flags are.
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

/// Calls that change something by a path, or what a descriptor for reading leads to. Renames come
/// besides.
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

/// `setxattrat` and `removexattrat`, since Linux 6.13. Programs use the others where these are not
/// there.
const NEWER: [i64; 2] = [463, 466];

/// Returns all calls that change something, but for opens.
pub(super) fn changes() -> impl Iterator<Item = i64> {
    [CHANGES, OLDER, RENAMES].into_iter().flatten().copied()
}

/// Returns the steps that ask about all that may write. They begin and end with the number of the
/// call at hand.
pub(super) fn steps() -> Vec<sock_filter> {
    let mut steps: Vec<sock_filter> = NEWER
        .iter()
        .flat_map(|&call| answer_to(call, ENOSYS))
        .collect();
    for &(call, flags) in OPENS {
        steps.extend([
            step(IS, call as u32, 0, 5),
            step(LOAD, argument(flags), 0, 0),
            // An open that only holds a place writes nothing, whatever else it says.
            step(HAS, libc::O_PATH as u32, 2, 0),
            step(HAS, WRITES, 0, 1),
            step(ANSWER, ASK, 0, 0),
            step(ANSWER, ALLOW, 0, 0),
        ]);
    }
    steps.extend(changes().flat_map(|call| answer_to(call, ASK)));
    steps
}
