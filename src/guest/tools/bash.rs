//! `bash`: one shell command, whose working directory the next one inherits.

use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use tokio::time::Instant;

use crate::call_channel::CallChannel;
use crate::call_channel::HostMessage;
use crate::child::Stdio;
use crate::command;
use crate::command::CommandPlan;
use crate::command::Input;
use crate::directory::Directory;
use crate::jobs::Job;
use crate::order::Order;
use crate::order::Report;
use crate::order::Stage;
use crate::session::Session;
use crate::session::how;
use crate::shell::Shell;
use crate::stdio::Pipe;
use podbay_wire::Bash;
use podbay_wire::BytesPath;
use podbay_wire::CommandEnded;
use podbay_wire::Denied;
use podbay_wire::End;
use podbay_wire::Fault;
use podbay_wire::Output;
use podbay_wire::Programs;
use podbay_wire::message::CHUNK;
use podbay_wire::message::Stream;

/// The kernel takes no argument of 128 KiB or more.
pub(super) const MAX_COMMAND: usize = 120 * 1024;

/// How long a background command is watched for an early exit.
const EARLY: Duration = Duration::from_millis(150);

/// Longest working directory that a command can report, in bytes.
const MAX_REPORT: usize = 4097;

pub(crate) async fn run(session: &Arc<Session>, bash: Bash, line: &mut CallChannel) -> Output {
    let result = if bash.background {
        run_in_background(session, &bash, line).await
    } else {
        run_to_end(session, &bash, line).await
    };
    match result {
        Ok(ended) => Output::Command(ended),
        Err(fault) => Output::Fault(fault),
    }
}

async fn run_to_end(
    session: &Session,
    bash: &Bash,
    line: &mut CallChannel,
) -> Result<CommandEnded, Fault> {
    let Prepared {
        shell,
        directory,
        environment,
    } = prepare(session, bash)?;
    let (source, stdout) = pipe()?;
    let (report_reader, report_writer) = pipe()?;
    let order = Order {
        argv: shell.reporting(&bash.command),
        program: shell.path.clone().into_bytes(),
        environment,
        report: shell.report_descriptor(),
        gated: true,
        rules: bash.rules.clone(),
        write_gate: bash.write_gate.clone(),
        ..Order::default()
    };
    let plan = CommandPlan {
        order,
        stdio: Stdio {
            stdin: null()?,
            stderr: stdout.try_clone().map_err(|error| cannot_prepare(&error))?,
            stdout,
            directory: directory.fd,
            report: Some(report_writer),
        },
        sources: vec![(
            Pipe::new(source).map_err(|error| cannot_prepare(&error))?,
            Stream::Stdout,
        )],
        input: Input::Nowhere,
        timeout: Some(Duration::from_millis(bash.timeout_ms)),
        grace: Duration::from_millis(bash.grace_ms),
        stream_bytes: bash.stream_bytes,
        tail_bytes: bash.tail_bytes,
    };
    let mut ended = command::run(session, line, plan).await?;
    if let Some(left_off) = read_report(report_reader) {
        session.directories.left_off(&left_off);
    }
    ended.working_directory = Some(session.directories.current());
    ended.note = join([directory.note, ended.note]);
    Ok(ended)
}

/// Reads the working directory that the shell reported at its end. The shell has exited, so the
/// report is complete; a longer one is ignored.
fn read_report(reader: OwnedFd) -> Option<Vec<u8>> {
    let pipe = Pipe::new(reader).ok()?;
    let mut buffer = vec![0; MAX_REPORT];
    let length = pipe.read_now(&mut buffer).ok()?;
    buffer.truncate(length);
    (buffer.last() == Some(&b'\n')).then_some(buffer)
}

