//! Commands that make processes without end, hold all there may be, or stop whoever is to end them:
//! they end in their time all the same.

use serde_json::Value;
use serde_json::json;

use super::greedy::greedy;
use super::greedy::greedy_for;
use super::greedy::has;
use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::test_env::run;

#[test]
fn r_01_a_fork_bomb_ends_at_the_limit_and_is_named() {
    let Some(env) = TestBox::new() else { return };
    env.write("bomb.sh", "bomb() { bomb | bomb & }; bomb; sleep 3\n");
    let text = greedy(&env, &["--pids", "64"], &[], "exec bash bomb.sh");
    has(
        &text,
        &[
            "the limit of 64 processes",
            "most of those that were seen: `bash`",
        ],
    );
}

#[test]
fn r_01_a_bomb_that_minds_no_refusal_is_told_the_limit_beside_its_time() {
    let Some(env) = TestBox::new() else { return };
    env.write(
        "bomb.py",
        "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n",
    );
    // Over in its time and two seconds, and the next call works in the same sandbox.
    let text = greedy_for(3, &env, &["--pids", "100"], &[], "exec python3 bomb.py");
    has(
        &text,
        &[
            "longer than the limit of 3 s",
            "the limit of 100 processes in the sandbox",
            "python3",
        ],
    );
    // Who only runs too long met no other limit.
    let text = greedy_for(1, &env, &["--pids", "100"], &[], "sleep 30");
    assert!(
        text.contains("longer than the limit of 1 s") && !text.contains("processes"),
        "{text}"
    );
}

/// Each in a session of its own, so that no signal to a group reaches them together.
const SESSIONS: &str = "import os
while True:
    try:
        os.fork() or os.setsid()
    except OSError:
        pass
";

#[test]
fn r_01_a_bomb_of_sessions_is_over_in_its_time_and_the_next_call_works() {
    let Some(env) = TestBox::new() else { return };
    env.write("sessions.py", SESSIONS);
    let text = greedy_for(3, &env, &["--pids", "200"], &[], "exec python3 sessions.py");
    has(
        &text,
        &[
            "longer than the limit of 3 s",
            "the limit of 200 processes in the sandbox",
            "python3",
        ],
    );
}

#[test]
fn r_01_a_bomb_of_sessions_in_the_background_is_stopped_when_it_is_to_be() {
    let Some(env) = TestBox::new() else { return };
    env.write(
        "late.py",
        format!("import time\nopen('begun', 'w').close()\n{SESSIONS}"),
    );
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "exec python3 late.py", "background": true}),
        )
        .calls("bash", json!({"command": "until [ -e begun ]; do :; done"}))
        .calls("stop_process", json!({"process_id": "last"}))
        .calls("list_processes", json!({}))
        .calls("bash", json!({"command": "echo $((40+2))"}))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["--pids", "200", "be greedy"])).expect(0);
    let told = model.requests().last().expect("requests")["messages"].clone();
    let told: Vec<String> = told
        .as_array()
        .expect("a list")
        .iter()
        .filter(|said| said["role"] == "tool")
        .map(|said| said["content"].to_string())
        .collect();
    assert_eq!(told.len(), 5, "{told:#?}");
    assert!(
        !told[3].contains("runs") && told[3].contains("late.py"),
        "{told:#?}"
    );
    assert!(told[4].contains("42"), "{told:#?}");
    env.assert_no_container();
}

/// It has a part of that time to grow in, and costs nobody the sandbox.
#[test]
fn r_01_a_bomb_that_begins_when_it_is_asked_to_end_is_ended_as_well() {
    let Some(env) = TestBox::new() else { return };
    let bomb = "import os, signal, time
def begin(*_):
    while True:
        try:
            os.fork()
        except OSError:
            pass
signal.signal(signal.SIGTERM, begin)
while True:
    time.sleep(1)
";
    env.write("asked.py", bomb);
    for command in ["exec python3 asked.py", "python3 asked.py; true"] {
        let model = ScriptedModel::new()
            .calls("bash", json!({"command": command, "timeout_seconds": 2}))
            .calls("bash", json!({"command": "echo $((40+2))"}))
            .says("Done.")
            .start_blocking();
        let done = run(&mut env.task(&model, &["--pids", "300", "be greedy"])).expect(0);
        let told = model.requests().last().expect("requests")["messages"].to_string();
        has(&told, &["longer than the limit of 2 s", "python3", "42"]);
        assert!(!told.contains("A new one takes its place"), "{told}");
        assert!(
            !done.stderr.contains("the sandbox ended"),
            "{}",
            done.stderr
        );
        env.assert_no_container();
    }
}

