//! A command that meets a limit is told which one, and how large it is.

use super::test_box::TestBox;
use crate::support::test_env::run;

#[track_caller]
fn check(flags: &[&str], command: &str, expected: &str) {
    let Some(env) = TestBox::new() else { return };
    let arguments = serde_json::json!({ "command": command, "timeout_seconds": 20 }).to_string();
    let mut call = env.here(&["call"]);
    let text = run(call.args(flags).args(["bash", &arguments])).expect(1).text();
    assert!(text.contains(expected), "{text}");
    env.assert_no_container();
}

#[test]
fn a_command_that_runs_out_of_memory_is_told_the_limit() {
    check(&["--memory", "64m"], "python3 -c 'x = bytearray(200 << 20)'; echo after", "out of memory, the limit of the sandbox is 64.0 MiB");
}

#[test]
fn a_command_that_runs_out_of_processes_is_told_the_limit() {
    let command = "for n in $(seq 100); do sleep 5 & done; wait";
    check(&["--pids", "32"], command, "the limit of 32 processes");
}

#[test]
fn a_command_that_runs_out_of_time_is_told_the_limit() {
    let Some(env) = TestBox::new() else { return };
    let arguments = r#"{"command":"echo begun; trap '' TERM; while :; do sleep 1; done","timeout_seconds":1}"#;
    let text = run(&mut env.here(&["call", "bash", arguments])).expect(1).text();
    assert!(text.starts_with("begun\n") && text.contains("longer than the limit of 1 s"), "{text}");
    env.assert_no_container();
}
