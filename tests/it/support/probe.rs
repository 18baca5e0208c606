//! What the kernel says to system calls, each made in a process of its own.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

/// Makes each call in a process of its own and prints what the kernel said.
pub(crate) const PROBE: &str = r#"
import ctypes, errno, json, mmap, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
said = {}
def alone(name, act):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, act().encode())
        os._exit(0)
    os.close(writer)
    status = os.waitpid(pid, 0)[1]
    text = os.read(reader, 100).decode()
    said[name] = text or f"signal {os.WTERMSIG(status)}"
    os.close(reader)
def call(*numbers):
    ctypes.set_errno(0)
    caller = os.getpid()
    result = libc.syscall(*map(ctypes.c_long, numbers))
    if os.getpid() != caller:
        os._exit(0)
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]
for name, *numbers in json.loads(sys.argv[1]):
    # 0x51d stands for the process itself.
    alone(name, lambda: call(*[os.getpid() if number == 0x51d else number for number in numbers]))
def execute(code):
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    result = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()
    return "done" if result >= 0 else errno.errorcode[-result]
if platform.machine() == "x86_64":
    # getpid by the 32-bit entry, and by the number that x32 has for it.
    alone("32-bit", lambda: execute(b"\xb8\x14\0\0\0\xcd\x80\xc3"))
    alone("x32", lambda: execute(b"\xb8\x27\0\0\x40\x0f\x05\xc3"))
print(json.dumps(said))
"#;

pub(crate) const OWN: i64 = 0x51d;
pub(crate) const MINUS_ONE: i64 = -1;

