use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::Front;
use super::Place;
use super::bench::Bench;
use super::bench::Ground;
use super::call::Taken;
use super::call::take;
use podbay_event::Seconds;
use podbay_policy::Action;
use podbay_policy::Approved;
use podbay_sandbox::InstallPhase;
use podbay_sandbox::Lock;
use podbay_sandbox::Sandbox;
use podbay_sandbox::link::CallInput;
use podbay_sandbox::link::CallUpdate;
use podbay_sandbox::link::Link;
use podbay_sandbox::link::OpenCall;
use podbay_session::CommandRecord;
use podbay_tools::limit_message;
use podbay_wire::BytesPath;
use podbay_wire::End;
use podbay_wire::Exec;
use podbay_wire::Fault;
use podbay_wire::Limit;
use podbay_wire::Output;
use podbay_wire::Terminal;
use podbay_wire::message::Stream;

/// How long a command may take to end after it was asked to, beyond its own time for that: a
/// sandbox that lives needs far less.
pub(super) const ENDING: Duration = Duration::from_secs(5);

/// How long a shell waits for what is to be said of the sandbox of `podbay up`.
const TELLING: Duration = Duration::from_secs(1);

/// How long the end of a command waits for that: it is told with the next one.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(1);

/// The exit code of a command that ran too long.
const TIMED_OUT: u8 = 124;

/// Most characters of an argument in the record of commands, and four times as many as arguments.
const RECORDED: usize = 1024;

/// A shell, or one command, that a user runs in the sandbox.
pub struct Shell {
    program: Program,
    grace: Duration,
    sandbox: Sandbox,
    lock: Option<Lock>,
    record: CommandRecord,
    /// It runs in the sandbox of `podbay up`.
    is_joined: bool,
}

/// A program that a user has started in a sandbox.
pub(super) struct Program(OpenCall);

/// What comes out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellUpdate {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    /// The command's exit code; a signal counts as 128 and its number. The note says why, where the
    /// code alone does not.
    Ended {
        code: u8,
        note: Option<String>,
    },
    /// It could not be run, or the sandbox ended under it.
    Failed {
        problem: String,
    },
}

/// Where its input goes.
pub struct ShellInput(CallInput);

impl ShellInput {
    /// Sends bytes as they are, waiting where the command does not take them; `false` once it has
    /// ended.
    #[boxed]
    pub async fn send(&self, bytes: &[u8]) -> bool {
        self.0.send(bytes).await.is_ok()
    }

    /// Returns whether the sandbox has taken all of it: one that answers does so at once, whatever
    /// the command then makes of it.
    pub fn is_taken(&self) -> bool {
        self.0.is_taken()
    }

    pub fn close(&self) {
        self.0.close();
    }
}

/// What is to be run.
#[derive(Clone, Debug, Default)]
pub struct ShellCommand {
    /// Empty: the sandbox's shell.
    pub argv: Vec<OsString>,
    /// Where, as a path from the project's folder.
    pub directory: Option<PathBuf>,
    /// Name and value, in addition to those of every command.
    pub environment: Vec<(String, String)>,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// Rows, columns and `TERM`.
    pub terminal: Option<(u16, u16, String)>,
}

/// Starts a command, or the sandbox's shell.
#[boxed]
pub async fn shell(place: &Place, command: ShellCommand, front: &Front) -> Result<Shell, Error> {
    let cancel = front.interrupt.run();
    let bench = Bench::reach(&place.config, &place.state, Ground::open(place)?, cancel).await?;
    bench.sweep_aside();
    let Taken {
        sandbox,
        lock,
        is_joined,
    } = take(&bench, front).await?;
    let mut words: Vec<_> = command
        .argv
        .iter()
        .map(|word| {
            word.to_string_lossy()
                .chars()
                .take(RECORDED)
                .collect::<String>()
        })
        .collect();
    words.truncate(RECORDED / 4);
    let record = CommandRecord::begin(
        &place.state,
        &place.config.session,
        "sh",
        bench.ground_text(),
        &words.join(" "),
    );
    if command.terminal.is_some() {
        // A message would land in the middle of what a program draws.
        sandbox.has_told(TELLING).await;
    }
    let grace = place.config.sandbox.grace;
    match Program::start(&sandbox, command, grace, cancel).await {
        Ok(program) => Ok(Shell {
            program,
            grace: grace.duration(),
            sandbox,
            lock,
            record,
            is_joined,
        }),
        Err(error) => {
            sandbox.close().await;
            Err(error)
        }
    }
}

impl Shell {
    /// Returns whether it runs in the sandbox of `podbay up`.
    pub fn is_joined(&self) -> bool {
        self.is_joined
    }

    pub fn input(&self) -> ShellInput {
        ShellInput(self.program.0.input_handle())
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        self.program.0.resize(rows, columns);
    }

    /// Asks the command to end. Returns how long that may take: from a sandbox that has said
    /// nothing by then nothing more will come.
    pub fn cancel(&self) -> Duration {
        self.program.cancel();
        self.grace + ENDING
    }

    /// Asks once more, without patience.
    pub fn hurry(&self) -> Duration {
        self.program.cancel();
        ENDING
    }

