//! Attacks by capabilities, namespaces, mounts and system calls, and on the guest itself.

use std::fs;

use nix::mount::MntFlags;
use nix::mount::MsFlags;
use nix::mount::mount;
use nix::mount::umount2;
use nix::sched::CloneFlags;
use nix::sched::setns;
use nix::sched::unshare;
use nix::unistd::getppid;
use nix::unistd::pivot_root;

use super::Finding;
use super::system_call::call;
use super::system_call::is_refused;

const NOTHING: Option<&str> = None;
const MINUS_ONE: i64 = -1;

/// ESC-01: a command's user and capabilities.
pub(super) fn rights(_: &[String]) -> Finding {
    let status = match fs::read_to_string("/proc/self/status") {
        Ok(status) => status,
        Err(error) => return Finding::failed(format!("/proc/self/status cannot be read: {error}")),
    };
    let field = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_default()
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let mut wrong = Vec::new();
    if field("Uid") == "0" {
        wrong.push("uid 0".to_owned());
    }
    for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        let mask = field(name);
        if mask.is_empty() || mask.bytes().any(|byte| byte != b'0') {
            wrong.push(format!("{name} {mask}"));
        }
    }
    for (name, expected) in [("NoNewPrivs", "1"), ("Seccomp", "2")] {
        if field(name) != expected {
            wrong.push(format!("{name} {}", field(name)));
        }
    }
    Finding::of(
        &wrong,
        format!(
            "uid {}, no capability, no new privileges, filtered",
            field("Uid")
        ),
    )
}

/// ESC-02: other namespaces, new ones and those of PID 1.
pub(super) fn namespaces(_: &[String]) -> Finding {
    let mut worked = Vec::new();
    let mut n_refused = 0;
    // A user namespace first: inside of one, the others are allowed.
    for (name, flag) in [
        ("user", CloneFlags::CLONE_NEWUSER),
        ("mount", CloneFlags::CLONE_NEWNS),
        ("net", CloneFlags::CLONE_NEWNET),
        ("pid", CloneFlags::CLONE_NEWPID),
        ("ipc", CloneFlags::CLONE_NEWIPC),
        ("uts", CloneFlags::CLONE_NEWUTS),
    ] {
        match unshare(flag) {
            Ok(()) => worked.push(format!("a new {name} namespace")),
            Err(_) => n_refused += 1,
        }
    }
    for name in ["mnt", "net", "pid", "uts", "ipc"] {
        let entered = fs::File::open(format!("/proc/1/ns/{name}"))
            .is_ok_and(|file| setns(file, CloneFlags::empty()).is_ok());
        if entered {
            worked.push(format!("entering the {name} namespace of PID 1"));
        } else {
            n_refused += 1;
        }
    }
    Finding::of(&worked, format!("{n_refused} refused"))
}

/// ESC-03: mounting and unmounting.
pub(super) fn mounts(_: &[String]) -> Finding {
    let mut worked = Vec::new();
    let mut mounted = |what: &str, result: nix::Result<()>| {
        if result.is_ok() {
            worked.push(what.to_owned());
            let _ = umount2("/tmp", MntFlags::MNT_DETACH);
        }
    };
    mounted(
        "a tmpfs",
        mount(
            Some("none"),
            "/tmp",
            Some("tmpfs"),
            MsFlags::empty(),
            NOTHING,
        ),
    );
    mounted(
        "a bind mount",
        mount(Some("/"), "/tmp", NOTHING, MsFlags::MS_BIND, NOTHING),
    );
    mounted(
        "proc",
        mount(
            Some("proc"),
            "/tmp",
            Some("proc"),
            MsFlags::empty(),
            NOTHING,
        ),
    );
    let writable = MsFlags::MS_REMOUNT | MsFlags::MS_BIND;
    let remounted = mount(NOTHING, "/", NOTHING, writable, NOTHING).is_ok();
    if remounted {
        worked.push("the root made writable".to_owned());
    }
    if !is_refused(call(libc::SYS_umount2, [0; 6])) {
        worked.push("unmounting".to_owned());
    }
    if !matches!(
        pivot_root("/nonexistent", "/nonexistent"),
        Err(nix::errno::Errno::EPERM | nix::errno::Errno::ENOSYS)
    ) {
        worked.push("another root".to_owned());
    }
    Finding::of(&worked, "6 refused")
}

