//! The role `podbay egress SOCKET [--name-server ADDRESS:PORT]…`: rules come as lines on standard input, attempts leave as lines
//! on standard output, clients connect to the socket.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use futures::StreamExt;
use nix::sys::resource::Resource;
use nix::sys::resource::getrlimit;
use nix::sys::resource::setrlimit;
use podbay_wire::EgressAttempt;
use podbay_wire::EgressCommand;
use podbay_wire::EgressEvent;
use podbay_wire::EgressHostFrame;
use podbay_wire::MAX_RULES_LINE;
use podbay_wire::PROTOCOL;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;
use tokio::sync::mpsc;
use tokio::sync::watch;
use tokio_util::codec::FramedRead;
use tokio_util::codec::LinesCodec;
use tokio_util::sync::CancellationToken;

use super::gateway::Gateway;
use super::grant::RuleSet;
use super::host_streams::HostStreams;
use super::limits::ATTEMPTS;
use super::limits::Limits;
use super::reach::Tcp;
use super::resolve::NameServers;
use super::rule::Rules;

/// Everybody in the sandbox connects, whatever user they are; what that allows is what the rules
/// allow.
const SOCKET_MODE: u32 = 0o666;

/// Answers to lines of rules that wait to be written.
const ANSWERS: usize = 16;

/// Frames of streams to the user's machine that wait to be written.
const FRAMES: usize = 16;

const USAGE: &str = "usage: podbay egress SOCKET [--name-server ADDRESS:PORT]…";

pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let result = match arguments.as_slice() {
        [socket, options @ ..] if !socket.is_empty() => name_servers(options).and_then(|servers| {
            start(Path::new(socket), servers).map_err(|error| error.to_string())
        }),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            // Where nobody reads it, there is nobody to tell.
            let _ = writeln!(io::stderr(), "podbay egress: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the name servers that take the place of those of `/etc/resolv.conf`.
fn name_servers(options: &[OsString]) -> Result<Vec<SocketAddr>, String> {
    options
        .chunks(2)
        .map(|option| match option {
            [name, address] if name == "--name-server" => address
                .to_str()
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| format!("{} is no ADDRESS:PORT", address.display())),
            _ => Err(USAGE.to_owned()),
        })
        .collect()
}

fn start(socket: &Path, servers: Vec<SocketAddr>) -> io::Result<()> {
    raise_descriptors()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let result = runtime.block_on(run(socket, servers));
    // The thread that waits for standard input may wait for ever.
    runtime.shutdown_background();
    result
}

async fn run(socket: &Path, servers: Vec<SocketAddr>) -> io::Result<()> {
    let listener = listen(socket)?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (rules, in_force) = watch::channel(RuleSet::default());
    let (attempts, told) = mpsc::channel(ATTEMPTS);
    let (answers, answered) = mpsc::channel(ANSWERS);
    let (outgoing, frames) = mpsc::channel(FRAMES);
    let host = HostStreams::new(outgoing);
    let gateway = Gateway::new(
        Limits::default(),
        Arc::new(NameServers::named(servers)),
        Arc::new(Tcp),
        Arc::clone(&host),
        in_force,
        attempts,
    );
    let unheard = CancellationToken::new();
    let written = unheard.clone().drop_guard();
    let writing = tokio::spawn(async move {
        let _written = written;
        write(answered, told, frames).await
    });
    let reading = read_commands(rules, answers, &host);
    let ended = async {
        tokio::select! {
            () = reading => {}
            () = unheard.cancelled() => {}
            _ = terminate.recv() => {}
        }
    };
    gateway.serve(listener, ended).await;
    drop(fs::remove_file(socket));
    writing.await.map_err(io::Error::other)?
}

/// Each connection has two descriptors, and some engines give a container a thousand and let it
/// have more.
fn raise_descriptors() -> io::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let wanted = (4 * Limits::default().connections as u64).min(hard);
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).map_err(io::Error::from)
    } else {
        Ok(())
    }
}

/// Listens at a path, in place of what was there. Nothing connects before all may.
fn listen(socket: &Path) -> io::Result<UnixListener> {
    let mut new = socket.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&new)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(SOCKET_MODE))?;
    fs::rename(&new, socket)?;
    Ok(listener)
}

