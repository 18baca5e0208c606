use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde::Serialize;

use super::Error;
use super::compare::Change;
use super::node::are_alike;
use super::read::FoundEntry;
use super::state_folder::StateFolder;
use super::uncaptured::UncapturedChange;
use podbay_wire::BytesPath;
use podbay_wire::keep::ApplyOutcome;

const NAME: &str = "journal.json";

/// A journal over which a turn began: it is not executed any more, and its temporary files are
/// removed as soon as a keeper may write to the project.
const ASIDE: &str = "journal-aside.json";

/// The purpose of an application, which a resume must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum Purpose {
    /// A turn is undone, then more of them.
    Back { turn: u64, then: u32, merge: bool },
    /// A turn is redone, then more of them.
    Forward { turn: u64, then: u32, merge: bool },
    /// A review of this name is applied.
    Review { name: String },
}

/// The changes that are about to be made in the project, flushed to the disk before any of them is.
/// Whether each is done can be told from the project itself, so a resume goes through all of them
/// again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Journal {
    /// Part of the names of temporary files, which are recognized by it.
    pub(super) token: String,
    pub(super) purpose: Purpose,
    /// The changes, sorted by path.
    pub(super) changes: Vec<Change>,
    /// Paths that a file system could confuse with each other.
    pub(super) ambiguous: BTreeSet<BytesPath>,
    /// Folders that must be made writable for it, with their original modes.
    pub(super) opened: BTreeMap<BytesPath, u32>,
    /// What was found out before, such as conflicts.
    pub(super) found: ApplyOutcome,
    /// Paths that were left undone by then and may be retried.
    #[serde(default)]
    pub(super) left: Vec<BytesPath>,
    /// Facts about changes with a side that no snapshot holds.
    #[serde(default)]
    pub(super) unheld: BTreeMap<BytesPath, UncapturedChange>,
    /// Only folders were opened yet, to examine their contents.
    #[serde(default)]
    pub(super) is_look: bool,
}

impl Journal {
    /// A journal that only opens folders so far.
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

    pub(super) fn load(state: &StateFolder) -> Result<Option<Self>, Error> {
        Self::read(state, NAME)
    }

    /// Returns the journal that was put aside, if any.
    pub(super) fn load_aside(state: &StateFolder) -> Result<Option<Self>, Error> {
        Self::read(state, ASIDE)
    }

    fn read(state: &StateFolder, name: &str) -> Result<Option<Self>, Error> {
        let Some(bytes) = state.read(name)? else {
            return Ok(None);
        };
        let broken = |error: serde_json::Error| Error::Unreadable {
            name: name.to_owned(),
            problem: error.to_string(),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(broken)
    }

    /// Whether an entry is the state before a change, apart from a folder.
    pub(super) fn is_before(&self, change: &Change, here: &FoundEntry) -> bool {
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

    /// Whether an entry is the state after a change.
    pub(super) fn is_after(&self, change: &Change, here: &FoundEntry) -> bool {
        match self
            .unheld
            .get(&change.path)
            .and_then(|unheld| unheld.after)
        {
            Some(facts) => facts.are_of(here),
            None => are_alike(here.node().as_ref(), change.after.as_ref()),
        }
    }

    /// Returns all paths that are not known to be done: those to be changed, and those left.
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

    /// Renames the journal so that it is not executed any more.
    pub(super) fn put_aside(&self, state: &StateFolder) -> Result<(), Error> {
        let bytes = serde_json::to_vec(self).expect("a journal is plain data");
        state.replace(ASIDE, &bytes)?;
        Self::clear(state)
    }

    pub(super) fn clear_aside(state: &StateFolder) -> Result<(), Error> {
        state.remove(ASIDE)
    }

    pub(super) fn save(&self, state: &StateFolder) -> Result<(), Error> {
        let bytes = serde_json::to_vec(self).expect("a journal is plain data");
        state.replace(NAME, &bytes)
    }

    pub(super) fn clear(state: &StateFolder) -> Result<(), Error> {
        state.remove(NAME)
    }

    pub(super) fn is_there(state: &StateFolder) -> Result<bool, Error> {
        Ok(state.read(NAME)?.is_some())
    }
}