async fn run_in_background(
    session: &Arc<Session>,
    bash: &Bash,
    line: &mut CallChannel,
) -> Result<CommandEnded, Fault> {
    let began = Instant::now();
    if let Some(shut) = session.shut().await {
        let problem = format!(
            "{shut}: a background command needs free space; remove files that are not needed"
        );
        return Err(Fault::NotStarted { problem });
    }
    let Prepared {
        shell,
        directory,
        environment,
    } = prepare(session, bash)?;
    let (path, file) = make_log(session, line)?;
    let argv = shell.plain(&bash.command);
    let rules = bash.rules.clone();
    let order = Order {
        argv,
        program: shell.path.clone().into_bytes(),
        environment,
        gated: true,
        rules,
        renames: session.is_overlay,
        ..Order::default()
    };
    let log = file.try_clone().map_err(|error| cannot_prepare(&error))?;
    let stdout = OwnedFd::from(file);
    let stdio = Stdio {
        stdin: null()?,
        stderr: stdout.try_clone().map_err(|error| cannot_prepare(&error))?,
        stdout,
        directory: directory.fd,
        report: None,
    };
    let mut started = command::start(session, &order, stdio).await?;
    let note = started.note.take();
    let shown = BytesPath::from(path.as_path());
    let early = early_end(&started.control, line).await;
    let control = Arc::new(started.control);
    let job = Job::new(
        started.pid,
        started.supervisor,
        &bash.command,
        log,
        began,
        Arc::clone(&control),
    );
    let (mut programs, mut denied) = (Programs::default(), Vec::new());
    let (end, n_survivors, what) = match early {
        None => {
            session.keep(control, job);
            (
                End::Running { pid: started.pid },
                0,
                format!(
                    "its output goes to {shown}; it ends with this session or by `kill {}`",
                    started.pid
                ),
            )
        }
        Some(EarlyEnd::Cancelled) => (End::Cancelled, 0, format!("its output is in {shown}")),
        Some(EarlyEnd::Ended {
            status,
            n_survivors,
            ran,
        }) => {
            (programs, denied) = ran;
            // A later query for the last process means this one.
            session.jobs.add(job.over(how(status)));
            (how(status), n_survivors, early_note(&shown, n_survivors))
        }
        Some(EarlyEnd::NotStarted { stage, errno }) => {
            return Err(command::not_started(session, &order, stage, errno));
        }
        Some(EarlyEnd::Lost) => {
            let problem = "its supervisor was killed from inside the sandbox".to_owned();
            return Err(Fault::Io {
                doing: "run the command in the background".to_owned(),
                problem,
            });
        }
    };
    let (output_bytes, n_sent) = if matches!(end, End::Running { .. }) {
        (0, 0)
    } else {
        send_log(&path, bash.stream_bytes, line)
    };
    Ok(CommandEnded {
        end,
        limit: None,
        culprit: None,
        working_directory: Some(session.directories.current()),
        output_bytes,
        omitted_bytes: output_bytes - n_sent,
        omitted_in_line: false,
        n_survivors,
        duration_ms: began.elapsed().as_millis() as u64,
        // What it prints goes nowhere then.
        note: join([directory.note, note, Some(what), session.full()]),
        programs,
        denied: denied.into(),
    })
}

fn join<const N: usize>(notes: [Option<String>; N]) -> Option<String> {
    notes
        .into_iter()
        .flatten()
        .reduce(|all, note| format!("{all}; {note}"))
}

fn early_note(path: &BytesPath, n_survivors: u32) -> String {
    if n_survivors == 0 {
        format!("it ended at once; its output is in {path}")
    } else {
        format!(
            "it ended at once, and the processes it had left running were ended: leave out the `&`, `background` does that; its output is in {path}"
        )
    }
}

enum EarlyEnd {
    Ended {
        status: i32,
        n_survivors: u32,
        ran: (Programs, Vec<Denied>),
    },
    NotStarted {
        stage: Stage,
        errno: Errno,
    },
    Cancelled,
    Lost,
}

/// Watches a background command for a moment: one that cannot work mostly exits at once.
async fn early_end(
    control: &crate::spawner_client::Control,
    line: &mut CallChannel,
) -> Option<EarlyEnd> {
    enum Next {
        Report(Option<Report>),
        HostMessage(HostMessage),
        Time,
    }
    let watched_until = Instant::now() + EARLY;
    let mut ran = (Programs::default(), Vec::new());
    loop {
        let next = tokio::select! {
            report = control.next() => Next::Report(report),
            word = line.next() => Next::HostMessage(word),
            () = tokio::time::sleep_until(watched_until) => Next::Time,
        };
        match next {
            Next::Report(Some(Report::Ended {
                status,
                n_survivors,
            })) => {
                return Some(EarlyEnd::Ended {
                    status,
                    n_survivors: n_survivors as u32,
                    ran,
                });
            }
            Next::Report(Some(Report::Failed { stage, errno })) => {
                return Some(EarlyEnd::NotStarted {
                    stage,
                    errno: Errno::from_raw(errno),
                });
            }
            Next::Report(Some(Report::Ran { programs, denied })) => ran = (programs, denied),
            // A background command is not awaited, so its questions are denied.
            Next::Report(Some(Report::Asks { question, .. })) => control.answer(question, false),
            Next::Report(None) => return Some(EarlyEnd::Lost),
            // The control socket closes when this returns, and the supervisor then ends everything.
            Next::HostMessage(HostMessage::Cancel) => return Some(EarlyEnd::Cancelled),
            Next::HostMessage(HostMessage::Credit(bytes)) => line.add_room(bytes),
            Next::HostMessage(HostMessage::Input(data)) => line.consumed(data.len()),
            Next::Report(Some(Report::Started { .. }))
            | Next::HostMessage(HostMessage::Resize { .. } | HostMessage::Answer { .. }) => {}
            Next::Time => return None,
        }
    }
}

