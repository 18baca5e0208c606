//! Truncates answers to fit into a frame: everything is counted, and some of it is named.

use serde::Serialize;

use super::ApplyOutcome;
use super::GitAnswer;
use super::ImportedRepository;
use super::Kept;
use super::MOST_NAMED;
use super::NamedList;
use super::PendingChanges;
use super::PendingGit;
use super::PendingReview;
use super::PreparedGit;
use super::ReviewAnswer;
use super::SettledGit;
use super::TurnAnswer;
use super::UndoAnswer;

/// Most bytes of one kind of entries in an answer. There are at most five kinds, so that they fit
/// into a frame.
const MOST_BYTES: usize = 3 << 19;

/// Most repositories that an answer names: submodules can be many.
const MOST_REPOSITORIES: usize = 5_000;

/// Truncates a list to `most` entries and to the rest of the allowance; returns how many were
/// removed.
pub(super) fn cut<T: Serialize>(list: &mut Vec<T>, most: usize, allowance: &mut usize) -> u64 {
    let n_before = list.len();
    list.truncate(most);
    // An entry that cannot be serialized is in no answer.
    let bytes = |item: &T| serde_json::to_vec(item).map_or(usize::MAX, |json| json.len() + 1);
    let mut n_fitting = 0;
    for item in &*list {
        let Some(rest) = allowance.checked_sub(bytes(item)) else {
            break;
        };
        *allowance = rest;
        n_fitting += 1;
    }
    list.truncate(n_fitting);
    (n_before - n_fitting) as u64
}

impl<T: Serialize> NamedList<T> {
    fn fit(&mut self, allowance: &mut usize) {
        cut(&mut self.first, MOST_NAMED, allowance);
    }
}

impl Kept {
    /// Truncates its lists to fit into a frame. A diff in it has a limit of its own, which leaves
    /// that much.
    pub fn fit(&mut self) {
        let allowance = &mut { MOST_BYTES };
        match self {
            Self::Turn { answer } => match &mut **answer {
                TurnAnswer::Began(began) => {
                    began.may_run.fit(allowance);
                    began.passed_over.fit(allowance);
                }
                TurnAnswer::Ended(ended) => {
                    ended.may_run.fit(allowance);
                    ended.changes.fit(allowance);
                    ended.passed_over.fit(allowance);
                }
            },
            Self::Undo { answer } => answer.fit(allowance),
            Self::Review { answer } => answer.fit(allowance),
            Self::Git { answer } => answer.fit(),
            Self::Found(_) | Self::Failed { .. } => {}
        }
    }
}

impl GitAnswer {
    /// Truncates its lists.
    pub fn fit(&mut self) {
        match self {
            Self::Prepared(prepared) => prepared.fit(),
            Self::Settled(settled) => settled.fit(),
            Self::Forgotten { .. } => {}
        }
    }
}

impl UndoAnswer {
    fn fit(&mut self, allowance: &mut usize) {
        match self {
            Self::Turns(turns) => turns.turns.fit(allowance),
            Self::Differences { turns } => turns
                .iter_mut()
                .for_each(|turn| turn.changes.fit(allowance)),
            Self::Undone(undone) => undone
                .turns
                .iter_mut()
                .for_each(|turn| turn.applied.fit(allowance)),
            Self::Applied { applied, .. } => applied.fit(allowance),
            Self::Abandoned | Self::Nothing | Self::Unfinished => {}
        }
    }
}

