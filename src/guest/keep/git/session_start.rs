//! Records the state of the repositories when a session began, out of the session's reach.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;
use std::time::UNIX_EPOCH;

use serde::Deserialize;
use serde::Serialize;

use super::index::Index;
use super::index::MAX_INDEX;
use super::refs::Head;
use super::stash::Stash;
use super::untrusted_folder::UntrustedFolder;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::FoundGit;
use podbay_wire::keep::FoundRepository;
use podbay_wire::keep::GitKind;
use podbay_wire::keep::PreparedGit;

const VERSION: u32 = 1;
const MAX_RECORD: u64 = 512 << 20;
/// How often an import without time is retried without any progress.
const MOST_TRIES: u64 = 3;

/// The state at a session's start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionStart {
    version: u32,
    /// Every repository.
    pub found: FoundGit,
    /// Those that the session has a folder for.
    pub repositories: Vec<StartedRepository>,
    /// The folders of the found repositories: one that replaces them is recognized by this.
    #[serde(default)]
    stands: BTreeMap<BytesPath, FolderIdentity>,
    /// The answer when the session's folders were made, for a session that resumes in them.
    #[serde(default)]
    pub(crate) prepared: PreparedGit,
}

/// What is still to be done for a session for which there was no time to move out all of its
/// repositories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingMoveOut {
    /// Everything else was imported.
    AllTaken,
    SomeLeft,
}

/// Identity of a folder. An inode may be reused when it is free; the creation time cannot be set by
/// a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FolderIdentity {
    device: u64,
    inode: u64,
    made: Option<Duration>,
}

impl FolderIdentity {
    fn of(project: &UntrustedFolder, path: &[u8]) -> Option<Self> {
        let facts = File::from(project.place(path).ok()?).metadata().ok()?;
        let made = facts
            .created()
            .ok()
            .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Some(Self {
            device: facts.dev(),
            inode: facts.ino(),
            made,
        })
    }
}

/// A repository at the start of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedRepository {
    /// The session's folder for it, or for the repository that it lies in, as a keeper reaches it.
    #[serde(default)]
    pub session: BytesPath,
    /// Path in that folder: empty, or `modules/NAME`.
    pub inside: BytesPath,
    /// Relative to the project's folder.
    pub path: BytesPath,
    /// Its worktree name, where the project is a linked worktree.
    pub worktree: Option<BytesPath>,
    pub head: Head,
    pub refs: BTreeMap<BytesPath, String>,
    /// Symbolic references, without `HEAD`.
    #[serde(default)]
    pub symbolic: BTreeMap<BytesPath, BytesPath>,
    pub stashes: Vec<Stash>,
    /// Commits of a detached HEAD that were left before, by the log.
    #[serde(default)]
    pub left_behind: BTreeSet<String>,
    /// Whether there was an index; a copy is kept beside this.
    pub has_index: bool,
}

impl StartedRepository {
    /// Returns the `.git` of the project that holds the repository, or is it.
    pub(crate) fn git(&self) -> &[u8] {
        let (path, inside) = (self.path.as_bytes(), self.inside.as_bytes());
        if inside.is_empty() {
            path
        } else {
            path.strip_suffix(inside)
                .and_then(|path| path.strip_suffix(b"/"))
                .unwrap_or(path)
        }
    }
}

impl SessionStart {
    pub(crate) fn new(
        project: &UntrustedFolder,
        found: FoundGit,
        repositories: Vec<StartedRepository>,
    ) -> Self {
        let folders = found.repositories.iter().filter(|one| is_folder(one));
        let stands = folders
            .filter_map(|one| {
                Some((
                    one.path.clone(),
                    FolderIdentity::of(project, one.path.as_bytes())?,
                ))
            })
            .collect();
        Self {
            version: VERSION,
            found,
            repositories,
            stands,
            prepared: PreparedGit::default(),
        }
    }

