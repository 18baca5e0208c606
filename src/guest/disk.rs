//! What the session's commands take of the disk that the project lies on.
//!
//! That disk is the host's, and no quota of the engine covers a folder of it. So its free space is
//! looked at while commands run, which costs a microsecond. Others use the disk too: only when it
//! looks as if the project had grown too much is the project walked (`grown.rs`). Nothing is walked
//! at the start.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use nix::sys::statvfs::statvfs;

use super::grown::Grown;
use podbay_wire::Limit;
use podbay_wire::message::DiskLimits;
use podbay_wire::message::kept_free;

/// What a command may take, at most, of what others have used up: it must be able to clean up after
/// them.
const SLACK_BYTES: u64 = 16 << 20;
const SLACK_FILES: u64 = 1000;

/// What is free on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) bytes: u64,
    /// Files that can still be made; `None` where the file system sets no number.
    pub(super) files: Option<u64>,
    pub(super) all_bytes: u64,
    pub(super) all_files: u64,
}

impl Room {
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

    /// Returns whether nothing more can be written or made.
    pub(super) fn is_full(&self) -> bool {
        self.bytes == 0 || self.files == Some(0)
    }
}

/// What a command must have taken itself before a limit that is crossed is held against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Nothing: it is asked whether there is room at all.
    None,
    /// Enough to matter, of what was free when it began.
    Some(Room),
    /// Enough to matter, whatever those before it took: there was no room when it began, so that it
    /// can write to no file, and what goes meanwhile is mostly others'.
    Shut(Room),
}

impl Part {
    /// Returns the bytes that went while it ran.
    pub(super) fn taken(self, now: Room) -> u64 {
        match self {
            Self::None => 0,
            Self::Some(start) | Self::Shut(start) => start.bytes.saturating_sub(now.bytes),
        }
    }
}

/// The disk under the project, and what was free there when the session began.
#[derive(Debug)]
pub(super) struct Disk {
    workspace: PathBuf,
    began: SystemTime,
    /// The same moment by the clock that nobody sets; later than it, where an earlier box began to
    /// count.
    ticking: Instant,
    limits: DiskLimits,
    before: Mutex<Option<Room>>,
}

impl Disk {
    pub(super) fn watch(workspace: &Path) -> Self {
        let before = Mutex::new(Room::of(workspace));
        Self {
            workspace: workspace.to_owned(),
            began: SystemTime::now(),
            ticking: Instant::now(),
            limits: DiskLimits::default(),
            before,
        }
    }

    /// Takes what the host says is to be watched, and from when on if this box stands in the place
    /// of another one.
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

    /// Returns the start of the session by the clock as it is now: files are dated by it, and it
    /// may have been set back since.
    fn since(&self, now: SystemTime) -> SystemTime {
        now.checked_sub(self.ticking.elapsed())
            .unwrap_or(UNIX_EPOCH)
            .min(self.began)
    }

    pub(super) fn room(&self) -> Option<Room> {
        if (DiskLimits {
            began: None,
            ..self.limits
        }) == DiskLimits::default()
        {
            None
        } else {
            Room::of(&self.workspace)
        }
    }

    /// Returns the limit that a command seems to have crossed.
    pub(super) fn crossed(&self, part: Part, now: Room) -> Option<Limit> {
        let before = (*self.before())?;
        judge(self.limits, before, part, now)
    }

    /// Returns the folder of the project, and since when it counts.
    pub(super) fn place(&self) -> (PathBuf, SystemTime) {
        (self.workspace.clone(), self.since(SystemTime::now()))
    }

