//! The seccomp filter of commands: system calls denied in addition to the engine's filter.
//!
//! - `openat2` stays for the guest itself; commands do not need it, and a filter cannot read its
//!   arguments.
//! - Set-id bits are denied because a set-id file in the project would still work on the host. A
//!   filter sees the mode and not the file, so `chmod` cannot set the bit on a folder either, where
//!   it grants nothing. Entries created in a folder with the bit inherit it: the kernel does that by
//!   itself, and takes the bit from no argument of `mkdir`.
//! - Socket families are restricted here as well: the engine's filter does so too, but in a sandbox
//!   that others keep there may be none.
//! - Limits of other processes cannot be set: a small one on the guest would end the sandbox. Nor
//!   can their priorities: with the lowest one the guest could not even exit among busy commands.
//! - Signals cannot be sent in ways that let the sender fake its identity, or that lose it when too
//!   many are queued: PID 1 obeys only those from outside.
//! - Leases on files are denied: every opener waits for the holder, also on the host.
//! - The kernel checks a file against the size limit only when its size changes. So reserving space
//!   beyond a file's end is denied, which would fill the host's disk with files that look empty.
//! - Device files are denied: the kernel lets every user create device 0:0, which to overlay file
//!   systems marks a deleted name.

use std::collections::BTreeMap;
use std::io;

use seccompiler::BpfProgram;
use seccompiler::SeccompAction;
use seccompiler::SeccompCmpArgLen;
use seccompiler::SeccompCmpOp;
use seccompiler::SeccompCondition;
use seccompiler::SeccompFilter;
use seccompiler::SeccompRule;
use seccompiler::TargetArch;

use super::call_filter;
use super::call_filter::AskedCalls;
use super::call_filter::Tracing;

const SET_ID_BITS: [u64; 2] = [0o4000, 0o2000];

const NAMESPACE_FLAGS: [u64; 7] = [
    libc::CLONE_NEWNS as u64,
    libc::CLONE_NEWCGROUP as u64,
    libc::CLONE_NEWUTS as u64,
    libc::CLONE_NEWIPC as u64,
    libc::CLONE_NEWUSER as u64,
    libc::CLONE_NEWPID as u64,
    libc::CLONE_NEWNET as u64,
];

/// Reading other processes (for `ptrace` see [`call_filter`](super::call_filter)), namespaces and
/// mounts, and large kernel interfaces that build tools do not need.
const REFUSED: &[i64] = &[
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_open_by_handle_at,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
];

/// Calls whose arguments are in memory, where a filter cannot read them; ENOSYS makes programs use
/// the older call. Then newer forms of what [`REQUESTS`] refuses, which programs do without on
/// older kernels.
const ABSENT: &[i64] = &[
    libc::SYS_openat2,
    SYS_FCHMODAT2,
    libc::SYS_clone3,
    SYS_FILE_SETATTR,
];

/// Allowed socket families. VSOCK reaches the machine below without any network, and the others are
/// large pieces of kernel that builds do not need; libc needs the part of netlink that lists
/// interfaces and routes.
const FAMILIES: [i32; 4] = [
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
];

/// `ioctl` requests that most file systems do not know either. libc names few of them.
const REQUESTS: [u64; 10] = [
    // The older way to reserve space: `FS_IOC_RESVSP`, its 64-bit variant, and `FS_IOC_ZERO_RANGE`.
    0x4030_5828,
    0x4030_582a,
    0x4030_5839,
    // `FS_IOC_FSSETXATTR`: large allocation units, and the id by which project quotas count.
    0x401c_5820,
    // `FS_IOC_SETFLAGS`, also as 32-bit programs call it: file attributes that outlive the session.
    0x4008_6602,
    0x4004_6602,
    // `BTRFS_IOC_SNAP_CREATE`, `BTRFS_IOC_SUBVOL_CREATE` and the second versions: a snapshot keeps
    // removed files, and not every owner can remove it again.
    0x5000_9401,
    0x5000_940e,
    0x5000_9417,
    0x5000_9418,
];

/// The kernel's first queued (real-time) signal; libc reserves some of them.
const FIRST_QUEUED: u64 = 32;
const IOPRIO_WHO_PROCESS: u64 = 1;
const F_SETLEASE: u64 = 1024;
const F_SETDELEG: u64 = 1040;

/// The same numbers on every architecture; libc does not name them everywhere.
const SYS_FCHMODAT2: i64 = 452;
const SYS_FILE_SETATTR: i64 = 469;

