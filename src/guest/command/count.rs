use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;

use nix::sys::resource::RLIM_INFINITY;
use nix::sys::resource::Resource;
use nix::sys::resource::getrlimit;

use crate::cgroup::Counters;
use crate::family::is_in_own_box;
use crate::session::Session;
use podbay_wire::Limit;
use podbay_wire::size;

/// The counters of the box before a command, and whether it runs alone.
pub(super) struct Count<'session> {
    session: &'session Session,
    before: Counters,
    /// The number of this command; `None` where others were running.
    alone_as: Option<usize>,
}

impl<'session> Count<'session> {
    pub(super) fn begin(session: &'session Session) -> Self {
        let n_running = session.n_running.fetch_add(1, Ordering::Relaxed);
        let number = session.n_started.fetch_add(1, Ordering::Relaxed) + 1;
        let alone_as =
            (is_in_own_box() && n_running == 0 && session.n_background() == 0).then_some(number);
        Self {
            session,
            before: session.cgroup.counters(),
            alone_as,
        }
    }

    /// Returns whether the box has refused a process since the command began.
    pub(super) fn refused_forks(&self) -> bool {
        self.session.cgroup.counters().refused_forks > self.before.refused_forks
    }

    /// Says how many processes of the box were killed for memory since the command began, where
    /// there were any: what it ran into in the end may be another limit.
    pub(super) fn starved(&self) -> Option<String> {
        let count = self
            .session
            .cgroup
            .counters()
            .oom_kills
            .saturating_sub(self.before.oom_kills);
        let bytes = self.session.cgroup.memory_bytes()?;
        (count > 0).then(|| format!("{count} processes in the sandbox were killed meanwhile: out of memory, its limit is {}", size(bytes)))
    }

    /// Returns the limit of the box that this command ran into.
    ///
    /// The counters are the whole box's. A command that died of KILL is taken for the one that was
    /// meant; otherwise it must have been the only one, which nobody knows in a box that several
    /// controllers share.
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

/// Returns whether a command ended as one does whose file came to be too large. A shell's exit code
/// for that is any program's to choose, so it counts only with a `sign` of one.
pub(super) fn met_file_size(status: ExitStatus, sign: bool) -> bool {
    died_of(status, libc::SIGXFSZ) && (sign || status.signal().is_some())
}

fn died_of(status: ExitStatus, signal: i32) -> bool {
    status.signal() == Some(signal) || status.code() == Some(128 + signal)
}

/// Returns how large a file may become, where that is limited.
pub(super) fn file_size() -> Option<u64> {
    getrlimit(Resource::RLIMIT_FSIZE)
        .ok()
        .map(|(bytes, _)| bytes)
        .filter(|&bytes| bytes != RLIM_INFINITY)
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.session.n_running.fetch_sub(1, Ordering::Relaxed);
    }
}