    /// Returns whether the project has grown by what is missing; if others took most of that, it
    /// counts as theirs from now on.
    pub(super) fn is_ours(&self, grown: &Grown, now: Room) -> bool {
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

    fn before(&self) -> std::sync::MutexGuard<'_, Option<Room>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a limit is about the project's growth. What is left for the host is left for the
/// host, whoever took the rest.
pub(super) fn is_growth(limit: Limit) -> bool {
    matches!(limit, Limit::Disk { .. } | Limit::Files { .. })
}

fn judge(limits: DiskLimits, before: Room, part: Part, now: Room) -> Option<Limit> {
    let grown = before.bytes.saturating_sub(now.bytes);
    let taken = |start: Room| start.bytes.saturating_sub(now.bytes);
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
    let taken = |start: Room| start.files.unwrap_or(0).saturating_sub(files);
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

/// Returns whether a command has its part in a limit's being crossed. The slack, in which a command
/// can go on that did little, is there once: when all of it is used up, a sixteenth of it is enough
/// for one that can write.
fn is_guilty(part: Part, taken: impl Fn(Room) -> u64, over: u64, slack: u64) -> bool {
    match part {
        Part::None => true,
        Part::Some(start) => taken(start) > slack || (over > slack && taken(start) > slack / 16),
        Part::Shut(start) => taken(start) > slack,
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

    fn room(mib: u64, files: u64) -> Room {
        Room {
            bytes: mib << 20,
            files: Some(files),
            all_bytes: 1 << 40,
            all_files: 10_000_000,
        }
    }

    #[track_caller]
    fn check(before: Room, start: Room, now: Room, expected: Option<Limit>) {
        assert_eq!(judge(LIMITS, before, Part::Some(start), now), expected);
    }

    #[test]
    fn growth_and_what_is_left_are_judged_by_session_and_by_command() {
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
        // But many small ones together must not go on for ever.
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
        let none = Room {
            bytes: plenty << 20,
            files: None,
            all_bytes: 1 << 40,
            all_files: 0,
        };
        check(none, none, none, None);
        let off = DiskLimits::default();
        assert_eq!(
            judge(off, before, Part::None, room(0, 0)),
            None,
            "nothing is watched where no limit is set"
        );
    }

    #[test]
    fn a_command_that_cannot_write_is_not_ended_for_what_others_write() {
        let (plenty, many) = (100 << 10, 9_000_000);
        let before = room(plenty, many);
        let check = |part: Part, now: Room, expected: Option<Limit>| {
            assert_eq!(judge(LIMITS, before, part, now), expected, "{part:?}");
        };
        let disk = Some(Limit::Disk { bytes: 10 << 30 });
        let over = room(plenty - 10_245, many);
        check(Part::None, room(plenty - 10_200, many), None);
        check(Part::None, over, disk);
        check(Part::Some(room(plenty - 10_235, many)), over, None);
        check(Part::Shut(room(plenty - 10_235, many)), over, None);
        check(Part::Shut(over), over, None);
        // All slack is used up: two more are too much from one that can write.
        let far = room(plenty - 10_302, many);
        check(Part::Some(room(plenty - 10_300, many)), far, disk);
        check(Part::Shut(room(plenty - 10_300, many)), far, None);
        check(Part::Shut(room(plenty - 10_280, many)), far, disk);
        let full = room(1000, many);
        check(Part::None, full, disk);
        let floor = DiskLimits { bytes: 0, ..LIMITS };
        assert_eq!(
            judge(floor, before, Part::None, full),
            Some(Limit::FreeSpace { bytes: 1 << 30 })
        );
        let files = room(plenty, many - 1_000_100);
        check(Part::None, files, Some(Limit::Files { count: 1_000_000 }));
        check(Part::Some(room(plenty, many - 1_000_000)), files, None);
        check(
            Part::Shut(room(plenty, many - 999_000)),
            files,
            Some(Limit::Files { count: 1_000_000 }),
        );
    }

    #[test]
    fn a_box_in_the_place_of_another_goes_on_counting() {
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
            Room {
                bytes: 95 << 30,
                ..before
            },
            Room {
                bytes: 89 << 30,
                ..before
            },
        );
        assert_eq!(
            disk.crossed(Part::Some(start), now),
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
    fn rel_09_a_clock_that_is_set_hides_no_growth() {
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
        // Set back: files that are written now are dated before the start as it was.
        close(disk.since(began - hour), began - hour);
        // Set forward: those from before it was set still count.
        close(disk.since(began + hour), began);
    }

    #[test]
    fn what_others_took_is_not_the_projects() {
        let mut disk = Disk::watch(&std::env::temp_dir());
        disk.limit(LIMITS);
        let before = room(100 << 10, 9_000_000);
        *disk.before() = Some(before);
        let now = room(80 << 10, 9_000_000);
        assert_eq!(
            disk.crossed(Part::Some(before), now),
            Some(Limit::Disk { bytes: 10 << 30 }),
            "it looks like it"
        );
        let seen = Grown {
            bytes: 1 << 20,
            files: 2,
            whole: true,
            most: None,
        };
        assert!(!disk.is_ours(&seen, now));
        assert_eq!(
            disk.crossed(Part::None, now),
            None,
            "it is not looked at again and again"
        );
        assert!(
            disk.is_ours(
                &Grown {
                    whole: false,
                    ..seen
                },
                room(0, 0)
            ),
            "what is too large to be seen is not let off"
        );
    }
}