/// Installs the whole filter for commands without a domain on this thread and its descendants, and
/// sets no-new-privileges. It cannot be removed.
pub fn apply() -> io::Result<()> {
    begin()?;
    call_filter::apply(Tracing::Refused, AskedCalls::default()).map(drop)
}

/// Installs everything except what a call's supervisor decides: see
/// [`call_filter`](super::call_filter).
pub(super) fn begin() -> io::Result<()> {
    nix::sys::prctl::set_no_new_privs()?;
    for program in programs().map_err(io::Error::other)? {
        seccompiler::apply_filter(&program).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Denies `fallocate` that fills holes, for a command that must not write. Punching holes and
/// collapsing ranges free space, and stay allowed.
pub(super) fn forbid_allocating() -> io::Result<()> {
    seccompiler::apply_filter(&allocating().map_err(io::Error::other)?).map_err(io::Error::other)
}

fn allocating() -> Result<BpfProgram, seccompiler::BackendError> {
    let freeing = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_COLLAPSE_RANGE) as u64;
    let rules = BTreeMap::from([(
        libc::SYS_fallocate,
        vec![SeccompRule::new(vec![masked(1, freeing, 0)?])?],
    )]);
    SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EFBIG as u32),
        architecture(),
    )?
    .try_into()
}

/// A seccompiler filter has one answer for its matches, so there is one filter per answer; the
/// strictest answer counts.
fn programs() -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let refused = SeccompFilter::new(
        refused()?,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM as u32),
        architecture(),
    )?;
    let absent = ABSENT.iter().map(|&call| (call, Vec::new())).collect();
    let absent = SeccompFilter::new(
        absent,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS as u32),
        architecture(),
    )?;
    // Programs take this for a file system without support, and fall back to writing.
    let unsupported = SeccompFilter::new(
        unsupported()?,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EOPNOTSUPP as u32),
        architecture(),
    )?;
    let mut programs: Vec<BpfProgram> = vec![
        refused.try_into()?,
        absent.try_into()?,
        unsupported.try_into()?,
    ];
    if cfg!(target_arch = "x86_64") {
        programs.push(without_x32());
    }
    Ok(programs)
}

const fn architecture() -> TargetArch {
    #[cfg(target_arch = "x86_64")]
    return TargetArch::x86_64;
    #[cfg(target_arch = "aarch64")]
    return TargetArch::aarch64;
}

