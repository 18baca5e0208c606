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

/// Returns the tags of a program's dynamic section; 64 bits, little-endian.
fn dynamic_tags(elf: &[u8]) -> Vec<u64> {
    let word = |at: usize| u64::from_le_bytes(elf[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| usize::from(u16::from_le_bytes([elf[at], elf[at + 1]]));
    let (headers, size, n) = (word(32) as usize, half(54), half(56));
    let dynamic = (0..n)
        .map(|n| headers + n * size)
        .find(|at| elf[*at] == 2 && elf[at + 1..at + 4] == [0; 3])
        .expect("a program that relocates itself has one");
    let (from, length) = (word(dynamic + 8) as usize, word(dynamic + 32) as usize);
    (from..from + length).step_by(16).map(word).collect()
}

/// Issue 33: unpacked they are megabytes of each process.
#[test]
fn relocations_are_packed_where_the_c_library_reads_them() {
    const RELR: u64 = 36;
    let said = Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .expect("getconf runs");
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let minor = text.trim().strip_prefix("glibc 2.").map(str::parse::<u32>);
    let can = minor.is_some_and(|minor| minor.is_ok_and(|minor| minor >= 36));
    let elf = std::fs::read(env!("CARGO_BIN_EXE_podbay")).expect("it is built");
    assert_eq!(dynamic_tags(&elf).contains(&RELR), can, "{text}");
}
