//! Why a call was executed, or not: told as an event, and kept in the session's log and in
//! `events.jsonl`.

use std::path::Path;

use podbay::event::Answer;
use podbay::event::Event;
use podbay::event::Kind;
use podbay::event::SessionId;
use podbay::policy;
use podbay::policy::Mode;
use podbay::session;
use podbay::session::Log;
use podbay::session::State;
use serde_json::Value;
use serde_json::json;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

/// Returns what was decided of each call, and why, in the order of a log's lines.
fn decisions(log: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(log).expect("a log");
    let records = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let decided = records.filter(|record| record["type"] == "call_decided");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    decided
        .map(|record| (text(&record["decision"]), text(&record["reason"])))
        .collect()
}

#[track_caller]
fn check(events: &[Event], expected: &[(&str, &str)]) {
    let folder = tempfile::tempdir().expect("a folder");
    let state = State::open(&folder.path().join("state")).expect("a state folder");
    let header = Kind::SessionStarted {
        version: 2,
        session: SessionId::random(),
        podbay: "0.1.0".to_owned(),
        project: "/home/demo".to_owned(),
        mode: "ask".to_owned(),
        task: None,
    };
    let mut log =
        Log::create(&state, &header.into(), &session::Options::default(), None).expect("a log");
    for event in events {
        log.append(event).expect("written");
    }
    let expected: Vec<_> = expected
        .iter()
        .map(|(decision, reason)| ((*decision).to_owned(), (*reason).to_owned()))
        .collect();
    assert_eq!(decisions(log.path()), expected);
    assert_eq!(decisions(&state.events()), expected);
}

#[tokio::test]
async fn why_a_call_was_allowed_or_denied_stands_in_the_log_and_among_all_events() {
    let write = |path: &str| ("write_file", json!({"path": path, "content": "x"}));
    let bash = |command: &str| ("bash", json!({ "command": command }));
    let calls = [
        ("list_directory", json!({})),
        write("src/a"),
        bash("touch src/b && mkdir src/c"),
        write("d"),
        bash("touch e"),
        bash("touch e"),
        bash("touch f"),
        ("delete_file", json!({"path": "d"})),
    ];
    let rules = |rules: &[&str]| rules.iter().map(|&rule| rule.to_owned()).collect();
    let policy = policy::Options {
        allow: rules(&[
            "write_file(src/**)",
            "bash(touch src/*)",
            "bash(mkdir src/*)",
        ]),
        ask: rules(&["bash(touch e)", "bash(touch f)"]),
        deny: rules(&["delete_file"]),
        ..policy::Options::default()
    };
    let answers = [Answer::Allow, Answer::AllowSession, Answer::Deny]
        .map(Into::into)
        .to_vec();
    let model = ScriptedModel::new()
        .calls_many(calls)
        .says("Done.")
        .start()
        .await;
    let desk = Desk::new(
        model,
        Wishes {
            mode: Mode::Ask,
            policy,
            answers,
            ..Wishes::default()
        },
    )
    .await;
    desk.work("work").await;
    let expected = [
        ("allow", "mode ask allows it"),
        ("allow", "the rule `write_file(src/**)` allows it"),
        ("allow", "a rule for each command allows it"),
        ("allow", "the user allowed it"),
        ("allow", "the user allowed it"),
        ("allow", "the user allowed exactly this for this session"),
        ("deny", "the user said no"),
        ("deny", "the rule `delete_file` denies it"),
    ];
    check(&desk.events(), &expected);

    let model = ScriptedModel::new()
        .calls_many([write("a"), write(".env")])
        .says("Done.")
        .start()
        .await;
    let desk = Desk::new(model, Wishes::default()).await;
    desk.work("work").await;
    let denied = "mode auto does not allow to touch the protected file .env; leave that file alone, and say what should be in it";
    check(
        &desk.events(),
        &[("allow", "mode auto allows it"), ("deny", denied)],
    );
}
