//! Hunks of a unified diff whose outermost lines are not there: they are passed over, as `patch`
//! does (fuzz).

use std::borrow::Cow;

use super::patch_lines::Level;
use super::patch_lines::Taken;
use super::patch_match::Found;
use super::patch_match::Text;
use super::patch_match::named;
use podbay_wire::Hunk;
use podbay_wire::PatchForm;
use podbay_wire::PatchLine;

/// Most lines at either end of a hunk that may be passed over, as of `patch`.
const MAX_FUZZ: usize = 2;

impl Text<'_> {
    /// Finds where a hunk of a unified diff goes without the outermost lines around its change: in
    /// one place alone, or at the line that it names.
    pub(super) fn find_with_fuzz<'b>(
        &self,
        hunk: &Hunk,
        begin: usize,
        taken: &Taken,
    ) -> Option<Found<'b>> {
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
                .places(&old, Level::Exact, begin)
                .filter(fits)
                .take(2)
                .collect();
            let at_named = || {
                named(&hunk, n_left_out)
                    .filter(|at| self.index.is_at(*at, &old, Level::Exact))
                    .filter(fits)
            };
            let at = match places.as_slice() {
                [] => continue,
                [only] => *only,
                // With less of it there are not fewer.
                _ => at_named()?,
            };
            let (range, guessed) = (at..at + old.len(), places.len() > 1);
            let hunk = Cow::Owned(hunk);
            return Some(Found {
                range,
                level: Level::Exact,
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

/// Takes up to so many lines that stay from both ends of a hunk; returns what is left, and how many
/// there were at its begin. `None`: fewer would do the same.
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
        // These speak of its last line.
        (left.at_end, left.old_unended, left.new_unended) = (false, false, false);
    }
    Some((left, n_first))
}
