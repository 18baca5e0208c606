use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use serde::Serialize;

use super::taken::Taken;
use crate::keep::Error;
use crate::keep::Folder;
use crate::keep::ObjectId;
use podbay_wire::BytesPath;
use podbay_wire::keep::Review;
use podbay_wire::keep::WaitingGit;

const FOLDER: &str = "reviews";
const END: &str = ".json";

/// What is written down of a review.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) name: String,
    pub(super) words: String,
    pub(super) at: u64,
    /// How the project was when the session began.
    pub(super) base: ObjectId,
    /// How the copy was when it ended; `None`: it never did.
    pub(super) after: Option<ObjectId>,
    /// A session is at work on it, or was when it was cut off.
    pub(super) is_open: bool,
    /// Each turn goes into the project at its end, and is no change of the session after that.
    #[serde(default)]
    pub(super) by_turn: bool,
    /// How the copy was at the end of the last turn, where something of it waits.
    #[serde(default)]
    pub(super) waiting: Option<ObjectId>,
    /// That is to be put into a copy that was made anew.
    #[serde(default)]
    pub(super) restores: bool,
    /// There was no room for all of the copy when it was looked at; as long as it is there, it is
    /// looked at again.
    #[serde(default)]
    pub(super) is_cut_short: bool,
    /// Paths that differ between the two because somebody else changed them in the project, sorted.
    pub(super) not_of_it: Vec<BytesPath>,
    /// What its session did with git, as it was last looked at.
    #[serde(default)]
    pub(super) git: WaitingGit,
    /// Where the project's folder was on the person's machine when a session last began.
    #[serde(default)]
    pub(super) place: BytesPath,
    /// What is in the project already, sorted by path.
    #[serde(default)]
    pub(super) taken: Vec<Taken>,
    /// How the copy was when that was brought in.
    #[serde(default)]
    pub(super) taken_from: BTreeSet<ObjectId>,
}

impl Record {
    pub(super) fn load(state: &Folder, name: &str) -> Result<Option<Self>, Error> {
        let Some(bytes) = state.below(FOLDER)?.read(&file_of(name))? else {
            return Ok(None);
        };
        let broken = |error: serde_json::Error| Error::Unreadable {
            name: file_of(name),
            problem: error.to_string(),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(broken)
    }

    /// Returns all that can be read.
    pub(super) fn all(state: &Folder) -> Result<Vec<Self>, Error> {
        let names = state.below(FOLDER)?.names()?;
        let load = |name: &String| Self::load(state, name.strip_suffix(END)?).ok()?;
        Ok(names.iter().filter_map(load).collect())
    }

    pub(super) fn save(&self, state: &Folder) -> Result<(), Error> {
        let bytes = serde_json::to_vec(self).expect("a record is plain data");
        state.below(FOLDER)?.replace(&file_of(&self.name), &bytes)
    }

    pub(super) fn note_place(state: &Folder, name: &str, place: &BytesPath) -> Result<(), Error> {
        let Some(record) = Self::load(state, name)? else {
            return Ok(());
        };
        Self {
            place: place.clone(),
            ..record
        }
        .save(state)
    }

    pub(super) fn remove(state: &Folder, name: &str) -> Result<(), Error> {
        state.below(FOLDER)?.remove(&file_of(name))
    }

    /// Returns how the copy was at the end; before that nothing was changed.
    pub(super) fn after(&self) -> ObjectId {
        self.after.unwrap_or(self.base)
    }

    pub(super) fn taken_at(&self, path: &BytesPath) -> Option<&Taken> {
        self.taken
            .binary_search_by(|taken| taken.path().cmp(path))
            .ok()
            .map(|at| &self.taken[at])
    }

    /// Returns the snapshots that it needs.
    pub(super) fn snapshots(&self) -> BTreeSet<ObjectId> {
        [self.base, self.after()]
            .into_iter()
            .chain(self.waiting)
            .chain(self.taken_from.iter().copied())
            .collect()
    }

    pub(super) fn told(&self, n_changes: Option<u64>) -> Review {
        Review {
            name: self.name.clone(),
            words: self.words.clone(),
            at: self.at,
            n_changes,
            git: self.git.clone(),
            elsewhere: None,
        }
    }
}

/// Returns whether a review is written down; `state` is where the keeper's folder is.
pub(in crate::keep) fn is_on_record(state: &Path, name: &str) -> bool {
    state.join(FOLDER).join(file_of(name)).is_file()
}

/// Returns where the project of a review was on the person's machine; nothing where nobody knows.
pub(in crate::keep) fn place_of(state: &Path, name: &str) -> BytesPath {
    let bytes = std::fs::read(state.join(FOLDER).join(file_of(name))).unwrap_or_default();
    serde_json::from_slice(&bytes)
        .map(|record: Record| record.place)
        .unwrap_or_default()
}

fn file_of(name: &str) -> String {
    format!("{name}{END}")
}
