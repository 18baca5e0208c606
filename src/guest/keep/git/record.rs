//! What the repositories were like when a session began: kept where the session cannot reach it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;
use std::time::UNIX_EPOCH;

use serde::Deserialize;
use serde::Serialize;

use super::folder::Folder;
use super::index::Index;
use super::index::MAX_INDEX;
use super::refs::Head;
use super::stash::Stash;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::FoundGit;
use podbay_wire::keep::FoundRepository;
use podbay_wire::keep::GitKind;
use podbay_wire::keep::PreparedGit;

const VERSION: u32 = 1;
const MAX_RECORD: u64 = 512 << 20;
/// How often what there was no time for is tried without anything having come.
const MOST_TRIES: u64 = 3;

/// The start of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    version: u32,
    /// Everything that git took for a repository.
    pub found: FoundGit,
    /// Those that the session has a folder for.
    pub repositories: Vec<Started>,
    /// Which folders the found ones were: another one in the place of one of them was made since.
    #[serde(default)]
    stands: BTreeMap<BytesPath, Stands>,
    /// What was answered when the session's folders were made, for one that goes on in them.
    #[serde(default)]
    pub(crate) prepared: PreparedGit,
}

/// What is to be done about a session for which there was no time to move out of the project all
/// that it made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// All else was taken over.
    AllTaken,
    SomeLeft,
}

/// Which folder stands somewhere. An inode is given to another one when it is free; the time at
/// which one was made nobody can choose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stands {
    device: u64,
    inode: u64,
    made: Option<Duration>,
}

