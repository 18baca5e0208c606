//! How much of the project's disk the session's commands take.
//!
//! That disk is the host's, and no quota of the engine covers a folder of it. So its free space is
//! checked while commands run, which costs a microsecond. Others use the disk too: only when the
//! project seems to have grown too much is it walked (`project_growth.rs`). Nothing is walked at
//! the start.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use nix::sys::statvfs::statvfs;

use super::project_growth::ProjectGrowth;
use podbay_wire::Limit;
use podbay_wire::message::DiskLimits;
use podbay_wire::message::kept_free;

/// What a command may take at most when others have used up the space: it must be able to clean up.
const SLACK_BYTES: u64 = 16 << 20;
const SLACK_FILES: u64 = 1000;

/// Free space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FreeSpace {
    pub(super) bytes: u64,
    /// Files that can still be created; `None` where the file system has no bound.
    pub(super) files: Option<u64>,
    pub(super) all_bytes: u64,
    pub(super) all_files: u64,
}

impl FreeSpace {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let facts = statvfs(path).ok()?;
        let all_files = facts.files();
        Some(Self {
            bytes: facts
                .blocks_available()
                .saturating_mul(facts.fragment_size()),
            files: (all_files > 0).then(|| facts.files_available()),
            all_bytes: facts.blocks().saturating_mul(facts.fragment_size()),
            all_files,
        })
    }

    /// Returns whether nothing can be written or created any more.
    pub(super) fn is_full(&self) -> bool {
        self.bytes == 0 || self.files == Some(0)
    }
}

/// What a command must have taken itself to be blamed for a crossed limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnShare {
    /// Nothing: the question is only whether there is space.
    None,
    /// A relevant amount, compared with what was free when it began.
    Some(FreeSpace),
    /// A relevant amount, whatever earlier commands took: the disk was full when it began, so it can
    /// write to no file, and most changes are others'.
    WriteBlock(FreeSpace),
}

impl OwnShare {
    /// Returns the bytes that disappeared while it ran.
    pub(super) fn taken(self, now: FreeSpace) -> u64 {
        match self {
            Self::None => 0,
            Self::Some(start) | Self::WriteBlock(start) => start.bytes.saturating_sub(now.bytes),
        }
    }
}

/// The project's disk, and what was free there when the session began.
#[derive(Debug)]
pub(super) struct Disk {
    workspace: PathBuf,
    began: SystemTime,
    /// The same moment by the monotonic clock; later, where an earlier sandbox began to count.
    ticking: Instant,
    limits: DiskLimits,
    before: Mutex<Option<FreeSpace>>,
}

impl Disk {
    pub(super) fn watch(workspace: &Path) -> Self {
        let before = Mutex::new(FreeSpace::of(workspace));
        Self {
            workspace: workspace.to_owned(),
            began: SystemTime::now(),
            ticking: Instant::now(),
            limits: DiskLimits::default(),
            before,
        }
    }

    /// Sets the limits from the host, and the start of counting where this sandbox replaces another
    /// one.
    pub(super) fn limit(&mut self, limits: DiskLimits) {
        self.limits = limits;
        let Some(began) = limits.began else { return };
        self.began = UNIX_EPOCH
            .checked_add(Duration::from_secs(began.at))
            .unwrap_or(self.began);
        if let Some(room) = self.before().as_mut() {
            (room.bytes, room.files) = (began.bytes, room.files.and(began.files));
        }
    }

    /// Returns the start of the session by the current wall clock: file times use it, and it may
    /// have been set back since.
    fn since(&self, now: SystemTime) -> SystemTime {
        now.checked_sub(self.ticking.elapsed())
            .unwrap_or(UNIX_EPOCH)
            .min(self.began)
    }

    pub(super) fn room(&self) -> Option<FreeSpace> {
        if (DiskLimits {
            began: None,
            ..self.limits
        }) == DiskLimits::default()
        {
            None
        } else {
            FreeSpace::of(&self.workspace)
        }
    }

