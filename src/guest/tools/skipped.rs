//! Counts what a walk skips, so that an empty result says what was not searched.

use super::walk::Entry;
use super::walk::Kind;
use super::walk::SkipReason;
use podbay_wire::BytesPath;
use podbay_wire::LeftOut;

/// Folders that are named.
const MOST_NAMED: usize = 3;

/// What one thread of a walk has skipped.
#[derive(Debug, Default)]
pub(super) struct SkipCounts(LeftOut);

impl SkipCounts {
    pub(super) fn note(&mut self, entry: &Entry<'_>, why: SkipReason) {
        let Self(skipped) = self;
        let count = match (why, entry.kind) {
            (SkipReason::Unselected, _) => return,
            (SkipReason::Hidden, Kind::Folder) => &mut skipped.hidden_folders,
            (SkipReason::Ignored, Kind::Folder) => &mut skipped.ignored_folders,
            (SkipReason::Hidden, _) => &mut skipped.hidden_files,
            (SkipReason::Ignored, _) => &mut skipped.ignored_files,
        };
        *count += 1;
        if entry.kind == Kind::Folder {
            name(&mut skipped.folders, BytesPath::from_bytes(entry.path()));
        }
    }

    pub(super) fn sum(all: impl IntoIterator<Item = Self>) -> LeftOut {
        let mut sum = LeftOut::default();
        for Self(part) in all {
            sum.hidden_files += part.hidden_files;
            sum.ignored_files += part.ignored_files;
            sum.hidden_folders += part.hidden_folders;
            sum.ignored_folders += part.ignored_folders;
            part.folders
                .into_iter()
                .for_each(|folder| name(&mut sum.folders, folder));
        }
        sum
    }
}

/// Keeps the first few by name, so that the result is deterministic.
fn name(named: &mut Vec<BytesPath>, folder: BytesPath) {
    if named.len() < MOST_NAMED || named.last().is_some_and(|last| folder < *last) {
        let at = named.partition_point(|other| *other < folder);
        named.insert(at, folder);
        named.truncate(MOST_NAMED);
    }
}
