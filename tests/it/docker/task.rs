//! A whole task: a scripted model outside, its calls in a real sandbox.

use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use serde_json::Value;
use serde_json::json;

use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::scripted_model::Running;
use crate::support::test_env::is_root;
use crate::support::test_env::owner;
use crate::support::test_env::run;
use crate::support::test_env::start;

/// The keys of the result that scripts depend on, in their order.
const KEYS: [&str; 23] = [
    "status",
    "exit_code",
    "session",
    "response",
    "model",
    "turns",
    "tool_calls",
    "limit",
    "usage",
    "changes",
    "review",
    "applied",
    "may_run",
    "may_run_known",
    "git",
    "commits",
    "network",
    "plan",
    "agents",
    "denied",
    "warnings",
    "error",
    "duration_ms",
];

#[test]
fn a_task_changes_the_folder_reports_and_leaves_nothing_behind() {
    let Some(env) = TestBox::new() else { return };
    env.write("README.md", "# Notes\n");
    let model = ScriptedModel::new()
        .calls("write_file", json!({"path": "made/by.txt", "content": "one\n"}))
        .calls("bash", json!({"command": "echo two >> made/by.txt; mkdir -p deep/er; echo x > deep/er/y; id -u"}))
        .calls("read_file", json!({"path": "made/by.txt"}))
        .says("It is done.")
        .start_blocking();
    // The task is an argument, so an input that nobody ends must not be waited for.
    let started = start(env.task(&model, &["write two lines"]).stdin(Stdio::piped()));
    let done = started.wait().expect(0);
    let result = done.json();
    assert_eq!(
        result
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect::<Vec<_>>(),
        KEYS
    );
    assert_eq!(
        (&result["status"], &result["exit_code"]),
        (&json!("completed"), &json!(0))
    );
    assert_eq!(
        (&result["response"], &result["model"]),
        (&json!("It is done."), &json!("scripted"))
    );
    assert_eq!(
        (&result["turns"], &result["tool_calls"]),
        (&json!(4), &json!(3))
    );
    assert_eq!(
        result["changes"],
        json!({"created": ["deep/er/y", "made/by.txt"], "modified": [], "deleted": []})
    );
    for key in ["limit", "error", "review"] {
        assert!(result[key].is_null(), "{key}: {}", result[key]);
    }
    assert!(!done.stderr.contains('\x1b'), "{}", done.stderr);

    assert_eq!(env.read("made/by.txt"), "one\ntwo\n");
    for name in ["made", "made/by.txt", "deep", "deep/er", "deep/er/y"] {
        let facts = std::fs::metadata(env.path(name)).expect("made");
        assert_eq!((facts.uid(), facts.gid()), owner(), "{name}");
    }
    let requests = model.requests();
    let results: Vec<&str> = requests[3]["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .filter(|message| message["role"] == "tool")
        .filter_map(|message| message["content"].as_str())
        .collect();
    assert_eq!(
        results,
        [
            "created made/by.txt (4 bytes)",
            &format!("{}\n", owner().0),
            "1\tone\n2\ttwo\n"
        ]
    );
    model.assert_append_only();
    env.assert_no_container();

    let shown = run(&mut env.podbay(&[
        "sessions",
        "show",
        result["session"].as_str().expect("an id"),
    ]))
    .expect(0)
    .text();
    for words in [
        "write two lines",
        "mkdir -p deep/er",
        &owner().0.to_string(),
        "It is done.",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let listed = run(&mut env.podbay(&["sessions", "list", "--json"]))
        .expect(0)
        .json();
    assert_eq!(
        (
            &listed["sessions"][0]["session"],
            &listed["sessions"][0]["status"]
        ),
        (&result["session"], &json!("completed"))
    );
}

#[test]
fn what_is_piped_in_is_added_to_the_task() {
    let Some(env) = TestBox::new() else { return };
    let ask = |stdin: Stdio, feed: Option<&str>| {
        let model = ScriptedModel::new().says("Done.").start_blocking();
        let mut command = env.task(&model, &["explain"]);
        let mut task = start(command.stdin(stdin));
        if let Some(text) = feed {
            task.feed(text.as_bytes().to_vec());
        }
        let done = task.wait().expect(0);
        (model.requests()[0]["messages"].to_string(), done)
    };
    let (said, done) = ask(Stdio::piped(), Some("error: disk full\n"));
    assert!(
        said.contains("explain") && said.contains("error: disk full"),
        "{said}"
    );
    let done = done.says(&["added to the task: 17 bytes of the standard input"]);
    // What the log has as the task is what was typed.
    let session = done.json()["session"].as_str().expect("an id").to_owned();
    let listed = run(&mut env.podbay(&["sessions", "list"])).expect(0).text();
    assert!(
        listed.contains(&session) && listed.contains("explain"),
        "{listed}"
    );
    // Whoever holds a pipe open and writes nothing into it, such as a CI, does no harm.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let (said, done) = ask(reader.into(), None);
    drop(writer);
    assert!(!said.contains("standard input"), "{said}");
    done.says(&["it is not read"]);
    let (said, done) = ask(Stdio::null(), None);
    assert!(!said.contains("standard input"), "{said}");
    assert!(!done.stderr.contains("standard input"), "{}", done.stderr);
}

#[test]
fn what_is_done_without_a_session_is_recorded_and_runs_are_measured() {
    let Some(env) = TestBox::new() else { return };
    run(&mut env.here(&["call", "list_directory", "{}"])).expect(0);
    run(&mut env.here(&["sh", "--", "sh", "-c", "exit 3"])).expect(3);
    let model = ScriptedModel::new().says("Done.").start_blocking();
    let result = run(&mut env.task(&model, &["look"])).expect(0).json();
    let lines = |name: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(env.state().join(name)).expect("written");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    };
    let events = lines("events.jsonl");
    let ended: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "command_ended")
        .map(|event| (event["command"].clone(), event["exit_code"].clone()))
        .collect();
    assert_eq!(
        ended,
        [(json!("call"), json!(0)), (json!("sh"), json!(3))],
        "{events:?}"
    );
    // Of each event of a session it is known which that was.
    let others = events.iter().filter(|event| {
        !event["type"]
            .as_str()
            .is_some_and(|kind| kind.starts_with("command_"))
    });
    for event in others {
        assert_eq!(event["session"], result["session"], "{event}");
    }
    let metrics = lines("metrics.jsonl");
    assert_eq!(metrics.len(), 1, "{metrics:?}");
    for key in [
        "session",
        "model",
        "status",
        "exit_code",
        "turns",
        "tool_calls",
        "usage",
    ] {
        assert_eq!(metrics[0][key], result[key], "{key}: {metrics:?}");
    }
    assert!(
        metrics[0]["sandbox_ms"].as_u64().is_some_and(|ms| ms > 0),
        "{metrics:?}"
    );
    let stats = run(&mut env.here(&["stats", "--json"])).expect(0).json();
    assert_eq!(
        [&stats["runs"], &stats["requests"], &stats["usage"]],
        [&json!(1), &json!(1), &result["usage"]],
        "{stats}"
    );
}

