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
use crate::wire::BytesPath;
use crate::wire::Fault;

const MAX_TOLD: usize = 20;

/// The indexes that meet.
#[derive(Debug)]
pub(crate) struct Landing<'a> {
    pub(crate) real: &'a Folder,
    /// The index in it.
    pub(crate) path: Vec<u8>,
    pub(crate) id: &'a str,
    pub(crate) start: Option<&'a [u8]>,
    /// What the session left, of which only flags are looked at: its names and objects are those of `checked`.
    pub(crate) session: &'a Index,
    /// The same as git made it of a tree that it has checked.
    pub(crate) checked: &'a [u8],
}

/// Writes the index; returns what is to be said of it, or why it stays as it is.
///
/// No flag of the session's and nothing that it says of files is taken over: it could hide what it did to a file.
pub(crate) fn land(landing: &Landing<'_>) -> Result<Result<Vec<String>, String>, Fault> {
    let parse = |bytes: Option<&[u8]>| bytes.map_or_else(|| Ok(Index::default()), Index::parse);
    let (Ok(start), Ok(checked)) = (parse(landing.start), parse(Some(landing.checked))) else {
        return Ok(Err("cannot be read as git wrote it".to_owned()));
    };
    let real_bytes = landing.real.read(&landing.path, MAX_INDEX)?;
    let real = match parse(real_bytes.as_deref()) {
        Ok(real) if real.is_unmerged() => return Ok(Err("yours holds a merge with conflicts; it stays as it is".to_owned())),
        Ok(real) => real,
        Err(Unfit::Split | Unfit::Sparse) => return Ok(Err("yours is split or sparse since; it stays as it is".to_owned())),
        Err(Unfit::Broken(why)) => return Ok(Err(format!("yours cannot be read: {why}"))),
    };
    let Some((merged, notes)) = merge(&start, &real, &checked, landing.session) else {
        return Ok(Err("what you staged meanwhile and what the session staged cannot both be: a file and a folder of one name".to_owned()));
    };
    if merged.entries == real.entries {
        return Ok(Ok(notes));
    }
    Ok(write(landing, &merged, real_bytes.as_deref())?.map(|()| notes))
}

/// Replaces the index as git would, under its lock, if nobody else did meanwhile.
fn write(landing: &Landing<'_>, merged: &Index, before: Option<&[u8]>) -> Result<Result<(), String>, Fault> {
    let real = landing.real;
    let own = own_index(&landing.path, landing.id);
    let lock = [landing.path.as_slice(), b".lock"].concat();
    let mode = real.stat(&landing.path).map_or(0o644, |stat| stat.st_mode & 0o777);
    real.remove(&own)?;
    let mut file = real.create(&own, 0o600)?;
    let wrong = |error: std::io::Error| failed("write", &own, &error);
    file.write_all(&merged.write()).map_err(wrong)?;
    file.set_permissions(std::fs::Permissions::from_mode(mode)).map_err(wrong)?;
    file.sync_all().map_err(wrong)?;
    // A link, so that a lock that is left by one who was killed is known as ours.
    match linkat(real, own.as_slice(), real, lock.as_slice(), AtFlags::empty()) {
        Ok(()) => {}
        Err(Errno::EEXIST) => {
            real.remove(&own)?;
            return Ok(Err("yours is locked by another git; begin again when that is done".to_owned()));
        }
        Err(errno) => return Err(failed("lock", &landing.path, &errno.into())),
    }
    if real.read(&landing.path, MAX_INDEX)?.as_deref() != before {
        real.remove(&lock)?;
        real.remove(&own)?;
        return Ok(Err("yours changed just now; begin again".to_owned()));
    }
    real.rename(&lock, &landing.path).map_err(|errno| failed("write", &landing.path, &errno.into()))?;
    real.remove(&own)?;
    Ok(Ok(()))
}

/// Puts together what the person and what the session staged since the start; `None`: it cannot be one index.
fn merge(start: &Index, real: &Index, checked: &Index, session: &Index) -> Option<(Index, Vec<String>)> {
    let by_name =
        |index: &Index| -> BTreeMap<Vec<u8>, Entry> { index.entries.iter().map(|entry| (entry.name.clone(), entry.clone())).collect() };
    let (start_entries, real_entries, session_entries) = (by_name(start), by_name(real), by_name(session));
    let mut theirs = by_name(checked);
    // A tree has no place for files that are only meant to be added.
    for (name, entry) in &start_entries {
        if entry.is_intended() && session_entries.get(name).is_some_and(Entry::is_intended) {
            theirs.entry(name.clone()).or_insert_with(|| entry.clone());
        }
    }
    let is_sparse = start.entries.iter().any(|entry| entry.extended & SKIP_WORKTREE != 0);
    let mut names: Vec<&Vec<u8>> = real_entries.keys().chain(theirs.keys()).collect();
    names.sort();
    names.dedup();
    let mut merged = Index::default();
    let mut kept = Vec::new();
    for name in names {
        let (base, ours, other) = (start_entries.get(name), real_entries.get(name), theirs.get(name));
        let is_same = |left: Option<&Entry>, right: Option<&Entry>| match (left, right) {
            (Some(left), Some(right)) => left.is_same(right),
            (None, None) => true,
            _ => false,
        };
        let taken = if is_same(ours, other) || is_same(base, other) {
            ours.cloned()
        } else if is_same(base, ours) {
            other.map(|other| with_flags(other, ours, session_entries.get(name).filter(|_| is_sparse)))
        } else {
            kept.push(BytesPath::from_bytes(name.clone()));
            ours.cloned()
        };
        merged.entries.extend(taken);
    }
    let is_inside = |pair: &[Entry]| pair[1].name.strip_prefix(pair[0].name.as_slice()).is_some_and(|rest| rest.starts_with(b"/"));
    if merged.entries.windows(2).any(is_inside) {
        return None;
    }
    let n_more = kept.len().saturating_sub(MAX_TOLD);
    let mut notes: Vec<String> =
        kept.iter().take(MAX_TOLD).map(|name| format!("{name} is staged as you have it, not as the session has")).collect();
    if n_more > 0 {
        notes.push(format!("so are {n_more} more"));
    }
    Some((merged, notes))
}

/// Returns an entry of the session's as one of the real index, where nothing is known yet of the file.
fn with_flags(entry: &Entry, real: Option<&Entry>, in_session: Option<&Entry>) -> Entry {
    let mut entry = entry.clone();
    match real {
        Some(real) => entry.extended |= real.extended & SKIP_WORKTREE,
        // Outside of a sparse checkout; git itself takes the flag off where the file is there after all.
        None => entry.extended |= in_session.map_or(0, |entry| entry.extended & SKIP_WORKTREE),
    }
    entry
}
