//! How much of the host's disks the session's commands take: of the project's, and of the engine's,
//! where the temporary folders and the home folder are.
//!
//! No quota of the engine covers a folder. So the free space is checked while commands run, which
//! costs a microsecond. Others use the disks too: only when the session seems to have taken too
//! much are these folders walked (`project_growth.rs`). Nothing is walked at the start.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use nix::sys::statfs::FsType;
use nix::sys::statfs::statfs;
use nix::sys::statvfs::statvfs;
use nix::unistd::AccessFlags;
use nix::unistd::access;

use super::project_growth::ProjectGrowth;
use podbay_wire::Limit;
use podbay_wire::message::DiskLimits;
use podbay_wire::message::kept_free;

/// What a command may take at most when others have used up the space: it must be able to clean up.
const SLACK_BYTES: u64 = 16 << 20;
const SLACK_FILES: u64 = 1000;

/// Free space of a file system, or of several together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FreeSpace {
    pub(super) bytes: u64,
    /// That of the one with the least.
    pub(super) least: u64,
    /// Files that can still be created; `None` where the file system has no bound.
    pub(super) files: Option<u64>,
    /// The files that can still be created, and all that can be, of the one where the fewest can.
    pub(super) least_files: Option<(u64, u64)>,
    pub(super) all_bytes: u64,
    pub(super) all_files: u64,
}

impl FreeSpace {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let facts = statvfs(path).ok()?;
        let all_files = facts.files();
        let bytes = facts
            .blocks_available()
            .saturating_mul(facts.fragment_size());
        Some(Self {
            bytes,
            least: bytes,
            least_files: (all_files > 0).then(|| (facts.files_available(), all_files)),
            files: (all_files > 0).then(|| facts.files_available()),
            all_bytes: facts.blocks().saturating_mul(facts.fragment_size()),
            all_files,
        })
    }

    /// Returns that of all file systems on which folders lie together. The first folder must be
    /// there.
    pub(super) fn of_all(folders: &[PathBuf]) -> Option<Self> {
        Self::of_each(folders)?.into_iter().reduce(Self::and)
    }

    /// Returns that of each file system on which folders lie. The first folder must be there.
    fn of_each(folders: &[PathBuf]) -> Option<Vec<Self>> {
        let (first, others) = folders.split_first()?;
        let mut seen = vec![Self::of(first)?];
        for room in others.iter().filter_map(|folder| Self::of(folder)) {
            // An overlay has a device of its own, on the same file system.
            let is_same = |other: &Self| {
                (other.all_bytes, other.all_files) == (room.all_bytes, room.all_files)
            };
            if !seen.iter().any(is_same) {
                seen.push(room);
            }
        }
        Some(seen)
    }

    /// Returns this without what is free beyond `most`: on a disk that others free, nothing of what
    /// a session took elsewhere is made good.
    fn at_most(self, most: Self) -> Self {
        Self {
            bytes: self.bytes.min(most.bytes),
            files: match (self.files, most.files) {
                (Some(files), Some(most)) => Some(files.min(most)),
                (files, _) => files,
            },
            ..self
        }
    }

    fn and(self, other: Self) -> Self {
        let files = match (self.files, other.files) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            least: self.least.min(other.least),
            least_files: match (self.least_files, other.least_files) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            },
            files,
            all_bytes: self.all_bytes.saturating_add(other.all_bytes),
            all_files: self.all_files.saturating_add(other.all_files),
        }
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

/// Returns the folders whose disks a session uses: the project, and of these others those that are
/// on disk.
pub(super) fn folders_on_disk(workspace: &Path, others: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders = vec![workspace.to_owned()];
    for folder in others {
        // What cannot be written takes no space.
        let is_writable = access(folder, AccessFlags::W_OK).is_ok();
        let is_within = folders.iter().any(|above| folder.starts_with(above));
        if is_on_disk(folder) && is_writable && !is_within {
            folders.push(folder.clone());
        }
    }
    folders
}

