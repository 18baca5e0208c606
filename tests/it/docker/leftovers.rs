//! What a killed controller leaves behind is removed by the next one, and nothing else is.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::time::Duration;

use podbay::engine::Owner;

use super::test_box::TestBox;
use super::test_box::alone_with_gc;
use super::test_box::docker;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

/// Makes a container as a controller would have.
fn container(env: &TestBox, verb: &[&str], owner: &str, role: &str) -> String {
    let project = format!("dev.podbay.project={}", env.key());
    let (role, owner) = (
        format!("dev.podbay.role={role}"),
        format!("dev.podbay.owner={owner}"),
    );
    let labels = [
        "--label",
        &project,
        "--label",
        &role,
        "--label",
        &owner,
        "--network",
        "none",
    ];
    let arguments = [
        verb,
        &labels,
        &["--entrypoint", "sleep", "podbay/workspace", "600"],
    ]
    .concat();
    docker(&arguments).trim().to_owned()
}

/// A process that containers belong to; it ends when the test says so.
struct Controller(Child);

impl Controller {
    fn new() -> Self {
        Self(
            Command::new("sleep")
                .arg("600")
                .spawn()
                .expect("the `sleep` command"),
        )
    }

    /// Returns what the label of its containers says.
    fn name(&self) -> String {
        // As this process, but for number and start.
        let own = Owner::current().to_string();
        let place = own.rsplitn(3, ':').last().expect("three parts");
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).expect("it runs");
        let started = stat
            .rsplit_once(')')
            .and_then(|(_, fields)| fields.split_whitespace().nth(19))
            .expect("its start");
        format!("{place}:{}:{started}", self.0.id())
    }

    fn end(mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("our own child");
    }
}

#[test]
fn the_next_start_removes_what_a_killed_one_left() {
    let Some(env) = TestBox::new() else { return };
    let (killed, living) = (Controller::new(), Controller::new());
    container(&env, &["create"], &killed.name(), "workspace");
    container(&env, &["run", "--detach"], &killed.name(), "workspace");
    container(&env, &["create"], &killed.name(), "filler");
    let kept = ["create", "run --detach"].map(|verb| {
        container(
            &env,
            &verb.split(' ').collect::<Vec<_>>(),
            &living.name(),
            "workspace",
        )
    });
    killed.end();
    let other = TestBox::new().expect("as before");
    run(&mut other.here(&["sh", "--", "sleep", "1"])).expect(0);
    let swept = within(Duration::from_secs(20), || {
        env.containers().len() == kept.len()
    });
    assert!(swept, "{:?}", env.containers());
    assert!(
        kept.iter().all(|id| env.containers().contains(id)),
        "those of a living one stay"
    );
    living.end();
}

#[test]
fn gc_removes_leftovers_and_the_guests_of_other_builds() {
    let Some(env) = TestBox::new() else { return };
    let _alone = alone_with_gc();
    let volume = format!("podbay-guest-test-{}", env.key());
    docker(&[
        "volume",
        "create",
        "--label",
        "dev.podbay.role=guest",
        &volume,
    ]);
    let exists = |name: &str| {
        docker(&["volume", "ls", "--quiet"])
            .lines()
            .any(|found| found == name)
    };
    let own = self::volume(&std::fs::read(env!("CARGO_BIN_EXE_podbay")).expect("read"));
    run(&mut env.here(&["sh", "--", "true"])).expect(0);
    assert!(
        exists(&volume) && exists(&own),
        "a start leaves other builds alone"
    );
    let (killed, living) = (Controller::new(), Controller::new());
    container(&env, &["create"], &killed.name(), "workspace");
    let kept = container(&env, &["create"], &living.name(), "workspace");
    killed.end();
    run(&mut env.podbay(&["gc"])).expect(0);
    assert_eq!(env.containers(), [kept]);
    living.end();
    assert!(exists(&volume), "another build may be about to use it");
    run(env.podbay(&["gc"]).env("PODBAY_ENGINE_KEEP_GUEST", "0")).expect(0);
    assert!(!exists(&volume) && exists(&own));
}

#[test]
fn controllers_that_start_at_once_share_one_guest() {
    let Some(env) = TestBox::new() else { return };
    let _alone = alone_with_gc();
    let (program, volume) = another_build(&env);
    let boxes: Vec<TestBox> = (0..3).map(|_| TestBox::new().expect("as before")).collect();
    let begun: Vec<_> = boxes
        .iter()
        .map(|env| {
            let mut command = Command::new(&program);
            env.surround(&mut command);
            start(
                command
                    .args(["sh", "-C"])
                    .arg(env.project())
                    .args(["--", "echo", "here"]),
            )
        })
        .collect();
    for controller in begun {
        assert_eq!(controller.wait().expect(0).text(), "here\n");
    }
    // The engine may still be removing the last sandbox.
    let remove = || {
        Command::new("docker")
            .args(["volume", "rm", &volume])
            .output()
            .is_ok_and(|done| done.status.success())
    };
    assert!(
        within(Duration::from_secs(60), remove),
        "{volume} stays in use"
    );
}

/// Copies the program under another build id; returns the copy and the name of its guest's volume.
pub(super) fn another_build(env: &TestBox) -> (PathBuf, String) {
    let mut program = std::fs::read(env!("CARGO_BIN_EXE_podbay")).expect("read");
    let at = build_id(&program);
    program[at] ^= 0xff;
    let volume = volume(&program);
    let path = env.beside("podbay");
    std::fs::write(&path, program).expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("ours");
    (path, volume)
}

/// Returns the name of the volume that holds a program for its sandboxes.
fn volume(program: &[u8]) -> String {
    let at = build_id(program);
    let id: String = program[at..at + 20]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("podbay-guest-{id}")
}

/// Finds the note that the linker left: the sizes of name and content, its type, its name, and then
/// the id.
fn build_id(program: &[u8]) -> usize {
    const NOTE: &[u8] = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    program
        .windows(NOTE.len())
        .position(|bytes| bytes == NOTE)
        .expect("a build id")
        + NOTE.len()
}
