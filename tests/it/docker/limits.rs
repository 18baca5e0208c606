//! A command that meets a limit is told which one, and how large it is.

use std::process::Command;
use std::time::Duration;

use podbay::engine::ContainerId;
use podbay::engine::Moment;
use serde_json::json;

use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::EngineProxy;
use crate::support::ScriptedModel;
use crate::support::test_env::is_root;
use crate::support::test_env::run;
use crate::support::test_env::start;

/// A guest with debug information has 47 MiB of itself mapped. Behind the one that ate it all, the
/// kernel at times takes another, and under a limit of less than twice that much it is not the
/// command's shell (`docs/security.md`, OOM score).
const MEMORY: &str = "128m";

#[track_caller]
fn check(flags: &[&str], command: &str, expected: &str) {
    let Some(env) = TestBox::new() else { return };
    let arguments = serde_json::json!({ "command": command, "timeout_seconds": 20 }).to_string();
    let mut call = env.here(&["call"]);
    let text = run(call.args(flags).args(["bash", &arguments]))
        .expect(1)
        .text();
    assert!(text.contains(expected), "{text}");
    env.assert_no_container();
}

#[test]
fn a_command_that_runs_out_of_memory_is_told_the_limit() {
    check(
        &["--memory", MEMORY],
        "python3 -c 'x = bytearray(200 << 20)'; echo after",
        "out of memory, the limit of `sandbox.memory` is 128.0 MiB",
    );
}

/// Whoever watches a run sees the same, however much the command printed before, and whatever of
/// that is shown.
#[test]
fn the_limit_that_ended_a_command_is_on_the_screen_of_a_run() {
    let Some(env) = TestBox::new() else { return };
    for is_streamed in ["true", "false"] {
        let command = "seq 101 120; python3 -c 'import time; x = bytearray(40 << 20); time.sleep(1); y = bytearray(400 << 20)'";
        let model = ScriptedModel::new()
            .calls("bash", json!({ "command": command }))
            .says("Done.")
            .start_blocking();
        let mut task = env.here(&[
            "run",
            "--model",
            "scripted",
            "--endpoint",
            &model.endpoint(),
            "--memory",
            MEMORY,
            "eat",
        ]);
        let screen = run(task.env("PODBAY_UI_STREAM_DURING_TOOLS", is_streamed))
            .expect(0)
            .stderr;
        assert_eq!(
            (screen.contains("   103\n"), screen.contains("   120\n")),
            (true, is_streamed == "true"),
            "{screen}"
        );
        let why = screen
            .lines()
            .find(|line| {
                line.starts_with(
                    "   [killed: out of memory, the limit of `sandbox.memory` is 128.0 MiB",
                )
            })
            .unwrap_or_default();
        assert!(
            why.contains("`python3`") && why.ends_with("exit code 137]"),
            "{screen}"
        );
    }
    env.assert_no_container();
}

#[test]
fn a_command_can_stand_beside_the_guest_when_memory_runs_out_and_not_behind_the_host() {
    let Some(env) = TestBox::new() else { return };
    let script = "score=/proc/$$/oom_score_adj; cat $score; echo 500 > $score; cat $score; echo -1 > $score; cat $score";
    let arguments = json!({ "command": script }).to_string();
    let text = run(&mut env.here(&["call", "bash", &arguments]))
        .expect(0)
        .text();
    let scores: Vec<&str> = text
        .lines()
        .filter(|line| line.parse::<i32>().is_ok())
        .collect();
    assert!(
        scores == ["1000", "500", "500"] && text.contains("Permission denied"),
        "{text}"
    );
    env.assert_no_container();
}

#[test]
fn a_command_that_runs_out_of_processes_is_told_the_limit() {
    let command = "for n in $(seq 100); do sleep 5 & done; wait";
    check(&["--pids", "32"], command, "the limit of 32 processes");
}

#[test]
fn a_command_that_runs_out_of_time_is_told_the_limit() {
    let Some(env) = TestBox::new() else { return };
    let arguments =
        r#"{"command":"echo begun; trap '' TERM; while :; do sleep 1; done","timeout_seconds":1}"#;
    let text = run(&mut env.here(&["call", "bash", arguments]))
        .expect(1)
        .text();
    assert!(
        text.starts_with("begun\n") && text.contains("longer than the limit of 1 s"),
        "{text}"
    );
    env.assert_no_container();
}