    /// Waits for what comes next. After `Ended` or `Failed` nothing comes.
    #[boxed]
    pub async fn recv(&mut self) -> ShellUpdate {
        let update = self.program.recv().await;
        match &update {
            ShellUpdate::Ended { code, .. } => self.record.end(*code),
            ShellUpdate::Failed { .. } => self.record.end(super::exit_code::SHELL_FAILED),
            ShellUpdate::Stdout(_) | ShellUpdate::Stderr(_) => {}
        }
        update
    }

    /// Ends the sandbox.
    #[boxed]
    pub async fn close(self) {
        drop(self.program);
        self.sandbox.has_told(LAST_WORDS).await;
        self.sandbox.close().await;
        if let Some(lock) = self.lock {
            lock.release();
        }
    }
}

impl Program {
    /// Starts one. The user's own hand on their own sandbox is its approval.
    #[boxed]
    pub(super) async fn start(
        sandbox: &Sandbox,
        command: ShellCommand,
        grace: Seconds,
        cancel: &CancellationToken,
    ) -> Result<Self, Error> {
        let link = sandbox.link(cancel).await.map_err(Error::Sandbox)?;
        Self::open(&link, command, grace)
    }

    /// Starts one in an install phase of a session, which the user has allowed.
    pub(super) fn start_in_phase(
        phase: &InstallPhase,
        command: ShellCommand,
        grace: Seconds,
    ) -> Result<Self, Error> {
        Self::open(phase.guest(), command, grace)
    }

    fn open(link: &Link, command: ShellCommand, grace: Seconds) -> Result<Self, Error> {
        let approved = Approved::by_hand(Exec {
            argv: command.argv.into_iter().map(BytesPath::from).collect(),
            working_directory: command.directory.map(BytesPath::from),
            environment: command.environment,
            terminal: command.terminal.map(|(rows, columns, kind)| Terminal {
                rows,
                columns,
                kind,
            }),
            timeout_ms: command.timeout.map(|limit| limit.as_millis() as u64),
            grace_ms: grace.get() * 1000,
        });
        let call = match approved.into_inner() {
            Action::Box(call) => call,
            Action::Host(_) => unreachable!("a command of the user's is a call in the sandbox"),
        };
        link.open(call)
            .map(Self)
            .map_err(|error| Error::Sandbox(podbay_sandbox::Error::Link(error)))
    }

    /// Asks it to end.
    pub(super) fn cancel(&self) {
        self.0.cancel();
    }

    /// Waits for what comes next. After `Ended` or `Failed` nothing comes.
    pub(super) async fn recv(&mut self) -> ShellUpdate {
        match self.0.recv().await {
            Some(CallUpdate::Chunk {
                stream: Stream::Stderr,
                data,
            }) => ShellUpdate::Stderr(data),
            // What the user starts themselves goes through no gate, so that nobody asks.
            Some(CallUpdate::Asked { question, .. }) => {
                self.0.answer(question, false);
                ShellUpdate::Stdout(Vec::new())
            }
            Some(CallUpdate::Chunk { data, .. }) => ShellUpdate::Stdout(data),
            Some(CallUpdate::Done(Output::Command(ended))) => {
                let flag = match ended.limit {
                    Some(Limit::Memory { .. }) => " (--memory)",
                    Some(Limit::Processes { .. }) => " (--pids)",
                    _ => "",
                };
                let met = ended
                    .limit
                    .map(|limit| format!("{}{flag}", limit_message(limit, ended.culprit.as_ref())));
                let note = [met, ended.note]
                    .into_iter()
                    .flatten()
                    .reduce(|all, note| format!("{all}; {note}"));
                let code = match ended.end {
                    // As `timeout` of coreutils reports it.
                    _ if matches!(ended.limit, Some(Limit::Time { .. })) => TIMED_OUT,
                    End::Exited { code } => u8::try_from(code & 0xff).unwrap_or(1),
                    End::Signaled { signal } => {
                        u8::try_from(signal.saturating_add(128) & 0xff).unwrap_or(255)
                    }
                    End::Cancelled => super::exit_code::INTERRUPTED,
                    End::Running { .. } => super::exit_code::DONE,
                };
                ShellUpdate::Ended { code, note }
            }
            // As a shell would end.
            Some(CallUpdate::Done(Output::Fault(fault @ Fault::NotFound { .. }))) => {
                ShellUpdate::Ended {
                    code: 127,
                    note: Some(fault.to_string()),
                }
            }
            Some(CallUpdate::Done(Output::Fault(fault @ Fault::PermissionDenied { .. }))) => {
                ShellUpdate::Ended {
                    code: 126,
                    note: Some(fault.to_string()),
                }
            }
            Some(CallUpdate::Done(Output::Fault(fault))) => ShellUpdate::Failed {
                problem: fault.to_string(),
            },
            Some(CallUpdate::Done(_)) => ShellUpdate::Failed {
                problem: "the guest answered with something else than a command's end".to_owned(),
            },
            None => ShellUpdate::Failed {
                problem: "the sandbox ended".to_owned(),
            },
        }
    }
}
