//! A chat whose turns go into the project one by one.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use serde_json::json;

use super::chat::Talk;
use super::git;
use super::review::review;
use super::review::volumes;
use super::test_box::TestBox;
use super::test_box::processes;
use crate::support::ScriptedModel;
use crate::support::test_env::run;
use crate::support::test_env::within;

fn say(talk: &mut Talk, message: &str, sees: &str) -> String {
    talk.sees("> ");
    talk.types(&format!("{message}\n"));
    talk.sees(sees)
}

/// The same; waits until a script of the project runs, which a terminal without a moving line does not
/// show.
fn say_running(env: &TestBox, talk: &mut Talk, message: &str, script: &str) {
    talk.sees("> ");
    talk.types(&format!("{message}\n"));
    let runs = || {
        let boxes = env.running_boxes();
        boxes.iter().any(|id| processes(id).contains(script))
    };
    assert!(
        within(Duration::from_secs(30), runs),
        "{script} does not run"
    );
}

/// Says that everything a command asks for is allowed.
const AUTO: [&str; 2] = ["--mode", "auto"];

#[test]
fn each_turn_comes_at_its_end_and_one_undo_takes_it_back() {
    let Some(env) = TestBox::new() else { return };
    env.write("a.txt", "one\ntwo\n");
    env.write("src/b.txt", "b\n");
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "echo tmp > /tmp/kept; echo home > ~/kept; cd src; sed -i s/two/2/ ../a.txt; echo new > ../made.txt; mv b.txt c.txt; cat ../a.txt"}))
        .says("First.")
        .calls("bash", json!({"command": "pwd; cat /tmp/kept ~/kept c.txt; echo second >> ../made.txt"}))
        .says("Second.")
        .start_blocking();
    let inode = std::fs::metadata(env.path("a.txt")).expect("there").ino();
    let mut talk = Talk::begin(&env, &env.project(), &model, &AUTO);
    let screen = say(&mut talk, "work", "3 files, +2 −1");
    assert!(screen.contains("First."), "{screen}");
    assert_eq!(
        (
            env.read("a.txt").as_str(),
            env.read("made.txt").as_str(),
            env.read("src/c.txt").as_str()
        ),
        ("one\n2\n", "new\n", "b\n")
    );
    assert!(!env.path("src/b.txt").exists());
    // It is another file under the old name: whoever had a hard link has the old content.
    assert_ne!(
        std::fs::metadata(env.path("a.txt")).expect("there").ino(),
        inode
    );
    say(&mut talk, "more", "1 file, +1 −0");
    let told = model.requests().last().expect("requests")["messages"].to_string();
    assert!(
        told.contains("/workspace/src\\ntmp\\nhome\\nb"),
        "the next command runs where the last one left off: {told}"
    );
    assert_eq!(env.read("made.txt"), "new\nsecond\n");
    talk.sees("> ");
    talk.types("/undo 2\n");
    talk.sees("can be undone");
    assert_eq!(
        (
            env.read("a.txt").as_str(),
            env.path("made.txt").exists(),
            env.read("src/b.txt").as_str()
        ),
        ("one\ntwo\n", false, "b\n")
    );
    talk.sees("> ");
    talk.types("/redo 2\n");
    talk.sees("can be undone");
    assert_eq!(env.read("made.txt"), "new\nsecond\n");
    talk.leaves();
    env.assert_no_container();
    assert_eq!(volumes(&env), Vec::<String>::new());
}

/// Issue 28: a server that runs on keeps its sandbox, the user edits what the session has, and
/// what it writes comes with the next turn.
#[test]
fn a_command_in_the_background_goes_on_and_the_person_edits_the_same_files_meanwhile() {
    const SERVER: &str = "n=0; while true; do n=$((n+1)); echo $n > served.txt; sleep 0.1; done";
    let Some(env) = TestBox::new() else { return };
    env.write("a.txt", "one\n");
    env.write("b.txt", "b\n");
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": SERVER, "background": true}))
        .calls(
            "bash",
            json!({"command": "echo two >> a.txt; mkdir own; echo own > own/made.txt; until [ -e served.txt ]; do sleep 0.1; done"}),
        )
        .says("First.")
        .calls("bash", json!({"command": "cat a.txt b.txt own/beside.txt; ls own; echo four >> a.txt; n=$(cat served.txt); until [ \"$(cat served.txt)\" != \"$n\" ]; do sleep 0.05; done"}))
        .says("Second.")
        .start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &AUTO);
    say(&mut talk, "serve", "First.");
    talk.sees("3 files, +3 −0");
    assert_eq!(env.read("a.txt"), "one\ntwo\n");
    let served = env.read("served.txt");
    let id = env.container();
    // As an editor does it, and in place.
    std::fs::write(env.path("a.new"), "one\ntwo\nthree, the user's\n").expect("written");
    std::fs::rename(env.path("a.new"), env.path("a.txt")).expect("replaced");
    env.write("b.txt", "the user's\n");
    env.write("own/beside.txt", "beside\n");
    std::fs::remove_file(env.path("own/made.txt")).expect("removed");
    say(&mut talk, "continue", "Second.");
    talk.sees("files, +");
    let told = model.requests().last().expect("requests")["messages"].to_string();
    assert!(
        told.contains("three, the user's\\nthe user's\\nbeside\\nbeside.txt"),
        "{told}"
    );
    assert_eq!(env.read("a.txt"), "one\ntwo\nthree, the user's\nfour\n");
    assert_eq!(
        (
            env.read("b.txt").as_str(),
            env.path("own/made.txt").exists()
        ),
        ("the user's\n", false)
    );
    assert_eq!(env.container(), id, "the server runs on in its sandbox");
    assert_ne!(env.read("served.txt"), served);
    let served = env.read("served.txt");
    // It writes ten times a second, where nobody outside sees it.
    std::thread::sleep(Duration::from_secs(2));
    talk.leaves();
    // What it wrote since is of no turn.
    assert_ne!(env.read("served.txt"), served);
    let listed = run(env.podbay(&["undo", "list", "-C"]).arg(env.project()))
        .expect(0)
        .text();
    assert!(
        listed.contains("background commands") && listed.matches("serve").count() == 1,
        "{listed}"
    );
    env.assert_no_container();
    assert_eq!(volumes(&env), Vec::<String>::new());
}

