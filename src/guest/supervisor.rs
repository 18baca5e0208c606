//! One process per call: it starts the command, owns all its descendants, and ends them all.
//!
//! It first enters a landlock domain of its own, which the whole call inherits. Its first child
//! installs the last filter before it becomes the command: no command can undo either. What that
//! filter leaves undecided this process is asked about, so it is not under the filter itself. It is
//! a subreaper in a session of its own: a process that leaves its group, its session or its parent
//! still ends up below it. It keeps no descriptor of the command's, so an output ends when the last
//! process of the call does.

use std::fs::File;
use std::io;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::PollFd;
use nix::poll::PollFlags;
use nix::poll::PollTimeout;
use nix::poll::poll;
use nix::sys::signal::SigSet;
use nix::sys::signal::Signal;
use nix::sys::signalfd::SfdFlags;
use nix::sys::signalfd::SignalFd;

use super::call_filter;
use super::call_filter::AskedCalls;
use super::call_filter::Tracing;
use super::child::Stdio;
use super::child::become_command;
use super::domain::Domain;
use super::gate::Gate;
use super::gate::Listener;
use super::order::Answer;
use super::order::Order;
use super::order::Report;
use super::order::Stage;
use super::order::StopOrder;
use super::process_tree::ask_to_end;
use super::process_tree::descendants;
use super::process_tree::end_all;
use super::process_tree::kill_at_once;
use super::process_tree::kill_trees;
use super::process_tree::own_children;
use super::process_tree::stat;
use super::spawner::pair;
use super::unix::Fork;
use super::unix::Reaped;
use super::unix::exit_now;
use super::unix::fork_single_threaded;
use super::unix::kill;
use super::unix::reap;
use super::unix::receive;
use super::unix::send;

/// How long processes that a command leaves behind may finish by themselves: the end of
/// `tee >(sort)` belongs to the output.
const LINGER: Duration = Duration::from_millis(200);

/// Pause between two rounds of KILL.
const KILL_PAUSE: Duration = Duration::from_millis(5);

/// The same where all processes of the sandbox are stopped for a round: the others must get CPU
/// time.
const HOLD_PAUSE: Duration = Duration::from_millis(20);

/// How long a supervisor without its serving process tries to end its processes.
const ORPHANED: Duration = Duration::from_secs(10);

/// Runs the order to its end, in a process forked for it alone.
pub(super) fn supervise(
    order: &Order,
    stdio: Stdio,
    control: &OwnedFd,
    domain: Option<Domain>,
) -> ! {
    match start(order, stdio, control, domain) {
        Ok(begun) => watch(begun, control),
        Err(report) => tell(control, &report),
    }
    exit_now(0)
}

/// A command's first process, which may not have become the command yet.
struct FirstProcess {
    pid: i32,
    signals: SignalFd,
    gate: Arc<Gate>,
    /// Receives the reason for a failed start, as one [`Report`]; closed without data on success.
    failure: File,
}

