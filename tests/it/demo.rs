//! `podbay run --demo`: a whole run where there is neither a model nor an engine.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::test_env::Done;
use crate::support::test_env::TestEnv;
use crate::support::test_env::run;

/// The program where no engine is available.
fn demo(env: &TestEnv, arguments: &[&str]) -> Command {
    let mut command = env.here(&["run", "--demo"]);
    command
        .args(arguments)
        .env("DOCKER_HOST", "unix:///nonexistent");
    command
}

fn events(done: &Done, kind: &str) -> Vec<Value> {
    let events = done.text();
    let events = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    events.filter(|event| event["type"] == kind).collect()
}

#[test]
fn a_demonstration_needs_neither_model_nor_engine_and_leaves_the_project_alone() {
    let env = TestEnv::new();
    env.write("notes.py", "print('mine')\n");
    let done = run(&mut demo(&env, &[])).expect(0);
    assert!(
        done.text()
            .starts_with("`notes.py remove NUMBER` takes a note out"),
        "{}",
        done.text()
    );
    let done = done.says(&[
        "this is a demonstration: a script stands in for the model",
        "sandbox: none, files in memory",
    ]);
    let done = done.says(&[
        "-> edit_file notes.py (ok",
        "-> bash python3 test_notes.py (failed",
        "no command is run anywhere",
        "done: 4 turns, 6 calls",
    ]);
    assert!(
        !done.stderr.contains("review"),
        "nothing is changed in place: {}",
        done.stderr
    );
    assert_eq!(env.read("notes.py"), "print('mine')\n");
    assert_eq!(fs::read_dir(env.project()).expect("a folder").count(), 1);
}

#[test]
fn its_session_is_kept_and_never_taken_for_one_of_the_project() {
    let env = TestEnv::new();
    let done = run(&mut demo(&env, &["--output", "jsonl", "do something else"])).expect(0);
    let begun = &events(&done, "session_started")[0];
    assert_eq!(
        (begun["project"].as_str(), begun["task"].as_str()),
        (Some("demonstration (in memory)"), Some("do something else"))
    );
    let edits: Vec<Value> = events(&done, "call_finished")
        .into_iter()
        .filter(|event| event["name"] == "edit_file")
        .collect();
    assert!(
        edits.len() == 3 && edits.iter().all(|event| event["status"] == "ok"),
        "{edits:?}"
    );
    let result = &events(&done, "result")[0];
    assert!(
        result["warnings"][0]
            .as_str()
            .is_some_and(|warning| warning.contains("the same whatever the task")),
        "{result}"
    );
    let shown = run(&mut env.podbay(&[
        "sessions",
        "show",
        begun["session"].as_str().expect("an id"),
    ]))
    .expect(0);
    assert!(
        shown.text().contains("do something else"),
        "{}",
        shown.text()
    );
    run(env
        .here(&["run", "--continue"])
        .env("DOCKER_HOST", "unix:///nonexistent"))
    .expect(2);
    let id = begun["session"].as_str().expect("an id");
    for mut command in [
        env.here(&["run", "--resume", id, "continue"]),
        env.podbay(&["sessions", "resume", id]),
    ] {
        let done = run(command.env("DOCKER_HOST", "unix:///nonexistent")).expect(2);
        let done = done.says(&[
            "is a demonstration, which cannot be resumed",
            "podbay sessions show",
        ]);
        assert!(!done.stderr.contains("-C '"), "{}", done.stderr);
    }
    let done = run(env
        .podbay(&["sessions", "resume", "last"])
        .env("DOCKER_HOST", "unix:///nonexistent"));
    assert!(
        !done.stderr.contains("demonstration") && done.stderr.contains("there is none yet"),
        "{}",
        done.stderr
    );
}

#[test]
fn policy_and_limits_hold_in_it_too() {
    let env = TestEnv::new();
    let report = run(&mut demo(&env, &["--mode", "deny", "--output", "json"]))
        .expect(4)
        .json();
    assert_eq!(
        (
            report["status"].as_str(),
            report["denied"].as_array().map(Vec::len)
        ),
        (Some("blocked"), Some(4))
    );
    assert!(
        report["response"]
            .as_str()
            .is_some_and(|text| text.contains("The change was denied")),
        "{report}"
    );
    let report = run(&mut demo(&env, &["--max-cost", "0.01", "--output", "json"]))
        .expect(0)
        .json();
    assert_eq!(
        report["usage"]["cost_usd"], 0.0,
        "a script costs nothing: {report}"
    );
    let report = run(&mut demo(&env, &["--max-turns", "2", "--output", "json"]))
        .expect(3)
        .json();
    assert_eq!(
        (report["limit"].as_str(), report["response"].as_str()),
        (
            Some("turns"),
            Some("I was stopped before the task was done.")
        )
    );
}

#[test]
fn what_it_cannot_mean_is_refused_and_settings_of_a_model_do_not_disturb_it() {
    let env = TestEnv::new();
    for words in [
        &["--resume", "last"][..],
        &["--continue"],
        &["--endpoint", "http://127.0.0.1:9"],
        &["--model", "x"],
    ] {
        run(&mut demo(&env, words))
            .expect(2)
            .says(&["--demo", words[0]]);
    }
    let done = run(env
        .here(&["chat", "--demo"])
        .env("DOCKER_HOST", "unix:///nonexistent"))
    .expect(2);
    assert!(done.stderr.contains("--demo"), "{}", done.stderr);
    run(demo(&env, &[])
        .env("PODBAY_LLM_ENDPOINT", "http://127.0.0.1:9")
        .env("PODBAY_LLM_API_KEY_ENV", "NOT_SET"))
    .expect(0);
}

/// What the script writes is what it says: the example's own tests and those that it adds pass.
#[test]
fn the_code_that_the_script_writes_works() {
    let env = TestEnv::new();
    let done = run(&mut demo(&env, &["--output", "jsonl"])).expect(0);
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["notes.py", "test_notes.py", "notes.txt"] {
        let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("examples/notes")
            .join(name);
        fs::copy(example, folder.path().join(name)).expect("copied");
    }
    for event in events(&done, "call_started")
        .iter()
        .filter(|event| event["name"] == "edit_file")
    {
        let edit: Value =
            serde_json::from_str(event["arguments"].as_str().expect("text")).expect("JSON");
        let part = |name: &str| edit[name].as_str().expect("text").to_owned();
        let path = folder.path().join(part("path"));
        let text = fs::read_to_string(&path).expect("a file of the example");
        assert!(text.contains(&part("old_string")), "{edit}");
        fs::write(
            path,
            text.replacen(&part("old_string"), &part("new_string"), 1),
        )
        .expect("written");
    }
    let tests = Command::new("python3")
        .arg("-B")
        .arg("test_notes.py")
        .current_dir(folder.path())
        .output()
        .expect("python3 is here");
    let said = String::from_utf8_lossy(&tests.stderr);
    assert!(
        tests.status.success() && said.contains("Ran 3 tests"),
        "{said}"
    );
    let removed = Command::new("python3")
        .args(["-B", "notes.py", "remove", "1"])
        .current_dir(folder.path())
        .output()
        .expect("python3");
    assert_eq!(
        String::from_utf8_lossy(&removed.stdout),
        "removed: buy milk\n"
    );
}
