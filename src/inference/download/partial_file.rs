//! An incomplete file, and the state of its segments.

use std::fs;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use serde::Deserialize;
use serde::Serialize;
use sha2::Digest;
use sha2::Sha256;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::atomic_file;
use podbay_event::Progress;
use podbay_event::ProgressSink;

/// How often the state is saved; data received since is downloaded again after a kill.
const SAVE: Duration = Duration::from_millis(500);

/// A range of the file that one connection downloads.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) start: u64,
    /// The first byte after it.
    pub(super) end: u64,
    done: AtomicU64,
}

impl Segment {
    fn new(start: u64, end: u64, done: u64) -> Self {
        Self {
            start,
            end,
            done: AtomicU64::new(done),
        }
    }

    pub(super) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Returns the offset of the next byte.
    pub(super) fn at(&self) -> u64 {
        self.start + self.done()
    }

    pub(super) fn is_whole(&self) -> bool {
        self.at() == self.end
    }

    pub(super) fn restart(&self) {
        self.done.store(0, Ordering::Relaxed);
    }
}

/// The expected file, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Goal {
    pub(super) size: u64,
    pub(super) sha256: Option<String>,
    /// The server's `ETag` or date, for files without a known hash.
    pub(super) validator: Option<String>,
}

pub(super) struct PartialFile {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) goal: Goal,
    pub(super) segments: Vec<Segment>,
    /// Whether data of an earlier process was resumed.
    pub(super) inherited: bool,
    saved: Mutex<Instant>,
}

/// The saved state.
#[derive(Serialize, Deserialize)]
struct SavedState {
    version: u32,
    size: u64,
    sha256: Option<String>,
    validator: Option<String>,
    /// Start, end and received bytes.
    segments: Vec<(u64, u64, u64)>,
}

const VERSION: u32 = 1;

impl PartialFile {
    /// Opens the data of an earlier process, if it is of the same file, else starts with `n`
    /// segments.
    pub(super) fn open(to: &Path, goal: Goal, n: u64) -> Result<Self, Error> {
        let path = atomic_file::part_of(to);
        let failed = |source| Error::File {
            doing: "open",
            path: path.clone(),
            source,
        };
        let mut options = fs::OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW);
        let file = options.open(&path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let left = match fs::read(state_of(&path)) {
            Ok(text) => serde_json::from_slice(&text)
                .ok()
                .and_then(|saved| validate_state(saved, &goal, length)),
            // A file without state was downloaded from its start on. Only its hash can tell whether
            // it is the same file.
            Err(_) if goal.sha256.is_some() && (1..=goal.size).contains(&length) => {
                Some(vec![Segment::new(0, goal.size, length)])
            }
            Err(_) => None,
        };
        let mut part = Self {
            path,
            file,
            goal,
            segments: Vec::new(),
            inherited: left.is_some(),
            saved: Mutex::new(Instant::now()),
        };
        match left {
            Some(segments) => part.segments = segments,
            None => part.restart(n)?,
        }
        Ok(part)
    }

    /// Discards the data and starts with `n` segments.
    pub(super) fn restart(&mut self, n: u64) -> Result<(), Error> {
        self.file.set_len(0).map_err(|source| Error::File {
            doing: "empty",
            path: self.path.clone(),
            source,
        })?;
        let (size, n) = (self.goal.size, n.max(1));
        let edge = |at: u64| size / n * at + (size % n).min(at);
        self.segments = (0..n)
            .map(|at| Segment::new(edge(at), edge(at + 1), 0))
            .collect();
        self.inherited = false;
        self.save()
    }

    /// Resets the only segment; its connection continues.
    pub(super) fn empty(&self) -> Result<(), Error> {
        self.segments.iter().for_each(Segment::restart);
        self.file.set_len(0).map_err(|source| Error::File {
            doing: "empty",
            path: self.path.clone(),
            source,
        })?;
        self.save()
    }