#[test]
fn a_package_manager_without_a_network_fails_at_once_and_says_why() {
    let Some(env) = TestBox::new() else { return };
    let script = "printenv PIP_RETRIES npm_config_fetch_retries CARGO_NET_RETRY";
    assert_eq!(
        run(&mut env.here(&["sh", "--", "sh", "-c", script]))
            .expect(0)
            .text(),
        "0\n0\n0\n"
    );
    let fetch = json!({"command": "curl -sS https://example.org"}).to_string();
    let text = run(&mut env.here(&["call", "bash", &fetch]))
        .expect(1)
        .text();
    assert!(text.contains("the sandbox has no network"), "{text}");
}

#[test]
fn events_come_a_line_each_and_the_result_last() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls("list_directory", json!({}))
        .says("Nothing here.")
        .start_blocking();
    let mut command = env.here(&[
        "run",
        "--output",
        "jsonl",
        "--model",
        "scripted",
        "--endpoint",
    ]);
    let done = run(command.arg(model.endpoint()).arg("-").stdin(Stdio::null())).expect(2);
    assert!(
        done.text().contains(r#""type":"result""#),
        "an empty task from the input: {}",
        done.text()
    );

    let mut command = env.here(&[
        "run",
        "--output",
        "jsonl",
        "--model",
        "scripted",
        "--endpoint",
    ]);
    let mut started = start(command.arg(model.endpoint()).arg("-").stdin(Stdio::piped()));
    started.feed(b"look around".to_vec());
    let text = started.wait().expect(0).text();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let kinds: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["type"].as_str())
        .collect();
    assert_eq!(kinds.len(), lines.len());
    let mut at = kinds.iter();
    for kind in [
        "session_started",
        "sandbox_started",
        "user_message",
        "call_started",
        "call_finished",
        "run_finished",
        "result",
    ] {
        assert!(
            at.any(|&found| found == kind),
            "{kind} is missing or out of order: {kinds:?}"
        );
    }
    assert_eq!(lines.last().expect("a line")["status"], "completed");
}

