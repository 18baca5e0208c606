//! What is given up while the engine makes a box leaves none behind.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::second::up;
use super::test_box::TestBox;
use super::test_box::alone_with_gc;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// When to send a signal, in milliseconds after the start: around the time in which the box is made.
const MOMENTS: [u64; 12] = [10, 25, 40, 50, 60, 70, 80, 95, 110, 130, 160, 200];

#[test]
fn a_signal_while_the_box_is_made_leaves_none() {
    let Some(env) = TestBox::new() else { return };
    for (at, signal) in MOMENTS.into_iter().zip([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().cycle()) {
        let begun = start(&mut env.here(&["call", "bash", r#"{"command": "sleep 5"}"#]));
        std::thread::sleep(Duration::from_millis(at));
        begun.signal(signal);
        begun.wait();
        assert!(within(Duration::from_secs(3), || env.containers().is_empty()), "{signal} after {at} ms: {:?}", env.containers());
    }
}

#[test]
fn an_environment_that_was_never_finished_is_removed_by_whoever_comes_next() {
    let Some(env) = TestBox::new() else { return };
    let _turn = alone_with_gc();
    let model = ScriptedModel::new().start_blocking();
    let mut n_left = 0;
    for at in MOMENTS {
        let up = start(&mut env.here(&["up", "--model", "scripted", "--endpoint", &model.endpoint()]));
        std::thread::sleep(Duration::from_millis(at));
        up.signal(Signal::SIGKILL);
        up.wait();
        // What the engine was asked for it makes, whoever asked.
        std::thread::sleep(Duration::from_millis(500));
        n_left += env.containers().len();
        // On a busy machine that takes its time.
        let name = format!("podbay-environment-{}", env.key());
        let label = format!("label=dev.podbay.project={}", env.key());
        let names = || docker(&["ps", "--all", "--filter", &label, "--format", "{{.Names}}"]);
        let (mut is_gone, mut is_finished) = (false, false);
        within(Duration::from_secs(20), || {
            run(&mut env.podbay(&["gc"])).expect(0);
            let names = names();
            is_gone = names.is_empty();
            is_finished = names.trim() == name;
            is_gone || is_finished
        });
        // One that had its name before the signal came is as good as any.
        if is_finished {
            assert_eq!(run(&mut env.here(&["call", "bash", r#"{"command":"echo $((40+2))"}"#])).expect(0).text(), "42\n", "after {at} ms");
            run(&mut env.here(&["down"])).expect(0);
        }
        assert!(is_gone || is_finished, "after {at} ms: {}", names());
        assert!(run(&mut env.here(&["status"])).text().contains("not up"), "after {at} ms");
    }
    assert!(n_left > 0, "none of the signals came while it was made");
    up(&env, &model, &[]);
    run(&mut env.podbay(&["gc"])).expect(0);
    assert_eq!(env.containers().len(), 1, "one that is finished stays");
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}
