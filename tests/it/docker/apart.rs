//! Calls in a sandbox that several controllers share, under the engine's profile too; and what each
//! controller finds in its home folder.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::git::git;
use super::second::up;
use super::test_box::TestBox;
use crate::apart::ALL;
use crate::apart::DEBUG;
use crate::apart::DEBUGGED;
use crate::apart::REACH;
use crate::support::ScriptedModel;
use crate::support::guest::marker;
use crate::support::probe::has_domains;
use crate::support::test_env::is_root;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

fn sh(env: &TestBox, script: &str) -> String {
    run(&mut env.here(&["sh", "--", "sh", "-c", script]))
        .expect(0)
        .text()
}

fn are_apart(env: &TestBox) {
    up(env, &ScriptedModel::new().start_blocking(), &[]);
    let time = marker();
    let waits = start(&mut env.here(&["sh", "--", "sleep", &time]));
    let mut pid = String::new();
    assert!(within(Duration::from_secs(20), || {
        pid = sh(env, &format!("pgrep -xf 'sleep {time}' || true"));
        !pid.is_empty()
    }));
    let pid = pid.trim();
    let reach = |argument: &[&str]| {
        run(&mut env.here(&[&["sh", "--", "python3", "-c", REACH][..], argument].concat()))
            .expect(0)
            .text()
    };
    let (other, own) = if has_domains() {
        (String::new(), format!("{ALL}traced\n"))
    } else {
        (ALL.to_owned(), ALL.to_owned())
    };
    assert_eq!((reach(&[pid]), reach(&[])), (other, own));
    sh(env, &format!("kill {pid}"));
    waits.wait().expect(143);
    run(&mut env.here(&["down"])).expect(0);
    env.assert_no_container();
}

#[test]
fn calls_of_several_controllers_are_apart_and_can_end_each_other_also_as_root() {
    let Some(env) = TestBox::new() else { return };
    are_apart(&env);
    if is_root("a project of root's") {
        std::os::unix::fs::chown(env.project(), Some(0), Some(0)).expect("root");
        are_apart(&env);
    }
}

#[test]
fn a_leak_is_reported_and_a_program_debugged_in_a_sandbox() {
    let Some(env) = TestBox::new() else { return };
    if !has_domains() {
        return;
    }
    env.write("leak.c", "#include <stdlib.h>\nint main(void) { volatile char *lost = malloc(7); lost = 0; return lost != 0; }\n");
    let done = run(&mut env.here(&[
        "sh",
        "--",
        "sh",
        "-c",
        "gcc -g -fsanitize=leak leak.c -o /tmp/leak && /tmp/leak",
    ]))
    .expect(23);
    assert!(
        done.stderr.contains("7 byte(s) leaked in 1 allocation(s)"),
        "{}",
        done.stderr
    );
    assert_eq!(
        run(&mut env.here(&["sh", "--", "python3", "-c", DEBUG]))
            .expect(0)
            .text(),
        DEBUGGED
    );
    env.assert_no_container();
}

#[test]
fn esc_21_what_one_run_leaves_in_its_home_folder_is_not_obeyed_by_the_next() {
    const LURE: &str = "git config --global core.fsmonitor 'touch /workspace/ran; false' && cp ~/.gitconfig ~/../.gitconfig && \
                        git status > /dev/null 2>&1; echo $HOME";
    let Some(env) = TestBox::new() else { return };
    git(&env, &["init", "-q", "-b", "main"]);
    env.write("a.txt", "one\n");
    up(&env, &ScriptedModel::new().start_blocking(), &[]);
    let first = sh(&env, LURE);
    assert!(
        env.path("ran").exists(),
        "it is obeyed by whoever has that home folder"
    );
    std::fs::remove_file(env.path("ran")).expect("there");
    // It goes when its controller's guest has ended, which nobody waits for.
    let is_alone = || sh(&env, "ls ~/..").lines().count() == 1;
    assert!(
        within(Duration::from_secs(20), is_alone),
        "{}",
        sh(&env, "ls -R ~/..")
    );

    let second = sh(
        &env,
        "git status > /dev/null && git diff > /dev/null; ls -A ~; echo x > ~/kept && cat ~/kept; ls ~/..; echo $HOME",
    );
    assert!(!env.path("ran").exists());
    let lines: Vec<&str> = second.lines().collect();
    let name = lines
        .last()
        .and_then(|home| home.strip_prefix("/home/agent/"))
        .expect("below the sandbox's own");
    // Its own home folder is empty and can be written, and that of the first is gone.
    assert_eq!(lines, ["x", name, &format!("/home/agent/{name}")]);
    assert_ne!(lines.last(), first.lines().last().as_ref());

    // One that is killed leaves its folder, for the next to remove.
    let killed = start(&mut env.here(&[
        "sh",
        "--",
        "sh",
        "-c",
        "touch ~/left; touch begun; sleep 1000",
    ]));
    env.wait_for("begun");
    killed.signal(Signal::SIGKILL);
    killed.wait();
    assert!(
        within(Duration::from_secs(20), is_alone),
        "{}",
        sh(&env, "ls -R ~/..")
    );
    run(&mut env.here(&["down"])).expect(0);

    // In a sandbox that nobody shares it is the sandbox's own.
    assert_eq!(sh(&env, "echo $HOME; ls -A ~"), "/home/agent\n");
    env.assert_no_container();
}
