//! `bash`: one shell command, whose directory the next one inherits.

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

use crate::child::Stdio;
use crate::command;
use crate::command::Input;
use crate::command::Plan;
use crate::directory::Directory;
use crate::host::Line;
use crate::host::Word;
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

/// How long a background command is watched for an early end.
const EARLY: Duration = Duration::from_millis(150);

/// Longest path a command can report.
const MAX_REPORT: usize = 4097;

pub(crate) async fn run(session: &Arc<Session>, bash: Bash, line: &mut Line) -> Output {
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
    line: &mut Line,
) -> Result<CommandEnded, Fault> {
    let Ready {
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
    let plan = Plan {
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

/// Reads where the shell left off. It has ended, so that all it wrote is there; a command that
/// wrote more gets nothing.
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
    line: &mut Line,
) -> Result<CommandEnded, Fault> {
    let began = Instant::now();
    if let Some(shut) = session.shut().await {
        let problem = format!(
            "{shut}: nothing runs in the background before there is room; remove what is not needed"
        );
        return Err(Fault::NotStarted { problem });
    }
    let Ready {
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
        Some(Early::Cancelled) => (End::Cancelled, 0, format!("its output is in {shown}")),
        Some(Early::Ended {
            status,
            n_survivors,
            ran,
        }) => {
            (programs, denied) = ran;
            // Who asks for the last one means this one, and not one before it.
            session.jobs.add(job.over(how(status)));
            (how(status), n_survivors, early_note(&shown, n_survivors))
        }
        Some(Early::NotStarted { stage, errno }) => {
            return Err(command::not_started(session, &order, stage, errno));
        }
        Some(Early::Lost) => {
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
            "it ended at once, and the processes it had left running were ended with it: leave out the `&`, background does that; its output is in {path}"
        )
    }
}

enum Early {
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

/// Watches a background command for a moment: one that cannot work mostly says so at once.
async fn early_end(control: &crate::process::Control, line: &mut Line) -> Option<Early> {
    enum Next {
        Report(Option<Report>),
        Word(Word),
        Time,
    }
    let watched_until = Instant::now() + EARLY;
    let mut ran = (Programs::default(), Vec::new());
    loop {
        let next = tokio::select! {
            report = control.next() => Next::Report(report),
            word = line.next() => Next::Word(word),
            () = tokio::time::sleep_until(watched_until) => Next::Time,
        };
        match next {
            Next::Report(Some(Report::Ended {
                status,
                n_survivors,
            })) => {
                return Some(Early::Ended {
                    status,
                    n_survivors: n_survivors as u32,
                    ran,
                });
            }
            Next::Report(Some(Report::Failed { stage, errno })) => {
                return Some(Early::NotStarted {
                    stage,
                    errno: Errno::from_raw(errno),
                });
            }
            Next::Report(Some(Report::Ran { programs, denied })) => ran = (programs, denied),
            // Nobody waits for what runs in the background.
            Next::Report(Some(Report::Asks { question, .. })) => control.answer(question, false),
            Next::Report(None) => return Some(Early::Lost),
            // The control socket closes when this returns, and the supervisor then ends everything.
            Next::Word(Word::Cancel) => return Some(Early::Cancelled),
            Next::Word(Word::Credit(bytes)) => line.add_room(bytes),
            Next::Word(Word::Input(data)) => line.consumed(data.len()),
            Next::Report(Some(Report::Started { .. }))
            | Next::Word(Word::Resize { .. } | Word::Answer { .. }) => {}
            Next::Time => return None,
        }
    }
}

/// Makes a file of its own for the output, where the command may write and nothing else is.
fn make_log(session: &Session, line: &Line) -> Result<(PathBuf, File), Fault> {
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
                let doing = format!("make {} for the output", path.display());
                let problem = join([Some(error.to_string()), session.full()]).unwrap_or_default();
                return Err(Fault::Io { doing, problem });
            }
        }
    }
}

/// Sends the start of a short log, as far as the credit at hand goes; returns its size and how much
/// was sent.
fn send_log(path: &Path, limit: u64, line: &mut Line) -> (u64, u64) {
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

struct Ready<'session> {
    shell: &'session Shell,
    directory: Directory,
    environment: Vec<Vec<u8>>,
}

fn prepare<'session>(session: &'session Session, bash: &Bash) -> Result<Ready<'session>, Fault> {
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
            problem: "holds a NUL byte, which no shell takes".to_owned(),
        });
    }
    let shell = session.shell.as_ref().ok_or_else(no_shell)?;
    let directory = match &bash.working_directory {
        Some(path) => session.directories.resolve(path)?,
        None => session.directories.open_current()?,
    };
    let mut environment = session.environment.clone();
    environment.push(b"TERM=dumb".to_vec());
    if let Some(gate) = &bash.write_gate {
        let invalid = |field: &str, problem: &str| Fault::Invalid {
            field: field.to_owned(),
            problem: problem.to_owned(),
        };
        if gate.is_too_much() {
            return Err(invalid(
                "write_gate",
                "holds more patterns than may go with a call; name folders instead of their files",
            ));
        }
        if bash.background {
            let problem = "the call ends while it still runs, so that it cannot be held at its first write: ask about the whole command";
            return Err(invalid("background", problem));
        }
        // `git status` would write down what it has seen.
        environment.push(b"GIT_OPTIONAL_LOCKS=0".to_vec());
    }
    Ok(Ready {
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
        problem: format!("its pipes cannot be made: {error}"),
    }
}
