//! A sandbox that ends under us is made anew; the model is told, and nothing stays.

use std::time::Duration;
use std::time::Instant;

use nix::sys::signal::Signal;
use serde_json::json;

use super::signal_all;
use super::test_box::TestBox;
use super::test_box::alone_with_gc;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::test_env::run;
use crate::support::test_env::start;

#[test]
fn a_removed_box_is_made_anew_and_the_model_told() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "touch /tmp/here; touch begun; sleep 60"}),
        )
        .calls("bash", json!({"command": "ls /tmp/here; echo again"}))
        .says("It continued.")
        .start_blocking();
    let started = start(&mut env.task(&model, &["wait"]));
    env.wait_for("begun");
    docker(&["rm", "--force", &env.container()]);
    let result = started.wait().expect(0).json();
    assert_eq!(result["response"], "It continued.");
    let requests = model.requests();
    let told = requests[1]["messages"].to_string();
    assert!(
        told.contains("the sandbox was ended") && told.contains("A new one takes its place"),
        "{told}"
    );
    let again = requests[2]["messages"].to_string();
    assert!(
        again.contains("again") && again.contains("No such file"),
        "{again}"
    );
    let shown = run(&mut env.podbay(&["sessions", "show"])).expect(0).text();
    assert!(shown.contains("the sandbox ended"), "{shown}");
    env.assert_no_container();
}

/// Issue 6: what the model has read outlives the sandbox that it read it in.
#[test]
fn what_was_read_in_a_box_that_is_lost_is_known_in_the_next() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls(
            "write_file",
            json!({"path": "notes.md", "content": "one\n"}),
        )
        .calls("bash", json!({"command": "touch begun; sleep 60"}))
        .calls(
            "write_file",
            json!({"path": "notes.md", "content": "two\n"}),
        )
        .says("It continued.")
        .start_blocking();
    let started = start(&mut env.task(&model, &["wait"]));
    env.wait_for("begun");
    std::fs::write(env.path("notes.md"), "somebody's\n").expect("ours");
    docker(&["rm", "--force", &env.container()]);
    assert_eq!(started.wait().expect(0).json()["response"], "It continued.");
    let told = model.requests()[3]["messages"].to_string();
    assert!(
        told.contains("notes.md: it has changed since you read it"),
        "{told}"
    );
    assert_eq!(env.read("notes.md"), "somebody's\n");
    env.assert_no_container();
}

#[test]
fn a_stopped_box_is_made_anew_and_the_model_told() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "touch begun; sleep 60"}))
        .calls("bash", json!({"command": "echo $((40+2))"}))
        .says("It continued.")
        .start_blocking();
    let started = start(&mut env.task(&model, &["wait"]));
    env.wait_for("begun");
    let begun = Instant::now();
    docker(&["stop", "--time", "600", &env.container()]);
    assert!(
        begun.elapsed() < Duration::from_mins(5),
        "its PID 1 obeys the engine: {:?}",
        begun.elapsed()
    );
    assert_eq!(started.wait().expect(0).json()["response"], "It continued.");
    let requests = model.requests();
    let told = requests[1]["messages"].to_string();
    assert!(told.contains("A new one takes its place"), "{told}");
    assert!(requests[2]["messages"].to_string().contains("42"));
    env.assert_no_container();
}

#[test]
fn a_box_that_keeps_ending_is_given_up() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "touch begun1; sleep 60"}))
        .calls("bash", json!({"command": "touch begun2; sleep 60"}))
        .calls("bash", json!({"command": "touch begun3"}))
        .start_blocking();
    let mut command = env.task(&model, &["wait"]);
    let started = start(command.env("PODBAY_SANDBOX_RESTARTS", "1"));
    for name in ["begun1", "begun2"] {
        env.wait_for(name);
        docker(&["kill", &env.container()]);
    }
    let result = started.wait().expect(5).json();
    assert_eq!(
        (&result["status"], &result["error"]["kind"]),
        (&json!("failed"), &json!("sandbox"))
    );
    assert!(
        result["error"]
            .to_string()
            .contains("ended 2 times within 10m"),
        "{}",
        result["error"]
    );
    assert!(!env.path("begun3").exists());
    env.assert_no_container();
}

