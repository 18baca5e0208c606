//! What the kernel says to system calls: to any process of a box, to a command in it, and without our filters.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::json;

use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::test_env::run;
use crate::support::test_env::start;

/// Makes each call in a process of its own and prints what the kernel said.
const PROBE: &str = r#"
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
    ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()
    return "done"
if platform.machine() == "x86_64":
    # getpid by the 32-bit entry, and by the number that x32 has for it.
    alone("32-bit", lambda: execute(b"\xb8\x14\0\0\0\xcd\x80\xc3"))
    alone("x32", lambda: execute(b"\xb8\x27\0\0\x40\x0f\x05\xc3"))
print(json.dumps(said))
"#;

const OWN: i64 = 0x51d;
const MINUS_ONE: i64 = -1;

/// What nobody in a box may do; the arguments are such that a plain kernel does it, or finds fault with an argument, where it lets
/// everybody.
fn refused() -> Vec<(&'static str, Vec<i64>)> {
    let user = i64::from(libc::CLONE_NEWUSER);
    let socket = |family: i32, kind: i32, protocol: i64| vec![libc::SYS_socket, i64::from(family), i64::from(kind), protocol];
    let raw = libc::SOCK_RAW;
    let stream = libc::SOCK_STREAM;
    vec![
        ("ptrace", vec![libc::SYS_ptrace, 0, 0, 0, 0]),
        ("process_vm_readv", vec![libc::SYS_process_vm_readv, OWN, 0, 0, 0, 0, 0]),
        ("process_vm_writev", vec![libc::SYS_process_vm_writev, OWN, 0, 0, 0, 0, 0]),
        ("process_madvise", vec![libc::SYS_process_madvise, MINUS_ONE, 0, 0, 0, 0]),
        ("pidfd_getfd", vec![libc::SYS_pidfd_getfd, MINUS_ONE, 0, 0]),
        ("kcmp", vec![libc::SYS_kcmp, OWN, OWN, 0, 0, 0]),
        ("io_uring_setup", vec![libc::SYS_io_uring_setup, 1, 0]),
        ("io_uring_enter", vec![libc::SYS_io_uring_enter, MINUS_ONE, 0, 0, 0, 0]),
        ("io_uring_register", vec![libc::SYS_io_uring_register, MINUS_ONE, 0, 0, 0]),
        ("userfaultfd", vec![libc::SYS_userfaultfd, 1]),
        ("bpf", vec![libc::SYS_bpf, 0, 0, 0]),
        ("perf_event_open", vec![libc::SYS_perf_event_open, 0, 0, 0, MINUS_ONE, 0]),
        ("keyctl", vec![libc::SYS_keyctl, 0, -3, 0]),
        ("add_key", vec![libc::SYS_add_key, 0, 0, 0, 0, -3]),
        ("request_key", vec![libc::SYS_request_key, 0, 0, 0, 0]),
        ("memfd_secret", vec![libc::SYS_memfd_secret, 0]),
        ("remap_file_pages", vec![libc::SYS_remap_file_pages, 0, 0, 0, 0, 0]),
        ("fanotify_init", vec![libc::SYS_fanotify_init, 0x200, 0]),
        ("kexec_load", vec![libc::SYS_kexec_load, 0, 0, 0, 0]),
        ("init_module", vec![libc::SYS_init_module, 0, 0, 0]),
        ("finit_module", vec![libc::SYS_finit_module, MINUS_ONE, 0, 0]),
        ("mount", vec![libc::SYS_mount, 0, 0, 0, 0, 0]),
        ("umount2", vec![libc::SYS_umount2, 0, 0]),
        ("fsopen", vec![libc::SYS_fsopen, 0, 0]),
        ("open_tree", vec![libc::SYS_open_tree, MINUS_ONE, 0, 0]),
        ("move_mount", vec![libc::SYS_move_mount, MINUS_ONE, 0, MINUS_ONE, 0, 0]),
        ("mount_setattr", vec![libc::SYS_mount_setattr, MINUS_ONE, 0, 0, 0, 0]),
        ("pivot_root", vec![libc::SYS_pivot_root, 0, 0]),
        ("chroot", vec![libc::SYS_chroot, 0]),
        ("setns", vec![libc::SYS_setns, MINUS_ONE, 0]),
        ("unshare", vec![libc::SYS_unshare, user]),
        ("clone", vec![libc::SYS_clone, user | i64::from(libc::SIGCHLD), 0, 0, 0, 0]),
        ("open_by_handle_at", vec![libc::SYS_open_by_handle_at, MINUS_ONE, 0, 0]),
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
        ("kexec_file_load", vec![libc::SYS_kexec_file_load, MINUS_ONE, MINUS_ONE, 0, 0, 0]),
        ("fsconfig", vec![libc::SYS_fsconfig, MINUS_ONE, 0, 0, 0, 0]),
        ("fsmount", vec![libc::SYS_fsmount, MINUS_ONE, 0, 0]),
        ("fspick", vec![libc::SYS_fspick, MINUS_ONE, 0, 0]),
        ("fanotify_mark", vec![libc::SYS_fanotify_mark, MINUS_ONE, 0, 0, MINUS_ONE, 0]),
        ("process_mrelease", vec![libc::SYS_process_mrelease, MINUS_ONE, 0]),
        ("vhangup", vec![libc::SYS_vhangup]),
        ("move_pages", vec![libc::SYS_move_pages, OWN, 0, 0, 0, 0, 0]),
        ("migrate_pages", vec![libc::SYS_migrate_pages, OWN, 0, 0, 0]),
        ("set_mempolicy", vec![libc::SYS_set_mempolicy, MINUS_ONE, 0, 0]),
        ("get_mempolicy", vec![libc::SYS_get_mempolicy, 0, 0, 0, 0, MINUS_ONE]),
        ("mbind", vec![libc::SYS_mbind, 0, 0, 0, 0, 0, 0]),
        ("personality without random addresses", vec![libc::SYS_personality, 0x0004_0000]),
        ("personality that makes all executable", vec![libc::SYS_personality, 0x0040_0000]),
        ("personality with a high bit", vec![libc::SYS_personality, 1 << 32]),
        ("socket VSOCK", socket(libc::AF_VSOCK, stream, 0)),
        ("socket ALG", socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0)),
        ("socket PACKET", socket(libc::AF_PACKET, raw, 0)),
        ("socket XDP", socket(libc::AF_XDP, raw, 0)),
        ("socket BLUETOOTH", socket(libc::AF_BLUETOOTH, raw, 0)),
        ("socket with a high bit", vec![libc::SYS_socket, 1 | 1 << 32, i64::from(stream), 0]),
        ("netlink SOCK_DIAG", socket(libc::AF_NETLINK, raw, 4)),
        ("netlink AUDIT", socket(libc::AF_NETLINK, raw, 9)),
        ("netlink NETFILTER", socket(libc::AF_NETLINK, raw, 12)),
        ("netlink KOBJECT_UEVENT", socket(libc::AF_NETLINK, raw, 15)),
        ("netlink GENERIC", socket(libc::AF_NETLINK, raw, 16)),
    ]
}

