//! One live controller per project, and the sandbox of `podbay up` that others may join.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use nix::sys::signal::Signal;
use serde_json::json;

use super::leftovers::another_build;
use super::signal_all;
use super::test_box::TestBox;
use super::test_box::alone_with_gc;
use super::test_box::docker;
use crate::support::EngineProxy;
use crate::support::ScriptedModel;
use crate::support::engine_proxy::Fate;
use crate::support::guest::is_running;
use crate::support::guest::marker;
use crate::support::scripted_model::Running;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

#[test]
fn a_second_controller_is_refused_and_told_who_is_there() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "touch begun; sleep 60"}))
        .start_blocking();
    let first = start(&mut env.task(&model, &["wait"]));
    env.wait_for("begun");
    let who = format!("process {}", first.pid());
    let second = run(&mut env.task(&model, &["me too"])).expect(5).json();
    assert!(
        second["error"].to_string().contains(&who),
        "{}",
        second["error"]
    );
    run(&mut env.here(&["call", "list_directory", "{}"]))
        .expect(5)
        .says(&[&who, "hint:"]);
    run(&mut env.here(&["sh", "--", "true"]))
        .expect(125)
        .says(&[&who]);
    assert_eq!(env.boxes().len(), 1);
    first.signal(Signal::SIGTERM);
    first.wait().expect(143);
    run(&mut env.here(&["call", "list_directory", "{}"])).expect(0);
}

#[test]
fn a_link_as_project_is_the_folder_that_it_leads_to() {
    let Some(env) = TestBox::new() else { return };
    let link = env.beside("link");
    std::os::unix::fs::symlink(env.project(), &link).expect("linked");
    let sh = |folder: &std::path::Path, script: &str| {
        let mut command = env.podbay(&["sh", "-C"]);
        command.arg(folder).args(["--", "sh", "-c", script]);
        command
    };
    let first = start(&mut sh(
        &link,
        "touch begun; while ! test -e go; do sleep 0.05; done",
    ));
    env.wait_for("begun");
    run(&mut sh(&env.project(), "true"))
        .expect(125)
        .says(&["another Podbay is at work"]);
    run(&mut sh(&link, "true"))
        .expect(125)
        .says(&["another Podbay is at work"]);
    env.write("go", "");
    first.wait().expect(0);
    assert!(link.is_symlink());
    std::os::unix::fs::symlink("nowhere", env.beside("dangling")).expect("linked");
    run(&mut sh(&env.beside("dangling"), "true"))
        .expect(125)
        .says(&["does not exist"]);
    env.assert_no_container();
}

/// Starts the sandbox that others may join.
pub(super) fn up(env: &TestBox, model: &Running, arguments: &[&str]) {
    let mut command = env.here(&["up", "--model", "scripted", "--endpoint"]);
    run(command.arg(model.endpoint()).args(arguments)).expect(0);
}

