//! A hook: a command of the user's settings. It runs like `bash`, but with its own input and
//! variables, separate streams, and always in the project's folder; its final working directory is
//! not kept.

use std::ffi::CStr;
use std::fs::File;
use std::io::Seek;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::sys::memfd::MFdFlags;
use nix::sys::memfd::memfd_create;

use super::bash::MAX_COMMAND;
use super::bash::cannot_prepare;
use super::bash::no_shell;
use super::bash::pipe;
use crate::call_channel::CallChannel;
use crate::child::Stdio;
use crate::command;
use crate::command::CommandPlan;
use crate::command::Input;
use crate::order::Order;
use crate::session::Session;
use crate::stdio::Pipe;
use podbay_wire::CommandEnded;
use podbay_wire::Fault;
use podbay_wire::Hook;
use podbay_wire::Output;
use podbay_wire::message::Stream;

const INPUT: &CStr = c"podbay-hook";

pub(crate) async fn run(session: &Session, hook: Hook, line: &mut CallChannel) -> Output {
    match run_to_end(session, &hook, line).await {
        Ok(ended) => Output::Command(ended),
        Err(fault) => Output::Fault(fault),
    }
}

async fn run_to_end(
    session: &Session,
    hook: &Hook,
    line: &mut CallChannel,
) -> Result<CommandEnded, Fault> {
    let shell = session.shell.as_ref().ok_or_else(no_shell)?;
    let order = Order {
        argv: shell.plain(&hook.command),
        program: shell.path.clone().into_bytes(),
        environment: environment(session, hook)?,
        gated: true,
        rules: hook.rules.clone(),
        ..Order::default()
    };
    let ((out, stdout), (err, stderr)) = (pipe()?, pipe()?);
    let watched = |fd: OwnedFd| Pipe::new(fd).map_err(|error| cannot_prepare(&error));
    let plan = CommandPlan {
        order,
        stdio: Stdio {
            stdin: input(&hook.input)?,
            stdout,
            stderr,
            directory: session.directories.open_root()?,
            report: None,
        },
        sources: vec![
            (watched(out)?, Stream::Stdout),
            (watched(err)?, Stream::Stderr),
        ],
        input: Input::Nowhere,
        timeout: Some(Duration::from_millis(hook.timeout_ms)),
        grace: Duration::from_millis(hook.grace_ms),
        stream_bytes: hook.output_bytes,
        tail_bytes: 0,
    };
    command::run(session, line, plan).await
}

/// Returns its environment, within the bounds of the kernel and the spawner.
fn environment(session: &Session, hook: &Hook) -> Result<Vec<Vec<u8>>, Fault> {
    let invalid = |field: &str, problem: String| Fault::Invalid {
        field: field.to_owned(),
        problem,
    };
    if hook.command.contains('\0') {
        return Err(invalid(
            "command",
            "contains a NUL byte, which no shell accepts".to_owned(),
        ));
    }
    let mut environment = session.environment();
    environment.push(b"TERM=dumb".to_vec());
    let n_bytes: usize = hook
        .environment
        .iter()
        .map(|(name, value)| name.len() + value.len() + 2)
        .sum();
    if hook.command.len() + n_bytes > MAX_COMMAND {
        let problem = format!(
            "the command and its variables have more than {MAX_COMMAND} bytes together; read standard input instead"
        );
        return Err(invalid("command", problem));
    }
    for (name, value) in &hook.environment {
        if name.contains(['=', '\0']) || value.contains('\0') {
            return Err(invalid(
                "environment",
                format!("the variable {name} contains a character that no variable may have"),
            ));
        }
        environment.push(format!("{name}={value}").into_bytes());
    }
    Ok(environment)
}

/// Puts the input into an in-memory file, so that no process has to feed it. Its memory counts
/// towards the sandbox's limit.
fn input(text: &str) -> Result<OwnedFd, Fault> {
    let fd = memfd_create(INPUT, MFdFlags::MFD_CLOEXEC)
        .map_err(|errno| cannot_prepare(&errno.into()))?;
    let mut file = File::from(fd);
    file.write_all(text.as_bytes())
        .and_then(|()| file.rewind())
        .map_err(|error| cannot_prepare(&error))?;
    Ok(file.into())
}
