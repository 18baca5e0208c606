//! What a turn changed, by tools and by commands, is undone and brought back.

use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use serde_json::json;

use super::chat::Talk;
use super::test_box::TestBox;
use super::test_box::alone_with_gc;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::test_env::Done;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// Changes a project in each way there is.
const CHANGE: &str = "echo new > made.txt; echo two >> kept.txt; rm gone.txt; chmod +x mode.sh; mkdir -p deep/er && mv moved.txt deep/er/; \
                      ln -s kept.txt link; mkdir build && echo x > build/out";

fn fill(env: &TestBox) {
    for (path, content) in [
        ("kept.txt", "one\n"),
        ("gone.txt", "gone\n"),
        ("mode.sh", "true\n"),
        ("moved.txt", "moved\n"),
        (".gitignore", "build/\n"),
    ] {
        env.write(path, content);
    }
}

/// Returns every path of the project with what is there.
fn state(env: &TestBox) -> Vec<String> {
    let list = "cd \"$0\" && find . -printf '%P %y %m %l\\n' | sort; find . -type f | sort | xargs sha256sum";
    let output = std::process::Command::new("sh")
        .args(["-c", list])
        .arg(env.project())
        .output()
        .expect("sh");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(str::to_owned)
        .collect()
}

fn change(env: &TestBox) -> Value {
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": CHANGE }))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["change it all"]))
        .expect(0)
        .json()
}

pub(super) fn undo(env: &TestBox, arguments: &[&str]) -> Done {
    let mut command = env.podbay(&["undo"]);
    run(command.args(arguments).arg("-C").arg(env.project()))
}

#[test]
fn what_a_run_changed_is_listed_shown_taken_back_and_brought_back() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    let before = state(&env);
    let changes = change(&env)["changes"].clone();
    assert_eq!(
        changes["created"],
        json!(["build/out", "deep/er/moved.txt", "link", "made.txt"]),
        "{changes}"
    );
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
fn a_terminal_is_asked_before_the_turn_of_an_older_session_is_undone() {
    let Some(env) = TestBox::new() else { return };
    let works = |name: &str| {
        let model = ScriptedModel::new()
            .calls("write_file", json!({"path": name, "content": "x"}))
            .says("Done.")
            .start_blocking();
        let result = run(&mut env.task(&model, &["write"])).expect(0).json();
        result["session"].as_str().expect("an id").to_owned()
    };
    let first = works("one.txt");
    works("two.txt");
    let undoes = |words: &[&str], answer: Option<&str>| {
        let mut talk = Talk::run(&env, &env.project(), words);
        if let Some(answer) = answer {
            talk.sees(&format!(
                "Undo turns of session {first}, which is not this project's last one? [y/N] "
            ));
            std::thread::sleep(Duration::from_millis(600));
            talk.types(answer);
        }
        talk.ends()
    };
    assert_eq!(undoes(&["undo", "2"], Some("\n")), 1);
    assert!(env.path("one.txt").exists() && env.path("two.txt").exists());
    // The last session's own turn is not asked about, and `--yes` answers.
    assert_eq!(undoes(&["undo"], None), 0);
    assert!(env.path("one.txt").exists() && !env.path("two.txt").exists());
    assert_eq!(undoes(&["undo", "--yes"], None), 0);
    assert!(!env.path("one.txt").exists());
    let turns = undo(&env, &["list", "--json"]).expect(0).json();
    assert_eq!(
        (&turns["n"], &turns["turns"][0]["state"]),
        (&json!(2), &json!("taken_back"))
    );
    assert_eq!(
        turns,
        undo(&env, &["list", "--output", "json"]).expect(0).json()
    );
}

