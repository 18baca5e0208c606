//! Containers that the engine does not end or remove: what is said of them, and how long anybody
//! waits.

use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use nix::sys::signal::Signal;
use serde_json::json;

use super::reboot::can_have_machine;
use super::reboot::gc;
use super::reboot::leftover;
use super::second::up;
use super::test_box::TestBox;
use super::test_box::alone_with_gc;
use super::test_box::docker;
use crate::support::EngineProxy;
use crate::support::ScriptedModel;
use crate::support::engine_proxy::Fate;
use crate::support::test_env::Done;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// An engine that removes no container whose id or name holds one of these, and what it says to
/// that.
fn proxy(env: &TestBox, name: &str, ids: Vec<String>, fate: Fate) -> EngineProxy {
    EngineProxy::judging(env.beside(name), move |request| {
        let is_meant = request.method == "DELETE" && request.path.starts_with("/containers/");
        if is_meant && (ids.is_empty() || ids.iter().any(|id| request.path.contains(id.as_str()))) {
            fate
        } else {
            Fate::Pass
        }
    })
}

/// Ends a command with SIGTERM once it has asked the engine to remove something, or at once where
/// it `runs`, and sees that it does not wait long.
#[track_caller]
fn terminated(mut command: Command, proxy: &EngineProxy, runs: Option<&dyn Fn()>) -> Done {
    let begun = start(
        command
            .env("DOCKER_HOST", proxy.address())
            .env("PODBAY_ENGINE_TIMEOUT_S", "600"),
    );
    match runs {
        Some(runs) => runs(),
        None => assert!(within(Duration::from_secs(30), || proxy
            .seen()
            .iter()
            .any(|request| request.method == "DELETE"))),
    }
    let since = Instant::now();
    begun.signal(Signal::SIGTERM);
    let done = begun.wait().expect(143);
    assert!(
        since.elapsed() < Duration::from_mins(5),
        "{:?}: {}",
        since.elapsed(),
        done.stderr
    );
    done
}

#[test]
fn gc_says_what_the_engine_does_not_remove_also_where_that_says_it_has() {
    let Some(env) = TestBox::new() else { return };
    if !can_have_machine() {
        return;
    }
    let _alone = alone_with_gc();
    let name = leftover(&env);
    let id = env.boxes().remove(0);
    for (at, (fate, words)) in [
        (Fate::Fail, "the disk is on fire"),
        (Fate::Say("{}"), "it still exists"),
    ]
    .into_iter()
    .enumerate()
    {
        let proxy = proxy(&env, &format!("engine-{at}"), vec![id.clone()], fate);
        let done = run(gc(&env).env("DOCKER_HOST", proxy.address())).expect(1);
        done.says(&[
            &format!("could not remove {name}"),
            words,
            &format!("docker rm --force {name}"),
        ]);
        assert_eq!(env.boxes(), std::slice::from_ref(&id));
    }
    let done = run(&mut gc(&env)).expect(0);
    assert!(
        done.text().contains(&format!("removed {name}\n")),
        "{}",
        done.text()
    );
    env.assert_no_container();
}

#[test]
fn gc_shows_nothing_of_the_engines_words_that_a_terminal_would_obey() {
    let Some(env) = TestBox::new() else { return };
    if !can_have_machine() {
        return;
    }
    let _alone = alone_with_gc();
    let name = leftover(&env);
    let words = r#"{"message":"no \u001b]0;evil\u0007\u001b[2Jway \u202eback\nand on"}"#;
    let proxy = proxy(&env, "engine", env.boxes(), Fate::Refuse(words));
    let done = run(gc(&env).env("DOCKER_HOST", proxy.address())).expect(1);
    assert!(
        !done.stderr.contains(['\x1b', '\x07', '\u{202e}']) && !done.stderr.contains("\nand on"),
        "{:?}",
        done.stderr
    );
    done.says(&[&format!("could not remove {name}"), "no ", "way "]);
    docker(&["rm", "--force", &name]);
    env.assert_no_container();
}