/// The x32 calls of x86-64 report the same architecture under other numbers, which would pass every
/// rule above.
fn without_x32() -> BpfProgram {
    const X32_BIT: u32 = 0x4000_0000;
    const LOAD_NUMBER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, k| seccompiler::sock_filter { code, jt, jf: 0, k };
    vec![
        step(LOAD_NUMBER, 0, 0),
        step(JUMP_IF_AT_LEAST, 1, X32_BIT),
        step(RETURN, 0, libc::SECCOMP_RET_ALLOW),
        step(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    ]
}

type SeccompRules = BTreeMap<i64, Vec<SeccompRule>>;

fn refused() -> Result<SeccompRules, seccompiler::BackendError> {
    let mut rules: SeccompRules = REFUSED.iter().map(|&call| (call, Vec::new())).collect();
    // A process's own limits are set with pid 0; calls on others are refused.
    let others = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
    let sets = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    rules.insert(
        libc::SYS_prlimit64,
        vec![SeccompRule::new(vec![others, sets])?],
    );
    for (call, conditions) in [
        (libc::SYS_sched_setscheduler, vec![isnt(0, 0)?]),
        (libc::SYS_sched_setparam, vec![isnt(0, 0)?]),
        (libc::SYS_sched_setattr, vec![isnt(0, 0)?]),
        (libc::SYS_tgkill, vec![is(0, 1)?]),
        (libc::SYS_tkill, vec![is(0, 1)?]),
        (libc::SYS_rt_tgsigqueueinfo, vec![is(0, 1)?]),
        // Any thread's id means its whole process here, so the signal decides: programs queue
        // real-time ones.
        (
            libc::SYS_rt_sigqueueinfo,
            vec![SeccompCondition::new(
                1,
                SeccompCmpArgLen::Dword,
                SeccompCmpOp::Lt,
                FIRST_QUEUED,
            )?],
        ),
        (libc::SYS_fcntl, vec![is(1, F_SETLEASE)?]),
        (libc::SYS_fcntl, vec![is(1, F_SETDELEG)?]),
    ] {
        rules
            .entry(call)
            .or_default()
            .push(SeccompRule::new(conditions)?);
    }
    for (call, of_a_process) in [
        (libc::SYS_setpriority, u64::from(libc::PRIO_PROCESS)),
        (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS),
    ] {
        rules
            .entry(call)
            .or_default()
            .push(SeccompRule::new(vec![isnt(0, of_a_process)?])?);
        rules
            .entry(call)
            .or_default()
            .push(SeccompRule::new(vec![isnt(1, 0)?])?);
    }
    let says_who = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    for condition in [says_who, isnt(3, 0)?] {
        rules
            .entry(libc::SYS_pidfd_send_signal)
            .or_default()
            .push(SeccompRule::new(vec![condition])?);
    }
    let mut add = |call: i64, conditions: &[(u8, u64)]| -> Result<(), seccompiler::BackendError> {
        let conditions = conditions
            .iter()
            .map(|&(argument, bits)| has_bits(argument, bits))
            .collect::<Result<_, _>>()?;
        rules
            .entry(call)
            .or_default()
            .push(SeccompRule::new(conditions)?);
        Ok(())
    };
    for flag in NAMESPACE_FLAGS {
        add(libc::SYS_clone, &[(0, flag)])?;
    }
    for bits in SET_ID_BITS {
        add(libc::SYS_fchmod, &[(1, bits)])?;
        add(libc::SYS_fchmodat, &[(2, bits)])?;
        add(libc::SYS_mknodat, &[(2, bits)])?;
        // Without these flags the mode is not an argument, and its register may contain anything.
        for creates in [
            libc::O_CREAT as u64,
            (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64,
        ] {
            add(libc::SYS_openat, &[(2, creates), (3, bits)])?;
            #[cfg(target_arch = "x86_64")]
            add(libc::SYS_open, &[(1, creates), (2, bits)])?;
        }
        #[cfg(target_arch = "x86_64")]
        for call in [libc::SYS_chmod, libc::SYS_creat, libc::SYS_mknod] {
            add(call, &[(1, bits)])?;
        }
    }
    let odd = FAMILIES
        .into_iter()
        .map(|family| isnt(0, family as u64))
        .collect::<Result<_, _>>()?;
    let netlink = vec![
        is(0, libc::AF_NETLINK as u64)?,
        isnt(2, libc::NETLINK_ROUTE as u64)?,
    ];
    rules.insert(
        libc::SYS_socket,
        vec![SeccompRule::new(odd)?, SeccompRule::new(netlink)?],
    );
    rules.insert(
        libc::SYS_socketpair,
        vec![SeccompRule::new(vec![isnt(0, libc::AF_UNIX as u64)?])?],
    );
    // A rename with a whiteout creates such a device too.
    rules.insert(
        libc::SYS_renameat2,
        vec![SeccompRule::new(vec![has_bits(
            4,
            u64::from(libc::RENAME_WHITEOUT),
        )?])?],
    );
    for kind in [libc::S_IFCHR, libc::S_IFBLK].map(u64::from) {
        let of_kind =
            |argument| SeccompRule::new(vec![masked(argument, u64::from(libc::S_IFMT), kind)?]);
        rules
            .entry(libc::SYS_mknodat)
            .or_default()
            .push(of_kind(2)?);
        #[cfg(target_arch = "x86_64")]
        rules.entry(libc::SYS_mknod).or_default().push(of_kind(1)?);
    }
    Ok(rules)
}

fn unsupported() -> Result<SeccompRules, seccompiler::BackendError> {
    let keep = libc::FALLOC_FL_KEEP_SIZE as u64;
    let punch = libc::FALLOC_FL_PUNCH_HOLE as u64;
    let of_fallocate = [
        masked(1, keep | punch, keep)?,
        has_bits(1, libc::FALLOC_FL_UNSHARE_RANGE as u64)?,
    ];
    let of_ioctl = REQUESTS.map(|request| {
        SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request)
    });
    let each = |condition| SeccompRule::new(vec![condition]);
    Ok(BTreeMap::from([
        (
            libc::SYS_fallocate,
            of_fallocate
                .into_iter()
                .map(each)
                .collect::<Result<_, _>>()?,
        ),
        (
            libc::SYS_ioctl,
            of_ioctl
                .into_iter()
                .map(|condition| each(condition?))
                .collect::<Result<_, _>>()?,
        ),
    ]))
}

fn is(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn isnt(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn has_bits(argument: u8, bits: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    masked(argument, bits, bits)
}

fn masked(
    argument: u8,
    mask: u64,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(
        argument,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(mask),
        value,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_compiles_and_stays_short() {
        let programs = programs().expect("compiles");
        let n_steps =
            programs.iter().map(Vec::len).sum::<usize>() + allocating().expect("compiles").len();
        assert!(n_steps < 800, "{n_steps}");
    }
}
