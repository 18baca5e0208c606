//! Wakes serving processes and spawners that commands stop: all have the same user, and only PID 1
//! cannot be stopped.
//!
//! A stopped process is woken. If a command stops it again and again, all commands are killed; if
//! even that does not help, the serving processes are, and with them all their descendants.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use nix::sys::signalfd::siginfo;

use super::culprit::is_command;
use super::process_tree::children;
use super::process_tree::is_stopped;
use super::process_tree::kill_trees;
use super::process_tree::own_children;
use super::unix::kill;

/// Pause between two checks once a process was found stopped.
const SOON: Duration = Duration::from_millis(50);

/// A process found stopped so often despite waking counts as under attack.
const TOO_OFTEN: u32 = 10;

/// After so long without a find the count restarts.
const CALM: Duration = Duration::from_secs(3);

/// How often commands of this sandbox were killed because they stopped this process.
static N_ENDED: AtomicU32 = AtomicU32::new(0);

/// PID 1's memory of stopped serving processes.
#[derive(Debug, Default)]
pub(super) struct ServeRescue {
    n_found: u32,
    last: Option<Instant>,
}

impl ServeRescue {
    /// Checks serving processes; returns whether to check again soon.
    pub(super) fn look(&mut self, serving: &[i32]) -> bool {
        let spawners: Vec<i32> = serving.iter().flat_map(|&pid| children(pid)).collect();
        let found = serving.iter().chain(&spawners).any(|&pid| is_stopped(pid));
        let is_calm = self.last.is_none_or(|last| last.elapsed() > CALM);
        if !found {
            if is_calm {
                *self = Self::default();
            }
            return !is_calm;
        }
        self.last = Some(Instant::now());
        self.n_found += 1;
        if self.n_found >= 2 * TOO_OFTEN {
            // A command that got rid of its supervisor is a direct child of the serving process.
            kill_trees(|| serving.to_vec());
            *self = Self::default();
        } else if self.n_found.is_multiple_of(TOO_OFTEN) {
            let supervisors: Vec<i32> = spawners.iter().flat_map(|&pid| children(pid)).collect();
            kill_trees(|| supervisors.iter().flat_map(|&pid| children(pid)).collect());
            for &pid in serving {
                // The default action of this signal is to be ignored.
                kill(pid, libc::SIGURG);
            }
            wake(&supervisors);
        }
        wake(&spawners);
        wake(serving);
        true
    }

    /// Returns how long to wait before the next check.
    pub(super) fn pause(is_soon: bool, tick: Duration) -> Duration {
        if is_soon { SOON } else { tick }
    }
}

/// The checks of a serving process itself, while a command does not start or end: in a run's own
/// sandbox it is PID 1, and no other process checks.
#[derive(Debug, Default)]
pub(super) struct SpawnerRescue {
    n_found: u32,
}

impl SpawnerRescue {
    /// Wakes stopped descendants. If that does not last, the commands are killed, and finally the
    /// spawner, which ends the sandbox. Returns whether commands were killed.
    pub(super) fn look(&mut self) -> bool {
        let spawners = own_children();
        let supervisors: Vec<i32> = spawners.iter().flat_map(|&pid| children(pid)).collect();
        if !spawners
            .iter()
            .chain(&supervisors)
            .any(|&pid| is_stopped(pid))
        {
            return false;
        }
        self.n_found += 1;
        if self.n_found >= 2 * TOO_OFTEN {
            kill_trees(|| spawners.clone());
        } else if self.n_found == TOO_OFTEN {
            // The process that is about to become a command is spared.
            kill_trees(|| {
                supervisors
                    .iter()
                    .flat_map(|&pid| children(pid))
                    .filter(|&pid| is_command(pid))
                    .collect()
            });
            N_ENDED.fetch_add(1, Ordering::Relaxed);
        }
        wake(&supervisors);
        wake(&spawners);
        self.n_found == TOO_OFTEN
    }
}

fn wake(pids: &[i32]) {
    for &pid in pids.iter().filter(|&&pid| is_stopped(pid)) {
        kill(pid, libc::SIGCONT);
    }
}

/// Handles PID 1's signal that it has killed the commands of this process. No other process can
/// send it with that pid.
pub(super) fn note_signal(signal: &siginfo) {
    if signal.ssi_signo == libc::SIGURG as u32
        && signal.ssi_code == libc::SI_USER
        && signal.ssi_pid == 1
    {
        N_ENDED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns how often that has happened.
pub(super) fn n_ended() -> u32 {
    N_ENDED.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::SigSet;
    use nix::sys::signal::Signal;
    use nix::sys::signalfd::SfdFlags;
    use nix::sys::signalfd::SignalFd;

    use super::*;

    #[test]
    fn only_pid_1_can_report_that_it_killed_commands() {
        let urgent = SigSet::from(Signal::SIGURG);
        urgent.thread_block().expect("blocked");
        let signals = SignalFd::with_flags(&urgent, SfdFlags::SFD_CLOEXEC).expect("a descriptor");
        nix::sys::signal::raise(Signal::SIGURG).expect("sent");
        let mut signal = signals.read_signal().expect("read").expect("one waits");
        let before = n_ended();
        note_signal(&signal);
        assert_eq!(n_ended(), before, "from this process");
        signal.ssi_pid = 1;
        signal.ssi_code = libc::SI_QUEUE;
        note_signal(&signal);
        assert_eq!(
            n_ended(),
            before,
            "any process can fake the sender of a queued signal"
        );
        signal.ssi_code = libc::SI_USER;
        note_signal(&signal);
        assert_eq!(n_ended(), before + 1);
    }

    #[test]
    fn processes_that_are_not_stopped_are_left_alone() {
        let mut rescue = ServeRescue::default();
        assert!(!rescue.look(&[std::process::id() as i32]));
        assert_eq!(rescue.n_found, 0);
        assert_eq!(
            (
                ServeRescue::pause(false, CALM),
                ServeRescue::pause(true, CALM)
            ),
            (CALM, SOON)
        );
    }
}
