//! Counts what a walk leaves out, so that a result which says nothing says what was not looked at.

use super::walk::Entry;
use super::walk::Kind;
use super::walk::Why;
use podbay_wire::BytesPath;
use podbay_wire::LeftOut;

/// Folders that are named.
const MOST_NAMED: usize = 3;

/// What one thread of a walk has left out.
#[derive(Debug, Default)]
pub(super) struct Counted(LeftOut);

impl Counted {
    pub(super) fn note(&mut self, entry: &Entry<'_>, why: Why) {
        let Self(left_out) = self;
        let count = match (why, entry.kind) {
            (Why::Unselected, _) => return,
            (Why::Hidden, Kind::Folder) => &mut left_out.hidden_folders,
            (Why::Ignored, Kind::Folder) => &mut left_out.ignored_folders,
            (Why::Hidden, _) => &mut left_out.hidden_files,
            (Why::Ignored, _) => &mut left_out.ignored_files,
        };
        *count += 1;
        if entry.kind == Kind::Folder {
            name(&mut left_out.folders, BytesPath::from_bytes(entry.path()));
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

/// Keeps the first few by name, so that the same are named each time.
fn name(named: &mut Vec<BytesPath>, folder: BytesPath) {
    if named.len() < MOST_NAMED || named.last().is_some_and(|last| folder < *last) {
        let at = named.partition_point(|other| *other < folder);
        named.insert(at, folder);
        named.truncate(MOST_NAMED);
    }
}
