//! Links the program with packed relocations, where the C library that is linked into it can read them.
//!
//! A static program that may lie anywhere relocates itself as it starts: it reads 24 bytes for each
//! pointer among its constants, which then stay in memory. Packed, most of them take a bit.

use std::env::var;

/// The first version of glibc that relocates a static program by the packed form.
const SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| var(name).is_ok_and(|is| is == value);
    let is_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    // Of another machine's C library nothing is known here.
    let is_native = var("HOST").is_ok_and(|host| is("TARGET", &host));
    if is_glibc && is_native && glibc().is_some_and(|version| version >= SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns the version of this machine's glibc, which says `glibc 2.36`.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing else runs while this is built"
)]
fn glibc() -> Option<(u32, u32)> {
    let said = std::process::Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
