//! What a power cut left: objects whose controller ran before this machine was booted anew, told by
//! their labels.

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use super::git::git;
use super::git::repository;
use super::leftovers::another_build;
use super::review::held_back;
use super::review::review;
use super::review::volumes;
use super::test_box::TestBox;
use super::test_box::alone_with_gc;
use super::test_box::docker;
use crate::support::test_env::is_root;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// A boot that no machine has had.
const EARLIER: &str = "00000000-0000-4000-8000-000000000000";

/// The three parts of a label's place: boot, pid namespace, machine.
struct Place(String, String, String);

/// Returns a command that runs a program on a machine of the test's own, as far as labels tell: its
/// host has another name. What an earlier boot of the machine left is removed by any test's start,
/// at any time.
fn on_own_machine(env: &TestBox, program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    env.surround(&mut command);
    let host = format!("host-{}", env.key());
    command
        .args([
            "--uts",
            "sh",
            "-c",
            r#"echo "$0" > /proc/sys/kernel/hostname && exec "$@""#,
            &host,
        ])
        .arg(program)
        .args(arguments);
    command
}

/// Returns `podbay gc` on that machine.
pub(super) fn gc(env: &TestBox) -> Command {
    on_own_machine(env, Path::new(env!("CARGO_BIN_EXE_podbay")), &["gc"])
}

/// Returns whether a test can have a machine of its own.
pub(super) fn can_have_machine() -> bool {
    is_root("what an earlier boot left")
}

impl Place {
    /// Reads it off a sandbox of the test's machine.
    fn here(env: &TestBox) -> Self {
        let project = env.project();
        let arguments = [
            "sh",
            "-C",
            project.to_str().expect("is text"),
            "--",
            "sleep",
            "60",
        ];
        let sh = start(&mut on_own_machine(
            env,
            Path::new(env!("CARGO_BIN_EXE_podbay")),
            &arguments,
        ));
        let owner = docker(&[
            "inspect",
            "--format",
            r#"{{index .Config.Labels "dev.podbay.owner"}}"#,
            &env.container(),
        ]);
        sh.signal(nix::sys::signal::Signal::SIGTERM);
        sh.wait().expect(143);
        let parts: Vec<&str> = owner
            .split(':')
            .next()
            .expect("a place")
            .split('/')
            .map(str::trim)
            .collect();
        let [boot, namespace, machine] = parts[..] else {
            panic!("{owner}")
        };
        assert!(boot != EARLIER && !machine.is_empty(), "{owner}");
        Self(boot.to_owned(), namespace.to_owned(), machine.to_owned())
    }
}

/// Makes a container of a role and an owner, and returns its id.
fn container(env: &TestBox, verb: &[&str], role: &str, owner: &str, more: &[&str]) -> String {
    let project = format!("dev.podbay.project={}", env.key());
    let labels = [
        project,
        format!("dev.podbay.role={role}"),
        format!("dev.podbay.owner={owner}"),
    ];
    let labels = labels.iter().flat_map(|label| ["--label", label.as_str()]);
    let arguments = verb
        .iter()
        .copied()
        .chain(labels)
        .chain(["--network", "none"])
        .chain(more.iter().copied());
    let arguments: Vec<&str> = arguments
        .chain(["--entrypoint", "sleep", "podbay/workspace", "600"])
        .collect();
    docker(&arguments).trim().to_owned()
}

/// Makes a volume anew that belongs to somebody who ran then, with all that is in it.
fn take_over(volume: &str, owner: &str) {
    let labels = docker(&[
        "volume",
        "inspect",
        "--format",
        "{{range $key, $value := .Labels}}{{$key}}={{$value}}\n{{end}}",
        volume,
    ]);
    let labels = labels
        .lines()
        .filter(|label| !label.is_empty())
        .map(str::to_owned)
        .chain([format!("dev.podbay.owner={owner}")]);
    let labels: Vec<String> = labels
        .flat_map(|label| ["--label".to_owned(), label])
        .collect();
    let between = format!("{volume}-between");
    let copy = |from: &str, to: &str| {
        let mounts = [format!("{from}:/from"), format!("{to}:/to")];
        let copy = ["-c", "cp -a /from/. /to/"];
        let run = [
            "run",
            "--rm",
            "--network",
            "none",
            "--user",
            "0",
            "--entrypoint",
            "sh",
            "-v",
            &mounts[0],
            "-v",
            &mounts[1],
            "podbay/workspace",
        ];
        docker(&[run.as_slice(), &copy].concat());
    };
    docker(&["volume", "create", &between]);
    copy(volume, &between);
    docker(&["volume", "rm", volume]);
    let create: Vec<&str> = ["volume", "create"]
        .into_iter()
        .chain(labels.iter().map(String::as_str))
        .chain([volume])
        .collect();
    docker(&create);
    copy(&between, volume);
    docker(&["volume", "rm", &between]);
}

