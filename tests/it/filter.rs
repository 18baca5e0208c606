//! The filter on commands alone, without an engine's profile: what a sandbox that somebody else
//! keeps may have nothing else of.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::guest::TestGuest;
use crate::support::guest::bash;
use crate::support::probe::MINUS_ONE;
use crate::support::probe::Named;
use crate::support::probe::PROBE;
use crate::support::probe::Said;
use crate::support::probe::arguments;
use crate::support::probe::named;
use crate::support::probe::read;
use crate::support::probe::refused;

/// What the filter refuses by number, whatever the arguments; those of the others in the probe's
/// table are the profile's alone.
const REFUSED: [&str; 27] = [
    "process_vm_readv",
    "process_vm_writev",
    "kcmp",
    "pidfd_getfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "keyctl",
    "add_key",
    "request_key",
    "userfaultfd",
    "unshare",
    "setns",
    "bpf",
    "perf_event_open",
    "open_by_handle_at",
    "mount",
    "umount2",
    "pivot_root",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "clone",
];

/// One above the last family of sockets that kernels have.
const FAMILIES: i32 = 46;

async fn in_a_command(guest: &TestGuest, calls: &[Named]) -> Said {
    fs::write(guest.path("probe.py"), PROBE).expect("written");
    fs::write(guest.path("calls.json"), arguments(calls)).expect("written");
    read(
        &guest
            .bash(bash("python3 probe.py \"$(cat calls.json)\""))
            .await
            .1,
    )
}

/// The same without any filter, on this machine.
fn outside(guest: &TestGuest, calls: &[Named]) -> Said {
    let plain = Command::new("python3")
        .args(["-c", PROBE, &arguments(calls)])
        .current_dir(guest.workspace.path())
        .output();
    read(&String::from_utf8_lossy(
        &plain.expect("the `python3` command").stdout,
    ))
}

/// Says whether this process may do what a filter could refuse: then it is the filter that refuses,
/// and nobody else.
fn is_free() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("readable");
    nix::unistd::geteuid().is_root() && status.lines().any(|line| line == "Seccomp:\t0")
}

#[tokio::test]
async fn the_filter_on_commands_refuses_by_itself_what_the_profile_refuses_for_all() {
    let guest = TestGuest::start().await;
    let table = refused();
    let of_name = |name: &&str| {
        table
            .iter()
            .find(|(found, _)| found == name)
            .map(|(name, numbers)| named(name, numbers))
    };
    let calls: Vec<Named> = REFUSED
        .iter()
        .map(|name| of_name(name).unwrap_or_else(|| panic!("{name}")))
        .collect();
    let said = in_a_command(&guest, &calls).await;
    for name in REFUSED {
        assert_eq!(said[name], "EPERM", "{name}");
    }
    if cfg!(target_arch = "x86_64") {
        assert_eq!(
            (said["32-bit"].as_str(), said["x32"].as_str()),
            (format!("signal {}", libc::SIGSYS).as_str(), "ENOSYS")
        );
    }
    let plain = outside(&guest, &calls);
    let open = |name: &&&str| plain[**name] != "EPERM";
    assert!(REFUSED.iter().filter(open).count() > 5, "{plain:?}");
    if is_free() {
        assert_eq!(
            REFUSED.iter().filter(open).count(),
            REFUSED.len(),
            "{plain:?}"
        );
    }
}

