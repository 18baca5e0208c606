use std::collections::HashMap;

use crate::guest::keep::Difference;
use crate::guest::keep::auto_run::AutoRun;
use crate::guest::keep::compare::Change;
use crate::guest::keep::compare::told;
use crate::wire::keep::EntryType;
use crate::wire::keep::LineCount;
use crate::wire::keep::MayRun;
use crate::wire::keep::PathChange;
use crate::wire::keep::Pending;
use crate::wire::keep::ReviewedPath;
use crate::wire::keep::What;

/// Sums changes up, with the lines that their unified diff adds and removes.
pub(super) fn pending(changes: &[Change], difference: &Difference, auto_run: &AutoRun) -> Pending {
    let counts = counts(&difference.text);
    let mut pending = Pending::default();
    for change in changes {
        if let Some(why) = auto_run.why(change) {
            pending.may_run.add(MayRun { path: change.path.clone(), why });
        }
    }
    let mut all = told(changes);
    // What a build leaves lies deep, and what a person looks for does not.
    all.sort_by_key(|change| memchr::memchr_iter(b'/', change.path.as_bytes()).count());
    for change in all {
        // Of a folder there are lines only where it took the place of a file.
        let has_lines = change.entry != EntryType::Folder || matches!(change.what, What::Type { .. });
        let lines = counts.get(header(&change).as_str()).copied().flatten().filter(|_| has_lines);
        let LineCount { n_added, n_removed } = lines.unwrap_or_default();
        pending.n_added += n_added;
        pending.n_removed += n_removed;
        pending.changes.add(ReviewedPath { change, lines });
    }
    pending
}

/// The line that begins the diff of a file.
fn header(change: &PathChange) -> String {
    let old = match &change.what {
        What::Renamed { from } => from,
        _ => &change.path,
    };
    format!("diff --git a/{old} b/{}", change.path)
}

/// Counts the lines of each file by its header; `None` where its diff is cut or it is no text.
fn counts(text: &str) -> HashMap<&str, Option<LineCount>> {
    let mut counts = HashMap::new();
    let mut at = None;
    let mut is_in_hunk = false;
    for line in text.lines() {
        if line.starts_with("diff --git ") {
            counts.insert(line, Some(LineCount::default()));
            (at, is_in_hunk) = (Some(line), false);
            continue;
        }
        let Some(count) = at.and_then(|header| counts.get_mut(header)) else { continue };
        match (line.as_bytes().first(), count.as_mut()) {
            _ if line.starts_with("@@ ") => is_in_hunk = true,
            (Some(b'+'), Some(count)) if is_in_hunk => count.n_added += 1,
            (Some(b'-'), Some(count)) if is_in_hunk => count.n_removed += 1,
            _ if ["… ", "Binary files ", "Not shown: "].iter().any(|words| line.starts_with(words)) => *count = None,
            _ => {}
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_in_hunks_alone() {
        let text = "diff --git a/one b/one\n--- a/one\n+++ b/one\n@@ -1,2 +1,3 @@\n same\n-two\n+2\n+++three\n\
                    diff --git a/image b/image\nBinary files a/image and b/image differ\n\
                    diff --git a/large b/large\nNot shown: the text is too large, 0 bytes before and 9999999 now\n\
                    diff --git a/run b/run\nold mode 100644\nnew mode 100755\n\
                    diff --git a/long b/long\n--- a/long\n+++ b/long\n@@ -0,0 +1 @@\n+x\n… 9 more lines of the diff\n";
        let counts = counts(text);
        assert_eq!(counts["diff --git a/one b/one"], Some(LineCount { n_added: 2, n_removed: 1 }));
        assert_eq!(counts["diff --git a/image b/image"], None);
        assert_eq!(counts["diff --git a/run b/run"], Some(LineCount::default()));
        assert_eq!(counts["diff --git a/long b/long"], None);
    }
}
