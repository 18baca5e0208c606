//! An index of a file's lines, in which many hunks are found without scanning all lines for each,
//! and the ranges that they occupy.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::hash::DefaultHasher;
use std::hash::Hash;
use std::hash::Hasher;
use std::ops::Range;

use super::line_search::runs;
use super::stop::Stop;
use crate::lookalike::normalize_bytes;

/// How leniently lines are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leniency {
    Exact,
    /// Ignoring white space at their ends.
    End,
    /// Ignoring white space at both sides.
    Around,
    /// Ignoring that, and differences between look-alike characters.
    Alike,
}

impl Leniency {
    /// Names what is ignored, for a note.
    pub(super) fn ignoring(self) -> Option<&'static str> {
        match self {
            Self::Exact => None,
            Self::End | Self::Around => Some("white space"),
            Self::Alike => Some(
                "white space and the kind of quotes, dashes and blanks, or how letters are composed",
            ),
        }
    }

    /// Returns the part of a line that is compared.
    fn form(self, line: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Exact => line.into(),
            Self::End => line.trim_ascii_end().into(),
            Self::Around => line.trim_ascii().into(),
            Self::Alike => Cow::Owned(normalize_bytes(line).trim_ascii().to_vec()),
        }
    }
}

/// Lines, indexed by what is compared.
pub(super) struct LineIndex<'a> {
    lines: Vec<&'a [u8]>,
    /// For each level the lines by hash; built on first use.
    by_hash: [OnceCell<Vec<(u32, u32)>>; 4],
    /// For each level the hashes in the order of the lines.
    hashes: [OnceCell<Vec<u32>>; 4],
    stop: &'a Stop<'a>,
}

impl<'a> LineIndex<'a> {
    pub(super) fn new(lines: Vec<&'a [u8]>, stop: &'a Stop<'a>) -> Self {
        Self {
            lines,
            by_hash: Default::default(),
            hashes: Default::default(),
            stop,
        }
    }

    pub(super) fn lines(&self) -> &[&'a [u8]] {
        &self.lines
    }

    /// Returns whether the call was cancelled; results found since then are incomplete.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }

    /// Returns whether the wanted lines are at this position.
    pub(super) fn is_at(&self, at: usize, wanted: &[&[u8]], level: Leniency) -> bool {
        let window = at
            .checked_add(wanted.len())
            .and_then(|end| self.lines.get(at..end));
        window.is_some_and(|window| {
            window
                .iter()
                .zip(wanted)
                .all(|(here, wanted)| level.form(here) == level.form(wanted))
        })
    }

    /// Returns the positions of consecutive lines from this line on, in order. Blank lines alone
    /// match everywhere, and so nowhere, where white space is ignored.
    pub(super) fn places<'b>(
        &'b self,
        wanted: &'b [&'b [u8]],
        level: Leniency,
        from: usize,
    ) -> Box<dyn Iterator<Item = usize> + 'b> {
        let says_something =
            level == Leniency::Exact || wanted.iter().any(|line| !line.trim_ascii().is_empty());
        // The rarest line bounds where they can be.
        let lists = wanted
            .iter()
            .filter(|_| says_something)
            .map(|line| self.of_hash(level, line))
            .enumerate();
        let (n_before, lines) = lists
            .min_by_key(|(_, lines)| lines.len())
            .unwrap_or_default();
        let lines = &lines
            [lines.partition_point(|(_, line)| (*line as usize) < from.saturating_add(n_before))..];
        let is_at = move |at: &usize| self.is_at(*at, wanted, level);
        // With many lines that are all frequent, comparing at each position would take minutes.
        if lines.len().saturating_mul(wanted.len()) > self.lines.len().saturating_mul(4) {
            let wanted: Vec<u32> = wanted.iter().map(|line| hash(&level.form(line))).collect();
            let here = self.hashes[level as usize].get_or_init(|| {
                self.lines
                    .iter()
                    .map(|line| hash(&level.form(line)))
                    .collect()
            });
            let places =
                runs(here.get(from..).unwrap_or_default(), wanted).map(move |at| at + from);
            return Box::new(places.take_while(move |_| !self.is_stopped()).filter(is_at));
        }
        let places = lines
            .iter()
            .take_while(move |_| !self.is_stopped())
            .filter_map(move |(_, line)| (*line as usize).checked_sub(n_before));
        Box::new(places.filter(is_at))
    }

    /// Returns the lines whose hash equals that of this line, in order.
    fn of_hash(&self, level: Leniency, line: &[u8]) -> &[(u32, u32)] {
        let by_hash = self.by_hash[level as usize].get_or_init(|| {
            let mut by_hash: Vec<(u32, u32)> = (0..)
                .zip(&self.lines)
                .map(|(number, line)| (hash(&level.form(line)), number))
                .collect();
            by_hash.sort_unstable();
            by_hash
        });
        let wanted = hash(&level.form(line));
        let start = by_hash.partition_point(|(hash, _)| *hash < wanted);
        let n = by_hash[start..].partition_point(|(hash, _)| *hash == wanted);
        &by_hash[start..start + n]
    }
}

