//! Whole chats and reviews on a screen, as a user has them.

use nix::sys::signal::Signal;
use serde_json::json;
use std::time::Duration;

use super::review::held_back;
use super::review::volumes;
use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::screen::Screen;
use crate::support::scripted_model::Running;
use crate::support::test_env::within;

fn chat(env: &TestBox, model: &Running, more: &[&str]) -> Screen {
    let mut command = env.here(&["chat", "--endpoint", &model.endpoint()]);
    command
        .args(["--model", "scripted"])
        .args(more)
        .env_remove("PODBAY_SANDBOX_CHANGES");
    Screen::start(&command)
}

/// Issue 33. It takes as long as a chat of four turns with an engine does.
#[test]
fn a_whole_chat_on_a_screen_and_the_terminal_is_as_it_was() {
    let Some(env) = TestBox::new() else { return };
    env.write("app.txt", "one\n");
    let model = ScriptedModel::new()
        .thinks("The user wants two lines.")
        .calls("bash", json!({"command": "echo two >> app.txt"}))
        .says("First.")
        .stall(Duration::from_secs(120))
        .says("Third.")
        .start_blocking();
    let mut screen = chat(&env, &model, &["--mode", "ask"]);
    screen.sees("type a task");
    // A paste is one message, however long it is.
    let paste: String = (0..214).map(|n| format!("line {n}\n")).collect();
    screen.types(&format!("\x1b[200~{paste}\x1b[201~"));
    screen.sees("[pasted 214 lines]");
    screen.types("\x15");
    screen.loses("[pasted");
    // Completion of commands, and of files once the sandbox has named them.
    screen.types("/res");
    screen.sees("continue an earlier session");
    screen.types("\t");
    screen.sees("› /resume");
    screen.types("\x15");
    screen.sees("lists keys and commands");
    screen.types("read @ap");
    screen.sees("@app.txt");
    screen.types("\t");
    screen.sees("› read @app.txt");
    screen.types("\x15");
    // A turn: thoughts are shown and hidden by a key, a question is answered by one.
    screen.types("work\r");
    screen.sees("y = yes");
    screen.answers("y");
    screen.sees("First.");
    screen.sees("1 file, +1 −0");
    assert_eq!(env.read("app.txt"), "one\ntwo\n");
    screen.loses("The user wants two lines.");
    screen.types("\x0f");
    screen.sees("The user wants two lines.");
    screen.types("\x0f");
    screen.loses("The user wants two lines.");
    // What is typed meanwhile waits, and goes back into the editor when the turn was stopped.
    screen.types("wait\r");
    screen.sees("esc to interrupt");
    assert!(
        within(Duration::from_secs(30), || model.requests().len() == 3),
        "the model is asked"
    );
    screen.types("later\r");
    screen.sees("queued: later");
    screen.types("\x1b");
    screen.sees("interrupted");
    screen.sees("› later");
    screen.types("\r");
    screen.sees("Third.");
    screen.resize(12, 40);
    screen.sees("Third.");
    screen.types("abc");
    screen.sees("› abc");
    screen.types("\x15");
    screen.resize(24, 80);
    screen.sees("scripted");
    screen.types("/undo\r");
    assert!(
        within(Duration::from_secs(30), || env.read("app.txt") == "one\n"),
        "{}",
        screen.text()
    );
    screen.types("/quit\r");
    let (code, left) = screen.ends();
    assert_eq!(code, 0, "{left}");
    assert!(left.contains("to continue: podbay --resume "), "{left}");

    // Resumed, it shows what was said; a signal leaves the terminal as it was, too.
    let model = ScriptedModel::new().start_blocking();
    let mut screen = chat(&env, &model, &["--resume"]);
    screen.sees("Which session continues?");
    screen.answers("1");
    screen.sees("Third.");
    screen.sees("type a task");
    screen.signal(Signal::SIGTERM);
    let (code, left) = screen.ends();
    assert_eq!(code, 143, "{left}");
    env.assert_no_container();
}