    /// Returns the limit that a command seems to have crossed.
    pub(super) fn crossed(&self, part: OwnShare, now: FreeSpace) -> Option<Limit> {
        let before = (*self.before())?;
        judge(self.limits, before, part, now)
    }

    /// Returns the project's folder, and the start of counting.
    pub(super) fn place(&self) -> (PathBuf, SystemTime) {
        (self.workspace.clone(), self.since(SystemTime::now()))
    }

    /// Returns whether the project has grown by what is missing; if others took most of that, it
    /// counts as theirs from now on.
    pub(super) fn is_ours(&self, grown: &ProjectGrowth, now: FreeSpace) -> bool {
        let mut before = self.before();
        let Some(room) = before.as_mut() else {
            return false;
        };
        let is_most = |grown: u64, missing: u64| grown.saturating_mul(2) >= missing;
        let bytes = is_most(grown.bytes, room.bytes.saturating_sub(now.bytes));
        let files = is_most(
            grown.files,
            room.files
                .unwrap_or(0)
                .saturating_sub(now.files.unwrap_or(0)),
        );
        if !grown.whole || (bytes && files) {
            return true;
        }
        room.bytes = now.bytes.saturating_add(grown.bytes);
        room.files = now.files.map(|files| files.saturating_add(grown.files));
        false
    }

