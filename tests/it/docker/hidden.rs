//! What commands cannot get at: the guest that runs beside them, and the user's keys.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::json;

use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::test_env::is_root;
use crate::support::test_env::run;
use crate::support::test_env::start;

/// Tries to look into every process of the guest, and prints what could be done.
const LOOK: &str = r#"
import ctypes, os, resource, shutil, subprocess
libc = ctypes.CDLL(None, use_errno=True)
program = "/run/podbay/bin/podbay"
for path in [program, program + ".new"]:
    for flags in [os.O_RDONLY, os.O_WRONLY, os.O_RDWR]:
        try:
            os.close(os.open(path, flags))
            print("opened", path, flags)
        except OSError:
            pass
    for attempt in [lambda: os.chmod(path, 0o755), lambda: os.unlink(path), lambda: os.rename(path, path + "x"),
                    lambda: os.link(path, "/tmp/podbay"), lambda: shutil.copy(path, "/tmp/podbay")]:
        try:
            attempt()
            print("changed", path)
        except OSError:
            pass
def parents():
    # This process, its supervisor, the spawner, the guest.
    pid = os.getppid()
    while pid != 0:
        yield pid
        pid = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
guests = sorted(parents())
print("guests", len(guests), guests[0])
for pid in guests:
    for name in ["mem", "maps", "smaps", "environ", "auxv", "stack", "syscall", "personality", "pagemap", "io"]:
        try:
            if open(f"/proc/{pid}/{name}", "rb", buffering=0).read(1):
                print("read", pid, name)
        except OSError:
            pass
    for name in ["exe", "cwd", "root", "ns/net", "ns/mnt", "fd/0", "fd/1", "fd/3", "fd/4", "fd/5"]:
        try:
            print("followed", pid, name, os.readlink(f"/proc/{pid}/{name}"))
        except OSError:
            pass
        try:
            os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_NONBLOCK))
            print("opened", pid, name)
        except OSError:
            pass
    for name in ["mem", "comm", "timerslack_ns", "fd/1"]:
        try:
            file = os.open(f"/proc/{pid}/{name}", os.O_WRONLY)
            os.write(file, b"1")
            print("wrote", pid, name)
        except OSError:
            pass
    for request in [16, 0x4206]:
        if libc.ptrace(request, pid, None, None) == 0:
            print("traced", pid)
    buffer = ctypes.create_string_buffer(8)
    pair = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    for call in ([310, 311] if os.uname().machine == "x86_64" else [270, 271]):
        if libc.syscall(call, pid, pair, 1, pair, 1, 0) >= 0:
            print("reached the memory of", pid)
    try:
        pidfd = os.pidfd_open(pid)
        if libc.syscall(438, pidfd, 0, 0) >= 0:
            print("took a descriptor of", pid)
    except OSError:
        pass
    try:
        resource.prlimit(pid, resource.RLIMIT_AS, (1 << 20, 1 << 20))
        print("limited", pid)
    except PermissionError:
        pass
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
print("own limit", resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE)[0])
print("own memory", open("/proc/self/maps").read(1) != "", open("/proc/self/environ", "rb").read(1) != b"")
child = subprocess.Popen(["sh", "-c", "echo up; exec sleep 60"], stdout=subprocess.PIPE)
child.stdout.readline()
print("own child", os.readlink(f"/proc/{child.pid}/cwd"), open(f"/proc/{child.pid}/environ", "rb").read(1) != b"")
child.kill()
print("runs", subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()[0])
"#;

fn cannot_look(env: &TestBox) {
    let done = run(&mut env.here(&["sh", "--", "python3", "-c", LOOK])).expect(0);
    let expected =
        "guests 3 1\nown limit 100\nown memory True True\nown child /workspace True\nruns podbay\n";
    assert_eq!(done.text(), expected, "{}", done.stderr);
}

