use crate::guest::keep::Difference;
use crate::guest::keep::auto_run::AutoRun;
use crate::guest::keep::auto_run::Foremost;
use crate::guest::keep::compare::Change;
use crate::guest::keep::compare::told;
use crate::wire::keep::EntryType;
use crate::wire::keep::LineCount;
use crate::wire::keep::MayRun;
use crate::wire::keep::Pending;
use crate::wire::keep::ReviewedPath;
use crate::wire::keep::What;

/// Sums changes up, with the lines that their unified diff adds and removes.
pub(super) fn pending(changes: &[Change], difference: &Difference, auto_run: &AutoRun) -> Pending {
    let mut pending = Pending { is_may_run_cut: auto_run.is_cut(), ..Pending::default() };
    let mut foremost = Foremost::default();
    for change in changes {
        if let Some(why) = auto_run.why(change) {
            foremost.add(MayRun { path: change.path.clone(), why }, change.before.is_some());
        }
    }
    pending.may_run = foremost.named();
    let mut all = told(changes);
    // What a build leaves lies deep, and what a person looks for does not.
    all.sort_by_key(|change| memchr::memchr_iter(b'/', change.path.as_bytes()).count());
    for change in all {
        // Of a folder there are lines only where it took the place of a file.
        let has_lines = change.entry != EntryType::Folder || matches!(change.what, What::Type { .. });
        let known = difference.lines.get(&change.path);
        pending.n_uncounted += u64::from(has_lines && known.is_none());
        let lines = known.copied().flatten().filter(|_| has_lines);
        let LineCount { n_added, n_removed } = lines.unwrap_or_default();
        pending.n_added += n_added;
        pending.n_removed += n_removed;
        pending.changes.add(ReviewedPath { change, lines });
    }
    pending
}