#[test]
fn snapshots_of_a_project_that_is_gone_are_named_and_removed_when_the_person_says_so() {
    let Some(env) = TestBox::new() else { return };
    let _alone = alone_with_gc();
    fill(&env);
    change(&env);
    let gc = |flags: &[&str]| run(env.podbay(&["gc"]).args(flags)).expect(0).text();
    let place = env.project().display().to_string();
    let volume = format!("podbay-keep-{}-", env.key());
    let is_kept = || docker(&["volume", "ls", "--quiet"]).contains(&volume);
    assert!(
        is_kept() && !gc(&["--snapshots"]).contains(&place),
        "the project is there"
    );
    let away = env.project().with_extension("away");
    std::fs::rename(env.project(), &away).expect("renamed");
    std::fs::create_dir(env.project()).expect("made");
    let said = gc(&[]);
    assert!(
        said.contains(&format!(
            "snapshots of {place}, which is not there any more"
        )) && is_kept(),
        "{said}"
    );
    std::fs::remove_dir(env.project()).expect("removed");
    assert!(gc(&[]).contains(&place));
    gc(&["--snapshots"]);
    assert!(!is_kept());
    std::fs::rename(&away, env.project()).expect("renamed");
    // What is kept from here on has a new place.
    change(&env);
    assert!(is_kept());
    undo(&env, &[]).expect(0);
}

#[test]
fn what_the_person_changed_since_is_named_and_stays() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    change(&env);
    env.write("kept.txt", "the user's own\n");
    let done = undo(&env, &[]).expect(1);
    assert!(
        done.text()
            .contains("left as it is: kept.txt was changed by another program since"),
        "{}",
        done.text()
    );
    assert!(
        done.text().contains("`podbay undo retry` tries it again"),
        "{}",
        done.text()
    );
    assert_eq!(env.read("kept.txt"), "the user's own\n");
    assert!(
        env.path("gone.txt").exists() && !env.path("made.txt").exists(),
        "all else is undone"
    );
    assert!(
        undo(&env, &["list"])
            .expect(0)
            .text()
            .contains("1 path left as it was")
    );
    undo(&env, &["retry", "--merge"]).expect(1);
    std::fs::rename(env.path("kept.txt"), env.path("mine.txt")).expect("renamed");
    undo(&env, &["retry"]).expect(0);
    assert_eq!(env.read("kept.txt"), "one\n");
    env.assert_no_container();
}

#[test]
fn a_folder_that_a_command_emptied_and_closed_comes_back() {
    let Some(env) = TestBox::new() else { return };
    env.write("d/in", "in\n");
    env.write("d/s/t", "t\n");
    let before = state(&env);
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "rm -rf d/*; chmod 000 d"}))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["clean up"])).expect(0);
    assert!(!env.path("d/in").exists());
    undo(&env, &[]).expect(0);
    assert_eq!(state(&env), before);
    env.assert_no_container();
}

#[test]
fn a_turn_ends_without_its_first_keeper_and_where_it_cannot_that_is_said() {
    let Some(env) = TestBox::new() else { return };
    let command = "echo 1 > made.txt; touch begun; until [ -e go ]; do sleep 0.05; done";
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command }))
        .says("Done.")
        .start_blocking();
    let task = start(&mut env.task(&model, &["make it"]));
    env.wait_for("begun");
    docker(&["kill", &env.keeper()]);
    env.write("go", "");
    let changes = task.wait().expect(0).json()["changes"].clone();
    assert!(
        changes["created"].to_string().contains("made.txt"),
        "{changes}"
    );
    // A second one needs the project in its place.
    let command = "echo 2 > made.txt; touch begun2; until [ -e go2 ]; do sleep 0.05; done";
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command }))
        .says("Done.")
        .start_blocking();
    let task = start(&mut env.task(&model, &["make it"]));
    env.wait_for("begun2");
    docker(&["kill", &env.keeper()]);
    let away = env.beside("away");
    std::fs::rename(env.project(), &away).expect("moved");
    std::fs::write(away.join("go2"), "").expect("written");
    let done = task.wait();
    assert!(
        done.stderr
            .contains("the end of this turn could not be noted"),
        "{}",
        done.stderr
    );
    let _ = std::fs::remove_dir(env.project());
    std::fs::rename(&away, env.project()).expect("moved back");
    env.write("mine.txt", "the user's\n");
    undo(&env, &[])
        .expect(0)
        .says(&["was cut off, so what you changed yourself after it may be among what is undone"]);
    assert_eq!(env.read("made.txt"), "1\n");
    undo(&env, &["redo"]).expect(0);
    assert_eq!(env.read("mine.txt"), "the user's\n");
    env.assert_no_container();
}

