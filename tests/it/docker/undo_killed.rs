//! What is undone, and what waits, whoever is killed meanwhile: a chat, a run, the command that
//! undoes, its keeper.

use std::time::Duration;

use nix::sys::signal::Signal;
use podbay_soak as soak;
use serde_json::json;

use super::chat::Talk;
use super::cut_off;
use super::cut_off::cut_off;
use super::review::held_back;
use super::review::noise;
use super::review::review;
use super::review::state;
use super::review::volumes;
use super::test_box::TestBox;
use super::test_box::docker;
use super::undo::undo;
use crate::support::ScriptedModel;
use crate::support::test_env::Started;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// Has a run change the project as it is told to.
fn change(env: &TestBox, command: &str) {
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command }))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["change it", "--changes", "live"])).expect(0);
}

#[test]
fn an_undo_a_redo_and_a_resume_killed_at_any_moment_leave_whole_files_and_are_finished() {
    let Some(env) = TestBox::new() else { return };
    let n_kills = soak::n_kills(2);
    cut_off::fill(&env);
    let old = state(&env);
    change(
        &env,
        "for f in folder*/modified*; do sed -i s/old/mid/ $f; done; rm -r gone",
    );
    change(
        &env,
        &format!(
            "for f in folder*/modified*; do sed -i s/mid/new/ $f; done; {}",
            cut_off::MAKE
        ),
    );
    let new = state(&env);
    undo(&env, &["1"]).expect(0);
    let mid = state(&env);
    undo(&env, &["redo"]).expect(0);
    let mut n_cut_off = 0;
    for n in 0..n_kills {
        let (order, again, target): (&[&str], &[&str], _) = if n % 2 == 0 {
            (&["2"], &["9"], &old)
        } else {
            (&["redo", "2"], &["redo", "9"], &new)
        };
        let before = state(&env);
        // What continues it is killed as well, where there is something to continue.
        for order in [order, &["resume"]] {
            let task = start(
                env.podbay(&["undo"])
                    .args(order)
                    .arg("-C")
                    .arg(env.project()),
            );
            let there = cut_off(&env, task, &[&old, &mid, &new], || {
                if n % 3 == 2 {
                    std::thread::sleep(Duration::from_millis(u64::from(n % 40) * 50));
                } else {
                    let first = || std::fs::read(env.path("folder0/modified0")).ok();
                    let begun = first();
                    within(Duration::from_secs(3), || first() != begun);
                }
            });
            n_cut_off += u32::from(there != before && ![&old, &mid, &new].contains(&&there));
        }
        undo(&env, &["resume"]).expect(0);
        // It may have been killed before anything was written down.
        if &state(&env) != target {
            undo(&env, again).expect(0);
        }
        assert_eq!(&state(&env), target, "round {n}");
    }
    env.assert_no_container();
    // A few kills may all miss it.
    assert!(
        n_cut_off > 0 || n_kills < 20,
        "none of {n_kills} was in the middle of it"
    );
}

#[test]
fn where_the_keeper_is_killed_that_takes_back_it_is_said_what_goes_on() {
    let Some(env) = TestBox::new() else { return };
    let mut bytes = noise(1, 12 << 20);
    for n in 1..=6 {
        // One that is like another is kept once.
        bytes[0] = n;
        env.write(&format!("large{n}"), &bytes);
    }
    let before = state(&env);
    change(&env, "rm large*");
    let task = start(env.podbay(&["undo", "-C"]).arg(env.project()));
    // It is looked up before there is something to be in the middle of: on a busy machine that
    // takes its time.
    let keeper = env.keeper();
    assert!(
        within(Duration::from_mins(1), || env.path("large1").exists()),
        "nothing comes back"
    );
    docker(&["kill", &keeper]);
    task.wait()
        .expect(5)
        .says(&["was interrupted", "hint: `podbay undo resume` finishes it"]);
    undo(&env, &[])
        .expect(1)
        .says(&["was interrupted", "`podbay undo resume` finishes it"]);
    undo(&env, &["resume"]).expect(0);
    assert_eq!(state(&env), before);
    env.assert_no_container();
}

