//! Running a program under valgrind, and reading how many instructions that took.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::process::Command;
use std::process::Stdio;

use super::Outcome;

/// Returns what valgrind calls itself; `Err` says why there is none.
pub(super) fn version() -> Result<String, String> {
    let output = Command::new("valgrind")
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => Err(format!("`valgrind --version` ended with {}", output.status)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err("valgrind is not installed".to_owned())
        }
        Err(error) => Err(format!("valgrind cannot be started: {error}")),
    }
}

/// Runs a program to its end and returns how many instructions of it, and of all it is made of,
/// were executed.
pub(super) fn instructions(program: &OsStr, arguments: &[&str]) -> Outcome<u64> {
    let folder = tempfile::tempdir()?;
    let counts = folder.path().join("counts");
    let mut to = std::ffi::OsString::from("--cachegrind-out-file=");
    to.push(&counts);
    let mut command = Command::new("valgrind");
    // Caches are left out: they are those of a machine, and instructions are those of the program.
    command
        .args(["--quiet", "--tool=cachegrind", "--cache-sim=no"])
        .arg(to)
        .arg(program)
        .args(arguments);
    // What is found in the surroundings must not change the count.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let output = command
        .env_clear()
        .env("PATH", path)
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "under valgrind {} {arguments:?} ended with {}: {said}",
            program.to_string_lossy(),
            output.status
        )
        .into());
    }
    let text = fs::read_to_string(&counts)?;
    summary(&text).ok_or_else(|| {
        format!(
            "valgrind wrote no count of instructions: {}",
            text.lines().last().unwrap_or_default()
        )
        .into()
    })
}

/// Reads the sum in a file of cachegrind's: `events:` names the columns, `summary:` has a number
/// for each.
fn summary(text: &str) -> Option<u64> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let column = field("events:")?
        .split_whitespace()
        .position(|event| event == "Ir")?;
    field("summary:")?
        .split_whitespace()
        .nth(column)?
        .parse()
        .ok()
}
