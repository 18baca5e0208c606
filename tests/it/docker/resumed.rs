//! A run that is killed continues: nothing is said or done twice.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use serde_json::json;

use super::test_box::TestBox;
use crate::images::PNG;
use crate::support::ScriptedModel;
use crate::support::guest::marker;
use crate::support::scripted_model::Running;
use crate::support::scripted_model::serve::asks_to_sum_up;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::until;

/// Kills a run once `now` is so, and lets another one finish its task; returns what the second
/// model server saw.
#[track_caller]
fn killed_and_gone_on(
    env: &TestBox,
    first: ScriptedModel,
    second: ScriptedModel,
    now: impl Fn(&Running) -> bool,
) -> (Running, Running) {
    let first = first.start_blocking();
    let controller = start(&mut env.task(&first, &["write a line"]));
    assert!(until(|| now(&first)), "the moment did not come");
    controller.signal(Signal::SIGKILL);
    assert_eq!(controller.wait().code, 128 + 9);
    let second = second.start_blocking();
    let done = run(&mut env.task(&second, &["--continue"])).expect(0);
    let result = done.json();
    assert_eq!(
        (&result["status"], &result["response"]),
        (&json!("completed"), &json!("It is done.")),
        "{}",
        done.stderr
    );
    let (before, after) = (first.heads(), second.heads());
    let sent = before.last().expect("a request");
    assert!(
        after[0].starts_with(sent),
        "what was sent is sent again:\n{}",
        String::from_utf8_lossy(&after[0])
    );
    second.assert_append_only();
    let said = second.requests()[0]["messages"]
        .to_string()
        .matches("write a line")
        .count();
    assert_eq!(said, 1, "the task is told once");
    env.assert_no_container();
    let listed: Value = run(&mut env.podbay(&["sessions", "list", "--json"]))
        .expect(0)
        .json();
    assert_eq!(
        (
            &listed["sessions"][0]["session"],
            &listed["sessions"][0]["status"]
        ),
        (&result["session"], &json!("completed")),
        "one session, which continued"
    );
    (first, second)
}

/// SES-14: whoever begins something else is told that the last thing has no end.
#[test]
fn a_session_that_was_broken_off_is_told_of_when_the_next_one_begins() {
    let Some(env) = TestBox::new() else { return };
    let first = write().stall(Duration::from_mins(5)).start_blocking();
    let controller = start(&mut env.task(&first, &["write a line"]));
    assert!(
        until(|| first.requests().len() == 2),
        "the moment did not come"
    );
    controller.signal(Signal::SIGKILL);
    controller.wait();
    let broken: Value = run(&mut env.podbay(&["sessions", "list", "--json"]))
        .expect(0)
        .json();
    let id = broken["sessions"][0]["session"].as_str().expect("an id");
    let words = format!("the last session here, {id}, was interrupted; `--resume {id}` resumes it");
    let second = ScriptedModel::new()
        .says("Done.")
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&second, &["do something else"]))
        .expect(0)
        .says(&[&words]);
    // That one came to its end.
    let third = run(&mut env.task(&second, &["and again"])).expect(0);
    assert!(
        !third.stderr.contains("was interrupted"),
        "{}",
        third.stderr
    );
}

/// A model server that was started anew answers once its model is loaded, which takes longer than
/// an answer may.
#[test]
fn a_server_that_still_loads_its_model_when_a_run_begins_is_waited_for() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .loads_for(8)
        .says("It is done.")
        .start_blocking();
    let mut task = env.task(&model, &["look around"]);
    run(task.env("PODBAY_LLM_PROBE_TIMEOUT_S", "1")).expect(0);
    let model = ScriptedModel::new().loads_for(1000).start_blocking();
    let mut task = env.task(&model, &["look around"]);
    task.env("PODBAY_LLM_PROBE_TIMEOUT_S", "1")
        .env("PODBAY_INFERENCE_START_TIMEOUT", "2s");
    run(&mut task)
        .expect(6)
        .says(&["is still loading its model after"]);
}

fn write() -> ScriptedModel {
    ScriptedModel::new().calls("bash", json!({"command": "echo line >> made.txt"}))
}

#[test]
fn a_run_that_is_killed_while_the_model_reads_goes_on() {
    let Some(env) = TestBox::new() else { return };
    let first = write().stall(Duration::from_mins(5));
    killed_and_gone_on(
        &env,
        first,
        ScriptedModel::new().says("It is done."),
        |model| model.requests().len() == 2,
    );
    assert_eq!(env.read("made.txt"), "line\n");
}

