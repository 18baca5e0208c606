//! Commands with `--json` that fail before they have a result: a script gets an object all the
//! same.

use std::fs;

use crate::support::test_env::Done;
use crate::support::test_env::TestEnv;
use crate::support::test_env::run;

/// Every command that has the flag, with the words that it needs.
const COMMANDS: [&[&str]; 25] = [
    &["status"],
    &["stats"],
    &["agents", "list"],
    &["skills", "list"],
    &["memory", "list"],
    &["models", "list"],
    &["models", "info", "gpt-9"],
    &["sessions", "list"],
    &["sessions", "show", "zzzz"],
    &["doctor"],
    &["images", "list"],
    &["mcp", "list"],
    &["install"],
    &["cache", "list"],
    &["jobs", "list"],
    &["cache", "rm"],
    &["review", "list"],
    &["undo", "list"],
    &["config", "list"],
    &["config", "get"],
    &["config", "set"],
    &["config", "unset"],
    &["config", "path"],
    &["config", "trust"],
    &["config", "answers"],
];

/// Checks that all of a command's output is one object that tells of its error.
#[track_caller]
fn is_told(done: Done, line: &[&str], code: i32) -> serde_json::Value {
    let done = done.expect(code);
    let object = done.json();
    assert_eq!(
        (&object["status"], &object["exit_code"]),
        (&"error".into(), &code.into()),
        "{line:?}"
    );
    let error = &object["error"];
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|words| !words.is_empty()),
        "{line:?}: {error}"
    );
    assert_eq!(
        done.stderr.matches("error:").count(),
        1,
        "{line:?}: {}",
        done.stderr
    );
    object
}

#[test]
fn a_wrong_flag_is_an_object_for_every_command_with_json() {
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/cli.md")).expect("the page");
    assert_eq!(
        page.lines().filter(|line| line.trim() == "--json").count(),
        COMMANDS.len(),
        "the list above is not all"
    );
    let env = TestEnv::new();
    for words in COMMANDS {
        for extra in [&["--json", "--wrong-flag"][..], &["--wrong-flag", "--json"]] {
            let line = [words, extra].concat();
            let object = is_told(run(&mut env.podbay(&line)), &line, 2);
            assert!(
                object["error"]["message"]
                    .as_str()
                    .is_some_and(|text| text.contains("--wrong-flag")),
                "{object}"
            );
            let help = words
                .iter()
                .take_while(|word| !word.contains(['9', 'z']))
                .copied()
                .collect::<Vec<_>>()
                .join(" ");
            assert_eq!(
                (&object["error"]["kind"], &object["error"]["hints"][0]),
                (
                    &"usage".into(),
                    &format!("see `podbay {help} --help`").into()
                )
            );
        }
    }
}

#[test]
fn what_cannot_be_had_is_an_object_too() {
    let env = TestEnv::new();
    for (line, code, kind) in [
        (&["models", "info", "--json", "gpt-9"][..], 2, "inference"),
        (
            &["models", "list", "--json", "--config", "/nonexistent"],
            2,
            "config",
        ),
        (&["sessions", "show", "--json", "zzzz"], 2, "session"),
        (&["status", "--json", "-C", "/nonexistent"], 2, "sandbox"),
        (&["status", "--json"], 5, "engine"),
        (&["status", "--output", "json"], 5, "engine"),
        (&["review", "list", "--output=json"], 5, "engine"),
        (&["undo", "list", "--json"], 5, "engine"),
        (
            &["doctor", "--attack", "--json", "--config", "/nonexistent"],
            2,
            "config",
        ),
        (
            &["doctor", "--attack", "--json", "-C", "/nonexistent"],
            2,
            "sandbox",
        ),
    ] {
        let mut command = env.podbay(line);
        command
            .current_dir(env.project())
            .env("DOCKER_HOST", "unix:///nonexistent/docker.sock");
        let object = is_told(run(&mut command), line, code);
        assert_eq!(object["error"]["kind"], kind, "{object}");
        assert!(
            !object["error"]["hints"]
                .as_array()
                .expect("a list")
                .is_empty(),
            "no remedy: {object}"
        );
    }
    // Those who did not ask for it get none, and what stands behind `--` is no word of ours.
    for line in [
        &["status", "--wrong-flag"][..],
        &["sh", "--wrong-flag", "--", "x", "--json"],
    ] {
        assert_eq!(run(&mut env.podbay(line)).text(), "", "{line:?}");
    }
}