    /// Returns whether a repository is still the same one; one that is no folder is compared by
    /// content.
    pub(crate) fn is_still(&self, project: &UntrustedFolder, path: &[u8]) -> bool {
        self.stands
            .get(&BytesPath::from_bytes(path))
            .is_none_or(|stood| FolderIdentity::of(project, path).as_ref() == Some(stood))
    }

    /// Returns what was found at the start, without what was replaced since.
    pub(crate) fn found_still(&self, project: &UntrustedFolder) -> FoundGit {
        let repositories = self
            .found
            .repositories
            .iter()
            .filter(|one| self.is_still(project, one.path.as_bytes()))
            .cloned()
            .collect();
        FoundGit {
            repositories,
            ..self.found.clone()
        }
    }

    /// Records that the import of a session is incomplete, and that this was reported.
    pub(crate) fn keep(state: &UntrustedFolder, id: &str) -> Result<(), Fault> {
        check_id(id)?;
        state.replace(&kept_name(id), b"")
    }

    /// Returns whether an import that ran out of time is retried, and counts the try: as long as
    /// each one makes progress, and a few times without.
    pub(crate) fn tries_again(
        state: &UntrustedFolder,
        id: &str,
        has_come: bool,
    ) -> Result<bool, Fault> {
        check_id(id)?;
        let n_vain = if has_come {
            0
        } else {
            state
                .read(&tries_name(id), MOST_TRIES)?
                .map_or(0, |text| text.len() as u64)
                + 1
        };
        state.replace(&tries_name(id), ".".repeat(n_vain as usize).as_bytes())?;
        Ok(n_vain < MOST_TRIES)
    }

    /// Records that a session is settled: nothing of it is in its own folder alone. The record
    /// stays until the next session is prepared, since a folder without a record could not be told
    /// from one whose record was lost.
    pub(crate) fn settle(state: &UntrustedFolder, id: &str) -> Result<(), Fault> {
        check_id(id)?;
        state.replace(&settled_name(id), b"")
    }

    pub(crate) fn is_settled(state: &UntrustedFolder, id: &str) -> bool {
        state.kind(&settled_name(id)).is_some()
    }

    /// Removes the records of all settled sessions.
    pub(crate) fn forget_settled(state: &UntrustedFolder) -> Result<(), Fault> {
        for (name, _) in state
            .names(b"")
            .map_err(|errno| super::untrusted_folder::failed("list", b"", &errno.into()))?
        {
            if let Some(id) = name
                .strip_suffix(SETTLED)
                .and_then(|id| std::str::from_utf8(id).ok())
            {
                Self::forget(state, id)?;
            }
        }
        Ok(())
    }

    pub(crate) fn is_kept(state: &UntrustedFolder, id: &str) -> bool {
        state.kind(&kept_name(id)).is_some()
    }

    /// Records whether something is still to be moved out of the project.
    pub(crate) fn note_late(
        state: &UntrustedFolder,
        id: &str,
        late: Option<PendingMoveOut>,
    ) -> Result<(), Fault> {
        check_id(id)?;
        match late {
            Some(PendingMoveOut::AllTaken) => state.replace(&late_name(id), ALL_TAKEN),
            Some(PendingMoveOut::SomeLeft) => state.replace(&late_name(id), b""),
            None => state.remove(&late_name(id)),
        }
    }

    pub(crate) fn late(state: &UntrustedFolder, id: &str) -> Option<PendingMoveOut> {
        let text = state
            .read(&late_name(id), ALL_TAKEN.len() as u64)
            .ok()
            .flatten()?;
        Some(if text == ALL_TAKEN {
            PendingMoveOut::AllTaken
        } else {
            PendingMoveOut::SomeLeft
        })
    }

    /// Reads the record of a session; `None`: it has none, because none was prepared.
    pub fn read(state: &UntrustedFolder, id: &str) -> Result<Option<Self>, Fault> {
        check_id(id)?;
        let name = format!("{id}.json");
        let Some(text) = state.read(name.as_bytes(), MAX_RECORD)? else {
            return Ok(None);
        };
        let wrong = |problem: String| Fault::Io {
            doing: format!("read what the repositories were like at the start ({name})"),
            problem,
        };
        let mut start: Self =
            serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if start.version != VERSION {
            return Err(wrong(format!(
                "it was written by another Podbay (version {})",
                start.version
            )));
        }
        for (at, started) in start.repositories.iter_mut().enumerate() {
            if let Some(text) = state.read(&taken_name(id, at), MAX_RECORD)? {
                *started =
                    serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
            }
        }
        Ok(Some(start))
    }

