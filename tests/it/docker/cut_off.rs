//! Whatever changes very many files of a project, killed in its middle: every file is whole.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::review::state;
use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::test_env::Started;
use crate::support::test_env::within;

/// What stands in a project, by its paths.
pub(super) type State = BTreeMap<PathBuf, String>;

/// Fills a project with files of which some are large enough to be caught in the middle.
pub(super) fn fill(env: &TestBox) {
    for n in 0..60 {
        env.write(
            &format!("folder{}/modified{n}", n % 5),
            format!("old {n}\n").repeat(2_000),
        );
        env.write(&format!("gone/{n}"), "gone\n");
    }
}

/// What makes new files, as a command in the sandbox.
pub(super) const MAKE: &str = "mkdir made; for n in $(seq 60); do seq 2000 > made/$n; done";

/// Waits until the killed one's keeper has ended. One that was made and not started yet is swept by
/// the next command.
#[track_caller]
pub(super) fn assert_ended(env: &TestBox) {
    let project = format!("label=dev.podbay.project={}", env.key());
    let has_ended = || docker(&["ps", "--quiet", "--filter", &project]).is_empty();
    assert!(
        within(Duration::from_secs(30), has_ended),
        "a container outlives its controller"
    );
}

/// Kills what brings a project from one of these states to another as soon as it is time for that;
/// returns what is there then, after a check that each file is as in one of them.
#[track_caller]
pub(super) fn cut_off(
    env: &TestBox,
    task: Started,
    states: &[&State],
    wait: impl FnOnce(),
) -> State {
    wait();
    task.signal(Signal::SIGKILL);
    task.wait();
    assert_ended(env);
    let there = state(env);
    for (path, told) in &there {
        let is_ours = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b".podbay-"));
        let is_whole = states.iter().any(|state| state.get(path) == Some(told));
        assert!(
            is_ours || is_whole || env.project().join(path).is_dir(),
            "{} is none of what it was: {told}",
            path.display()
        );
    }
    let in_all = states[0]
        .keys()
        .filter(|path| states.iter().all(|state| state.contains_key(*path)));
    for path in in_all {
        assert!(there.contains_key(path), "{} is gone", path.display());
    }
    there
}
