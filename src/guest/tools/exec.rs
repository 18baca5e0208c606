//! `podbay sh`: the user's own program, with a terminal or with three pipes.

use std::os::fd::OwnedFd;
use std::time::Duration;

use super::bash::cannot_prepare;
use super::bash::no_shell;
use super::bash::pipe;
use crate::call_channel::CallChannel;
use crate::child::Stdio;
use crate::command;
use crate::command::CommandPlan;
use crate::command::Input;
use crate::order::Order;
use crate::pty::open_pty;
use crate::session::Session;
use crate::stdio::Pipe;
use podbay_wire::BytesPath;
use podbay_wire::CommandEnded;
use podbay_wire::Exec;
use podbay_wire::Fault;
use podbay_wire::Output;
use podbay_wire::Terminal;
use podbay_wire::message::Stream;

/// Most bytes of all arguments together: what the kernel takes with its usual stack. One argument
/// may have 128 KiB there.
const MAX_ARGUMENTS: usize = 2 << 20;

/// Longest value of `TERM`.
const MAX_KIND: usize = 64;

pub(crate) async fn run(session: &Session, exec: Exec, line: &mut CallChannel) -> Output {
    match run_to_end(session, &exec, line).await {
        Ok(ended) => Output::Command(ended),
        Err(fault) => Output::Fault(fault),
    }
}

async fn run_to_end(
    session: &Session,
    exec: &Exec,
    line: &mut CallChannel,
) -> Result<CommandEnded, Fault> {
    let directory = match &exec.working_directory {
        Some(path) => session.directories.resolve(path)?.fd,
        None => session.directories.open_root()?,
    };
    let order = order(session, exec)?;
    let Wiring {
        stdio,
        sources,
        input,
    } = match &exec.terminal {
        Some(terminal) => wire_terminal(terminal, directory)?,
        None => wire_pipes(directory)?,
    };
    let plan = CommandPlan {
        order,
        stdio,
        sources,
        input,
        timeout: exec.timeout_ms.map(Duration::from_millis),
        grace: Duration::from_millis(exec.grace_ms),
        stream_bytes: u64::MAX,
        tail_bytes: 0,
    };
    command::run(session, line, plan).await
}

/// The command's descriptors and ours.
struct Wiring {
    stdio: Stdio,
    sources: Vec<(Pipe, Stream)>,
    input: Input,
}

fn wire_terminal(terminal: &Terminal, directory: OwnedFd) -> Result<Wiring, Fault> {
    let pty = open_pty(terminal.rows, terminal.columns).map_err(|error| Fault::NotStarted {
        problem: format!("its terminal cannot be opened: {error}"),
    })?;
    let copy = || {
        pty.slave
            .try_clone()
            .map_err(|error| cannot_prepare(&error))
    };
    let stdio = Stdio {
        stdin: copy()?,
        stdout: copy()?,
        stderr: copy()?,
        directory,
        report: None,
    };
    Ok(Wiring {
        stdio,
        sources: vec![(watched(pty.master)?, Stream::Stdout)],
        input: Input::Terminal,
    })
}

fn wire_pipes(directory: OwnedFd) -> Result<Wiring, Fault> {
    let ((stdin, feed), (out, stdout), (err, stderr)) = (pipe()?, pipe()?, pipe()?);
    let stdio = Stdio {
        stdin,
        stdout,
        stderr,
        directory,
        report: None,
    };
    let sources = vec![
        (watched(out)?, Stream::Stdout),
        (watched(err)?, Stream::Stderr),
    ];
    Ok(Wiring {
        stdio,
        sources,
        input: Input::Pipe(watched(feed)?),
    })
}

fn watched(fd: OwnedFd) -> Result<Pipe, Fault> {
    Pipe::new(fd).map_err(|error| cannot_prepare(&error))
}

fn order(session: &Session, exec: &Exec) -> Result<Order, Fault> {
    let mut environment = session.environment();
    environment.push(terminal_kind(exec.terminal.as_ref()));
    for (name, value) in &exec.environment {
        set_variable(&mut environment, name, value)?;
    }
    let terminal = exec.terminal.is_some();
    if exec.argv.is_empty() {
        let shell = session.shell.as_ref().ok_or_else(no_shell)?;
        return Ok(Order {
            argv: shell.login(),
            program: shell.path.clone().into_bytes(),
            environment,
            terminal,
            ..Order::default()
        });
    }
    let argv: Vec<Vec<u8>> = exec
        .argv
        .iter()
        .map(BytesPath::as_bytes)
        .map(<[u8]>::to_vec)
        .collect();
    let invalid = |problem: &str| Fault::Invalid {
        field: "argv".to_owned(),
        problem: problem.to_owned(),
    };
    if argv.iter().map(|word| word.len() + 16).sum::<usize>() > MAX_ARGUMENTS {
        return Err(invalid(
            "the arguments are longer than 2 MiB together; write the text to a file and name that",
        ));
    }
    if argv.iter().any(|word| word.contains(&0)) {
        return Err(invalid("contains a NUL byte, which no argument may have"));
    }
    Ok(Order {
        argv,
        environment,
        terminal,
        ..Order::default()
    })
}

/// Adds a variable, in the place of one of the same name.
fn set_variable(environment: &mut Vec<Vec<u8>>, name: &str, value: &str) -> Result<(), Fault> {
    if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
        return Err(Fault::Invalid {
            field: "environment".to_owned(),
            problem: format!("`{name}` is not the name of a variable, or its value has a NUL byte"),
        });
    }
    let begin = format!("{name}=").into_bytes();
    environment.retain(|pair| !pair.starts_with(&begin));
    environment.push([begin, value.as_bytes().to_vec()].concat());
    Ok(())
}

/// The user's `TERM`, if it is a plain name; programs in the sandbox use it only as a look-up key.
fn terminal_kind(terminal: Option<&Terminal>) -> Vec<u8> {
    let kind = terminal.map_or("dumb", |terminal| terminal.kind.as_str());
    let is_plain = !kind.is_empty()
        && kind.len() <= MAX_KIND
        && kind
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_+.".contains(&byte));
    format!("TERM={}", if is_plain { kind } else { "xterm" }).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_takes_the_place_of_one_of_its_name() {
        let mut environment = vec![b"A=1".to_vec(), b"AB=2".to_vec()];
        set_variable(&mut environment, "A", "x=y").expect("a name");
        assert_eq!(environment, [b"AB=2".to_vec(), b"A=x=y".to_vec()]);
        for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0")] {
            assert!(
                set_variable(&mut environment, name, value).is_err(),
                "{name:?}"
            );
        }
    }
}
