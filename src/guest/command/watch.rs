//! Watches a running command for limits that the kernel does not report, and for the processes that
//! use the most while they exist.

use std::time::Duration;

use tokio::time::Instant;

use super::counter_snapshot::file_size;
use crate::culprit::Resource;
use crate::culprit::largest_user;
use crate::culprit::most_processes;
use crate::disk::FreeSpace;
use crate::disk::OwnShare;
use crate::process_tree::wake;
use crate::session::Session;
use podbay_wire::Culprit;
use podbay_wire::Limit;

/// Interval between two checks: short at first, because a hog is quick.
const YOUNG: Duration = Duration::from_millis(20);
const OLD: Duration = Duration::from_millis(100);
const AGE: Duration = Duration::from_secs(2);
/// Checking takes at most this fraction of the time.
const SHARE: u32 = 20;
/// Interval between two checks of the disk.
const DISK: Duration = Duration::from_millis(200);
/// Interval between two checks for writers, under a file size limit: the writer is gone by the time
/// the limit is reported.
const WRITERS: Duration = Duration::from_millis(500);
/// How often processes are counted: a fork bomb is refused constantly.
const COUNTS: u32 = 3;
/// From this share of the memory on its user is looked up, in percent.
const MUCH: u64 = 30;

pub(super) struct ResourceWatch {
    began: Instant,
    next: Instant,
    /// What it may take of the disk.
    part: Option<OwnShare>,
    disk_at: Instant,
    n_refused: u64,
    n_counts: u32,
    memory: Option<Culprit>,
    /// With the supervisor that started them, which may be that of a background command.
    processes: Option<(i32, Culprit)>,
    /// Whether no further process could be started when the time was up.
    is_crowded: bool,
    disk: Option<Culprit>,
    /// The file size limit.
    file_size: Option<u64>,
    writers_at: Instant,
    writer: Option<Culprit>,
}

impl ResourceWatch {
    /// Starts watching a command; `part` turns the free space into what the command may take of it.
    pub(super) fn begin(session: &Session, part: impl Fn(FreeSpace) -> OwnShare) -> Self {
        let began = Instant::now();
        Self {
            began,
            next: began + YOUNG,
            part: session.disk.room().map(part),
            // At once: most commands end before a second check.
            disk_at: began,
            n_refused: session.cgroup.counters().refused_forks,
            n_counts: 0,
            memory: None,
            processes: None,
            is_crowded: false,
            disk: None,
            file_size: file_size(),
            writers_at: began,
            writer: None,
        }
    }

    /// Returns when to check next.
    pub(super) fn at(&self) -> Instant {
        self.next
    }

    /// Checks once; returns the disk limit that the command has crossed.
    pub(super) async fn look(&mut self, session: &Session, supervisor: i32) -> Option<Limit> {
        let now = Instant::now();
        // A stopped supervisor cannot report the command's end.
        wake(supervisor);
        self.look_at_memory(session, supervisor);
        let n_refused = session.cgroup.counters().refused_forks;
        if n_refused > self.n_refused && self.n_counts < COUNTS {
            self.n_refused = n_refused;
            self.n_counts += 1;
            let supervisors = std::iter::once(supervisor).chain(session.jobs.supervisors());
            keep_larger(
                &mut self.processes,
                most_processes(supervisors),
                |(_, culprit)| culprit.count,
            );
        }
        // A fork bomb has too many processes to read twice.
        if self.file_size.is_some() && self.n_counts == 0 && now >= self.writers_at {
            keep_larger(
                &mut self.writer,
                largest_user(supervisor, Resource::Written),
                |culprit| culprit.bytes,
            );
            self.writers_at = Instant::now() + WRITERS;
        }
        let mut crossed = None;
        if now >= self.disk_at {
            crossed = self.look_at_disk(session, supervisor).await;
            self.disk_at = Instant::now() + DISK;
        }
        let pause = if self.began.elapsed() < AGE {
            YOUNG
        } else {
            OLD
        };
        self.next = Instant::now() + pause.max(now.elapsed() * SHARE);
        crossed
    }

    /// Checks the disk once more after the command's end, however short it was.
    pub(super) async fn last_look(&mut self, session: &Session, supervisor: i32) -> Option<Limit> {
        self.look_at_disk(session, supervisor).await
    }