/// Issue 34: a command may have written settings that nobody can read.
#[test]
fn a_sandbox_ends_whatever_its_commands_wrote_into_the_projects_settings() {
    let Some(env) = TestBox::new() else { return };
    run(&mut env.here(&["up", "--no-model"])).expect(0);
    let broken = "mkdir -p .podbay && echo 'garbage[[' > .podbay/config.toml";
    run(&mut env.here(&["sh", "--", "sh", "-c", broken])).expect(0);
    run(&mut env.here(&["sh", "--", "true"])).expect(125);
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

#[test]
fn the_box_of_up_is_shared_until_down() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "cat /tmp/shared; touch begun; while ! test -e go; do sleep 0.05; done"}))
        .says("Done.")
        .start_blocking();
    let both = [(), ()].map(|()| {
        start(
            env.here(&["up", "--model", "scripted", "--endpoint"])
                .arg(model.endpoint()),
        )
    });
    for up in both {
        up.wait().expect(0);
    }
    let container = env.container();
    up(&env, &model, &[]);
    assert_eq!(env.container(), container, "one of the same making stays");
    run(&mut env.here(&["sh", "--", "sh", "-c", "echo from sh > /tmp/shared"])).expect(0);

    // A run holds the project, and the others join beside it.
    let task = start(&mut env.task(&model, &["share"]));
    env.wait_for("begun");
    let text = run(&mut env.here(&["call", "bash", r#"{"command":"cat /tmp/shared"}"#]))
        .expect(0)
        .text();
    assert_eq!(text, "from sh\n");
    run(&mut env.here(&["sh", "--", "touch", "go"])).expect(0);
    task.wait().expect(0);
    assert!(
        model.requests()[1]["messages"]
            .to_string()
            .contains("from sh")
    );

    let status = run(&mut env.here(&["status", "--json"])).expect(0).json();
    assert_eq!(status["environment"]["id"], container.as_str());
    up(&env, &model, &["--memory", "300m"]);
    assert_ne!(
        env.container(),
        container,
        "one of another making is replaced"
    );
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
    run(&mut env.here(&["down"])).expect(0);
}

#[track_caller]
fn is_as_it_was(env: &TestBox, first: &str) {
    assert_eq!(env.boxes(), [first]);
    let text = run(&mut env.here(&["sh", "--", "cat", "/tmp/kept"]))
        .expect(0)
        .text();
    assert_eq!(text, "kept\n");
}

#[test]
fn an_environment_stays_until_the_one_in_its_place_works() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &[]);
    let first = env.container();
    run(&mut env.here(&["sh", "--", "sh", "-c", "echo kept > /tmp/kept"])).expect(0);
    let other = |endpoint: &str| {
        let mut command = env.here(&[
            "up",
            "--memory",
            "300m",
            "--model",
            "scripted",
            "--endpoint",
            endpoint,
        ]);
        command.env("PODBAY_LLM_RETRIES", "0");
        command
    };
    // No model; nothing made, nothing started, no name available. Each time another making is asked
    // for.
    run(&mut other("http://127.0.0.1:9/v1")).expect(6);
    is_as_it_was(&env, &first);
    for (number, stage) in ["/containers/create", "start", "rename"]
        .into_iter()
        .enumerate()
    {
        let proxy = EngineProxy::judging(env.beside(&format!("engine-{number}")), move |request| {
            let what = request.of_container().map_or(
                request.path.split('?').next().unwrap_or_default(),
                |(_, what)| what,
            );
            if what == stage {
                Fate::Fail
            } else {
                Fate::Pass
            }
        });
        let failed = run(other(&model.endpoint()).env("DOCKER_HOST", proxy.address())).expect(5);
        assert!(
            proxy
                .seen()
                .iter()
                .any(|request| request.path.contains(stage)),
            "{stage}: {}",
            failed.stderr
        );
        failed.says(&["the disk is on fire"]);
        is_as_it_was(&env, &first);
    }
    run(&mut other(&model.endpoint())).expect(0);
    assert_ne!(env.container(), first);
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

#[test]
fn what_a_killed_up_left_beside_an_environment_goes_with_it() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &[]);
    let name = format!("podbay-environment-{}", env.key());
    // As it is when a controller is killed between two names.
    docker(&["rename", &name, &format!("{name}-old")]);
    up(&env, &model, &[]);
    let container = env.container();
    assert_eq!(
        docker(&["inspect", "--format", "{{.Name}}", &container]).trim(),
        format!("/{name}")
    );
    docker(&["rename", &name, &format!("{name}-next")]);
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

/// As it is when a controller is killed right after it has asked for one.
#[test]
fn what_the_engine_makes_late_for_a_killed_up_is_in_nobodys_way() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    let name = format!("podbay-environment-{}-next", env.key());
    let label = format!("dev.podbay.project={}", env.key());
    let n_made = Arc::new(AtomicU32::new(0));
    let proxy = EngineProxy::start(env.beside("engine"), {
        let n_made = Arc::clone(&n_made);
        move |request| {
            if request.path.starts_with("/containers/create")
                && request.path.contains(&name)
                && n_made.fetch_add(1, Ordering::Relaxed) < 2
            {
                let arguments = [
                    "create",
                    "--name",
                    &name,
                    "--label",
                    &label,
                    "--network",
                    "none",
                    "podbay/workspace",
                    "true",
                ];
                docker(&arguments);
            }
        }
    });
    let mut command = env.here(&["up", "--model", "scripted", "--endpoint"]);
    run(command
        .arg(model.endpoint())
        .env("DOCKER_HOST", proxy.address()))
    .expect(0);
    assert_eq!((n_made.load(Ordering::Relaxed), env.boxes().len()), (3, 1));
    assert_eq!(
        run(&mut env.here(&["sh", "--", "echo", "here"]))
            .expect(0)
            .text(),
        "here\n"
    );
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