#[test]
fn what_waits_to_be_reviewed_outlives_a_reboot_with_its_commits() {
    let Some(env) = repository() else { return };
    if !can_have_machine() {
        return;
    }
    let _alone = alone_with_gc();
    held_back(
        &env,
        "echo new > b.txt; git add b.txt && git commit -q -m second",
        &[],
    );
    let Place(_, namespace, machine) = Place::here(&env);
    let before = format!("{EARLIER}/{namespace}/{machine}:1:1");
    let project = format!("label=dev.podbay.project={}", env.key());
    let all = docker(&["volume", "ls", "--quiet", "--filter", &project]);
    // What is laid over the project is made anew by whoever looks at it.
    let mut n_taken_over = 0;
    for volume in all
        .lines()
        .filter(|name| name.starts_with("podbay-review-") || name.starts_with("podbay-git-"))
    {
        let options = docker(&["volume", "inspect", "--format", "{{json .Options}}", volume]);
        if options.trim() == "null" || options.trim() == "{}" {
            take_over(volume, &before);
            n_taken_over += 1;
        }
    }
    assert!(n_taken_over >= 2, "{all}");
    // Both a command that sweeps and one that starts a sandbox.
    run(&mut gc(&env)).expect(0);
    let place = env.project();
    let arguments = ["sh", "-C", place.to_str().expect("is text"), "--", "true"];
    run(&mut on_own_machine(
        &env,
        Path::new(env!("CARGO_BIN_EXE_podbay")),
        &arguments,
    ))
    .expect(0);
    assert!(review(&env, &["diff"]).expect(0).text().contains("+new"));
    review(&env, &["apply"]).expect(0);
    assert_eq!(
        (
            env.read("b.txt").as_str(),
            git(&env, &["log", "-1", "--format=%s"]).trim()
        ),
        ("new\n", "second")
    );
    assert_eq!(volumes(&env), [""; 0]);
    env.assert_no_container();
}

/// Makes a container that an earlier boot of this machine left, under a name of its own, which is
/// returned.
pub(super) fn leftover(env: &TestBox) -> String {
    let Place(_, namespace, machine) = Place::here(env);
    let name = format!("podbay-test-{}-left", env.key());
    container(
        env,
        &["create"],
        "workspace",
        &format!("{EARLIER}/{namespace}/{machine}:1:1"),
        &["--name", &name],
    );
    name
}

#[test]
fn what_an_earlier_boot_of_this_machine_left_is_removed_and_what_others_have_is_not() {
    let Some(env) = TestBox::new() else { return };
    if !can_have_machine() {
        return;
    }
    let _alone = alone_with_gc();
    let Place(boot, namespace, machine) = Place::here(&env);
    let before = format!("{EARLIER}/{namespace}/{machine}:1:1");
    let name = |suffix: &str| format!("podbay-test-{}{suffix}", env.key());
    let volume = format!("podbay-guest-test-{}", env.key());
    docker(&[
        "volume",
        "create",
        "--label",
        "dev.podbay.role=guest",
        &volume,
    ]);
    let held = format!("{volume}:/fill");
    let gone = [
        container(&env, &["create"], "workspace", &before, &[]),
        container(&env, &["run", "--detach"], "workspace", &before, &[]),
        container(&env, &["create"], "filler", &before, &["--volume", &held]),
        container(
            &env,
            &["run", "--detach"],
            "environment",
            &before,
            &["--name", &name("-next")],
        ),
        container(
            &env,
            &["create"],
            "environment",
            &before,
            &["--name", &name("-old")],
        ),
    ];
    let elsewhere = format!("{EARLIER}/{namespace}/another0machine1:1:1");
    let mut kept = vec![
        container(&env, &["run", "--detach"], "workspace", &elsewhere, &[]),
        container(&env, &["create"], "filler", &elsewhere, &[]),
        // As an older Podbay writes it: whose boot that was nobody can tell.
        container(
            &env,
            &["create"],
            "workspace",
            &format!("{EARLIER}/{namespace}:1:1"),
            &[],
        ),
        // Another pid namespace of this very boot.
        container(
            &env,
            &["create"],
            "workspace",
            &format!("{boot}/1/{machine}:1:1"),
            &[],
        ),
        // Neither belongs to a process.
        container(
            &env,
            &["create"],
            "environment",
            &before,
            &["--name", &name("")],
        ),
        container(&env, &["create"], "model-server", &before, &[]),
    ];
    let done = run(gc(&env).env("PODBAY_ENGINE_KEEP_GUEST", "0")).expect(0);
    let mut found = env.containers();
    found.sort();
    kept.sort();
    assert_eq!(found, kept, "{}", done.text());
    assert!(gone.iter().all(|id| !found.contains(id)));
    let removed = done.text();
    assert!(
        removed.contains(&format!("removed {volume}\n"))
            && removed.contains(&format!("removed {}\n", name("-next"))),
        "{removed}"
    );
}

#[test]
fn a_start_removes_what_an_earlier_boot_left_and_does_not_wait_for_its_filler() {
    let Some(env) = TestBox::new() else { return };
    if !can_have_machine() {
        return;
    }
    let _alone = alone_with_gc();
    let Place(_, namespace, machine) = Place::here(&env);
    let before = format!("{EARLIER}/{namespace}/{machine}:1:1");
    container(&env, &["create"], "workspace", &before, &[]);
    // The machine went down while this build's volume was being filled.
    let (program, volume) = another_build(&env);
    let filler = volume.replace("podbay-guest-", "podbay-filler-");
    docker(&[
        "volume",
        "create",
        "--label",
        "dev.podbay.role=guest",
        &volume,
    ]);
    container(
        &env,
        &["create"],
        "filler",
        &before,
        &["--name", &filler, "--volume", &format!("{volume}:/fill")],
    );
    let project = env.project();
    let arguments = [
        "sh",
        "-C",
        project.to_str().expect("is text"),
        "--",
        "echo",
        "here",
    ];
    let begun = Instant::now();
    let done = run(&mut on_own_machine(&env, &program, &arguments)).expect(0);
    assert_eq!(done.text(), "here\n");
    assert!(
        begun.elapsed() < Duration::from_mins(1),
        "{:?}",
        begun.elapsed()
    );
    assert!(
        within(Duration::from_secs(20), || env.containers().is_empty()),
        "{:?}",
        env.containers()
    );
    docker(&["volume", "rm", &volume]);
}
