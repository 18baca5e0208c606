//! What a turn changed, by tools and by commands, is taken back and brought back.

use nix::sys::signal::Signal;
use serde_json::Value;
use serde_json::json;

use super::chat::Talk;
use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::test_env::Done;
use crate::support::test_env::run;
use crate::support::test_env::start;

/// Changes a project in each way there is.
const CHANGE: &str = "echo new > made.txt; echo two >> kept.txt; rm gone.txt; chmod +x mode.sh; mkdir -p deep/er && mv moved.txt deep/er/; \
                      ln -s kept.txt link; mkdir build && echo x > build/out";

fn fill(env: &TestBox) {
    for (path, content) in
        [("kept.txt", "one\n"), ("gone.txt", "gone\n"), ("mode.sh", "true\n"), ("moved.txt", "moved\n"), (".gitignore", "build/\n")]
    {
        env.write(path, content);
    }
}

/// Returns every path of the project with what is there.
fn state(env: &TestBox) -> Vec<String> {
    let list = "cd \"$0\" && find . -printf '%P %y %m %l\\n' | sort; find . -type f | sort | xargs sha256sum";
    let output = std::process::Command::new("sh").args(["-c", list]).arg(env.project()).output().expect("sh");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

fn change(env: &TestBox) -> Value {
    let model = ScriptedModel::new().calls("bash", json!({ "command": CHANGE })).says("Done.").start_blocking();
    run(&mut env.task(&model, &["change it all"])).expect(0).json()
}

fn undo(env: &TestBox, arguments: &[&str]) -> Done {
    let mut command = env.podbay(&["undo"]);
    run(command.args(arguments).arg("-C").arg(env.project()))
}

#[test]
fn what_a_run_changed_is_listed_shown_taken_back_and_brought_back() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    let before = state(&env);
    let changes = change(&env)["changes"].clone();
    assert_eq!(changes["created"], json!(["build/out", "deep/er/moved.txt", "link", "made.txt"]), "{changes}");
    assert_eq!(changes["modified"], json!(["kept.txt", "mode.sh"]));
    assert_eq!(changes["deleted"], json!(["gone.txt", "moved.txt"]));
    let after = state(&env);
    assert_ne!(before, after);
    let listed = undo(&env, &["list"]).expect(0).text();
    assert!(listed.contains("change it all"), "{listed}");
    let shown = undo(&env, &["diff"]).expect(0).text();
    assert!(shown.contains("+two") && shown.contains("-gone"), "{shown}");
    assert_eq!(state(&env), after, "looking changes nothing");
    undo(&env, &[]).expect(0);
    assert_eq!(state(&env), before);
    undo(&env, &["redo"]).expect(0);
    assert_eq!(state(&env), after);
    undo(&env, &["9"]).expect(0);
    assert_eq!(state(&env), before);
    env.assert_no_container();
}

#[test]
fn what_the_person_changed_since_is_named_and_stays() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    change(&env);
    env.write("kept.txt", "the person's own\n");
    let done = undo(&env, &[]).expect(1);
    assert!(done.text().contains("left as it is: kept.txt was changed by somebody else since"), "{}", done.text());
    assert_eq!(env.read("kept.txt"), "the person's own\n");
    assert!(env.path("gone.txt").exists() && !env.path("made.txt").exists(), "all else is taken back");
    env.assert_no_container();
}

#[test]
fn a_turn_that_was_killed_in_its_middle_is_taken_back_all_the_same() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    let before = state(&env);
    let model = ScriptedModel::new().calls("bash", json!({"command": format!("{CHANGE}; touch begun; sleep 600")})).start_blocking();
    let task = start(&mut env.task(&model, &["change it all"]));
    env.wait_for("begun");
    task.signal(Signal::SIGKILL);
    task.wait();
    env.assert_no_container();
    assert_ne!(state(&env), before);
    undo(&env, &[]).expect(0);
    assert_eq!(state(&env), before);
    env.assert_no_container();
}

#[test]
fn three_turns_of_a_chat_are_taken_back_by_two_and_brought_back() {
    let Some(env) = TestBox::new() else { return };
    let write = |n: u32| json!({"path": "a.txt", "content": format!("{n}\n")});
    let mut model = ScriptedModel::new();
    for n in 1..=3 {
        model = model.calls("write_file", write(n)).says(&format!("Written {n}."));
    }
    let model = model.says("I see.").start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &["--mode", "auto"]);
    for n in 1..=3 {
        talk.sees("> ");
        talk.types(&format!("write {n}\n"));
        talk.sees(&format!("Written {n}."));
    }
    talk.sees("> ");
    talk.types("/undo 2\n");
    talk.sees("can be taken back now");
    assert_eq!(env.read("a.txt"), "1\n");
    talk.sees("> ");
    talk.types("/redo\n");
    talk.sees("can be taken back now");
    assert_eq!(env.read("a.txt"), "2\n");
    talk.sees("> ");
    talk.types("what now?\n");
    talk.sees("I see.");
    let told = model.requests().last().expect("a request").to_string();
    assert!(told.contains("The person has set files back"), "{told}");
    talk.sees("> ");
    talk.leaves();
    env.assert_no_container();
}

#[test]
fn g_06_what_may_run_on_the_host_later_is_named_at_the_end() {
    let Some(env) = TestBox::new() else { return };
    env.write("package.json", "{}");
    let make = "mkdir -p .vscode .github/workflows sub; echo '{}' > .vscode/tasks.json; echo x > .github/workflows/ci.yml; echo all: > sub/Makefile; \
                echo x > AGENTS.md; echo '{\"scripts\":{}}' > package.json; echo x > notes.txt";
    let model = ScriptedModel::new().calls("bash", json!({ "command": make })).says("Done.").start_blocking();
    let done = run(&mut env.task(&model, &["work"]))
        .expect(0)
        .says(&["may run on your machine:", "package.json: a package manager runs what it says"]);
    let files = done.json()["may_run"].to_string();
    for name in [".vscode/tasks.json: ", ".github/workflows/ci.yml: ", "sub/Makefile: ", "AGENTS.md: ", "package.json: "] {
        assert!(files.contains(name), "{name}: {files}");
    }
    assert!(!files.contains("notes.txt"), "{files}");
    env.assert_no_container();
}
