//! Merges what the session staged into the user's index, while what the user staged stays.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::unistd::linkat;

use super::import_marker::own_index;
use super::index::Index;
use super::index::IndexEntry;
use super::index::MAX_INDEX;
use super::index::SKIP_WORKTREE;
use super::index::UnsupportedIndex;
use super::untrusted_folder::UntrustedFolder;
use super::untrusted_folder::failed;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

const MAX_TOLD: usize = 20;

/// The reason when another git holds the lock of the index, as while it waits for an editor.
pub(super) const LOCKED: &str = "yours is locked by another git, which must end first";

/// The indexes to merge.
#[derive(Debug)]
pub(crate) struct IndexMerge<'a> {
    /// Path of the index in the real repository.
    pub(crate) path: Vec<u8>,
    pub(crate) id: &'a str,
    /// The index that both sides began with.
    pub(crate) start: Option<&'a [u8]>,
    /// The session's index, of which only flags are used: names and objects are those of `checked`.
    pub(crate) session: &'a Index,
    /// The index that git made of the session's verified tree; `None`: nothing is staged.
    pub(crate) checked: Option<&'a [u8]>,
}

/// The outcome of a merge.
#[derive(Debug)]
pub(crate) struct MergedIndex<'a> {
    /// The new index, if it differs from the old one.
    pub(crate) new: Option<LockedIndex<'a>>,
    /// The common base from now on.
    pub(crate) common: Index,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
}

/// A new index that is written beside the real one, under git's own lock. When dropped, both are
/// removed.
#[derive(Debug)]
pub(crate) struct LockedIndex<'a> {
    real: &'a UntrustedFolder,
    path: Vec<u8>,
    own: Vec<u8>,
    lock: Vec<u8>,
}

impl LockedIndex<'_> {
    pub(crate) fn put(self) -> Result<(), Fault> {
        self.real
            .rename(&self.lock, &self.path)
            .map_err(|errno| failed("write", &self.path, &errno.into()))
    }
}

impl Drop for LockedIndex<'_> {
    fn drop(&mut self) {
        // After it was put in place, the lock file is gone, or another git's: ours is a hard link
        // of our own file.
        let inode = |path: &[u8]| {
            self.real
                .stat(path)
                .ok()
                .map(|stat| (stat.st_dev, stat.st_ino))
        };
        if inode(&self.own).is_some() && inode(&self.own) == inode(&self.lock) {
            let _ = self.real.remove(&self.lock);
        }
        let _ = self.real.remove(&self.own);
    }
}

/// Returns why the user's index cannot be changed, if so.
pub(crate) fn check_index(
    real: &UntrustedFolder,
    path: &[u8],
) -> Result<Result<(), String>, Fault> {
    Ok(read(real.read(path, MAX_INDEX)?.as_deref()).map(drop))
}

fn read(bytes: Option<&[u8]>) -> Result<Index, String> {
    match parse(bytes) {
        Ok(real) if real.is_unmerged() => {
            Err("yours holds a merge with conflicts; it stays as it is".to_owned())
        }
        Ok(real) => Ok(real),
        Err(UnsupportedIndex::Split | UnsupportedIndex::Sparse) => {
            Err("yours is split or sparse now; it stays as it is".to_owned())
        }
        Err(UnsupportedIndex::Broken(why)) => Err(format!("yours cannot be read: {why}")),
    }
}

fn parse(bytes: Option<&[u8]>) -> Result<Index, UnsupportedIndex> {
    bytes.map_or_else(|| Ok(Index::default()), Index::parse)
}

/// Makes the merged index, under a lock; returns it, or why the index stays as it is.
///
/// No flag and no file metadata of the session's is used: it could hide what the session did to a
/// file.
pub(crate) fn merge_index<'a>(
    folder: &'a UntrustedFolder,
    landing: &IndexMerge<'_>,
) -> Result<Result<MergedIndex<'a>, String>, Fault> {
    let (Ok(start), Ok(checked)) = (parse(landing.start), parse(landing.checked)) else {
        return Ok(Err("cannot be read as git wrote it".to_owned()));
    };
    let real_bytes = folder.read(&landing.path, MAX_INDEX)?;
    let real = match read(real_bytes.as_deref()) {
        Ok(real) => real,
        Err(why) => return Ok(Err(why)),
    };
    let Some(MergedEntries {
        index,
        common,
        notes,
    }) = merge(&start, &real, &checked, landing.session)
    else {
        return Ok(Err(
            "you and the session staged a file and a folder of the same name".to_owned(),
        ));
    };
    if index.entries == real.entries {
        return Ok(Ok(MergedIndex {
            new: None,
            common,
            notes,
        }));
    }
    Ok(
        lock(folder, landing, &index, real_bytes.as_deref())?.map(|locked| MergedIndex {
            new: Some(locked),
            common,
            notes,
        }),
    )
}

/// Writes the index beside the real one as git would, under its lock, if it was not changed
/// meanwhile.
fn lock<'a>(
    real: &'a UntrustedFolder,
    landing: &IndexMerge<'_>,
    merged: &Index,
    before: Option<&[u8]>,
) -> Result<Result<LockedIndex<'a>, String>, Fault> {
    let locked = match lock_index(real, &landing.path, landing.id, &merged.write())? {
        Ok(locked) => locked,
        Err(why) => return Ok(Err(why)),
    };
    if real.read(&landing.path, MAX_INDEX)?.as_deref() != before {
        return Ok(Err("yours changed just now; start again".to_owned()));
    }
    Ok(Ok(locked))
}