#[test]
fn an_environment_that_ends_while_it_is_joined_is_as_good_as_none() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    for (number, stage) in ["exec", "start"].into_iter().enumerate() {
        up(&env, &model, &[]);
        env.join_by_engine();
        let container = env.container();
        // As its lease would end it: between the look at it and the guest in it, or just when that
        // is to start.
        let proxy = EngineProxy::start(env.beside(&format!("engine-{number}")), move |request| {
            let is_it = match stage {
                "exec" => request
                    .of_container()
                    .is_some_and(|(_, what)| what == "exec"),
                _ => request.path.starts_with("/exec/") && request.path.contains("/start"),
            };
            if is_it {
                docker(&["kill", &container]);
            }
        });
        let mut call = env.here(&["call", "bash", r#"{"command":"echo $((40+2))"}"#]);
        assert_eq!(
            run(call.env("DOCKER_HOST", proxy.address()))
                .expect(0)
                .text(),
            "42\n",
            "{stage}"
        );
        env.assert_no_container();
    }
}

#[test]
fn up_makes_a_paused_environment_anew_and_says_so() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &[]);
    let paused = env.container();
    docker(&["pause", &paused]);
    let status = run(&mut env.here(&["status", "--json"])).expect(0).json();
    assert!(
        status["environment"]["detail"]
            .as_str()
            .is_some_and(|detail| detail.contains("paused")),
        "{status}"
    );
    // Nobody joins it, and nobody works beside a sandbox under the project's lock because of it.
    let beside = start(&mut env.here(&[
        "sh",
        "--",
        "sh",
        "-c",
        "touch begun; while ! test -e go; do sleep 0.05; done",
    ]));
    env.wait_for("begun");
    run(&mut env.here(&["call", "bash", r#"{"command":"true"}"#]))
        .expect(5)
        .says(&["another Podbay is at work"]);
    env.write("go", "");
    beside.wait().expect(0).says(&[
        "is paused, so this is a second sandbox",
        "`podbay up` makes it anew",
    ]);

    let mut again = env.here(&["up", "--model", "scripted", "--endpoint"]);
    run(again.arg(model.endpoint()))
        .expect(0)
        .says(&["the environment was paused", "it is made anew"]);
    assert_ne!(env.container(), paused);
    let joined = run(&mut env.here(&["sh", "--", "echo", "here"])).expect(0);
    assert!(
        joined.text() == "here\n" && !joined.stderr.contains("second sandbox"),
        "{}",
        joined.stderr
    );
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

/// With a guest of its own: that of the other tests is in use.
#[test]
fn up_makes_good_what_it_finds_broken() {
    let Some(env) = TestBox::new() else { return };
    let _alone = alone_with_gc();
    let (program, volume) = another_build(&env);
    let model = ScriptedModel::new().start_blocking();
    let podbay = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        env.surround(&mut command);
        command.args(arguments).arg("-C").arg(env.project());
        run(&mut command)
    };
    let up = || {
        podbay(&["up", "--model", "scripted", "--endpoint", &model.endpoint()]).expect(0);
        let container = env.container();
        let text = podbay(&["call", "bash", r#"{"command":"echo $((40+2))"}"#])
            .expect(0)
            .text();
        assert_eq!(
            (text.as_str(), env.boxes()),
            ("42\n", vec![container.clone()]),
            "it is joined"
        );
        container
    };
    let mut seen = vec![up()];
    // The sandbox alone; with the volume; with a volume that is there and empty, of a controller that
    // was killed while it filled it.
    for breaks in [
        &[][..],
        &[&["volume", "rm"][..]],
        &[
            &["volume", "rm"],
            &["volume", "create", "--label", "dev.podbay.role=guest"],
        ],
    ] {
        docker(&["kill", &env.container()]);
        assert!(
            within(Duration::from_secs(30), || env.containers().is_empty()),
            "{:?}",
            env.containers()
        );
        for words in breaks {
            docker(&[words, &[volume.as_str()][..]].concat());
        }
        let container = up();
        assert!(!seen.contains(&container));
        seen.push(container);
    }
    podbay(&["down"]).expect(0);
    env.assert_no_container();
    docker(&["volume", "rm", &volume]);
}

#[test]
fn a_shared_box_that_its_guest_gave_up_goes_for_everybody() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &[]);
    let container = env.container();
    let attack = |command: &str| {
        run(&mut env.here(&["call", "bash", &json!({ "command": command }).to_string()]))
            .expect(1)
            .text()
    };
    let text = attack(&format!("{}; sleep 30", signal_all(9)));
    assert!(text.contains("joined again"), "{text}");
    assert_eq!(env.container(), container, "only the way in was lost");
    let text = attack("kill -9 $(grep PPid /proc/$PPID/status | tr -dc 0-9); sleep 30");
    assert!(
        text.contains("killed from inside") && text.contains("A new one takes its place"),
        "{text}"
    );
    assert!(!env.containers().contains(&container));
    run(&mut env.here(&["call", "bash", r#"{"command":"true"}"#])).expect(0);
    up(&env, &model, &[]);
    assert_ne!(env.container(), container);
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

/// Such a command is killed in time or it takes its sandbox along; either way the limits are named and
/// the next call is well.
#[test]
fn a_fork_bomb_in_a_shared_box_is_over_when_its_call_is() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &[]);
    let bomb = "python3 -c 'import os\nwhile True:\n try: os.fork()\n except OSError: pass'";
    let arguments = json!({ "command": bomb, "timeout_seconds": 3 }).to_string();
    let text = run(&mut env.here(&["call", "bash", &arguments]))
        .expect(1)
        .text();
    assert!(
        text.contains("longer than") && text.contains("limit of 3 s"),
        "{text}"
    );
    if text.contains("the sandbox was ended") {
        assert!(
            text.contains("limit of 512 processes") && text.contains("A new one takes its place"),
            "{text}"
        );
        assert!(env.containers().is_empty());
    }
    run(&mut env.here(&["call", "bash", r#"{"command":"true"}"#])).expect(0);
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

/// The counters are those of the whole sandbox, and say nothing of who met the limit there.
#[test]
fn who_only_runs_beside_others_at_the_limit_has_not_met_it() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &["--pids", "60"]);
    let beside = r#"{"command": "touch begun; until [ -e over ]; do :; done; echo fine", "timeout_seconds": 60}"#;
    let beside = start(&mut env.here(&["call", "--pids", "60", "bash", beside]));
    env.wait_for("begun");
    let many = r#"{"command": "for n in $(seq 100); do sleep 3 & done", "timeout_seconds": 2}"#;
    let text = run(&mut env.here(&["call", "--pids", "60", "bash", many]))
        .expect(1)
        .text();
    assert!(text.contains("60 processes"), "{text}");
    env.write("over", "");
    assert_eq!(beside.wait().expect(0).text(), "fine\n");
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

#[test]
fn an_environment_that_nobody_uses_ends_by_itself() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    let mut command = env.here(&["up", "--model", "scripted", "--endpoint"]);
    run(command
        .arg(model.endpoint())
        .env("PODBAY_SANDBOX_LEASE", "3s"))
    .expect(0);
    // Used for longer than the lease, it stays.
    run(env
        .here(&["sh", "--", "sleep", "6"])
        .env("PODBAY_SANDBOX_LEASE", "3s"))
    .expect(0);
    assert_eq!(env.boxes().len(), 1);
    assert!(
        within(Duration::from_secs(20), || env.containers().is_empty()),
        "{:?}",
        env.containers()
    );
}

#[test]
fn a_second_box_beside_that_of_up_is_told() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &[]);
    let words = [
        "`podbay up` was made with other settings (the same image, but other limits",
        "to join that one give the flags",
    ];
    for arguments in [
        &["sh", "--memory", "512MiB", "--", "true"][..],
        &[
            "call",
            "--memory",
            "512MiB",
            "bash",
            r#"{"command":"true"}"#,
        ],
    ] {
        let done = run(&mut env.here(arguments)).expect(0);
        for words in words {
            assert!(
                done.stderr.contains(words),
                "{arguments:?}: {}",
                done.stderr
            );
        }
    }
    for arguments in [
        &["sh", "--", "true"][..],
        &["call", "bash", r#"{"command":"true"}"#],
    ] {
        let done = run(&mut env.here(arguments)).expect(0);
        assert!(
            !done.stderr.contains("other settings"),
            "{arguments:?}: {}",
            done.stderr
        );
    }
    run(&mut env.here(&["down"])).expect(0);
    let done = run(&mut env.here(&["sh", "--memory", "512MiB", "--", "true"])).expect(0);
    assert!(!done.stderr.contains("other settings"), "{}", done.stderr);
    env.assert_no_container();
}

#[test]
fn a_command_that_stops_all_it_can_reach_ends_when_it_is_over() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    for is_shared in [false, true] {
        if is_shared {
            up(&env, &model, &[]);
        }
        let shell = start(&mut env.here(&["sh", "--", "sh", "-c", "kill -STOP -1; echo alive"]));
        assert_eq!(
            shell.wait_within(Duration::from_secs(20)).expect(0).text(),
            "alive\n",
            "shared: {is_shared}"
        );
        run(&mut env.here(&["sh", "--", "true"])).expect(0);
    }
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

/// A guest that was joined can be stopped; PID 1 wakes it, and in the end kills who continues.
#[test]
fn r_12_a_command_that_stops_everything_again_and_again_ends_in_a_shared_box_too() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &[]);
    let container = env.container();
    let stops = "python3 -c '
import os
os.fork()
own = os.getpid()
while True:
 for pid in [int(pid) for pid in os.listdir(\"/proc\") if pid.isdigit()]:
  try: pid != own and os.kill(pid, 19)
  except OSError: pass
'";
    let begun = Instant::now();
    let text = run(&mut env.here(&[
        "call",
        "bash",
        &json!({ "command": stops, "timeout_seconds": 5 }).to_string(),
    ]))
    .expect(1)
    .text();
    let took = begun.elapsed();
    assert!(text.contains("limit of 5 s"), "{text}");
    assert!(took < Duration::from_mins(1), "{took:?}: {text}");
    run(&mut env.here(&["call", "bash", r#"{"command":"true"}"#])).expect(0);
    assert_eq!(env.boxes(), [container.as_str()]);
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

/// PID 1 obeys a TERM from outside alone.
#[test]
fn no_signal_from_inside_ends_the_environment() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &[]);
    let container = env.container();
    let script = "for n in $(seq 1 64); do kill -$n 1; done 2>/dev/null; sleep 1; echo alive";
    assert_eq!(
        run(&mut env.here(&["sh", "--", "sh", "-c", script]))
            .expect(0)
            .text(),
        "alive\n"
    );
    assert_eq!(
        run(&mut env.here(&["sh", "--", "echo", "joined"]))
            .expect(0)
            .text(),
        "joined\n"
    );
    assert_eq!(env.boxes(), [container.as_str()]);
    docker(&["kill", "--signal", "TERM", &container]);
    assert!(
        within(Duration::from_secs(20), || env.containers().is_empty()),
        "from outside it is obeyed"
    );
}

#[test]
fn a_controller_that_is_killed_in_a_shared_box_leaves_no_process_there() {
    let Some(env) = TestBox::new() else { return };
    let time = crate::support::guest::marker();
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": format!("touch begun; setsid sleep {time} & sleep {time}")}),
        )
        .start_blocking();
    up(&env, &model, &[]);
    let task = start(&mut env.task(&model, &["wait"]));
    env.wait_for("begun");
    task.signal(Signal::SIGKILL);
    task.wait();
    assert!(within(Duration::from_secs(20), || {
        !crate::support::guest::is_running(&time)
    }));
    assert_eq!(env.boxes().len(), 1, "the environment itself stays");
    run(&mut env.here(&["sh", "--", "true"])).expect(0);
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

#[test]
fn a_shared_box_that_answers_no_more_is_removed() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "touch begun; sleep 60", "timeout_seconds": 1}),
        )
        .calls("bash", json!({"command": "echo $((40+2))"}))
        .says("It continued.")
        .start_blocking();
    up(&env, &model, &[]);
    let shared = env.container();
    let task = start(&mut env.task(&model, &["wait"]));
    env.wait_for("begun");
    super::test_box::docker(&["pause", &shared]);
    task.wait().expect(0);
    let requests = model.requests();
    let told = requests[1]["messages"].to_string();
    assert!(
        told.contains("did not answer") && told.contains("A new one takes its place"),
        "{told}"
    );
    assert!(requests[2]["messages"].to_string().contains("42"));
    env.assert_no_container();
}

#[test]
fn a_single_call_leaves_nothing_in_the_background_and_says_so() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &[]);
    let sleep = marker();
    let arguments = json!({"command": format!("sleep {sleep}"), "background": true}).to_string();
    let text = run(&mut env.here(&["call", "bash", &arguments]))
        .expect(0)
        .text();
    assert!(text.contains("a single call has no background"), "{text}");
    assert!(within(Duration::from_secs(20), || !is_running(&sleep)));
    run(&mut env.here(&["down"])).expect(0);
}
