//! Places the hunks of a patch: pure work on the lines of one file.
//!
//! A hunk belongs where its lines match exactly at the line that it names. Otherwise it belongs at
//! the only place that matches: exactly, then ignoring white space, then with look-alike characters
//! too. An anchor (`@@ like this`) that occurs once restricts it to what follows.
//!
//! Remaining ambiguity is resolved by the form of the patch. For sections with context lines the
//! first place after the previous hunk is used. For a unified diff that matches nowhere, up to two
//! of the outermost context lines are ignored, as in `patch` (fuzz). Both are reported. A line that
//! changes must always match.

use std::borrow::Cow;
use std::ops::Range;

use super::edit_indent::Indents;
use super::patch_lines::Leniency;
use super::patch_lines::LineIndex;
use super::patch_lines::TakenRanges;
use super::stop::Stop;
use crate::lookalike::normalize_bytes;
use podbay_wire::Hunk;
use podbay_wire::PatchForm;
use podbay_wire::PatchLine;

/// Line numbers listed where several places fit.
const MAX_PLACES: usize = 10;

const MARK: &[u8] = b"\xef\xbb\xbf";

/// A file's lines, with their line ends apart.
pub(super) struct FileLines<'a> {
    mark: &'a [u8],
    pub(super) index: LineIndex<'a>,
    ends: Vec<&'a [u8]>,
}

/// Result of applying a patch in memory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PatchedText {
    pub(super) text: Vec<u8>,
    pub(super) added: u64,
    pub(super) removed: u64,
    /// A hunk was placed by its line number or by its order alone: its own lines do not say where
    /// it belongs.
    pub(super) by_number: bool,
    /// Hunks that did not match exactly.
    pub(super) notes: Vec<String>,
}

/// Why a hunk, counted from 1, has no place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HunkFailure {
    pub(super) hunk: u32,
    pub(super) why: HunkProblem,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum HunkProblem {
    Nowhere {
        /// The lines that it would add exist already.
        applied: bool,
    },
    /// It fits in several places, which begin at these lines.
    Ambiguous(Vec<u64>),
    /// The anchor line does not exist.
    NoAnchor(String),
    /// The call was cancelled.
    Cancelled,
}

/// How much of a line an anchor must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnchorMatch {
    Whole,
    /// Its first words.
    Words,
    Start,
}

struct PlacedHunk<'a> {
    range: Range<usize>,
    hunk: Cow<'a, Hunk>,
    /// The lines that it adds, where they differ from those of the patch.
    new: Option<Vec<Vec<u8>>>,
}

/// The place of a hunk.
pub(super) struct HunkPlace<'a> {
    pub(super) range: Range<usize>,
    pub(super) level: Leniency,
    /// The part of the hunk that is applied.
    pub(super) hunk: Cow<'a, Hunk>,
    /// Context lines ignored at its start.
    pub(super) n_left_out: usize,
    /// Most context lines ignored at either end.
    pub(super) fuzz: usize,
    /// Its lines do not identify this place.
    pub(super) guessed: bool,
    /// Other places that match, where they are to be reported.
    pub(super) others: Vec<u64>,
}

/// Applies the hunks of one file, all or none.
pub(super) fn apply(
    text: &[u8],
    hunks: &[Hunk],
    stop: &Stop<'_>,
) -> Result<PatchedText, HunkFailure> {
    let text = FileLines::new(text, stop);
    let mut placed: Vec<PlacedHunk<'_>> = Vec::new();
    let mut taken = TakenRanges::default();
    let mut notes = Vec::new();
    let mut by_number = false;
    let mut cursor = 0;
    for (number, hunk) in (1..).zip(hunks) {
        let miss = |why| HunkFailure { hunk: number, why };
        let found = text.find(hunk, cursor, &taken);
        by_number |= hunk.line.is_some() && text.is_anywhere(hunk);
        // A cancelled search is incomplete.
        if text.index.is_stopped() {
            return Err(miss(HunkProblem::Cancelled));
        }
        let HunkPlace {
            range,
            level,
            hunk,
            n_left_out,
            fuzz,
            guessed,
            others,
        } = found.map_err(miss)?;
        by_number |= guessed;
        let line = (range.start as u64 + 1)
            .saturating_sub(n_left_out as u64)
            .max(1);
        if let Some(what) = level.ignoring() {
            notes.push(format!(
                "hunk {number} was found at line {line} only by ignoring {what}: check the result"
            ));
        }
        if fuzz > 0 {
            notes.push(format!("hunk {number} was found at line {line} with fuzz {fuzz}: not all of its context lines match, so check the result"));
        }
        if !others.is_empty() {
            notes.push(several(number.into(), line, &others));
        }
        if let Some(named) = hunk
            .line
            .filter(|&named| named != line && level == Leniency::Exact)
        {
            notes.push(format!(
                "hunk {number} was found at line {line}, not {named}"
            ));
        }
        let new = matches!(level, Leniency::Around | Leniency::Alike)
            .then(|| text.indented(&hunk, &range));
        cursor = range.end;
        taken.take(&range);
        placed.push(PlacedHunk { range, hunk, new });
    }
    // Pure additions go before a replacement at the same line.
    placed.sort_by_key(|placed| (placed.range.start, placed.range.end));
    let count = |wanted: fn(&PatchLine) -> bool| {
        hunks
            .iter()
            .flat_map(|hunk| &hunk.lines)
            .filter(|line| wanted(line))
            .count() as u64
    };
    Ok(PatchedText {
        added: count(|line| matches!(line, PatchLine::Add(_))),
        removed: count(|line| matches!(line, PatchLine::Remove(_))),
        text: text.with(&placed),
        by_number,
        notes,
    })
}

