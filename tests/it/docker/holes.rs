//! An engine with a hole that lets a container out: a start says so, once, and `--strict` refuses
//! it.

use std::process::Command;
use std::process::Stdio;

use serde_json::Value;

use super::test_box::TestBox;
use crate::support::EngineProxy;
use crate::support::ScriptedModel;
use crate::support::engine_proxy::Fate;
use crate::support::engine_proxy::engine_socket;
use crate::support::test_env::run;

const WORDS: &str = "known holes let a container out";

/// Puts a socket in front of the engine behind which its runc has another version.
fn with_runc(env: &TestBox, version: &str) -> EngineProxy {
    let asked = Command::new("curl")
        .args(["--silent", "--fail", "--unix-socket"])
        .arg(engine_socket())
        .arg("http://engine/version")
        .output();
    let mut said: Value =
        serde_json::from_slice(&asked.expect("the `curl` command").stdout).expect("JSON");
    let components = said["Components"].as_array_mut().expect("a list");
    components.retain(|component| component["Name"] != "runc");
    components.push(serde_json::json!({"Name": "runc", "Version": version}));
    // For as long as the test: the proxy's threads have no end.
    let said: &'static str = Box::leak(said.to_string().into_boxed_str());
    EngineProxy::judging(
        env.beside(&format!("engine-{version}")),
        move |request| match request.path.as_str() {
            "/version" => Fate::Say(said),
            _ => Fate::Pass,
        },
    )
}

#[test]
fn a_start_on_an_engine_with_a_way_out_says_so_once() {
    let Some(env) = TestBox::new() else { return };
    let old = with_runc(&env, "1.1.12");
    let new = with_runc(&env, "99.0.0");
    let model = (0..3)
        .fold(ScriptedModel::new(), |model, _| model.says("Done."))
        .start_blocking();
    let task = |engine: &EngineProxy| {
        run(env
            .task(&model, &["look"])
            .env("DOCKER_HOST", engine.address()))
        .expect(0)
        .json()["warnings"]
            .to_string()
    };
    assert!(
        !task(&new).contains(WORDS),
        "a runc without holes is nothing to speak of"
    );
    let told = task(&old);
    assert!(
        told.contains(WORDS)
            && told.contains("runc 1.1.12 (CVE-2025-31133")
            && told.contains("update runc to 1.2.8"),
        "{told}"
    );
    assert!(!task(&old).contains(WORDS), "it was said");
    // It costs no request more: what the engine is was asked anyway.
    assert_eq!(
        old.seen()
            .iter()
            .filter(|request| request.path == "/version")
            .count(),
        2
    );

    // Each front end that starts a session's sandbox, on an engine that nothing was said of yet.
    let other = with_runc(&env, "1.1.13");
    let up = |code| {
        let mut command = env.here(&["up", "--model", "scripted", "--endpoint"]);
        run(command
            .arg(model.endpoint())
            .env("DOCKER_HOST", other.address()))
        .expect(code)
        .stderr
        .clone()
    };
    let told = up(0);
    assert!(
        told.contains(WORDS) && told.contains("runc 1.1.13"),
        "{told}"
    );
    assert!(!up(0).contains(WORDS), "it was said");
    run(env.here(&["down"]).env("DOCKER_HOST", other.address())).expect(0);
    let last = with_runc(&env, "1.1.14");
    let mut chat = env.here(&["chat", "--model", "scripted", "--endpoint"]);
    let told = run(chat
        .arg(model.endpoint())
        .env("DOCKER_HOST", last.address())
        .stdin(Stdio::null()))
    .expect(0)
    .stderr
    .clone();
    assert!(
        told.contains(WORDS) && told.contains("runc 1.1.14"),
        "{told}"
    );
    env.assert_no_container();
}

#[test]
fn strict_refuses_an_engine_with_a_way_out() {
    let Some(env) = TestBox::new() else { return };
    let (old, new) = (with_runc(&env, "1.1.12"), with_runc(&env, "99.0.0"));
    let sh = |engine: &EngineProxy| {
        run(env
            .here(&["sh", "--strict", "--", "echo", "here"])
            .env("DOCKER_HOST", engine.address()))
    };
    assert_eq!(sh(&new).expect(0).text(), "here\n");
    sh(&old).expect(125).says(&[
        "`--strict` refuses",
        WORDS,
        "runc 1.1.12",
        "hint:",
        "podbay doctor",
    ]);
    run(env
        .here(&["call", "--strict", "list_directory", "{}"])
        .env("DOCKER_HOST", old.address()))
    .expect(5);
    env.assert_no_container();
}