/// Each wakes all others again and again. It is ended for the next command, or its sandbox is given up.
#[test]
fn r_12_a_storm_of_wake_ups_in_the_background_keeps_nobody_out() {
    let Some(env) = TestBox::new() else { return };
    let storm = "import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open('begun', 'w').close()
while True:
    try:
        os.fork() or os.setsid()
    except OSError:
        for process in filter(str.isdigit, os.listdir('/proc')):
            try:
                os.kill(int(process), signal.SIGCONT)
            except OSError:
                pass
";
    env.write("storm.py", storm);
    // Each another one: a model that repeats itself is stopped.
    let command = |n: u32| json!({"command": format!("echo $((40+{n}))"), "timeout_seconds": 20});
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "exec python3 storm.py", "background": true}))
        .calls("bash", json!({"command": "until [ -e begun ]; do :; done; for n in $(seq 100000); do :; done", "timeout_seconds": 20}))
        .calls("bash", command(1))
        .calls("bash", command(2))
        .calls("bash", command(3))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["--pids", "200", "be greedy"])).expect(0);
    let told = model.requests().last().expect("requests")["messages"].clone();
    let told: Vec<String> = told
        .as_array()
        .expect("a list")
        .iter()
        .filter(|said| said["role"] == "tool")
        .map(|said| said["content"].to_string())
        .collect();
    assert_eq!(told.len(), 5, "{told:#?}");
    assert!(
        told[3].contains("42") && told[4].contains("43"),
        "{told:#?}"
    );
    assert!(
        !told.iter().any(|told| told.contains("has no free process")),
        "{told:#?}"
    );
    env.assert_no_container();
}

#[test]
fn r_01_who_holds_the_processes_is_named_though_it_runs_in_the_background() {
    let Some(env) = TestBox::new() else { return };
    env.write(
        "hold.py",
        "import os, time\nfor n in range(44):\n    if os.fork() == 0: time.sleep(600)\nopen('begun', 'w').close()\ntime.sleep(600)\n",
    );
    let loops =
        "until [ -e begun ]; do :; done; for n in $(seq 20); do sleep 3 & done; wait; exit 3";
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "exec python3 hold.py", "background": true}),
        )
        .calls("bash", json!({"command": loops, "timeout_seconds": 30}))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["--pids", "60", "be greedy"])).expect(0);
    let told = model.requests().last().expect("requests")["messages"].to_string();
    has(
        &told,
        &[
            "the limit of 60 processes in the sandbox, `sandbox.pids`; most of those that were seen: `python3`, ",
            "most processes in the sandbox are of the background command ",
            "(`exec python3 hold.py`): ",
        ],
    );
    env.assert_no_container();

    // Beside one that holds few it is the command itself.
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "sleep 600", "background": true}))
        .calls("bash", json!({"command": "for n in $(seq 80); do sleep 3 & done; wait; exit 3", "timeout_seconds": 30}))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["--pids", "60", "be greedy"])).expect(0);
    let told = model.requests().last().expect("requests")["messages"].to_string();
    has(
        &told,
        &[
            "the limit of 60 processes in the sandbox, `sandbox.pids`; most of those that were seen: `sleep`, ",
        ],
    );
    assert!(
        !told.contains("most processes in the sandbox are of"),
        "{told}"
    );
    env.assert_no_container();
}

/// It cannot be kept from that: both are of its own user.
#[test]
fn r_12_a_command_that_stops_its_supervisor_again_and_again_ends_in_time() {
    let Some(env) = TestBox::new() else { return };
    let stop = "import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def parent(pid):
    return int(open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[1])
ours = [os.getppid(), parent(os.getppid())]
os.fork()
os.fork()
while True:
    for pid in ours:
        os.kill(pid, signal.SIGSTOP)
";
    env.write("stop.py", stop);
    let text = greedy_for(3, &env, &[], &[], "echo begun; exec python3 stop.py");
    has(&text, &["begun", "longer than the limit of 3 s"]);
}

