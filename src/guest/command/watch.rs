//! Looks at a running command's limits that the kernel does not tell of, and at who takes the most,
//! while there is somebody to look at.

use std::time::Duration;

use tokio::time::Instant;

use super::count::file_size;
use crate::culprit::By;
use crate::culprit::biggest;
use crate::culprit::most_processes;
use crate::disk::Part;
use crate::disk::Room;
use crate::family::wake;
use crate::session::Session;
use podbay_wire::Culprit;
use podbay_wire::Limit;

/// Between two looks: many at first, because a hog is quick.
const YOUNG: Duration = Duration::from_millis(20);
const OLD: Duration = Duration::from_millis(100);
const AGE: Duration = Duration::from_secs(2);
/// Looking takes at most this part of the time.
const SHARE: u32 = 20;
/// Between two looks at the disk.
const DISK: Duration = Duration::from_millis(200);
/// Between two looks at who writes, where a file may come to be too large: it is over by the time
/// that is told.
const WRITERS: Duration = Duration::from_millis(500);
/// How often processes are counted: a bomb is refused all the time.
const COUNTS: u32 = 3;
/// Part of the memory from which on it is worth knowing who has it, in percent.
const MUCH: u64 = 30;

pub(super) struct Watch {
    began: Instant,
    next: Instant,
    /// What it may take of the disk.
    part: Option<Part>,
    disk_at: Instant,
    n_refused: u64,
    n_counts: u32,
    memory: Option<Culprit>,
    /// With the supervisor of who started them, which may be that of a background command.
    processes: Option<(i32, Culprit)>,
    /// Whether no process more could be started when the time was up.
    is_crowded: bool,
    disk: Option<Culprit>,
    /// How large a file may become.
    file_size: Option<u64>,
    writers_at: Instant,
    writer: Option<Culprit>,
}

impl Watch {
    /// Begins to look at a command; `part` makes of what is free what it may take of it.
    pub(super) fn begin(session: &Session, part: impl Fn(Room) -> Part) -> Self {
        let began = Instant::now();
        Self {
            began,
            next: began + YOUNG,
            part: session.disk.room().map(part),
            // With the first look of all: most commands are over before a second one.
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

    /// Returns when to look next.
    pub(super) fn at(&self) -> Instant {
        self.next
    }

    /// Looks once, and returns the limit of the disk that the command has crossed.
    pub(super) async fn look(&mut self, session: &Session, supervisor: i32) -> Option<Limit> {
        let now = Instant::now();
        // One that is stopped cannot say that its command is over.
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
        // Of a bomb there are too many to look at twice.
        if self.file_size.is_some() && self.n_counts == 0 && now >= self.writers_at {
            keep_larger(
                &mut self.writer,
                biggest(supervisor, By::Written),
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

    /// Looks at the disk once more when the command has ended, however short it was.
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
                biggest(supervisor, By::Memory),
                |culprit| culprit.bytes,
            );
        }
    }

    async fn look_at_disk(&mut self, session: &Session, supervisor: i32) -> Option<Limit> {
        let (part, now) = (self.part?, session.disk.room()?);
        let limit = session.disk.crossed(part, now)?;
        // Empty files take no bytes, so there it is told who is busy.
        let by = if matches!(limit, Limit::Files { .. } | Limit::FreeFiles { .. }) {
            By::Work
        } else {
            By::Written
        };
        self.disk = biggest(supervisor, by)
            .filter(|culprit| by != By::Written || has_share(culprit.bytes, part.taken(now)));
        if !session.is_ours(limit, now).await {
            return None;
        }
        if session.n_background() > 0 {
            // It may be theirs; this command is judged by what it takes from here on.
            session.end_background().await;
            session.tell_of_filled_disk(limit);
            self.part = session.disk.room().map(Part::Some);
            return None;
        }
        Some(limit)
    }

    /// Returns who ran into a limit, as far as somebody was seen; of a command that was too slow,
    /// what still ran.
    pub(super) fn culprit(&mut self, limit: Option<Limit>) -> Option<Culprit> {
        match limit? {
            // Who sleeps beside the one that took it all is not to be accused.
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

    /// Returns whether somebody was seen who has written enough for a file that is too large.
    pub(super) fn saw_a_writer(&self) -> bool {
        self.writer
            .as_ref()
            .zip(self.file_size)
            .is_some_and(|(culprit, bytes)| has_share(culprit.bytes, bytes))
    }

    /// Says which command in the background was seen to have more processes than this one, or any
    /// other.
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

    /// Returns whether no process more could be started when the time was up.
    pub(super) fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// Looks at who is there when the time is up: afterwards nobody is. Where all processes are in
    /// use, ending them comes first.
    pub(super) fn time_is_up(&mut self, session: &Session, supervisor: i32) {
        self.is_crowded = session.cgroup.has_no_free_process();
        let own = self
            .processes
            .as_ref()
            .filter(|(seen, _)| *seen == supervisor)
            .map(|(_, culprit)| culprit.clone());
        self.memory = own.or_else(|| biggest(supervisor, By::Memory));
    }
}

/// Returns whether so many bytes are a part of what is gone that is worth a name. Who reserves room
/// writes nothing, and neither does who maps a file: then the largest number that is seen may be a
/// shell's, of a line that it printed.
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
    fn who_wrote_a_line_has_not_filled_the_disk() {
        assert!(!has_share(4, 40 << 20) && !has_share(0, 0) && !has_share(0, 40 << 20));
        assert!(has_share(40 << 20, 40 << 20) && has_share(5 << 20, 40 << 20) && has_share(4, 0));
    }
}