#[tokio::test]
async fn commands_have_sockets_of_four_families_alone() {
    let guest = TestGuest::start().await;
    let ours = [
        libc::AF_UNIX,
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_NETLINK,
    ];
    let kinds = [
        libc::SOCK_STREAM,
        libc::SOCK_DGRAM,
        libc::SOCK_RAW,
        libc::SOCK_SEQPACKET,
    ];
    let socket = |family: i32, kind: i32, protocol: i32| {
        (
            format!("{family} {kind} {protocol}"),
            vec![
                libc::SYS_socket,
                family.into(),
                kind.into(),
                protocol.into(),
            ],
        )
    };
    let pair = |family: i32| {
        (
            format!("pair {family}"),
            vec![
                libc::SYS_socketpair,
                family.into(),
                libc::SOCK_STREAM.into(),
                0,
                0,
            ],
        )
    };
    let odd: Vec<i32> = (0..FAMILIES)
        .chain([-1, 1000])
        .filter(|family| !ours.contains(family))
        .collect();
    let mut refused: Vec<Named> = odd
        .iter()
        .flat_map(|&family| kinds.map(|kind| socket(family, kind, 0)))
        .collect();
    refused.extend(odd.iter().chain(&ours[1..]).map(|&family| pair(family)));
    // Of netlink, what does not tell of interfaces and routes.
    refused.extend((1..23).map(|protocol| socket(libc::AF_NETLINK, libc::SOCK_RAW, protocol)));
    let stream = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    let allowed = [
        socket(libc::AF_UNIX, stream, 0),
        socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0),
        socket(libc::AF_INET, stream, 0),
        socket(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_UDP),
        socket(libc::AF_INET6, stream, 0),
        socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE),
    ];
    let calls = [refused.clone(), allowed.to_vec(), vec![pair(libc::AF_UNIX)]].concat();
    let said = in_a_command(&guest, &calls).await;
    for (name, _) in &refused {
        assert_eq!(said[name], "EPERM", "{name}");
    }
    for (name, _) in &allowed {
        assert_eq!(said[name], "done", "{name}");
    }
    assert_eq!(
        said[&pair(libc::AF_UNIX).0],
        "EFAULT",
        "the kernel is asked for it"
    );
    // Some of them are there, and were refused by nobody else.
    let there = [
        socket(libc::AF_NETLINK, libc::SOCK_RAW, 4),
        socket(libc::AF_NETLINK, libc::SOCK_RAW, 16),
        socket(libc::AF_PACKET, libc::SOCK_RAW, 0),
    ];
    let plain = outside(&guest, &there);
    assert!(
        !is_free() || there.iter().all(|(name, _)| plain[name] == "done"),
        "{plain:?}"
    );
}

/// Each way to give a file a mode, with modes that have the bits and modes that have none.
const SET_ID: &str = r#"
import ctypes, errno, os, platform, stat
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    ctypes.set_errno(0)
    made = libc.syscall(*[ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments])
    return made, "done" if made >= 0 else errno.errorcode[ctypes.get_errno()]
X86 = platform.machine() == "x86_64"
HERE, O_CREAT, O_WRONLY, O_TMPFILE = -100, os.O_CREAT, os.O_WRONLY, os.O_TMPFILE
N = dict(openat=257, fchmod=91, fchmodat=268, mknodat=259) if X86 else dict(openat=56, fchmod=52, fchmodat=53, mknodat=33)
ways = {
    "fchmod": lambda f, mode: call(N["fchmod"], f, mode),
    "fchmodat": lambda f, mode: call(N["fchmodat"], HERE, b"file", mode),
    "fchmodat2": lambda f, mode: call(452, HERE, b"file", mode, 0),
    "mknodat": lambda f, mode: call(N["mknodat"], HERE, b"new", stat.S_IFREG | mode, 0),
    "openat": lambda f, mode: call(N["openat"], HERE, b"new", O_CREAT | O_WRONLY, mode),
    "openat without a name": lambda f, mode: call(N["openat"], HERE, b".", O_TMPFILE | O_WRONLY, mode),
    "openat2": lambda f, mode: call(437, HERE, b"new", (ctypes.c_uint64 * 3)(O_CREAT | O_WRONLY, mode, 0), 24),
}
if X86:
    ways["chmod"] = lambda f, mode: call(90, b"file", mode)
    ways["creat"] = lambda f, mode: call(85, b"new", mode)
    ways["mknod"] = lambda f, mode: call(133, b"new", stat.S_IFREG | mode, 0)
    ways["open"] = lambda f, mode: call(2, b"new", O_CREAT | O_WRONLY, mode)
    ways["open without a name"] = lambda f, mode: call(2, b".", O_TMPFILE | O_WRONLY, mode)