/// What programs need, and what a kernel that lets it through says.
fn allowed() -> Vec<(&'static str, Vec<i64>, &'static str)> {
    let socket = |family: i32| vec![libc::SYS_socket, i64::from(family), i64::from(libc::SOCK_STREAM), 0];
    vec![
        ("socket UNIX", socket(libc::AF_UNIX), "done"),
        ("socket INET", socket(libc::AF_INET), "done"),
        ("socket INET6", socket(libc::AF_INET6), "done"),
        ("netlink ROUTE", vec![libc::SYS_socket, i64::from(libc::AF_NETLINK), i64::from(libc::SOCK_RAW), 0], "done"),
        ("socketpair", vec![libc::SYS_socketpair, i64::from(libc::AF_UNIX), i64::from(libc::SOCK_STREAM), 0, 0], "EFAULT"),
        ("personality as it is", vec![libc::SYS_personality, 0xffff_ffff], "done"),
        ("fork", vec![libc::SYS_clone, i64::from(libc::SIGCHLD), 0, 0, 0, 0], "done"),
        ("seccomp", vec![libc::SYS_seccomp, 2, 0, 0], "EFAULT"),
        ("memfd_create", vec![libc::SYS_memfd_create, 0, 0], "EFAULT"),
        ("pidfd_open", vec![libc::SYS_pidfd_open, OWN, 0], "done"),
    ]
}

