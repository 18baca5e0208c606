//! An engine on a bad day, by a socket in front of the real one; and a guest that is killed or
//! stopped in a shared sandbox.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use nix::sys::signal::Signal;
use serde_json::Value;
use serde_json::json;

use super::second::up;
use super::test_box::TestBox;
use super::test_box::alone_with_gc;
use super::test_box::docker;
use crate::support::EngineProxy;
use crate::support::ScriptedModel;
use crate::support::engine_proxy::Fate;
use crate::support::engine_proxy::Request;
use crate::support::test_env::owner;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::until;

fn what(request: &Request) -> &str {
    match request.of_container() {
        Some((_, what)) => what,
        None => request.path.split('?').next().unwrap_or_default(),
    }
}

/// Waits until nothing of the project is left, with the help of the next look.
#[track_caller]
fn assert_nothing_after_gc(env: &TestBox) {
    let _alone = alone_with_gc();
    run(&mut env.podbay(&["gc"])).expect(0);
    env.assert_no_container();
}

#[test]
fn an_engine_that_hangs_fails_or_is_slow_costs_its_deadline_and_no_more() {
    let Some(env) = TestBox::new() else { return };
    let here = |proxy: &EngineProxy| {
        let mut command = env.here(&["call", "bash", r#"{"command":"echo $((40+2))"}"#]);
        command
            .env("DOCKER_HOST", proxy.address())
            .env("PODBAY_ENGINE_TIMEOUT_S", "2")
            .env("PODBAY_SANDBOX_START_TIMEOUT", "2s");
        command
    };
    for (number, stage) in ["/containers/create", "attach", "start"]
        .into_iter()
        .enumerate()
    {
        for (fate, words) in [(Fate::Fail, "the disk is on fire"), (Fate::Hang, "")] {
            let socket = env.beside(&format!("engine-{number}-{fate:?}"));
            let proxy = EngineProxy::judging(socket, move |request| {
                if what(request) == stage {
                    fate
                } else {
                    Fate::Pass
                }
            });
            let begun = Instant::now();
            let done = run(&mut here(&proxy)).expect(5).says(&["error:", words]);
            assert!(
                begun.elapsed() < Duration::from_mins(2),
                "{stage} {fate:?}: {}",
                done.stderr
            );
            assert!(
                proxy.seen().iter().any(|request| what(request) == stage),
                "{stage} was asked for"
            );
        }
    }
    assert_nothing_after_gc(&env);
    // Slow is no fault, and this is also the proof that a call through the proxy works.
    let proxy = EngineProxy::judging(env.beside("slow"), |_| {
        std::thread::sleep(Duration::from_millis(500));
        Fate::Pass
    });
    assert_eq!(run(&mut here(&proxy)).expect(0).text(), "42\n");
    env.assert_no_container();
}

/// An engine that is well until the test says otherwise.
fn well_until(env: &TestBox, name: &str, fate: Fate) -> (EngineProxy, Arc<AtomicBool>) {
    let is_ill = Arc::new(AtomicBool::new(false));
    let proxy = EngineProxy::judging(env.beside(name), {
        let is_ill = Arc::clone(&is_ill);
        move |_| {
            if is_ill.load(Ordering::Relaxed) {
                fate
            } else {
                Fate::Pass
            }
        }
    });
    (proxy, is_ill)
}

#[test]
fn an_engine_that_hangs_or_fails_once_a_run_works_is_missed_only_where_it_is_needed() {
    for (number, fate) in [Fate::Fail, Fate::Hang].into_iter().enumerate() {
        let Some(env) = TestBox::new() else { return };
        let model = ScriptedModel::new()
            .calls("bash", json!({"command": "touch begun; while ! test -e go; do sleep 0.05; done; echo $((40+2))"}))
            .calls("bash", json!({"command": "echo $((41+2))"}))
            .says("It continued.")
            .start_blocking();
        let (proxy, is_ill) = well_until(&env, &format!("engine-{number}"), fate);
        let mut task = env.task(&model, &["wait"]);
        let started = start(
            task.env("DOCKER_HOST", proxy.address())
                .env("PODBAY_ENGINE_TIMEOUT_S", "2"),
        );
        env.wait_for("begun");
        is_ill.store(true, Ordering::Relaxed);
        env.write("go", "");
        let begun = Instant::now();
        assert_eq!(
            started.wait().expect(0).json()["response"],
            "It continued.",
            "{fate:?}"
        );
        assert!(
            begun.elapsed() < Duration::from_mins(2),
            "{fate:?}: {:?}",
            begun.elapsed()
        );
        let told = model.requests()[2]["messages"].to_string();
        assert!(told.contains("42") && told.contains("43"), "{told}");
        assert_nothing_after_gc(&env);
    }
}

#[test]
fn a_box_that_is_lost_while_the_engine_hangs_or_fails_ends_the_run_with_code_five() {
    for (number, fate) in [Fate::Fail, Fate::Hang].into_iter().enumerate() {
        let Some(env) = TestBox::new() else { return };
        let model = ScriptedModel::new()
            .calls("bash", json!({"command": "touch begun; sleep 60"}))
            .calls("bash", json!({"command": "touch again"}))
            .says("Nobody hears this.")
            .start_blocking();
        let (proxy, is_ill) = well_until(&env, &format!("engine-{number}"), fate);
        let mut task = env.task(&model, &["wait"]);
        let started = start(
            task.env("DOCKER_HOST", proxy.address())
                .env("PODBAY_ENGINE_TIMEOUT_S", "2"),
        );
        env.wait_for("begun");
        is_ill.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        docker(&["kill", &env.container()]);
        let result = started.wait().expect(5).json();
        assert_eq!(
            (&result["status"], &result["exit_code"]),
            (&json!("failed"), &json!(5)),
            "{result}"
        );
        assert!(
            begun.elapsed() < Duration::from_mins(2),
            "{fate:?}: {:?}",
            begun.elapsed()
        );
        assert!(!env.path("again").exists());
        assert_nothing_after_gc(&env);
        run(&mut env.here(&["call", "list_directory", "{}"])).expect(0);
    }
}

#[test]
fn ctrl_c_ends_a_run_that_waits_for_an_engine_that_hangs() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "true"}))
        .says("Nobody hears this.")
        .start_blocking();
    for (number, (stage, for_good)) in [
        ("/info", false),
        ("/containers/create", false),
        ("attach", false),
        ("start", false),
        ("start", true),
    ]
    .into_iter()
    .enumerate()
    {
        let hangs = AtomicBool::new(false);
        let proxy = EngineProxy::judging(env.beside(&format!("engine-{number}")), move |request| {
            // One time it is this request alone, and then all that come after it as well.
            let is_it = what(request) == stage;
            hangs.fetch_or(is_it && for_good, Ordering::Relaxed);
            if is_it || hangs.load(Ordering::Relaxed) {
                Fate::Hang
            } else {
                Fate::Pass
            }
        });
        let mut task = env.task(&model, &["wait"]);
        // Whoever waited for it would wait longer than this test does.
        let started = start(
            task.env("DOCKER_HOST", proxy.address())
                .env("PODBAY_ENGINE_TIMEOUT_S", "600"),
        );
        assert!(
            until(|| proxy.seen().iter().any(|request| what(request) == stage)),
            "{stage}: {:?}",
            proxy.seen()
        );
        let begun = Instant::now();
        started.signal(Signal::SIGINT);
        started.wait().expect(130);
        assert!(
            begun.elapsed() < Duration::from_mins(2),
            "{stage}, for good: {for_good}: {:?}",
            begun.elapsed()
        );
    }
    assert_nothing_after_gc(&env);
}

