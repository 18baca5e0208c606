//! Loops that only keep processors busy: the quota holds, and the machine continues.

use std::process::Command;
use std::time::Duration;
use std::time::Instant;

use nix::sys::signal::Signal;
use serde_json::json;

use super::test_box::TestBox;
use crate::support::test_env::Done;
use crate::support::test_env::run;
use crate::support::test_env::start;

/// Keeps four processes busy for three seconds and prints: processor time that the sandbox took
/// meanwhile, time that went by, both in microseconds, and how often the kernel made the sandbox wait.
const BUSY: &str = r"
used() {
    if [ -e /sys/fs/cgroup/cpuacct/cpuacct.usage ]; then echo $(($(cat /sys/fs/cgroup/cpuacct/cpuacct.usage) / 1000))
    else sed -n 's/^usage_usec //p' /sys/fs/cgroup/cpu.stat; fi
}
waits() { cat /sys/fs/cgroup/cpu/cpu.stat /sys/fs/cgroup/cpu.stat 2>/dev/null | sed -n 's/^nr_throttled //p'; }
from=$(used); waited=$(waits); begun=$(date +%s%N)
for n in 1 2 3 4; do timeout 3 sh -c 'while :; do :; done' & done
wait
echo $(($(used) - from)) $((($(date +%s%N) - begun) / 1000)) $(($(waits) - waited))
";

/// Reads what the script prints: the part of one processor that was used, and how often the sandbox had
/// to wait.
#[track_caller]
fn read(done: Done) -> (f64, u64) {
    let text = done.expect(0).text();
    let numbers: Vec<u64> = text
        .split_whitespace()
        .map(|number| number.parse().expect("a number"))
        .collect();
    let [used, wall, waited] = numbers[..] else {
        panic!("{text}")
    };
    (used as f64 / wall as f64, waited)
}

#[test]
fn r_04_busy_loops_get_their_quota_and_no_more() {
    let Some(env) = TestBox::new() else { return };
    let busy = |cpus: &str| {
        read(run(
            &mut env.here(&["sh", "--cpus", cpus, "--", "sh", "-c", BUSY])
        ))
    };
    let (part, waited) = busy("0.1");
    assert!(
        part < 0.15 && waited >= 10,
        "{part} of a processor, made to wait {waited} times"
    );
    // The control: it is the quota that holds them.
    let (part, _) = busy("2");
    assert!(part > 0.15, "{part} of a processor without it");
    env.assert_no_container();
}

#[test]
fn r_04_the_machine_goes_on_beside_busy_loops() {
    let Some(env) = TestBox::new() else { return };
    // As many processors as there are, which is the most that can be asked for.
    let script = "touch begun; for n in 1 2 3 4 5 6 7 8; do timeout 60 sh -c 'while :; do :; done' & done; wait";
    let arguments = json!({"command": script, "timeout_seconds": 90}).to_string();
    let loops = start(&mut env.here(&["call", "bash", &arguments]));
    env.wait_for("begun");
    let mut took: Vec<Duration> = (0..40)
        .map(|_| {
            let begun = Instant::now();
            assert!(
                Command::new("true")
                    .status()
                    .expect("the `true` command")
                    .success()
            );
            begun.elapsed()
        })
        .collect();
    took.sort_unstable();
    // None of them had to wait for the end of the loops.
    assert!(took[39] < Duration::from_mins(1), "{took:?}");
    loops.signal(Signal::SIGINT);
    loops.wait();
    env.assert_no_container();
}
