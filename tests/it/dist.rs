//! The checks of a release, on programs that must not pass them.

use std::process::Command;

fn check(program: &str) -> (Option<i32>, String) {
    let root = env!("CARGO_MANIFEST_DIR");
    let output = Command::new("bash")
        .arg(format!("{root}/scripts/dist.sh"))
        .args(["check", program])
        .output()
        .expect("bash runs");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn a_program_that_needs_a_loader_is_no_release() {
    let (code, said) = check("/bin/bash");
    assert!(code == Some(1) && said.contains("not static"), "{said}");
}

#[test]
fn a_build_for_tests_is_static_and_still_no_release() {
    let (code, said) = check(env!("CARGO_BIN_EXE_podbay"));
    assert!(code == Some(1) && said.contains("not stripped"), "{said}");
}

#[test]
fn what_is_no_program_is_said() {
    let (code, said) = check(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"));
    assert!(code == Some(1) && said.contains("not a program"), "{said}");
    let (code, said) = check("/nonexistent");
    assert!(code == Some(1) && said.contains("no such file"), "{said}");
}
