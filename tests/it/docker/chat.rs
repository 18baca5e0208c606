//! A user at a terminal who is asked, and what becomes of each of their answers.

use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use portable_pty::CommandBuilder;
use portable_pty::PtySize;
use portable_pty::native_pty_system;
use serde_json::json;

use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::TestEnv;
use crate::support::scripted_model::Running;
use crate::support::test_env::run;
use crate::support::test_env::within;

/// `podbay chat`, or another command, in a terminal.
pub(super) struct Talk {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    hands: Box<dyn Write + Send>,
    screen: Arc<Mutex<String>>,
    /// How much of the screen was read.
    read: usize,
    _master: Box<dyn portable_pty::MasterPty + Send>,
}

/// Returns what a terminal would show of these bytes, without colours and moves of the cursor. An
/// escape sequence or a character that is not complete yet is left out.
fn without_escapes(bytes: &[u8]) -> String {
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != 0x1b {
            text.push(byte);
            continue;
        }
        let end = match tail.first() {
            Some(b'[') => tail[1..]
                .iter()
                .position(|byte| (0x40..=0x7e).contains(byte))
                .map(|at| at + 2),
            Some(b']') => tail.iter().position(|byte| *byte == 7).map(|at| at + 1),
            Some(_) => Some(1),
            None => None,
        };
        rest = end.map_or(&[][..], |end| &tail[end..]);
    }
    match String::from_utf8(text) {
        Ok(text) => text,
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned()
        }
    }
}

impl Talk {
    pub(super) fn begin(env: &TestBox, project: &Path, model: &Running, more: &[&str]) -> Self {
        let endpoint = model.endpoint();
        let first = [
            "chat",
            "--classic",
            "--model",
            "scripted",
            "--endpoint",
            &endpoint,
        ];
        Self::run(env, project, &[&first, more].concat())
    }

    /// Runs any command in a terminal.
    pub(super) fn run(env: &TestBox, project: &Path, words: &[&str]) -> Self {
        let size = PtySize {
            rows: 50,
            cols: 160,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pty = native_pty_system().openpty(size).expect("a pty");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_podbay"));
        command.env_clear();
        for (name, value) in [("HOME", env.home()), ("PODBAY_HOME", env.state())] {
            command.env(name, value);
        }
        command.env("PATH", "/usr/bin:/bin");
        // One that shows no editor: lines are read as they are typed.
        command.env("TERM", "dumb");
        // The user's editor is what a test puts there.
        command.env("EDITOR", env.beside("editor"));
        for name in ["DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.args(words);
        command.arg("-C");
        command.arg(project);
        let child = pty.slave.spawn_command(command).expect("starts");
        drop(pty.slave);
        let mut reader = pty.master.try_clone_reader().expect("a reader");
        let hands = pty.master.take_writer().expect("a writer");
        let screen = Arc::new(Mutex::new(String::new()));
        let keep = Arc::clone(&screen);
        std::thread::spawn(move || {
            let (mut buffer, mut all) = ([0; 4096], Vec::new());
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                all.extend_from_slice(&buffer[..n]);
                *keep.lock().expect("not poisoned") = without_escapes(&all);
            }
        });
        Self {
            child,
            hands,
            screen,
            read: 0,
            _master: pty.master,
        }
    }

    /// Waits until the screen shows this, behind what was waited for before; returns what came
    /// until then.
    #[track_caller]
    pub(super) fn sees(&mut self, words: &str) -> String {
        let screen = Arc::clone(&self.screen);
        let text = || screen.lock().expect("not poisoned").clone();
        let read = self.read;
        assert!(
            within(Duration::from_secs(60), || text()[read..].contains(words)),
            "`{words}` did not come:\n{}",
            text()
        );
        let text = text();
        let at = text[read..].find(words).expect("it was seen") + words.len();
        self.read += at;
        text[read..read + at].to_owned()
    }

    pub(super) fn types(&mut self, keys: &str) {
        self.hands
            .write_all(keys.as_bytes())
            .expect("the terminal takes keys");
    }

    /// Answers the question that comes next, when keys are taken for an answer to it.
    #[track_caller]
    pub(super) fn answers(&mut self, keys: &str) -> String {
        let asked = self.sees("Allow it? ");
        std::thread::sleep(Duration::from_millis(600));
        self.types(keys);
        asked
    }

    /// Kills it as nothing can be held against.
    pub(super) fn kill(mut self) {
        let pid = self.child.process_id().expect("it runs");
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(pid as i32),
            nix::sys::signal::Signal::SIGKILL,
        )
        .expect("killed");
        self.child.wait().expect("ends");
    }

