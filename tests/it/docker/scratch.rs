//! Temporary files and the home folder are on disk, can hold programs, and leave nothing behind.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::mounts::Image;
use super::second::up;
use super::test_box::TestBox;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

#[track_caller]
fn sh(env: &TestBox, flags: &[&str], script: &str) -> String {
    let arguments = [&["sh"][..], flags, &["--", "sh", "-c", script]].concat();
    run(&mut env.here(&arguments)).expect(0).text()
}

/// More than `/tmp` and the home folder could hold in memory with these limits.
#[test]
fn temporary_files_do_not_take_the_memory_of_a_sandbox() {
    let Some(env) = TestBox::new() else { return };
    let script = "for place in /tmp /var/tmp ~; do \
                  head -c 100M /dev/zero > $place/large && cp /bin/true $place/ran && $place/ran && echo \"$(stat -f -c %T $place)\"; done";
    let text = sh(&env, &["--memory", "128m"], script);
    let kinds: Vec<&str> = text.lines().collect();
    assert!(
        kinds.len() == 3 && kinds.iter().all(|kind| *kind != "tmpfs"),
        "{text}"
    );
    env.assert_no_container();
}

#[test]
fn scratch_volumes_go_with_their_sandbox_also_after_kill() {
    let Some(env) = TestBox::new() else { return };
    let command = [
        "sh",
        "--",
        "sh",
        "-c",
        "touch /tmp/x ~/x; touch begun; sleep 1000",
    ];
    let killed = start(&mut env.here(&command));
    env.wait_for("begun");
    assert_eq!(env.scratch().len(), 2, "`/tmp` and the home folder");
    killed.signal(Signal::SIGKILL);
    killed.wait();
    env.assert_no_container();

    // That of `podbay up` keeps them from one command to the next.
    up(&env, &ScriptedModel::new().start_blocking(), &[]);
    sh(&env, &[], "echo kept > /tmp/file");
    assert_eq!(sh(&env, &[], "cat /tmp/file"), "kept\n");
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

/// An engine that loses a container does not remove what belonged to it.
#[test]
fn a_volume_without_its_sandbox_is_swept() {
    let Some(env) = TestBox::new() else { return };
    let command = ["sh", "--", "sh", "-c", "touch begun; sleep 1000"];
    let killed = start(&mut env.here(&command));
    env.wait_for("begun");
    let volume = env.scratch().remove(0);
    let labels = docker(&["volume", "inspect", "--format", "{{json .Labels}}", &volume]);
    let labels: std::collections::BTreeMap<String, String> =
        serde_json::from_str(&labels).expect("labels");
    killed.signal(Signal::SIGKILL);
    killed.wait();
    env.assert_no_container();
    let mut arguments = vec!["volume".to_owned(), "create".to_owned()];
    for (name, value) in labels {
        arguments.extend(["--label".to_owned(), format!("{name}={value}")]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    docker(&arguments);
    sh(&env, &[], "true");
    // Every start sweeps, aside.
    assert!(
        within(Duration::from_secs(20), || {
            sh(&env, &[], "true");
            env.scratch().is_empty()
        }),
        "{:?}",
        env.scratch()
    );
}

/// An image without a folder for temporary files still gets one.
#[test]
fn an_image_whose_tmp_is_not_for_all_gets_one_in_memory() {
    let Some(env) = TestBox::new() else { return };
    let image = Image::new(&env, "RUN chmod 755 /tmp");
    let arguments = [
        "sh",
        "--image",
        &image.0,
        "--",
        "sh",
        "-c",
        "touch ~/x && stat -f -c %T /tmp ~",
    ];
    let done = run(&mut env.here(&arguments)).expect(0);
    assert_eq!(done.text(), "tmpfs\ntmpfs\n");
    assert!(
        done.stderr
            .contains("the image has no /tmp that every user may write to"),
        "{}",
        done.stderr
    );
}