#[test]
fn an_engine_that_hangs_or_fails_when_a_shared_box_is_joined_leaves_the_box_as_it_is() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &[]);
    env.join_by_engine();
    let container = env.container();
    // To look at it, to make a guest in it, to start that, and to look at what came of it.
    let is_it = |stage: &str, request: &Request| match stage {
        "inspect" => request.method == "GET" && what(request) == "json",
        "exec start" => request.path.starts_with("/exec/") && request.path.contains("/start"),
        stage => what(request) == stage,
    };
    for (number, stage) in ["inspect", "exec", "exec start"].into_iter().enumerate() {
        for (fate, words) in [(Fate::Fail, "the disk is on fire"), (Fate::Hang, "")] {
            let socket = env.beside(&format!("engine-{number}-{fate:?}"));
            let proxy = EngineProxy::judging(socket, move |request| {
                if is_it(stage, request) {
                    fate
                } else {
                    Fate::Pass
                }
            });
            let mut call = env.here(&["call", "bash", r#"{"command":"echo $((40+2))"}"#]);
            call.env("DOCKER_HOST", proxy.address())
                .env("PODBAY_ENGINE_TIMEOUT_S", "2")
                .env("PODBAY_SANDBOX_START_TIMEOUT", "2s");
            let begun = Instant::now();
            let done = run(&mut call).expect(5).says(&["error:", words]);
            assert!(
                begun.elapsed() < Duration::from_mins(2),
                "{stage} {fate:?}: {}",
                done.stderr
            );
            assert!(
                proxy.seen().iter().any(|request| is_it(stage, request)),
                "{stage} was asked for"
            );
            let text = run(&mut env.here(&["call", "bash", r#"{"command":"echo $((40+2))"}"#]))
                .expect(0)
                .text();
            assert_eq!(
                (text.as_str(), env.boxes()),
                ("42\n", vec![container.clone()]),
                "{stage} {fate:?}"
            );
        }
    }
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

#[test]
fn a_line_that_the_engine_drops_is_made_anew() {
    let Some(env) = TestBox::new() else { return };
    let proxy = EngineProxy::start(env.beside("engine"), |_| {});
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "touch begun; sleep 60"}))
        .calls("bash", json!({"command": "echo $((40+2))"}))
        .says("It continued.")
        .start_blocking();
    let mut command = env.task(&model, &["wait"]);
    let started = start(command.env("DOCKER_HOST", proxy.address()));
    env.wait_for("begun");
    proxy.drop_all();
    assert_eq!(started.wait().expect(0).json()["response"], "It continued.");
    let requests = model.requests();
    let told = requests[1]["messages"].to_string();
    assert!(told.contains("A new one takes its place"), "{told}");
    assert!(requests[2]["messages"].to_string().contains("42"));
    env.assert_no_container();
}

#[test]
fn an_engine_that_goes_away_during_a_run_ends_it_with_code_five() {
    let Some(env) = TestBox::new() else { return };
    let proxy = EngineProxy::start(env.beside("engine"), |_| {});
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "touch begun; sleep 60"}))
        .calls("bash", json!({"command": "touch again"}))
        .says("Nobody hears this.")
        .start_blocking();
    let mut command = env.task(&model, &["wait"]);
    let started = start(
        command
            .env("DOCKER_HOST", proxy.address())
            .env("PODBAY_ENGINE_TIMEOUT_S", "2"),
    );
    env.wait_for("begun");
    proxy.vanish();
    let result = started.wait().expect(5).json();
    assert_eq!(
        (&result["status"], &result["exit_code"]),
        (&json!("failed"), &json!(5)),
        "{result}"
    );
    assert!(
        !result["error"]["hints"]
            .as_array()
            .expect("a list")
            .is_empty(),
        "{result}"
    );
    assert!(!env.path("again").exists());
    // Its guest saw the end of the line; nobody had to remove the sandbox.
    env.assert_no_container();
    // The session is whole, and the project free.
    let shown = run(&mut env.podbay(&["sessions", "show"])).expect(0).text();
    assert!(shown.contains("the sandbox"), "{shown}");
    run(&mut env.here(&["call", "list_directory", "{}"])).expect(0);
}