/// Issue 33: a chat without a screen of its own.
#[test]
fn a_chat_in_lines_has_an_editor_with_history_completion_and_pastes() {
    let Some(env) = TestBox::new() else { return };
    env.write("app.txt", "one\n");
    let model = ScriptedModel::new()
        .says("First.")
        .says("Long.")
        .says("Second.")
        .start_blocking();
    let told = || {
        let requests = model.requests();
        requests.last().expect("requests")["messages"].to_string()
    };
    let mut screen = chat(&env, &model, &["--mode", "auto", "--classic"]);
    screen.sees("> ");
    screen.types("\x1b[200~line 1\nline 2\x1b[201~");
    screen.sees("line 2");
    assert_eq!(model.requests().len(), 0, "a paste is no message yet");
    screen.types("\r");
    screen.sees("First.");
    assert!(told().contains(r"line 1\nline 2"), "{}", told());
    // The editor takes a paste as one when the prompt is there again.
    assert!(
        within(Duration::from_secs(30), || screen
            .text()
            .trim_end()
            .ends_with("\n>")),
        "{}",
        screen.text()
    );
    // A long one stands as how much it is.
    let long: String = (0..214).map(|n| format!("row {n}\n")).collect();
    screen.types(&format!("what is \x1b[200~{long}\x1b[201~"));
    screen.sees("what is [pasted 214 lines]");
    screen.types("\r");
    screen.sees("Long.");
    assert!(told().contains(r"what is row 0\nrow 1\n"), "{}", told());
    // Completion is that of the screen.
    screen.types("/resu\t");
    screen.sees("/resume");
    screen.types("\x15see @app\t");
    screen.sees("@app.txt");
    screen.types("\x15\x12ne 1");
    screen.sees("search `ne 1`: line 1");
    screen.types("\x03");
    screen.sees("Ctrl-C again leaves");
    screen.types("abc\\\rdef\r");
    screen.sees("Second.");
    assert!(told().contains(r"abc\ndef"), "{}", told());
    std::thread::sleep(Duration::from_secs(2));
    screen.types("\x03");
    std::thread::sleep(Duration::from_millis(500));
    screen.types("\x03");
    let (code, left) = screen.ends();
    assert_eq!(code, 0, "{left}");
    // What was typed is there in the next chat.
    let model = ScriptedModel::new().start_blocking();
    let mut screen = chat(&env, &model, &["--classic"]);
    screen.sees("> ");
    screen.types("\x1b[A");
    screen.sees("def");
    // Of several lines Ctrl-U takes one.
    screen.types("\x03");
    screen.sees("Ctrl-C again leaves");
    screen.types("\x04");
    assert_eq!(screen.ends().0, 0);
    env.assert_no_container();
}

#[test]
fn a_chat_in_lines_has_the_keys_for_an_editor_and_the_next_mode() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().says("Read.").start_blocking();
    let mut command = env.here(&["chat", "--endpoint", &model.endpoint()]);
    command
        .args([
            "--model",
            "scripted",
            "--mode",
            "auto",
            "--classic",
            "--network",
            "open",
        ])
        .env("VISUAL", r#"more() { echo " and more" >> "$1"; }; more"#);
    let mut screen = Screen::start(&command);
    screen.sees("> ");
    screen.types("half");
    screen.sees("half");
    screen.types("\x1b[Z");
    screen.sees("plan mode is on");
    screen.types("\x1b[Z");
    screen.sees("mode ask from here on");
    // What was typed before is there still.
    screen.types("\x07");
    screen.sees("half and more");
    screen.types("\r");
    screen.sees("Read.");
    let requests = model.requests();
    let told = requests.last().expect("a request")["messages"].to_string();
    assert!(told.contains("half and more"), "{told}");
    screen.types("/status\r");
    screen.sees("processes, open network");
    screen.types("\x04");
    assert_eq!(screen.ends().0, 0);
    env.assert_no_container();
}

