//! Commands that take all the memory or time they can get, or print without end: each ends in a
//! result that says what it ran into, and the next call in the same sandbox works.

use podbay_soak as soak;
use serde_json::json;

use super::greedy::greedy;
use super::greedy::greedy_for;
use super::greedy::greedy_that_may_take_all;
use super::greedy::has;
use super::test_box::TestBox;
use crate::support::test_env::run;

#[test]
fn r_02_a_memory_hog_is_named_with_what_it_had() {
    let Some(env) = TestBox::new() else { return };
    // Not all at once: who it is must be seen before it is over, on a busy machine too.
    let hog = "python3 -c 'import time; x = []\nwhile True: x.append(bytearray(2 << 20)); time.sleep(0.02)'";
    let text = greedy(&env, &["--memory", "256m"], &[], hog);
    has(
        &text,
        &[
            "killed: out of memory, the limit of `sandbox.memory` is 256.0 MiB",
            "`python3`, ",
            " MiB",
        ],
    );
}

#[test]
fn r_02_who_sleeps_beside_a_file_in_memory_that_took_it_all_is_not_named() {
    let Some(env) = TestBox::new() else { return };
    let hog = "import os, time
f = os.memfd_create('hidden')
while True:
    os.write(f, bytes(2 << 20)); time.sleep(0.02)
";
    env.write("hog.py", hog);
    let sleeper = "python3 -c 'import time; x = bytearray(12 << 20); time.sleep(600)' &";
    let command =
        format!("ln -sf \"$(command -v python3)\" hog; {sleeper} sleep 1; exec ./hog hog.py");
    // Such a file may outlive the process that filled it by a moment, in which the kernel takes
    // whoever is left, the guest at last.
    let text = greedy_that_may_take_all(&env, &["--memory", "256m"], &command);
    has(
        &text,
        &["killed: out of memory, the limit of `sandbox.memory` is 256.0 MiB"],
    );
    assert!(!text.contains("seen with `python3`"), "{text}");
    has(&text, &["most of it was seen with `hog`, "]);
}

#[test]
fn r_03_many_small_hogs_are_named_together() {
    let Some(env) = TestBox::new() else { return };
    let hogs = "for n in $(seq 40); do python3 -c 'import time; x = bytearray(12 << 20); time.sleep(4)' & done; wait; exit 3";
    let text = greedy(&env, &["--memory", "256m"], &[], hogs);
    has(
        &text,
        &[
            "out of memory, the limit of `sandbox.memory` is 256.0 MiB",
            "`python3`, ",
            " processes",
        ],
    );
}

#[test]
fn r_05_endless_output_and_an_endless_line_are_cut() {
    let Some(env) = TestBox::new() else { return };
    let text = greedy(&env, &[], &[], "yes & sleep 3; kill %1");
    assert!(
        text.starts_with("y\ny\n") && text.len() < 100_000,
        "{} bytes",
        text.len()
    );
    // Nobody ends this one but its time.
    let text = greedy_for(3, &env, &[], &[], "exec yes");
    assert!(
        text.starts_with("y\ny\n") && text.len() < 100_000,
        "{} bytes",
        text.len()
    );
    has(&text, &["longer than the limit of 3 s"]);
    let n_bytes = soak::whole_or(1_000_000_000, 50_000_000);
    let line = greedy_for(
        100,
        &env,
        &[],
        &[],
        &format!("head -c {n_bytes} /dev/zero | tr '\\0' x; echo; echo end"),
    );
    has(&line, &["xxxxxxxx", "end"]);
    assert!(line.len() < 100_000, "{} bytes", line.len());
}

#[test]
fn r_06_what_runs_too_long_is_named_by_what_still_ran() {
    let Some(env) = TestBox::new() else { return };
    let arguments = r#"{"command":"while :; do echo .; sleep 0.1; done & sleep 33.5 & sleep 33.5","timeout_seconds":1}"#;
    let text = run(&mut env.here(&["call", "bash", arguments]))
        .expect(1)
        .text();
    has(
        &text,
        &["longer than the limit of 1 s; what took the most memory of what still ran: `"],
    );
    env.assert_no_container();
}

#[test]
fn r_03_hogs_that_were_killed_are_told_beside_the_limit_that_ended_the_command() {
    let Some(env) = TestBox::new() else { return };
    let hogs = "for n in $(seq 40); do python3 -c 'import time; x = bytearray(16 << 20); time.sleep(60)' & done; sleep 60";
    let arguments = json!({"command": hogs, "timeout_seconds": 6}).to_string();
    let text = run(&mut env.here(&["call", "--memory", "256m", "bash", &arguments]))
        .expect(1)
        .text();
    has(
        &text,
        &[
            "longer than the limit of 6 s",
            "`python3`",
            " processes in the sandbox were killed meanwhile: out of memory, the limit of `sandbox.memory` is 256.0 MiB",
        ],
    );
    assert!(!text.contains("podbay-spawner"), "{text}");
}
