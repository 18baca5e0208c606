//! Commands that the user's own settings run on the user's own machine.
//!
//! Nothing that comes with a project can ask for one, trusted or not, and no tool of the model's
//! makes such a call. Their environment is the user's without the variables that hold keys of
//! ours.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::process::Child;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::Place;
use super::host_process::end;
use super::host_process::group_of;
use super::host_process::hidden_variables;
use podbay_tools::OnChunk;
use podbay_wire::CommandEnded;
use podbay_wire::End;
use podbay_wire::Fault;
use podbay_wire::Hook;
use podbay_wire::Limit;
use podbay_wire::Output;
use podbay_wire::message::Stream;

/// How long a hook's output may stay open once it has ended: what it left running may hold it for
/// ever.
const AFTER: Duration = Duration::from_millis(200);

/// Where such commands run and what they must not see.
pub(super) struct HostHooks {
    project: PathBuf,
    /// Names of variables.
    hidden: Vec<String>,
}

/// Why a hook is over.
enum Over {
    Ended(std::io::Result<ExitStatus>),
    Late,
    Cancelled,
}

impl HostHooks {
    pub(super) fn of(place: &Place) -> Self {
        Self {
            project: place.project.clone(),
            hidden: hidden_variables(&place.config),
        }
    }

    pub(super) async fn run(
        &self,
        hook: Hook,
        mut on_chunk: OnChunk<'_>,
        cancel: &CancellationToken,
    ) -> Output {
        let begun = Instant::now();
        let mut child = match self.start(&hook) {
            Ok(child) => child,
            Err(error) => {
                return Output::Fault(Fault::NotStarted {
                    problem: format!("sh cannot be started on the host: {error}"),
                });
            }
        };
        let group = group_of(&child);
        let most = usize::try_from(hook.output_bytes).unwrap_or(usize::MAX);
        let (out, err) = (Mutex::default(), Mutex::default());
        let mut streams = Box::pin({
            let (stdin, stdout, stderr) =
                (child.stdin.take(), child.stdout.take(), child.stderr.take());
            let (input, out, err) = (hook.input.into_bytes(), &out, &err);
            async move {
                let feed = async {
                    if let Some(mut stdin) = stdin {
                        // Who does not read what it is told need not.
                        let _unread = stdin.write_all(&input).await;
                    }
                };
                tokio::join!(feed, drain(stdout, out, most), drain(stderr, err, most));
            }
        });
        let wait = async {
            tokio::select! {
                status = child.wait() => Over::Ended(status),
                () = cancel.cancelled() => Over::Cancelled,
                () = tokio::time::sleep(Duration::from_millis(hook.timeout_ms)) => Over::Late,
            }
        };
        let (over, all_read) = {
            let mut wait = std::pin::pin!(wait);
            tokio::select! {
                over = &mut wait => (over, false),
                () = &mut streams => (wait.await, true),
            }
        };
        if !matches!(over, Over::Ended(_)) {
            end(&mut child, group, Duration::from_millis(hook.grace_ms)).await;
        }
        if !all_read {
            let _held_open = tokio::time::timeout(AFTER, &mut streams).await;
        }
        drop(streams);
        for (stream, kept) in [(Stream::Stdout, out), (Stream::Stderr, err)] {
            on_chunk(stream, &kept.into_inner().unwrap_or_default());
        }
        let limit = matches!(over, Over::Late).then_some(Limit::Time {
            ms: hook.timeout_ms,
        });
        let end = match over {
            Over::Cancelled => End::Cancelled,
            Over::Late => End::Signaled {
                signal: libc::SIGKILL,
            },
            Over::Ended(status) => match status {
                Ok(status) => how(status),
                Err(error) => {
                    return Output::Fault(Fault::Io {
                        doing: "wait for the hook".to_owned(),
                        problem: error.to_string(),
                    });
                }
            },
        };
        let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Output::Command(CommandEnded {
            limit,
            duration_ms,
            ..CommandEnded::plain(end)
        })
    }

    fn start(&self, hook: &Hook) -> std::io::Result<Child> {
        #[expect(
            clippy::disallowed_methods,
            reason = "a command of the user's own that runs on the host, by their own settings"
        )]
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", &hook.command])
            .current_dir(&self.project)
            .process_group(0)
            .kill_on_drop(true);
        for name in &self.hidden {
            command.env_remove(name);
        }
        command.envs(hook.environment.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }
}