    /// Records what was imported of a repository while the rest of it is pending: `now` is the
    /// start as if that had existed then, and `index` the index, if it changed. So nothing is
    /// imported twice, whatever the user did with it.
    pub(crate) fn note_taken(
        state: &UntrustedFolder,
        id: &str,
        at: usize,
        now: &StartedRepository,
        index: Option<&Index>,
    ) -> Result<(), Fault> {
        check_id(id)?;
        if let Some(index) = index {
            state.replace(&index_name(id, at), &index.write())?;
        }
        let text = serde_json::to_vec(now).map_err(|error| Fault::Io {
            doing: "write a record".into(),
            problem: error.to_string(),
        })?;
        state.replace(&taken_name(id, at), &text)?;
        state.remove(&switched_name(id, at))
    }

    /// Records that the checkout of a repository is about to be switched: from then on the checkout
    /// there may be ours.
    pub(crate) fn note_switch(state: &UntrustedFolder, id: &str, at: usize) -> Result<(), Fault> {
        check_id(id)?;
        state.replace(&switched_name(id, at), b"")
    }

    pub(crate) fn may_be_switched(state: &UntrustedFolder, id: &str, at: usize) -> bool {
        state.kind(&switched_name(id, at)).is_some()
    }

    /// Writes the record atomically. `indexes` has one for each repository that has one.
    pub(crate) fn write(
        &self,
        state: &UntrustedFolder,
        id: &str,
        indexes: &[Option<Vec<u8>>],
    ) -> Result<(), Fault> {
        check_id(id)?;
        for (at, index) in indexes.iter().enumerate() {
            if let Some(index) = index {
                state.replace(&index_name(id, at), index)?;
            }
        }
        let text = serde_json::to_vec(self).map_err(|error| Fault::Io {
            doing: "write a record".into(),
            problem: error.to_string(),
        })?;
        state.replace(format!("{id}.json").as_bytes(), &text)
    }

    /// Returns the index that a repository had.
    pub(crate) fn index(
        &self,
        state: &UntrustedFolder,
        id: &str,
        at: usize,
    ) -> Result<Option<Vec<u8>>, Fault> {
        if !self
            .repositories
            .get(at)
            .is_some_and(|started| started.has_index)
        {
            return Ok(None);
        }
        state.read(&index_name(id, at), MAX_INDEX)
    }

    /// Removes the record of a settled session.
    pub fn forget(state: &UntrustedFolder, id: &str) -> Result<(), Fault> {
        let Some(start) = Self::read(state, id)? else {
            return Ok(());
        };
        for at in 0..start.repositories.len() {
            state.remove(&index_name(id, at))?;
            state.remove(&taken_name(id, at))?;
            state.remove(&switched_name(id, at))?;
        }
        state.remove(&kept_name(id))?;
        state.remove(&late_name(id))?;
        state.remove(&tries_name(id))?;
        state.remove(format!("{id}.json").as_bytes())?;
        state.remove(&settled_name(id))
    }
}

fn is_folder(one: &FoundRepository) -> bool {
    matches!(one.kind, GitKind::Folder | GitKind::Bare)
}

/// Suffix of the name that marks a session as settled.
const SETTLED: &[u8] = b".settled";

fn settled_name(id: &str) -> Vec<u8> {
    [id.as_bytes(), SETTLED].concat()
}

fn kept_name(id: &str) -> Vec<u8> {
    format!("{id}.kept").into_bytes()
}

/// Content of the note when only repositories are still to be moved out.
const ALL_TAKEN: &[u8] = b"all taken";

