//! The controller is killed again and again, at any moment, with a sandbox of its own and beside that
//! of `podbay up`.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use podbay_soak as soak;
use serde_json::json;

use super::test_box::TestBox;
use super::test_box::alone_with_gc;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::scripted_model::Running;
use crate::support::test_env::Done;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// How long an environment stays without a controller.
const LEASE: &str = "2s";

/// Kills a controller after a while, and waits for its end.
fn kill_after(moment: Duration, command: &mut Command) -> Done {
    let controller = start(command);
    std::thread::sleep(moment);
    // It may be done by now; its number stays its own until it is waited for.
    let _ = nix::sys::signal::kill(Pid::from_raw(controller.pid() as i32), Signal::SIGKILL);
    controller.wait()
}

/// Returns the names of all volumes or networks of the engine, but for what says itself whose it is
/// (compose's, and the guests of builds) and what is there to stay: the snapshots of projects.
fn there(kind: &str) -> BTreeSet<String> {
    let listed = docker(&[kind, "ls", "--format", "{{.Name}} {{.Labels}}"]);
    let others = listed.lines().filter(|line| {
        !line.contains("com.docker.compose.project=")
            && !["podbay-guest-", "podbay-keep-"]
                .iter()
                .any(|own| line.starts_with(own))
    });
    others
        .filter_map(|line| line.split(' ').next().map(str::to_owned))
        .collect()
}

/// Returns what belongs to these projects, running or not.
fn containers(envs: &[&TestBox]) -> Vec<String> {
    envs.iter().flat_map(|env| env.containers()).collect()
}

/// What a killed run does until then: each line of it once.
fn model_of(run: u32) -> Running {
    let line = |n: u32| json!({"command": format!("echo {run}.{n} >> effects; sleep 0.1")});
    (0..6)
        .fold(ScriptedModel::new(), |model, n| {
            model.calls("bash", line(n))
        })
        .says("Done.")
        .start_blocking()
}

#[test]
#[expect(
    clippy::print_stderr,
    reason = "the test harness keeps it until the test fails, and then the moments are needed"
)]
fn a_controller_killed_at_any_moment_leaves_nothing_behind() {
    let Some(own) = TestBox::new() else { return };
    let Some(shared) = TestBox::new() else { return };
    let before = ["volume", "network"].map(there);
    let mut random = soak::Random::seeded();
    let n_rounds = soak::n_kills(6);
    let begun = Instant::now();
    // One that nobody kills says how long they take on this machine.
    let model = model_of(n_rounds);
    run(own
        .task(&model, &["work"])
        .env("PODBAY_SANDBOX_LEASE", LEASE))
    .expect(0);
    let moments = begun.elapsed().as_millis() as u64 * 3 / 4;
    let mut n_killed = 0;
    for number in 0..n_rounds {
        let model = model_of(number);
        let env = if number % 2 == 0 { &own } else { &shared };
        if number % 2 == 1 {
            let mut making = shared.here(&["up", "--model", "scripted", "--endpoint"]);
            making
                .arg(model.endpoint())
                .env("PODBAY_SANDBOX_LEASE", LEASE);
            // Who makes it can be killed as well; the next one makes that good.
            if number % 8 == 1 {
                kill_after(Duration::from_millis(random.below(500)), &mut making);
            }
            run(&mut making).expect(0);
        }
        let moment = Duration::from_millis(random.below(moments));
        let mut task = env.task(&model, &["work"]);
        let done = kill_after(moment, task.env("PODBAY_SANDBOX_LEASE", LEASE));
        let code = done.code;
        eprintln!("{number}: killed after {moment:?}, code {code}");
        assert!(
            code == 128 + 9 || code == 0,
            "{number}: {code}: {}\n{}",
            done.text(),
            done.stderr
        );
        n_killed += u32::from(code != 0);
        // What runs ends by itself, but for what others share. What was made and not started yet is
        // for the next start.
        let ended = within(Duration::from_secs(30), || {
            let filter = format!("label=dev.podbay.project={}", own.key());
            docker(&["ps", "--quiet", "--filter", &filter])
                .trim()
                .is_empty()
        });
        assert!(ended, "{number}: {:?}", own.containers());
    }
    // Past the test's own capture: it is a count that somebody wants to read.
    drop(writeln!(
        std::io::stderr(),
        "{n_killed} of {n_rounds} runs were killed before they were done, in {} s",
        begun.elapsed().as_secs()
    ));
    assert!(
        n_killed > soak::whole_or(n_rounds / 3, 0),
        "only {n_killed} of {n_rounds} were killed before they were done"
    );
    // The environment ends with its lease, though nobody looks.
    let running = || {
        docker(&[
            "ps",
            "--quiet",
            "--filter",
            &format!("label=dev.podbay.project={}", shared.key()),
        ])
    };
    assert!(
        within(Duration::from_secs(20), || running().trim().is_empty()),
        "{}",
        running()
    );
    // The projects are free, what was begun is done once at the most, every log can be read.
    for env in [&own, &shared] {
        run(&mut env.here(&["sh", "--", "true"])).expect(0);
        // What a killed session may have left for git the next one takes over.
        run(&mut env.task(
            &ScriptedModel::new().says("Done.").start_blocking(),
            &["end"],
        ))
        .expect(0);
    }
    {
        let _alone = alone_with_gc();
        run(&mut own.podbay(&["gc"])).expect(0);
    }
    let swept = within(Duration::from_secs(30), || {
        containers(&[&own, &shared]).is_empty()
    });
    assert!(swept, "{:?}", containers(&[&own, &shared]));
    // Those of other tests go with them.
    for (kind, before) in ["volume", "network"].into_iter().zip(before) {
        let more = || there(kind).difference(&before).cloned().collect::<Vec<_>>();
        assert!(
            within(Duration::from_mins(1), || more().is_empty()),
            "{kind}: {:?}",
            more()
        );
    }
    let mut n_effects = 0;
    for env in [&own, &shared] {
        let effects = std::fs::read_to_string(env.path("effects")).unwrap_or_default();
        let mut seen = BTreeMap::new();
        for line in effects.lines() {
            *seen.entry(line).or_insert(0) += 1;
        }
        n_effects += seen.len();
        assert!(seen.values().all(|&count| count == 1), "{seen:?}");
        let listed = run(&mut env.podbay(&["sessions", "list", "--json", "-n", "1000"]))
            .expect(0)
            .text();
        assert!(
            listed.matches("{\"session\":").count() as u32 >= n_killed / 6,
            "{listed}"
        );
        run(&mut env.podbay(&["sessions", "show"])).expect(0);
    }
    // Six are of the run that nobody killed. Of a few that are killed none may have begun a
    // command.
    assert!(
        n_effects > soak::whole_or(6, 5),
        "only {n_effects} commands of those that were killed had begun"
    );
}
