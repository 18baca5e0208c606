//! What PID 1 does for serving processes that commands stop, and those for who starts commands: all
//! are of the same user, and PID 1 alone cannot be stopped.
//!
//! One that was stopped is woken. Where that does not last, because a command stops it again and
//! again, all commands are ended; where even that does not help, the serving processes are, and
//! with them everything below.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use nix::sys::signalfd::siginfo;

use super::culprit::is_command;
use super::family::children;
use super::family::is_stopped;
use super::family::kill_trees;
use super::family::own_children;
use super::unix::kill;

/// Between two looks, once something was found stopped.
const SOON: Duration = Duration::from_millis(50);

/// Found stopped so often, woken each time: who does that to them goes on.
const TOO_OFTEN: u32 = 10;

/// After so long without a find the count begins anew.
const CALM: Duration = Duration::from_secs(3);

/// How often commands of this box were ended because they stopped this process.
static N_ENDED: AtomicU32 = AtomicU32::new(0);

/// What PID 1 remembers of who was found stopped.
#[derive(Debug, Default)]
pub(super) struct Rescue {
    n_found: u32,
    last: Option<Instant>,
}

impl Rescue {
    /// Looks after serving processes; returns whether to look again soon.
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
            // A command that got rid of its supervisor stands in its place, where it is not looked
            // for below.
            kill_trees(|| serving.to_vec());
            *self = Self::default();
        } else if self.n_found.is_multiple_of(TOO_OFTEN) {
            let supervisors: Vec<i32> = spawners.iter().flat_map(|&pid| children(pid)).collect();
            kill_trees(|| supervisors.iter().flat_map(|&pid| children(pid)).collect());
            for &pid in serving {
                // Nobody minds this signal who does not listen for it.
                kill(pid, libc::SIGURG);
            }
            wake(&supervisors);
        }
        wake(&spawners);
        wake(serving);
        true
    }

    /// Returns how long to wait before the next look.
    pub(super) fn pause(is_soon: bool, tick: Duration) -> Duration {
        if is_soon { SOON } else { tick }
    }
}

/// What a serving process does itself while a command does not start, or not end: in a run's own
/// box it is PID 1, and nobody else looks.
#[derive(Debug, Default)]
pub(super) struct Below {
    n_found: u32,
}

impl Below {
    /// Wakes who is stopped below this process. Where that does not last the commands are ended,
    /// and in the end who starts them, and with that the box. Returns whether the commands were.
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
            // The one that is to start is not a command yet, and is spared.
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

/// Takes in PID 1's word that it has ended the commands of this process. Nobody else can send it
/// with that number.
pub(super) fn heard(signal: &siginfo) {
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
    fn only_pid_1_can_say_that_it_has_ended_commands() {
        let urgent = SigSet::from(Signal::SIGURG);
        urgent.thread_block().expect("blocked");
        let signals = SignalFd::with_flags(&urgent, SfdFlags::SFD_CLOEXEC).expect("a descriptor");
        nix::sys::signal::raise(Signal::SIGURG).expect("sent");
        let mut signal = signals.read_signal().expect("read").expect("one waits");
        let before = n_ended();
        heard(&signal);
        assert_eq!(n_ended(), before, "from this process");
        signal.ssi_pid = 1;
        signal.ssi_code = libc::SI_QUEUE;
        heard(&signal);
        assert_eq!(
            n_ended(),
            before,
            "anybody can write a number into a signal that is queued"
        );
        signal.ssi_code = libc::SI_USER;
        heard(&signal);
        assert_eq!(n_ended(), before + 1);
    }

    #[test]
    fn who_is_not_stopped_is_let_alone() {
        let mut rescue = Rescue::default();
        assert!(!rescue.look(&[std::process::id() as i32]));
        assert_eq!(rescue.n_found, 0);
        assert_eq!(
            (Rescue::pause(false, CALM), Rescue::pause(true, CALM)),
            (CALM, SOON)
        );
    }
}