    fn before(&self) -> std::sync::MutexGuard<'_, Option<FreeSpace>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a limit is about the project's growth. Space that must stay free for the host is
/// required whoever took the rest.
pub(super) fn is_growth(limit: Limit) -> bool {
    matches!(limit, Limit::Disk { .. } | Limit::Files { .. })
}

fn judge(limits: DiskLimits, before: FreeSpace, part: OwnShare, now: FreeSpace) -> Option<Limit> {
    let grown = before.bytes.saturating_sub(now.bytes);
    let taken = |start: FreeSpace| start.bytes.saturating_sub(now.bytes);
    let has_taken =
        |limit: u64, over: u64| is_guilty(part, taken, over, SLACK_BYTES.min(limit / 8));
    if limits.bytes > 0 && grown > limits.bytes && has_taken(limits.bytes, grown - limits.bytes) {
        return Some(Limit::Disk {
            bytes: limits.bytes,
        });
    }
    let floor = kept_free(limits.floor, before.bytes);
    if floor > 0 && now.bytes < floor && has_taken(floor, floor - now.bytes) {
        return Some(Limit::FreeSpace { bytes: floor });
    }
    let (Some(files_before), Some(files)) = (before.files, now.files) else {
        return None;
    };
    let taken = |start: FreeSpace| start.files.unwrap_or(0).saturating_sub(files);
    let has_made = |limit: u64, over: u64| is_guilty(part, taken, over, SLACK_FILES.min(limit / 8));
    let made = files_before.saturating_sub(files);
    if limits.files > 0 && made > limits.files && has_made(limits.files, made - limits.files) {
        return Some(Limit::Files {
            count: limits.files,
        });
    }
    let floor = if limits.floor > 0 {
        (before.all_files / 20).min(files_before / 2)
    } else {
        0
    };
    (floor > 0 && files < floor && has_made(floor, floor - files))
        .then_some(Limit::FreeFiles { count: floor })
}

/// Returns whether a command is to blame for a crossed limit. The slack, in which a command that
/// did little may continue, exists once: when it is used up, a sixteenth of it is enough for a
/// command that can write.
fn is_guilty(part: OwnShare, taken: impl Fn(FreeSpace) -> u64, over: u64, slack: u64) -> bool {
    match part {
        OwnShare::None => true,
        OwnShare::Some(start) => {
            taken(start) > slack || (over > slack && taken(start) > slack / 16)
        }
        OwnShare::WriteBlock(start) => taken(start) > slack,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::message::DiskBegan;

    const LIMITS: DiskLimits = DiskLimits {
        bytes: 10 << 30,
        files: 1_000_000,
        floor: 1 << 30,
        began: None,
    };

    fn room(mib: u64, files: u64) -> FreeSpace {
        FreeSpace {
            bytes: mib << 20,
            files: Some(files),
            all_bytes: 1 << 40,
            all_files: 10_000_000,
        }
    }

    #[track_caller]
    fn check(before: FreeSpace, start: FreeSpace, now: FreeSpace, expected: Option<Limit>) {
        assert_eq!(judge(LIMITS, before, OwnShare::Some(start), now), expected);
    }

    #[test]
    fn growth_and_free_space_are_judged_by_session_and_by_command() {
        let (plenty, many) = (100 << 10, 9_000_000);
        let before = room(plenty, many);
        check(before, before, room(plenty - 9000, many), None);
        check(
            before,
            before,
            room(plenty - 10_300, many),
            Some(Limit::Disk { bytes: 10 << 30 }),
        );
        // The command before this one did it; this one may clean up.
        check(
            before,
            room(plenty - 10_230, many),
            room(plenty - 10_245, many),
            None,
        );
        check(
            before,
            room(plenty - 10_300, many),
            room(plenty - 10_301, many),
            None,
        );
        // But many small ones together must not continue forever.
        check(
            before,
            room(plenty - 10_300, many),
            room(plenty - 10_302, many),
            Some(Limit::Disk { bytes: 10 << 30 }),
        );
        check(
            before,
            room(plenty - 10_300, many),
            room(plenty - 10_330, many),
            Some(Limit::Disk { bytes: 10 << 30 }),
        );
        let small = room(3000, many);
        check(
            small,
            small,
            room(1000, many),
            Some(Limit::FreeSpace { bytes: 1 << 30 }),
        );
        check(small, room(1030, many), room(1020, many), None);
        check(small, room(900, many), room(899, many), None);
        // It was nearly full already.
        check(room(600, many), room(600, many), room(500, many), None);
        check(
            room(600, many),
            room(600, many),
            room(200, many),
            Some(Limit::FreeSpace { bytes: 300 << 20 }),
        );
        check(
            before,
            before,
            room(plenty, many - 1_000_001),
            Some(Limit::Files { count: 1_000_000 }),
        );
        check(
            room(plenty, 900_000),
            room(plenty, 900_000),
            room(plenty, 440_000),
            Some(Limit::FreeFiles { count: 450_000 }),
        );
        let none = FreeSpace {
            bytes: plenty << 20,
            files: None,
            all_bytes: 1 << 40,
            all_files: 0,
        };
        check(none, none, none, None);
        let off = DiskLimits::default();
        assert_eq!(
            judge(off, before, OwnShare::None, room(0, 0)),
            None,
            "nothing is watched where no limit is set"
        );
    }

    #[test]
    fn a_command_that_cannot_write_is_not_ended_for_others_writes() {
        let (plenty, many) = (100 << 10, 9_000_000);
        let before = room(plenty, many);
        let check = |part: OwnShare, now: FreeSpace, expected: Option<Limit>| {
            assert_eq!(judge(LIMITS, before, part, now), expected, "{part:?}");
        };
        let disk = Some(Limit::Disk { bytes: 10 << 30 });
        let over = room(plenty - 10_245, many);
        check(OwnShare::None, room(plenty - 10_200, many), None);
        check(OwnShare::None, over, disk);
        check(OwnShare::Some(room(plenty - 10_235, many)), over, None);
        check(
            OwnShare::WriteBlock(room(plenty - 10_235, many)),
            over,
            None,
        );
        check(OwnShare::WriteBlock(over), over, None);
        // All slack is used up: two more are too much from a command that can write.
        let far = room(plenty - 10_302, many);
        check(OwnShare::Some(room(plenty - 10_300, many)), far, disk);
        check(OwnShare::WriteBlock(room(plenty - 10_300, many)), far, None);
        check(OwnShare::WriteBlock(room(plenty - 10_280, many)), far, disk);
        let full = room(1000, many);
        check(OwnShare::None, full, disk);
        let floor = DiskLimits { bytes: 0, ..LIMITS };
        assert_eq!(
            judge(floor, before, OwnShare::None, full),
            Some(Limit::FreeSpace { bytes: 1 << 30 })
        );
        let files = room(plenty, many - 1_000_100);
        check(
            OwnShare::None,
            files,
            Some(Limit::Files { count: 1_000_000 }),
        );
        check(OwnShare::Some(room(plenty, many - 1_000_000)), files, None);
        check(
            OwnShare::WriteBlock(room(plenty, many - 999_000)),
            files,
            Some(Limit::Files { count: 1_000_000 }),
        );
    }

    #[test]
    fn a_sandbox_that_replaces_another_continues_counting() {
        let mut disk = Disk::watch(&std::env::temp_dir());
        let began = DiskBegan {
            at: 1_000_000_000,
            bytes: 100 << 30,
            files: Some(9_000_000),
        };
        disk.limit(DiskLimits {
            began: Some(began),
            ..LIMITS
        });
        let before = (*disk.before()).expect("a file system");
        assert_eq!(before.bytes, 100 << 30);
        let (start, now) = (
            FreeSpace {
                bytes: 95 << 30,
                ..before
            },
            FreeSpace {
                bytes: 89 << 30,
                ..before
            },
        );
        assert_eq!(
            disk.crossed(OwnShare::Some(start), now),
            Some(Limit::Disk { bytes: 10 << 30 }),
            "six here and five in the box before"
        );
        let (_, since) = disk.place();
        assert_eq!(
            since,
            UNIX_EPOCH + Duration::from_secs(1_000_000_000),
            "what the box before wrote counts too"
        );
        disk.limit(DiskLimits {
            began: Some(began),
            ..DiskLimits::default()
        });
        assert_eq!(
            disk.room(),
            None,
            "nothing is watched where no limit is set"
        );
    }

    #[test]
    fn rel_09_setting_the_clock_hides_no_growth() {
        let disk = Disk::watch(&std::env::temp_dir());
        let hour = Duration::from_secs(3600);
        let close = |found: SystemTime, expected: SystemTime| {
            let apart = found
                .duration_since(expected)
                .or_else(|_| expected.duration_since(found))
                .expect("one is later");
            assert!(
                apart < Duration::from_secs(60),
                "{found:?}, not {expected:?}"
            );
        };
        let began = disk.began;
        close(disk.since(began), began);
        // Set back: files written now have times before the original start.
        close(disk.since(began - hour), began - hour);
        // Set forward: files from before it was set still count.
        close(disk.since(began + hour), began);
    }

    #[test]
    fn space_that_others_took_does_not_count_as_the_projects() {
        let mut disk = Disk::watch(&std::env::temp_dir());
        disk.limit(LIMITS);
        let before = room(100 << 10, 9_000_000);
        *disk.before() = Some(before);
        let now = room(80 << 10, 9_000_000);
        assert_eq!(
            disk.crossed(OwnShare::Some(before), now),
            Some(Limit::Disk { bytes: 10 << 30 }),
            "it looks like it"
        );
        let seen = ProjectGrowth {
            bytes: 1 << 20,
            files: 2,
            whole: true,
            most: None,
        };
        assert!(!disk.is_ours(&seen, now));
        assert_eq!(
            disk.crossed(OwnShare::None, now),
            None,
            "it is not looked at again and again"
        );
        assert!(
            disk.is_ours(
                &ProjectGrowth {
                    whole: false,
                    ..seen
                },
                room(0, 0)
            ),
            "what is too large to be seen is not let off"
        );
    }
}
