//! An engine on a bad day, by a socket in front of the real one; and a guest that is killed or stopped in a shared box.

use std::collections::BTreeMap;
use std::process::Command;
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
use crate::support::test_env::within;

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
        command.env("DOCKER_HOST", proxy.address()).env("PODBAY_ENGINE_TIMEOUT_S", "2").env("PODBAY_SANDBOX_START_TIMEOUT", "2s");
        command
    };
    for (number, stage) in ["/containers/create", "attach", "start"].into_iter().enumerate() {
        for (fate, words) in [(Fate::Fail, "the disk is on fire"), (Fate::Hang, "")] {
            let socket = env.beside(&format!("engine-{number}-{fate:?}"));
            let proxy = EngineProxy::judging(socket, move |request| if what(request) == stage { fate } else { Fate::Pass });
            let begun = Instant::now();
            let done = run(&mut here(&proxy)).expect(5).says(&["error:", words]);
            assert!(begun.elapsed() < Duration::from_secs(30), "{stage} {fate:?}: {}", done.stderr);
            assert!(proxy.seen().iter().any(|request| what(request) == stage), "{stage} was asked for");
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

#[test]
fn a_line_that_the_engine_drops_is_made_anew() {
    let Some(env) = TestBox::new() else { return };
    let proxy = EngineProxy::start(env.beside("engine"), |_| {});
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "touch begun; sleep 60"}))
        .calls("bash", json!({"command": "echo $((40+2))"}))
        .says("It went on.")
        .start_blocking();
    let mut command = env.task(&model, &["wait"]);
    let started = start(command.env("DOCKER_HOST", proxy.address()));
    env.wait_for("begun");
    proxy.drop_all();
    assert_eq!(started.wait().expect(0).json()["response"], "It went on.");
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
    let started = start(command.env("DOCKER_HOST", proxy.address()).env("PODBAY_ENGINE_TIMEOUT_S", "2"));
    env.wait_for("begun");
    proxy.vanish();
    let result = started.wait().expect(5).json();
    assert_eq!((&result["status"], &result["exit_code"]), (&json!("failed"), &json!(5)), "{result}");
    assert!(!result["error"]["hints"].as_array().expect("a list").is_empty(), "{result}");
    assert!(!env.path("again").exists());
    // Its guest saw the end of the line; nobody had to remove the box.
    env.assert_no_container();
    // The session is whole, and the project free.
    let shown = run(&mut env.podbay(&["sessions", "show"])).expect(0).text();
    assert!(shown.contains("the sandbox"), "{shown}");
    run(&mut env.here(&["call", "list_directory", "{}"])).expect(0);
}

/// Ends or stops, from inside, every guest that serves a controller beside PID 1: those whose parent is nobody of the box.
fn against_guests(signal: &str) -> String {
    format!(
        "touch begun; for p in /proc/[0-9]*; do n=${{p#/proc/}}; if [ $n != 1 ] && [ \"$(sed 's/.*) . //' $p/stat | cut -d' ' -f1)\" = 0 ]; then \
         kill -{signal} $n; fi; done; sleep 30"
    )
}

#[test]
fn a_guest_that_is_killed_or_stopped_beside_a_shared_box_is_replaced() {
    for signal in ["KILL", "STOP"] {
        let Some(env) = TestBox::new() else { return };
        let model = ScriptedModel::new()
            .calls("bash", json!({"command": against_guests(signal), "timeout_seconds": 1}))
            .calls("bash", json!({"command": "echo $((40+2))"}))
            .calls("bash", json!({"command": "echo $((40+2))"}))
            .says("It went on.")
            .start_blocking();
        up(&env, &model, &[]);
        let done = start(&mut env.task(&model, &["attack"])).wait().expect(0).json();
        assert_eq!(done["response"], "It went on.", "{signal}");
        let requests = model.requests();
        let told = requests[1]["messages"].to_string();
        // One that is stopped is told to go on by those that watch it, and ends the command in time.
        let expected = if signal == "KILL" { "joined again" } else { "it ran longer than the limit of 1 s" };
        assert!(told.contains(expected), "{signal}: {told}");
        assert!(requests[3]["messages"].to_string().contains("42"), "{signal}");
        run(&mut env.here(&["down"])).expect(0);
        env.assert_no_container();
    }
}