fn late_name(id: &str) -> Vec<u8> {
    format!("{id}.late").into_bytes()
}

fn tries_name(id: &str) -> Vec<u8> {
    format!("{id}.tries").into_bytes()
}

fn index_name(id: &str, at: usize) -> Vec<u8> {
    format!("{id}.{at}.index").into_bytes()
}

fn taken_name(id: &str, at: usize) -> Vec<u8> {
    format!("{id}.{at}.taken").into_bytes()
}

fn switched_name(id: &str, at: usize) -> Vec<u8> {
    format!("{id}.{at}.switched").into_bytes()
}

/// Refuses a session id that is not one plain word, since it becomes part of paths and references.
pub(crate) fn check_id(id: &str) -> Result<(), Fault> {
    let is_plain = !id.is_empty()
        && id.len() <= 100
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if is_plain {
        return Ok(());
    }
    Err(Fault::Invalid {
        field: "session".into(),
        problem: "is not a valid session name; use letters, digits, `-` and `_`".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_written_and_removed_completely() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let state = UntrustedFolder::open(place.path()).expect("opens");
        let started = StartedRepository {
            session: "/session/0".into(),
            inside: BytesPath::default(),
            path: ".git".into(),
            worktree: None,
            head: Head::Branch {
                name: "refs/heads/main".into(),
            },
            refs: BTreeMap::from([(BytesPath::from_bytes(b"refs/heads/\xff"), "1".repeat(40))]),
            symbolic: BTreeMap::from([(
                "refs/remotes/origin/HEAD".into(),
                "refs/remotes/origin/main".into(),
            )]),
            stashes: Vec::new(),
            left_behind: BTreeSet::from(["2".repeat(40)]),
            has_index: true,
        };
        let start = SessionStart::new(&state, FoundGit::default(), vec![started]);
        start
            .write(&state, "a-1", &[Some(b"DIRC".to_vec())])
            .expect("written");
        assert_eq!(
            SessionStart::read(&state, "a-1").expect("read"),
            Some(start.clone())
        );
        let of = |path: &str, inside: &str| StartedRepository {
            path: path.into(),
            inside: inside.into(),
            ..start.repositories[0].clone()
        };
        assert_eq!(of("a/.git/modules/x", "modules/x").git(), b"a/.git");
        assert_eq!(of("a/.git", "").git(), b"a/.git");
        assert_eq!(
            start.index(&state, "a-1", 0).expect("read"),
            Some(b"DIRC".to_vec())
        );
        assert_eq!(SessionStart::read(&state, "other").expect("read"), None);
        for id in ["", "../a", "a/b", "a b"] {
            assert!(SessionStart::read(&state, id).is_err(), "{id}");
        }
        state.replace(b"b.json", b"{\"version\":9,\"found\":{\"repositories\":[],\"whole\":true},\"repositories\":[]}").expect("written");
        assert!(SessionStart::read(&state, "b").is_err());
        // What was imported since does not differ from the start any more.
        let main = BytesPath::from("refs/heads/main");
        let mut now = start.repositories[0].clone();
        now.refs.insert(main.clone(), "2".repeat(40));
        SessionStart::note_taken(&state, "a-1", 0, &now, Some(&Index::default())).expect("written");
        let read = SessionStart::read(&state, "a-1")
            .expect("read")
            .expect("there");
        assert_eq!(read.repositories[0].refs.get(&main), Some(&"2".repeat(40)));
        assert_eq!(
            read.index(&state, "a-1", 0).expect("read"),
            Some(Index::default().write())
        );
        let tries: Vec<bool> = [false, true, false, false, false]
            .map(|has_come| SessionStart::tries_again(&state, "a-1", has_come).expect("noted"))
            .into();
        assert_eq!(tries, [true, true, true, true, false]);
        SessionStart::note_switch(&state, "a-1", 0).expect("written");
        assert!(SessionStart::may_be_switched(&state, "a-1", 0));
        SessionStart::forget(&state, "a-1").expect("forgotten");
        assert_eq!(state.names(b"").expect("listed").len(), 1);
    }
}
