//! PID 1 of `podbay up`: keeps the box alive while there are controllers, and for a while after.
//!
//! It speaks to nobody. A controller is a process with parent 0: the engine started it from
//! outside, and no process in the box can look like one, because orphans get parent 1. What has
//! parent 1 was left behind by a controller that was killed, and is ended.

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

use super::family::kill_trees;
use super::family::own_children;
use super::family::processes;
use super::family::stat;
use super::rescue;
use super::rescue::Rescue;
use super::unix::Reaped;
use super::unix::reap;

/// How often it looks around.
const TICK: Duration = Duration::from_secs(1);

/// Runs until a TERM from outside, or until there was no controller for the time of the lease.
pub(super) fn run(lease: Duration) -> io::Result<()> {
    let signals = signals()?;
    let mut alone_since = Instant::now();
    let mut rescue = Rescue::default();
    let mut is_soon = false;
    loop {
        let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        let _ = poll(
            &mut fds,
            PollTimeout::try_from(Rescue::pause(is_soon, TICK)).unwrap_or(PollTimeout::MAX),
        );
        if told_to_end(&signals) {
            return Ok(());
        }
        while let Reaped::Ended(_) = reap() {}
        if !own_children().is_empty() {
            kill_trees(own_children);
        }
        let controllers = controllers();
        // Commands are of the same user and can stop a controller's guest; that must not be for
        // long.
        is_soon = rescue.look(&controllers);
        if !controllers.is_empty() {
            alone_since = Instant::now();
        }
        if alone_since.elapsed() >= lease {
            return Ok(());
        }
    }
}

/// Signals that PID 1 listens to; all are blocked.
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

/// Takes what has arrived; returns whether somebody outside of the box asks it to end.
pub(super) fn told_to_end(signals: &SignalFd) -> bool {
    let mut told = false;
    while let Ok(Some(signal)) = signals.read_signal() {
        rescue::heard(&signal);
        let ends = [libc::SIGTERM, libc::SIGINT].contains(&(signal.ssi_signo as i32));
        // A sender that this box has no number for is outside of it. Commands can send the signal
        // too, but not from there; the other ways to send one leave another code, and where they do
        // not, the filter on commands refuses them.
        told |= ends && signal.ssi_code == libc::SI_USER && signal.ssi_pid == 0;
    }
    told
}

fn controllers() -> Vec<i32> {
    processes()
        .filter(|&pid| pid != 1 && stat(pid).is_some_and(|stat| stat.parent == 0))
        .collect()
}