/// Ends or stops, from inside, every guest that serves a controller beside PID 1: those that PID 1 or
/// the engine started.
fn against_guests(signal: &str) -> String {
    format!(
        "touch begun; for p in /proc/[0-9]*; do n=${{p#/proc/}}; case $n:\"$(sed 's/.*) . //' $p/stat | cut -d' ' -f1)\" in 1:*) ;; *:0|*:1) \
         kill -{signal} $n ;; esac; done; sleep 30"
    )
}

#[test]
fn a_guest_that_is_killed_or_stopped_beside_a_shared_box_is_replaced() {
    for signal in ["KILL", "STOP"] {
        let Some(env) = TestBox::new() else { return };
        let model = ScriptedModel::new()
            .calls(
                "bash",
                json!({"command": against_guests(signal), "timeout_seconds": 1}),
            )
            .calls("bash", json!({"command": "echo $((40+2))"}))
            .calls("bash", json!({"command": "echo $((40+2))"}))
            .says("It continued.")
            .start_blocking();
        up(&env, &model, &[]);
        let done = start(&mut env.task(&model, &["attack"]))
            .wait()
            .expect(0)
            .json();
        assert_eq!(done["response"], "It continued.", "{signal}");
        let requests = model.requests();
        let told = requests[1]["messages"].to_string();
        // One that is stopped is told to continue by those that watch it, and ends the command in
        // time.
        let expected = if signal == "KILL" {
            "joined again"
        } else {
            "it ran longer than the limit of 1 s"
        };
        assert!(told.contains(expected), "{signal}: {told}");
        assert!(
            requests[3]["messages"].to_string().contains("42"),
            "{signal}"
        );
        run(&mut env.here(&["down"])).expect(0);
        env.assert_no_container();
    }
}