    /// Waits for its end, and returns the exit code.
    pub(super) fn ends(mut self) -> u32 {
        self.child.wait().expect("ends").exit_code()
    }

    pub(super) fn leaves(mut self) -> String {
        self.types("/quit\n");
        self.child.wait().expect("ends");
        self.screen.lock().expect("not poisoned").clone()
    }
}

fn bash(command: &str) -> (&str, serde_json::Value) {
    ("bash", json!({ "command": command }))
}

/// Issue 6: once, for the session, for good, no, no with a reason; and an Enter that was on its
/// way.
#[test]
fn a_person_at_a_terminal_is_asked_and_each_answer_holds_as_long_as_it_says() {
    let Some(env) = TestBox::new() else { return };
    let first = [
        bash("echo once >> log"),
        bash("echo session >> log"),
        bash("echo session >> log"),
        bash("echo good >> log"),
    ];
    let second = [
        bash("echo once >> log"),
        bash("echo good >> log"),
        bash("echo good >> log; touch more"),
        bash("echo no >> log"),
    ];
    let model = ScriptedModel::new()
        .calls_many(first)
        .says("First.")
        .calls_many(second)
        .says("Second.")
        .start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &["--ask", "bash"]);
    talk.sees("> ");
    // Everything that is typed before a question can be read answers nothing.
    talk.types("work\n");
    talk.types("\n\ny\ny\n");
    let asked = talk.answers("y\n");
    assert!(
        asked.contains("command: echo once >> log")
            && asked.contains("a and p hold for exactly this: bash `echo once >> log`"),
        "{asked}"
    );
    talk.answers("a\n");
    talk.answers("p\n");
    talk.sees("First.");
    talk.sees("file, +");
    assert_eq!(env.read("log"), "once\nsession\nsession\ngood\n");
    talk.types("/answers\n");
    talk.sees("1. bash `echo session >> log` (until the session ends)");
    talk.sees("2. bash `echo good >> log` (always in this project)");
    talk.types("/answers forget 3\n");
    talk.sees("there is no answer 3; there are 2");
    talk.types("more\n");
    talk.answers("n not now\n");
    let asked = talk.answers("n put it into notes.txt\n");
    assert!(
        asked.contains("echo good >> log; touch more"),
        "what was allowed for good is not asked, and more than it is: {asked}"
    );
    talk.answers("d\n");
    talk.sees("Second.");
    talk.sees("file, +");
    assert_eq!(env.read("log"), "once\nsession\nsession\ngood\ngood\n");
    let told = model.requests().last().expect("requests")["messages"].to_string();
    assert!(
        told.contains("the user said no: put it into notes.txt. It was not executed"),
        "{told}"
    );
    talk.leaves();

    // The next chat knows what was allowed for good, and nothing else of it.
    let again = [bash("echo good >> log"), bash("echo session >> log")];
    let once_more = [bash("echo good >> log")];
    let model = ScriptedModel::new()
        .calls_many(again)
        .says("Third.")
        .calls_many(once_more)
        .says("Again.")
        .start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &["--ask", "bash"]);
    talk.sees("> ");
    talk.types("again\n");
    let asked = talk.answers("n no\n");
    assert!(
        asked.contains("command: echo session >> log") && !asked.contains("command: echo good"),
        "{asked}"
    );
    talk.sees("Third.");
    // What is undone in a chat is asked again in the same one, and for good.
    talk.types("/answers forget 1\n");
    talk.sees("asked again: bash `echo good >> log`");
    talk.types("once more\n");
    talk.answers("p\n");
    talk.sees("Again.");
    talk.leaves();
    assert_eq!(env.read("log").matches("good").count(), 4);

    // A rule that denies or gates wins, nobody is asked where nobody is, and `run` in mode ask has
    // the answer too.
    let ask = |more: &[&str]| {
        let model = ScriptedModel::new()
            .calls("bash", json!({"command": "echo good >> log"}))
            .says("Done.")
            .start_blocking();
        run(env.task(&model, &["work", "--mode", "ask"]).args(more)).code
    };
    assert_eq!((ask(&[]), ask(&["--deny", "bash(echo *)"])), (0, 4));
    assert_eq!(env.read("log").matches("good").count(), 5);

    // Another project has no such answer, also one that was made where this one was.
    let answers = |folder: &Path| {
        run(env.podbay(&["config", "answers", "-C"]).arg(folder))
            .expect(0)
            .text()
    };
    assert_eq!(answers(&env.project()), "1. bash `echo good >> log`\n");
    let other = env.beside("other");
    std::fs::create_dir(&other).expect("made");
    TestEnv::give(&other);
    assert_eq!(answers(&other), "");
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "echo good >> log"}))
        .says("Fourth.")
        .start_blocking();
    let mut talk = Talk::begin(&env, &other, &model, &["--ask", "bash"]);
    talk.sees("> ");
    talk.types("work\n");
    // A plain no ends the turn: the model is not asked again.
    talk.answers("n\n");
    talk.sees("interrupted");
    assert_eq!(model.requests().len(), 1);
    talk.leaves();
    assert!(!other.join("log").exists());

    // Undone, it is asked again.
    run(env
        .podbay(&["config", "answers", "--forget", "2", "-C"])
        .arg(env.project()))
    .expect(2)
    .says(&["no answer 2; this project has 1"]);
    let forgotten = run(env
        .podbay(&["config", "answers", "--forget", "1", "-C"])
        .arg(env.project()))
    .expect(0)
    .text();
    assert_eq!(
        (forgotten.as_str(), answers(&env.project()).as_str()),
        ("asked again: bash `echo good >> log`\n", "")
    );
    assert_eq!(ask(&["--ask", "bash"]), 4);
    env.assert_no_container();
}