impl Stands {
    fn of(project: &Folder, path: &[u8]) -> Option<Self> {
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
pub struct Started {
    /// The session's folder that it, or the repository that it lies in, has; where a keeper finds
    /// it.
    #[serde(default)]
    pub session: BytesPath,
    /// Where in that: empty, or `modules/NAME`.
    pub inside: BytesPath,
    /// From the project's folder.
    pub path: BytesPath,
    /// Its name, where the project is a linked worktree.
    pub worktree: Option<BytesPath>,
    pub head: Head,
    pub refs: BTreeMap<BytesPath, String>,
    /// Names that stand for other names, beside `HEAD`.
    #[serde(default)]
    pub symbolic: BTreeMap<BytesPath, BytesPath>,
    pub stashes: Vec<Stash>,
    /// What its log says was checked out without a branch and left before.
    #[serde(default)]
    pub left_behind: BTreeSet<String>,
    /// Whether there was an index; it is kept beside this.
    pub has_index: bool,
}

impl Started {
    /// Returns the `.git` of the project that has the repository in it, or is it.
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

impl Start {
    pub(crate) fn new(project: &Folder, found: FoundGit, repositories: Vec<Started>) -> Self {
        let folders = found.repositories.iter().filter(|one| is_folder(one));
        let stands = folders
            .filter_map(|one| Some((one.path.clone(), Stands::of(project, one.path.as_bytes())?)))
            .collect();
        Self {
            version: VERSION,
            found,
            repositories,
            stands,
            prepared: PreparedGit::default(),
        }
    }

    /// Returns whether what stood somewhere still does; what is no folder is known by what it says.
    pub(crate) fn is_still(&self, project: &Folder, path: &[u8]) -> bool {
        self.stands
            .get(&BytesPath::from_bytes(path))
            .is_none_or(|stood| Stands::of(project, path).as_ref() == Some(stood))
    }

    /// Returns what was found then, without what another one has taken the place of.
    pub(crate) fn found_still(&self, project: &Folder) -> FoundGit {
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

    /// Notes that not all of a session could be taken over, and that this was told.
    pub(crate) fn keep(state: &Folder, id: &str) -> Result<(), Fault> {
        check_id(id)?;
        state.replace(&kept_name(id), b"")
    }

    /// Returns whether what there was no time for is tried again, and notes that it was tried: as
    /// long as something comes each time, and a few times where nothing did.
    pub(crate) fn tries_again(state: &Folder, id: &str, has_come: bool) -> Result<bool, Fault> {
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

    /// Notes that nothing of a session is in its own folder alone. The record stays until the next
    /// session is prepared: without one nobody could tell such a folder from one whose record was
    /// lost.
    pub(crate) fn settle(state: &Folder, id: &str) -> Result<(), Fault> {
        check_id(id)?;
        state.replace(&settled_name(id), b"")
    }

    pub(crate) fn is_settled(state: &Folder, id: &str) -> bool {
        state.kind(&settled_name(id)).is_some()
    }

    /// Forgets every session that is settled.
    pub(crate) fn forget_settled(state: &Folder) -> Result<(), Fault> {
        for (name, _) in state
            .names(b"")
            .map_err(|errno| super::folder::failed("list", b"", &errno.into()))?
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

    pub(crate) fn is_kept(state: &Folder, id: &str) -> bool {
        state.kind(&kept_name(id)).is_some()
    }

    /// Notes whether there is still something to be moved out of the project.
    pub(crate) fn note_late(state: &Folder, id: &str, late: Option<Late>) -> Result<(), Fault> {
        check_id(id)?;
        match late {
            Some(Late::AllTaken) => state.replace(&late_name(id), ALL_TAKEN),
            Some(Late::SomeLeft) => state.replace(&late_name(id), b""),
            None => state.remove(&late_name(id)),
        }
    }

    pub(crate) fn late(state: &Folder, id: &str) -> Option<Late> {
        let text = state
            .read(&late_name(id), ALL_TAKEN.len() as u64)
            .ok()
            .flatten()?;
        Some(if text == ALL_TAKEN {
            Late::AllTaken
        } else {
            Late::SomeLeft
        })
    }

    /// Reads the record of a session; `None`: it has none, because none was prepared.
    pub fn read(state: &Folder, id: &str) -> Result<Option<Self>, Fault> {
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

    /// Notes what was taken over of a repository while the rest of it waits: `now` is how it would
    /// have been at the start, had that been there then, and `index` the index, if that has
    /// changed. So nothing comes twice, whatever the person made of it.
    pub(crate) fn note_taken(
        state: &Folder,
        id: &str,
        at: usize,
        now: &Started,
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

    /// Notes that what is checked out is about to be changed in a repository: from then on what is
    /// checked out there may be of ours.
    pub(crate) fn note_switch(state: &Folder, id: &str, at: usize) -> Result<(), Fault> {
        check_id(id)?;
        state.replace(&switched_name(id, at), b"")
    }

    pub(crate) fn may_be_switched(state: &Folder, id: &str, at: usize) -> bool {
        state.kind(&switched_name(id, at)).is_some()
    }

    /// Writes the record; it is there as a whole or not at all. `indexes` has one for each
    /// repository that has one.
    pub(crate) fn write(
        &self,
        state: &Folder,
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
        state: &Folder,
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

    /// Forgets a session that is settled.
    pub fn forget(state: &Folder, id: &str) -> Result<(), Fault> {
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

/// How the name ends that says of a session that it is settled.
const SETTLED: &[u8] = b".settled";

fn settled_name(id: &str) -> Vec<u8> {
    [id.as_bytes(), SETTLED].concat()
}

fn kept_name(id: &str) -> Vec<u8> {
    format!("{id}.kept").into_bytes()
}

/// What stands in the note that there is something to be moved, where there is nothing else to do.
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

/// Refuses a session's name that could be part of a path or of a reference in another way than as
/// one plain word.
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
        problem: "is no name of a session; letters, digits, `-` and `_` make one".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_forgotten_as_a_whole() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let state = Folder::open(place.path()).expect("opens");
        let started = Started {
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
        let start = Start::new(&state, FoundGit::default(), vec![started]);
        start
            .write(&state, "a-1", &[Some(b"DIRC".to_vec())])
            .expect("written");
        assert_eq!(
            Start::read(&state, "a-1").expect("read"),
            Some(start.clone())
        );
        let of = |path: &str, inside: &str| Started {
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
        assert_eq!(Start::read(&state, "other").expect("read"), None);
        for id in ["", "../a", "a/b", "a b"] {
            assert!(Start::read(&state, id).is_err(), "{id}");
        }
        state.replace(b"b.json", b"{\"version\":9,\"found\":{\"repositories\":[],\"whole\":true},\"repositories\":[]}").expect("written");
        assert!(Start::read(&state, "b").is_err());
        // What was taken over since is no difference from the start any more.
        let main = BytesPath::from("refs/heads/main");
        let mut now = start.repositories[0].clone();
        now.refs.insert(main.clone(), "2".repeat(40));
        Start::note_taken(&state, "a-1", 0, &now, Some(&Index::default())).expect("written");
        let read = Start::read(&state, "a-1").expect("read").expect("there");
        assert_eq!(read.repositories[0].refs.get(&main), Some(&"2".repeat(40)));
        assert_eq!(
            read.index(&state, "a-1", 0).expect("read"),
            Some(Index::default().write())
        );
        let tries: Vec<bool> = [false, true, false, false, false]
            .map(|has_come| Start::tries_again(&state, "a-1", has_come).expect("noted"))
            .into();
        assert_eq!(tries, [true, true, true, true, false]);
        Start::note_switch(&state, "a-1", 0).expect("written");
        assert!(Start::may_be_switched(&state, "a-1", 0));
        Start::forget(&state, "a-1").expect("forgotten");
        assert_eq!(state.names(b"").expect("listed").len(), 1);
    }
}
