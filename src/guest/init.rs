//! PID 1 of `podbay up`: keeps the sandbox alive while there are controllers, and for a lease
//! after.
//!
//! A controller has a serving process here: one with parent 0, which the engine started from
//! outside, or one that was forked from here for a controller that waits at a socket. No process in
//! the sandbox can fake parent 0, because orphans get parent 1. Other processes with parent 1 were
//! left behind by a controller that was killed, and are ended.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use nix::poll::PollFd;
use nix::poll::PollFlags;
use nix::poll::PollTimeout;
use nix::poll::poll;
use nix::sys::signal::SigSet;
use nix::sys::signal::Signal;
use nix::sys::signalfd::SfdFlags;
use nix::sys::signalfd::SignalFd;

use super::controller_sockets::ControllerSockets;
use super::process_tree::kill_trees;
use super::process_tree::own_children;
use super::process_tree::processes;
use super::process_tree::stat;
use super::rescue;
use super::rescue::ServeRescue;
use super::role::Sharing;
use super::role::run_serve;
use super::unix::Fork;
use super::unix::Reaped;
use super::unix::exit_now;
use super::unix::fork_single_threaded;
use super::unix::reap;

/// Interval between two checks.
const TICK: Duration = Duration::from_secs(1);

/// Most controllers that are served from here; others join by the engine.
const MAX_SERVING: usize = 64;

const WORKSPACE: &str = "/workspace";

/// Runs until a TERM from outside, or until the lease ran out without a controller.
pub(super) fn run(
    lease: Duration,
    sockets: Option<PathBuf>,
    environment: &[Vec<u8>],
) -> io::Result<()> {
    let signals = signals()?;
    // Without, controllers join by the engine.
    let mut sockets = sockets.and_then(|folder| ControllerSockets::watch(folder).ok());
    let mut serving = HashSet::new();
    let mut alone_since = Instant::now();
    let mut rescue = ServeRescue::default();
    let mut is_soon = false;
    loop {
        wait(
            &signals,
            sockets.as_ref(),
            ServeRescue::pause(is_soon, TICK),
        );
        if told_to_end(&signals) {
            return Ok(());
        }
        while let Reaped::Ended(ended) = reap() {
            serving.remove(&ended.pid);
        }
        let orphans = || {
            own_children()
                .into_iter()
                .filter(|pid| !serving.contains(pid))
                .collect::<Vec<_>>()
        };
        if !orphans().is_empty() {
            kill_trees(orphans);
        }
        let room = MAX_SERVING.saturating_sub(serving.len());
        let connected = sockets.as_mut().map(|sockets| sockets.connect_new(room));
        for connection in connected.unwrap_or_default() {
            match fork_single_threaded()? {
                Fork::Parent(pid) => {
                    serving.insert(pid);
                }
                Fork::Child => {
                    drop((sockets, signals));
                    exit_now(serve(connection, environment.to_vec()))
                }
            }
        }
        let controllers: Vec<i32> = controllers().chain(serving.iter().copied()).collect();
        // Commands have the same user and can stop a controller's guest; it is woken soon.
        is_soon = rescue.look(&controllers);
        if !controllers.is_empty() {
            alone_since = Instant::now();
        }
        if alone_since.elapsed() >= lease {
            return Ok(());
        }
    }
}

/// Signals that PID 1 handles; all are blocked.
pub(super) fn signals() -> io::Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGCHLD);
    set.add(Signal::SIGTERM);
    set.add(Signal::SIGINT);
    set.add(Signal::SIGURG);
    Ok(SignalFd::with_flags(
        &set,
        SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
    )?)
}

/// Reads pending signals; returns whether a TERM from outside of the sandbox is among them.
pub(super) fn told_to_end(signals: &SignalFd) -> bool {
    let mut told = false;
    while let Ok(Some(signal)) = signals.read_signal() {
        rescue::note_signal(&signal);
        let ends = [libc::SIGTERM, libc::SIGINT].contains(&(signal.ssi_signo as i32));
        // A sender without a pid in this namespace is outside. Commands can send the signal too,
        // but with a pid; other ways to send one have another code, or are denied by the filter on
        // commands.
        told |= ends && signal.ssi_code == libc::SI_USER && signal.ssi_pid == 0;
    }
    told
}

fn wait(signals: &SignalFd, sockets: Option<&ControllerSockets>, pause: Duration) {
    let mut fds: Vec<PollFd<'_>> = std::iter::once(signals.as_fd())
        .chain(sockets.map(AsFd::as_fd))
        .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
        .collect();
    let _ = poll(
        &mut fds,
        PollTimeout::try_from(pause).unwrap_or(PollTimeout::MAX),
    );
}

/// Serves one controller, as a process that the engine starts does; returns the exit code.
fn serve(connection: OwnedFd, environment: Vec<Vec<u8>>) -> i32 {
    let served = std::env::set_current_dir("/")
        .and_then(|()| connection.try_clone())
        .and_then(|output| {
            let workspace = PathBuf::from(WORKSPACE);
            run_serve(workspace, environment, Sharing::Shared, connection, output)
        });
    i32::from(served.is_err())
}

/// Returns the processes that the engine started.
fn controllers() -> impl Iterator<Item = i32> {
    processes().filter(|&pid| pid != 1 && stat(pid).is_some_and(|stat| stat.parent == 0))
}