/// PERM-10: the architect decides about everything, and the model is told so.
#[test]
fn an_architect_is_asked_about_each_command_and_each_change() {
    let Some(env) = TestBox::new() else { return };
    let calls = [
        bash("ls"),
        ("write_file", json!({"path": "a", "content": "x"})),
        ("list_directory", json!({})),
    ];
    let script = || {
        ScriptedModel::new()
            .calls_many(calls.clone())
            .says("Done.")
            .start_blocking()
    };
    let model = script();
    let mut talk = Talk::begin(
        &env,
        &env.project(),
        &model,
        &["--preset", "architect", "--allow", "write_file"],
    );
    talk.sees("> ");
    talk.types("work\n");
    let asked = talk.answers("a\n");
    assert!(
        asked.contains("command: ls")
            && asked.contains("autonomy `architect` asks about each change and each command"),
        "{asked}"
    );
    talk.sees("It can only be allowed once.");
    talk.answers("y\n");
    assert!(
        talk.answers("y\n").contains("path: a"),
        "whatever a rule allows"
    );
    talk.sees("Done.");
    talk.leaves();
    let system = |model: &Running| {
        model.requests()[0]["messages"][0]["content"]
            .as_str()
            .expect("a text")
            .to_owned()
    };
    assert!(
        system(&model).contains("The user is the architect")
            && system(&model).contains("Build what was asked for and nothing else")
    );
    // In a run nobody is there to decide, so nothing is done; a mode that is named takes its place.
    let model = script();
    run(env
        .task(&model, &["work", "--autonomy", "architect"])
        .env("PODBAY_POLICY_ALLOW", "[\"bash\"]"))
    .expect(4);
    env.write(".podbay-user.toml", "policy.autonomy = \"architect\"\n");
    let model = script();
    run(env
        .task(&model, &["work", "--mode", "auto", "--config"])
        .arg(env.path(".podbay-user.toml")))
    .expect(0);
    assert!(!system(&model).contains("architect"));
    let unattended = run(env
        .here(&["config", "--config"])
        .arg(env.path(".podbay-user.toml")))
    .expect(0)
    .text();
    assert!(unattended.contains("agent.max_turns = 10"), "{unattended}");
}