#[test]
fn a_project_of_root_works_with_a_warning_and_strict_refuses_it() {
    let Some(env) = TestBox::new() else { return };
    if !is_root("a project of root's") {
        return;
    }
    std::os::unix::fs::chown(env.project(), Some(0), Some(0)).expect("root");
    let done = run(&mut env.here(&[
        "sh",
        "--",
        "sh",
        "-c",
        "id -u; grep CapEff /proc/self/status; touch made",
    ]))
    .expect(0);
    assert_eq!(done.text(), "0\nCapEff:\t0000000000000000\n");
    assert!(done.stderr.contains("belongs to root"), "{}", done.stderr);
    run(&mut env.here(&["call", "--strict", "list_directory", "{}"]))
        .expect(2)
        .says(&["--strict", "chown"]);
    env.assert_no_container();
}

#[test]
fn each_kind_of_work_is_sampled_as_the_settings_say() {
    let Some(env) = TestBox::new() else { return };
    let asked = |command: &mut std::process::Command, model: &Running, typed: &str| {
        command
            .env("PODBAY_LLM_TEMPERATURE", "0.5")
            .env("PODBAY_LLM_SAMPLING_EDIT_TEMPERATURE", "0.125");
        let mut started = start(
            command
                .env("PODBAY_LLM_SAMPLING_CHAT_TOP_P", "0.75")
                .stdin(Stdio::piped()),
        );
        started.feed(typed.as_bytes().to_vec());
        started.wait().expect(0);
        let request = model.requests().remove(0);
        (request["temperature"].clone(), request["top_p"].clone())
    };
    let model = ScriptedModel::new().says("Done.").start_blocking();
    assert_eq!(
        asked(&mut env.task(&model, &["look"]), &model, ""),
        (json!(0.125), json!(null)),
        "unattended"
    );
    let model = ScriptedModel::new().says("Done.").start_blocking();
    let mut chat = env.here(&["chat", "--model", "scripted", "--endpoint"]);
    assert_eq!(
        asked(chat.arg(model.endpoint()), &model, "hello\n"),
        (json!(0.5), json!(0.75)),
        "in a talk"
    );
}

#[test]
fn a_run_that_has_to_wait_for_others_says_so_once() {
    let Some(env) = TestBox::new() else { return };
    for n_busy in [1, 0] {
        let model = ScriptedModel::new()
            .slots(1, Some(n_busy))
            .calls("bash", json!({"command": "true"}))
            .says("Done.")
            .start_blocking();
        let result = run(&mut env.task(&model, &["work"])).expect(0).json();
        let n_said = result["warnings"]
            .to_string()
            .matches("all slots of the model server are busy")
            .count();
        assert_eq!(n_said as u64, n_busy, "{result:#}");
    }
    env.assert_no_container();
}

#[test]
fn each_limit_is_named_in_the_result_and_ends_a_run_with_its_code() {
    let Some(env) = TestBox::new() else { return };
    let works = || {
        ScriptedModel::new()
            .calls("bash", json!({"command": "true"}))
            .calls("bash", json!({"command": "id"}))
            .says("So far.")
    };
    let circles = || {
        (0..20).fold(ScriptedModel::new(), |model, _| {
            model.calls("read_file", json!({"path": "no.txt"}))
        })
    };
    let price = [
        ("PODBAY_LLM_PRICE_PROMPT", "1000"),
        ("PODBAY_LLM_PRICE_COMPLETION", "1000"),
    ];
    let full = || {
        ScriptedModel::new()
            .calls("bash", json!({"command": "true"}))
            .exceeds_context(9000, 8192)
    };
    for (limit, flags, vars, model) in [
        ("tokens", &["--max-tokens", "600"][..], &[][..], works()),
        ("cost", &["--max-cost", "0.5"], &price, works()),
        ("stuck", &[], &[], circles()),
        ("context", &[], &[], full()),
        ("turns", &["--max-turns", "2"], &[], works()),
    ] {
        let model = model.start_blocking();
        let done = run(env
            .task(&model, flags)
            .arg("work")
            .envs(vars.iter().copied()))
        .expect(3);
        let result = done.json();
        assert_eq!(
            (&result["status"], &result["limit"], &result["exit_code"]),
            (&json!("limit"), &json!(limit), &json!(3)),
            "{result:#}"
        );
    }
    // Without a price nobody knows when to end, and nothing is done; the log is named by what shows
    // it.
    let model = works().start_blocking();
    let done = run(env
        .task(&model, &["--max-cost", "0.5", "work"])
        .env("PODBAY_SANDBOX_CHANGES", "live"))
    .expect(2);
    let session = done.json()["session"]
        .as_str()
        .expect("a session")
        .to_owned();
    let done = done.says(&["hint: "]);
    done.says(&[&format!("log: `podbay sessions show {session}`")]);
    env.assert_no_container();
}
