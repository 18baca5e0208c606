//! Files of which only some hunks are applied. The others stay pending: the session's state is
//! compared with the part that was applied.

use super::OpenReview;
use super::pin_of;
use crate::keep::Error;
use crate::keep::Node;
use crate::keep::ObjectId;
use crate::keep::Store;
use crate::keep::compare::Change;
use crate::keep::deflate::Deflate;
use crate::keep::diff::content;
use crate::keep::diff::readable;
use crate::keep::pin;
use crate::keep::snapshot_edit::edited;
use crate::keep::store::PutOutcome;
use crate::line_diff::LineDiff;
use podbay_wire::keep::TakenHunks;

impl OpenReview<'_> {
    /// Has the changes apply only these hunks of their files, and notes what those files get.
    /// Returns the snapshot that the changes lead to.
    pub(super) fn take_hunks(
        &mut self,
        changes: &mut [Change],
        hunks: &[TakenHunks],
    ) -> Result<ObjectId, Error> {
        let to = self.record.after();
        let partial = take_hunks(&mut self.store, changes, hunks)?;
        if partial.is_empty() && self.record.partly.is_empty() {
            return Ok(to);
        }
        let to = edited(&mut self.store, &to, &partial)?;
        let state = |change: Change| Some((change.path, change.after?));
        self.record.partly = partial.into_iter().filter_map(state).collect();
        // Its contents are needed for as long as something of the review is pending.
        self.record.taken_from.insert(to);
        let snapshots = self.record.snapshots();
        pin::pin(
            self.state,
            &self.store,
            &pin_of(&self.record.name),
            snapshots,
        )?;
        self.record.save(self.state)?;
        Ok(to)
    }
}

/// Gives the changes of these files only some of their hunks; returns those changes. What is not
/// among the changes is left for a reason that was reported.
pub(super) fn take_hunks(
    store: &mut Store,
    changes: &mut [Change],
    hunks: &[TakenHunks],
) -> Result<Vec<Change>, Error> {
    let mut partial = Vec::new();
    let addition = store.add();
    for taken in hunks {
        let Ok(at) = changes.binary_search_by(|change| change.path.cmp(&taken.path)) else {
            continue;
        };
        let change = &mut changes[at];
        if is_whole(taken) {
            continue;
        }
        let stale = || Error::Hunks {
            path: taken.path.clone(),
        };
        let (Some(Node::File { .. }), Some(Node::File { mode, .. })) =
            (&change.before, &change.after)
        else {
            return Err(stale());
        };
        let mode = *mode;
        let before = content(store, change.before.as_ref())?;
        let after = content(store, change.after.as_ref())?;
        let part = part(&before, &after, taken).ok_or_else(stale)?;
        let PutOutcome::Kept(object) = addition.put(&part, &mut Deflate::default())? else {
            return Err(Error::Full {
                most_bytes: store.most_bytes(),
            });
        };
        change.after = Some(Node::File {
            mode,
            n_bytes: part.len() as u64,
            object,
        });
        partial.push(change.clone());
    }
    let added = addition.finish()?;
    store.take_in_added(added)?;
    partial.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(partial)
}

/// Whether all hunks are taken, so that the file is applied as a whole.
fn is_whole(hunks: &TakenHunks) -> bool {
    (0..hunks.n_hunks).all(|n| hunks.taken.contains(&n))
}

/// Returns a text with some of its hunks; `None` if it has other hunks than were shown.
fn part(before: &[u8], after: &[u8], hunks: &TakenHunks) -> Option<Vec<u8>> {
    let (old, new) = (readable(before), readable(after));
    let ranges = LineDiff::of(&old, &new).ranges();
    if ranges.len() != hunks.n_hunks as usize {
        return None;
    }
    let (old, new) = (lines(before), lines(after));
    let mut out = Vec::new();
    let mut at = 0;
    for (n, hunk) in (0..).zip(&ranges) {
        if !hunks.taken.contains(&n) {
            continue;
        }
        for (removed, added) in hunk {
            out.extend(old.get(at..removed.start)?.concat());
            out.extend(new.get(added.clone())?.concat());
            at = removed.end;
        }
    }
    out.extend(old.get(at..)?.concat());
    Some(out)
}

fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|byte| *byte == b'\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, n_hunks: u32, taken: &[u32], part: Option<&str>) {
        let hunks = TakenHunks {
            path: "file".into(),
            n_hunks,
            taken: taken.to_vec(),
        };
        let found = super::part(before.as_bytes(), after.as_bytes(), &hunks);
        let found = found.map(|bytes| String::from_utf8(bytes).expect("text"));
        assert_eq!(found.as_deref(), part);
    }

    fn numbered(change: impl Fn(usize) -> String) -> String {
        (1..=30).map(change).collect()
    }

    #[test]
    fn taken_hunks_are_in_and_the_others_are_as_before() {
        let line = |n: usize| format!("{n}\n");
        let with = |changed: &[usize]| {
            numbered(|n| {
                if changed.contains(&n) {
                    format!("new {n}\n")
                } else {
                    line(n)
                }
            })
        };
        let (before, after) = (with(&[]), with(&[3, 5, 15, 28]));
        // The first two changes are near each other and share a hunk.
        for (taken, changed) in [
            (&[0][..], &[3, 5][..]),
            (&[1], &[15]),
            (&[0, 2], &[3, 5, 28]),
            (&[0, 1, 2], &[3, 5, 15, 28]),
            (&[], &[]),
        ] {
            check(&before, &after, 3, taken, Some(&with(changed)));
        }
        check(&before, &after, 4, &[0], None);
    }

    #[test]
    fn a_last_line_without_its_end_stays_so() {
        let filler = "x\n".repeat(20);
        let (before, after) = (format!("a\n{filler}b"), format!("A\n{filler}b\nc"));
        check(&before, &after, 2, &[0], Some(&format!("A\n{filler}b")));
        check(&before, &after, 2, &[1], Some(&format!("a\n{filler}b\nc")));
    }
}
