//! Runs the few host programs that are needed: by argument vector, with a minimal environment, and
//! never orphaned.

use std::collections::VecDeque;
use std::process::ExitStatus;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::signal::killpg;
use nix::unistd::Pid;
use tokio::io::AsyncBufReadExt;
use tokio::io::AsyncRead;
use tokio::io::BufReader;
use tokio::process::Child;
use tokio::process::ChildStdout;
use tokio::process::Command;

/// How long a program may clean up after it was asked to end.
const GRACE: Duration = Duration::from_secs(20);

/// Lines of output that are kept to explain a failure.
const LAST_LINES: usize = 12;

/// Environment variables about reaching the network; all others are removed.
const KEPT: [&str; 8] = [
    "TMPDIR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTPS_PROXY",
    "NO_PROXY",
    "DEBIAN_MIRROR",
    "DEBIAN_KEYRING",
];

/// A running program, in a process group of its own.
pub(super) struct HostProgram {
    child: Child,
    group: Option<Pid>,
}

impl HostProgram {
    /// Starts it with its stdout in a pipe; read its stderr with [`HostProgram::said`].
    pub(super) fn start(argv: &[&str]) -> std::io::Result<Self> {
        let (program, arguments) = argv
            .split_first()
            .expect("an argument vector starts with the program");
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place where programs of the host are run"
        )]
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            // Administrators' tools are not in every PATH.
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("HOME", "/")
            .env("LC_ALL", "C")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        for name in KEPT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let child = command.spawn()?;
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .map(Pid::from_raw);
        Ok(Self { child, group })
    }

    pub(super) fn stdout(&mut self) -> ChildStdout {
        self.child
            .stdout
            .take()
            .expect("it was started with a pipe, and this is asked once")
    }

    /// Reads its stderr to the end; each line goes to `line`.
    pub(super) fn said<F: FnMut(&str)>(
        &mut self,
        line: F,
    ) -> impl Future<Output = LastLines> + use<F> {
        read(
            self.child
                .stderr
                .take()
                .expect("it was started with a pipe, and this is asked once"),
            line,
        )
    }

    pub(super) async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.group = None;
        Ok(status)
    }

    /// Asks the process group to end, and kills it if it does not.
    pub(super) async fn end(mut self) {
        self.signal(Signal::SIGTERM);
        if tokio::time::timeout(GRACE, self.child.wait())
            .await
            .is_err()
        {
            self.signal(Signal::SIGKILL);
            if let Err(error) = self.child.wait().await {
                tracing::warn!(%error, "a program could not be waited for");
            }
        }
        self.group = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group
            && let Err(error) = killpg(group, signal)
        {
            tracing::debug!(%error, "the program had ended already");
        }
    }
}

impl Drop for HostProgram {
    /// A dropped run cannot wait; the program still gets the signal and cleans up.
    fn drop(&mut self) {
        self.signal(Signal::SIGTERM);
    }
}

/// The last lines of a program's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LastLines(VecDeque<String>);

impl LastLines {
    pub(super) fn last(&self) -> &str {
        self.0.back().map_or("", String::as_str)
    }
}

impl std::fmt::Display for LastLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, line) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n  ")?;
            }
            f.write_str(line)?;
        }
        Ok(())
    }
}

pub(super) async fn read(stream: impl AsyncRead + Unpin, mut line: impl FnMut(&str)) -> LastLines {
    let mut lines = BufReader::new(stream).split(b'\n');
    let mut said = LastLines::default();
    while let Ok(Some(bytes)) = lines.next_segment().await {
        let text = String::from_utf8_lossy(&bytes);
        let text: String = text.trim_end().chars().take(300).collect();
        if text.is_empty() {
            continue;
        }
        line(&text);
        if said.0.len() == LAST_LINES {
            said.0.pop_front();
        }
        said.0.push_back(text);
    }
    said
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn ending_a_program_ends_its_children() {
        let script = "trap 'echo cleaned >&2; exit 1' TERM; sleep 60 & echo $! ; wait";
        let mut program = HostProgram::start(&["sh", "-c", script]).expect("started");
        let mut out = BufReader::new(program.stdout()).lines();
        let sleeper = out.next_line().await.expect("read").expect("a line");
        let said = program.said(|_| {});
        // A shell's child that has not called exec yet may lose a signal.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let started = Instant::now();
        let (said, ()) = tokio::join!(said, program.end());
        assert!(started.elapsed() < GRACE);
        assert_eq!(said.last(), "cleaned");
        // A signal takes effect when the process is scheduled next, which may take a while on a
        // busy machine.
        let is_there = || {
            let state =
                std::fs::read_to_string(format!("/proc/{sleeper}/stat")).unwrap_or_default();
            !state.is_empty() && !state.contains(") Z ")
        };
        while is_there() && started.elapsed() < GRACE * 10 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(!is_there());
    }

    #[tokio::test]
    async fn the_last_lines_are_kept_and_the_environment_is_not() {
        let mut program = HostProgram::start(&[
            "sh",
            "-c",
            "env | cut -d= -f1 >&2; for i in $(seq 40); do echo line $i >&2; done",
        ])
        .expect("started");
        let mut names = Vec::new();
        let said = program.said(|line| names.push(line.to_owned())).await;
        assert!(program.ended().await.expect("waited").success());
        assert_eq!(said.0.len(), LAST_LINES);
        assert_eq!(said.last(), "line 40");
        assert!(
            !names.iter().any(|name| name.starts_with("CARGO")),
            "{names:?}"
        );
    }
}
