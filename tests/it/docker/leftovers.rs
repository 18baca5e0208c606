//! What a killed controller leaves behind is removed by the next one, and nothing else is.

use std::time::Duration;

use podbay::engine::Owner;

use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::test_env::run;
use crate::support::test_env::within;

/// Makes a container as a controller would have.
fn container(env: &TestBox, verb: &[&str], owner: &str, role: &str) -> String {
    let project = format!("dev.podbay.project={}", env.key());
    let (role, owner) = (format!("dev.podbay.role={role}"), format!("dev.podbay.owner={owner}"));
    let labels = ["--label", &project, "--label", &role, "--label", &owner, "--network", "none"];
    let arguments = [verb, &labels, &["--entrypoint", "sleep", "podbay/workspace", "600"]].concat();
    docker(&arguments).trim().to_owned()
}

/// Names a process that has ended: this one's number at another start.
fn dead() -> String {
    let owner = Owner::current().to_string();
    let (rest, started) = owner.rsplit_once(':').expect("three parts");
    format!("{rest}:{}", started.parse::<u64>().expect("ticks") + 1)
}

fn living() -> String {
    Owner::current().to_string()
}

#[test]
fn the_next_start_removes_what_a_killed_one_left() {
    let Some(env) = TestBox::new() else { return };
    container(&env, &["create"], &dead(), "workspace");
    container(&env, &["run", "--detach"], &dead(), "workspace");
    container(&env, &["create"], &dead(), "filler");
    let kept = [container(&env, &["create"], &living(), "workspace"), container(&env, &["run", "--detach"], &living(), "workspace")];
    let other = TestBox::new().expect("as before");
    run(&mut other.here(&["sh", "--", "sleep", "1"])).expect(0);
    let swept = within(Duration::from_secs(20), || env.containers().len() == kept.len());
    assert!(swept, "{:?}", env.containers());
    assert!(kept.iter().all(|id| env.containers().contains(id)), "those of a living one stay");
}

#[test]
fn gc_removes_leftovers_and_the_guests_of_other_builds() {
    let Some(env) = TestBox::new() else { return };
    let volume = format!("podbay-guest-test-{}", env.key());
    docker(&["volume", "create", "--label", "dev.podbay.role=guest", &volume]);
    let exists = |name: &str| docker(&["volume", "ls", "--quiet"]).lines().any(|found| found == name);
    let own = podbay::sandbox::guest_volume_name();
    run(&mut env.here(&["sh", "--", "true"])).expect(0);
    assert!(exists(&volume) && exists(&own), "a start leaves other builds alone");
    container(&env, &["create"], &dead(), "workspace");
    let living = container(&env, &["create"], &living(), "workspace");
    run(&mut env.podbay(&["gc"])).expect(0);
    assert_eq!(env.containers(), [living]);
    assert!(!exists(&volume) && exists(&own));
}
