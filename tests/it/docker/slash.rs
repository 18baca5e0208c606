//! Every slash command once, on a screen and in lines: none of them is unknown, and each says what
//! it is for.

use podbay::ui::slash;
use serde_json::json;

use super::chat::Talk;
use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::screen::Screen;
use crate::support::scripted_model::Running;

/// What is typed behind a command, and what is shown of it in lines and on a screen.
struct Tried {
    words: &'static str,
    lines: &'static str,
    screen: &'static str,
}

/// Commands that open another session or end the chat, in the order in which they are tried, each
/// with what is shown then.
const OTHERS: [(&str, &str); 7] = [
    ("resume", "/resume ID continues one of this project"),
    ("retry", "Second."),
    ("rewind", "session "),
    ("fork", "session "),
    ("new", "session "),
    ("clear", "session "),
    ("quit", "to continue: podbay --resume"),
];

/// Returns how a command is tried that leaves the session as it is; `None`: [`OTHERS`] has it. A
/// command that is in neither fails the test.
fn tried(name: &str) -> Option<Tried> {
    let each = |words, lines, screen| {
        Some(Tried {
            words,
            lines,
            screen,
        })
    };
    let same = |words, shown| each(words, shown, shown);
    match name {
        "help" => same("", "leave (also /q, /exit)"),
        "session" => same("", "/resume ID continues one of this project"),
        "rename" => same(" parser", "This session is called parser"),
        "undo" => same("", "0 turns can be undone, 1 turn redone"),
        "redo" => same("", "1 turn can be undone, 0 turns redone"),
        "diff" => same("", "+two"),
        "review" => same("", "Nothing of this session is pending"),
        "mode" => same("", "mode auto"),
        "plan" => same("", "plan mode off; no plan yet"),
        "answers" => same("", "Nothing was allowed for more than once"),
        "model" => same("", "continues with another one: scripted."),
        "tools" => same("", "read_file"),
        "mcp" => same("", "This session has no MCP servers"),
        "agents" => same("", "general-purpose"),
        "skills" => same("", "no skills for this project"),
        "think" => each("", "`ui.show_thinking = true`", "thinking, "),
        "context" => same("", "] about "),
        "compact" => same("", "made room: a summary replaces"),
        "checkpoint" => same("", "What the user said, in order:"),
        "stats" => same("", "tool calls  1"),
        "status" => same("", "processes, no network"),
        "tree" => same("", "inner"),
        "add" => each(
            " app.txt",
            "Name it in your message: @app.txt",
            "› @app.txt",
        ),
        "btw" => same(" it is urgent", "The model reads it with your next message"),
        "prompt" => same("", "makes the command /NAME"),
        "copy" => each(
            "",
            "/copy needs the screen of --tui",
            "handed to the terminal's clipboard",
        ),
        "export" => same(" json export.json", "written to export.json"),
        "report" => same("", "--- END REPORT ---"),
        "config" => same("", "ui.show_thinking = false"),
        "init" => same("", "made .podbay/config.toml"),
        "doctor" => same("", "GiB free at"),
        "debug" => same("", "PODBAY_LOG=podbay=debug"),
        "memory" => same("", "no notes for this project"),
        name => {
            assert!(
                OTHERS.iter().any(|(other, _)| *other == name),
                "/{name} is tried in no test"
            );
            None
        }
    }
}

fn project() -> Option<TestBox> {
    let env = TestBox::new()?;
    env.write("app.txt", "one\n");
    env.write("deep/inner/file.txt", "x\n");
    Some(env)
}

fn model() -> Running {
    ScriptedModel::new()
        .thinks("A thought.")
        .calls("bash", json!({"command": "echo two >> app.txt"}))
        .says("First.")
        .says("Second.")
        .start_blocking()
}

/// A chat on a screen that is high enough for every answer, after one turn.
fn on_screen(env: &TestBox, model: &Running) -> Screen {
    let mut command = env.here(&["chat", "--endpoint", &model.endpoint()]);
    command
        .args(["--model", "scripted", "--mode", "auto"])
        .env_remove("PODBAY_SANDBOX_CHANGES");
    let mut screen = Screen::start(&command);
    screen.resize(120, 140);
    screen.sees("lists keys and commands");
    screen.types("unfold the napkin\r");
    screen.sees("1 file, +1 −0");
    screen
}

fn in_lines(env: &TestBox, model: &Running) -> Talk {
    let mut talk = Talk::begin(env, &env.project(), model, &["--mode", "auto"]);
    talk.sees("> ");
    talk.types("unfold the napkin\n");
    talk.sees("2 requests, ");
    talk.sees("1 file, +1 −0");
    talk
}