fn calls() -> String {
    let mut all: Vec<Value> = Vec::new();
    let mut add =
        |name: &str, numbers: &[i64]| all.push([vec![json!(name)], numbers.iter().map(|&number| json!(number)).collect()].concat().into());
    for (name, numbers) in refused() {
        add(name, &numbers);
    }
    for (name, numbers, _) in allowed() {
        add(name, &numbers);
    }
    add("openat2", &[libc::SYS_openat2, MINUS_ONE, 0, 0, 0]);
    add("clone3", &[libc::SYS_clone3, 0, 0]);
    add("landlock", &[libc::SYS_landlock_create_ruleset, 0, 0, 1]);
    json!(all).to_string()
}

type Said = BTreeMap<String, String>;

fn read(text: &str) -> Said {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Panics unless everything was refused that should be, and everything else let through.
#[track_caller]
fn check(said: &Said) {
    for (name, _) in refused() {
        assert_eq!(said[name], "EPERM", "{name}");
    }
    for (name, _, expected) in allowed() {
        assert_eq!(said[name], expected, "{name}");
    }
    assert_eq!(said["clone3"], "ENOSYS", "so that libraries fall back to clone");
}

#[test]
fn the_profile_refuses_what_it_should_on_this_engine() {
    let Some(env) = TestBox::new() else { return };
    let calls = calls();
    // A process that the engine starts in the box has the profile alone; a command has the guest's filter on top.
    let begun = start(&mut env.here(&["sh", "--", "sh", "-c", "touch begun; while ! test -e go; do sleep 0.05; done"]));
    env.wait_for("begun");
    let profile = read(&docker(&["exec", &env.container(), "python3", "-c", PROBE, &calls]));
    env.write("go", "");
    begun.wait().expect(0);
    let command = read(&run(&mut env.here(&["sh", "--", "python3", "-c", PROBE, &calls])).expect(0).text());
    let user = format!("{}:{}", crate::support::test_env::owner().0, crate::support::test_env::owner().1);
    let plain = ["run", "--rm", "--network", "none", "--user", &user, "--cap-drop", "ALL", "--security-opt", "no-new-privileges"];
    let plain = [&plain[..], &["--security-opt", "seccomp=unconfined", "--entrypoint", "python3", "podbay/workspace", "-c", PROBE, &calls]];
    let plain = read(&docker(&plain.concat()));

    check(&profile);
    check(&command);
    assert_eq!((profile["openat2"].as_str(), command["openat2"].as_str()), ("EINVAL", "ENOSYS"), "for the guest alone");
    assert_eq!(
        (&profile["landlock"], command["landlock"].as_str()),
        (&plain["landlock"], "ENOSYS"),
        "as this kernel has it, for the guest"
    );
    if cfg!(target_arch = "x86_64") {
        for said in [&profile, &command] {
            let killed = format!("signal {}", libc::SIGSYS);
            assert_eq!((&said["32-bit"], &said["x32"]), (&killed, &killed));
        }
    }
    // It is the filter that refused: without it most of these do not need any right.
    let open = |name: &str| plain[name] != "EPERM";
    for name in ["ptrace", "process_vm_readv", "io_uring_setup", "keyctl", "kcmp", "unshare", "personality without random addresses"] {
        assert!(open(name), "{name} is refused without the profile as well: {plain:?}");
    }
    let n_open = refused().iter().filter(|(name, _)| open(name)).count();
    assert!(n_open > refused().len() / 2 - 10, "the others take a right that nobody has: {n_open}: {plain:?}");
    env.assert_no_container();
}
