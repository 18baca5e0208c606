//! PID 1 of `podbay up`: keeps the sandbox alive while there are controllers, and for a lease
//! after.
//!
//! It has no connection. A controller is a process with parent 0: the engine started it from
//! outside, and no process in the sandbox can fake that, because orphans get parent 1. Processes
//! with parent 1 were left behind by a controller that was killed, and are ended.

use std::io;
use std::os::fd::AsFd;
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

use super::process_tree::kill_trees;
use super::process_tree::own_children;
use super::process_tree::processes;
use super::process_tree::stat;
use super::rescue;
use super::rescue::ServeRescue;
use super::unix::Reaped;
use super::unix::reap;

/// Interval between two checks.
const TICK: Duration = Duration::from_secs(1);

/// Runs until a TERM from outside, or until the lease ran out without a controller.
pub(super) fn run(lease: Duration) -> io::Result<()> {
    let signals = signals()?;
    let mut alone_since = Instant::now();
    let mut rescue = ServeRescue::default();
    let mut is_soon = false;
    loop {
        let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        let _ = poll(
            &mut fds,
            PollTimeout::try_from(ServeRescue::pause(is_soon, TICK)).unwrap_or(PollTimeout::MAX),
        );
        if told_to_end(&signals) {
            return Ok(());
        }
        while let Reaped::Ended(_) = reap() {}
        if !own_children().is_empty() {
            kill_trees(own_children);
        }
        let controllers = controllers();
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

fn controllers() -> Vec<i32> {
    processes()
        .filter(|&pid| pid != 1 && stat(pid).is_some_and(|stat| stat.parent == 0))
        .collect()
}
