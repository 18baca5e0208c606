//! What ends while a person makes up their mind.

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
        .says("It went on.")
        .calls("bash", touch("third"))
        .says("And on.")
        .start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &[]);
    talk.sees("> ");
    talk.types("work\n");
    talk.sees("command: touch first");
    talk.sees("Allow it? ");
    docker(&["rm", "--force", &env.container()]);
    talk.sees("(the question is withdrawn)");
    let told = talk.sees("bash (failed");
    assert!(told.contains("the sandbox ended: "), "{told}");
    // The next one stands: the box is made anew when it is needed.
    assert!(talk.answers("y\n").contains("command: touch second"));
    talk.sees("It went on.");
    talk.sees("1 file, +0 −0");
    assert_eq!((env.path("first").exists(), env.path("second").exists()), (false, true));
    let requests = model.requests();
    let told = requests[1]["messages"].to_string();
    assert!(told.contains("The sandbox ended while the person was asked") && told.contains("A new one takes its place"), "{told}");
    talk.types("more\n");
    talk.answers("y\n");
    talk.sees("And on.");
    talk.sees("1 file, +0 −0");
    assert!(env.path("third").exists());
    let screen = talk.leaves();
    assert_eq!(screen.matches("(the question is withdrawn)").count(), 1, "{screen}");
    env.assert_no_container();
}

/// A box that is paused answers nothing; whoever is in it by `podbay sh` gets out, and it goes with them.
#[test]
fn a_shell_in_a_box_that_answers_no_more_ends_with_a_signal() {
    let Some(env) = TestBox::new() else { return };
    let shell = start(&mut env.here(&["sh", "--", "sh", "-c", "touch begun; sleep 60"]));
    env.wait_for("begun");
    docker(&["pause", &env.container()]);
    shell.signal(Signal::SIGTERM);
    shell.wait_within(std::time::Duration::from_secs(30)).expect(143).says(&["the sandbox does not answer"]);
    env.assert_no_container();
    run(&mut env.here(&["sh", "--", "true"])).expect(0);
}