/// Starts the command. It is reported before it may run: its first act could be to stop this
/// process, which has the same user.
fn start(
    order: &Order,
    stdio: Stdio,
    control: &OwnedFd,
    domain: Option<Domain>,
) -> Result<FirstProcess, Report> {
    let failed = |stage| {
        move |error: io::Error| Report::Failed {
            stage,
            errno: error.raw_os_error().unwrap_or(libc::EIO),
        }
    };
    let prepare = || -> io::Result<_> {
        nix::unistd::setsid()?;
        nix::sys::prctl::set_child_subreaper(true)?;
        let signals = SignalFd::with_flags(
            &SigSet::from(Signal::SIGCHLD),
            SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
        )?;
        let (failure, writer) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        let start = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        let filtered = pair()?;
        let tracing = if domain.is_some() {
            Tracing::Own
        } else {
            Tracing::Refused
        };
        domain.map_or(Ok(()), Domain::enter)?;
        Ok((signals, failure, writer, start, filtered, tracing))
    };
    let (signals, failure, writer, (start, starter), (told, teller), tracing) =
        prepare().map_err(failed(Stage::Prepare))?;
    let pid = match fork_single_threaded().map_err(failed(Stage::Fork))? {
        Fork::Child => {
            drop((starter, told));
            let (execs, writes) = (!order.rules.is_empty(), order.write_gate.is_some());
            let watched = AskedCalls {
                begun: order.gated,
                execs,
                renames: order.may_rename(),
                writes,
            };
            if let Err((stage, error)) = put_on_filter(tracing, watched, teller) {
                let errno = error.raw_os_error().unwrap_or(libc::EIO);
                let _ = nix::unistd::write(&writer, &Report::Failed { stage, errno }.encode());
                exit_now(127);
            }
            // Data, or closed because this process's parent is gone: then the command must not run
            // at all.
            match nix::unistd::read(&start, &mut [0]) {
                Ok(1) => become_command(order, &stdio, &writer),
                _ => exit_now(127),
            }
        }
        Fork::Parent(pid) => pid,
    };
    drop((teller, writer));
    // Another command can stop the process before it becomes the command, so that only a thread
    // waits for it. A thread counts towards the sandbox's process limit.
    let teller = control.try_clone().map_err(failed(Stage::Prepare))?;
    let (begin, may_begin) = mpsc::channel();
    let first = move || {
        let listener = may_begin
            .recv()
            .map_err(io::Error::other)
            .and_then(|()| listener_of_child(&told));
        (listener, starter)
    };
    let gate = Gate::open(first, pid, order, teller).map_err(failed(Stage::Fork))?;
    tell(
        control,
        &Report::Started {
            supervisor: std::process::id() as i32,
            pid,
        },
    );
    let _ = begin.send(());
    // An output ends when the last process of the call does, and this one is none of them.
    drop(stdio);
    Ok(FirstProcess {
        pid,
        signals,
        gate,
        failure: File::from(failure),
    })
}

/// Installs the last filter on this process, which will become the command, and passes the listener
/// to its parent.
fn put_on_filter(
    tracing: Tracing,
    watched: AskedCalls,
    teller: OwnedFd,
) -> Result<(), (Stage, io::Error)> {
    let failed = |error| (Stage::Prepare, error);
    let listener = call_filter::apply(tracing, watched)
        .map_err(failed)?
        .map(Listener::new);
    // A command that must be held at its first write must not run where that is impossible.
    if watched.writes
        && !listener
            .as_ref()
            .is_some_and(Listener::can_answer_with_file)
    {
        return Err((Stage::Hold, Errno::ENOSYS.into()));
    }
    let fds: Vec<RawFd> = listener
        .iter()
        .map(|listener| listener.as_fd().as_raw_fd())
        .collect();
    send(teller.as_fd(), &[1], &fds).map_err(failed)?;
    // The command must never have either: the owner of the listener answers the kernel.
    drop((listener, teller));
    Ok(())
}