#[test]
fn a_turn_that_is_broken_off_is_kept_or_dropped() {
    let Some(env) = TestBox::new() else { return };
    env.write("a.txt", "one\n");
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "sh one.sh"}))
        .calls("bash", json!({"command": "sh two.sh"}))
        .says("Third.")
        .start_blocking();
    env.write(
        "one.sh",
        "echo two >> a.txt; echo made > made.txt; touch begun; sleep 100\n",
    );
    env.write("two.sh", "cat a.txt; ls; echo three >> a.txt; sleep 100\n");
    let mut talk = Talk::begin(&env, &env.project(), &model, &AUTO);
    say_running(&env, &mut talk, "work", "sh one.sh");
    std::thread::sleep(Duration::from_secs(1));
    talk.types("\u{3}");
    talk.sees("3 changes so far: [k]eep or [d]rop? ");
    talk.types("d\n");
    talk.sees("Dropped: the project is as it was before this turn.");
    assert_eq!(
        (env.read("a.txt").as_str(), env.path("made.txt").exists()),
        ("one\n", false)
    );
    say_running(&env, &mut talk, "again", "sh two.sh");
    std::thread::sleep(Duration::from_secs(1));
    talk.types("\u{3}");
    talk.sees("1 change so far: [k]eep or [d]rop? ");
    talk.types("k\n");
    talk.sees("1 file, +1 −0");
    assert_eq!(env.read("a.txt"), "one\nthree\n");
    let told = model.requests().last().expect("requests")["messages"].to_string();
    assert!(
        told.contains("dropped its changes") && !told.contains("made.txt\\n"),
        "{told}"
    );
    talk.leaves();
    assert_eq!(volumes(&env), Vec::<String>::new());
}

#[test]
fn a_turn_whose_chat_was_killed_waits_and_is_offered_by_the_next() {
    let Some(env) = TestBox::new() else { return };
    env.write("a.txt", "one\n");
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "echo two >> a.txt"}))
        .says("First.")
        .calls("bash", json!({"command": "sh more.sh"}))
        .start_blocking();
    env.write("more.sh", "echo three >> a.txt; touch begun; sleep 100\n");
    let mut talk = Talk::begin(&env, &env.project(), &model, &AUTO);
    say(&mut talk, "work", "1 file, +1 −0");
    say_running(&env, &mut talk, "more", "sh more.sh");
    std::thread::sleep(Duration::from_secs(1));
    talk.kill();
    env.assert_no_container();
    assert_eq!(env.read("a.txt"), "one\ntwo\n");
    let model = ScriptedModel::new().says("Second.").start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &AUTO);
    let told = talk.sees("its changes are pending (2 paths)");
    talk.sees("> ");
    talk.leaves();
    let id = told
        .split("the last turn of the session ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .expect("its id")
        .to_owned();
    review(&env, &["apply", &id]).expect(0);
    assert_eq!(env.read("a.txt"), "one\ntwo\nthree\n");
    // What is left of a chat that was killed between two turns is removed unasked.
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "echo four >> a.txt"}))
        .says("Third.")
        .start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &AUTO);
    say(&mut talk, "work", "1 file, +1 −0");
    talk.sees("> ");
    std::thread::sleep(Duration::from_secs(2));
    talk.kill();
    let mut talk = Talk::begin(&env, &env.project(), &model, &AUTO);
    let screen = talk.sees("> ");
    assert!(!screen.contains("pending"), "{screen}");
    talk.leaves();
    assert!(
        within(Duration::from_secs(10), || volumes(&env).is_empty()),
        "{:?}",
        volumes(&env)
    );
}

