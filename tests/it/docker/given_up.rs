//! What is given up while the engine makes a sandbox leaves none behind.

use std::time::Duration;
use std::time::Instant;

use nix::sys::signal::Signal;

use super::second::up;
use super::test_box::TestBox;
use super::test_box::alone_with_gc;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// When to send a signal, in hundredths of the time that a whole start takes on this machine: most
/// of them while the sandbox is made.
const MOMENTS: [u32; 12] = [4, 10, 18, 26, 34, 42, 50, 58, 66, 75, 84, 95];

/// Returns how long a whole start takes, once what is made a single time is there.
fn time_of(whole: impl Fn(), end: impl Fn()) -> Duration {
    whole();
    end();
    let begin = Instant::now();
    whole();
    let takes = begin.elapsed();
    end();
    takes
}

#[test]
fn a_signal_while_the_box_is_made_leaves_none() {
    let Some(env) = TestBox::new() else { return };
    let whole = || {
        run(&mut env.here(&["call", "bash", r#"{"command": "true"}"#])).expect(0);
    };
    let takes = time_of(whole, || ());
    for (at, signal) in MOMENTS.into_iter().zip(
        [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]
            .into_iter()
            .cycle(),
    ) {
        let begun = start(&mut env.here(&["call", "bash", r#"{"command": "sleep 5"}"#]));
        std::thread::sleep(takes * at / 100);
        begun.signal(signal);
        begun.wait();
        assert!(
            within(Duration::from_secs(20), || env.containers().is_empty()),
            "{signal} at {at} %: {:?}",
            env.containers()
        );
    }
}

#[test]
fn an_environment_that_was_never_finished_is_removed_by_whoever_comes_next() {
    let Some(env) = TestBox::new() else { return };
    let _turn = alone_with_gc();
    let model = ScriptedModel::new().start_blocking();
    let down = || {
        run(&mut env.here(&["down"])).expect(0);
    };
    let takes = time_of(|| up(&env, &model, &[]), down);
    let mut n_left = 0;
    // The last one comes when something of it can be seen, however long that takes.
    for at in MOMENTS.into_iter().map(Some).chain([None]) {
        let up =
            start(&mut env.here(&["up", "--model", "scripted", "--endpoint", &model.endpoint()]));
        match at {
            Some(at) => std::thread::sleep(takes * at / 100),
            None => assert!(
                within(Duration::from_secs(30), || !env.containers().is_empty()),
                "nothing was made"
            ),
        }
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
            assert_eq!(
                run(&mut env.here(&["call", "bash", r#"{"command":"echo $((40+2))"}"#]))
                    .expect(0)
                    .text(),
                "42\n",
                "at {at:?} %"
            );
            down();
        }
        assert!(is_gone || is_finished, "at {at:?} %: {}", names());
        assert!(
            run(&mut env.here(&["status"])).text().contains("not up"),
            "at {at:?} %"
        );
    }
    assert!(n_left > 0, "none of the signals came while it was made");
    up(&env, &model, &[]);
    run(&mut env.podbay(&["gc"])).expect(0);
    assert_eq!(env.containers().len(), 1, "one that is finished stays");
    down();
    env.assert_no_container();
}