fn hash(line: &[u8]) -> u32 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    // A hash collision costs one comparison.
    hasher.finish() as u32
}

/// Ranges occupied by hunks, by start and end. They do not overlap.
#[derive(Default)]
pub(super) struct TakenRanges(BTreeMap<usize, usize>);

impl TakenRanges {
    /// Returns whether a range overlaps no occupied one.
    pub(super) fn leaves(&self, range: &Range<usize>) -> bool {
        self.0
            .range(..range.end)
            .next_back()
            .is_none_or(|(_, end)| *end <= range.start)
    }

    pub(super) fn take(&mut self, range: &Range<usize>) {
        let end = self.0.entry(range.start).or_default();
        *end = range.end.max(*end);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[track_caller]
    fn check(lines: &[&str], wanted: &[&str], level: Leniency, expected: &[usize]) {
        let never = AtomicBool::new(false);
        let stop = Stop::new(&never, None);
        let index = LineIndex::new(lines.iter().map(|line| line.as_bytes()).collect(), &stop);
        let wanted: Vec<&[u8]> = wanted.iter().map(|line| line.as_bytes()).collect();
        assert_eq!(
            index.places(&wanted, level, 0).collect::<Vec<_>>(),
            expected
        );
        for from in 0..=lines.len() {
            let behind: Vec<usize> = expected.iter().copied().filter(|at| *at >= from).collect();
            assert_eq!(
                index.places(&wanted, level, from).collect::<Vec<_>>(),
                behind,
                "from {from}"
            );
        }
    }

    #[test]
    fn every_position_of_lines_is_found() {
        let lines = ["{", "a", "}", " {", "a ", "\u{201c}b\u{201d}", "{", "a"];
        check(&lines, &["{", "a"], Leniency::Exact, &[0, 6]);
        check(&lines, &["{", "a", "}"], Leniency::Exact, &[0]);
        check(&lines, &["{", "a"], Leniency::End, &[0, 6]);
        check(&lines, &["{", "a"], Leniency::Around, &[0, 3, 6]);
        check(&lines, &["a", "\"b\"", "{"], Leniency::Alike, &[4]);
        check(&lines, &["a", "none"], Leniency::Alike, &[]);
        // Nothing is before the first line, or behind the last.
        check(&lines, &["x", "{"], Leniency::Exact, &[]);
        check(&lines, &["a", "x"], Leniency::Exact, &[]);
        check(&lines, &[], Leniency::Exact, &[]);
        check(&["", "a", ""], &[""], Leniency::Exact, &[0, 2]);
        check(&["", "a", ""], &[" "], Leniency::Around, &[]);
        // Frequent lines use another search.
        check(&["x "; 9], &["x"; 6], Leniency::End, &[0, 1, 2, 3]);
        check(&["x"; 9], &["x"; 9], Leniency::Exact, &[0]);
    }

    #[test]
    fn occupied_ranges_exclude_overlaps_and_allow_adjacent_ones() {
        let mut taken = TakenRanges::default();
        for range in [4..6, 10..10, 4..4, 6..8] {
            assert!(taken.leaves(&range), "{range:?}");
            taken.take(&range);
        }
        for (range, expected) in [
            (0..4, true),
            (3..5, false),
            (5..5, false),
            (6..6, true),
            (8..10, true),
            (9..11, false),
            (10..12, true),
            (0..20, false),
        ] {
            assert_eq!(taken.leaves(&range), expected, "{range:?}");
        }
    }
}
