//! How many containers each kind of run has the engine make: each costs it half a second of
//! processor time, and somebody waits for it.

use std::collections::BTreeMap;

use serde_json::json;

use super::git::repository;
use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::EngineProxy;
use crate::support::ScriptedModel;
use crate::support::engine_proxy::Request;
use crate::support::test_env::run;

/// Returns what a request is counted as.
fn kind(request: &Request) -> Option<String> {
    if let Some(name) = request.path.strip_prefix("/containers/create?name=podbay-") {
        let role = name.split('-').next().unwrap_or_default();
        let is_aside = name.starts_with("keeper-git-");
        return Some(format!("{role}{}", if is_aside { " aside" } else { "" }));
    }
    match request.of_container() {
        Some((_, "archive")) => Some("archive".to_owned()),
        _ => None,
    }
}

/// Counts what the engine is asked for during a run that makes these calls and answers.
#[track_caller]
fn counted(env: &TestBox, changes: &str, commands: &[&str]) -> BTreeMap<String, usize> {
    let mut model = ScriptedModel::new();
    for command in commands {
        model = model.calls("bash", json!({ "command": command }));
    }
    let model = model.says("Done.").start_blocking();
    let socket = env.beside("engine");
    let _ = std::fs::remove_file(&socket);
    let proxy = EngineProxy::start(socket, |_| {});
    let mut command = env.task(&model, &["work", "--changes", changes]);
    run(command.env("DOCKER_HOST", proxy.address())).expect(0);
    let mut counted = BTreeMap::new();
    for kind in proxy.seen().iter().filter_map(kind) {
        *counted.entry(kind).or_default() += 1;
    }
    env.assert_no_container();
    counted
}

#[track_caller]
fn check(env: &TestBox, changes: &str, commands: &[&str], expected: &[(&str, usize)]) {
    let expected: BTreeMap<String, usize> = expected
        .iter()
        .map(|&(kind, n)| (kind.to_owned(), n))
        .collect();
    assert_eq!(
        counted(env, changes, commands),
        expected,
        "{changes} {commands:?}"
    );
}

#[test]
fn a_run_has_one_keeper_and_fills_no_volume() {
    let Some(env) = repository() else { return };
    // The first one on this machine makes the image of keepers.
    counted(&env, "live", &[]);
    for changes in ["review", "live"] {
        for commands in [&[][..], &["true"], &["echo 1 > made.txt"]] {
            check(&env, changes, commands, &[("keeper", 1), ("workspace", 1)]);
        }
    }
}

/// An engine that names its process beside its socket is asked what it is once in a while.
#[test]
fn what_an_engine_is_gets_asked_again_when_it_was_started_anew() {
    let Some(env) = TestBox::new() else { return };
    let socket = env.beside("engine");
    let n_asked = || {
        let _ = std::fs::remove_file(&socket);
        let proxy = EngineProxy::start(socket.clone(), |_| {});
        let mut command = env.here(&["sh", "--", "true"]);
        run(command.env("DOCKER_HOST", proxy.address())).expect(0);
        let seen = proxy.seen();
        let info = seen.iter().filter(|request| request.path == "/info");
        info.count()
    };
    assert_eq!((n_asked(), n_asked()), (1, 1), "nothing names its process");
    let named = env.beside("docker.pid");
    let name = || std::fs::write(&named, std::process::id().to_string()).expect("written");
    name();
    assert_eq!((n_asked(), n_asked()), (1, 0));
    name();
    assert_eq!(n_asked(), 1);
    env.assert_no_container();
}

#[test]
fn only_what_was_done_with_git_is_taken_over_by_a_keeper_that_can_write() {
    let Some(env) = repository() else { return };
    let with_import = [("keeper", 1), ("keeper aside", 1), ("workspace", 1)];
    for command in [
        "git commit -q --allow-empty -m more",
        "echo 2 > a.txt; git add a.txt",
        "git branch other",
        "git init -q inner",
    ] {
        check(&env, "live", &[command], &with_import);
    }
    assert!(!env.path("inner/.git").exists(), "it is set aside");
}

#[test]
fn a_live_session_that_does_nothing_leaves_no_volume_and_no_record() {
    let Some(env) = repository() else { return };
    counted(&env, "live", &[]);
    counted(&env, "live", &["true"]);
    let key = env.key();
    let of_project = |name: &str| -> Vec<String> {
        let listed = docker(&[
            "volume",
            "ls",
            "--quiet",
            "--filter",
            &format!("name={name}"),
            "--filter",
            &format!("label=dev.podbay.project={key}"),
        ]);
        listed.lines().map(str::to_owned).collect()
    };
    assert_eq!(of_project("podbay-git-"), Vec::<String>::new());
    let keep = of_project("podbay-keep-")
        .pop()
        .expect("snapshots are kept");
    let volume = format!("{keep}:/keep:ro");
    let listed = docker(&[
        "run",
        "--rm",
        "--network",
        "none",
        "--volume",
        &volume,
        "podbay/workspace",
        "ls",
        "/keep/state/git",
    ]);
    assert_eq!(listed.trim(), "");
}
