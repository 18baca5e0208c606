use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde::Serialize;

use super::Error;
use super::compare::Change;
use super::folder::Folder;
use super::node::are_alike;
use super::read::Found;
use super::unheld::Unheld;
use podbay_wire::BytesPath;
use podbay_wire::keep::Applied;

const NAME: &str = "journal.json";

/// One that a turn began over: nothing of it is done any more, and what it left in the project is
/// cleared up when somebody may write there.
const ASIDE: &str = "journal-aside.json";

/// What an application is for: whoever finishes it must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum Purpose {
    /// A turn is taken back, then more of them.
    Back { turn: u64, then: u32, merge: bool },
    /// A turn is brought back, then more of them.
    Forward { turn: u64, then: u32, merge: bool },
    /// Changes from elsewhere are brought in, which somebody calls by this name.
    Review { name: String },
}

/// What is about to be done to the project, on the disk before any of it is. Every step can be told
/// from the project itself to be done or not, so whoever comes next goes through all of them again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Journal {
    /// In the names of temporary files, by which they are known again.
    pub(super) token: String,
    pub(super) purpose: Purpose,
    /// What is to be changed, sorted by path.
    pub(super) changes: Vec<Change>,
    /// Those of them whose names a file system could take for each other.
    pub(super) ambiguous: BTreeSet<BytesPath>,
    /// Folders that must be made writable for it, with the modes they get back.
    pub(super) opened: BTreeMap<BytesPath, u32>,
    /// What was found out before, such as conflicts.
    pub(super) found: Applied,
    /// The paths that were left by then and may be tried again.
    #[serde(default)]
    pub(super) left: Vec<BytesPath>,
    /// What is known of those changes one side of which no snapshot holds.
    #[serde(default)]
    pub(super) unheld: BTreeMap<BytesPath, Unheld>,
    /// Nothing was done yet but to open folders, to see what is in them.
    #[serde(default)]
    pub(super) is_look: bool,
}

impl Journal {
    /// One that only opens folders so far.
    pub(super) fn look(token: String, purpose: Purpose) -> Self {
        let (changes, ambiguous, found, left) = <_>::default();
        Self {
            token,
            purpose,
            changes,
            ambiguous,
            opened: BTreeMap::new(),
            found,
            left,
            unheld: BTreeMap::new(),
            is_look: true,
        }
    }

    pub(super) fn load(state: &Folder) -> Result<Option<Self>, Error> {
        Self::read(state, NAME)
    }

    /// Returns the one that was put aside, if one was.
    pub(super) fn load_aside(state: &Folder) -> Result<Option<Self>, Error> {
        Self::read(state, ASIDE)
    }

    fn read(state: &Folder, name: &str) -> Result<Option<Self>, Error> {
        let Some(bytes) = state.read(name)? else {
            return Ok(None);
        };
        let broken = |error: serde_json::Error| Error::Unreadable {
            name: name.to_owned(),
            problem: error.to_string(),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(broken)
    }

    /// Whether what stands somewhere is what a change begins with, apart from a folder.
    pub(super) fn is_before(&self, change: &Change, here: &Found) -> bool {
        match self
            .unheld
            .get(&change.path)
            .and_then(|unheld| unheld.before)
        {
            Some(facts) => facts.are_of(here),
            None => are_alike(
                here.node().as_ref(),
                change.before.as_ref().filter(|node| !node.is_folder()),
            ),
        }
    }

    /// Whether what stands somewhere is what a change leads to.
    pub(super) fn is_after(&self, change: &Change, here: &Found) -> bool {
        match self
            .unheld
            .get(&change.path)
            .and_then(|unheld| unheld.after)
        {
            Some(facts) => facts.are_of(here),
            None => are_alike(here.node().as_ref(), change.after.as_ref()),
        }
    }

    /// Returns all that is not known to be done: each path that was to be changed, or was left.
    pub(super) fn open_paths(&self) -> Vec<BytesPath> {
        let mut paths: Vec<BytesPath> = self
            .changes
            .iter()
            .map(|change| &change.path)
            .chain(&self.left)
            .cloned()
            .collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Puts it where nobody finishes it any more.
    pub(super) fn put_aside(&self, state: &Folder) -> Result<(), Error> {
        let bytes = serde_json::to_vec(self).expect("a journal is plain data");
        state.replace(ASIDE, &bytes)?;
        Self::clear(state)
    }

    pub(super) fn clear_aside(state: &Folder) -> Result<(), Error> {
        state.remove(ASIDE)
    }

    pub(super) fn save(&self, state: &Folder) -> Result<(), Error> {
        let bytes = serde_json::to_vec(self).expect("a journal is plain data");
        state.replace(NAME, &bytes)
    }

    pub(super) fn clear(state: &Folder) -> Result<(), Error> {
        state.remove(NAME)
    }

    pub(super) fn is_there(state: &Folder) -> Result<bool, Error> {
        Ok(state.read(NAME)?.is_some())
    }
}
