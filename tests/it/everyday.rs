//! Small things that a user meets on the first days.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use serde_json::json;

use crate::support::TestEnv;
use crate::support::terminal::in_terminal;
use crate::support::test_env::run;

/// Puts the log of a session into the state folder, as a run of `project` would have left it.
fn put_session(env: &TestEnv, id: &str, at: &str, project: &str) {
    // The command makes the folder with the modes that it wants.
    run(&mut env.podbay(&["sessions", "list"])).expect(0);
    let header = json!({
        "type": "session_started", "at": at, "version": 1, "session": id, "podbay": "0.1.0",
        "project": project, "mode": "auto", "task": "fix the test",
    });
    let day = &at[..10];
    let path = env.state().join(format!("sessions/{day}_{id}.jsonl"));
    fs::write(&path, format!("{header}\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
}

#[test]
fn a_task_without_quotes_is_told_how_it_is_quoted() {
    let env = TestEnv::new();
    for (line, quoted) in [
        (
            &["run", "make", "the", "tests", "pass"][..],
            "podbay run \"make the tests pass\"",
        ),
        (
            &["run", "--mode", "ask", "fix", "it", "--max-turns", "3"],
            "podbay run \"fix it\"",
        ),
    ] {
        run(&mut env.podbay(line)).expect(2).says(&[quoted]);
    }
    // Another slip keeps the hint that it has.
    let slip = run(&mut env.podbay(&["run", "--max-turn", "3", "x"])).expect(2);
    assert!(
        slip.stderr.contains("--max-turns") && !slip.stderr.contains("quote the task"),
        "{}",
        slip.stderr
    );
}

#[test]
fn every_list_knows_both_ways_to_ask_for_json() {
    let env = TestEnv::new();
    put_session(&env, "abcdefghjkmn", "2026-11-21T10:00:00Z", "/elsewhere");
    for (words, key) in [
        (&["sessions", "list"][..], "sessions"),
        (&["models", "list"], "models"),
        (&["config", "trust", "--list"], "projects"),
        (&["config", "answers"], "answers"),
    ] {
        let ask = |form: &[&str]| -> Value {
            let mut command = env.podbay(words);
            command.current_dir(env.project()).args(form);
            run(&mut command).expect(0).json()
        };
        let short = ask(&["--json"]);
        assert!(short[key].is_array(), "{words:?}: {short}");
        assert_eq!(short, ask(&["--output", "json"]), "{words:?}");
    }
    run(&mut env.podbay(&["sessions", "list", "--json", "--output", "text"])).expect(2);
}

#[test]
fn lists_tell_the_time_of_the_machine() {
    let env = TestEnv::new();
    put_session(&env, "abcdefghjkmn", "2026-11-21T22:30:00Z", "/elsewhere");
    for (zone, shown) in [
        ("UTC", "2026-11-21 22:30"),
        ("<+05>-5", "2026-11-22 03:30"),
        ("", "2026-11-21 22:30"),
    ] {
        let mut command = env.podbay(&["sessions", "list"]);
        let listed = run(command.env("TZ", zone)).expect(0).text();
        assert!(listed.contains(shown), "{zone}: {listed}");
    }
}

#[test]
fn a_session_of_elsewhere_is_not_removed_on_a_terminal_without_a_word() {
    let env = TestEnv::new();
    let project = fs::canonicalize(env.project()).expect("a folder");
    let here = project.to_str().expect("a path");
    put_session(&env, "abcdefghjkmn", "2026-11-20T10:00:00Z", "/elsewhere");
    put_session(&env, "bcdefghjkmnp", "2026-11-21T10:00:00Z", here);
    let question = "Remove session abcdefghjkmn, which is not this project's last one? [y/N]";
    let removes = |answer: &str| in_terminal(&env, &["sessions", "rm", "abc"], question, answer);
    let (shown, code) = removes("\n");
    assert!(
        shown.contains("nothing was changed") && code == 1,
        "{shown}"
    );
    let listed = || run(&mut env.podbay(&["sessions", "list"])).expect(0).text();
    assert!(listed().contains("abcdefghjkmn"));
    let (shown, code) = removes("y\n");
    assert!(
        shown.contains("removed session abc") && code == 0,
        "{shown}"
    );
    assert!(!listed().contains("abcdefghjkmn"));
    // Nobody is asked about the last one of the project, nor where nobody sits.
    put_session(&env, "abcdefghjkmn", "2026-11-19T10:00:00Z", "/elsewhere");
    let mut command = env.podbay(&["sessions", "rm", "abc", "bcd"]);
    run(command.current_dir(env.project())).expect(0);
    put_session(&env, "abcdefghjkmn", "2026-11-19T10:00:00Z", "/elsewhere");
    run(&mut env.podbay(&["sessions", "rm", "--yes", "abc"])).expect(0);
}

#[test]
fn settings_are_read_from_yaml_and_json_too() {
    let env = TestEnv::new();
    let folder = env.home().join(".config/podbay");
    fs::create_dir_all(&folder).expect("made");
    let put = |name: &str, text: &str| fs::write(folder.join(name), text).expect("written");
    let shown = || run(&mut env.here(&["config"]));
    put("config.yaml", "sandbox:\n  memory: 3GiB\n  colour: red\n");
    let done = shown().expect(0);
    assert!(
        done.text().contains("sandbox.memory = \"3GiB\""),
        "{}",
        done.text()
    );
    let done = done.says(&["config.yaml:3", "there is no setting `sandbox.colour`"]);
    assert!(done.text().contains("config.yaml"), "{}", done.text());
    // Which of two counts is not guessed.
    put("config.json", "{\"sandbox\": {\"memory\": \"4GiB\"}}");
    shown()
        .expect(2)
        .says(&["config.yaml", "config.json", "keep one"]);
    fs::remove_file(folder.join("config.yaml")).expect("removed");
    assert!(
        shown()
            .expect(0)
            .text()
            .contains("sandbox.memory = \"4GiB\"")
    );
    put("config.json", "{\"sandbox\": {\"memory\": }}");
    shown()
        .expect(2)
        .says(&["config.json", "line 1", "YAML or JSON"]);
    fs::remove_file(folder.join("config.json")).expect("removed");
    // A project's own may be of this form as well, and is trusted no more than TOML.
    env.write(
        ".podbay/config.yaml",
        "sandbox:\n  memory: 9GiB\n  pids: 7\n",
    );
    let done = shown().expect(0);
    assert!(
        done.text().contains("sandbox.memory = \"2GiB\"")
            && done.text().contains("sandbox.pids = 7"),
        "{}",
        done.text()
    );
    // And one that is named.
    let file = env.beside("own.yml");
    fs::write(&file, "offline: true\n").expect("written");
    let mut command = env.here(&["config", "--config"]);
    let done = run(command.arg(&file)).expect(0);
    assert!(done.text().contains("offline = true"), "{}", done.text());
}
