//! Every tool in a real box, through `podbay run`.

use std::process::Command;

use serde_json::json;

use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::test_env::TestEnv;
use crate::support::test_env::run;
use crate::tool_box::all::one_of_each;

/// Makes the project a repository with a commit.
fn commit(env: &TestBox) {
    env.write("start.txt", "s\n");
    for arguments in
        [&["init", "-q"][..], &["add", "."], &["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "Begin"]]
    {
        let mut git = Command::new("git");
        git.args(["-c", "safe.directory=*"]).args(arguments).current_dir(env.project());
        assert!(git.env("GIT_CONFIG_GLOBAL", "/dev/null").status().expect("git").success(), "{arguments:?}");
    }
    let chown = Command::new("chown").args(["-R", "--reference"]).arg(env.project()).arg(env.path(".git")).status();
    assert!(chown.expect("chown").success());
    TestEnv::give(&env.path("start.txt"));
}

/// Returns the records of the one session there is.
fn log(env: &TestBox) -> String {
    let folder = env.state().join("sessions");
    let files = std::fs::read_dir(folder).expect("sessions").flatten().map(|entry| entry.path());
    let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    logs.map(|path| std::fs::read_to_string(path).expect("a log")).collect()
}

#[test]
fn a_run_uses_every_tool_once() {
    let Some(env) = TestBox::new() else { return };
    commit(&env);
    let calls = one_of_each();
    let n = calls.len();
    let model = ScriptedModel::new().calls_many(calls).says("Done.").start_blocking();
    let result = run(&mut env.task(&model, &["--tools", "full", "use them all"])).expect(0).json();
    assert_eq!((&result["status"], &result["tool_calls"], &result["denied"]), (&json!("completed"), &json!(n), &json!([])));
    let log = log(&env);
    let finished: Vec<&str> = log.lines().filter(|line| line.contains("\"type\":\"call_finished\"")).collect();
    assert_eq!(finished.len(), n);
    for line in finished {
        assert!(line.contains("\"status\":\"ok\""), "{line}");
    }
    assert!(log.contains("Nobody is there to answer."));
    env.assert_no_container();
}

#[test]
fn a_run_that_denies_every_tool_reaches_the_box_with_none() {
    let Some(env) = TestBox::new() else { return };
    commit(&env);
    let calls = one_of_each();
    let n = calls.len();
    let mut arguments = vec!["--tools", "full"];
    arguments.extend(calls.iter().flat_map(|(tool, _)| ["--deny", *tool]));
    arguments.push("use them all");
    let model = ScriptedModel::new().calls_many(calls.clone()).says("I may do nothing.").start_blocking();
    let result = run(&mut env.task(&model, &arguments)).json();
    assert_eq!((&result["tool_calls"], result["denied"].as_array().map(Vec::len)), (&json!(n), Some(n)));
    let log = log(&env);
    assert!(!log.contains("\"type\":\"call_started\"") && log.matches("\"status\":\"denied\"").count() == n);
    assert!(!env.path("a.txt").exists() && !env.path("PODBAY.md").exists());
    env.assert_no_container();
}