/// Issue 33. It takes as long as a chat with an engine, and a look at all of the set-up, does.
#[test]
fn every_slash_command_works_on_a_screen() {
    let Some(env) = project() else { return };
    let model = model();
    let mut screen = on_screen(&env, &model);
    for command in slash::COMMANDS {
        let Some(tried) = tried(command.name) else {
            continue;
        };
        screen.types(&format!("/{}{}\r", command.name, tried.words));
        let shown = screen.sees(tried.screen);
        assert!(!shown.contains("is not known"), "{shown}");
        // What it left in the editor, and its help.
        screen.types("\x15");
    }
    screen.types("/quit\r");
    assert_eq!(screen.ends().0, 0);
    env.assert_no_container();
}

/// The same, line by line.
#[test]
fn every_slash_command_works_in_lines() {
    let Some(env) = project() else { return };
    let model = model();
    let mut talk = in_lines(&env, &model);
    for command in slash::COMMANDS {
        let Some(tried) = tried(command.name) else {
            continue;
        };
        talk.types(&format!("/{}{}\n", command.name, tried.words));
        let shown = talk.sees(tried.lines);
        assert!(!shown.contains("is not known"), "{shown}");
    }
    talk.leaves();
    env.assert_no_container();
}

/// Each of them ends a sandbox and starts another one, on a screen and then in lines: that is the
/// time that it takes.
#[test]
#[ignore = "a dozen sandboxes one after the other; `just soak` has it"]
fn every_slash_command_that_opens_another_session_does() {
    let Some(env) = project() else { return };
    let screen_model = model();
    let mut screen = on_screen(&env, &screen_model);
    for (name, shown) in OTHERS {
        screen.types(&format!("/{name}\r"));
        if name == "quit" {
            break;
        }
        let seen = screen.sees(shown);
        assert!(!seen.contains("is not known"), "{seen}");
        screen.sees("lists keys and commands");
    }
    let (code, left) = screen.ends();
    assert!(code == 0 && left.contains(OTHERS[6].1), "{left}");
    let lines_model = model();
    let mut talk = in_lines(&env, &lines_model);
    for (name, shown) in OTHERS {
        talk.types(&format!("/{name}\n"));
        let seen = talk.sees(shown);
        assert!(!seen.contains("is not known"), "{seen}");
    }
    assert_eq!(talk.ends(), 0);
    env.assert_no_container();
}

/// Issue 33: what a user chose holds until they choose otherwise, whatever session is open.
#[test]
fn the_mode_holds_in_the_next_session_and_a_command_that_is_refused_ends_none() {
    let Some(env) = TestBox::new() else { return };
    let models = json!({"object": "list", "data": [{"id": "scripted"}, {"id": "other"}]});
    let model = ScriptedModel::new()
        .page("/v1/models", 200, models, 100)
        .start_blocking();
    let mut command = env.here(&["chat", "--endpoint", &model.endpoint()]);
    command.args(["--model", "scripted", "--mode", "auto"]);
    let mut screen = Screen::start(&command);
    screen.sees("type a task");
    screen.types("/mode deny\r");
    screen.sees("deny · scripted");
    let before = env.boxes();
    screen.types("/rewind 99\r");
    screen.sees("There are 0 messages to rewind");
    screen.types("/resume nosuch\r");
    screen.sees("nosuch");
    screen.types("/model nope\r");
    screen.sees("lists no model `nope`");
    assert_eq!(env.boxes(), before);
    screen.types("/model other\r");
    screen.sees("deny · other");
    screen.types("/status\r");
    screen.sees("mode     deny");
    screen.types("/new\r/status\r");
    screen.sees("mode     deny");
    screen.types("/quit\r");
    assert_eq!(screen.ends().0, 0);
    env.assert_no_container();
}

/// Issue 33: a project's own commands. What such a file says is only ever a message.
#[test]
fn a_command_of_the_project_is_marked_and_becomes_a_message() {
    let Some(env) = TestBox::new() else { return };
    env.write(".podbay/commands/ship.md", "!touch shipped $ARGUMENTS\n");
    let model = ScriptedModel::new().says("Seen.").start_blocking();
    let mut command = env.here(&["chat", "--endpoint", &model.endpoint()]);
    command.args(["--model", "scripted", "--mode", "auto"]);
    let mut screen = Screen::start(&command);
    screen.resize(120, 60);
    screen.sees("lists keys and commands");
    screen.types("/shi");
    screen.sees("the project's: !touch shipped $ARGUMENTS");
    screen.types("p now\r");
    let shown = screen.sees("Seen.");
    assert!(shown.contains("!touch shipped now"), "{shown}");
    screen.types("/help\r");
    let help = screen.sees("the project's: !touch");
    assert!(help.contains("/ship "), "{help}");
    screen.types("/quit\r");
    assert_eq!(screen.ends().0, 0);
    assert!(!env.project().join("shipped").exists());
    let requests = model.requests();
    let said = requests.last().expect("one")["messages"].to_string();
    assert!(said.contains("!touch shipped now"), "{said}");
    env.assert_no_container();
}