/// Creates a log file for the output, where the command may write and no file exists.
fn make_log(session: &Session, line: &CallChannel) -> Result<(PathBuf, File), Fault> {
    let id = line.id().0;
    let mut number = 0_u32;
    loop {
        let name = if number == 0 {
            format!("podbay-background-{id}.log")
        } else {
            format!("podbay-background-{id}-{number}.log")
        };
        let path = session.scratch.join(name);
        match File::options()
            .read(true)
            .append(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(libc::O_CLOEXEC | libc::O_NOFOLLOW)
            .open(&path)
        {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {
                number += 1;
            }
            Err(error) => {
                let doing = format!("create {} for the output", path.display());
                let problem = join([Some(error.to_string()), session.full()]).unwrap_or_default();
                return Err(Fault::Io { doing, problem });
            }
        }
    }
}

/// Sends the start of a short log, as far as the stream's credit allows; returns its size and how
/// much was sent.
fn send_log(path: &Path, limit: u64, line: &mut CallChannel) -> (u64, u64) {
    // The command could have put something else in its place: no waiting for a FIFO, no following
    // of links.
    let Ok(file) = File::options()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path)
    else {
        return (0, 0);
    };
    let Ok(metadata) = file.metadata() else {
        return (0, 0);
    };
    if !metadata.is_file() {
        return (0, 0);
    }
    let mut text = Vec::new();
    if file
        .take(limit.min(CHUNK as u64).min(line.room() as u64))
        .read_to_end(&mut text)
        .is_err()
        || text.is_empty()
    {
        return (metadata.len(), 0);
    }
    let n_sent = text.len() as u64;
    line.chunk(Stream::Stdout, text);
    (metadata.len().max(n_sent), n_sent)
}

struct Prepared<'session> {
    shell: &'session Shell,
    directory: Directory,
    environment: Vec<Vec<u8>>,
}

fn prepare<'session>(session: &'session Session, bash: &Bash) -> Result<Prepared<'session>, Fault> {
    if bash.command.len() > MAX_COMMAND {
        let problem = format!(
            "{} bytes are more than the {MAX_COMMAND} a command may have; write a script file and run that",
            bash.command.len()
        );
        return Err(Fault::Invalid {
            field: "command".to_owned(),
            problem,
        });
    }
    if bash.command.contains('\0') {
        return Err(Fault::Invalid {
            field: "command".to_owned(),
            problem: "contains a NUL byte, which no shell accepts".to_owned(),
        });
    }
    let shell = session.shell.as_ref().ok_or_else(no_shell)?;
    let directory = match &bash.working_directory {
        Some(path) => session.directories.resolve(path)?,
        None => session.directories.open_current()?,
    };
    let mut environment = session.environment();
    environment.push(b"TERM=dumb".to_vec());
    if let Some(gate) = &bash.write_gate {
        let invalid = |field: &str, problem: &str| Fault::Invalid {
            field: field.to_owned(),
            problem: problem.to_owned(),
        };
        if gate.is_too_much() {
            return Err(invalid(
                "write_gate",
                "contains more patterns than a call may have; name folders instead of their files",
            ));
        }
        if bash.background {
            let problem = "the call ends while the command still runs, so it cannot be held at its first write: ask about the whole command";
            return Err(invalid("background", problem));
        }
        // `git status` would write its index.
        environment.push(b"GIT_OPTIONAL_LOCKS=0".to_vec());
    }
    Ok(Prepared {
        shell,
        directory,
        environment,
    })
}

pub(super) fn no_shell() -> Fault {
    Fault::NotStarted {
        problem: "this image has neither bash nor sh; use the file tools, or an image with a shell"
            .to_owned(),
    }
}

pub(super) fn pipe() -> Result<(OwnedFd, OwnedFd), Fault> {
    nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(|errno| cannot_prepare(&errno.into()))
}

pub(super) fn null() -> Result<OwnedFd, Fault> {
    File::open("/dev/null")
        .map(OwnedFd::from)
        .map_err(|error| cannot_prepare(&error))
}

pub(super) fn cannot_prepare(error: &io::Error) -> Fault {
    Fault::NotStarted {
        problem: format!("its pipes cannot be created: {error}"),
    }
}