/// ESC-09: large or dangerous kernel interfaces, with arguments that make the kernel fail where the
/// filter lets the call through.
const REFUSED: &[(&str, i64, [i64; 6])] = &[
    (
        "process_vm_readv",
        libc::SYS_process_vm_readv,
        [1, 0, 0, 0, 0, 0],
    ),
    (
        "process_vm_writev",
        libc::SYS_process_vm_writev,
        [1, 0, 0, 0, 0, 0],
    ),
    (
        "pidfd_getfd",
        libc::SYS_pidfd_getfd,
        [MINUS_ONE, 0, 0, 0, 0, 0],
    ),
    (
        "io_uring_setup",
        libc::SYS_io_uring_setup,
        [1, 0, 0, 0, 0, 0],
    ),
    (
        "io_uring_register",
        libc::SYS_io_uring_register,
        [MINUS_ONE, 0, 0, 0, 0, 0],
    ),
    ("userfaultfd", libc::SYS_userfaultfd, [1, 0, 0, 0, 0, 0]),
    ("bpf", libc::SYS_bpf, [0; 6]),
    (
        "perf_event_open",
        libc::SYS_perf_event_open,
        [0, 0, 0, MINUS_ONE, 0, 0],
    ),
    ("keyctl", libc::SYS_keyctl, [0, -3, 0, 0, 0, 0]),
    ("add_key", libc::SYS_add_key, [0, 0, 0, 0, -3, 0]),
    ("request_key", libc::SYS_request_key, [0; 6]),
    (
        "open_by_handle_at",
        libc::SYS_open_by_handle_at,
        [MINUS_ONE, 0, 0, 0, 0, 0],
    ),
    ("fsopen", libc::SYS_fsopen, [0; 6]),
    ("open_tree", libc::SYS_open_tree, [MINUS_ONE, 0, 0, 0, 0, 0]),
    (
        "move_mount",
        libc::SYS_move_mount,
        [MINUS_ONE, 0, MINUS_ONE, 0, 0, 0],
    ),
    (
        "mount_setattr",
        libc::SYS_mount_setattr,
        [MINUS_ONE, 0, 0, 0, 0, 0],
    ),
    ("setns", libc::SYS_setns, [MINUS_ONE, 0, 0, 0, 0, 0]),
    ("chroot", libc::SYS_chroot, [0; 6]),
    (
        "kexec_load",
        libc::SYS_kexec_load,
        [MINUS_ONE, MINUS_ONE, 0, MINUS_ONE, 0, 0],
    ),
    ("init_module", libc::SYS_init_module, [0; 6]),
    (
        "finit_module",
        libc::SYS_finit_module,
        [MINUS_ONE, 0, 0, 0, 0, 0],
    ),
    ("quotactl", libc::SYS_quotactl, [MINUS_ONE, 0, 0, 0, 0, 0]),
    ("syslog", libc::SYS_syslog, [3, 0, MINUS_ONE, 0, 0, 0]),
    (
        "personality without random addresses",
        libc::SYS_personality,
        [0x0004_0000, 0, 0, 0, 0, 0],
    ),
    (
        "socket VSOCK",
        libc::SYS_socket,
        [libc::AF_VSOCK as i64, libc::SOCK_STREAM as i64, 0, 0, 0, 0],
    ),
    (
        "socket ALG",
        libc::SYS_socket,
        [libc::AF_ALG as i64, libc::SOCK_SEQPACKET as i64, 0, 0, 0, 0],
    ),
    (
        "socket PACKET",
        libc::SYS_socket,
        [libc::AF_PACKET as i64, libc::SOCK_RAW as i64, 0, 0, 0, 0],
    ),
    (
        "netlink AUDIT",
        libc::SYS_socket,
        [libc::AF_NETLINK as i64, libc::SOCK_RAW as i64, 9, 0, 0, 0],
    ),
    ("openat2", libc::SYS_openat2, [MINUS_ONE, 0, 0, 0, 0, 0]),
    (
        "landlock_add_rule",
        libc::SYS_landlock_add_rule,
        [MINUS_ONE, 0, 0, 0, 0, 0],
    ),
];

pub(super) fn system_calls(_: &[String]) -> Finding {
    let passed = |(name, number, arguments): &(&str, i64, [i64; 6])| {
        (!is_refused(call(*number, *arguments))).then(|| (*name).to_owned())
    };
    let let_through: Vec<String> = REFUSED.iter().filter_map(passed).collect();
    Finding::of(&let_through, format!("{} refused", REFUSED.len()))
}

/// ESC-10: reading other processes' memory.
pub(super) fn tracing(_: &[String]) -> Finding {
    let mut worked = Vec::new();
    let mut pids = vec![1];
    pids.extend(Some(getppid().as_raw()).filter(|&pid| pid > 1));
    for pid in &pids {
        if call(
            libc::SYS_ptrace,
            [libc::PTRACE_SEIZE.into(), i64::from(*pid), 0, 0, 0, 0],
        )
        .is_ok()
        {
            worked.push(format!("tracing process {pid}"));
            let _ = call(
                libc::SYS_ptrace,
                [libc::PTRACE_DETACH.into(), i64::from(*pid), 0, 0, 0, 0],
            );
        }
        for (mode, write) in [("reading", false), ("writing", true)] {
            if fs::OpenOptions::new()
                .read(!write)
                .write(write)
                .open(format!("/proc/{pid}/mem"))
                .is_ok()
            {
                worked.push(format!("{mode} the memory of process {pid}"));
            }
        }
    }
    Finding::of(&worked, format!("{} refused", pids.len() * 3))
}

/// F-12: the guest's open files and environment.
pub(super) fn guest_secrets(_: &[String]) -> Finding {
    let mut worked = Vec::new();
    if fs::read("/proc/1/environ").is_ok() {
        worked.push("its environment was read".to_owned());
    }
    if fs::read_dir("/proc/1/fd").is_ok() {
        worked.push("its descriptors were listed".to_owned());
    }
    for descriptor in ["0", "1"] {
        if fs::OpenOptions::new()
            .read(descriptor == "0")
            .write(descriptor == "1")
            .open(format!("/proc/1/fd/{descriptor}"))
            .is_ok()
        {
            worked.push(format!("its descriptor {descriptor} was opened"));
        }
    }
    Finding::of(&worked, "4 refused")
}
