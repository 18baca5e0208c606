use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use serde::Serialize;

use super::applied_paths::AppliedPath;
use crate::keep::Error;
use crate::keep::Node;
use crate::keep::ObjectId;
use crate::keep::StateFolder;
use podbay_wire::BytesPath;
use podbay_wire::keep::PendingGit;
use podbay_wire::keep::PendingReview;

const FOLDER: &str = "reviews";
const END: &str = ".json";

/// The record of a review.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ReviewRecord {
    pub(super) name: String,
    pub(super) words: String,
    pub(super) at: u64,
    /// The project when the session began.
    pub(super) base: ObjectId,
    /// The copy at the session's end; `None`: it has not ended.
    pub(super) after: Option<ObjectId>,
    /// Whether a session works on it, or did when it was interrupted.
    pub(super) is_open: bool,
    /// Whether each turn is applied at its end, and is no change of the session after that.
    #[serde(default)]
    pub(super) by_turn: bool,
    /// The copy at the end of the last turn, if some of it is pending.
    #[serde(default)]
    pub(super) waiting: Option<ObjectId>,
    /// Whether that is to be restored in a new copy.
    #[serde(default)]
    pub(super) restores: bool,
    /// Whether the copy did not fit when it was captured; while it exists, it is captured again.
    #[serde(default)]
    pub(super) is_cut_short: bool,
    /// Paths that differ between the two snapshots because another program changed them in the
    /// project, sorted.
    pub(super) not_of_it: Vec<BytesPath>,
    /// The session's git work at the last look.
    #[serde(default)]
    pub(super) git: PendingGit,
    /// Path of the project's folder on the user's machine when a session last began.
    #[serde(default)]
    pub(super) place: BytesPath,
    /// Paths that are applied already, sorted.
    #[serde(default)]
    pub(super) taken: Vec<AppliedPath>,
    /// Paths that are being applied in part, with the state that they get, sorted.
    #[serde(default)]
    pub(super) partly: Vec<(BytesPath, Node)>,
    /// The copy when those were applied.
    #[serde(default)]
    pub(super) taken_from: BTreeSet<ObjectId>,
}

impl ReviewRecord {
    pub(super) fn load(state: &StateFolder, name: &str) -> Result<Option<Self>, Error> {
        let Some(bytes) = state.below(FOLDER)?.read(&file_of(name))? else {
            return Ok(None);
        };
        let broken = |error: serde_json::Error| Error::Unreadable {
            name: file_of(name),
            problem: error.to_string(),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(broken)
    }

    /// Returns all readable records.
    pub(super) fn all(state: &StateFolder) -> Result<Vec<Self>, Error> {
        let names = state.below(FOLDER)?.names()?;
        let load = |name: &String| Self::load(state, name.strip_suffix(END)?).ok()?;
        Ok(names.iter().filter_map(load).collect())
    }

    pub(super) fn save(&self, state: &StateFolder) -> Result<(), Error> {
        let bytes = serde_json::to_vec(self).expect("a record is plain data");
        state.below(FOLDER)?.replace(&file_of(&self.name), &bytes)
    }

    pub(super) fn note_place(
        state: &StateFolder,
        name: &str,
        place: &BytesPath,
    ) -> Result<(), Error> {
        let Some(record) = Self::load(state, name)? else {
            return Ok(());
        };
        Self {
            place: place.clone(),
            ..record
        }
        .save(state)
    }

    pub(super) fn remove(state: &StateFolder, name: &str) -> Result<(), Error> {
        state.below(FOLDER)?.remove(&file_of(name))
    }

    /// Returns the copy at the end; before that, the unchanged project.
    pub(super) fn after(&self) -> ObjectId {
        self.after.unwrap_or(self.base)
    }

    pub(super) fn taken_at(&self, path: &BytesPath) -> Option<&AppliedPath> {
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

    pub(super) fn told(&self, n_changes: Option<u64>) -> PendingReview {
        PendingReview {
            name: self.name.clone(),
            words: self.words.clone(),
            at: self.at,
            n_changes,
            git: self.git.clone(),
            elsewhere: None,
        }
    }
}

/// Returns whether a review has a record; `state` is the keeper's folder.
pub(in crate::keep) fn is_on_record(state: &Path, name: &str) -> bool {
    state.join(FOLDER).join(file_of(name)).is_file()
}

/// Returns the path of a review's project on the user's machine; empty: unknown.
pub(in crate::keep) fn place_of(state: &Path, name: &str) -> BytesPath {
    let bytes = std::fs::read(state.join(FOLDER).join(file_of(name))).unwrap_or_default();
    serde_json::from_slice(&bytes)
        .map(|record: ReviewRecord| record.place)
        .unwrap_or_default()
}

fn file_of(name: &str) -> String {
    format!("{name}{END}")
}
