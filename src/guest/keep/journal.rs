use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::Deserialize;
use serde::Serialize;

use super::Error;
use super::compare::Change;
use super::folder::Folder;
use crate::wire::BytesPath;
use crate::wire::keep::Applied;

const NAME: &str = "journal.json";

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

/// What is about to be done to the project, on the disk before any of it is. Every step can be told from the project itself to be done
/// or not, so whoever comes next goes through all of them again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Journal {
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
}

impl Journal {
    pub(super) fn load(state: &Folder) -> Result<Option<Self>, Error> {
        let Some(bytes) = state.read(NAME)? else { return Ok(None) };
        let broken = |error: serde_json::Error| Error::Unreadable { name: NAME.to_owned(), problem: error.to_string() };
        serde_json::from_slice(&bytes).map(Some).map_err(broken)
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