#[test]
fn a_guest_that_joins_a_box_has_no_more_rights_than_it() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &[]);
    let shell = start(env.here(&["sh", "--", "sh", "-c", "touch begun; while ! test -e go; do sleep 0.05; done"]).env("CANARY", "told"));
    env.wait_for("begun");
    let listed: Value = serde_json::from_str(&docker(&["inspect", "--format", "{{json .ExecIDs}}", &env.container()])).expect("JSON");
    let ids = listed.as_array().expect("guests that were joined");
    assert_eq!(ids.len(), 1, "{listed}");
    let exec = exec_of(ids[0].as_str().expect("text"));
    let process = &exec["ProcessConfig"];
    let (uid, gid) = owner();
    assert_eq!(process["user"], format!("{uid}:{gid}"), "{exec}");
    assert_eq!((&process["tty"], &process["privileged"]), (&json!(false), &json!(false)), "{exec}");
    assert_eq!((&process["entrypoint"], &process["arguments"]), (&json!("/run/podbay/bin/podbay"), &json!(["guest", "serve"])), "{exec}");
    assert!(!exec.to_string().contains("CANARY"), "{exec}");
    env.write("go", "");
    shell.wait().expect(0);
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

/// Asks the engine what it started in a container; its own command line has no word for that.
fn exec_of(id: &str) -> Value {
    let url = format!("http://engine/exec/{id}/json");
    let socket = crate::support::engine_proxy::engine_socket();
    let done =
        Command::new("curl").args(["--silent", "--fail", "--unix-socket"]).arg(socket).arg(url).output().expect("the `curl` command");
    assert!(done.status.success(), "{done:?}");
    serde_json::from_slice(&done.stdout).expect("JSON")
}

/// How often the loop below kills. The variable is for a longer night.
fn n_kills() -> u32 {
    std::env::var("PODBAY_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(25)
}

#[test]
#[expect(clippy::print_stderr, reason = "the test harness keeps it until the test fails, and then the moments are needed")]
fn a_controller_killed_at_any_moment_leaves_nothing_behind() {
    let Some(env) = TestBox::new() else { return };
    // Any moments will do, as long as a failure tells which they were.
    let mut seed = u64::from(std::process::id());
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 33
    };
    let model_of = |run: u32| {
        let line = |n: u32| json!({"command": format!("echo {run}.{n} >> effects; sleep 0.1")});
        (0..6).fold(ScriptedModel::new(), |model, n| model.calls("bash", line(n))).says("Done.").start_blocking()
    };
    let mut n_killed = 0;
    for number in 0..n_kills() {
        let model = model_of(number);
        let moment = Duration::from_millis(random() % 1500);
        let controller = start(&mut env.task(&model, &["work"]));
        std::thread::sleep(moment);
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(controller.pid() as i32), Signal::SIGKILL);
        let code = controller.wait().code;
        eprintln!("{number}: killed after {moment:?}, code {code}");
        assert!(code == 128 + 9 || code == 0, "{code}");
        n_killed += u32::from(code != 0);
        // What runs ends by itself. What was made and not started yet is for the next start.
        let ended = within(Duration::from_secs(10), || {
            let filter = format!("label=dev.podbay.project={}", env.key());
            docker(&["ps", "--quiet", "--filter", &filter]).trim().is_empty()
        });
        assert!(ended, "{number}: {:?}", env.containers());
    }
    assert!(n_killed > n_kills() / 3, "only {n_killed} were killed before they were done");
    // The project is free, what was begun is done once at the most, every log can be read.
    run(&mut env.here(&["sh", "--", "true"])).expect(0);
    let swept = within(Duration::from_secs(30), || env.containers().is_empty());
    assert!(swept, "{:?}", env.containers());
    let effects = std::fs::read_to_string(env.path("effects")).unwrap_or_default();
    let mut seen = BTreeMap::new();
    for line in effects.lines() {
        *seen.entry(line).or_insert(0) += 1;
    }
    assert!(!seen.is_empty() && seen.values().all(|&count| count == 1), "{seen:?}");
    let listed = run(&mut env.podbay(&["sessions", "list", "--json", "-n", "1000"])).expect(0).text();
    assert!(listed.matches("{\"session\"").count() as u32 >= n_killed / 3, "{listed}");
    run(&mut env.podbay(&["sessions", "show"])).expect(0);
}
