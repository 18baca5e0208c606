//! Calls in a sandbox that several controllers share, under the engine's profile too.

use std::time::Duration;

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
    run(&mut env.here(&["sh", "--", "sh", "-c", script])).expect(0).text()
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
    let reach = |argument: &[&str]| run(&mut env.here(&[&["sh", "--", "python3", "-c", REACH][..], argument].concat())).expect(0).text();
    let (other, own) = if has_domains() { (String::new(), format!("{ALL}traced\n")) } else { (ALL.to_owned(), ALL.to_owned()) };
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
    let done = run(&mut env.here(&["sh", "--", "sh", "-c", "gcc -g -fsanitize=leak leak.c -o /tmp/leak && /tmp/leak"])).expect(23);
    assert!(done.stderr.contains("7 byte(s) leaked in 1 allocation(s)"), "{}", done.stderr);
    assert_eq!(run(&mut env.here(&["sh", "--", "python3", "-c", DEBUG])).expect(0).text(), DEBUGGED);
    env.assert_no_container();
}