/// Issue 33. Two chats, each with a call that takes seconds, in which something is typed.
#[test]
fn a_message_typed_while_a_call_runs_joins_the_task_in_both_faces() {
    let Some(env) = TestBox::new() else { return };
    for face in ["--tui", "--classic"] {
        let model = ScriptedModel::new()
            .calls("bash", json!({"command": "sleep 3; echo slept"}))
            .says("Both.")
            .says("After.")
            .start_blocking();
        let mut screen = chat(&env, &model, &["--mode", "auto", face]);
        screen.sees(if face == "--tui" { "type a task" } else { "> " });
        screen.types("the code\r");
        assert!(
            within(Duration::from_secs(30), || model.requests().len() == 1),
            "{face}: the model is asked"
        );
        // A terminal without a screen of its own sends a line as it is.
        let enter = if face == "--tui" { "\r" } else { "\n" };
        screen.types(&format!("also the docs{enter}"));
        screen.sees("queued: also the docs");
        screen.types(&format!("see @app.txt{enter}"));
        screen.sees("queued until the task ends: see @app.txt");
        screen.sees("Both.");
        screen.sees("After.");
        let requests = model.requests();
        let told = |n: usize| requests[n]["messages"].to_string();
        assert!(
            told(1).contains("slept") && told(1).contains("also the docs"),
            "{face}"
        );
        assert!(!told(1).contains("@app.txt"), "{face}");
        assert!(told(2).contains("@app.txt"), "{face}");
        screen.types(&format!("/quit{enter}"));
        assert_eq!(screen.ends().0, 0);
    }
    env.assert_no_container();
}

#[test]
fn a_review_on_a_screen_applies_the_hunks_that_were_taken() {
    let Some(env) = TestBox::new() else { return };
    let lines = |change: &[usize]| -> String {
        let line = |n: usize| {
            if change.contains(&n) {
                format!("new {n}\n")
            } else {
                format!("{n}\n")
            }
        };
        (1..=30).map(line).collect()
    };
    env.write("long.txt", lines(&[]));
    held_back(
        &env,
        "sed -i 's/^3$/new 3/; s/^28$/new 28/' long.txt; echo a > made.txt; echo 'export A=1' > .envrc",
        &[],
    );
    let start = || Screen::start(env.here(&["review"]).env_remove("PODBAY_SANDBOX_CHANGES"));
    let mut screen = start();
    let shown = screen.sees("enter applies");
    assert!(
        shown.contains("3 paths, +4 −2") && shown.contains("[ ] A .envrc"),
        "{shown}"
    );
    screen.types("q");
    let (code, left) = screen.ends();
    assert_eq!(code, 0);
    assert!(left.contains("still pending: podbay review --id"), "{left}");
    // The paths are in order: .envrc, long.txt, made.txt.
    let mut screen = start();
    screen.sees("enter applies");
    screen.types("\x1b[B");
    screen.sees("+new 3");
    screen.types("\t\x1b[B ");
    screen.sees("[ ] @@ -25");
    screen.types("\r");
    screen.sees("Apply 2 of 3 paths, 2 stay pending");
    screen.types("y");
    let (code, left) = screen.ends();
    assert_eq!(code, 0, "{left}");
    assert_eq!(
        (env.read("long.txt"), env.read("made.txt")),
        (lines(&[3]), "a\n".to_owned())
    );
    assert!(!env.path(".envrc").exists());
    let mut screen = start();
    let shown = screen.sees("enter applies");
    assert!(shown.contains("2 paths, +2 −1"), "{shown}");
    screen.types("d");
    screen.sees("y discards");
    screen.types("y");
    let (code, left) = screen.ends();
    assert_eq!(code, 0, "{left}");
    assert_eq!(volumes(&env), Vec::<String>::new());
    env.assert_no_container();
}