/// Returns whether a folder is there, and not in memory.
pub(super) fn is_on_disk(folder: &Path) -> bool {
    const TMPFS: FsType = FsType(0x0102_1994);
    statfs(folder).is_ok_and(|found| found.filesystem_type() != TMPFS)
}

/// The disks of the session, and what was free there when it began.
#[derive(Debug)]
pub(super) struct Disk {
    /// The project's folder first.
    folders: Vec<PathBuf>,
    /// What counts as free on each file system at most.
    each: Mutex<Vec<FreeSpace>>,
    began: SystemTime,
    /// The same moment by the monotonic clock; later, where an earlier sandbox began to count.
    ticking: Instant,
    limits: DiskLimits,
    before: Mutex<Option<FreeSpace>>,
}

impl Disk {
    pub(super) fn watch(folders: Vec<PathBuf>) -> Self {
        let each = FreeSpace::of_each(&folders).unwrap_or_default();
        let before = Mutex::new(each.iter().copied().reduce(FreeSpace::and));
        Self {
            folders,
            each: Mutex::new(each),
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
            if room.least == room.bytes {
                room.least = began.bytes;
            }
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
            self.each_now()?.into_iter().reduce(FreeSpace::and)
        }
    }

    fn each_now(&self) -> Option<Vec<FreeSpace>> {
        let most = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        let now = FreeSpace::of_each(&self.folders)?;
        let bounded = now
            .iter()
            .enumerate()
            .map(|(at, now)| most.get(at).map_or(*now, |most| now.at_most(*most)));
        Some(bounded.collect())
    }

    /// Returns the limit that a command seems to have crossed.
    pub(super) fn crossed(&self, part: OwnShare, now: FreeSpace) -> Option<Limit> {
        let before = (*self.before())?;
        judge(self.limits, before, part, now)
    }

    /// Returns the folders, the project's first, and the start of counting.
    pub(super) fn place(&self) -> (Vec<PathBuf>, SystemTime) {
        (self.folders.clone(), self.since(SystemTime::now()))
    }

    /// Returns whether the folders have grown by what is missing; if others took most of that, it
    /// counts as theirs from now on.
    pub(super) fn is_ours(&self, grown: &ProjectGrowth, now: FreeSpace, limit: Limit) -> bool {
        let mut before = self.before();
        let Some(room) = before.as_mut() else {
            return false;
        };
        let is_most = |grown: u64, missing: u64| grown.saturating_mul(2) >= missing;
        // Others may write much while this session creates many empty files.
        let is_most = if matches!(limit, Limit::Files { .. } | Limit::FreeFiles { .. }) {
            let missing = room.files.unwrap_or(0);
            is_most(grown.files, missing.saturating_sub(now.files.unwrap_or(0)))
        } else {
            is_most(grown.bytes, room.bytes.saturating_sub(now.bytes))
        };
        if !grown.whole || is_most {
            return true;
        }
        if room.least == room.bytes {
            room.least = now.bytes.saturating_add(grown.bytes);
        }
        if let Some(each) = self.each_now() {
            *self.each.lock().unwrap_or_else(PoisonError::into_inner) = each;
        }
        room.bytes = now.bytes.saturating_add(grown.bytes);
        room.files = now.files.map(|files| files.saturating_add(grown.files));
        false
    }

    fn before(&self) -> std::sync::MutexGuard<'_, Option<FreeSpace>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a limit is about the session's growth. Space that must stay free for the host is
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
    let floor = kept_free(limits.floor, before.least);
    if floor > 0 && now.least < floor && has_taken(floor, floor - now.least) {
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
    let (Some((least_before, all)), Some((least, _))) = (before.least_files, now.least_files)
    else {
        return None;
    };
    let floor = if limits.floor > 0 {
        (all / 20).min(least_before / 2)
    } else {
        0
    };
    (floor > 0 && least < floor && has_made(floor, floor - least))
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
mod tests;