/// Reads a stream to its end and keeps its start.
async fn drain(stream: Option<impl AsyncRead + Unpin>, kept: &Mutex<Vec<u8>>, most: usize) {
    let Some(mut stream) = stream else { return };
    let mut buffer = vec![0; 8192];
    while let Ok(n_read @ 1..) = stream.read(&mut buffer).await {
        let mut kept = kept
            .lock()
            .expect("nothing panics while it holds this lock");
        let room = most.saturating_sub(kept.len());
        kept.extend_from_slice(&buffer[..n_read.min(room)]);
    }
}

fn how(status: ExitStatus) -> End {
    use std::os::unix::process::ExitStatusExt;
    match status.code() {
        Some(code) => End::Exited { code },
        None => End::Signaled {
            signal: status.signal().unwrap_or(libc::SIGKILL),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(
        command: &str,
        timeout_ms: u64,
        input: &str,
        cancel: &CancellationToken,
    ) -> (Output, String, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let hooks = HostHooks {
            project: folder.path().to_owned(),
            hidden: vec!["CARGO_PKG_NAME".to_owned()],
        };
        let hook = Hook {
            command: command.to_owned(),
            input: input.to_owned(),
            environment: vec![("PODBAY_HOOK".to_owned(), "stop".to_owned())],
            timeout_ms,
            grace_ms: 200,
            output_bytes: 1000,
            rules: Vec::new(),
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let keep = |stream: Stream, bytes: &[u8]| {
            if stream == Stream::Stderr {
                err.extend(bytes);
            } else {
                out.extend(bytes);
            }
        };
        let output = hooks.run(hook, Box::new(keep), cancel).await;
        (
            output,
            String::from_utf8_lossy(&out).into_owned(),
            String::from_utf8_lossy(&err).into_owned(),
        )
    }

    fn end_of(output: &Output) -> (&End, bool) {
        let Output::Command(ended) = output else {
            panic!("{output:?}")
        };
        (&ended.end, ended.limit.is_some())
    }

    #[tokio::test]
    async fn it_reads_its_input_and_does_not_see_keys() {
        let script = "cat; echo $PODBAY_HOOK ${CARGO_PKG_NAME-none} >&2; exit 3";
        let large = "x".repeat(300_000);
        let (output, out, err) = run(script, 20_000, &large, &CancellationToken::new()).await;
        assert_eq!(end_of(&output), (&End::Exited { code: 3 }, false));
        assert_eq!((out.len(), err.as_str()), (1000, "stop none\n"));
        let (output, ..) = run("exit 0", 20_000, &large, &CancellationToken::new()).await;
        assert_eq!(
            end_of(&output),
            (&End::Exited { code: 0 }, false),
            "it need not read"
        );
    }

    #[tokio::test]
    async fn one_that_hangs_or_is_cancelled_is_ended_with_all_it_started() {
        let marker = tempfile::tempdir().expect("a folder");
        let script = format!(
            "echo begun; (trap '' TERM; sleep 1; touch {}) & wait",
            marker.path().join("marker").display()
        );
        let (output, out, _) = run(&script, 300, "", &CancellationToken::new()).await;
        assert_eq!((end_of(&output).1, out.as_str()), (true, "begun\n"));
        let cancel = CancellationToken::new();
        cancel.cancel();
        let (output, ..) = run("sleep 60", 60_000, "", &cancel).await;
        assert_eq!(end_of(&output), (&End::Cancelled, false));
        tokio::time::sleep(Duration::from_millis(1200)).await;
        assert!(!marker.path().join("marker").exists());
    }

    #[tokio::test]
    async fn one_that_leaves_something_holding_its_output_holds_nobody_up() {
        let begun = Instant::now();
        let (output, out, _) = run(
            "echo said; sleep 600 &",
            60_000,
            "",
            &CancellationToken::new(),
        )
        .await;
        assert_eq!(
            (end_of(&output), out.as_str()),
            ((&End::Exited { code: 0 }, false), "said\n")
        );
        assert!(begun.elapsed() < Duration::from_mins(1));
    }
}
