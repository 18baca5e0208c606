//! Ending a running command: TERM, KILL, and finally ending the sandbox.

use std::fmt::Write;
use std::time::Duration;

use tokio::time::Instant;

use super::RunningCommand;
use crate::order::StopOrder;
use crate::process_tree::is_stopped;
use crate::process_tree::kill_in_place_of;
use crate::process_tree::wake;
use podbay_wire::Culprit;
use podbay_wire::Fault;
use podbay_wire::Limit;

/// How long processes may remain after KILL before the sandbox ends.
const KILLED: Duration = Duration::from_secs(2);

/// Pause between two checks whether the supervisor, which kills, was stopped again.
const AGAIN: Duration = Duration::from_millis(100);

#[derive(Clone, Copy)]
pub(super) enum StopReason {
    Cancelled,
    Timeout,
    /// A limit that the guest itself watches.
    Crossed(Limit),
}

#[derive(Clone, Copy)]
pub(super) enum Stopping {
    No { timeout_at: Option<Instant> },
    Asked { kill_at: Instant, again_at: Instant },
    Killed { gone_at: Instant, again_at: Instant },
}

impl RunningCommand<'_> {
    pub(super) fn next_time(&self) -> Option<Instant> {
        match (&self.ended, self.stopping) {
            (Some(over), _) => over.until,
            (None, Stopping::No { .. }) if self.asked_at.is_some() => None,
            (None, Stopping::No { timeout_at }) => timeout_at,
            (None, Stopping::Asked { kill_at, again_at }) => Some(kill_at.min(again_at)),
            (None, Stopping::Killed { gone_at, again_at }) => Some(gone_at.min(again_at)),
        }
    }

    /// Asks the command to end; a second call does not wait for that.
    pub(super) fn stop(&mut self, why: StopReason) {
        self.why = self.why.or(Some(why));
        match self.stopping {
            Stopping::No { .. } if !self.grace.is_zero() => {
                self.started.control.order(StopOrder::Term);
                // A command can stop its supervisor; the supervisor must still receive the order.
                wake(self.started.supervisor);
                let now = Instant::now();
                self.stopping = Stopping::Asked {
                    kill_at: now + self.grace,
                    again_at: now + AGAIN,
                };
            }
            Stopping::No { .. } | Stopping::Asked { .. } => {
                if self.count.refused_forks() {
                    self.started.control.kill_at_once();
                } else {
                    self.started.control.kill();
                }
                // A command can stop its supervisor, which has the same user; it must be killed all
                // the same.
                wake(self.started.supervisor);
                let now = Instant::now();
                self.stopping = Stopping::Killed {
                    gone_at: now + KILLED,
                    again_at: now + AGAIN,
                };
            }
            Stopping::Killed { .. } => {}
        }
    }

    pub(super) fn time_is_up(&mut self) -> Result<(), Fault> {
        if self.ended.is_some() {
            for source in &mut self.sources {
                source.is_open = false;
            }
            self.tail.clear();
            return Ok(());
        }
        match self.stopping {
            Stopping::No { .. } => {
                self.watch.time_is_up(self.session, self.started.supervisor);
                if self.count.refused_forks() {
                    // In a fork bomb each process that ends makes room for another one, and asking
                    // hundreds takes too long.
                    self.grace = Duration::ZERO;
                }
                self.stop(StopReason::Timeout);
            }
            // A command that stops its supervisor still gets no grace.
            Stopping::Asked { kill_at, .. }
                if Instant::now() < kill_at && !is_stopped(self.started.supervisor) =>
            {
                self.stopping = Stopping::Asked {
                    kill_at,
                    again_at: Instant::now() + AGAIN,
                };
            }
            Stopping::Asked { .. } => self.stop(StopReason::Timeout),
            Stopping::Killed { gone_at, .. } if Instant::now() < gone_at => {
                // The supervisor may be stopped again and again; the guest cannot be stopped.
                kill_in_place_of(self.started.supervisor);
                self.started.control.insist(
                    KILLED.saturating_sub(gone_at.saturating_duration_since(Instant::now())),
                );
                if self.rescue.look() {
                    self.session.tell_of_stopping();
                }
                self.stopping = Stopping::Killed {
                    gone_at,
                    again_at: Instant::now() + AGAIN,
                };
            }
            Stopping::Killed { .. } => {
                let reason = self.not_emptied();
                return Err(self.session.end_box(reason));
            }
        }
        Ok(())
    }

    /// Reports what could not be ended, and which limits the command had met: the model's only hint
    /// to the cause.
    fn not_emptied(&mut self) -> String {
        // The limits come first: the user's line is truncated at its end.
        let mut reason = String::new();
        if let (Some(StopReason::Timeout), Some(timeout)) = (self.why, self.timeout) {
            let _ = write!(
                reason,
                "the command ran longer than its limit of {} s; ",
                timeout.as_secs_f64().ceil()
            );
        }
        if self.count.refused_forks()
            && let Some(count) = self.session.cgroup.n_processes()
        {
            let _ = write!(
                reason,
                "it ran into the limit of {count} processes in the sandbox, `sandbox.pids`"
            );
            if let Some(Culprit { name, count, .. }) =
                self.watch.culprit(Some(Limit::Processes { count }))
            {
                let _ = write!(
                    reason,
                    ", most of them `{}` ({count} seen)",
                    name.escape_debug()
                );
            }
            reason.push_str("; ");
        }
        reason + "its processes still existed 2 s after they were killed"
    }
}
