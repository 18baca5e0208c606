//! What the tests of greedy commands share: one such command and a small one after it in one sandbox,
//! and a project on a small disk.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use serde_json::json;

use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::test_env::owner;
use crate::support::test_env::run;

/// Seconds that a greedy command gets.
const TIMEOUT: u64 = 20;

/// Runs a greedy command and then a small one in one sandbox. Returns what the model read of the first.
#[track_caller]
pub(super) fn greedy(
    env: &TestBox,
    flags: &[&str],
    settings: &[(&str, &str)],
    command: &str,
) -> String {
    greedy_for(TIMEOUT, env, flags, settings, command)
}

/// The same for a command that gets `timeout` seconds.
#[track_caller]
pub(super) fn greedy_for(
    timeout: u64,
    env: &TestBox,
    flags: &[&str],
    settings: &[(&str, &str)],
    command: &str,
) -> String {
    let text = told(timeout, env, flags, settings, command);
    assert!(!text.contains("sandbox_lost"), "{text}");
    result(timeout, env, &text)
}

/// The same where the kernel may take the guest as well; that is tried again, a few times.
#[track_caller]
pub(super) fn greedy_that_may_take_all(env: &TestBox, flags: &[&str], command: &str) -> String {
    let told = (0..5)
        .map(|_| told(TIMEOUT, env, flags, &[], command))
        .find(|text| !text.contains("sandbox_lost"));
    result(
        TIMEOUT,
        env,
        &told.expect("one of five that the guest outlived"),
    )
}

/// Has a model run the command, and another one behind it; returns all events of the run.
#[track_caller]
fn told(
    timeout: u64,
    env: &TestBox,
    flags: &[&str],
    settings: &[(&str, &str)],
    command: &str,
) -> String {
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": command, "timeout_seconds": timeout}),
        )
        .calls(
            "bash",
            json!({"command": "echo $((40+2)); cat /proc/self/status | grep -c ^Threads"}),
        )
        .says("Done.")
        .start_blocking();
    let mut task = env.here(&[
        "run",
        "--output",
        "jsonl",
        "--model",
        "scripted",
        "--endpoint",
    ]);
    task.arg(model.endpoint())
        .args(flags)
        .args(["be greedy"])
        .envs(settings.iter().copied());
    run(&mut task).expect(0).text()
}

/// Returns what came of the command, once the one behind it was found to work.
#[track_caller]
fn result(timeout: u64, env: &TestBox, text: &str) -> String {
    let ended: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"))
        .filter(|event| event["type"] == "call_finished")
        .collect();
    assert_eq!(ended.len(), 2, "{text}");
    let duration = ended[0]["duration_ms"].as_u64().expect("a number");
    assert!(
        duration <= (timeout + 60) * 1000,
        "{duration} ms: {}",
        ended[0]["result"]
    );
    // Where the disk is full it also reads that it could write nothing.
    let next = ended[1]["result"].as_str().expect("text");
    assert!(
        next.starts_with("42\n1\n"),
        "the next call works in the same sandbox: {next}"
    );
    env.assert_no_container();
    ended[0]["result"].as_str().expect("text").to_owned()
}

#[track_caller]
pub(super) fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "`{word}` is missing: {text}");
    }
}

/// The project on a small file system of its own: on the machine's disk others write too.
pub(super) struct Small(PathBuf);

impl Small {
    pub(super) fn over(env: &TestBox, options: &str) -> Self {
        let (uid, gid) = owner();
        let options = format!("{options},mode=0755,uid={uid},gid={gid}");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "none"])
            .arg(env.project())
            .status();
        assert!(done.expect("the `mount` command").success());
        Self(env.project())
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