#[test]
fn a_reviewed_chat_shows_each_turn_before_it_is_applied() {
    let Some(env) = TestBox::new() else { return };
    env.write("app.txt", "one\n");
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "echo two >> app.txt; echo made > made.txt"}),
        )
        .says("First.")
        .calls(
            "bash",
            json!({"command": "cat app.txt made.txt; echo three >> app.txt"}),
        )
        .says("Second.")
        .calls("bash", json!({"command": "echo four > four.txt"}))
        .says("Third.")
        .start_blocking();
    let mut screen = chat(&env, &model, &["--mode", "auto", "--changes", "review"]);
    screen.sees("type a task");
    screen.types("one\r");
    let shown = screen.sees("enter applies");
    assert!(
        shown.contains("2 paths, +2 −0") && shown.contains("+two"),
        "{shown}"
    );
    assert_eq!(env.read("app.txt"), "one\n", "nothing is applied yet");
    screen.types("q");
    screen.sees("2 paths pending: /review decides on it.");
    // The next turn sees what is pending, and both are decided on together.
    screen.types("two\r");
    screen.sees("+three");
    let told = model.requests().last().expect("requests")["messages"].to_string();
    assert!(told.contains("one\\ntwo\\nmade"), "{told}");
    screen.types("\r");
    screen.sees("Apply 2 of 2 paths?");
    screen.types("y");
    screen.sees("2 files, +3 −0");
    assert_eq!(
        (env.read("app.txt").as_str(), env.read("made.txt").as_str()),
        ("one\ntwo\nthree\n", "made\n")
    );
    // What is not decided on stays pending when the chat ends.
    screen.types("three\r");
    screen.sees("+four");
    screen.types("q");
    screen.sees("1 path pending: /review decides on it.");
    screen.types("/quit\r");
    let (code, left) = screen.ends();
    assert_eq!(code, 0, "{left}");
    assert!(
        left.contains("1 path pending: podbay review --id"),
        "{left}"
    );
    assert!(!env.path("four.txt").exists());
    super::review::review(&env, &["apply"]).expect(0);
    assert_eq!(env.read("four.txt"), "four\n");
    assert_eq!(volumes(&env), Vec::<String>::new());
    env.assert_no_container();
}

/// Issue 35. Shift-Tab begins plan mode, the plan is edited in the user's editor and approved, and the
/// agent carries it out. It takes as long as a chat of two turns and four sandboxes.
#[test]
fn a_plan_is_made_edited_approved_and_carried_out_on_a_screen() {
    let Some(env) = TestBox::new() else { return };
    env.write("app.txt", "one\n");
    let editor = env.beside("editor");
    std::fs::write(&editor, "#!/bin/sh\necho '2. Test it.' >> \"$1\"\n").expect("written");
    std::fs::set_permissions(&editor, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("ours");
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "echo two >> app.txt || echo held"}),
        )
        .calls(
            "create_plan",
            json!({"plan": "# A plan\n\n1. Change `app.txt`."}),
        )
        .calls("bash", json!({"command": "echo two >> app.txt"}))
        .says("Carried out.")
        .start_blocking();
    let mut command = env.here(&["chat", "--endpoint", &model.endpoint()]);
    command
        .args(["--model", "scripted", "--mode", "auto"])
        .env("EDITOR", &editor)
        .env_remove("VISUAL")
        .env_remove("PODBAY_SANDBOX_CHANGES");
    let mut screen = Screen::start(&command);
    screen.sees("lists keys and commands");
    screen.types("\x1b[Z");
    screen.sees("plan mode is on: the project is read-only");
    screen.sees("plan (auto)");
    screen.types("plan it\r");
    screen.sees("1. Change app.txt.");
    screen.sees("Approve this plan?");
    assert_eq!(env.read("app.txt"), "one\n");
    screen.answers("2");
    screen.sees("Approve the plan as you changed it?");
    screen.answers("1");
    screen.sees("Carried out.");
    screen.sees("1 file, +1 −0");
    screen.loses("plan (auto)");
    assert_eq!(env.read("app.txt"), "one\ntwo\n");
    let requests = model.requests();
    let told = requests[2]["messages"].to_string();
    assert!(
        told.contains("The user changed the plan and approved it") && told.contains("2. Test it."),
        "{told}"
    );
    assert!(requests[1]["messages"].to_string().contains("held"));
    model.assert_append_only();
    screen.types("/plan\r");
    screen.sees("plan mode off; plan 2 (approved)");
    screen.types("/quit\r");
    let (code, left) = screen.ends();
    assert_eq!(code, 0, "{left}");
    env.assert_no_container();
}