/// Puts rules in force until their source ends, and passes on what comes of the user's machine.
/// After a line that was not understood, nothing is allowed: it may have been to allow less.
async fn read_commands(
    rules: watch::Sender<RuleSet>,
    answers: mpsc::Sender<EgressEvent>,
    host: &HostStreams,
) {
    let mut lines = FramedRead::new(
        tokio::io::stdin(),
        LinesCodec::new_with_max_length(MAX_RULES_LINE),
    );
    // Where the answers go nowhere, the controller is gone.
    if answers
        .send(EgressEvent::Ready { protocol: PROTOCOL })
        .await
        .is_err()
    {
        return;
    }
    // The stream ends behind a line that is too long, and with it the role.
    while let Some(line) = lines.next().await {
        let understood = line
            .map_err(|error| error.to_string())
            .and_then(|line| understand(&line));
        let answer = match understood {
            Ok(Understood::Rules(generation, set)) => {
                rules.send_replace(set);
                EgressEvent::RulesSet { generation }
            }
            Ok(Understood::Flush(id)) => EgressEvent::Flushed { id },
            Ok(Understood::Host(frame)) => {
                host.hear(frame);
                continue;
            }
            Err(problem) => {
                rules.send_replace(RuleSet::default());
                EgressEvent::RulesRefused { problem }
            }
        };
        if answers.send(answer).await.is_err() {
            return;
        }
    }
}

enum Understood {
    Rules(u64, RuleSet),
    Flush(u64),
    Host(EgressHostFrame),
}

fn understand(line: &str) -> Result<Understood, String> {
    match serde_json::from_str(line).map_err(|error| error.to_string())? {
        EgressCommand::Rules {
            generation,
            rules,
            upstream,
        } => {
            let rules = Rules::parse(&rules).map_err(|error| error.to_string())?;
            Ok(Understood::Rules(generation, RuleSet { rules, upstream }))
        }
        EgressCommand::Flush { id } => Ok(Understood::Flush(id)),
        EgressCommand::Host { frame } => Ok(Understood::Host(frame)),
    }
}

/// Writes answers, attempts and frames until answers and attempts have ended: streams to the user's
/// machine are over with those that they are carried for.
async fn write(
    mut answers: mpsc::Receiver<EgressEvent>,
    mut attempts: mpsc::Receiver<EgressAttempt>,
    mut frames: mpsc::Receiver<EgressHostFrame>,
) -> io::Result<()> {
    enum Next {
        Answer(Option<EgressEvent>),
        Attempt(Option<EgressAttempt>),
        Frame(EgressHostFrame),
    }
    let mut output = tokio::io::stdout();
    let (mut has_answers, mut has_attempts) = (true, true);
    while has_answers || has_attempts {
        let next = tokio::select! {
            biased;
            answer = answers.recv(), if has_answers => Next::Answer(answer),
            attempt = attempts.recv(), if has_attempts => Next::Attempt(attempt),
            Some(frame) = frames.recv() => Next::Frame(frame),
        };
        let event = match next {
            Next::Answer(Some(answer)) => answer,
            Next::Attempt(Some(attempt)) => EgressEvent::Attempt(attempt),
            Next::Frame(frame) => EgressEvent::Host { frame },
            Next::Answer(None) => {
                has_answers = false;
                continue;
            }
            Next::Attempt(None) => {
                has_attempts = false;
                continue;
            }
        };
        let mut lines = Vec::new();
        if matches!(event, EgressEvent::Flushed { .. }) {
            while let Ok(attempt) = attempts.try_recv() {
                write_line(&mut lines, &EgressEvent::Attempt(attempt))?;
            }
        }
        write_line(&mut lines, &event)?;
        output.write_all(&lines).await?;
        output.flush().await?;
    }
    Ok(())
}

fn write_line(lines: &mut Vec<u8>, event: &EgressEvent) -> io::Result<()> {
    serde_json::to_writer(&mut *lines, event).map_err(io::Error::other)?;
    lines.push(b'\n');
    Ok(())
}

#[cfg(test)]
mod tests;