#[test]
fn a_run_that_is_killed_while_the_model_speaks_goes_on() {
    let Some(env) = TestBox::new() else { return };
    let first = write().drips(&"word ".repeat(2000), 5, Duration::from_millis(50));
    let mut begun = None;
    let begun = std::cell::RefCell::new(&mut begun);
    killed_and_gone_on(
        &env,
        first,
        ScriptedModel::new().says("It is done."),
        |model| {
            let spoken = model.requests().len() == 2;
            // Some words later.
            spoken
                && begun
                    .borrow_mut()
                    .get_or_insert_with(std::time::Instant::now)
                    .elapsed()
                    > Duration::from_millis(500)
        },
    );
    assert_eq!(env.read("made.txt"), "line\n");
}

/// Issue 6: what the model knew of a file continues the session, so that what somebody did to it
/// meanwhile is not lost.
#[test]
fn a_run_that_goes_on_writes_over_nothing_that_was_changed_meanwhile() {
    let Some(env) = TestBox::new() else { return };
    let write = |text: &str| json!({"path": "notes.md", "content": text});
    let first = ScriptedModel::new()
        .calls("write_file", write("one\n"))
        .stall(Duration::from_mins(5));
    let second = ScriptedModel::new()
        .calls("write_file", write("two\n"))
        .says("It is done.");
    let path = env.path("notes.md");
    let (_, second) = killed_and_gone_on(&env, first, second, |model| {
        let is_written = model.requests().len() == 2;
        if is_written {
            std::fs::write(&path, "somebody's\n").expect("ours");
        }
        is_written
    });
    assert_eq!(env.read("notes.md"), "somebody's\n");
    let told = second.requests()[1]["messages"].to_string();
    assert!(
        told.contains("notes.md: it has changed since you read it"),
        "{told}"
    );
}

