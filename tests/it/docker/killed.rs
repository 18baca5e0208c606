//! A controller that is killed takes everything with it, and what was done is on disk.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::guest::is_running;
use crate::support::guest::marker;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

#[test]
fn killing_the_controller_ends_command_and_box_and_loses_nothing() {
    let Some(env) = TestBox::new() else { return };
    let sleep = marker();
    let model = ScriptedModel::new()
        .calls("write_file", json!({"path": "first.txt", "content": "kept\n"}))
        .calls("bash", json!({"command": format!("touch begun; setsid sleep {sleep} & sleep {sleep}")}))
        .start_blocking();
    let controller = start(&mut env.task(&model, &["wait a minute"]));
    env.wait_for("begun");
    assert_eq!(env.containers().len(), 1);
    assert!(is_running(&sleep));
    controller.signal(Signal::SIGKILL);
    let gone = within(Duration::from_secs(5), || !is_running(&sleep) && env.containers().is_empty());
    assert!(gone, "command: {}, containers: {:?}", is_running(&sleep), env.containers());
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