    pub(super) fn done(&self) -> u64 {
        self.segments.iter().map(Segment::done).sum()
    }

    pub(super) fn write(&self, segment: &Segment, bytes: &[u8]) -> Result<(), Error> {
        let at = segment.at();
        self.file
            .write_all_at(bytes, at)
            .map_err(|source| Error::File {
                doing: "write",
                path: self.path.clone(),
                source,
            })?;
        // After the data: state that claims too little costs time, state that claims too much
        // corrupts the file.
        segment
            .done
            .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let due = {
            let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
            let due = saved.elapsed() > SAVE;
            if due {
                *saved = Instant::now();
            }
            due
        };
        if due { self.save() } else { Ok(()) }
    }

    /// Saves the state of the segments.
    pub(super) fn save(&self) -> Result<(), Error> {
        let saved = SavedState {
            version: VERSION,
            size: self.goal.size,
            sha256: self.goal.sha256.clone(),
            validator: self.goal.validator.clone(),
            segments: self
                .segments
                .iter()
                .map(|segment| (segment.start, segment.end, segment.done()))
                .collect(),
        };
        atomic_file::write_json(&state_of(&self.path), &saved)
    }

    /// Returns the SHA-256 of the data, in hexadecimal.
    pub(super) async fn digest(
        &self,
        task: &str,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        digest(self.path.clone(), task.to_owned(), progress, cancel).await
    }

    /// Renames the file to its final name.
    pub(super) fn finish(&self, to: &Path) -> Result<(), Error> {
        atomic_file::finish(&self.file, &self.path, to)?;
        atomic_file::remove(&state_of(&self.path)).map(drop)
    }
}

/// Removes an incomplete file; returns whether there was one.
pub(crate) fn remove_part(to: &Path) -> Result<bool, Error> {
    let part = atomic_file::part_of(to);
    let state = atomic_file::remove(&state_of(&part))?;
    Ok(atomic_file::remove(&part)? || state)
}

/// Returns how many bytes of a file were downloaded before, without opening it.
pub(crate) fn left_of(to: &Path) -> Option<u64> {
    let part = atomic_file::part_of(to);
    let length = fs::metadata(&part).ok()?.len();
    let saved: Option<SavedState> = fs::read(state_of(&part))
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok());
    Some(saved.map_or(length, |saved| {
        saved.segments.iter().map(|(_, _, done)| done).sum()
    }))
}

fn state_of(part: &Path) -> PathBuf {
    let mut name = part.as_os_str().to_owned();
    name.push(".json");
    PathBuf::from(name)
}

/// Validates saved state: it must be of the same file and cover it without gaps.
fn validate_state(saved: SavedState, goal: &Goal, length: u64) -> Option<Vec<Segment>> {
    let known = goal.sha256.is_some() || goal.validator.is_some();
    let same = saved.size == goal.size
        && saved.sha256 == goal.sha256
        && (goal.sha256.is_some() || saved.validator == goal.validator);
    if saved.version != VERSION || !known || !same {
        return None;
    }
    let mut at = 0;
    for &(start, end, done) in &saved.segments {
        if start != at || end < start || done > end - start || (done > 0 && start + done > length) {
            return None;
        }
        at = end;
    }
    let any = saved.segments.iter().any(|(_, _, done)| *done > 0);
    (at == goal.size && any).then(|| {
        saved
            .segments
            .into_iter()
            .map(|(start, end, done)| Segment::new(start, end, done))
            .collect()
    })
}

