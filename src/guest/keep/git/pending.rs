//! The git work of a session that is pending until its changes are accepted. Nothing here runs git
//! or changes anything.

use std::path::Path;

use super::commits::Commits;
use super::refs::Head;
use super::session_changes::SessionChanges;
use super::session_start::SessionStart;
use super::session_start::StartedRepository;
use super::untrusted_folder::UntrustedFolder;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::NotImported;
use podbay_wire::keep::PendingGit;
use podbay_wire::keep::PendingRef;
use podbay_wire::keep::PendingRepository;

/// Most problems that are reported one by one.
const MOST_ODD: usize = 100;

/// Reads what a session left in its folder; `None`: the folder is not there. `starts` is the folder
/// of the records of session starts.
///
/// What cannot be read is reported, since it must not count as nothing.
pub fn pending_git(starts: &Path, session: Option<&Path>, id: &str) -> Option<PendingGit> {
    let Ok(starts) = UntrustedFolder::open(starts) else {
        return Some(PendingGit::default());
    };
    let start = match SessionStart::read(&starts, id) {
        Ok(Some(start))
            if !start.repositories.is_empty() && !SessionStart::is_settled(&starts, id) =>
        {
            start
        }
        Ok(_) => return Some(PendingGit::default()),
        Err(fault) => {
            return Some(PendingGit {
                repositories: vec![unreadable(&BytesPath::from(".git"), &fault)],
            });
        }
    };
    let session = UntrustedFolder::open(session?).ok()?;
    let look = |(at, started): (usize, &StartedRepository)| {
        let looked = start
            .index(&starts, id, at)
            .and_then(|index| repository(&session, id, started, index.as_deref()));
        looked.unwrap_or_else(|fault| unreadable(&started.path, &fault))
    };
    let all = start.repositories.iter().enumerate().map(look);
    Some(PendingGit {
        repositories: all.filter(|one| !one.is_empty()).collect(),
    })
}

