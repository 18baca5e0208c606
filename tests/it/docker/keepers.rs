//! What each keeper may do, as the engine says it before it starts: one that looks can write to no
//! file of the project, one that brings something in can, and none has a network or a capability.

use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;

use podbay::sandbox::READONLY_PATHS;
use serde_json::Value;
use serde_json::json;

use super::git::repository;
use super::inspect::check_settings;
use super::inspect::inspect;
use super::inspect::of_a_box;
use crate::support::EngineProxy;
use crate::support::ScriptedModel;
use crate::support::test_env::owner;
use crate::support::test_env::run;

const GIB: u64 = 1 << 30;

/// What one that looks after git sees beside repositories.
const SEES: &str = "/etc/hosts, /keep rw, /run/podbay/bin";

/// Returns the kind of a keeper, and what it sees.
fn told(keeper: &Value) -> String {
    let (name, _) = keeper["Name"]
        .as_str()
        .expect("a name")
        .trim_start_matches('/')
        .rsplit_once('-')
        .expect("an instance");
    let mounts = keeper["Mounts"].as_array().expect("a list").iter();
    let mounted = |mount: &Value| {
        format!(
            " {}{}",
            mount["Destination"].as_str().expect("text"),
            if mount["RW"] == true { " rw" } else { "" }
        )
    };
    let mut mounts: Vec<String> = mounts.map(mounted).collect();
    mounts.sort();
    format!("{name}:{}", mounts.join(","))
}

/// Checks all settings but what it sees.
#[track_caller]
fn check(keeper: &Value) {
    let host = &keeper["HostConfig"];
    let is_of_git = keeper["Name"]
        .as_str()
        .expect("a name")
        .starts_with("/podbay-keeper-git-");
    // What the engine copies into a new volume has no options.
    let mut mounts = host["Mounts"].clone();
    for mount in mounts.as_array_mut().expect("a list") {
        let mount = mount.as_object_mut().expect("an object");
        mount.retain(|_, value| *value != json!({}));
    }
    let readonly = [
        &READONLY_PATHS[..],
        if is_of_git { &[] } else { &["/workspace/.git"] },
    ]
    .concat();
    check_settings(
        keeper,
        of_a_box(json!({
            "AutoRemove": true,
            "Memory": GIB,
            "MemorySwap": GIB,
            "Mounts": mounts,
            "PidsLimit": 64,
            "ReadonlyPaths": readonly,
            "Tmpfs": host["Tmpfs"],
        })),
    );
    let (uid, gid) = owner();
    let config = &keeper["Config"];
    assert_eq!(
        (&config["User"], &config["NetworkDisabled"]),
        (&json!(format!("{uid}:{gid}")), &json!(true))
    );
    assert_eq!(
        config["Entrypoint"],
        json!(["/run/podbay/bin/podbay", "guest", "keep"])
    );
}

#[test]
fn only_a_keeper_that_brings_something_in_can_write_to_the_project_and_none_has_a_network() {
    let Some(env) = repository() else { return };
    let started: Arc<Mutex<Vec<Value>>> = Arc::default();
    let proxy = EngineProxy::start(env.beside("engine"), {
        let started = Arc::clone(&started);
        move |request| {
            if let Some((id, "start")) = request.of_container() {
                started.lock().expect("unshared").push(inspect(id));
            }
        }
    });
    let keepers = |command: &mut Command| {
        run(command.env("DOCKER_HOST", proxy.address())).expect(0);
        let started = std::mem::take(&mut *started.lock().expect("unshared"));
        let keepers: Vec<Value> = started
            .into_iter()
            .filter(|one| {
                one["Name"]
                    .as_str()
                    .is_some_and(|name| name.starts_with("/podbay-keeper-"))
            })
            .collect();
        keepers.iter().for_each(check);
        keepers.iter().map(told).collect::<Vec<String>>()
    };
    let work = |how: &str| {
        let model = ScriptedModel::new()
            .calls(
                "bash",
                json!({ "command": format!("echo {how} > a.txt; git commit -q -a -m {how}") }),
            )
            .says("Done.")
            .start_blocking();
        keepers(&mut env.task(&model, &["work", "--changes", how]))
    };
    let plain = |more: &str| format!("podbay-keeper: /etc/hosts, /keep rw, {more}");
    // Of the run itself the one that keeps how the project is sees it read-only, as does the one
    // that prepares its repository.
    let of_review = work("review");
    assert!(
        !of_review.is_empty() && of_review.iter().all(|one| !one.contains("/workspace rw")),
        "{of_review:#?}"
    );
    let podbay = |words: &[&str]| keepers(env.podbay(words).arg("-C").arg(env.project()));
    assert_eq!(
        podbay(&["review", "apply"]),
        [
            plain("/review/copy, /review/git, /review/upper, /run/podbay/bin, /workspace rw"),
            format!("podbay-keeper-git: {SEES}, /session/0, /workspace rw"),
        ]
    );
    assert_eq!(
        podbay(&["undo", "list"]),
        [plain("/run/podbay/bin, /workspace")]
    );
    assert_eq!(podbay(&["undo"]), [plain("/run/podbay/bin, /workspace rw")]);
    assert_eq!(
        podbay(&["undo", "redo"]),
        [plain("/run/podbay/bin, /workspace rw")]
    );
    let of_live = work("live");
    let (last, before) = of_live.split_last().expect("some");
    assert_eq!(
        last,
        &format!("podbay-keeper-git: /aside rw, {SEES}, /session/0, /workspace rw")
    );
    assert!(
        before.iter().all(|one| !one.contains("/workspace rw")),
        "{before:#?}"
    );
    env.assert_no_container();
}
