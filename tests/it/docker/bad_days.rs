//! What goes wrong once an engine is there: no image, no model, no room.

use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::test_env::run;

/// Answers every request with the same bytes; `None` never answers.
fn endpoint(answer: Option<(&'static str, &'static str, &'static str)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let Some((status, kind, body)) = answer else {
                silent.push(stream);
                continue;
            };
            let _ = stream.read(&mut [0; 16 * 1024]);
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    format!("http://{address}/v1")
}

/// Runs a task with short patience against an endpoint that is no use.
#[track_caller]
fn no_model(env: &TestBox, endpoint: &str, words: &str) {
    let mut command = env.here(&[
        "run",
        "--output",
        "json",
        "--endpoint",
        endpoint,
        "look around",
    ]);
    for name in [
        "PROBE_TIMEOUT_S",
        "CONNECT_TIMEOUT_S",
        "IDLE_TIMEOUT_S",
        "REQUEST_TIMEOUT_S",
    ] {
        command.env(format!("PODBAY_LLM_{name}"), "2");
    }
    let result = run(command.env("PODBAY_LLM_RETRIES", "1")).expect(6).json();
    assert_eq!(
        (&result["status"], &result["error"]["kind"]),
        (&json!("failed"), &json!("model"))
    );
    let error = &result["error"];
    assert!(
        format!("{} {}", error["message"], error["causes"]).contains(words),
        "`{words}` is missing: {error}"
    );
    assert!(
        !error["hints"].as_array().expect("a list").is_empty(),
        "no remedy: {error}"
    );
    let shown = run(&mut env.podbay(&[
        "sessions",
        "show",
        result["session"].as_str().expect("an id"),
    ]))
    .expect(0)
    .text();
    assert!(
        shown.contains("look around") && shown.contains("failed"),
        "{shown}"
    );
}

#[test]
fn an_environment_without_a_model_does_not_stay() {
    let Some(env) = TestBox::new() else { return };
    let up = |endpoint: &str| {
        run(env
            .here(&["up", "--model", "scripted", "--endpoint", endpoint])
            .env("PODBAY_LLM_RETRIES", "0"))
    };
    up("http://127.0.0.1:9/v1").expect(6);
    env.assert_no_container();
    // One that was up before stays.
    let model = ScriptedModel::new().start_blocking();
    up(&model.endpoint()).expect(0);
    up("http://127.0.0.1:9/v1").expect(6);
    assert_eq!(env.boxes().len(), 1);
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

#[test]
fn an_endpoint_that_is_no_use_is_said_with_a_remedy() {
    let Some(env) = TestBox::new() else { return };
    no_model(
        &env,
        "http://127.0.0.1:9/v1",
        "cannot reach the model server",
    );
    no_model(
        &env,
        &endpoint(Some((
            "200 OK",
            "text/html",
            "<!DOCTYPE html><h1>It works!</h1>",
        ))),
        "a web page",
    );
    no_model(
        &env,
        &endpoint(Some((
            "401 Unauthorized",
            "application/json",
            r#"{"error":{"message":"no key"}}"#,
        ))),
        "refused the key",
    );
    no_model(
        &env,
        &endpoint(Some(("500 Internal Server Error", "text/plain", "oops"))),
        "status 500",
    );
    no_model(&env, &endpoint(None), "did not answer within 2 s");
    env.assert_no_container();
}

#[test]
fn a_model_that_fails_in_the_middle_of_a_task_ends_it_with_what_was_done() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls("write_file", json!({"path": "a.txt", "content": "kept"}))
        .dies_mid_answer("I was about to")
        .start_blocking();
    let mut command = env.task(&model, &["write"]);
    let result = run(command.env("PODBAY_LLM_RETRIES", "0")).expect(6).json();
    assert_eq!(
        (&result["tool_calls"], &result["changes"]["created"]),
        (&json!(1), &json!(["a.txt"]))
    );
    assert_eq!(env.read("a.txt"), "kept");
    let shown = run(&mut env.podbay(&["sessions", "show"])).expect(0).text();
    assert!(
        shown.contains("I was about to"),
        "what was shown is in the log: {shown}"
    );
    env.assert_no_container();
}

#[test]
fn an_image_that_does_not_exist_is_said_with_a_remedy() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    let mut command = env.task(
        &model,
        &["--image", "podbay-test.invalid/nothing:1", "look around"],
    );
    let result = run(command.env("PODBAY_ENGINE_PULL", "false"))
        .expect(5)
        .json();
    assert!(
        result["error"]
            .to_string()
            .contains("podbay-test.invalid/nothing:1"),
        "{}",
        result["error"]
    );
    assert!(
        !result["error"]["hints"]
            .as_array()
            .expect("a list")
            .is_empty()
    );
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn a_folder_that_cannot_be_written_can_be_read() {
    let Some(env) = TestBox::new() else { return };
    env.write("a.txt", "text\n");
    std::fs::set_permissions(env.project(), std::fs::Permissions::from_mode(0o555)).expect("root");
    let model = ScriptedModel::new()
        .calls("write_file", json!({"path": "b.txt", "content": "x"}))
        .calls("read_file", json!({"path": "a.txt"}))
        .says("It cannot be written.")
        .start_blocking();
    let result = run(&mut env.task(&model, &["write"])).expect(0).json();
    assert!(
        result["warnings"].to_string().contains("not writable"),
        "{}",
        result["warnings"]
    );
    let requests = model.requests();
    let told = requests[1]["messages"].to_string();
    assert!(
        told.contains("b.txt") && told.contains("ermission denied"),
        "{told}"
    );
    assert!(requests[2]["messages"].to_string().contains("1\\ttext"));
    std::fs::set_permissions(env.project(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    env.assert_no_container();
}

#[test]
fn a_model_that_is_slow_to_say_what_it_is_uses_up_the_time_of_the_task() {
    let Some(env) = TestBox::new() else { return };
    let silent = endpoint(None);
    let mut command = env.here(&[
        "run",
        "--output",
        "json",
        "--endpoint",
        &silent,
        "--timeout",
        "3s",
        "look around",
    ]);
    let result = run(command.env("PODBAY_LLM_PROBE_TIMEOUT_S", "600"))
        .expect(3)
        .json();
    assert_eq!(
        (&result["status"], &result["limit"]),
        (&json!("limit"), &json!("time"))
    );
    env.assert_no_container();
}