#[test]
fn where_an_application_or_an_undo_is_interrupted_it_is_said_what_goes_on() {
    let Some(env) = TestBox::new() else { return };
    let n_there = || {
        (1..=8)
            .filter(|n| env.path(&format!("large{n}")).exists())
            .count()
    };
    let interrupted = |order: &[&str], interrupt: &dyn Fn(&Started), code: i32, words: &[&str]| {
        let n_before = n_there();
        let task = start(env.podbay(order).arg("-C").arg(env.project()));
        assert!(
            within(Duration::from_mins(1), || n_there() != n_before),
            "nothing changes"
        );
        interrupt(&task);
        task.wait()
            .expect(code)
            .says(&["error: it was interrupted\ncaused by: what was being "])
            .says(words);
    };
    let kill = |_: &Started| drop(docker(&["kill", &env.keeper()]));
    let ended = |signal: Signal| move |task: &Started| task.signal(signal);
    let made = held_back(
        &env,
        "for n in 1 2 3 4 5 6 7 8; do head -c 30000000 /dev/urandom > large$n; done",
        &[],
    );
    let id = made["review"].as_str().expect("a review");
    let words = [
        format!("applied of the review {id} was interrupted"),
        format!("hint: `podbay review apply {id}` finishes it"),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    interrupted(&["review", "apply"], &kill, 5, &words);
    interrupted(&["review", "apply"], &ended(Signal::SIGINT), 130, &words);
    interrupted(&["review", "apply"], &ended(Signal::SIGTERM), 143, &words);
    review(&env, &["apply"]).expect(0);
    assert_eq!(n_there(), 8);
    // It goes in one moment, and comes again as slowly.
    undo(&env, &[]).expect(0);
    let words = [
        "brought back, was interrupted",
        "hint: `podbay undo resume` finishes it",
    ];
    interrupted(&["undo", "redo"], &ended(Signal::SIGINT), 130, &words);
    undo(&env, &["resume"]).expect(0);
    assert_eq!(n_there(), 8);
    env.assert_no_container();
}

#[test]
fn turns_of_a_chat_that_was_killed_are_taken_back_by_the_one_that_goes_on() {
    let Some(env) = TestBox::new() else { return };
    let mut model = ScriptedModel::new();
    for n in 1..=3 {
        model = model
            .calls(
                "write_file",
                json!({"path": "a.txt", "content": format!("{n}\n")}),
            )
            .says(&format!("Written {n}."));
    }
    let model = model.start_blocking();
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
    }
    talk.sees("> ");
    talk.kill();
    assert!(
        within(Duration::from_secs(20), || env.containers().is_empty()),
        "a container was not removed"
    );
    assert_eq!(env.read("a.txt"), "3\n");
    let model = ScriptedModel::new().says("I see.").start_blocking();
    let mut talk = Talk::begin(
        &env,
        &env.project(),
        &model,
        &["--mode", "auto", "--changes", "live", "--continue"],
    );
    talk.sees("> ");
    talk.types("/undo 2\n");
    talk.sees("can be undone");
    assert_eq!(env.read("a.txt"), "1\n");
    talk.sees("> ");
    talk.types("/redo 2\n");
    talk.sees("can be undone");
    assert_eq!(env.read("a.txt"), "3\n");
    talk.sees("> ");
    talk.leaves();
    env.assert_no_container();
}

#[test]
fn what_a_killed_run_held_back_is_shown_brought_in_in_part_and_discarded() {
    let Some(env) = TestBox::new() else { return };
    env.write("kept.txt", "old\n");
    let command =
        "echo new > kept.txt; mkdir src; echo made > src/made.txt; echo more > more.txt; sleep 600";
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command }))
        .start_blocking();
    let task = start(&mut env.task(&model, &["change it", "--changes", "review"]));
    super::review::box_with(&env, "more.txt");
    task.signal(Signal::SIGKILL);
    task.wait();
    env.assert_no_container();
    let shown = review(&env, &["diff"]).expect(0).text();
    assert!(
        shown.contains("+made") && shown.contains("-old") && shown.contains("+more"),
        "{shown}"
    );
    let done = review(&env, &["apply", "--only", "src"]).expect(0).text();
    assert!(
        done.contains("src/made.txt") && done.contains("2 paths still waiting"),
        "{done}"
    );
    assert_eq!(
        (
            env.read("src/made.txt").as_str(),
            env.read("kept.txt").as_str()
        ),
        ("made\n", "old\n")
    );
    review(&env, &["discard"]).expect(0);
    assert!(!env.path("more.txt").exists() && env.read("kept.txt") == "old\n");
    assert_eq!(volumes(&env), [""; 0]);
    env.assert_no_container();
}
