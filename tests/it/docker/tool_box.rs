//! Every tool in a real sandbox, through `podbay run`.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use podbay::engine;
use podbay::engine::Provision;
use podbay::inference;
use podbay::inference::ModelServer;
use podbay::inference::Paths;
use podbay::llm::http;
use serde_json::Value;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::connect;
use super::inference::TURN;
use super::inference::models;
use super::inference::smoke;
use super::progress;
use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::test_env::TestEnv;
use crate::support::test_env::run;
use crate::tool_box::all::OF_THE_NETWORK;
use crate::tool_box::all::one_of_each;

/// Makes the project a repository with a commit, and gives it a skill.
fn commit(env: &TestBox) {
    env.write("start.txt", "s\n");
    env.write(
        ".claude/skills/greet/SKILL.md",
        "---\nname: greet\ndescription: Greets\n---\nSay hello.\n",
    );
    for arguments in [
        &["init", "-q"][..],
        &["add", "."],
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.org",
            "commit",
            "-q",
            "-m",
            "Begin",
        ],
    ] {
        let mut git = Command::new("git");
        git.args(["-c", "safe.directory=*"])
            .args(arguments)
            .current_dir(env.project());
        assert!(
            git.env("GIT_CONFIG_GLOBAL", "/dev/null")
                .status()
                .expect("git")
                .success(),
            "{arguments:?}"
        );
    }
    let chown = Command::new("chown")
        .args(["-R", "--reference"])
        .arg(env.project())
        .arg(env.path(".git"))
        .status();
    assert!(chown.expect("chown").success());
    TestEnv::give(&env.path("start.txt"));
}

/// Returns the records of the one session there is.
fn log(env: &TestBox) -> String {
    let folder = env.state().join("sessions");
    let files = std::fs::read_dir(folder)
        .expect("sessions")
        .flatten()
        .map(|entry| entry.path());
    let logs = files.filter(|path| {
        path.extension()
            .is_some_and(|extension| extension == "jsonl")
    });
    logs.map(|path| std::fs::read_to_string(path).expect("a log"))
        .collect()
}

/// Its supervisor is well, and the model can do something about it.
#[test]
fn a_command_that_cannot_begin_in_the_background_says_why() {
    let Some(env) = TestBox::new() else { return };
    std::fs::create_dir(env.path("closed")).expect("made");
    TestEnv::give(&env.path("closed"));
    std::fs::set_permissions(env.path("closed"), Permissions::from_mode(0o0)).expect("closed");
    let call = json!({"command": "pwd", "working_directory": "closed", "background": true});
    let model = ScriptedModel::new()
        .calls("bash", call)
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["go there"])).expect(0);
    let told = model.requests().last().expect("requests")["messages"].to_string();
    assert!(
        told.contains("its working directory is not accessible") && !told.contains("supervisor"),
        "{told}"
    );
}

#[test]
fn a_run_uses_every_tool_once() {
    let Some(env) = TestBox::new() else { return };
    commit(&env);
    let mut calls = one_of_each();
    calls.retain(|(tool, _)| !OF_THE_NETWORK.contains(tool));
    let n = calls.len();
    let model = ScriptedModel::new()
        .calls_many(calls)
        .says("Done.")
        .start_blocking();
    let result = run(&mut env.task(&model, &["--tools", "full", "use them all"]))
        .expect(0)
        .json();
    assert_eq!(
        (&result["status"], &result["tool_calls"], &result["denied"]),
        (&json!("completed"), &json!(n), &json!([]))
    );
    let log = log(&env);
    let finished: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("\"type\":\"call_finished\""))
        .collect();
    assert_eq!(finished.len(), n);
    for line in finished {
        assert!(line.contains("\"status\":\"ok\""), "{line}");
    }
    assert!(log.contains("No user can answer."));
    env.assert_no_container();
}

#[test]
fn a_run_that_denies_every_tool_reaches_the_box_with_none() {
    let Some(env) = TestBox::new() else { return };
    commit(&env);
    let mut calls = one_of_each();
    // There is none without an engine in the settings.
    calls.retain(|(tool, _)| *tool != "web_search");
    let n = calls.len();
    let mut arguments = vec!["--tools", "full"];
    arguments.extend(calls.iter().flat_map(|(tool, _)| ["--deny", *tool]));
    arguments.push("use them all");
    let model = ScriptedModel::new()
        .calls_many(calls.clone())
        .says("I may do nothing.")
        .start_blocking();
    let result = run(&mut env.task(&model, &arguments)).json();
    assert_eq!(
        (
            &result["tool_calls"],
            result["denied"].as_array().map(Vec::len)
        ),
        (&json!(n), Some(n))
    );
    let log = log(&env);
    assert!(
        !log.contains("\"type\":\"call_started\"")
            && log.matches("\"status\":\"denied\"").count() == n
    );
    assert!(!env.path("a.txt").exists() && !env.path("PODBAY.md").exists());
    env.assert_no_container();
}

