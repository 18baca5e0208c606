//! How a running command is ended: asked, killed, and in the end given up together with its box.

use std::fmt::Write;
use std::time::Duration;

use tokio::time::Instant;

use super::Run;
use crate::family::is_stopped;
use crate::family::kill_in_place_of;
use crate::family::wake;
use crate::order::Stop;
use podbay_wire::Culprit;
use podbay_wire::Fault;
use podbay_wire::Limit;

/// How long after KILL something may still be there before the box ends.
const KILLED: Duration = Duration::from_secs(2);

/// Between two looks at whether the supervisor, which is to kill, was stopped again.
const AGAIN: Duration = Duration::from_millis(100);

#[derive(Clone, Copy)]
pub(super) enum StopReason {
    Cancelled,
    Timeout,
    /// A limit that nobody but us watches.
    Crossed(Limit),
}

#[derive(Clone, Copy)]
pub(super) enum Stopping {
    No { timeout_at: Option<Instant> },
    Asked { kill_at: Instant, again_at: Instant },
    Killed { gone_at: Instant, again_at: Instant },
}

impl Run<'_> {
    pub(super) fn next_time(&self) -> Option<Instant> {
        match (&self.ended, self.stopping) {
            (Some(over), _) => over.until,
            (None, Stopping::No { .. }) if self.asked_at.is_some() => None,
            (None, Stopping::No { timeout_at }) => timeout_at,
            (None, Stopping::Asked { kill_at, again_at }) => Some(kill_at.min(again_at)),
            (None, Stopping::Killed { gone_at, again_at }) => Some(gone_at.min(again_at)),
        }
    }

    /// Asks the command to end; asked again, does not wait for that.
    pub(super) fn stop(&mut self, why: StopReason) {
        self.why = self.why.or(Some(why));
        match self.stopping {
            Stopping::No { .. } if !self.grace.is_zero() => {
                self.started.control.order(Stop::Term);
                // A command can stop its supervisor; that must not keep the word from it.
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
                // A command can stop its supervisor, which is of the same user; that must not save
                // it.
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
                    // Of a bomb each that ends makes room for another one, and asking hundreds
                    // takes longer than there is.
                    self.grace = Duration::ZERO;
                }
                self.stop(StopReason::Timeout);
            }
            // Whoever stops its supervisor still gets no time to end by itself.
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
                // It may be stopped again and again; nobody in the box can stop us.
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

    /// Says what could not be ended, and which limits the command had met: that it was killed for
    /// one is the model's only hint.
    fn not_emptied(&mut self) -> String {
        // The limits come first: a person's line is cut at its end.
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
                "it ran into the limit of {count} processes in the sandbox"
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
        reason + "processes of it were still there 2 s after they were killed"
    }
}
