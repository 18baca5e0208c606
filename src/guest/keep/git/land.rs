//! Bringing the index up to what the session staged, while what the person staged stays.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::unistd::linkat;

use super::folder::Folder;
use super::folder::failed;
use super::index::Entry;
use super::index::Index;
use super::index::MAX_INDEX;
use super::index::SKIP_WORKTREE;
use super::index::Unfit;
use super::leftover::own_index;
use podbay_wire::BytesPath;
use podbay_wire::Fault;

const MAX_TOLD: usize = 20;

/// What is said of an index that another git has the lock of, as it has while it waits for an
/// editor.
pub(super) const LOCKED: &str = "yours is locked by another git, which must end first";

/// The indexes that meet.
#[derive(Debug)]
pub(crate) struct Landing<'a> {
    /// The index in the real repository.
    pub(crate) path: Vec<u8>,
    pub(crate) id: &'a str,
    /// What both sides began with.
    pub(crate) start: Option<&'a [u8]>,
    /// What the session left, of which only flags are looked at: its names and objects are those of
    /// `checked`.
    pub(crate) session: &'a Index,
    /// The same as git made it of a tree that it has checked; `None`: nothing is staged.
    pub(crate) checked: Option<&'a [u8]>,
}

/// What the index is to be.
#[derive(Debug)]
pub(crate) struct Landed<'a> {
    /// Is put in its place, if it is another one than it was.
    pub(crate) new: Option<Locked<'a>>,
    /// What both sides have in common from now on.
    pub(crate) common: Index,
    /// What is to be said of it.
    pub(crate) notes: Vec<String>,
}

/// An index that waits beside the real one, which is locked as git locks it. Dropped, it is as if
/// it had never been.
#[derive(Debug)]
pub(crate) struct Locked<'a> {
    real: &'a Folder,
    path: Vec<u8>,
    own: Vec<u8>,
    lock: Vec<u8>,
}

impl Locked<'_> {
    pub(crate) fn put(self) -> Result<(), Fault> {
        self.real
            .rename(&self.lock, &self.path)
            .map_err(|errno| failed("write", &self.path, &errno.into()))
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Where it was put there is no lock any more, but maybe somebody else's: ours is another
        // name of our own file.
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

/// Says what keeps the person's index from being changed, if anything does.
pub(crate) fn is_fit(real: &Folder, path: &[u8]) -> Result<Result<(), String>, Fault> {
    Ok(read(real.read(path, MAX_INDEX)?.as_deref()).map(drop))
}

fn read(bytes: Option<&[u8]>) -> Result<Index, String> {
    match parse(bytes) {
        Ok(real) if real.is_unmerged() => {
            Err("yours holds a merge with conflicts; it stays as it is".to_owned())
        }
        Ok(real) => Ok(real),
        Err(Unfit::Split | Unfit::Sparse) => {
            Err("yours is split or sparse since; it stays as it is".to_owned())
        }
        Err(Unfit::Broken(why)) => Err(format!("yours cannot be read: {why}")),
    }
}

fn parse(bytes: Option<&[u8]>) -> Result<Index, Unfit> {
    bytes.map_or_else(|| Ok(Index::default()), Index::parse)
}

/// Makes the new index, under a lock; returns it, or why it stays as it is.
///
/// No flag of the session's and nothing that it says of files is taken over: it could hide what it
/// did to a file.
pub(crate) fn land<'a>(
    folder: &'a Folder,
    landing: &Landing<'_>,
) -> Result<Result<Landed<'a>, String>, Fault> {
    let (Ok(start), Ok(checked)) = (parse(landing.start), parse(landing.checked)) else {
        return Ok(Err("cannot be read as git wrote it".to_owned()));
    };
    let real_bytes = folder.read(&landing.path, MAX_INDEX)?;
    let real = match read(real_bytes.as_deref()) {
        Ok(real) => real,
        Err(why) => return Ok(Err(why)),
    };
    let Some(Merged {
        index,
        common,
        notes,
    }) = merge(&start, &real, &checked, landing.session)
    else {
        return Ok(Err("what you staged meanwhile and what the session staged cannot both be: a file and a folder of one name".to_owned()));
    };
    if index.entries == real.entries {
        return Ok(Ok(Landed {
            new: None,
            common,
            notes,
        }));
    }
    Ok(
        lock(folder, landing, &index, real_bytes.as_deref())?.map(|locked| Landed {
            new: Some(locked),
            common,
            notes,
        }),
    )
}

/// Writes the index beside the real one as git would, under its lock, if nobody else changed that
/// meanwhile.
fn lock<'a>(
    real: &'a Folder,
    landing: &Landing<'_>,
    merged: &Index,
    before: Option<&[u8]>,
) -> Result<Result<Locked<'a>, String>, Fault> {
    let locked = match hold(real, &landing.path, landing.id, &merged.write())? {
        Ok(locked) => locked,
        Err(why) => return Ok(Err(why)),
    };
    if real.read(&landing.path, MAX_INDEX)?.as_deref() != before {
        return Ok(Err("yours changed just now; begin again".to_owned()));
    }
    Ok(Ok(locked))
}

/// Takes the lock of an index as git does, with what it would come to be; returns why not, if
/// somebody else has it.
pub(crate) fn hold<'a>(
    real: &'a Folder,
    path: &[u8],
    id: &str,
    bytes: &[u8],
) -> Result<Result<Locked<'a>, String>, Fault> {
    let own = own_index(path, id);
    let lock = [path, b".lock"].concat();
    let mode = real.stat(path).map_or(0o644, |stat| stat.st_mode & 0o777);
    real.remove(&own)?;
    let mut file = real.create(&own, 0o600)?;
    let locked = Locked {
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
    // A link, so that a lock that is left by one who was killed is known as ours.
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

struct Merged {
    index: Index,
    /// What the session's side of it is.
    common: Index,
    notes: Vec<String>,
}

/// Puts together what the person and what the session staged since the start; `None`: it cannot be
/// one index.
fn merge(start: &Index, real: &Index, checked: &Index, session: &Index) -> Option<Merged> {
    let (start_entries, real_entries, session_entries) =
        (by_name(start), by_name(real), by_name(session));
    let mut theirs = by_name(checked);
    // A tree has no place for files that are only meant to be added.
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
        let is_same = |left: Option<&Entry>, right: Option<&Entry>| match (left, right) {
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
    Some(Merged {
        index: merged,
        common,
        notes,
    })
}

/// Whether a name is that of a file and of a folder above another one. Between the two there may be
/// more: `a`, `a.txt`, `a/c`.
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

type Entries<'a> = BTreeMap<&'a [u8], &'a Entry>;

fn by_name(index: &Index) -> Entries<'_> {
    index
        .entries
        .iter()
        .map(|entry| (entry.name.as_slice(), entry))
        .collect()
}

fn at<'a>(entries: &Entries<'a>, name: &[u8]) -> Option<&'a Entry> {
    entries.get(name).copied()
}

/// Returns an entry of the session's as one of the real index, where nothing is known yet of the
/// file.
fn with_flags(entry: &Entry, real: Option<&Entry>, in_session: Option<&Entry>) -> Entry {
    let mut entry = entry.clone();
    match real {
        Some(real) => entry.extended |= real.extended & SKIP_WORKTREE,
        // Outside of a sparse checkout; git itself takes the flag off where the file is there after
        // all.
        None => entry.extended |= in_session.map_or(0, |entry| entry.extended & SKIP_WORKTREE),
    }
    entry
}
