//! What ends while a user makes up their mind.

use nix::sys::signal::Signal;
use serde_json::json;

use super::chat::Talk;
use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::test_env::run;
use crate::support::test_env::start;

/// REL-28: the container dies while a question is open.
#[test]
fn a_question_is_withdrawn_when_its_box_dies() {
    let Some(env) = TestBox::new() else { return };
    let touch = |name: &str| json!({"command": format!("touch {name}")});
    let model = ScriptedModel::new()
        .calls("bash", touch("first"))
        .calls("bash", touch("second"))
        .says("It continued.")
        .calls("bash", touch("third"))
        .says("And on.")
        .start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &["--ask", "bash"]);
    talk.sees("> ");
    talk.types("work\n");
    talk.sees("command: touch first");
    talk.sees("Allow it? ");
    docker(&["rm", "--force", &env.container()]);
    talk.sees("(the question is withdrawn)");
    let told = talk.sees("bash (failed");
    assert!(told.contains("the sandbox ended: "), "{told}");
    // The next one stands: the sandbox is made anew when it is needed.
    assert!(talk.answers("y\n").contains("command: touch second"));
    talk.sees("It continued.");
    talk.sees("1 file, +0 −0");
    assert_eq!(
        (env.path("first").exists(), env.path("second").exists()),
        (false, true)
    );
    let requests = model.requests();
    let told = requests[1]["messages"].to_string();
    assert!(
        told.contains("The sandbox ended while the user was asked")
            && told.contains("A new one takes its place"),
        "{told}"
    );
    talk.types("more\n");
    talk.answers("y\n");
    talk.sees("And on.");
    talk.sees("1 file, +0 −0");
    assert!(env.path("third").exists());
    let screen = talk.leaves();
    assert_eq!(
        screen.matches("(the question is withdrawn)").count(),
        1,
        "{screen}"
    );
    env.assert_no_container();
}

/// A sandbox that is paused answers nothing; whoever is in it by `podbay sh` gets out, and it goes with
/// them.
#[test]
fn a_shell_in_a_box_that_answers_no_more_ends_with_a_signal() {
    let Some(env) = TestBox::new() else { return };
    let shell = start(&mut env.here(&["sh", "--", "sh", "-c", "touch begun; sleep 60"]));
    env.wait_for("begun");
    docker(&["pause", &env.container()]);
    shell.signal(Signal::SIGTERM);
    shell
        .wait_within(std::time::Duration::from_secs(30))
        .expect(143)
        .says(&["the sandbox does not answer"]);
    env.assert_no_container();
    run(&mut env.here(&["sh", "--", "true"])).expect(0);
}

/// A yes, a no with its reason, and Ctrl-C while a program waits; what is typed then is a message
/// and no answer.
#[test]
fn a_program_that_waits_in_a_chat_is_answered_refused_or_given_up() {
    let Some(env) = TestBox::new() else { return };
    env.write(
        "run.sh",
        "/bin/echo asked one >> said; /bin/echo asked two >> said\n",
    );
    let run = || json!({"command": "sh run.sh"});
    let model = ScriptedModel::new()
        .calls("bash", run())
        .says("First.")
        .calls("bash", run())
        .says("Never said.")
        .says("Last.")
        .start_blocking();
    let rules = ["--allow", "bash(sh run.sh)", "--gate", "bash(echo asked*)"];
    let mut talk = Talk::begin(&env, &env.project(), &model, &rules);
    talk.sees("> ");
    talk.types("work\n");
    let asked = talk.answers("y\n");
    let words = [
        "bash is paused and waits for your answer:",
        "command: sh run.sh",
        "The sandbox says: `/bin/echo asked one` (/usr/bin/echo) wants to run in /workspace, and the rule `bash(echo asked*)` asks about it.",
        "yes lets this command run this program with these arguments",
    ];
    assert!(
        words.iter().all(|words| asked.contains(words)) && !asked.contains("d = no"),
        "{asked}"
    );
    assert!(
        talk.answers("n not that one\n")
            .contains("`/bin/echo asked two`")
    );
    let told = talk.sees("First.");
    assert!(
        told.contains("denied: bash sh run.sh: `/bin/echo asked two` was not run"),
        "{told}"
    );
    talk.sees("> ");
    talk.types("again\n");
    assert!(talk.answers("\u{3}").contains("asked one"));
    talk.sees("(the question is withdrawn)");
    talk.sees("> ");
    talk.types("y\n");
    talk.sees("Never said.");
    talk.leaves();
    assert_eq!(env.read("said"), "asked one\n");
    let told = model.requests()[1]["messages"].to_string();
    assert!(
        told.contains("`/bin/echo asked two` was not run")
            && told.contains("[the user said no: not that one]"),
        "{told}"
    );
    env.assert_no_container();
}

/// In mode ask commands that read run unasked; one that writes is asked about once, and a no leaves
/// the project as it was.
#[test]
fn a_command_that_writes_is_asked_about_once_in_a_chat_and_one_that_reads_is_not() {
    let Some(env) = TestBox::new() else { return };
    env.write(
        "Makefile",
        "all:\n\techo x > x.o\n\techo y > y.o\n\trm x.o\n",
    );
    let mut model = ScriptedModel::new();
    for command in [
        "ls",
        "git init -q /tmp/r; git -C /tmp/r status",
        "grep -r echo .",
        "python3 -c 'print(1)'",
        "make",
        "echo z > z.o; echo then",
    ] {
        model = model.calls("bash", json!({ "command": command }));
    }
    let model = model.says("Done.").start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &["--mode", "ask"]);
    talk.sees("> ");
    talk.types("work\n");
    let asked = talk.answers("y\n");
    for command in [
        "bash ls (ok",
        "bash grep -r echo . (ok",
        "bash python3 -c 'print(1)' (ok",
    ] {
        assert!(asked.contains(command), "{command}: {asked}");
    }
    assert!(
        asked.matches("Allow it?").count() == 1 && asked.contains("wants to write x.o"),
        "{asked}"
    );
    let asked = talk.answers("n not now\n");
    assert!(
        asked.contains("bash make (ok") && asked.contains("`bash` wants to write z.o"),
        "{asked}"
    );
    talk.sees("Done.");
    talk.leaves();
    assert_eq!(
        (
            env.read("y.o").as_str(),
            env.project().join("x.o").exists(),
            env.project().join("z.o").exists()
        ),
        ("y\n", false, false)
    );
    let told = model.requests().last().expect("a request")["messages"].to_string();
    assert!(told.contains("then") && told.contains("z.o"), "{told}");
    env.assert_no_container();
}
