//! A test that measures its whole process, in a process of its own: others that run beside it would
//! be measured, too.

use std::process::Command;

/// Says to this test that it is the one that runs alone.
const ALONE: &str = "PODBAY_TEST_ALONE";

/// Returns whether the test of this name, with its modules in front, runs alone; where it does not,
/// it is started so and must pass.
#[track_caller]
pub(crate) fn is_alone(name: &str) -> bool {
    if std::env::var_os(ALONE).is_some_and(|alone| alone == name) {
        return true;
    }
    let program = std::env::current_exe().expect("this test");
    let output = Command::new(program)
        .args(["--exact", name])
        .env(ALONE, name)
        .output()
        .expect("started");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    false
}