/// PERM-5: what is denied as a whole costs no room in the prompt, and is denied with its reason
/// where a model knows of it all the same.
#[test]
fn a_tool_that_is_denied_as_a_whole_is_not_told_to_the_model() {
    let Some(env) = TestBox::new() else { return };
    let calls = ScriptedModel::new()
        .calls("more_tools", json!({}))
        .calls("Bash", json!({"command": "touch a"}));
    let model = calls
        .calls("start_process", json!({"command": "touch b"}))
        .says("Done.")
        .start_blocking();
    let rules = [
        "--deny",
        "bash",
        "--deny",
        "mkdir",
        "--deny",
        "write_file(x)",
    ];
    run(&mut env.task(&model, &[&rules[..], &["work"]].concat()));
    let requests = model.requests();
    let named = |request: &Value| {
        let tools = request["tools"].as_array().expect("tools");
        tools
            .iter()
            .map(|tool| {
                tool["function"]["name"]
                    .as_str()
                    .expect("a name")
                    .to_owned()
            })
            .collect::<Vec<_>>()
    };
    let told = named(&requests[0]);
    assert!(
        told.contains(&"write_file".to_owned()) && !told.contains(&"bash".to_owned()),
        "{told:?}"
    );
    assert!(
        requests
            .iter()
            .all(|request| request["tools"] == requests[0]["tools"])
    );
    let messages = requests.last().expect("requests")["messages"]
        .as_array()
        .expect("messages")
        .clone();
    let results: Vec<&str> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .filter_map(|message| message["content"].as_str())
        .collect();
    assert!(
        results[0].contains("delete_file(")
            && !results[0].contains("mkdir(")
            && !results[0].contains("start_background"),
        "{results:?}"
    );
    assert!(
        results[1].starts_with("Denied: ") && results[2].starts_with("Denied: "),
        "{results:?}"
    );
    assert!(!env.path("a").exists() && !env.path("b").exists());
    env.assert_no_container();
}

/// What every session pays before its first word, as a real server counts it: by native calls and
/// by a schema.
#[tokio::test]
async fn the_first_request_of_each_set_is_as_small_as_was_promised() {
    let Some(env) = TestBox::new() else { return };
    let Some(engine) = connect().await else {
        return;
    };
    let mut requests = Vec::new();
    for (set, most) in [("small", 900), ("standard", 2500)] {
        for script in [ScriptedModel::new(), ScriptedModel::new().without_tools()] {
            let model = script.says("Done.").start_blocking();
            run(&mut env.task(&model, &["--tools", set, "nothing"]));
            let mut request = model.requests().remove(0);
            let messages = request["messages"].as_array_mut().expect("messages");
            messages.retain(|message| message["role"] == "system");
            messages.push(json!({"role": "user", "content": ""}));
            requests.push((set, most, request));
        }
    }
    let _turn = TURN.lock().await;
    let (cancel, progress) = (CancellationToken::new(), progress());
    let paths = Paths::new(models());
    let provision = Provision::new(
        &engine,
        &engine::Options::default(),
        false,
        paths.locks(),
        &progress,
    )
    .allow_install(true);
    let options = inference::Options::default();
    let image = provision
        .ensure(options.image_name(), &cancel)
        .await
        .expect("an image");
    let model = smoke(&options, &paths).await;
    let server = ModelServer::new(&engine, &options, &paths);
    let serving = server
        .ensure(&image, &model, &progress, &cancel)
        .await
        .expect("a server");
    let client =
        http::client(&serving.endpoint.settings(Duration::from_secs(5), None)).expect("a client");
    let ask = async |path: &str, body: Value| {
        let request = client
            .post(serving.endpoint.at_root(path))
            .bearer_auth(serving.key.expose())
            .json(&body);
        request
            .send()
            .await
            .expect("an answer")
            .json::<Value>()
            .await
            .expect("JSON")
    };
    let mut counted = Vec::new();
    for (set, most, request) in requests {
        let filled = ask("/apply-template", json!({"messages": request["messages"]})).await;
        let mut text = filled["prompt"].as_str().expect("filled").to_owned();
        // The template of the small model leaves tools out; they are counted as their JSON.
        text.extend(request.get("tools").map(Value::to_string));
        let n = ask("/tokenize", json!({ "content": text })).await["tokens"]
            .as_array()
            .expect("tokens")
            .len();
        counted.push((set, request.get("tools").is_some(), n, most));
    }
    server.stop(&cancel).await.expect("stopped");
    assert!(
        counted.iter().all(|(_, _, n, most)| n <= most),
        "{counted:?}"
    );
    assert!(
        counted.iter().all(|(_, _, n, _)| *n > 100),
        "nothing was counted: {counted:?}"
    );
}
