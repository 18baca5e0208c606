//! Where it is measured: a project and our own program, with nothing of the user's settings.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use super::Outcome;

/// The program of the same build.
pub(super) fn program() -> &'static str {
    env!("CARGO_BIN_EXE_podbay")
}

/// Runs a program to its end; what it prints is read and thrown away, as a runner would read it.
pub(super) fn run(program: &str, arguments: &[&str]) -> Outcome<()> {
    check(program, Command::new(program).args(arguments))
}

pub(super) fn check(name: &str, command: &mut Command) -> Outcome<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{name} ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    )
    .into())
}

/// A project of ten files, and folders for everything that Podbay keeps.
pub(super) struct Place {
    pub(super) project: PathBuf,
    pub(super) state: PathBuf,
    _folder: tempfile::TempDir,
}

impl Place {
    pub(super) fn make() -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        let place = Self {
            project: folder.path().join("project"),
            state: folder.path().join("state"),
            _folder: folder,
        };
        fs::create_dir(&place.project)?;
        for number in 0..9 {
            fs::write(
                place.project.join(format!("file_{number}.txt")),
                format!("file {number}\n"),
            )?;
        }
        fs::write(
            place.project.join("four_kb.txt"),
            "sixty-three letters, and one for the end of the line: a page.\n".repeat(66),
        )?;
        belongs_to_somebody(&place.project)?;
        Ok(place)
    }

    /// Returns our own program with nothing of the user's settings.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments)
            .env_clear()
            .env("PODBAY_HOME", &self.state)
            .env("HOME", &self.state)
            .stdin(Stdio::null());
        let kept: Vec<(OsString, OsString)> = std::env::vars_os()
            .filter(|(name, _)| name == "PATH" || name.to_string_lossy().starts_with("DOCKER_"))
            .collect();
        command.envs(kept);
        command
    }

    pub(super) fn podbay(&self, arguments: &[&str]) -> Outcome<()> {
        check("podbay", &mut self.command(arguments))
    }
}

/// The owner of the projects, where we may choose one.
const SOMEBODY: u32 = 1000;

/// Gives a folder and all in it to an ordinary user; without root they belong to one.
pub(super) fn belongs_to_somebody(folder: &Path) -> Outcome<()> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            belongs_to_somebody(&entry.path())?;
        } else {
            chown(entry.path(), Some(SOMEBODY), Some(SOMEBODY))?;
        }
    }
    Ok(chown(folder, Some(SOMEBODY), Some(SOMEBODY))?)
}