/// REL-02: the call that was under way is told as such and is not executed again.
#[test]
fn a_run_that_is_killed_in_a_call_goes_on_without_that_call() {
    let Some(env) = TestBox::new() else { return };
    let sleep = marker();
    let calls = [
        ("bash", json!({"command": "echo line >> made.txt"})),
        (
            "bash",
            json!({"command": format!("echo half >> made.txt; touch begun; sleep {sleep}")}),
        ),
        ("bash", json!({"command": "echo never >> made.txt"})),
    ];
    let first = ScriptedModel::new().calls_many(calls);
    let path = env.path("begun");
    let (_, second) = killed_and_gone_on(
        &env,
        first,
        ScriptedModel::new().says("It is done."),
        |_| path.exists(),
    );
    assert_eq!(env.read("made.txt"), "line\nhalf\n");
    let told: Vec<String> = second.requests()[0]["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .filter(|message| message["role"] == "tool")
        .filter_map(|message| message["content"].as_str().map(str::to_owned))
        .collect();
    assert!(
        told[1].contains("not known how this call ended") && told[2].contains("not executed"),
        "{told:?}"
    );
}

/// What was learnt of the model continues the conversation: nothing is sent otherwise, and
/// nothing is asked in vain again.
#[test]
fn a_run_that_had_learnt_how_its_model_must_be_asked_goes_on_so() {
    let (Some(env), Some(other)) = (TestBox::new(), TestBox::new()) else {
        return;
    };
    let refusal = |code: u16, message: &str| {
        json!({"error": {"code": code, "message": message, "type": "server_error"}}).to_string()
    };
    let is_stalled = |n: usize| move |model: &Running| model.requests().len() == n;
    let long = Duration::from_mins(5);

    let folded = ScriptedModel::new().status(400, refusal(400, "System role not supported"));
    let folded = folded
        .calls("bash", json!({"command": "echo line >> made.txt"}))
        .stall(long);
    let (_, after) = killed_and_gone_on(
        &env,
        folded,
        ScriptedModel::new().says("It is done."),
        is_stalled(3),
    );
    assert_eq!(after.requests()[0]["messages"][0]["role"], "user");

    let held = ScriptedModel::new().status(
        500,
        refusal(
            500,
            "Failed to parse input at pos 31: {\"name\": \"bash\", \"argu",
        ),
    );
    let held = held
        .says(
            &json!({"tool": "bash", "arguments": {"command": "echo line >> made.txt"}}).to_string(),
        )
        .stall(long);
    let (_, after) = killed_and_gone_on(
        &other,
        held,
        ScriptedModel::new().says("{\"answer\": \"It is done.\"}"),
        is_stalled(3),
    );
    assert!(after.requests()[0].get("response_format").is_some());
    assert_eq!(
        (env.read("made.txt"), other.read("made.txt")),
        ("line\n".to_owned(), "line\n".to_owned())
    );
}

#[test]
fn a_run_whose_model_was_shown_an_image_goes_on_with_it() {
    let Some(env) = TestBox::new() else { return };
    env.write("a.png", PNG);
    let look = || {
        ScriptedModel::new()
            .sees()
            .calls("read_file", json!({"path": "a.png"}))
            .stall(Duration::from_mins(5))
    };
    let seeing = ScriptedModel::new().sees().says("It is done.");
    let (_, after) = killed_and_gone_on(&env, look(), seeing, |model| model.requests().len() == 2);
    assert!(
        after.requests()[0]
            .to_string()
            .contains("data:image/png;base64,iVBOR")
    );
    // With a model that sees nothing it continues too, with the words alone.
    let blind = ScriptedModel::new().says("I see nothing.").start_blocking();
    let done = run(&mut env.task(&blind, &["--continue", "and now?"])).expect(0);
    assert!(
        done.json()["warnings"].to_string().contains("does not see"),
        "{}",
        done.text()
    );
    let request = blind.requests()[0].to_string();
    assert!(
        !request.contains("image_url") && request.contains("a.png, as read_file found it."),
        "{request}"
    );
}

/// What was said stands in the log until a summary does, so half a summary is none.
#[test]
fn a_run_that_is_killed_while_the_conversation_is_summed_up_goes_on() {
    let Some(env) = TestBox::new() else { return };
    let print = |n: u32| json!({"command": format!("echo {n} >> made.txt; seq 1 350")});
    let first = (0..12).fold(ScriptedModel::new().context(4096), |model, n| {
        model.calls("bash", print(n))
    });
    let first = first
        .silent_summary(Duration::from_mins(5))
        .start_blocking();
    let controller = start(&mut env.task(&first, &["--max-turns", "40", "write lines"]));
    let sums_up = || {
        first
            .raw_bodies()
            .last()
            .is_some_and(|body| asks_to_sum_up(body))
    };
    assert!(until(sums_up), "the window did not fill");
    controller.signal(Signal::SIGKILL);
    assert_eq!(controller.wait().code, 128 + 9);
    let made = env.read("made.txt");
    // A smaller window, so that room is made again whatever was set aside before the end came.
    let second = ScriptedModel::new()
        .context(3000)
        .sums_up("I wrote lines.")
        .says("It is done.")
        .start_blocking();
    let done = run(&mut env.task(&second, &["--continue"])).expect(0);
    assert_eq!(done.json()["response"], "It is done.", "{}", done.stderr);
    assert_eq!(env.read("made.txt"), made, "no call is executed again");
    let last = second.requests().pop().expect("a request")["messages"].to_string();
    assert!(
        last.contains("I wrote lines.") && last.matches("write lines").count() == 1,
        "{last}"
    );
    env.assert_no_container();
}

/// What the user gets was settled: nobody is asked for it again, and it is said once.
#[test]
fn a_run_that_is_killed_once_it_has_its_answer_gives_that_answer() {
    let Some(env) = TestBox::new() else { return };
    let (begun, sleep) = (env.path("ends"), marker());
    env.write(
        ".podbay/config.toml",
        format!("[[hooks.stop]]\nrun = \"touch ends; sleep {sleep}\"\n"),
    );
    run(env
        .podbay(&["config", "trust", "--yes", "-C"])
        .arg(env.project()))
    .expect(0);
    let first = killed(&env, write().says("I wrote it."), &["write a line"], |_| {
        begun.exists()
    });
    std::fs::remove_dir_all(env.path(".podbay")).expect("ours");
    let second = ScriptedModel::new()
        .says("It is done twice.")
        .start_blocking();
    let done = run(&mut env.task(&second, &["--continue"])).expect(0);
    let result = done.json();
    assert_eq!(
        (&result["status"], &result["response"]),
        (&json!("completed"), &json!("I wrote it.")),
        "{}",
        done.stderr
    );
    assert_eq!((first.requests().len(), second.requests().len()), (2, 0));
    let shown = run(&mut env.podbay(&["sessions", "show", "last"])).expect(0);
    assert_eq!(
        shown.text().matches("I wrote it.").count(),
        1,
        "{}",
        shown.text()
    );
    run(&mut env.task(&second, &["--continue"]))
        .expect(2)
        .says(&["has no open task"]);
    env.assert_no_container();
}

/// Starts a run and kills it once `now` is so.
#[track_caller]
fn killed(
    env: &TestBox,
    model: ScriptedModel,
    words: &[&str],
    now: impl Fn(&Running) -> bool,
) -> Running {
    let model = model.start_blocking();
    let controller = start(&mut env.task(&model, words));
    assert!(until(|| now(&model)), "the moment did not come");
    controller.signal(Signal::SIGKILL);
    assert_eq!(controller.wait().code, 128 + 9);
    model
}

/// REL-02: one session, killed in each of its phases, one after the other.
#[test]
fn a_session_that_is_killed_again_and_again_is_finished_all_the_same() {
    let Some(env) = TestBox::new() else { return };
    let long = Duration::from_mins(5);
    let line = |text: &str| json!({"command": format!("echo {text} >> made.txt")});
    let go_on = ["--continue", "--max-turns", "40"];
    // While the model reads the very first request.
    let read = killed(
        &env,
        ScriptedModel::new().stall(long),
        &["--max-turns", "40", "write lines"],
        |model| model.requests().len() == 1,
    );
    // While it speaks.
    let spoken = ScriptedModel::new().calls("bash", line("one")).drips(
        &"word ".repeat(2000),
        5,
        Duration::from_millis(50),
    );
    let since = std::cell::OnceCell::new();
    let spoken = killed(&env, spoken, &go_on, |model| {
        model.requests().len() == 2
            && since.get_or_init(std::time::Instant::now).elapsed() > Duration::from_millis(500)
    });
    // While a command runs.
    let sleep = marker();
    let call = json!({"command": format!("echo two >> made.txt; touch begun; sleep {sleep}")});
    let begun = env.path("begun");
    let called = killed(
        &env,
        ScriptedModel::new().calls("bash", call),
        &go_on,
        |_| begun.exists(),
    );
    for pair in [(&read, &spoken), (&spoken, &called)] {
        let (before, after) = (pair.0.heads(), pair.1.heads());
        assert!(
            after[0].starts_with(before.last().expect("requests")),
            "what was sent is sent again"
        );
    }
    // While the conversation is summed up.
    let print = |n: u32| json!({"command": format!("echo {n} >> made.txt; seq 1 350")});
    let full = (0..12)
        .fold(ScriptedModel::new().context(4096), |model, n| {
            model.calls("bash", print(n))
        })
        .silent_summary(long);
    killed(&env, full, &go_on, |model| {
        model
            .raw_bodies()
            .last()
            .is_some_and(|body| asks_to_sum_up(body))
    });
    let made = env.read("made.txt");
    let last = ScriptedModel::new()
        .context(3000)
        .sums_up("I wrote lines.")
        .says("It is done.")
        .start_blocking();
    let done = run(&mut env.task(&last, &["--continue"])).expect(0);
    assert_eq!(
        (&done.json()["status"], &done.json()["response"]),
        (&json!("completed"), &json!("It is done.")),
        "{}",
        done.stderr
    );
    assert!(
        made.starts_with("one\ntwo\n0\n1\n") && made == env.read("made.txt"),
        "no call is executed twice: {made}"
    );
    let request = last.requests().pop().expect("a request")["messages"].to_string();
    assert!(
        request.contains("I wrote lines.") && request.matches("write lines").count() == 1,
        "{request}"
    );
    let listed: Value = run(&mut env.podbay(&["sessions", "list", "--json"]))
        .expect(0)
        .json();
    let listed = &listed["sessions"];
    assert_eq!(listed[0]["status"], "completed");
    assert_eq!(listed[1], Value::Null, "it is one session");
    env.assert_no_container();
}

/// REL-17: of two that want to go on the second is told who does.
#[test]
fn of_two_runs_that_go_on_with_a_session_the_second_is_refused() {
    let Some(env) = TestBox::new() else { return };
    let first = ScriptedModel::new().says("Done.").start_blocking();
    run(&mut env.task(&first, &["look"])).expect(0);
    let slow = ScriptedModel::new()
        .stall(Duration::from_mins(5))
        .start_blocking();
    let one = start(&mut env.task(&slow, &["--continue", "more"]));
    assert!(until(|| slow.requests().len() == 1), "the first one works");
    let pid = one.pid().to_string();
    run(&mut env.task(&first, &["--continue", "even more"]))
        .expect(5)
        .says(&[&pid]);
    one.signal(Signal::SIGTERM);
    one.wait().expect(143);
}