for name, way in sorted(ways.items()):
    said = []
    for mode in [0o4755, 0o2755, 0o6711, 0o4000, 0o1755, 0o640]:
        f = os.open("file", os.O_CREAT | os.O_RDWR, 0o600)
        if name == "openat2":
            how = (ctypes.c_uint64 * 3)(O_CREAT | O_WRONLY, mode, 0)
            made = libc.syscall(ctypes.c_long(437), ctypes.c_long(HERE), ctypes.c_char_p(b"new"), how, ctypes.c_long(24))
            said.append("done" if made >= 0 else errno.errorcode[ctypes.get_errno()])
        else:
            said.append(way(f, mode)[1])
        marked = any(os.path.exists(n) and os.stat(n).st_mode & 0o6000 for n in ["file", "new"])
        said[-1] += " MARKED" if marked else ""
        for n in ["file", "new"]:
            if os.path.exists(n): os.remove(n)
        os.close(f)
    print(name, *said)
# A mode counts only where something is made: elsewhere the register may hold anything.
open("plain", "w").close()
print("reads", call(N["openat"], HERE, b"plain", os.O_RDONLY, 0o6755)[1])
"#;

#[tokio::test]
async fn no_call_gives_a_file_a_set_id_mode() {
    let guest = TestGuest::start().await;
    fs::write(guest.path("probe.py"), SET_ID).expect("written");
    let (_, printed) = guest.bash(bash("umask 0; python3 probe.py 2>&1")).await;
    let refused = "EPERM EPERM EPERM EPERM done done";
    let absent = "ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS ENOSYS";
    let mut expected = Vec::new();
    for name in [
        "fchmod",
        "fchmodat",
        "mknodat",
        "openat",
        "openat without a name",
    ] {
        expected.push(format!("{name} {refused}"));
    }
    if cfg!(target_arch = "x86_64") {
        expected.extend(
            ["chmod", "creat", "mknod", "open", "open without a name"]
                .map(|name| format!("{name} {refused}")),
        );
    }
    // Their modes lie in memory.
    expected.extend(["fchmodat2", "openat2"].map(|name| format!("{name} {absent}")));
    expected.sort();
    expected.push("reads done".to_owned());
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
    // Where nobody refuses it, they do it.
    let plain = Command::new("python3")
        .args(["-c", SET_ID])
        .current_dir(guest.workspace.path())
        .output()
        .expect("runs");
    let plain = String::from_utf8_lossy(&plain.stdout).into_owned();
    for name in ["fchmod", "fchmodat", "mknodat", "openat"] {
        assert!(
            plain.contains(&format!("\n{name} done MARKED done MARKED"))
                || plain.starts_with(&format!("{name} done MARKED")),
            "{plain}"
        );
    }
}

#[tokio::test]
async fn folders_get_the_group_mark_from_the_folder_they_are_made_in_and_not_by_chmod() {
    let guest = TestGuest::start().await;
    fs::create_dir(guest.path("team")).expect("made");
    fs::set_permissions(guest.path("team"), PermissionsExt::from_mode(0o2775)).expect("ours");
    let script = "mkdir team/made && mkdir -p team/deep/er && cp -r team/made team/copied && echo x > team/made/file && echo made; \
                  mkdir plain; chmod g+s plain 2>&1; chmod u+w team/made 2>&1";
    let (_, printed) = guest.bash(bash(script)).await;
    assert!(
        printed.starts_with("made\n") && printed.matches("peration not permitted").count() == 2,
        "{printed}"
    );
    let mode = |name: &str| {
        fs::metadata(guest.path(name))
            .expect(name)
            .permissions()
            .mode()
            & 0o7000
    };
    for name in ["team/made", "team/deep", "team/deep/er", "team/copied"] {
        assert_eq!(mode(name), 0o2000, "{name}");
    }
    assert_eq!((mode("plain"), mode("team/made/file")), (0, 0));
}

#[tokio::test]
async fn a_probe_finds_a_call_that_nobody_refuses() {
    let guest = TestGuest::start().await;
    let calls = [
        named("getpid", &[libc::SYS_getpid]),
        named("close", &[libc::SYS_close, MINUS_ONE]),
    ];
    let said = in_a_command(&guest, &calls).await;
    assert_eq!(
        (said["getpid"].as_str(), said["close"].as_str()),
        ("done", "EBADF")
    );
}