#[test]
fn what_was_interrupted_is_to_be_ended_first() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    let before = state(&env);
    change(&env);
    let volumes = docker(&[
        "volume",
        "ls",
        "--quiet",
        "--filter",
        &format!("name=podbay-keep-{}-", env.key()),
    ]);
    // One that nobody can read stands for one that was cut off.
    let mount = format!("{}:/keep", volumes.trim());
    let write = "echo '{}' > /keep/state/journal.json";
    docker(&[
        "run",
        "--rm",
        "--network",
        "none",
        "--user",
        "0",
        "--entrypoint",
        "sh",
        "-v",
        &mount,
        "podbay/workspace",
        "-c",
        write,
    ]);
    undo(&env, &[]).expect(1).says(&[
        "was interrupted",
        "hint: `podbay undo resume` finishes it, `podbay undo abandon` gives it up",
    ]);
    undo(&env, &["abandon"]).expect(0);
    undo(&env, &[]).expect(0);
    assert_eq!(state(&env), before);
    env.assert_no_container();
}

#[test]
fn what_may_be_a_secret_waits_until_the_chat_is_over() {
    let Some(env) = TestBox::new() else { return };
    // A command that names the file is not let in to begin with.
    env.write("make.sh", "echo x > server.pem; echo x > plain");
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "sh make.sh"}))
        .says("Made.")
        .start_blocking();
    let mut talk = Talk::begin(
        &env,
        &env.project(),
        &model,
        &["--mode", "auto", "--changes", "live"],
    );
    talk.sees("> ");
    talk.types("make it\n");
    talk.sees("Made.");
    talk.sees("> ");
    talk.types("/undo\n");
    talk.sees("may be a secret");
    talk.sees("can be undone");
    talk.sees("> ");
    talk.leaves();
    assert!(env.path("server.pem").exists() && !env.path("plain").exists());
    undo(&env, &["retry"]).expect(0);
    assert!(!env.path("server.pem").exists());
    env.assert_no_container();
}

#[test]
fn a_turn_that_was_killed_in_its_middle_is_taken_back_all_the_same() {
    let Some(env) = TestBox::new() else { return };
    fill(&env);
    let before = state(&env);
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": format!("{CHANGE}; touch begun; sleep 600")}),
        )
        .start_blocking();
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
fn a_signal_ends_the_end_of_a_turn_which_counts_as_cut_off() {
    let Some(env) = TestBox::new() else { return };
    // They take no room, and each is read to its end.
    let command = "for n in $(seq 4000); do printf $n > s$n; truncate -s 64M s$n; done";
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command }))
        .says("Done.")
        .start_blocking();
    let task = start(&mut env.task(&model, &["make many"]));
    assert!(
        within(Duration::from_mins(2), || model.requests().len() == 2),
        "the command ends"
    );
    task.signal(Signal::SIGTERM);
    task.wait_within(Duration::from_mins(2))
        .expect(143)
        .says(&["was not kept, because that was ended before it was done"]);
    let turns = undo(&env, &["list"]).expect(0).text();
    assert!(turns.contains("under way, or cut off"), "{turns}");
    env.assert_no_container();
}

#[test]
fn three_turns_of_a_chat_are_taken_back_by_two_and_brought_back() {
    let Some(env) = TestBox::new() else { return };
    let write = |n: u32| json!({"path": "a.txt", "content": format!("{n}\n")});
    let mut model = ScriptedModel::new();
    for n in 1..=3 {
        model = model
            .calls("write_file", write(n))
            .says(&format!("Written {n}."));
    }
    let model = model.says("I see.").start_blocking();
    let mut talk = Talk::begin(
        &env,
        &env.project(),
        &model,
        &["--mode", "auto", "--changes", "live"],
    );
    for n in 1..=3 {
        talk.sees("> ");
        talk.types(&format!("write {n}\n"));
        talk.sees(&format!("Written {n}."));
        talk.sees(if n == 1 {
            "1 file, +1 −0"
        } else {
            "1 file, +1 −1"
        });
    }
    talk.sees("> ");
    talk.types("/undo 2\n");
    talk.sees("can be undone");
    assert_eq!(env.read("a.txt"), "1\n");
    talk.sees("> ");
    talk.types("/redo\n");
    talk.sees("can be undone");
    assert_eq!(env.read("a.txt"), "2\n");
    talk.sees("> ");
    talk.types("what now?\n");
    talk.sees("I see.");
    let told = model.requests().last().expect("a request").to_string();
    assert!(told.contains("The user has set files back"), "{told}");
    talk.sees("> ");
    talk.leaves();
    env.assert_no_container();
}

