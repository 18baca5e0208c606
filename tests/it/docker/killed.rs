//! A controller that is killed takes everything with it, and what was done is on disk.

use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::guest::is_running;
use crate::support::guest::marker;
use crate::support::test_env::is_root;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

#[test]
fn killing_the_controller_ends_command_and_box_and_loses_nothing() {
    let Some(env) = TestBox::new() else { return };
    let sleep = marker();
    let model = ScriptedModel::new()
        .calls(
            "write_file",
            json!({"path": "first.txt", "content": "kept\n"}),
        )
        .calls(
            "bash",
            json!({"command": format!("touch begun; setsid sleep {sleep} & sleep {sleep}")}),
        )
        .start_blocking();
    let controller = start(&mut env.task(&model, &["wait a minute"]));
    env.wait_for("begun");
    assert_eq!(env.boxes().len(), 1);
    assert!(is_running(&sleep));
    controller.signal(Signal::SIGKILL);
    let gone = within(Duration::from_secs(20), || {
        !is_running(&sleep) && env.containers().is_empty()
    });
    assert!(
        gone,
        "command: {}, containers: {:?}",
        is_running(&sleep),
        env.containers()
    );
    assert_eq!(controller.wait().code, 128 + 9);

    let shown = run(&mut env.podbay(&["sessions", "show"])).expect(0).text();
    for words in ["wait a minute", "created first.txt", &sleep, "interrupted"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let listed = run(&mut env.podbay(&["sessions", "list"])).expect(0).text();
    assert!(listed.contains("unfinished"), "{listed}");
    // The project is free at once.
    run(&mut env.here(&["call", "read_file", r#"{"path":"first.txt"}"#])).expect(0);
}

/// A memory group of the test's own, with a process in it that takes all of it.
struct Hungry {
    folder: PathBuf,
    hog: Child,
}

impl Hungry {
    /// Takes all memory of a small group, bit by bit, once the file `go` is there. `None` where no
    /// group can be made.
    fn start(go: &std::path::Path) -> Option<Self> {
        let name = format!("podbay-test-{}", std::process::id());
        let (folder, limit) = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ]
        .into_iter()
        .map(|(parent, limit)| (std::path::Path::new(parent).join(&name), limit))
        // Where groups may not limit memory, one that was made is of no use.
        .find(|(folder, limit)| {
            std::fs::create_dir(folder).is_ok()
                && (folder.join(limit).exists() || std::fs::remove_dir(folder).is_err())
        })?;
        std::fs::write(folder.join(limit), "268435456").expect("a limit");
        let script = format!(
            "import os, time\nopen('{}/cgroup.procs', 'w').write('0')\n\
             while not os.path.exists('{}'): time.sleep(0.01)\nkept = []\nwhile True: kept.append(bytearray(1 << 20)); time.sleep(0.005)\n",
            folder.display(),
            go.display()
        );
        let hog = Command::new("python3")
            .args(["-c", &script])
            .spawn()
            .expect("the `python3` command");
        Some(Self { folder, hog })
    }

    fn take_in(&self, pid: u32) {
        std::fs::write(self.folder.join("cgroup.procs"), pid.to_string()).expect("it runs");
        // Of the two it is to be the first.
        std::fs::write(format!("/proc/{pid}/oom_score_adj"), "1000").expect("it runs");
    }
}

impl Drop for Hungry {
    fn drop(&mut self) {
        let _ = self.hog.kill();
        let _ = self.hog.wait();
        // What has ended is in it for a moment yet.
        within(Duration::from_secs(20), || {
            std::fs::remove_dir(&self.folder).is_ok()
        });
    }
}

#[test]
fn rel_25_a_controller_that_the_kernel_kills_for_memory_leaves_nothing_either() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a controller that the kernel kills for memory") {
        return;
    }
    let sleep = marker();
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": format!("touch begun; setsid sleep {sleep} & sleep {sleep}")}),
        )
        .start_blocking();
    let go = env.beside("go");
    let Some(hungry) = Hungry::start(&go) else {
        // Past the test's own capture: a run must not be silent about it.
        drop(std::io::Write::write_all(
            &mut std::io::stderr(),
            b"left out, because no memory group can be made here: REL-25\n",
        ));
        return;
    };
    let controller = start(&mut env.task(&model, &["wait a minute"]));
    env.wait_for("begun");
    hungry.take_in(controller.pid());
    std::fs::write(&go, "").expect("written");
    assert_eq!(controller.wait().code, 128 + 9, "the kernel chose it");
    drop(hungry);
    let gone = within(Duration::from_secs(20), || {
        !is_running(&sleep) && env.containers().is_empty()
    });
    assert!(
        gone,
        "command: {}, containers: {:?}",
        is_running(&sleep),
        env.containers()
    );
    let shown = run(&mut env.podbay(&["sessions", "show"])).expect(0).text();
    assert!(
        shown.contains("wait a minute") && shown.contains("interrupted"),
        "{shown}"
    );
    run(&mut env.here(&["call", "list_directory", "{}"])).expect(0);
}