    fn look_at_memory(&mut self, session: &Session, supervisor: i32) {
        let (Some(used), Some(limit)) =
            (session.cgroup.used_bytes(), session.cgroup.memory_bytes())
        else {
            return;
        };
        if used > limit / 100 * MUCH {
            keep_larger(
                &mut self.memory,
                largest_user(supervisor, Resource::Memory),
                |culprit| culprit.bytes,
            );
        }
    }

    async fn look_at_disk(&mut self, session: &Session, supervisor: i32) -> Option<Limit> {
        let (part, now) = (self.part?, session.disk.room()?);
        let limit = session.disk.crossed(part, now)?;
        // Empty files take no bytes, so the busiest process is named.
        let by = if matches!(limit, Limit::Files { .. } | Limit::FreeFiles { .. }) {
            Resource::Work
        } else {
            Resource::Written
        };
        self.disk = largest_user(supervisor, by)
            .filter(|culprit| by != Resource::Written || has_share(culprit.bytes, part.taken(now)));
        if !session.is_ours(limit, now).await {
            return None;
        }
        if session.n_background() > 0 {
            // Background commands may have written it; this command is judged by what it takes from
            // here on.
            session.end_background().await;
            session.tell_of_filled_disk(limit);
            self.part = session.disk.room().map(OwnShare::Some);
            return None;
        }
        Some(limit)
    }

    /// Returns the process that met a limit, if one was seen; for a timeout, what still ran.
    pub(super) fn culprit(&mut self, limit: Option<Limit>) -> Option<Culprit> {
        match limit? {
            // A process that sleeps beside the actual user is not to blame.
            Limit::Memory { bytes } => self
                .memory
                .take()
                .filter(|culprit| has_share(culprit.bytes, bytes)),
            Limit::Time { .. } => self.memory.take(),
            Limit::Processes { .. } => self.processes.take().map(|(_, culprit)| culprit),
            Limit::Disk { .. }
            | Limit::Files { .. }
            | Limit::FreeSpace { .. }
            | Limit::FreeFiles { .. } => self.disk.take(),
            Limit::FileSize { bytes } => self
                .writer
                .take()
                .filter(|culprit| has_share(culprit.bytes, bytes)),
        }
    }

    /// Returns whether a process was seen that wrote enough for a file that is too large.
    pub(super) fn saw_a_writer(&self) -> bool {
        self.writer
            .as_ref()
            .zip(self.file_size)
            .is_some_and(|(culprit, bytes)| has_share(culprit.bytes, bytes))
    }

    /// Names the background command that had more processes than this one, or any other.
    pub(super) fn crowd(&self, session: &Session, supervisor: i32) -> Option<String> {
        let (crowded, culprit) = self
            .processes
            .as_ref()
            .filter(|(other, _)| *other != supervisor)?;
        let most = session.jobs.named(*crowded)?;
        Some(format!(
            "most processes in the sandbox are of {most}: {} were seen",
            culprit.count
        ))
    }

    /// Returns whether no further process could be started when the time was up.
    pub(super) fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// Looks at the processes when the time is up: afterwards they are gone. Where all processes
    /// are in use, ending them comes first.
    pub(super) fn time_is_up(&mut self, session: &Session, supervisor: i32) {
        self.is_crowded = session.cgroup.has_no_free_process();
        let own = self
            .processes
            .as_ref()
            .filter(|(seen, _)| *seen == supervisor)
            .map(|(_, culprit)| culprit.clone());
        self.memory = own.or_else(|| largest_user(supervisor, Resource::Memory));
    }
}

/// Returns whether written bytes are a relevant share of the space taken. Reserving space and
/// writing to a mapping do not count as writes: the largest number seen may then be that of a shell
/// that printed a line.
fn has_share(written: u64, taken: u64) -> bool {
    written > 0 && written >= taken / 8
}

fn keep_larger<T>(kept: &mut Option<T>, seen: Option<T>, size: impl Fn(&T) -> u64) {
    if seen.as_ref().map(&size) > kept.as_ref().map(&size) {
        *kept = seen;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_wrote_a_line_is_not_blamed_for_a_full_disk() {
        assert!(!has_share(4, 40 << 20) && !has_share(0, 0) && !has_share(0, 40 << 20));
        assert!(has_share(40 << 20, 40 << 20) && has_share(5 << 20, 40 << 20) && has_share(4, 0));
    }
}
