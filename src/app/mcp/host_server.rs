//! A server on the user's machine, outside of the sandbox: only one that their own settings put
//! there.
//!
//! It is a process group of its own, which ends with the streams to it. Its working directory is
//! none of the project's unless the settings say so: many programs load what lies there.

use std::path::Path;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::DuplexStream;
use tokio::process::Child;
use tokio::process::ChildStdin;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::opener::LEAVING;
use super::opener::WAITING;
use crate::host_process::end;
use crate::host_process::group_of;
use crate::host_process::signal;
use podbay_mcp::ByteStream;
use podbay_mcp::ServerEnd;
use podbay_mcp::ServerOptions;

/// How long a server's output may stay open once it has ended: what it left running may hold it for
/// ever.
const AFTER: Duration = Duration::from_millis(200);

/// Starts servers on the user's machine.
pub(super) struct HostServers {
    /// The project's folder.
    project: PathBuf,
    /// The user's home folder.
    home: PathBuf,
    /// Names of variables that no server sees.
    hidden: Vec<String>,
    /// Between TERM and KILL.
    grace: Duration,
    running: TaskTracker,
}

/// All processes of a server. What is left of them when this is dropped is killed, as at the end of
/// the runtime.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        signal(self.0, Signal::SIGKILL);
    }
}

impl HostServers {
    pub(super) fn new(project: &Path, hidden: Vec<String>, grace: Duration) -> Self {
        // Without one it is a folder in which nothing lies that a program would load.
        let home = std::env::var_os("HOME").map(PathBuf::from);
        Self {
            project: project.to_owned(),
            home: home
                .filter(|home| home.is_absolute())
                .unwrap_or_else(|| PathBuf::from("/")),
            hidden,
            grace,
            running: TaskTracker::new(),
        }
    }

    pub(super) fn open(&self, server: &ServerOptions) -> Result<ByteStream, String> {
        let child = self.start(server).map_err(|error| {
            format!(
                "`{}` cannot be started on your machine: {error}",
                podbay_mcp::plain_line(&server.command, 200)
            )
        })?;
        let (reader, out) = tokio::io::duplex(WAITING);
        let (writer, input) = tokio::io::duplex(WAITING);
        let end = ServerEnd::default();
        let group = Group(group_of(&child));
        self.running
            .spawn(carry(child, group, input, out, end.clone(), self.grace));
        Ok(ByteStream {
            reader: Box::new(reader),
            writer: Box::new(writer),
            end,
            root: root(&self.project),
        })
    }

    /// Waits until the servers whose streams were dropped have ended.
    pub(super) async fn close(&self) {
        self.running.close();
        self.running.wait().await;
    }

    fn start(&self, server: &ServerOptions) -> std::io::Result<Child> {
        #[expect(
            clippy::disallowed_methods,
            reason = "a program of the user's own that runs on the host, by their own settings"
        )]
        let mut command = Command::new(&server.command);
        let folder = match &server.cwd {
            Some(folder) => self.project.join(folder),
            None => self.home.clone(),
        };
        command
            .args(&server.args)
            .current_dir(folder)
            .process_group(0)
            .kill_on_drop(true);
        for name in &self.hidden {
            command.env_remove(name);
        }
        command
            .envs(&server.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }
}

/// Carries the streams of a server for as long as both ends are there, and ends it with all that it
/// started.
async fn carry(
    mut child: Child,
    mut group: Group,
    input: DuplexStream,
    mut out: DuplexStream,
    its_end: ServerEnd,
    grace: Duration,
) {
    let left = CancellationToken::new();
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut streams = Box::pin(async {
        tokio::join!(
            feed(input, stdin, left.clone()),
            print(stdout, &mut out),
            keep(stderr, &its_end)
        );
    });
    // What has ended must not be waited for again.
    let mut are_open = true;
    let ended = {
        let mut wait = std::pin::pin!(async {
            tokio::select! {
                ended = child.wait() => Some(ended),
                () = async {
                    left.cancelled().await;
                    tokio::time::sleep(LEAVING).await;
                } => None,
            }
        });
        tokio::select! {
            ended = &mut wait => ended,
            () = &mut streams => {
                are_open = false;
                wait.await
            }
        }
    };
    match ended {
        Some(Ok(status)) => its_end.note(how(status)),
        Some(Err(error)) => its_end.note(format!("it cannot be waited for: {error}")),
        None => {
            end(&mut child, group.0, grace).await;
            its_end.note("it was told to end");
        }
    }
    // Whatever it left running in its group.
    signal(group.0.take(), Signal::SIGKILL);
    if are_open {
        let _held_open = tokio::time::timeout(AFTER, &mut streams).await;
    }
}

/// Hands over what is written to the server; when nothing more can be written, its input ends.
async fn feed(mut from: DuplexStream, to: Option<ChildStdin>, left: CancellationToken) {
    let Some(mut to) = to else { return };
    let copied = tokio::io::copy(&mut from, &mut to).await;
    drop(to);
    if copied.is_err() {
        // It reads no more, and may still have something to say.
        let mut unread = [0; 4096];
        while let Ok(1..) = from.read(&mut unread).await {}
    }
    left.cancel();
}