/// Returns whether a session left nothing in its folder that is to be imported or reported.
/// `session`: that folder, where it has one.
pub(super) fn is_untouched(
    starts: &UntrustedFolder,
    session: Option<&Path>,
    id: &str,
    start: &SessionStart,
) -> Result<bool, Fault> {
    if start.repositories.is_empty() {
        return Ok(true);
    }
    let Some(session) = session.and_then(|path| UntrustedFolder::open(path).ok()) else {
        return Ok(false);
    };
    for (at, started) in start.repositories.iter().enumerate() {
        let index = start.index(starts, id, at)?;
        let left = left(&session, id, started, index.as_deref())?.1;
        let is_silent = left.notes.is_empty() && !left.is_under_way && !left.is_index_lost;
        if !is_silent || !repository(&session, id, started, index.as_deref())?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes from an earlier result what was imported since, where the session's folder is not there
/// to be read again.
pub fn remove_taken(starts: &Path, id: &str, waiting: &mut PendingGit) {
    let Some(start) = UntrustedFolder::open(starts)
        .ok()
        .and_then(|starts| SessionStart::read(&starts, id).ok().flatten())
    else {
        return;
    };
    for one in &mut waiting.repositories {
        let Some(started) = start
            .repositories
            .iter()
            .find(|started| started.path == one.path)
        else {
            continue;
        };
        let head = words(&started.head);
        one.remove_taken(
            |name| started.refs.get(&name.name) == Some(&name.new),
            started.stashes.iter().map(|stash| &stash.message),
            Some(&head),
        );
    }
    waiting.repositories.retain(|one| !one.is_empty());
}

fn words(head: &Head) -> String {
    match head {
        Head::Branch { name } => name.to_text(),
        Head::Commit { object } => object.clone(),
    }
}

/// Returns whether a session's start is recorded, readable or not.
pub fn is_on_record(starts: &Path, id: &str) -> bool {
    UntrustedFolder::open(starts)
        .is_ok_and(|starts| !matches!(SessionStart::read(&starts, id), Ok(None)))
}

/// Removes the record of the start of a session whose review is over.
pub fn forget(starts: &Path, id: &str) -> Result<(), Fault> {
    match UntrustedFolder::open(starts) {
        Ok(starts) => SessionStart::forget(&starts, id),
        Err(_) => Ok(()),
    }
}

/// Reads what a session left of one repository.
fn left(
    session: &UntrustedFolder,
    id: &str,
    started: &StartedRepository,
    start_index: Option<&[u8]>,
) -> Result<(UntrustedFolder, SessionChanges), Fault> {
    let inside = if started.inside.is_empty() {
        b".".as_slice()
    } else {
        started.inside.as_bytes()
    };
    let folder = session
        .descend(inside)
        .map_err(|errno| super::untrusted_folder::failed("open", inside, &errno.into()))?;
    let left = SessionChanges::read(&folder, &started.private(), id, started, start_index)?;
    Ok((folder, left))
}

fn repository(
    session: &UntrustedFolder,
    id: &str,
    started: &StartedRepository,
    start_index: Option<&[u8]>,
) -> Result<PendingRepository, Fault> {
    let (folder, left) = left(session, id, started, start_index)?;
    let commits = Commits::new(&folder, started);
    // A staged state equal to the commit is imported with it.
    let committed = left
        .head
        .as_ref()
        .and_then(|head| commits.tree(head.commit(&left.bound)?));
    let is_staged = left
        .index
        .as_ref()
        .is_some_and(|index| committed.is_none() || index.tree() != committed);
    let was_there = |name: &BytesPath| started.refs.contains_key(name);
    let name = |(name, object): (&BytesPath, &String)| {
        let (n_commits, subject) = commits.count_since_start(object);
        let old = started.refs.get(name).cloned();
        let is_anew =
            n_commits.is_some_and(|n| n > 0) && old.is_some() && commits.has_new_history(object);
        PendingRef {
            called: left.given.called(name),
            name: name.clone(),
            old,
            new: object.clone(),
            n_commits,
            subject,
            is_anew,
        }
    };
    Ok(PendingRepository {
        path: started.path.clone(),
        // Not all of very many are named: those that existed before are.
        names: left
            .names
            .iter()
            .filter(|(name, _)| was_there(name))
            .chain(left.names.iter().filter(|(name, _)| !was_there(name)))
            .map(name)
            .collect(),
        stashes: left
            .stashes
            .into_iter()
            .map(|stash| stash.message)
            .collect(),
        head: left
            .head
            .filter(|head| *head != started.head)
            .map(|head| words(&head)),
        is_staged,
        odd: odd(&left.not_imported),
    })
}

/// Returns what cannot be imported as it is: first what is not one of many references.
fn odd(all: &[NotImported]) -> Vec<String> {
    let (names, others): (Vec<&NotImported>, Vec<&NotImported>) = all
        .iter()
        .partition(|one| one.what.as_bytes().starts_with(b"refs/"));
    let said = others.into_iter().chain(names).take(MOST_ODD);
    let mut odd: Vec<String> = said
        .map(|one| format!("{}: {}", one.what, one.why))
        .collect();
    odd.extend(
        all.len()
            .checked_sub(MOST_ODD)
            .filter(|n| *n > 0)
            .map(|n| format!("and {n} more")),
    );
    odd
}

fn unreadable(path: &BytesPath, fault: &Fault) -> PendingRepository {
    let odd = vec![format!("the session's git folder cannot be read: {fault}")];
    PendingRepository {
        path: path.clone(),
        odd,
        ..PendingRepository::default()
    }
}

impl StartedRepository {
    /// Returns the private folder of its worktree.
    pub(super) fn private(&self) -> Vec<u8> {
        self.worktree
            .as_ref()
            .map_or_else(|| b".".to_vec(), |name| join(b"worktrees", name.as_bytes()))
    }
}

#[cfg(test)]
mod tests;
