//! mini-swe-agent's Docker environment, from the Python package index, in a Python process that
//! answers with the time each command took.

use std::fs;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Write as _;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::ChildStdin;
use std::process::ChildStdout;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use super::Outcome;
use super::place::check;

/// The version that is measured.
const VERSION: &str = "2.4.6";

/// Reads a command a line and answers with its nanoseconds, by the clock of the process, so that
/// ours is not counted to it.
const DRIVER: &str = r#"
import sys, time
from minisweagent.environments.docker import DockerEnvironment
environment = DockerEnvironment(image=sys.argv[1], run_args=["--rm", "--network", "none"])
print("ready", flush=True)
for line in sys.stdin:
    begun = time.perf_counter_ns()
    result = environment.execute({"command": line.rstrip("\n")})
    took = time.perf_counter_ns() - begun
    print(took if result["returncode"] == 0 else result["output"].replace("\n", " "), flush=True)
"#;

/// A running environment of the peer; its container goes with it.
pub(super) struct MiniSweAgent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl MiniSweAgent {
    pub(super) fn start() -> Outcome<Self> {
        let python = installed()?;
        let mut child = Command::new(python)
            .args(["-c", DRIVER, podbay::sandbox::DEFAULT_IMAGE])
            .env("MSWEA_SILENT_STARTUP", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        let mut peer = Self {
            child,
            input,
            output,
        };
        let mut line = peer.line()?;
        while line != "ready" {
            line = peer.line()?;
        }
        // The first command finds nothing in a cache.
        peer.execute("true")?;
        Ok(peer)
    }

    #[expect(
        clippy::unused_self,
        reason = "only who has one may speak of its version"
    )]
    pub(super) fn version(&self) -> &'static str {
        VERSION
    }

    /// Runs a command and returns how long the peer took for it.
    pub(super) fn execute(&mut self, command: &str) -> Outcome<Duration> {
        let input = self.input.as_mut().ok_or("it has ended")?;
        writeln!(input, "{command}")?;
        input.flush()?;
        let line = self.line()?;
        let nanoseconds = line
            .parse()
            .map_err(|_| format!("mini-swe-agent could not run `{command}`: {line}"))?;
        Ok(Duration::from_nanos(nanoseconds))
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("mini-swe-agent's Docker environment ended by itself".into());
        }
        Ok(line.trim().to_owned())
    }
}

impl Drop for MiniSweAgent {
    fn drop(&mut self) {
        // At the end of its input it removes its container.
        drop(self.input.take());
        drop(self.child.wait());
    }
}

/// Returns a Python that has the peer; the first time it is installed from the Python package
/// index, beside what cargo builds.
fn installed() -> Outcome<PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mini-swe-agent-{VERSION}"));
    let python = home.join("bin/python");
    let ready = home.join("ready");
    if ready.exists() {
        return Ok(python);
    }
    check(
        "python3 -m venv",
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&home),
    )?;
    let package = format!("mini-swe-agent=={VERSION}");
    check(
        "pip install mini-swe-agent",
        Command::new(&python).args(["-m", "pip", "install", "--quiet", &package]),
    )?;
    fs::write(&ready, "")?;
    Ok(python)
}