#[test]
fn down_says_what_the_engine_does_not_remove_also_where_that_says_it_has() {
    let Some(env) = TestBox::new() else { return };
    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &[]);
    let name = format!("podbay-environment-{}", env.key());
    for (at, (fate, words)) in [
        (Fate::Fail, "the disk is on fire"),
        (Fate::Say("{}"), "it still exists"),
    ]
    .into_iter()
    .enumerate()
    {
        let proxy = proxy(&env, &format!("engine-{at}"), Vec::new(), fate);
        let done = run(env.here(&["down"]).env("DOCKER_HOST", proxy.address())).expect(5);
        assert!(!done.text().contains("ended"), "{}", done.text());
        done.says(&[
            &format!("the container `{name}` cannot be ended"),
            words,
            &format!("docker rm --force {name}"),
        ]);
        assert_eq!(env.boxes().len(), 1);
    }
    assert_eq!(
        run(&mut env.here(&["down"])).expect(0).text(),
        "ended: environment\n"
    );
    env.assert_no_container();
}

#[test]
fn sigterm_does_not_wait_long_for_an_engine_that_hangs_while_it_removes_and_what_is_left_is_said() {
    let Some(env) = TestBox::new() else { return };
    // The first run of a project makes its volume for snapshots, and removes what it was filled
    // through.
    run(&mut env.task(
        &ScriptedModel::new().says("Done.").start_blocking(),
        &["begin"],
    ))
    .expect(0);
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "touch begun; sleep 60"}))
        .start_blocking();
    let hangs = proxy(&env, "run", Vec::new(), Fate::Hang);
    let id = std::cell::RefCell::new(String::new());
    let runs = || {
        env.wait_for("begun");
        *id.borrow_mut() = env.container();
    };
    let done = terminated(env.task(&model, &["wait"]), &hangs, Some(&runs));
    assert_eq!(done.json()["status"], "interrupted");
    let short = id.borrow()[..12].to_owned();
    done.says(&[
        &format!("the sandbox {short} could not be removed"),
        &format!("docker rm --force {short}"),
    ]);
    // Its guest saw the end of the line.
    env.assert_no_container();

    std::fs::remove_file(env.path("begun")).expect("there");
    let hangs = proxy(&env, "sh", Vec::new(), Fate::Hang);
    let done = terminated(
        env.here(&["sh", "--", "sh", "-c", "touch begun; sleep 60"]),
        &hangs,
        Some(&runs),
    );
    done.says(&["could not be removed", "docker rm --force"]);
    env.assert_no_container();
}

#[test]
fn sigterm_ends_gc_and_down_while_the_engine_hangs_and_they_say_what_is_left() {
    let Some(env) = TestBox::new() else { return };
    if !can_have_machine() {
        return;
    }
    let _alone = alone_with_gc();
    let name = leftover(&env);
    let hangs = proxy(&env, "gc", env.boxes(), Fate::Hang);
    let done = terminated(gc(&env), &hangs, None);
    done.says(&["interrupted", &format!("left: {name}"), "docker rm --force"]);
    docker(&["rm", "--force", &name]);

    let model = ScriptedModel::new().start_blocking();
    up(&env, &model, &[]);
    let name = format!("podbay-environment-{}", env.key());
    let hangs = proxy(&env, "down", Vec::new(), Fate::Hang);
    let done = terminated(env.here(&["down"]), &hangs, None);
    done.says(&[
        "interrupted",
        &format!("the container `{name}` cannot be ended"),
        &format!("docker rm --force {name}"),
    ]);
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

#[test]
fn what_is_given_up_while_the_engine_makes_it_and_cannot_be_removed_is_said() {
    let Some(env) = TestBox::new() else { return };
    // The image is known, so that the only container that is made is the sandbox.
    let hangs = EngineProxy::judging(env.beside("create"), |request| {
        let is_made = request.method == "POST" && request.path.starts_with("/containers/create");
        if is_made || request.method == "DELETE" {
            Fate::Hang
        } else {
            Fate::Pass
        }
    });
    let is_asked = || {
        let asked = || {
            hangs
                .seen()
                .iter()
                .any(|request| request.path.starts_with("/containers/create"))
        };
        assert!(within(Duration::from_secs(30), asked), "{:?}", hangs.seen());
    };
    let done = terminated(
        env.here(&["call", "list_directory", "{}"]),
        &hangs,
        Some(&is_asked),
    );
    done.says(&[
        "the container podbay-workspace-",
        " was not removed:",
        "docker rm --force podbay-workspace-",
    ]);
    env.assert_no_container();
}