/// Takes the lock of an index as git does, with the new content; returns why not, if another
/// process holds it.
pub(crate) fn lock_index<'a>(
    real: &'a UntrustedFolder,
    path: &[u8],
    id: &str,
    bytes: &[u8],
) -> Result<Result<LockedIndex<'a>, String>, Fault> {
    let own = own_index(path, id);
    let lock = [path, b".lock"].concat();
    let mode = real.stat(path).map_or(0o644, |stat| stat.st_mode & 0o777);
    real.remove(&own)?;
    let mut file = real.create(&own, 0o600)?;
    let locked = LockedIndex {
        real,
        path: path.to_owned(),
        own: own.clone(),
        lock: lock.clone(),
    };
    let wrong = |error: std::io::Error| failed("write", &own, &error);
    file.write_all(bytes).map_err(wrong)?;
    file.set_permissions(std::fs::Permissions::from_mode(mode))
        .map_err(wrong)?;
    file.sync_all().map_err(wrong)?;
    // A hard link, so that a lock of a killed import can be recognized as ours.
    match linkat(
        real,
        own.as_slice(),
        real,
        lock.as_slice(),
        AtFlags::empty(),
    ) {
        Ok(()) => Ok(Ok(locked)),
        Err(Errno::EEXIST) => Ok(Err(LOCKED.to_owned())),
        Err(errno) => Err(failed("lock", path, &errno.into())),
    }
}

struct MergedEntries {
    index: Index,
    /// The session's side.
    common: Index,
    notes: Vec<String>,
}

/// Merges what the user and the session staged since the start; `None`: there is a conflict.
fn merge(start: &Index, real: &Index, checked: &Index, session: &Index) -> Option<MergedEntries> {
    let (start_entries, real_entries, session_entries) =
        (by_name(start), by_name(real), by_name(session));
    let mut theirs = by_name(checked);
    // A tree cannot hold files that are only intended to be added.
    for (name, entry) in &start_entries {
        if entry.is_intended()
            && session_entries
                .get(name)
                .is_some_and(|entry| entry.is_intended())
        {
            theirs.entry(name).or_insert(entry);
        }
    }
    let is_sparse = start
        .entries
        .iter()
        .any(|entry| entry.extended & SKIP_WORKTREE != 0);
    let mut names: Vec<&[u8]> = real_entries.keys().chain(theirs.keys()).copied().collect();
    names.sort_unstable();
    names.dedup();
    let mut merged = Index::default();
    let mut kept = Vec::new();
    for name in names {
        let (base, ours, other) = (
            at(&start_entries, name),
            at(&real_entries, name),
            at(&theirs, name),
        );
        let is_same = |left: Option<&IndexEntry>, right: Option<&IndexEntry>| match (left, right) {
            (Some(left), Some(right)) => left.is_same(right),
            (None, None) => true,
            _ => false,
        };
        let taken = if is_same(ours, other) || is_same(base, other) {
            ours.cloned()
        } else if is_same(base, ours) {
            other.map(|other| {
                with_flags(
                    other,
                    ours,
                    at(&session_entries, name).filter(|_| is_sparse),
                )
            })
        } else {
            kept.push(BytesPath::from_bytes(name));
            ours.cloned()
        };
        merged.entries.extend(taken);
    }
    if has_file_above(&merged) {
        return None;
    }
    let n_more = kept.len().saturating_sub(MAX_TOLD);
    let mut notes: Vec<String> = kept
        .iter()
        .take(MAX_TOLD)
        .map(|name| format!("{name} is staged as you have it, not as the session has"))
        .collect();
    if n_more > 0 {
        notes.push(format!("so are {n_more} more"));
    }
    let mut common = Index::default();
    common.entries.extend(
        theirs
            .into_iter()
            .map(|(name, entry)| with_flags(entry, at(&start_entries, name), None)),
    );
    Some(MergedEntries {
        index: merged,
        common,
        notes,
    })
}

/// Whether a name is that of a file and of a folder above another entry. Others may lie between the
/// two: `a`, `a.txt`, `a/c`.
fn has_file_above(index: &Index) -> bool {
    let is_file = |name: &[u8]| {
        index
            .entries
            .binary_search_by(|entry| entry.name.as_slice().cmp(name))
            .is_ok()
    };
    let is_below = |name: &[u8]| memchr::memchr_iter(b'/', name).any(|at| is_file(&name[..at]));
    index.entries.iter().any(|entry| is_below(&entry.name))
}

type Entries<'a> = BTreeMap<&'a [u8], &'a IndexEntry>;

fn by_name(index: &Index) -> Entries<'_> {
    index
        .entries
        .iter()
        .map(|entry| (entry.name.as_slice(), entry))
        .collect()
}

fn at<'a>(entries: &Entries<'a>, name: &[u8]) -> Option<&'a IndexEntry> {
    entries.get(name).copied()
}

/// Returns an entry of the session for the real index, without file metadata.
fn with_flags(
    entry: &IndexEntry,
    real: Option<&IndexEntry>,
    in_session: Option<&IndexEntry>,
) -> IndexEntry {
    let mut entry = entry.clone();
    match real {
        Some(real) => entry.extended |= real.extended & SKIP_WORKTREE,
        // Outside of a sparse checkout; git itself clears the flag if the file exists after all.
        None => entry.extended |= in_session.map_or(0, |entry| entry.extended & SKIP_WORKTREE),
    }
    entry
}