#[test]
fn commands_can_neither_read_nor_trace_the_guest() {
    let Some(env) = TestBox::new() else { return };
    cannot_look(&env);
    env.assert_no_container();
    if is_root("a project of root's") {
        std::os::unix::fs::chown(env.project(), Some(0), Some(0)).expect("root");
        cannot_look(&env);
        env.assert_no_container();
    }
}

/// Looks for bytes in a process: its arguments, its environment, all of its memory.
fn process_holds(pid: &str, needle: &[u8]) -> bool {
    let folder = Path::new("/proc").join(pid);
    let holds = |bytes: &[u8]| memchr::memmem::find(bytes, needle).is_some();
    let named = ["cmdline", "environ"]
        .iter()
        .any(|name| holds(&std::fs::read(folder.join(name)).expect("root may")));
    let memory = File::open(folder.join("mem")).expect("root may");
    let maps = std::fs::read_to_string(folder.join("maps")).expect("root may");
    let mut buffer = Vec::new();
    named
        || maps.lines().any(|line| {
            let (range, _) = line.split_once(' ').expect("a range");
            let (from, to) = range.split_once('-').expect("two ends");
            let [from, to] = [from, to].map(|end| u64::from_str_radix(end, 16).expect("a number"));
            buffer.resize(usize::try_from(to - from).expect("fits"), 0);
            // Some, like the kernel's own page, cannot be read this way.
            memory.read_exact_at(&mut buffer, from).is_ok() && holds(&buffer)
        })
}

/// Looks for bytes in all files of a folder that are no kernel's.
fn folder_holds(folder: &Path, needle: &[u8], n_seen: &mut usize) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        let facts = std::fs::symlink_metadata(&path).expect("it stays");
        if facts.is_dir() {
            return folder_holds(&path, needle, n_seen);
        }
        *n_seen += usize::from(facts.is_file());
        facts.is_file()
            && memchr::memmem::find(&std::fs::read(&path).unwrap_or_default(), needle).is_some()
    })
}

#[test]
fn no_key_is_found_in_any_process_of_the_box() {
    let Some(env) = TestBox::new() else { return };
    let key = format!("canary-key-{}", env.key());
    let model = ScriptedModel::new()
        .key(&key)
        .calls("bash", json!({"command": "env > environment; touch begun; while ! test -e go; do sleep 0.05; done"}))
        .says("Done.")
        .start_blocking();
    let mut command = env.task(&model, &["look"]);
    let started = start(
        command
            .env("PODBAY_LLM_API_KEY_ENV", "PODBAY_TEST_KEY")
            .env("PODBAY_TEST_KEY", &key),
    );
    env.wait_for("begun");
    let container = env.container();
    assert!(!docker(&["inspect", &container]).contains(&key));
    assert!(!env.read("environment").contains(&key) && env.read("environment").contains("HOME="));
    if is_root("a look into the memory of a box") {
        assert!(
            process_holds(&started.pid().to_string(), key.as_bytes()),
            "the controller has it, so it can be found"
        );
        let listed = docker(&["top", &container, "-o", "pid"]);
        let pids: Vec<&str> = listed.lines().skip(1).map(str::trim).collect();
        assert!(
            pids.len() >= 4,
            "guest, spawner, supervisor, command: {listed}"
        );
        for pid in &pids {
            // One that the loop of the command started may have ended meanwhile.
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            assert!(
                name.trim() == "sleep" || name.is_empty() || !process_holds(pid, key.as_bytes()),
                "found in {pid}, {name}"
            );
        }
        let root = Path::new("/proc").join(pids[0]).join("root");
        let mut n_seen = 0;
        for folder in ["dev/shm", "etc", "home", "run", "tmp", "var", "workspace"] {
            assert!(
                !folder_holds(&root.join(folder), key.as_bytes(), &mut n_seen),
                "found in a file of {folder}"
            );
        }
        assert!(n_seen > 100, "{n_seen} files");
    }
    env.write("go", "");
    started.wait().expect(0);
    env.assert_no_container();
}
