//! How much memory NVIDIA's cards have. Only their own tool tells: the driver's files name the card
//! and nothing more.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

/// Where distributions put the tool. The person's own path is not searched: this may be root.
const PLACES: [&str; 5] = [
    "usr/bin",
    "usr/local/bin",
    "usr/lib/wsl/lib",
    "run/current-system/sw/bin",
    "opt/bin",
];

/// How long the tool may take; it wakes a card that sleeps.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whoever runs this, the tool runs as nobody: it only has to ask.
const NOBODY: u32 = 65534;

/// Most of what the tool says that is read: a number for each card.
const MOST: u64 = 4096;

/// Returns the bytes of all cards together, over which a model is spread; `None` where nobody says.
pub(super) fn memory(root: &Path) -> Option<u64> {
    let tool = PLACES
        .iter()
        .map(|place| root.join(place).join("nvidia-smi"))
        .find(|tool| tool.is_file())?;
    parse(&ask(&tool)?)
}

fn ask(tool: &Path) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a program of the host: by its whole path, as nobody, with nothing of our environment"
    )]
    let mut command = Command::new(tool);
    command
        .args(["--query-gpu=memory.total", "--format=csv,noheader,nounits"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    if nix::unistd::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut child = command
        .spawn()
        .inspect_err(|error| tracing::debug!(%error, "nvidia-smi does not start"))
        .ok()?;
    let deadline = Instant::now() + PATIENCE;
    let succeeded = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status.success(),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => {
                tracing::debug!("nvidia-smi did not end in time");
                // One that hangs in the driver cannot be waited for.
                let _ = child.kill();
                return None;
            }
        }
    };
    let mut said = String::new();
    child
        .stdout
        .take()?
        .take(MOST)
        .read_to_string(&mut said)
        .ok()?;
    succeeded.then_some(said)
}

/// Reads a line of mebibytes for each card.
fn parse(said: &str) -> Option<u64> {
    let cards = said.lines().map(str::trim).filter(|line| !line.is_empty());
    // Cards that share the machine's memory say that they have none of their own.
    let sum = cards
        .map(|line| line.parse::<u64>().ok()?.checked_mul(1 << 20))
        .try_fold(0_u64, |sum, bytes| sum.checked_add(bytes?))?;
    (sum > 0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_memory_of_all_cards_counts() {
        assert_eq!(parse("24576\n"), Some(24 << 30));
        assert_eq!(parse(" 15360\n15360 \n"), Some(30 << 30));
        for nothing in [
            "",
            "[N/A]\n",
            "24576\n[N/A]\n",
            "-1",
            "No devices were found",
            "99999999999999999999",
            "18446744073709551615",
        ] {
            assert_eq!(parse(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_tool_that_fails_hangs_or_babbles_tells_nothing() {
        let root = tempfile::tempdir().expect("a folder");
        let open = |path: &Path| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("ours");
        };
        open(root.path());
        assert_eq!(memory(root.path()), None);
        let tool = root.path().join("usr/bin/nvidia-smi");
        fs::create_dir_all(tool.parent().expect("a folder")).expect("made");
        let says = |script: &str| {
            // By its name anew: one that still runs cannot be written.
            let _ = fs::remove_file(&tool);
            fs::write(&tool, format!("#!/bin/sh\n{script}\n")).expect("written");
            open(&tool);
            memory(root.path())
        };
        assert_eq!(
            says("test \"$1\" = --query-gpu=memory.total && test -z \"$HOME\" && echo 24576"),
            Some(24 << 30)
        );
        // Never as root.
        assert_eq!(says("test \"$(id -u)\" != 0 && echo 1024"), Some(1 << 30));
        assert_eq!(says("echo 24576; exit 9"), None);
        let begun = Instant::now();
        assert_eq!(says("exec sleep 600"), None);
        assert_eq!(says("exec yes 1"), None);
        assert!(
            begun.elapsed() < Duration::from_mins(2),
            "{:?}",
            begun.elapsed()
        );
    }
}