#[test]
fn a_box_that_dies_of_hunger_is_said_to_have() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("choosing whom the kernel kills for memory") {
        return;
    }
    // Small ones, so that none of them is the first to be killed.
    let hogs = "for n in 1 2 3 4 5 6 7 8; do python3 -c 'import time; x = bytearray(12 << 20); time.sleep(30)' & done; wait";
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": format!("touch begun; while [ ! -e go ]; do sleep 0.1; done; {hogs}")}))
        .calls("bash", json!({"command": "echo $((40+2))"}))
        .says("It continued.")
        .start_blocking();
    let started = start(env.task(&model, &["eat"]).args(["--memory", "64m"]));
    env.wait_for("begun");
    let container = env.container();
    let first = docker(&["inspect", "--format", "{{.State.Pid}}", &container])
        .trim()
        .to_owned();
    for entry in std::fs::read_dir("/proc").expect("readable").flatten() {
        let path = entry.path();
        if std::fs::read_to_string(path.join("cgroup"))
            .is_ok_and(|groups| groups.contains(&container))
        {
            let score = if entry.file_name().to_str() == Some(&first) {
                "1000"
            } else {
                "500"
            };
            // A `sleep` may have ended meanwhile.
            let _ = std::fs::write(path.join("oom_score_adj"), score);
        }
    }
    env.write("go", "");
    started.wait().expect(0);
    let requests = model.requests();
    let told = requests[1]["messages"].to_string();
    assert!(
        told.contains("out of memory, its limit is 64")
            && told.contains("A new one takes its place"),
        "{told}"
    );
    assert!(requests[2]["messages"].to_string().contains("42"));
    env.assert_no_container();
}

#[tokio::test]
async fn the_engine_knows_who_ran_out_of_memory() {
    let Some(engine) = super::connect().await else {
        return;
    };
    let Some(_env) = TestBox::new() else { return };
    let patience = Duration::from_secs(5);
    let began = Moment::now();
    let made = |program: &str| {
        let arguments = [
            "run",
            "--detach",
            "--rm",
            "--memory",
            "32m",
            "--memory-swap",
            "32m",
            "--network",
            "none",
            "podbay/workspace",
        ];
        ContainerId(
            docker(&[&arguments[..], &["python3", "-c", program]].concat())
                .trim()
                .to_owned(),
        )
    };
    let hungry = made("x = bytearray(200 << 20)");
    assert!(engine.ran_out_of_memory(&hungry, began, patience).await);
    let well = made("pass");
    assert!(!engine.ran_out_of_memory(&well, began, patience).await);
}

#[test]
fn limits_that_the_engine_does_not_keep_are_said_at_the_start() {
    let Some(env) = TestBox::new() else { return };
    let warnings = [
        "the memory limit is not in force",
        "the limit on processes is not in force",
        "the processor limit is not in force",
    ];
    let read = |engine: Option<&EngineProxy>| {
        let mut call = env.here(&[
            "call",
            "--memory",
            "256m",
            "--pids",
            "100",
            "--cpus",
            "0.5",
            "bash",
            r#"{"command":"true"}"#,
        ]);
        run(call.envs(engine.map(|engine| ("DOCKER_HOST", engine.address()))))
            .expect(0)
            .stderr
    };
    let said = read(None);
    assert!(
        warnings.iter().all(|warning| !said.contains(warning)),
        "{said}"
    );
    // One that takes them all, and then gives more.
    let engine = EngineProxy::start(env.beside("engine"), |request| {
        if let Some((id, "start")) = request.of_container() {
            docker(&[
                "update",
                "--memory",
                "1g",
                "--memory-swap",
                "1g",
                "--pids-limit",
                "1000",
                "--cpus",
                "1",
                id,
            ]);
        }
    });
    let said = read(Some(&engine));
    assert!(
        warnings.iter().all(|warning| said.contains(warning)),
        "{said}"
    );
    env.assert_no_container();
}