#[test]
fn a_guest_that_joins_a_box_has_no_more_rights_than_it() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &[]);
    // PID 1 would fork it, with its own rights.
    env.join_by_engine();
    let shell = start(
        env.here(&[
            "sh",
            "--",
            "sh",
            "-c",
            "touch begun; while ! test -e go; do sleep 0.05; done",
        ])
        .env("CANARY", "told"),
    );
    env.wait_for("begun");
    let listed: Value = serde_json::from_str(&docker(&[
        "inspect",
        "--format",
        "{{json .ExecIDs}}",
        &env.container(),
    ]))
    .expect("JSON");
    let ids = listed.as_array().expect("guests that were joined");
    assert_eq!(ids.len(), 1, "{listed}");
    let exec = exec_of(ids[0].as_str().expect("text"));
    let process = &exec["ProcessConfig"];
    let (uid, gid) = owner();
    assert_eq!(process["user"], format!("{uid}:{gid}"), "{exec}");
    assert_eq!(
        (&process["tty"], &process["privileged"]),
        (&json!(false), &json!(false)),
        "{exec}"
    );
    assert_eq!(
        (&process["entrypoint"], &process["arguments"]),
        (&json!("/run/podbay/bin/podbay"), &json!(["guest", "serve"])),
        "{exec}"
    );
    assert!(!exec.to_string().contains("CANARY"), "{exec}");
    // One with more rights would be seen to have them.
    docker(&[
        "exec",
        "--detach",
        "--tty",
        "--user",
        "0:0",
        &env.container(),
        "sleep",
        "20",
    ]);
    let listed: Value = serde_json::from_str(&docker(&[
        "inspect",
        "--format",
        "{{json .ExecIDs}}",
        &env.container(),
    ]))
    .expect("JSON");
    let other = listed
        .as_array()
        .expect("a list")
        .iter()
        .find(|id| *id != &ids[0])
        .expect("another one");
    let process = exec_of(other.as_str().expect("text"))["ProcessConfig"].clone();
    assert_eq!(
        (&process["user"], &process["tty"]),
        (&json!("0:0"), &json!(true)),
        "{process}"
    );
    env.write("go", "");
    shell.wait().expect(0);
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

/// Asks the engine what it started in a container; its own command line has no word for that.
fn exec_of(id: &str) -> Value {
    let url = format!("http://engine/exec/{id}/json");
    let socket = crate::support::engine_proxy::engine_socket();
    let done = Command::new("curl")
        .args(["--silent", "--fail", "--unix-socket"])
        .arg(socket)
        .arg(url)
        .output()
        .expect("the `curl` command");
    assert!(done.status.success(), "{done:?}");
    serde_json::from_slice(&done.stdout).expect("JSON")
}