/// Nobody else runs who would see to it, and what starts commands is of their own user.
#[test]
fn r_12_beside_a_background_command_that_stops_everything_again_and_again_each_call_ends_in_time() {
    let Some(env) = TestBox::new() else { return };
    let stop = "import os
own = os.getpid()
open('begun', 'w').close()
while True:
    for pid in [int(pid) for pid in os.listdir('/proc') if pid.isdigit()]:
        try:
            pid != own and os.kill(pid, 19)
        except OSError:
            pass
";
    env.write("stop.py", stop);
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "exec python3 stop.py", "background": true}))
        // It may stop these as well, which are commands like itself.
        .calls("bash", json!({"command": "while ! test -e begun; do sleep 0.05; done; sleep 0.2; echo first", "timeout_seconds": 3}))
        .calls("bash", json!({"command": "echo second", "timeout_seconds": 3}))
        .calls("stop_process", json!({"process_id": "last"}))
        .calls("bash", json!({"command": "echo third", "timeout_seconds": 3}))
        .says("Done.")
        .start_blocking();
    let mut task = env.here(&[
        "run",
        "--output",
        "jsonl",
        "--tools",
        "full",
        "--model",
        "scripted",
        "--endpoint",
    ]);
    let text = run(task.arg(model.endpoint()).arg("be greedy"))
        .expect(0)
        .text();
    let events = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
    let ended: Vec<Value> = events
        .filter(|event| event["type"] == "call_finished")
        .collect();
    assert_eq!(ended.len(), 5, "{text}");
    assert!(env.path("begun").exists(), "{text}");
    assert_eq!(ended[4]["result"], "third\n", "{text}");
    // What does not end within its time, the grace and two seconds more costs its sandbox.
    assert!(!text.contains("sandbox_lost"), "{text}");
    env.assert_no_container();
}

/// Who starts commands must not wait for what such a process comes to.
#[test]
fn r_12_a_process_that_is_stopped_before_it_becomes_its_command_is_ended_in_time() {
    let Some(env) = TestBox::new() else { return };
    // The processes that are to become commands, as soon as they are there.
    let stop = "import os
def parent(pid):
    return int(open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[1])
own = os.getpid()
spawner = parent(os.getppid())
open('begun', 'w').close()
while True:
    for pid in [int(pid) for pid in os.listdir('/proc') if pid.isdigit()]:
        try:
            pid > own and parent(parent(pid)) == spawner and os.kill(pid, 19)
        except (OSError, ValueError):
            pass
";
    env.write("stop.py", stop);
    let mut model = ScriptedModel::new().calls(
        "bash",
        json!({"command": "exec python3 stop.py", "background": true}),
    );
    model = model.calls(
        "bash",
        json!({"command": "while ! test -e begun; do sleep 0.05; done", "timeout_seconds": 3}),
    );
    for n in 0..8 {
        model = model.calls(
            "bash",
            json!({"command": format!("true {n}"), "timeout_seconds": 1}),
        );
    }
    let model = model
        .calls("stop_process", json!({"process_id": "last"}))
        .says("Done.")
        .start_blocking();
    let mut task = env.here(&[
        "run",
        "--output",
        "jsonl",
        "--tools",
        "full",
        "--model",
        "scripted",
        "--endpoint",
    ]);
    let text = run(task.arg(model.endpoint()).arg("be greedy"))
        .expect(0)
        .text();
    assert!(env.path("begun").exists(), "{text}");
    assert!(
        text.contains("longer than the limit of 1 s"),
        "nothing was stopped: {text}"
    );
    assert!(!text.contains("sandbox_lost"), "{text}");
    env.assert_no_container();
}

/// Nobody could end it otherwise: `kill` is a process too, and who is to end it was stopped.
#[test]
fn r_12_a_background_command_that_holds_all_processes_and_stopped_its_supervisor_is_ended_for_the_next()
 {
    let Some(env) = TestBox::new() else { return };
    let hold = "import os, sys, time
ours = os.getppid()
while True:
    try:
        if os.fork() == 0:
            time.sleep(600)
    except OSError:
        if not os.path.exists('begun'):
            if sys.argv[1] == 'stop':
                os.kill(ours, 19)
            open('begun', 'w').close()
        time.sleep(0.001)
";
    env.write("hold.py", hold);
    for does in ["stop", "let"] {
        let model = ScriptedModel::new()
            .calls("bash", json!({"command": format!("exec python3 hold.py {does}"), "background": true}))
            // Without a process of its own.
            .calls("bash", json!({"command": "until [ -e begun ]; do :; done; echo first", "timeout_seconds": 20}))
            .calls("bash", json!({"command": "echo second"}))
            .calls("bash", json!({"command": "echo third"}))
            .calls("bash", json!({"command": "echo fourth; sleep 0; echo fifth"}))
            .says("Done.")
            .start_blocking();
        let mut task = env.here(&[
            "run",
            "--output",
            "jsonl",
            "--pids",
            "60",
            "--model",
            "scripted",
            "--endpoint",
        ]);
        let text = run(task.arg(model.endpoint()).arg("be greedy"))
            .expect(0)
            .text();
        let told = model.requests().last().expect("requests")["messages"].to_string();
        has(
            &told,
            &[
                "second",
                "third",
                "the sandbox had no free process left; background commands were ended: 1",
                "fourth\\nfifth\\n",
            ],
        );
        assert!(!told.contains("cannot be started"), "{told}");
        assert!(!text.contains("sandbox_lost"), "{text}");
        std::fs::remove_file(env.path("begun")).expect("it was full");
        env.assert_no_container();
    }
}
