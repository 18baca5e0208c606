//! What is new in the project, and in the temporary folders, since a time: its size, and the
//! largest part of it.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use super::disk::is_growth;
use super::unlinked::unlinked;
use podbay_wire::BytesPath;
use podbay_wire::Limit;
use podbay_wire::size;

/// How long the project is walked, and how far.
const PATIENCE: Duration = Duration::from_millis(1500);
const MOST_ENTRIES: u64 = 2_000_000;

/// How much the project has grown since the session began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProjectGrowth {
    pub(super) bytes: u64,
    pub(super) files: u64,
    /// Whether the whole project was seen.
    pub(super) whole: bool,
    /// The entry of the project's top folder with most of the growth.
    pub(super) most: Option<LargestEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LargestEntry {
    pub(super) name: OsString,
    pub(super) bytes: u64,
    pub(super) files: u64,
}

/// Why nothing may be written: a disk limit is crossed, with the largest part of the project's
/// growth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WriteBlock {
    pub(super) limit: Limit,
    pub(super) most: Option<LargestEntry>,
}

impl fmt::Display for WriteBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.limit)?;
        let Some(LargestEntry { name, bytes, files }) = &self.most else {
            return Ok(());
        };
        let of = if is_growth(self.limit) {
            "most of that is"
        } else {
            "most of what this session wrote is"
        };
        let name = BytesPath::from_bytes(name.as_bytes());
        match self.limit {
            Limit::Files { .. } | Limit::FreeFiles { .. } => {
                write!(f, "; {of} `{name}` with {files} files")
            }
            _ => write!(f, "; {of} `{name}` with {}", size(*bytes)),
        }
    }
}

/// Counts what has changed under folders since a time, and unlinked files that a command still
/// holds, within a bounded time. `by_files` selects the largest part by number of files: an entry of
/// the first folder, the project's, or another folder. Blocking.
pub(super) fn grown(folders: &[PathBuf], since: SystemTime, by_files: bool) -> ProjectGrowth {
    let end = Instant::now() + PATIENCE;
    // First, because it is quick and the holders may end.
    let mut all = ProjectGrowth {
        whole: true,
        ..ProjectGrowth::default()
    };
    for folder in folders {
        let held = unlinked(folder, end);
        all.bytes = all.bytes.saturating_add(held.bytes);
        all.files = all.files.saturating_add(held.files);
        all.whole &= held.whole;
    }
    for (number, folder) in folders.iter().enumerate() {
        let mut grown = grown_named(folder, since, by_files, end);
        if number > 0 {
            grown.most = (grown.files > 0).then(|| LargestEntry {
                name: folder.clone().into_os_string(),
                bytes: grown.bytes,
                files: grown.files,
            });
        }
        all = all.and(grown, by_files);
    }
    all
}

impl ProjectGrowth {
    fn and(self, other: Self, by_files: bool) -> Self {
        let amount = |part: &Option<LargestEntry>| {
            part.as_ref()
                .map_or(0, |part| if by_files { part.files } else { part.bytes })
        };
        let most = if amount(&other.most) > amount(&self.most) {
            other.most
        } else {
            self.most
        };
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            files: self.files.saturating_add(other.files),
            whole: self.whole && other.whole,
            most,
        }
    }
}

/// A walk in progress.
struct Walk {
    since: i64,
    end: Instant,
    n_seen: u64,
    over: bool,
    grown: ProjectGrowth,
}

fn grown_named(folder: &Path, since: SystemTime, by_files: bool, end: Instant) -> ProjectGrowth {
    // Some file systems have whole seconds.
    let since = since
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs().cast_signed())
        - 1;
    let mut walk = Walk {
        since,
        end,
        n_seen: 0,
        over: false,
        grown: ProjectGrowth {
            whole: true,
            ..ProjectGrowth::default()
        },
    };
    let Ok(top) = fs::read_dir(folder) else {
        return ProjectGrowth::default();
    };
    let mut most: Option<LargestEntry> = None;
    for entry in top {
        let Ok(entry) = entry else {
            walk.grown.whole = false;
            break;
        };
        let before = (walk.grown.bytes, walk.grown.files);
        let mut waiting = Vec::new();
        walk.count(&entry, &mut waiting);
        walk.below(waiting);
        let part = LargestEntry {
            name: entry.file_name(),
            bytes: walk.grown.bytes - before.0,
            files: walk.grown.files - before.1,
        };
        let amount = |part: &LargestEntry| if by_files { part.files } else { part.bytes };
        if amount(&part) > most.as_ref().map_or(0, amount) {
            most = Some(part);
        }
        if walk.over {
            break;
        }
    }
    ProjectGrowth { most, ..walk.grown }
}

impl Walk {
    fn below(&mut self, mut waiting: Vec<PathBuf>) {
        while !self.over
            && let Some(folder) = waiting.pop()
        {
            // An unreadable folder may contain anything.
            let Ok(entries) = fs::read_dir(folder) else {
                self.grown.whole = false;
                continue;
            };
            for entry in entries {
                let Ok(entry) = entry else {
                    self.grown.whole = false;
                    break;
                };
                self.count(&entry, &mut waiting);
                if self.over {
                    return;
                }
            }
        }
    }