#[test]
fn a_file_over_the_limit_ends_the_command() {
    let Some(env) = TestBox::new() else { return };
    let call = |tool: &str, arguments: &serde_json::Value, code: i32| {
        let mut command = env.here(&["call", tool, &arguments.to_string()]);
        run(command.env("PODBAY_SANDBOX_FILE_SIZE", "64KiB"))
            .expect(code)
            .text()
    };
    let bash = |command: &str, code| call("bash", &serde_json::json!({ "command": command }), code);
    assert_eq!(
        bash("head -c 65536 /dev/zero > fits && stat -c %s fits", 0),
        "65536\n"
    );
    let text = bash("exec head -c 65537 /dev/zero > large", 1);
    // Where it was seen at it, it is named for it.
    let words = [
        "it ended as if a file became too large: the sandbox allows 64.0 KiB",
        "a file reached 64.0 KiB, the limit of `sandbox.file_size`",
    ];
    assert!(words.iter().any(|words| text.contains(words)), "{text}");
    assert_eq!(
        std::fs::metadata(env.path("large"))
            .expect("as far as it got")
            .len(),
        65536
    );
    // No other way makes a larger one, and the limit cannot be lifted.
    let script = "truncate -s 1M sparse; fallocate -l 1M reserved; sh -c 'echo x >> large'; ulimit -f unlimited; \
                  python3 -c 'import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (1 << 30, 1 << 30))'; \
                  dd if=/dev/zero of=far bs=1 count=1 seek=1M; cp --sparse=always /usr/bin/bash copy; ulimit -f";
    let text = bash(script, 0);
    assert!(text.ends_with("\n64\n"), "{text}");
    for entry in std::fs::read_dir(env.project())
        .expect("a folder")
        .flatten()
    {
        assert!(
            entry.metadata().expect("a file").len() <= 65536,
            "{}",
            entry.path().display()
        );
    }
    // The guest has the same limit, and lives on.
    let content = |n: usize| serde_json::json!({"path": "written", "content": "x".repeat(n)});
    call("write_file", &content(65536), 0);
    let text = call("write_file", &content(65537), 1);
    assert!(
        text.contains("File too large") && !text.contains("sandbox was ended"),
        "{text}"
    );
    assert_eq!(env.read("written").len(), 65536, "what was there is kept");
    env.assert_no_container();
}

#[test]
fn more_open_files_than_the_engine_may_give_are_refused_by_their_key() {
    let Some(env) = TestBox::new() else { return };
    let most = "1048576";
    let plain = Command::new("docker")
        .args([
            "run",
            "--rm",
            "--network",
            "none",
            "--ulimit",
            &format!("nofile={most}:{most}"),
            "podbay/workspace",
            "true",
        ])
        .output()
        .expect("the `docker` command");
    let mut call = env.here(&["call", "bash", r#"{"command":"ulimit -Hn"}"#]);
    let done = run(call.env("PODBAY_SANDBOX_OPEN_FILES", most));
    if plain.status.success() {
        assert_eq!(done.expect(0).text(), format!("{most}\n"));
    } else {
        done.expect(2).says(&[
            "the setting `sandbox.open_files` cannot be used",
            "so many open files",
            "set it lower",
        ]);
        let mut up = env.here(&["up", "--endpoint", "http://127.0.0.1:9/v1"]);
        run(up.env("PODBAY_SANDBOX_OPEN_FILES", most))
            .expect(2)
            .says(&["`sandbox.open_files`"]);
    }
    // What it may give is in force.
    let mut call = env.here(&["call", "bash", r#"{"command":"ulimit -Hn"}"#]);
    assert_eq!(
        run(call.env("PODBAY_SANDBOX_OPEN_FILES", "1000"))
            .expect(0)
            .text(),
        "1000\n"
    );
    env.assert_no_container();
}

#[test]
fn a_crash_leaves_no_core_file() {
    let Some(env) = TestBox::new() else { return };
    let crash = "sh -c 'kill -SEGV $$'; sh -c 'kill -ABRT $$'; sh -c 'kill -QUIT $$'";
    let script = format!(
        "mkdir here; cd here; ulimit -c unlimited; ulimit -c 1; {crash}; cd /tmp; {crash}; ulimit -Hc; find /tmp /workspace -type f"
    );
    let done = run(&mut env.here(&["sh", "--", "bash", "-c", &script])).expect(0);
    assert_eq!(done.text(), "0\n", "{}", done.stderr);
    let crashed =
        ["Segmentation fault", "Aborted", "Quit"].map(|words| done.stderr.matches(words).count());
    assert_eq!(crashed, [2, 2, 2], "{}", done.stderr);
    env.assert_no_container();

    // Where the machine writes such files into the folder of the crash, they would have come.
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").expect("readable");
    if !pattern.starts_with(['|', '/', '@']) {
        let script = "cd /tmp; ulimit -c unlimited; sh -c 'kill -SEGV $$'; find . -type f | wc -l";
        let arguments = [
            "run",
            "--rm",
            "--network",
            "none",
            "--ulimit",
            "core=-1",
            "--entrypoint",
            "bash",
            "podbay/workspace",
            "-c",
            script,
        ];
        assert_eq!(docker(&arguments), "1\n");
    }
}