#[test]
fn where_it_was_not_kept_how_the_project_was_it_is_said_that_what_may_run_is_not_known() {
    let Some(env) = TestBox::new() else { return };
    for n in 1..=6 {
        env.write(&format!("large{n}"), super::review::noise(n, 30 << 20));
    }
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "echo all: > Makefile"}))
        .says("Done.")
        .start_blocking();
    let task = start(&mut env.task(&model, &["work"]));
    assert!(
        within(Duration::from_secs(60), || !model.requests().is_empty()),
        "the model was not asked"
    );
    // One that came before it may just be ending.
    let kill = || {
        Command::new("docker")
            .args(["kill", &env.keeper()])
            .output()
            .expect("the `docker` command")
            .status
            .success()
    };
    assert!(
        within(Duration::from_secs(30), kill),
        "no keeper was there to be killed"
    );
    let done = task.wait().expect(0).says(&[
        "what is changed now cannot be undone by `podbay undo`",
        "what of the changes may run on your machine is not known",
    ]);
    let result = done.json();
    assert_eq!(
        (&result["may_run"], &result["may_run_known"]),
        (&json!([]), &json!(false)),
        "{result}"
    );
    env.assert_no_container();
}

#[test]
fn g_06_what_may_run_on_the_host_later_is_named_at_the_end() {
    let Some(env) = TestBox::new() else { return };
    env.write("package.json", "{}");
    let make = "mkdir -p .vscode .github/workflows sub; echo '{}' > .vscode/tasks.json; echo x > .github/workflows/ci.yml; echo all: > sub/Makefile; \
                echo x > AGENTS.md; echo '{\"scripts\":{}}' > package.json; echo x > notes.txt; mkdir tools; echo x > tools/a.run";
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": make }))
        .says("Done.")
        .start_blocking();
    // The user's own patterns count as well.
    let settings = env.beside("settings.toml");
    std::fs::write(&settings, "[sandbox]\nauto_run = [\"tools/*.run\"]\n").expect("written");
    let settings = settings.to_str().expect("UTF-8");
    let done = run(&mut env.task(&model, &["work", "--config", settings]))
        .expect(0)
        .says(&[
            "may run on your machine:",
            "package.json: npm or another package manager of node obeys it when you run it",
        ]);
    let files = done.json()["may_run"].to_string();
    for name in [
        ".vscode/tasks.json: ",
        ".github/workflows/ci.yml: ",
        "sub/Makefile: ",
        "AGENTS.md: ",
        "package.json: ",
        "tools/a.run: ",
    ] {
        assert!(files.contains(name), "{name}: {files}");
    }
    assert!(
        !files.contains("notes.txt") && done.json()["may_run_known"] == json!(true),
        "{files}"
    );
    env.assert_no_container();
}

/// Issue 28: in a live run, too, nothing continues changing the project when the turn is over.
#[test]
fn what_a_background_command_of_a_live_run_wrote_is_of_its_turn() {
    let Some(env) = TestBox::new() else { return };
    env.write("log", "");
    let command = "while true; do echo line >> log; done";
    let wait = "until [ -s log ]; do sleep 0.05; done";
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command, "background": true }))
        .calls("bash", json!({ "command": wait }))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["write", "--changes", "live"])).expect(0);
    let after = env.read("log");
    assert!(!after.is_empty());
    undo(&env, &[]).expect(0);
    assert_eq!(
        env.read("log"),
        "",
        "no line came after the end of the turn, so nothing is left for being changed since"
    );
    undo(&env, &["redo"]).expect(0);
    assert_eq!(env.read("log"), after);
}
