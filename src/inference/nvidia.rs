//! The memory of NVIDIA GPUs. Only nvidia-smi tells it: the driver's files in /proc have only the
//! name.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

/// Where distributions install nvidia-smi. PATH is not searched, since this process may be root.
const PLACES: [&str; 5] = [
    "usr/bin",
    "usr/local/bin",
    "usr/lib/wsl/lib",
    "run/current-system/sw/bin",
    "opt/bin",
];

/// Time limit of nvidia-smi; it wakes a GPU that sleeps.
const PATIENCE: Duration = Duration::from_secs(2);

/// nvidia-smi runs as nobody, whoever runs Podbay: a query needs no rights.
const NOBODY: u32 = 65534;

/// Most bytes of its output that are read: it prints a number per GPU.
const MOST: u64 = 4096;

/// Returns the memory of all GPUs together in bytes, over which a model is spread; `None` if
/// unknown.
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
                // A process that hangs in the driver cannot be waited for.
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

/// Parses a line of mebibytes for each GPU.
fn parse(said: &str) -> Option<u64> {
    let cards = said.lines().map(str::trim).filter(|line| !line.is_empty());
    // GPUs that share the machine's memory report that they have none.
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
    fn the_memory_of_all_gpus_is_summed() {
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
    fn a_failing_hanging_or_endless_nvidia_smi_gives_no_memory() {
        let root = tempfile::tempdir().expect("a folder");
        let open = |path: &Path| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("ours");
        };
        open(root.path());
        assert_eq!(memory(root.path()), None);
        let tool = root.path().join("usr/bin/nvidia-smi");
        fs::create_dir_all(tool.parent().expect("a folder")).expect("made");
        let says = |script: &str| {
            // A new file: one whose process still runs cannot be written (ETXTBSY).
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