#[test]
fn commits_of_a_turn_come_with_it_and_the_next_turn_goes_on_from_them() {
    let Some(env) = git::repository() else { return };
    let commit = |name: &str| json!({"command": format!("cat ~/kept; echo {name} >> ~/kept; echo {name} > {name}; git add {name}; git commit -qm {name}; git log --format=%s")});
    let model = ScriptedModel::new()
        .calls("bash", commit("one"))
        .says("First.")
        .calls("bash", commit("two"))
        .says("Second.")
        .start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &AUTO);
    for name in ["one", "two"] {
        say(&mut talk, name, "1 file, +1 −0");
        assert_eq!(git::git(&env, &["log", "-1", "--format=%s"]).trim(), name);
        assert_eq!(git::git(&env, &["status", "--porcelain"]), "");
    }
    let told = model.requests().last().expect("requests")["messages"].to_string();
    assert!(told.contains("\"one\\ntwo\\none\\n"), "{told}");
    talk.leaves();
    assert_eq!(
        (git::volumes(&env), volumes(&env)),
        (Vec::new(), Vec::new())
    );
}

#[test]
fn what_runs_by_itself_is_asked_about_and_what_both_changed_is_left() {
    let Some(env) = TestBox::new() else { return };
    env.write("a.txt", "one\n");
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "sh work.sh"}))
        .says("First.")
        .start_blocking();
    env.write(
        "work.sh",
        "echo run > .envrc; echo 2 > a.txt; echo made > made.txt; sleep 3\n",
    );
    let mut talk = Talk::begin(&env, &env.project(), &model, &AUTO);
    say_running(&env, &mut talk, "work", "sh work.sh");
    std::thread::sleep(Duration::from_secs(1));
    env.write("a.txt", "the user's\n");
    talk.sees("1 file, +1 −0");
    talk.sees("not applied: a.txt was changed by another program");
    talk.sees("not applied: .envrc may run on your machine");
    talk.sees("also apply files that run by themselves on your machine? [y/N] ");
    assert!(!env.path(".envrc").exists());
    talk.types("y\n");
    talk.sees("1 file, +1 −0");
    assert_eq!(
        (env.read(".envrc").as_str(), env.read("a.txt").as_str()),
        ("run\n", "the user's\n")
    );
    talk.leaves();
    // The other side of it waits for whoever wants it.
    let id = volumes(&env)[0]
        .split('-')
        .nth(2)
        .expect("its session")
        .to_owned();
    let shown = review(&env, &["diff", &id]).expect(0).text();
    assert!(shown.contains("+2"), "{shown}");
    review(&env, &["discard", &id]).expect(0);
    assert_eq!(volumes(&env), Vec::<String>::new());
}

/// Issue 28: "left out until the user says yes": a no holds for the files that were asked about,
/// not for others.
#[test]
fn nobody_is_asked_twice_about_a_file_that_runs_by_itself() {
    const QUESTION: &str = "also apply files that run by themselves on your machine? [y/N] ";
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "echo run > .envrc; echo a > a.txt"}),
        )
        .says("First.")
        .calls("bash", json!({"command": "echo b > b.txt"}))
        .says("Second.")
        .calls(
            "bash",
            json!({"command": "mkdir .vscode; echo '{}' > .vscode/tasks.json"}),
        )
        .says("Third.")
        .start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &AUTO);
    say(&mut talk, "one", QUESTION);
    talk.types("n\n");
    say(&mut talk, "two", "Second.");
    talk.sees("not applied: .envrc may run on your machine");
    // The next question is the prompt.
    say(&mut talk, "three", QUESTION);
    assert!(!env.path(".envrc").exists());
    talk.types("y\n");
    talk.sees("files, +");
    assert_eq!(
        (
            env.read(".envrc").as_str(),
            env.read(".vscode/tasks.json").as_str()
        ),
        ("run\n", "{}\n")
    );
    talk.leaves();
    assert_eq!(volumes(&env), Vec::<String>::new());
}

#[test]
fn commits_that_cannot_come_are_pending_when_the_chat_has_ended() {
    let Some(env) = git::repository() else { return };
    env.write(
        "work.sh",
        "echo session > s; git add s; git commit -qm session; sleep 3\n",
    );
    git::git(&env, &["add", "work.sh"]);
    git::git(&env, &["commit", "-qm", "script"]);
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "sh work.sh"}))
        .says("First.")
        .start_blocking();
    let mut talk = Talk::begin(&env, &env.project(), &model, &AUTO);
    say_running(&env, &mut talk, "work", "sh work.sh");
    // The branch moves under it.
    git::git(&env, &["commit", "-q", "--allow-empty", "-m", "person"]);
    talk.sees("First.");
    talk.sees("1 file, +1 −0");
    talk.leaves();
    assert_eq!(
        git::git(&env, &["log", "-1", "--format=%s"]).trim(),
        "person"
    );
    let id = volumes(&env)[0]
        .split('-')
        .nth(2)
        .expect("its session")
        .to_owned();
    let listed = review(&env, &["list"]).expect(0).text();
    assert!(
        listed.contains(&id) && listed.contains("session"),
        "{listed}"
    );
    review(&env, &["discard", &id]).expect(0);
    assert_eq!(
        (git::volumes(&env), volumes(&env)),
        (Vec::new(), Vec::new())
    );
}
