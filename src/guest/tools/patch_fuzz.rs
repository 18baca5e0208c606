//! Fuzz for unified diffs: outermost context lines that do not match are ignored, as `patch` does.

use std::borrow::Cow;

use super::patch_lines::Leniency;
use super::patch_lines::TakenRanges;
use super::patch_match::FileLines;
use super::patch_match::HunkPlace;
use super::patch_match::named;
use podbay_wire::Hunk;
use podbay_wire::PatchForm;
use podbay_wire::PatchLine;

/// Most lines ignored at either end of a hunk, as in `patch`.
const MAX_FUZZ: usize = 2;

impl FileLines<'_> {
    /// Finds where a hunk fits without its outermost context lines: a single place, or the line
    /// that it names.
    pub(super) fn find_with_fuzz<'b>(
        &self,
        hunk: &Hunk,
        begin: usize,
        taken: &TakenRanges,
    ) -> Option<HunkPlace<'b>> {
        for fuzz in (1..=MAX_FUZZ).filter(|_| hunk.form == PatchForm::Unified) {
            let (hunk, n_left_out) = without_ends(hunk, fuzz)?;
            let old = self.old(&hunk);
            if old.iter().all(|line| line.trim_ascii().is_empty()) {
                return None;
            }
            let at_end = |at: &usize| !hunk.at_end || at + old.len() == self.lines().len();
            let fits =
                |at: &usize| *at >= begin && taken.leaves(&(*at..at + old.len())) && at_end(at);
            let places: Vec<usize> = self
                .index
                .places(&old, Leniency::Exact, begin)
                .filter(fits)
                .take(2)
                .collect();
            let at_named = || {
                named(&hunk, n_left_out)
                    .filter(|at| self.index.is_at(*at, &old, Leniency::Exact))
                    .filter(fits)
            };
            let at = match places.as_slice() {
                [] => continue,
                [only] => *only,
                // A smaller hunk does not fit in fewer places.
                _ => at_named()?,
            };
            let (range, guessed) = (at..at + old.len(), places.len() > 1);
            let hunk = Cow::Owned(hunk);
            return Some(HunkPlace {
                range,
                level: Leniency::Exact,
                hunk,
                n_left_out,
                fuzz,
                guessed,
                others: Vec::new(),
            });
        }
        None
    }
}

/// Removes up to so many context lines from both ends of a hunk; returns the rest, and how many
/// were removed at its start. `None`: fewer would do the same.
fn without_ends(hunk: &Hunk, fuzz: usize) -> Option<(Hunk, usize)> {
    let is_kept = |line: &&PatchLine| matches!(line, PatchLine::Keep(_));
    let n_first = hunk.lines.iter().take_while(is_kept).count().min(fuzz);
    let n_last = hunk
        .lines
        .iter()
        .rev()
        .take_while(is_kept)
        .count()
        .min(fuzz);
    if n_first.max(n_last) < fuzz {
        return None;
    }
    let mut left = Hunk {
        lines: hunk.lines[n_first..hunk.lines.len() - n_last].to_vec(),
        ..hunk.clone()
    };
    if n_last > 0 {
        // These flags belong to its last line.
        (left.at_end, left.old_unended, left.new_unended) = (false, false, false);
    }
    Some((left, n_first))
}