    fn count(&mut self, entry: &fs::DirEntry, waiting: &mut Vec<PathBuf>) {
        self.n_seen += 1;
        if self.n_seen > MOST_ENTRIES
            || (self.n_seen.is_multiple_of(256) && Instant::now() > self.end)
        {
            self.grown.whole = false;
            self.over = true;
            return;
        }
        // This does not follow a link.
        let Ok(facts) = entry.metadata() else { return };
        if facts.ctime() >= self.since {
            self.grown.bytes = self
                .grown
                .bytes
                .saturating_add(facts.blocks().saturating_mul(512));
            self.grown.files += 1;
        }
        if facts.is_dir() {
            waiting.push(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("podbay-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        folder
    }

    #[test]
    fn growth_is_counted_and_its_largest_part_named() {
        let temp = folder("grown");
        fs::create_dir(temp.join("sub")).expect("made");
        let since = SystemTime::now();
        let whole = |path: &str, n_bytes: usize| {
            fs::write(temp.join(path), vec![1; n_bytes]).expect("written");
            // Some file systems allocate only when the file is written back.
            fs::File::open(temp.join(path))
                .and_then(|file| file.sync_all())
                .expect("synced");
        };
        whole("sub/one", 1 << 20);
        whole("sub/two", 1 << 20);
        whole("large", 3 << 20);
        let bytes = grown(std::slice::from_ref(&temp), since, false);
        let files = grown(std::slice::from_ref(&temp), since, true);
        let later = grown(
            std::slice::from_ref(&temp),
            SystemTime::now() + Duration::from_secs(3600),
            false,
        );
        fs::remove_dir_all(&temp).expect("removed");
        assert!(
            bytes.whole && bytes.bytes >= 5 << 20 && bytes.files == 4,
            "{bytes:?}"
        );
        assert!(
            bytes
                .most
                .as_ref()
                .is_some_and(|most| most.name == "large" && most.bytes >= 3 << 20),
            "{bytes:?}"
        );
        assert!(
            files
                .most
                .as_ref()
                .is_some_and(|most| most.name == "sub" && most.files == 3),
            "{files:?}"
        );
        assert_eq!(
            later,
            ProjectGrowth {
                whole: true,
                ..ProjectGrowth::default()
            }
        );
    }

    #[test]
    fn a_folder_beside_the_project_is_named_as_a_whole() {
        let (project, scratch) = (folder("project"), folder("scratch"));
        let since = SystemTime::now();
        for (place, n_bytes) in [
            (project.join("one"), 1 << 20),
            (scratch.join("two"), 3 << 20),
        ] {
            fs::write(&place, vec![1; n_bytes]).expect("written");
            fs::File::open(&place)
                .and_then(|file| file.sync_all())
                .expect("synced");
        }
        let seen = grown(&[project.clone(), scratch.clone()], since, false);
        for folder in [&project, &scratch] {
            fs::remove_dir_all(folder).expect("removed");
        }
        let most = seen.most.expect("something has grown");
        assert!(
            most.name == scratch.as_os_str() && most.bytes >= 3 << 20 && seen.bytes >= 4 << 20,
            "{most:?}"
        );
    }

    #[test]
    fn an_unreadable_folder_makes_the_count_incomplete() {
        let temp = folder("deep");
        let mut here = fs::File::open(&temp).expect("opened");
        let name = "x".repeat(250);
        for _ in 0..20 {
            // Step by step: the whole path is longer than the kernel accepts.
            nix::sys::stat::mkdirat(&here, name.as_str(), nix::sys::stat::Mode::S_IRWXU)
                .expect("made");
            let flags = nix::fcntl::OFlag::O_DIRECTORY | nix::fcntl::OFlag::O_CLOEXEC;
            here = nix::fcntl::openat(&here, name.as_str(), flags, nix::sys::stat::Mode::empty())
                .expect("opened")
                .into();
        }
        let seen = grown(std::slice::from_ref(&temp), SystemTime::now(), false);
        fs::remove_dir_all(&temp).expect("removed");
        assert!(!seen.whole);
    }

    #[test]
    fn a_crossed_limit_is_named_with_the_largest_part() {
        let most = Some(LargestEntry {
            name: OsString::from_vec(b"a\xff".to_vec()),
            bytes: 40 << 20,
            files: 7,
        });
        let check = |limit: Limit, most: Option<LargestEntry>, expected: &str| {
            assert_eq!(WriteBlock { limit, most }.to_string(), expected);
        };
        let disk = Limit::Disk { bytes: 32 << 20 };
        check(
            disk,
            None,
            "the project, /tmp and the home folder have grown by more than 32.0 MiB in this session, the limit of `sandbox.disk`",
        );
        check(
            disk,
            most.clone(),
            "the project, /tmp and the home folder have grown by more than 32.0 MiB in this session, the limit of `sandbox.disk`; most of that is `a\\xff` with 40.0 MiB",
        );
        check(
            Limit::FreeFiles { count: 9 },
            most,
            "fewer than 9 more files fit on the disk of the project, which are kept for the host; most of what this session wrote is `a\\xff` with 7 files",
        );
    }
}
