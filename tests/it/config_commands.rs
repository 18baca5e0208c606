//! `podbay config` and the commands below it, as a user and a script run them.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::TestEnv;
use crate::support::terminal::in_terminal_with;
use crate::support::test_env::Done;
use crate::support::test_env::run;

fn file(env: &TestEnv) -> PathBuf {
    env.home().join(".config/podbay/config.toml")
}

fn write(env: &TestEnv, text: &str) {
    let path = file(env);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
}

fn text(env: &TestEnv) -> String {
    fs::read_to_string(file(env)).unwrap_or_default()
}

fn config(env: &TestEnv, arguments: &[&str]) -> Done {
    let mut command = env.podbay(&["config"]);
    command
        .args(arguments)
        .env_remove("PODBAY_SANDBOX_CHANGES")
        .current_dir(env.project());
    run(&mut command)
}

#[track_caller]
fn output(env: &TestEnv, arguments: &[&str]) -> String {
    let done = config(env, arguments);
    assert_eq!(done.code, 0, "{arguments:?}: {}", done.stderr);
    String::from_utf8(done.stdout).expect("text")
}

#[track_caller]
fn json(env: &TestEnv, arguments: &[&str]) -> Value {
    let out = output(env, arguments);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

#[test]
fn a_setting_is_set_read_and_removed_and_the_file_keeps_its_comments() {
    let env = TestEnv::new();
    write(&env, "# Mine.\n[sandbox]\nmemory = \"2GiB\" # enough\n");
    assert_eq!(output(&env, &["get", "sandbox.memory"]), "2GiB\n");
    let path = file(&env).display().to_string();
    assert_eq!(
        output(&env, &["set", "sandbox.memory", "4GiB"]),
        format!("sandbox.memory = \"4GiB\"  ({path})\n")
    );
    output(&env, &["set", "sandbox.pids", "100"]);
    assert_eq!(
        text(&env),
        "# Mine.\n[sandbox]\nmemory = \"4GiB\" # enough\npids = 100\n"
    );
    let told = json(&env, &["get", "sandbox.pids", "--json"]);
    assert_eq!(told["value"], 100);
    assert_eq!(
        told["origins"],
        serde_json::json!([{ "layer": "user", "path": path, "line": 4 }])
    );
    output(&env, &["unset", "sandbox.memory"]);
    assert_eq!(text(&env), "# Mine.\n[sandbox]\npids = 100\n");
    assert_eq!(
        output(&env, &["unset", "sandbox.memory"]),
        format!("sandbox.memory is not in {path}\n")
    );
    assert_eq!(output(&env, &["path"]), format!("{path}\n"));
}

#[test]
fn what_cannot_be_read_again_is_never_written() {
    let env = TestEnv::new();
    let before = "[llm]\nendpoint = \"http://127.0.0.1:9/v1\"\n";
    write(&env, before);
    for (arguments, words) in [
        (
            &["set", "sandbox.memroy", "2GiB"][..],
            "did you mean `sandbox.memory`?",
        ),
        (&["set", "sandbox.memory", "much"], "is no size"),
        (&["set", "llm.provider", "nobody"], "nobody"),
        (&["set", "agent.max_cost", "-1"], "agent.max_cost"),
        (&["set", "llm.api_key", "sk-canary"], "looks like a secret"),
        (&["unset", "sandbox.memroy"], "did you mean"),
        (&["get", "sandbox.memroy"], "did you mean"),
        (&["list", "sandbx"], "did you mean"),
    ] {
        let done = config(&env, arguments);
        assert_eq!(done.code, 2, "{arguments:?}");
        assert!(
            done.stderr.contains(words),
            "{arguments:?}: {}",
            done.stderr
        );
        assert!(!done.stderr.contains("canary"), "{}", done.stderr);
        assert_eq!(text(&env), before, "{arguments:?}");
    }
    let done = config(&env, &["get", "llm.model"]);
    assert_eq!((done.code, done.stdout), (1, Vec::new()), "it is not set");
}

#[test]
fn a_list_names_the_layer_of_each_value() {
    let env = TestEnv::new();
    write(&env, "[ui]\ncolor = \"never\"\n");
    env.write(".podbay/config.toml", "[sandbox]\nmemory = \"1GiB\"\n");
    let mut command = env.podbay(&["config", "list", "--changed", "--json"]);
    command
        .env_remove("PODBAY_SANDBOX_CHANGES")
        .env("PODBAY_SANDBOX_PIDS", "77")
        .current_dir(env.project());
    let done = run(&mut command);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let told: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let all: Vec<String> = told["settings"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| {
            format!(
                "{} {} {}",
                one["key"], one["value"], one["origins"][0]["layer"]
            )
        })
        .collect();
    assert_eq!(
        all,
        [
            "\"sandbox.memory\" \"1GiB\" \"project\"",
            "\"sandbox.pids\" 77 \"environment\"",
            "\"ui.color\" \"never\" \"user\"",
        ]
    );
    let section = output(&env, &["list", "sandbox.mem"]);
    assert!(
        section.starts_with("sandbox.memory = \"1GiB\"  (") && section.contains("config.toml:2)"),
        "{section}"
    );
    let whole = output(&env, &[]);
    assert_eq!(whole, output(&env, &["list"]), "scripts use the short form");
}

#[test]
fn a_stronger_layer_is_named_where_it_overrides() {
    let env = TestEnv::new();
    let mut command = env.podbay(&["config", "set", "sandbox.pids", "9"]);
    command
        .env("PODBAY_SANDBOX_PIDS", "77")
        .current_dir(env.project());
    let done = run(&mut command);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(
        done.stderr
            .contains("PODBAY_SANDBOX_PIDS overrides it here"),
        "{}",
        done.stderr
    );
    assert_eq!(text(&env), "[sandbox]\npids = 9\n");
}

#[test]
fn the_schema_takes_the_template_and_knows_every_section() {
    let env = TestEnv::new();
    let schema = json(&env, &["schema"]);
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let good = serde_json::json!({ "sandbox": { "pids": 9 }, "ui": { "color": "never" } });
    let bad = serde_json::json!({ "sandbox": { "pids": "many" } });
    assert!(validator.is_valid(&good) && !validator.is_valid(&bad));
}

#[test]
fn an_edited_file_is_written_once_it_can_be_read() {
    let env = TestEnv::new();
    let done = config(&env, &["edit"]);
    assert_eq!(done.code, 2, "there is no terminal");
    // An editor that makes a mistake first, and mends it the second time.
    let editor = env.home().join("editor");
    fs::write(
        &editor,
        "#!/bin/sh\nif grep -q memroy \"$1\"; then echo 'sandbox.pids = 9' > \"$1\"; else echo 'sandbox.pids = \"memroy\"' > \"$1\"; fi\n",
    )
    .expect("written");
    let mut mode = fs::metadata(&editor).expect("there").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    fs::set_permissions(&editor, mode).expect("ours");
    // The editor is found as `$HOME/editor`, which the shell that starts it expands.
    let (shown, code) = in_terminal_with(
        &env,
        &["config", "edit"],
        &[("EDITOR", "$HOME/editor"), ("PATH", "/usr/bin:/bin")],
        "Edit it again?",
        "y\n",
    );
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("`sandbox.pids`"), "{shown}");
    assert_eq!(text(&env), "sandbox.pids = 9\n");
}