/// Hands over what the server prints.
async fn print(from: Option<impl AsyncRead + Unpin>, to: &mut DuplexStream) {
    let Some(mut from) = from else { return };
    let _printed = tokio::io::copy(&mut from, to).await;
    let _flushed = to.flush().await;
}

/// Keeps the end of what the server writes to its standard error.
async fn keep(from: Option<impl AsyncRead + Unpin>, its_end: &ServerEnd) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; 8192];
    while let Ok(n_read @ 1..) = from.read(&mut buffer).await {
        its_end.keep_stderr(&buffer[..n_read]);
    }
}

fn how(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "it ended in an unknown way".to_owned(),
    }
}

/// Returns the URI of a folder of this machine.
fn root(folder: &Path) -> String {
    use std::fmt::Write as _;
    use std::os::unix::ffi::OsStrExt;
    let mut uri = String::from("file://");
    for &byte in folder.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _infallible = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(project: &Path) -> HostServers {
        let grace = Duration::from_millis(200);
        let hidden = vec!["CARGO_PKG_NAME".to_owned()];
        HostServers {
            home: PathBuf::from("/"),
            ..HostServers::new(project, hidden, grace)
        }
    }

    fn shell(script: &str) -> ServerOptions {
        ServerOptions {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            env: [("GREETING".to_owned(), "hello".to_owned())].into(),
            ..ServerOptions::default()
        }
    }

    async fn read(stream: &mut ByteStream) -> String {
        let mut text = String::new();
        stream.reader.read_to_string(&mut text).await.expect("text");
        text
    }

    #[tokio::test]
    async fn it_speaks_over_its_streams_and_runs_where_the_settings_say() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("a b")).expect("made");
        let servers = servers(&folder.path().join("a b"));
        let script = "read line; echo \"$line $GREETING ${CARGO_PKG_NAME-none} $(pwd)\"; exit 3";
        for (cwd, place) in [
            (None, PathBuf::from("/")),
            (Some("."), servers.project.clone()),
        ] {
            let options = ServerOptions {
                cwd: cwd.map(str::to_owned),
                ..shell(script)
            };
            let mut stream = servers.open(&options).expect("started");
            stream.writer.write_all(b"said\n").await.expect("written");
            let expected = format!("said hello none {}\n", place.display());
            assert_eq!(read(&mut stream).await, expected);
            assert!(stream.root.ends_with("/a%20b"), "{}", stream.root);
        }
        let options = ServerOptions {
            command: "no-such-program".to_owned(),
            ..ServerOptions::default()
        };
        let why = servers.open(&options).err().expect("it is not there");
        assert!(why.contains("`no-such-program` cannot be started on your machine"));
        servers.close().await;
    }

    #[tokio::test]
    async fn one_that_stays_is_ended_with_all_that_it_started() {
        let folder = tempfile::tempdir().expect("a folder");
        let servers = servers(folder.path());
        let late = folder.path().join("late");
        let script = format!(
            "trap '' TERM; (trap '' TERM; sleep 3; touch {}) & echo begun; while :; do sleep 1; done",
            late.display()
        );
        let mut stream = servers.open(&shell(&script)).expect("started");
        let mut begun = [0; 6];
        stream.reader.read_exact(&mut begun).await.expect("text");
        drop(stream);
        // It returns when the server is gone.
        servers.close().await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(!late.exists());
        // One that ends when its input does is not killed.
        let polite = format!("cat > /dev/null; touch {}", late.display());
        drop(servers.open(&shell(&polite)).expect("started"));
        servers.close().await;
        assert!(late.exists());
    }

    #[tokio::test]
    async fn what_it_leaves_holding_its_output_keeps_nothing_waiting() {
        let folder = tempfile::tempdir().expect("a folder");
        let servers = servers(folder.path());
        let mut stream = servers
            .open(&shell("echo said; sleep 600 & setsid sleep 20 & exit 0"))
            .expect("started");
        let read = tokio::time::timeout(Duration::from_mins(1), read(&mut stream)).await;
        assert_eq!(read.as_deref(), Ok("said\n"));
        servers.close().await;
    }

    #[tokio::test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a server of this test's own, which ends with its input"
    )]
    async fn one_that_ends_by_itself_is_waited_for_once() {
        for _ in 0..20 {
            let mut command = Command::new("cat");
            let child = command
                .process_group(0)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("cat");
            let group = Group(group_of(&child));
            let (reader, out) = tokio::io::duplex(WAITING);
            let (writer, input) = tokio::io::duplex(WAITING);
            let grace = Duration::from_millis(200);
            let end = ServerEnd::default();
            let carried = tokio::spawn(carry(child, group, input, out, end, grace));
            drop(writer);
            // It is over at one time before its streams are, and at another after them.
            tokio::task::yield_now().await;
            drop(reader);
            carried.await.expect("it does not panic");
        }
    }
}