/// What nobody in a sandbox may do; the arguments are such that a plain kernel does it, or finds fault
/// with an argument, where it lets everybody.
pub(crate) fn refused() -> Vec<(&'static str, Vec<i64>)> {
    let user = i64::from(libc::CLONE_NEWUSER);
    let socket = |family: i32, kind: i32, protocol: i64| {
        vec![
            libc::SYS_socket,
            i64::from(family),
            i64::from(kind),
            protocol,
        ]
    };
    let raw = libc::SOCK_RAW;
    let stream = libc::SOCK_STREAM;
    vec![
        (
            "process_vm_readv",
            vec![libc::SYS_process_vm_readv, OWN, 0, 0, 0, 0, 0],
        ),
        (
            "process_vm_writev",
            vec![libc::SYS_process_vm_writev, OWN, 0, 0, 0, 0, 0],
        ),
        (
            "process_madvise",
            vec![libc::SYS_process_madvise, MINUS_ONE, 0, 0, 0, 0],
        ),
        ("pidfd_getfd", vec![libc::SYS_pidfd_getfd, MINUS_ONE, 0, 0]),
        ("kcmp", vec![libc::SYS_kcmp, OWN, OWN, 0, 0, 0]),
        ("io_uring_setup", vec![libc::SYS_io_uring_setup, 1, 0]),
        (
            "io_uring_enter",
            vec![libc::SYS_io_uring_enter, MINUS_ONE, 0, 0, 0, 0],
        ),
        (
            "io_uring_register",
            vec![libc::SYS_io_uring_register, MINUS_ONE, 0, 0, 0],
        ),
        ("userfaultfd", vec![libc::SYS_userfaultfd, 1]),
        ("bpf", vec![libc::SYS_bpf, 0, 0, 0]),
        (
            "perf_event_open",
            vec![libc::SYS_perf_event_open, 0, 0, 0, MINUS_ONE, 0],
        ),
        ("keyctl", vec![libc::SYS_keyctl, 0, -3, 0]),
        ("add_key", vec![libc::SYS_add_key, 0, 0, 0, 0, -3]),
        ("request_key", vec![libc::SYS_request_key, 0, 0, 0, 0]),
        ("memfd_secret", vec![libc::SYS_memfd_secret, 0]),
        (
            "remap_file_pages",
            vec![libc::SYS_remap_file_pages, 0, 0, 0, 0, 0],
        ),
        ("fanotify_init", vec![libc::SYS_fanotify_init, 0x200, 0]),
        ("kexec_load", vec![libc::SYS_kexec_load, 0, 0, 0, 0]),
        ("init_module", vec![libc::SYS_init_module, 0, 0, 0]),
        (
            "finit_module",
            vec![libc::SYS_finit_module, MINUS_ONE, 0, 0],
        ),
        ("mount", vec![libc::SYS_mount, 0, 0, 0, 0, 0]),
        ("umount2", vec![libc::SYS_umount2, 0, 0]),
        ("fsopen", vec![libc::SYS_fsopen, 0, 0]),
        ("open_tree", vec![libc::SYS_open_tree, MINUS_ONE, 0, 0]),
        (
            "move_mount",
            vec![libc::SYS_move_mount, MINUS_ONE, 0, MINUS_ONE, 0, 0],
        ),
        (
            "mount_setattr",
            vec![libc::SYS_mount_setattr, MINUS_ONE, 0, 0, 0, 0],
        ),
        ("pivot_root", vec![libc::SYS_pivot_root, 0, 0]),
        ("chroot", vec![libc::SYS_chroot, 0]),
        ("setns", vec![libc::SYS_setns, MINUS_ONE, 0]),
        ("unshare", vec![libc::SYS_unshare, user]),
        (
            "clone",
            vec![libc::SYS_clone, user | i64::from(libc::SIGCHLD), 0, 0, 0, 0],
        ),
        (
            "open_by_handle_at",
            vec![libc::SYS_open_by_handle_at, MINUS_ONE, 0, 0],
        ),
        ("syslog", vec![libc::SYS_syslog, 3, 0, 0]),
        ("quotactl", vec![libc::SYS_quotactl, MINUS_ONE, 0, 0, 0]),
        ("reboot", vec![libc::SYS_reboot, 0, 0, 0, 0]),
        ("swapon", vec![libc::SYS_swapon, 0, 0]),
        ("swapoff", vec![libc::SYS_swapoff, 0]),
        ("acct", vec![libc::SYS_acct, MINUS_ONE]),
        ("sethostname", vec![libc::SYS_sethostname, 0, MINUS_ONE]),
        ("setdomainname", vec![libc::SYS_setdomainname, 0, MINUS_ONE]),
        ("settimeofday", vec![libc::SYS_settimeofday, 0, 0]),
        ("clock_settime", vec![libc::SYS_clock_settime, MINUS_ONE, 0]),
        ("delete_module", vec![libc::SYS_delete_module, 0, 0]),
        (
            "kexec_file_load",
            vec![libc::SYS_kexec_file_load, MINUS_ONE, MINUS_ONE, 0, 0, 0],
        ),
        ("fsconfig", vec![libc::SYS_fsconfig, MINUS_ONE, 0, 0, 0, 0]),
        ("fsmount", vec![libc::SYS_fsmount, MINUS_ONE, 0, 0]),
        ("fspick", vec![libc::SYS_fspick, MINUS_ONE, 0, 0]),
        (
            "fanotify_mark",
            vec![libc::SYS_fanotify_mark, MINUS_ONE, 0, 0, MINUS_ONE, 0],
        ),
        (
            "process_mrelease",
            vec![libc::SYS_process_mrelease, MINUS_ONE, 0],
        ),
        ("vhangup", vec![libc::SYS_vhangup]),
        ("move_pages", vec![libc::SYS_move_pages, OWN, 0, 0, 0, 0, 0]),
        ("migrate_pages", vec![libc::SYS_migrate_pages, OWN, 0, 0, 0]),
        (
            "set_mempolicy",
            vec![libc::SYS_set_mempolicy, MINUS_ONE, 0, 0],
        ),
        (
            "get_mempolicy",
            vec![libc::SYS_get_mempolicy, 0, 0, 0, 0, MINUS_ONE],
        ),
        ("mbind", vec![libc::SYS_mbind, 0, 0, 0, 0, 0, 0]),
        (
            "personality without random addresses",
            vec![libc::SYS_personality, 0x0004_0000],
        ),
        (
            "personality that makes all executable",
            vec![libc::SYS_personality, 0x0040_0000],
        ),
        (
            "personality with a high bit",
            vec![libc::SYS_personality, 1 << 32],
        ),
        ("socket VSOCK", socket(libc::AF_VSOCK, stream, 0)),
        ("socket ALG", socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0)),
        ("socket PACKET", socket(libc::AF_PACKET, raw, 0)),
        ("socket XDP", socket(libc::AF_XDP, raw, 0)),
        ("socket BLUETOOTH", socket(libc::AF_BLUETOOTH, raw, 0)),
        (
            "socket with a high bit",
            vec![libc::SYS_socket, 1 | 1 << 32, i64::from(stream), 0],
        ),
        ("netlink SOCK_DIAG", socket(libc::AF_NETLINK, raw, 4)),
        ("netlink AUDIT", socket(libc::AF_NETLINK, raw, 9)),
        ("netlink NETFILTER", socket(libc::AF_NETLINK, raw, 12)),
        ("netlink KOBJECT_UEVENT", socket(libc::AF_NETLINK, raw, 15)),
        ("netlink GENERIC", socket(libc::AF_NETLINK, raw, 16)),
    ]
}