impl ReviewAnswer {
    fn fit(&mut self, allowance: &mut usize) {
        match self {
            Self::Ended(pending) => pending.fit(allowance),
            Self::Reviews { reviews } => {
                reviews
                    .first
                    .iter_mut()
                    .for_each(|review| review.git.fit(allowance));
                // The rest of each is short, except for the project's path.
                cut(&mut reviews.first, MOST_NAMED, &mut { 4 * MOST_BYTES });
            }
            Self::Difference(difference) => {
                let PendingReview { git, .. } = &mut difference.review;
                git.fit(allowance);
                difference.pending.fit(allowance);
            }
            Self::Applied(done) => {
                done.git.fit(allowance);
                done.may_run.fit(allowance);
                done.applied.fit(allowance);
                done.resumed
                    .iter_mut()
                    .for_each(|resumed| resumed.fit(allowance));
            }
            Self::Turn(turn) => {
                turn.came.fit(allowance);
                turn.applied.fit(allowance);
                turn.resumed
                    .iter_mut()
                    .for_each(|resumed| resumed.fit(allowance));
            }
            Self::Began(began) => {
                began.passed_over.fit(allowance);
                began.hidden_changes.fit(allowance);
            }
            Self::Copied(_) | Self::InAlready { .. } | Self::GitTaken | Self::Discarded => {}
        }
    }
}

impl PendingChanges {
    fn fit(&mut self, allowance: &mut usize) {
        self.may_run.fit(allowance);
        self.git.fit(allowance);
        self.changes.fit(allowance);
        self.conflicts.fit(allowance);
    }
}

impl ApplyOutcome {
    fn fit(&mut self, allowance: &mut usize) {
        self.conflicts.fit(allowance);
        self.refused.fit(allowance);
        for paths in [
            &mut self.without_set_id,
            &mut self.merged,
            &mut self.removed,
            &mut self.changed,
        ] {
            paths.fit(allowance);
        }
    }
}

impl PendingGit {
    fn fit(&mut self, allowance: &mut usize) {
        for one in &mut self.repositories {
            one.names.fit(allowance);
            let n_more = cut(&mut one.odd, MOST_NAMED, allowance)
                + cut(&mut one.stashes, MOST_NAMED, allowance);
            one.odd
                .extend((n_more > 0).then(|| format!("and {n_more} more stashes and notes")));
        }
    }
}

impl SettledGit {
    /// Truncates its lists, and counts the removed entries.
    pub fn fit(&mut self) {
        cut(&mut self.aside.moved.first, MOST_NAMED, &mut { MOST_BYTES });
        // Only one of the two is filled.
        cut(&mut self.held.first, MOST_NAMED, &mut { MOST_BYTES });
        cut(&mut self.may_run.first, MOST_NAMED, &mut { MOST_BYTES });
        let repositories = &mut self.imported.repositories;
        let mut allowance = 2 * MOST_BYTES;
        for repository in &mut *repositories {
            repository.fit(&mut allowance);
        }
        if repositories.len() > MOST_REPOSITORIES {
            repositories.sort_by_key(ImportedRepository::is_whole);
        }
        self.imported.n_more += cut(repositories, MOST_REPOSITORIES, &mut { 3 * MOST_BYTES });
    }
}

impl ImportedRepository {
    fn fit(&mut self, allowance: &mut usize) {
        // Entries other than branches and tags are few, and tell more.
        self.not_imported
            .sort_by_key(|one| one.what.as_bytes().starts_with(b"refs/"));
        self.n_more.not_imported += cut(&mut self.not_imported, MOST_NAMED, allowance);
        self.n_more.moved += cut(&mut self.moved, MOST_NAMED, allowance);
        self.n_more.notes += cut(&mut self.notes, MOST_NAMED, allowance);
    }
}

impl PreparedGit {
    /// Truncates its lists, and counts the removed entries.
    pub fn fit(&mut self) {
        let mut allowance = MOST_BYTES;
        for repository in &mut self.repositories {
            cut(&mut repository.hidden, MOST_NAMED, &mut allowance);
            cut(&mut repository.notes, MOST_NAMED, &mut allowance);
        }
        self.n_more += cut(&mut self.repositories, MOST_REPOSITORIES, &mut {
            3 * MOST_BYTES
        });
        // Missing or merely named files are not protected.
        cut(&mut self.obeyed.unread, MOST_NAMED, &mut { MOST_BYTES / 2 });
        self.obeyed.said.clear();
    }
}

#[cfg(test)]
mod tests;