/// Returns the SHA-256 of a file in hexadecimal. Gigabytes take seconds, so progress is shown.
pub(crate) async fn digest(
    path: PathBuf,
    task: String,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<String, Error> {
    let (progress, cancel) = (progress.clone(), cancel.clone());
    let read = move || {
        let failed = |source| Error::File {
            doing: "read",
            path: path.clone(),
            source,
        };
        let mut file = File::open(&path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let (mut hasher, mut done, mut shown_at) = (Sha256::new(), 0, Instant::now());
        let mut buffer = vec![0; 1 << 20];
        loop {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled { doing: task });
            }
            let n = file.read(&mut buffer).map_err(failed)?;
            if n == 0 {
                return Ok(atomic_file::hex(&hasher.finalize()));
            }
            hasher.update(&buffer[..n]);
            done += n as u64;
            if shown_at.elapsed() > Duration::from_millis(100) {
                shown_at = Instant::now();
                progress(Progress {
                    detail: "checking".to_owned(),
                    ..super::bytes_done(&task, done, size, false)
                });
            }
        }
    };
    tokio::task::spawn_blocking(read)
        .await
        .expect("reading a file does not panic")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(size: u64, sha256: Option<&str>, validator: Option<&str>) -> Goal {
        Goal {
            size,
            sha256: sha256.map(str::to_owned),
            validator: validator.map(str::to_owned),
        }
    }

    fn notes(
        size: u64,
        sha256: Option<&str>,
        validator: Option<&str>,
        segments: &[(u64, u64, u64)],
    ) -> SavedState {
        let goal = goal(size, sha256, validator);
        SavedState {
            version: VERSION,
            size,
            sha256: goal.sha256,
            validator: goal.validator,
            segments: segments.to_vec(),
        }
    }

    #[test]
    fn segments_cover_the_file_without_gaps() {
        let folder = tempfile::tempdir().expect("a folder");
        for (size, n) in [(10, 1), (10, 3), (10, 4), (3, 4), (0, 1)] {
            let mut part = PartialFile::open(&folder.path().join("a"), goal(size, None, None), n)
                .expect("opened");
            part.restart(n).expect("emptied");
            assert_eq!(part.segments.first().map(|first| first.start), Some(0));
            assert_eq!(
                part.segments.last().map(|last| last.end),
                Some(size),
                "{size} {n}"
            );
            assert!(
                part.segments
                    .windows(2)
                    .all(|pair| pair[0].end == pair[1].start),
                "{size} {n}"
            );
        }
    }

    #[track_caller]
    fn check(saved: SavedState, goal: &Goal, length: u64, believed: bool) {
        assert_eq!(validate_state(saved, goal, length).is_some(), believed);
    }

    #[test]
    fn saved_state_is_used_only_for_the_same_file() {
        let hash = goal(10, Some("ab"), None);
        check(
            notes(10, Some("ab"), None, &[(0, 5, 2), (5, 10, 1)]),
            &hash,
            6,
            true,
        );
        check(notes(10, Some("cd"), None, &[(0, 10, 2)]), &hash, 6, false);
        check(notes(11, Some("ab"), None, &[(0, 11, 2)]), &hash, 6, false);
        // No data, a gap, more than the segment's length, more than the file's.
        check(notes(10, Some("ab"), None, &[(0, 10, 0)]), &hash, 0, false);
        check(
            notes(10, Some("ab"), None, &[(0, 4, 2), (5, 10, 1)]),
            &hash,
            10,
            false,
        );
        check(
            notes(10, Some("ab"), None, &[(0, 5, 6), (5, 10, 1)]),
            &hash,
            10,
            false,
        );
        check(
            notes(10, Some("ab"), None, &[(0, 5, 2), (5, 10, 3)]),
            &hash,
            6,
            false,
        );
        // Without a hash, the validators must exist and be equal.
        check(
            notes(10, None, Some("\"a\""), &[(0, 10, 2)]),
            &goal(10, None, Some("\"a\"")),
            6,
            true,
        );
        check(
            notes(10, None, Some("\"b\""), &[(0, 10, 2)]),
            &goal(10, None, Some("\"a\"")),
            6,
            false,
        );
        check(
            notes(10, None, None, &[(0, 10, 2)]),
            &goal(10, None, None),
            6,
            false,
        );
    }
}