/// What programs need, and what a kernel that lets it through says.
pub(crate) fn allowed() -> Vec<(&'static str, Vec<i64>, &'static str)> {
    let socket = |family: i32| {
        vec![
            libc::SYS_socket,
            i64::from(family),
            i64::from(libc::SOCK_STREAM),
            0,
        ]
    };
    vec![
        ("socket UNIX", socket(libc::AF_UNIX), "done"),
        ("socket INET", socket(libc::AF_INET), "done"),
        ("socket INET6", socket(libc::AF_INET6), "done"),
        (
            "netlink ROUTE",
            vec![
                libc::SYS_socket,
                i64::from(libc::AF_NETLINK),
                i64::from(libc::SOCK_RAW),
                0,
            ],
            "done",
        ),
        (
            "socketpair",
            vec![
                libc::SYS_socketpair,
                i64::from(libc::AF_UNIX),
                i64::from(libc::SOCK_STREAM),
                0,
                0,
            ],
            "EFAULT",
        ),
        (
            "personality as it is",
            vec![libc::SYS_personality, 0xffff_ffff],
            "done",
        ),
        (
            "fork",
            vec![libc::SYS_clone, i64::from(libc::SIGCHLD), 0, 0, 0, 0],
            "done",
        ),
        ("seccomp", vec![libc::SYS_seccomp, 2, 0, 0], "EFAULT"),
        ("memfd_create", vec![libc::SYS_memfd_create, 0, 0], "EFAULT"),
        ("pidfd_open", vec![libc::SYS_pidfd_open, OWN, 0], "done"),
    ]
}

/// To be traced by whoever started it: the profile lets it through, for the guest to decide on.
pub(crate) const PTRACE: (&str, [i64; 5]) = ("ptrace", [libc::SYS_ptrace, 0, 0, 0, 0]);

/// Returns whether this kernel has what gives each call a domain of its own.
pub(crate) fn has_domains() -> bool {
    const VERSION: libc::c_uint = 1;
    #[expect(unsafe_code, reason = "neither libc nor nix has this call")]
    // SAFETY: with this flag the kernel reads no memory, only returns a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    version >= 2
}

/// The names and numbers of all calls.
const ALL: &str = include_str!("../fixtures/system_calls.txt");

/// Returns every call of this architecture, by its number.
pub(crate) fn all() -> BTreeMap<i64, &'static str> {
    let column = if cfg!(target_arch = "x86_64") { 1 } else { 2 };
    let lines = ALL
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(' ').collect::<Vec<_>>());
    lines
        .filter_map(|words| Some((words[column].parse().ok()?, words[0])))
        .collect()
}

/// A call that the probe makes: its name, its number and its arguments.
pub(crate) type Named = (String, Vec<i64>);

/// Returns what the probe is given.
pub(crate) fn arguments<'a>(calls: impl IntoIterator<Item = &'a Named>) -> String {
    let one = |(name, numbers): &Named| {
        let words = std::iter::once(json!(name)).chain(numbers.iter().map(|&number| json!(number)));
        Value::from(words.collect::<Vec<_>>())
    };
    Value::from(calls.into_iter().map(one).collect::<Vec<_>>()).to_string()
}

pub(crate) fn named(name: &str, numbers: &[i64]) -> Named {
    (name.to_owned(), numbers.to_vec())
}

/// What the kernel said, by the calls' names.
pub(crate) type Said = BTreeMap<String, String>;

#[track_caller]
pub(crate) fn read(text: &str) -> Said {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