#[test]
fn a_paused_box_outlives_its_controller_only_until_the_next_look() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "touch begun; sleep 60"}))
        .start_blocking();
    let started = start(&mut env.task(&model, &["wait"]));
    env.wait_for("begun");
    let container = env.container();
    docker(&["pause", &container]);
    started.signal(Signal::SIGKILL);
    started.wait();
    assert_eq!(env.boxes(), [container]);
    let _alone = alone_with_gc();
    run(&mut env.podbay(&["gc"])).expect(0);
    env.assert_no_container();
}

/// Runs a command that attacks what runs it, then ordinary ones: it may cost so many sandboxes, the
/// model knows of each, and then all is well.
fn attack(command: &str, n_boxes: usize) {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command, "timeout_seconds": 3 }))
        .calls("bash", json!({"command": "sleep 0.2; echo $((40+2))"}))
        .calls("bash", json!({"command": "echo $((41+1))"}))
        .calls("bash", json!({"command": "echo $((40+2))"}))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["attack"])).expect(0);
    let requests = model.requests();
    let told = |n: usize| {
        requests[n]["messages"]
            .as_array()
            .and_then(|all| all.last())
            .expect("messages")["content"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    let all: Vec<String> = (1..5).map(told).collect();
    assert_eq!(
        all.iter()
            .filter(|told| told.contains("A new one takes its place"))
            .count(),
        n_boxes,
        "{all:#?}"
    );
    assert_eq!(all[3], "42\n", "{all:#?}");
    env.assert_no_container();
}

#[test]
fn a_command_that_kills_everything_loses_its_box_and_no_more() {
    attack(&format!("{}; sleep 30", signal_all(9)), 1);
}

/// Whoever kills everything knows of it at once, so that the call after it works.
#[test]
fn the_call_after_one_that_killed_everything_works() {
    let kill = signal_all(9);
    let attacks = [
        kill.clone(),
        format!("{kill}; sleep 30"),
        format!("setsid {kill} & sleep 30"),
        format!("exec {kill}"),
    ];
    let Some(env) = TestBox::new() else { return };
    let mut model = ScriptedModel::new();
    for attack in &attacks {
        model = model
            .calls("bash", json!({"command": attack, "timeout_seconds": 10}))
            .calls("bash", json!({"command": "echo $((40+2))"}));
    }
    let model = model.says("Done.").start_blocking();
    let mut task = env.task(&model, &["attack"]);
    run(task.env("PODBAY_SANDBOX_RESTARTS", "10")).expect(0);
    let last = model.requests().last().expect("requests")["messages"].clone();
    let results = last
        .as_array()
        .expect("a list")
        .iter()
        .filter(|message| message["role"] == "tool");
    let told: Vec<&str> = results
        .map(|message| message["content"].as_str().expect("text"))
        .collect();
    assert_eq!(told.len(), 2 * attacks.len(), "{told:#?}");
    for pair in told.chunks(2) {
        assert!(
            pair[0].contains("killed from inside the sandbox. A new one takes its place"),
            "{told:#?}"
        );
        assert_eq!(pair[1], "42\n", "{told:#?}");
    }
    env.assert_no_container();
}

#[test]
fn a_command_that_stops_everything_does_not_stop_us() {
    // What is stopped is woken.
    attack(&format!("{}; sleep 30", signal_all(19)), 0);
}

#[test]
fn a_box_that_answers_no_more_is_given_up() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "touch begun; sleep 60", "timeout_seconds": 1}),
        )
        .calls("bash", json!({"command": "echo $((40+2))"}))
        .says("It continued.")
        .start_blocking();
    let started = start(&mut env.task(&model, &["wait"]));
    env.wait_for("begun");
    docker(&["pause", &env.container()]);
    started.wait().expect(0);
    let requests = model.requests();
    let told = requests[1]["messages"].to_string();
    assert!(
        told.contains("limit of 1 s")
            && told.contains("did not answer")
            && told.contains("A new one takes its place"),
        "{told}"
    );
    assert!(requests[2]["messages"].to_string().contains("42"));
    env.assert_no_container();
}
