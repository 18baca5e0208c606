use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;

use nix::sys::resource::RLIM_INFINITY;
use nix::sys::resource::Resource;
use nix::sys::resource::getrlimit;

use crate::cgroup::Counters;
use crate::process_tree::is_in_own_sandbox;
use crate::session::Session;
use podbay_wire::Limit;
use podbay_wire::size;

/// The sandbox's counters before a command, and whether it runs alone.
pub(super) struct CounterSnapshot<'session> {
    session: &'session Session,
    before: Counters,
    /// The number of this command; `None` where others were running.
    alone_as: Option<usize>,
}

impl<'session> CounterSnapshot<'session> {
    pub(super) fn begin(session: &'session Session) -> Self {
        let n_running = session.n_running.fetch_add(1, Ordering::Relaxed);
        let number = session.n_started.fetch_add(1, Ordering::Relaxed) + 1;
        let alone_as = (is_in_own_sandbox() && n_running == 0 && session.n_background() == 0)
            .then_some(number);
        Self {
            session,
            before: session.cgroup.counters(),
            alone_as,
        }
    }

    /// Returns whether a fork was refused in the sandbox since the command began.
    pub(super) fn refused_forks(&self) -> bool {
        self.session.cgroup.counters().refused_forks > self.before.refused_forks
    }

    /// Reports how many processes of the sandbox were killed for memory since the command began, if
    /// any: the command may have met another limit in the end.
    pub(super) fn starved(&self) -> Option<String> {
        let count = self
            .session
            .cgroup
            .counters()
            .oom_kills
            .saturating_sub(self.before.oom_kills);
        let bytes = self.session.cgroup.memory_bytes()?;
        (count > 0).then(|| format!("{count} processes in the sandbox were killed meanwhile: out of memory, the limit of `sandbox.memory` is {}", size(bytes)))
    }

    /// Returns the limit of the sandbox that this command met.
    ///
    /// The counters are those of the whole sandbox. A command killed by KILL counts as the OOM
    /// killer's victim; otherwise it must have been the only command, which is unknown in a sandbox
    /// that several controllers share.
    pub(super) fn limit(&self, status: ExitStatus) -> Option<Limit> {
        let after = self.session.cgroup.counters();
        let alone = self.alone_as == Some(self.session.n_started.load(Ordering::Relaxed));
        let killed = died_of(status, libc::SIGKILL);
        if after.oom_kills > self.before.oom_kills && (killed || alone) {
            return Some(Limit::Memory {
                bytes: self.session.cgroup.memory_bytes().unwrap_or(0),
            });
        }
        let refused =
            after.refused_forks > self.before.refused_forks && (alone || !status.success());
        refused.then(|| Limit::Processes {
            count: self.session.cgroup.n_processes().unwrap_or(0),
        })
    }
}

/// Returns whether a command ended like one that exceeded the file size. Any program may exit with
/// a shell's code for that, so the code counts only with a `sign` of it.
pub(super) fn met_file_size(status: ExitStatus, sign: bool) -> bool {
    died_of(status, libc::SIGXFSZ) && (sign || status.signal().is_some())
}

fn died_of(status: ExitStatus, signal: i32) -> bool {
    status.signal() == Some(signal) || status.code() == Some(128 + signal)
}

/// Returns the file size limit, if there is one.
pub(super) fn file_size() -> Option<u64> {
    getrlimit(Resource::RLIMIT_FSIZE)
        .ok()
        .map(|(bytes, _)| bytes)
        .filter(|&bytes| bytes != RLIM_INFINITY)
}

impl Drop for CounterSnapshot<'_> {
    fn drop(&mut self) {
        self.session.n_running.fetch_sub(1, Ordering::Relaxed);
    }
}