/// The ways in that need an engine, each with a rule that denies and without.
#[test]
fn a_denial_stops_a_call_and_a_command_typed_in_a_chat() {
    let Some(env) = TestBox::new() else { return };
    let call = |rules: &str| {
        run(env
            .here(&["call", "bash", r#"{"command": "touch made"}"#])
            .env("PODBAY_POLICY_DENY", rules))
        .code
    };
    assert_eq!(
        (call(r#"["bash(touch *)"]"#), env.path("made").exists()),
        (4, false)
    );
    assert_eq!((call("[]"), env.path("made").exists()), (0, true));
    let model = ScriptedModel::new().says("You made it.").start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &["--deny", "bash(touch *)"]);
    talk.sees("> ");
    talk.types("!touch never\n");
    let refused = talk.sees("The command was not run.");
    assert!(
        refused.contains("denied: bash: the rule `bash(touch *)` denies it"),
        "{refused}"
    );
    assert!(
        !refused.contains("Do not try to get around this"),
        "what is said to a model: {refused}"
    );
    talk.types("!echo by hand | tee hand.txt\n");
    talk.sees("by hand\r\n");
    talk.types("what did I do?\n");
    talk.sees("You made it.");
    talk.leaves();
    assert_eq!(
        (env.path("never").exists(), env.read("hand.txt")),
        (false, "by hand\n".to_owned())
    );
    let told = model.requests()[0]["messages"].to_string();
    assert!(
        told.contains("$ echo by hand | tee hand.txt\\nby hand")
            && told.contains("$ touch never\\nDenied"),
        "{told}"
    );
    env.assert_no_container();
}

/// PERM-4: whoever answers a question by leaving leaves.
#[test]
fn a_question_that_is_answered_by_leaving_ends_the_chat() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "touch made"}))
        .says("Never said.")
        .start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &["--ask", "bash"]);
    talk.sees("> ");
    talk.types("work\n");
    talk.answers("q\n");
    assert_eq!(talk.child.wait().expect("ends").exit_code(), 0);
    assert_eq!(
        (env.path("made").exists(), model.requests().len()),
        (false, 1)
    );
    env.assert_no_container();
}

/// X-12: nobody is asked anything, until a mode is named.
#[test]
fn a_mode_that_is_named_takes_the_place_of_being_asked_nothing() {
    let Some(env) = TestBox::new() else { return };
    let calls = |model: ScriptedModel, name: &str| {
        let question = json!({"question": "Which?", "options": ["a", "b"]});
        model
            .calls("ask_user", question)
            .calls(
                "bash",
                json!({"command": format!("npm publish; touch {name}")}),
            )
            .says(&format!("After {name}."))
    };
    let model = calls(calls(ScriptedModel::new(), "first"), "second").start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &["--autonomy", "unattended"]);
    talk.sees("> ");
    talk.types("work\n");
    let shown = talk.sees("After first.");
    assert!(
        !shown.contains("Allow it?") && !shown.contains("Your answer?"),
        "{shown}"
    );
    talk.types("/mode ask\n");
    talk.sees("mode ask from here on");
    talk.types("work\n");
    talk.sees("Your answer? ");
    std::thread::sleep(Duration::from_millis(600));
    talk.types("b\n");
    talk.answers("n no\n");
    talk.sees("After second.");
    talk.leaves();
    env.assert_no_container();
}

/// PERM-1: the mode is changed while the session continues.
#[test]
fn the_mode_is_changed_in_a_chat() {
    let Some(env) = TestBox::new() else { return };
    let model =
        ["asked", "auto", "deny", "ask"]
            .into_iter()
            .fold(ScriptedModel::new(), |model, name| {
                model
                    .calls("bash", json!({"command": format!("touch {name}")}))
                    .says(&format!("After {name}."))
            });
    let model = model.sums_up("Touched.").start_blocking();
    let mut talk = Talk::begin(
        &env,
        &env.project(),
        &model,
        &["--ask", "bash", "--autonomy", "architect"],
    );
    talk.sees("> ");
    talk.types("/mode\n");
    talk.sees("mode ask\r\n");
    talk.types("work\n");
    talk.answers("y\n");
    talk.sees("After asked.");
    for mode in ["auto", "deny"] {
        talk.types(&format!("/mode {mode}\n"));
        talk.sees(&format!("mode {mode} from here on"));
        talk.types("work\n");
        let shown = talk.sees(&format!("After {mode}."));
        assert!(!shown.contains("Allow it?"), "{shown}");
    }
    talk.types("/tree\n");
    talk.sees("asked");
    talk.types("/tree nowhere\n");
    talk.sees("nowhere: no such file or directory");
    talk.types("/context\n");
    talk.sees("of 32768 tokens, ");
    talk.types("/compact what was touched\n");
    talk.sees("made room: a summary replaces the older messages");
    talk.types("/context of what\n");
    talk.sees("/context takes no words behind it.");
    talk.types("/modes\n");
    talk.sees("/modes is not known: /help lists");
    talk.types("/mode often\n");
    talk.sees("There is no mode often: auto, ask and deny are.");
    talk.types("/mode ask\n");
    talk.types("work\n");
    assert!(
        talk.answers("a\n")
            .contains("a and p hold for exactly this"),
        "a mode that is named takes the place of an autonomy"
    );
    talk.sees("After ask.");
    talk.leaves();
    assert_eq!(
        ["asked", "auto", "deny", "ask"].map(|name| env.path(name).exists()),
        [true, true, false, true]
    );
    env.assert_no_container();
}
