//! The end of a session that used git, killed at any moment: the repository is whole, and nothing
//! of the session is lost.

use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use nix::sys::signal::Signal;
use podbay_soak as soak;
use serde_json::json;

use super::cut_off::assert_ended;
use super::git::repository;
use super::git::try_git;
use super::git::volumes;
use super::test_box::TestBox;
use super::test_box::alone_with_gc;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::test_env::Started;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// Commits on two branches and stages a file; then says what the names and the index are.
const WORK: &str = "#!/bin/sh\nset -e\necho $1 >> a.txt\ngit commit -q -m \"main $1\" -- a.txt\ngit checkout -q side\n\
                    echo $1 >> b.txt\ngit add b.txt\ngit commit -q -m \"side $1\" -- b.txt\ngit checkout -q main\n\
                    echo $1 > staged.txt\ngit add staged.txt\ngit rev-parse main side > names\ngit ls-files --stage > index\n";

/// What a user's git says of the names that a session moves, and of what is staged.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    names: Vec<String>,
    index: String,
}

impl State {
    #[track_caller]
    fn of(env: &TestBox) -> Self {
        let read = |words: &[&str]| {
            let (text, is_good) = try_git(env, "", words);
            assert!(is_good, "git {words:?}: {text}");
            text
        };
        read(&["fsck", "--strict", "--no-dangling"]);
        Self {
            names: read(&["rev-parse", "main", "side"])
                .lines()
                .map(str::to_owned)
                .collect(),
            index: read(&["ls-files", "--stage"]),
        }
    }

    /// Returns what the session made of it, by its own word.
    fn made(env: &TestBox) -> Self {
        Self {
            names: env.read("names").lines().map(str::to_owned).collect(),
            index: env.read("index"),
        }
    }
}

/// Begins a session, which takes over what the one before left, and returns it as it is about to
/// end.
#[track_caller]
fn about_to_end(env: &TestBox, round: u32) -> Started {
    let command = format!("sh work.sh {round}");
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command }))
        .says("Done.")
        .start_blocking();
    let task = start(&mut env.task(&model, &["work"]));
    assert!(
        within(Duration::from_secs(60), || model.requests().len() > 1),
        "round {round}: nothing was run"
    );
    task
}

/// Returns the keeper that looks after git, once it runs.
fn keeper(env: &TestBox) -> Option<String> {
    let project = format!("label=dev.podbay.project={}", env.key());
    let mut found = String::new();
    within(Duration::from_secs(20), || {
        found = docker(&[
            "ps",
            "--quiet",
            "--filter",
            "name=podbay-keeper-git-",
            "--filter",
            &project,
        ]);
        !found.is_empty()
    });
    found.lines().next().map(str::to_owned)
}

#[test]
#[expect(
    clippy::print_stderr,
    reason = "how many kills came in the middle of it is what a long run is for"
)]
fn an_import_killed_at_any_moment_leaves_a_whole_repository_and_is_done_by_the_next_session() {
    let Some(env) = repository() else { return };
    let _alone = alone_with_gc();
    let n_kills = soak::n_kills(4);
    super::git::git(&env, &["branch", "side"]);
    env.write(".gitignore", "work.sh\nnames\nindex\n.gitignore\n");
    env.write("work.sh", WORK);
    // One that nobody kills says how long an end takes.
    let task = about_to_end(&env, 0);
    let begun = Instant::now();
    task.wait().expect(0);
    let takes = begun.elapsed();
    let mut last = State::of(&env);
    assert_eq!(last, State::made(&env));
    let (mut n_left, mut n_between) = (0, 0);
    for round in 1..=n_kills {
        let task = about_to_end(&env, round);
        assert_eq!(
            State::of(&env),
            last,
            "round {round}: what the one before did is not all there"
        );
        let made = State::made(&env);
        // Steps of the golden ratio come everywhere, also for few rounds.
        let part = (f64::from(round) * 0.618_034).fract();
        if round % 2 == 0 {
            std::thread::sleep(takes.mul_f64(part));
            task.signal(Signal::SIGKILL);
            task.wait();
        } else {
            if let Some(keeper) = keeper(&env) {
                std::thread::sleep(takes.mul_f64(part * 0.5));
                let _ = Command::new("docker").args(["kill", &keeper]).output();
            }
            task.wait().expect(0);
        }
        assert_ended(&env);
        let now = State::of(&env);
        for (at, name) in now.names.iter().enumerate() {
            assert!(
                [&last, &made]
                    .into_iter()
                    .any(|state| state.names[at] == *name),
                "round {round}: {name} is neither old nor new"
            );
        }
        assert!(
            [&last.index, &made.index].contains(&&now.index),
            "round {round}: the index is neither old nor new: {}",
            now.index
        );
        n_left += u32::from(!volumes(&env).is_empty());
        n_between += u32::from(now != last && now != made);
        last = made;
    }
    about_to_end(&env, n_kills + 1).wait().expect(0);
    assert_eq!(State::of(&env), State::made(&env));
    assert_eq!(volumes(&env), Vec::<String>::new());
    env.assert_no_container();
    eprintln!(
        "{n_kills} kills: {n_left} left something to the next session, {n_between} of them in the middle of the names"
    );
    assert!(
        n_left > soak::whole_or(n_kills / 4, 0),
        "only {n_left} were killed before they were done"
    );
}