/// Waits until the child has its filter. Returns the listener, if the filter asks; an error: the
/// child failed before.
fn listener_of_child(told: &OwnedFd) -> io::Result<Option<Listener>> {
    match receive(told.as_fd(), &mut [0; 1])? {
        (1, fds) => Ok(fds.into_iter().next().map(Listener::new)),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The state of a running call.
#[derive(Default)]
struct CallState {
    status: Option<i32>,
    /// Until when remaining processes may finish by themselves.
    linger: Option<Instant>,
    n_survivors: usize,
    killing: bool,
    /// Killing alone did not help, or would not.
    at_once: bool,
}

/// Waits for the end of everything and reports it.
fn watch(
    FirstProcess {
        pid: main,
        signals,
        gate,
        mut failure,
    }: FirstProcess,
    control: &OwnedFd,
) {
    let mut watch = CallState::default();
    loop {
        while let Ok(Some(_)) = signals.read_signal() {}
        loop {
            match reap() {
                Reaped::Ended(ended) if ended.pid == main => {
                    watch.status = Some(ended.status);
                    watch.linger = Some(Instant::now() + LINGER);
                }
                Reaped::Ended(_) => {}
                Reaped::Running => break,
                Reaped::NoChildren => {
                    let status = watch.status.unwrap_or(libc::SIGKILL);
                    let ended = Report::Ended {
                        status,
                        n_survivors: watch.n_survivors as i32,
                    };
                    // Read only now, when no process is left that could block this: other commands
                    // can stop a process before its exec.
                    let why_not = why_not(&mut failure);
                    let _ended = gate.end_renames();
                    if why_not.is_none() {
                        let (programs, denied) = gate.programs();
                        tell(control, &Report::Ran { programs, denied });
                    }
                    return tell(control, &why_not.unwrap_or(ended));
                }
            }
        }
        if !watch.killing && watch.linger.is_some_and(|end| Instant::now() >= end) {
            watch.killing = true;
            watch.n_survivors = descendants().len();
        }
        if watch.at_once {
            kill_at_once();
        } else if watch.killing {
            // The group's id is the command's as long as its process was not reaped, or the group
            // has members.
            if watch.status.is_none()
                || own_children()
                    .into_iter()
                    .any(|pid| stat(pid).is_some_and(|stat| stat.group == main))
            {
                // The whole group at once: the kernel lets none of it fork meanwhile.
                kill(-main, libc::SIGKILL);
            }
            kill_trees(own_children);
        }
        let pause = if watch.at_once {
            Some(HOLD_PAUSE)
        } else if watch.killing {
            Some(KILL_PAUSE)
        } else {
            watch
                .linger
                .map(|end| end.saturating_duration_since(Instant::now()))
        };
        match wait(&signals, control, pause) {
            Some(Wakeup::StopOrder(StopOrder::Term)) => ask_to_end(),
            Some(Wakeup::Answer(answered)) => gate.answered(answered),
            Some(Wakeup::StopOrder(StopOrder::Kill)) => watch.killing = true,
            Some(Wakeup::StopOrder(StopOrder::KillAtOnce)) => {
                watch.killing = true;
                watch.at_once = true;
            }
            Some(Wakeup::Alone) => {
                end_all(ORPHANED, |_| {});
                return;
            }
            None => {}
        }
    }
}

/// Returns the reason that an ended process gave for not becoming the command.
fn why_not(failure: &mut File) -> Option<Report> {
    let mut told = Vec::new();
    failure.read_to_end(&mut told).ok()?;
    Report::decode(&told)
}

enum Wakeup {
    StopOrder(StopOrder),
    Answer(Answer),
    /// The serving process is gone.
    Alone,
}

/// Waits for a signal, a message of the serving process or the end of the pause.
fn wait(signals: &SignalFd, control: &OwnedFd, pause: Option<Duration>) -> Option<Wakeup> {
    let timeout = pause.map_or(PollTimeout::NONE, |pause| {
        PollTimeout::try_from(pause + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
    });
    let mut fds = [
        PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        PollFd::new(control.as_fd(), PollFlags::POLLIN),
    ];
    poll(&mut fds, timeout).ok()?;
    if fds[1].revents().is_none_or(|events| events.is_empty()) {
        return None;
    }
    let mut buffer = [0; 8];
    match receive(control.as_fd(), &mut buffer) {
        Ok((0, _)) => Some(Wakeup::Alone),
        Ok((1, _)) => StopOrder::decode(buffer[0]).map(Wakeup::StopOrder),
        Ok((length, _)) => Answer::decode(&buffer[..length]).map(Wakeup::Answer),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
        Err(_) => Some(Wakeup::Alone),
    }
}

/// Sends a report; without a receiver, the end of the control socket is noticed anyway.
pub(super) fn tell(control: &OwnedFd, report: &Report) {
    let _ = send(control.as_fd(), &report.encode(), &[]);
}
