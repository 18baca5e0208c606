//! Ctrl-C and SIGTERM: what they stop, and what is left.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use serde_json::json;

use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::guest::is_running;
use crate::support::guest::marker;
use crate::support::test_env::start;
use crate::support::test_env::within;

#[test]
fn one_ctrl_c_ends_the_call_and_the_run_goes_on() {
    let Some(env) = TestBox::new() else { return };
    let sleep = marker();
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": format!("touch begun; sleep {sleep}")}),
        )
        .calls("bash", json!({"command": "echo still here"}))
        .says("I was stopped once.")
        .start_blocking();
    let run = start(&mut env.task(&model, &["wait"]));
    env.wait_for("begun");
    run.signal(Signal::SIGINT);
    let result = run.wait().expect(0).json();
    assert_eq!(result["response"], "I was stopped once.");
    let requests = model.requests();
    let told = requests[1]["messages"].to_string();
    assert!(told.contains("cancelled"), "{told}");
    assert!(requests[2]["messages"].to_string().contains("still here"));
    assert!(!is_running(&sleep));
    env.assert_no_container();
}

#[test]
fn a_second_ctrl_c_ends_the_run() {
    let Some(env) = TestBox::new() else { return };
    let command = "trap '' TERM INT; touch begun; while :; do sleep 1; done";
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command }))
        .start_blocking();
    let run = start(&mut env.task(&model, &["wait"]));
    env.wait_for("begun");
    run.signal(Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(200));
    run.signal(Signal::SIGINT);
    let result = run.wait().expect(130).json();
    assert_eq!(
        (&result["status"], &result["exit_code"]),
        (&json!("interrupted"), &json!(130))
    );
    assert_eq!(model.requests().len(), 1);
    env.assert_no_container();
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_a_command_that_takes_its_time() {
    let Some(env) = TestBox::new() else { return };
    let command = "trap '' TERM INT; touch begun; while :; do sleep 1; done";
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command }))
        .start_blocking();
    for arguments in [
        &[
            "run",
            "--model",
            "scripted",
            "--endpoint",
            &model.endpoint(),
            "wait",
        ][..],
        &["sh", "--", "sh", "-c", command],
    ] {
        // Whoever waited for it would wait longer than this test does.
        let run = start(env.here(arguments).env("PODBAY_SANDBOX_GRACE", "30m"));
        env.wait_for("begun");
        std::fs::remove_file(env.path("begun")).expect("there");
        run.signal(Signal::SIGINT);
        std::thread::sleep(Duration::from_millis(200));
        run.signal(Signal::SIGINT);
        run.wait().expect(130);
        env.assert_no_container();
    }
}

#[test]
fn a_second_sigterm_does_not_wait_for_a_command_and_the_result_is_printed_all_the_same() {
    let Some(env) = TestBox::new() else { return };
    let command = "trap '' TERM INT; touch begun; while :; do sleep 1; done";
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command }))
        .start_blocking();
    let run = start(
        env.task(&model, &["wait"])
            .env("PODBAY_SANDBOX_GRACE", "30m"),
    );
    env.wait_for("begun");
    run.signal(Signal::SIGTERM);
    std::thread::sleep(Duration::from_millis(300));
    run.signal(Signal::SIGTERM);
    let result = run.wait().expect(143).json();
    assert_eq!(
        (&result["status"], &result["exit_code"]),
        (&json!("interrupted"), &json!(143))
    );
    env.assert_no_container();
}

#[test]
fn sigterm_and_a_hang_up_end_the_run_cleanly_and_the_log_says_the_same() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let Some(env) = TestBox::new() else { return };
        let sleep = marker();
        let model = ScriptedModel::new()
            .calls(
                "bash",
                json!({"command": format!("touch begun; sleep {sleep}")}),
            )
            .start_blocking();
        let task = start(&mut env.task(&model, &["wait"]));
        env.wait_for("begun");
        task.signal(signal);
        let result = task.wait().expect(code).json();
        assert_eq!(
            (&result["status"], &result["exit_code"]),
            (&json!("interrupted"), &json!(code))
        );
        assert!(!is_running(&sleep));
        env.assert_no_container();
        let events = std::fs::read_to_string(env.state().join("events.jsonl")).expect("a log");
        let last: Value =
            serde_json::from_str(events.lines().last().expect("a line")).expect("JSON");
        assert_eq!(
            (&last["type"], &last["exit_code"]),
            (&json!("run_finished"), &json!(code)),
            "{last}"
        );
    }
}

#[test]
fn ctrl_c_while_the_model_speaks_ends_the_run() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .drips(&"word ".repeat(2000), 5, Duration::from_millis(30))
        .start_blocking();
    let run = start(&mut env.task(&model, &["speak"]));
    assert!(crate::support::test_env::until(|| !model
        .requests()
        .is_empty()));
    std::thread::sleep(Duration::from_millis(200));
    run.signal(Signal::SIGINT);
    let result = run.wait().expect(130).json();
    assert_eq!(result["status"], "interrupted");
    env.assert_no_container();
}

#[test]
fn a_command_of_the_persons_ends_with_us() {
    let Some(env) = TestBox::new() else { return };
    for (signal, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGINT, 130),
        (Signal::SIGKILL, 137),
    ] {
        let sleep = marker();
        let sh = start(&mut env.here(&[
            "sh",
            "--",
            "sh",
            "-c",
            &format!("touch begun; sleep {sleep}"),
        ]));
        env.wait_for("begun");
        std::fs::remove_file(env.path("begun")).expect("there");
        sh.signal(signal);
        sh.wait().expect(code);
        assert!(within(Duration::from_secs(20), || !is_running(&sleep)));
        env.assert_no_container();
    }
}