impl<'a> FileLines<'a> {
    fn new(text: &'a [u8], stop: &'a Stop<'a>) -> Self {
        let (mark, text) = text
            .strip_prefix(MARK)
            .map_or((&[][..], text), |rest| (MARK, rest));
        let (mut lines, mut ends) = (Vec::new(), Vec::new());
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let bare = line.strip_suffix(b"\n").unwrap_or(line);
            let bare = if bare.len() < line.len() {
                bare.strip_suffix(b"\r").unwrap_or(bare)
            } else {
                bare
            };
            lines.push(bare);
            ends.push(&line[bare.len()..]);
        }
        Self {
            mark,
            index: LineIndex::new(lines, stop),
            ends,
        }
    }

    pub(super) fn lines(&self) -> &[&'a [u8]] {
        self.index.lines()
    }

    fn find<'b>(
        &self,
        hunk: &'b Hunk,
        cursor: usize,
        taken: &TakenRanges,
    ) -> Result<HunkPlace<'b>, HunkProblem> {
        let old = self.old(hunk);
        let anchor = self.anchor(hunk, cursor);
        let found = |at: usize, level: Leniency| HunkPlace {
            range: at..at + old.len(),
            level,
            hunk: Cow::Borrowed(hunk),
            n_left_out: 0,
            fuzz: 0,
            guessed: false,
            others: Vec::new(),
        };
        if old.is_empty() && hunk.miscounted {
            return Err(HunkProblem::Nowhere { applied: false });
        }
        if old.is_empty() {
            let anchor = anchor.map_err(no_anchor)?.map(|(at, _)| at);
            return self
                .find_gap(hunk, anchor, taken)
                .map(|at| found(at, Leniency::Exact));
        }
        // A hunk may contain its own anchor line.
        let begin = anchor
            .ok()
            .flatten()
            .filter(|(_, is_only)| *is_only)
            .map_or(0, |(at, _)| (at + 1).saturating_sub(old.len()));
        let at_end = |at: &usize| !hunk.at_end || at + old.len() == self.lines().len();
        let fits = |at: &usize| *at >= begin && taken.leaves(&(*at..at + old.len())) && at_end(at);
        // An exact match at the named line ends the search.
        if let Some(at) = named(hunk, 0)
            .filter(|_| !hunk.miscounted)
            .filter(|at| self.index.is_at(*at, &old, Leniency::Exact))
            .filter(fits)
        {
            anchor.map_err(no_anchor)?;
            return Ok(found(at, Leniency::Exact));
        }
        if hunk.miscounted {
            return self
                .find_only(&old, begin, &fits)
                .map(|(at, level)| found(at, level));
        }
        let is_in_order =
            hunk.form == PatchForm::Sections && hunk.line.is_none() && has_context(hunk);
        let next = anchor
            .ok()
            .filter(|_| is_in_order)
            .map(|anchor| anchor.map_or(cursor, |(at, _)| at.max(cursor)));
        for level in [
            Leniency::Exact,
            Leniency::End,
            Leniency::Around,
            Leniency::Alike,
        ] {
            let from = |from: usize, n: usize| {
                self.index
                    .places(&old, level, from.max(begin))
                    .filter(fits)
                    .take(n)
                    .collect::<Vec<_>>()
            };
            let behind = next.map_or_else(Vec::new, |next| from(next, MAX_PLACES));
            // Where there are several, those before the cursor, which may all be taken, are not
            // examined.
            let places = if behind.len() > 1 {
                behind.clone()
            } else {
                from(0, MAX_PLACES)
            };
            if places.is_empty() {
                continue;
            }
            let anchor = anchor.map_err(no_anchor)?;
            let exact = level == Leniency::Exact;
            let at = match (anchor, places.as_slice()) {
                (_, [only]) => Some(*only),
                // The anchor selects the first place after it.
                (Some((at, is_only)), _) => match from(at, 2).as_slice() {
                    [only] => Some(*only),
                    [first, ..] if is_only && exact => Some(*first),
                    _ => None,
                },
                // Hunks come in the order of the file.
                _ => match from(cursor, 2).as_slice() {
                    [only] if exact && cursor > 0 => Some(*only),
                    _ => None,
                },
            };
            if let Some(at) = at {
                return Ok(found(at, level));
            }
            let Some(&first) = behind.first() else {
                return Err(HunkProblem::Ambiguous(
                    places.iter().map(|at| *at as u64 + 1).collect(),
                ));
            };
            let others = places
                .iter()
                .filter(|at| **at != first)
                .map(|at| *at as u64 + 1)
                .collect();
            return Ok(HunkPlace {
                guessed: true,
                others,
                ..found(first, level)
            });
        }
        let new: Vec<&[u8]> = hunk.wanted().map(bare).collect();
        let applied =
            !new.is_empty() && self.index.places(&new, Leniency::Exact, 0).next().is_some();
        let fuzzy = if applied || anchor.is_err() {
            None
        } else {
            self.find_with_fuzz(hunk, begin, taken)
        };
        fuzzy.ok_or(HunkProblem::Nowhere { applied })
    }

    /// Finds the only place of lines; one line may be missing.
    fn find_only(
        &self,
        old: &[&[u8]],
        begin: usize,
        fits: &impl Fn(&usize) -> bool,
    ) -> Result<(usize, Leniency), HunkProblem> {
        for level in [
            Leniency::Exact,
            Leniency::End,
            Leniency::Around,
            Leniency::Alike,
        ] {
            let places: Vec<usize> = self
                .index
                .places(old, level, begin)
                .filter(fits)
                .take(MAX_PLACES)
                .collect();
            match places.as_slice() {
                [] => {}
                [only] => return Ok((*only, level)),
                several => {
                    return Err(HunkProblem::Ambiguous(
                        several.iter().map(|at| *at as u64 + 1).collect(),
                    ));
                }
            }
        }
        Err(HunkProblem::Nowhere { applied: false })
    }

    /// Returns the old lines of a hunk, without a byte order mark before a file's first line.
    pub(super) fn old<'b>(&self, hunk: &'b Hunk) -> Vec<&'b [u8]> {
        let mut old: Vec<&[u8]> = hunk.old().map(bare).collect();
        if let Some(first) = old.first_mut().filter(|_| !self.mark.is_empty()) {
            *first = first.strip_prefix(MARK).unwrap_or(first);
        }
        old
    }

    /// Finds the place for additions without context.
    fn find_gap(
        &self,
        hunk: &Hunk,
        anchor: Option<usize>,
        taken: &TakenRanges,
    ) -> Result<usize, HunkProblem> {
        let at = match (anchor, hunk.line) {
            _ if hunk.at_end => self.lines().len(),
            (Some(at), _) => at + 1,
            (None, Some(line)) => usize::try_from(line.max(1) - 1).unwrap_or(usize::MAX),
            (None, None) => self.lines().len(),
        };
        if at <= self.lines().len() && taken.leaves(&(at..at)) {
            Ok(at)
        } else {
            Err(HunkProblem::Nowhere { applied: false })
        }
    }

    /// Returns whether a hunk's old lines match nowhere or in several places: only a line number can
    /// place it.
    fn is_anywhere(&self, hunk: &Hunk) -> bool {
        let old = self.old(hunk);
        old.is_empty() || self.index.places(&old, Leniency::Exact, 0).nth(1).is_some()
    }

    /// Returns the line of the last anchor, after those before it, and whether each occurs once;
    /// the error is the anchor that does not occur.
    fn anchor<'b>(&self, hunk: &'b Hunk, cursor: usize) -> Result<Option<(usize, bool)>, &'b str> {
        let (mut at, mut is_only) = (None, true);
        for anchor in &hunk.anchors {
            let wanted = anchor.as_bytes().trim_ascii();
            let begin = at.map_or(0, |at: usize| at + 1);
            let fits = |line: &[u8], how: AnchorMatch, by_likeness: bool| {
                let (line, wanted) = if by_likeness {
                    (normalize_bytes(line), normalize_bytes(wanted))
                } else {
                    (line.into(), wanted.into())
                };
                let (line, wanted) = (line.trim_ascii(), wanted.trim_ascii());
                match how {
                    AnchorMatch::Whole => line == wanted,
                    // `def f` is not a prefix of `def find()` by words.
                    AnchorMatch::Words => {
                        line.starts_with(wanted)
                            && !(ends_in_word(wanted)
                                && line.len() > wanted.len()
                                && ends_in_word(&line[..=wanted.len()]))
                    }
                    AnchorMatch::Start => line.starts_with(wanted),
                }
            };
            // Lines inside the outer anchor's block come before lines that only follow it.
            let ends = [
                at.map_or(self.lines().len(), |at| self.end_of_block(at)),
                self.lines().len(),
            ];
            let looks = |by_likeness| {
                ends.into_iter().flat_map(move |end| {
                    [AnchorMatch::Whole, AnchorMatch::Words, AnchorMatch::Start]
                        .map(|how| (end, how, by_likeness))
                })
            };
            let all = |(end, how, by_likeness)| match (how, by_likeness) {
                (AnchorMatch::Whole, false) if !wanted.is_empty() => self
                    .index
                    .places(&[wanted], Leniency::Around, begin)
                    .take_while(|at| *at < end)
                    .collect::<Vec<usize>>(),
                _ if self.index.is_stopped() => Vec::new(),
                _ => (begin..end)
                    .filter(|at| fits(self.lines()[*at], how, by_likeness))
                    .collect(),
            };
            let lines = looks(false)
                .chain(looks(true))
                .map(all)
                .find(|lines| !lines.is_empty())
                .unwrap_or_default();
            // Inside an outer anchor the first match is used; the outermost is searched after the
            // previous hunk.
            let first = *lines
                .iter()
                .find(|line| **line >= cursor)
                .or(lines.first())
                .ok_or(anchor.as_str())?;
            is_only &= lines.len() == 1 || at.is_some();
            at = Some(first);
        }
        Ok(at.map(|at| (at, is_only)))
    }

    /// Returns where the block indented below a line ends.
    fn end_of_block(&self, at: usize) -> usize {
        let indent = |line: &[u8]| line.len() - line.trim_ascii_start().len();
        let own = indent(self.lines()[at]);
        let is_behind = |line: &[u8]| !line.trim_ascii().is_empty() && indent(line) <= own;
        (at + 1..self.lines().len())
            .find(|at| is_behind(self.lines()[*at]))
            .unwrap_or(self.lines().len())
    }

    /// Indents the added lines of a hunk like the lines in the file.
    fn indented(&self, hunk: &Hunk, range: &Range<usize>) -> Vec<Vec<u8>> {
        let mut indents = Indents::default();
        for (wanted, here) in hunk.old().zip(&self.lines()[range.clone()]) {
            indents.learn(bare(wanted), here);
        }
        let new: Vec<&[u8]> = hunk.wanted().map(bare).collect();
        indents
            .apply(&new.join(&b'\n'))
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect()
    }

    /// Applies the placed hunks; all other bytes stay as they are.
    fn with(&self, placed: &[PlacedHunk<'_>]) -> Vec<u8> {
        let mut out: Vec<(Vec<u8>, &[u8])> = Vec::with_capacity(self.lines().len());
        let copy = |out: &mut Vec<(Vec<u8>, &'a [u8])>, at: usize| {
            out.push((self.lines()[at].to_vec(), self.ends[at]));
        };
        let common: &[u8] = self
            .ends
            .first()
            .copied()
            .filter(|end| !end.is_empty())
            .unwrap_or(b"\n");
        let mut done = 0;
        let mut last_is_new = false;
        for PlacedHunk { range, hunk, new } in placed {
            (done..range.start).for_each(|at| copy(&mut out, at));
            let mut at = range.start;
            // A patch that contains `\r` itself means the line ends that it writes.
            let is_literal = hunk.old().any(|line| line.ends_with('\r'));
            let mut number = 0;
            let mut replaced: &[&'a [u8]] = &[];
            for (place, line) in hunk.lines.iter().enumerate() {
                if place
                    .checked_sub(1)
                    .is_none_or(|before| matches!(hunk.lines[before], PatchLine::Keep(_)))
                {
                    replaced = self.replaced_ends(&hunk.lines[place..], at);
                }
                match line {
                    PatchLine::Keep(_) => copy(&mut out, at),
                    PatchLine::Remove(_) => {}
                    PatchLine::Add(text) => {
                        let own = replaced
                            .split_off_first()
                            .copied()
                            .filter(|end| !end.is_empty());
                        let near = own.or_else(|| {
                            out.last()
                                .map(|(_, end)| *end)
                                .filter(|end| !end.is_empty())
                        });
                        let near = near
                            .or_else(|| self.ends.get(at).copied().filter(|end| !end.is_empty()))
                            .unwrap_or(common);
                        let end: &[u8] = match (is_literal, text.ends_with('\r')) {
                            (true, true) => b"\r\n",
                            (true, false) => b"\n",
                            (false, _) => near,
                        };
                        // The file already has its byte order mark.
                        let is_first = out.is_empty() && !self.mark.is_empty();
                        let text = text
                            .strip_prefix('\u{feff}')
                            .filter(|_| is_first)
                            .unwrap_or(text);
                        let end_is_crlf = end == b"\r\n";
                        let text = if end_is_crlf {
                            bare(text)
                        } else {
                            text.as_bytes()
                        };
                        out.push((
                            new.as_ref()
                                .and_then(|new| new.get(number))
                                .map_or_else(|| text.to_vec(), Clone::clone),
                            end,
                        ));
                    }
                }
                last_is_new = matches!(line, PatchLine::Add(_));
                at += usize::from(!matches!(line, PatchLine::Add(_)));
                number += usize::from(!matches!(line, PatchLine::Remove(_)));
            }
            done = range.end;
        }
        last_is_new &= done == self.lines().len();
        (done..self.lines().len()).for_each(|at| copy(&mut out, at));
        self.close(&mut out, placed, last_is_new, common);
        let mut text = self.mark.to_vec();
        for (line, end) in out {
            text.extend(line);
            text.extend_from_slice(end);
        }
        text
    }

    /// Returns the ends of the lines that a hunk removes from here to the next kept line: added
    /// lines take them over.
    fn replaced_ends(&self, lines: &[PatchLine], at: usize) -> &[&'a [u8]] {
        let changed = lines
            .iter()
            .take_while(|line| !matches!(line, PatchLine::Keep(_)));
        let n_removed = changed
            .filter(|line| matches!(line, PatchLine::Remove(_)))
            .count();
        self.ends.get(at..at + n_removed).unwrap_or_default()
    }

    /// Gives every line but the last its end; the last one gets what the patch says or the file
    /// had.
    fn close(
        &self,
        out: &mut [(Vec<u8>, &'a [u8])],
        placed: &[PlacedHunk<'_>],
        last_is_new: bool,
        common: &'a [u8],
    ) {
        let Some(((_, end), before)) = out.split_last_mut() else {
            return;
        };
        for (_, end) in before.iter_mut().filter(|(_, end)| end.is_empty()) {
            *end = common;
        }
        let was_unended = self.ends.last().is_some_and(|end| end.is_empty());
        let at_end = placed
            .last()
            .filter(|placed| placed.range.end == self.lines().len())
            .map(|placed| &placed.hunk);
        match at_end {
            Some(hunk) if hunk.new_unended => *end = b"",
            Some(hunk) if hunk.old_unended && end.is_empty() => *end = common,
            Some(hunk) if !hunk.old_unended && last_is_new && was_unended => *end = b"",
            _ => {}
        }
    }
}

fn ends_in_word(text: &[u8]) -> bool {
    text.last()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii())
}

/// Returns the line that a hunk names, corrected for context lines ignored at its start.
pub(super) fn named(hunk: &Hunk, n_left_out: usize) -> Option<usize> {
    hunk.line.and_then(|line| {
        usize::try_from(line)
            .ok()?
            .checked_sub(1)?
            .checked_add(n_left_out)
    })
}

fn has_context(hunk: &Hunk) -> bool {
    hunk.lines
        .iter()
        .any(|line| matches!(line, PatchLine::Keep(_)))
}

/// The note about a hunk that fits in several places.
fn several(number: u64, line: u64, others: &[u64]) -> String {
    let lines = others
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    let (noun, more) = (
        if others.len() == 1 { "line" } else { "lines" },
        if others.len() + 1 < MAX_PLACES {
            ""
        } else {
            " and more"
        },
    );
    format!(
        "hunk {number} was applied at line {line}, the first place for it, and also fits at {noun} {lines}{more}: check the result"
    )
}

fn no_anchor(anchor: &str) -> HunkProblem {
    HunkProblem::NoAnchor(anchor.to_owned())
}

/// A line of the patch without the `\r` of its end.
fn bare(line: &str) -> &[u8] {
    line.as_bytes()
        .strip_suffix(b"\r")
        .unwrap_or(line.as_bytes())
}

#[cfg(test)]
mod tests;
