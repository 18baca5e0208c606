//! Where a command can write, found by trying everywhere.

use std::collections::BTreeSet;

use super::test_box::TestBox;
use crate::support::test_env::is_root;
use crate::support::test_env::run;

/// Tries to make a file in every folder and to open every file for writing; prints what could be
/// done, with the kind of file system.
///
/// Left out are processes' own folders in `/proc`, which other tests look at, and what lies in the
/// project, which is for writing.
const PROBE: &str = r#"
import os, stat, subprocess
def kind(path):
    return subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True).stdout.strip()
tried = 0
for top, folders, files in os.walk("/"):
    if top == "/proc":
        folders[:] = [name for name in folders if not name.isdigit()]
    if top == "/workspace":
        folders[:] = files[:] = []
    tried += 1 + len(files)
    try:
        os.close(os.open(top + "/.canary", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.unlink(top + "/.canary")
        print("folder", top, kind(top))
    except OSError:
        pass
    for path in (top + "/" + name for name in files if not os.path.islink(top + "/" + name)):
        try:
            file = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
            facts = os.fstat(file)
            # What masks a kernel file is `/dev/null`.
            device = f"{os.major(facts.st_rdev)}:{os.minor(facts.st_rdev)}"
            print("file", path, f"device {device}" if stat.S_ISCHR(facts.st_mode) else kind(path))
            os.close(file)
        except OSError:
            pass
assert tried > 10_000, tried
"#;

fn check(env: &TestBox, more: &[&str]) {
    let done = run(&mut env.here(&["sh", "--", "python3", "-c", PROBE])).expect(0);
    let found: BTreeSet<String> = done.text().lines().map(str::to_owned).collect();
    let (memory, project) = ("tmpfs", "/workspace");
    let mut folders = vec![format!("folder /dev/shm {memory}")];
    // On the engine's disk, whatever its file system is.
    for place in ["/tmp", "/home/agent"] {
        let begin = format!("folder {place} ");
        let line = found.iter().find(|line| line.starts_with(&begin));
        let line = line.unwrap_or_else(|| panic!("a command needs {place}: {found:#?}"));
        assert!(!line.ends_with(memory), "{line}");
        folders.push(line.clone());
    }
    folders.extend(
        more.iter()
            .map(|folder| format!("folder {folder} {memory}")),
    );
    for folder in &folders {
        assert!(
            found.contains(folder),
            "a command needs {folder}: {found:#?}"
        );
    }
    // Nothing, zeros, an error and chance, as everywhere; a terminal of its own.
    let devices = [
        "device 1:3",
        "device 1:5",
        "device 1:7",
        "device 1:8",
        "device 1:9",
        "device 5:2",
    ];
    for line in found {
        let allowed = folders.contains(&line)
            || line.starts_with(&format!("folder {project} "))
            || devices.iter().any(|device| line.starts_with("file ") && line.ends_with(device))
            // Open to all, and good for nothing but being told of one's own waiting.
            || line.starts_with("file /proc/pressure/");
        assert!(allowed, "writable: {line}");
    }
}

#[test]
fn nothing_but_the_workspace_and_scratch_is_writable() {
    let Some(env) = TestBox::new() else { return };
    check(&env, &[]);
    // To uid 0 nothing but the mounts themselves says no.
    if is_root("a project of root's") {
        std::os::unix::fs::chown(env.project(), Some(0), Some(0)).expect("root");
        check(&env, &["/run", "/run/podbay"]);
    }
    env.assert_no_container();
}
