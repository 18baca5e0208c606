//! The lines of a file, so kept that those of many hunks are found in them without going through
//! all for each, and what is taken of them.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::hash::DefaultHasher;
use std::hash::Hash;
use std::hash::Hasher;
use std::ops::Range;

use super::line_run::runs;
use super::stop::Stop;
use crate::alike::plain_bytes;

/// How closely lines are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Exact,
    /// But for white space at their ends.
    End,
    /// But for white space at both sides.
    Around,
    /// But for that, and for letters that look alike.
    Alike,
}

impl Level {
    /// Returns what is passed over.
    pub(super) fn ignoring(self) -> Option<&'static str> {
        match self {
            Self::Exact => None,
            Self::End | Self::Around => Some("white space"),
            Self::Alike => Some(
                "white space and the kind of quotes, dashes and blanks, or how letters are composed",
            ),
        }
    }

    /// Returns what of a line counts.
    fn form(self, line: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Exact => line.into(),
            Self::End => line.trim_ascii_end().into(),
            Self::Around => line.trim_ascii().into(),
            Self::Alike => Cow::Owned(plain_bytes(line).trim_ascii().to_vec()),
        }
    }
}

/// Lines by what of them counts.
pub(super) struct Index<'a> {
    lines: Vec<&'a [u8]>,
    /// For each level the lines by a hash of what counts there; made when it is first asked for.
    by_hash: [OnceCell<Vec<(u32, u32)>>; 4],
    /// For each level their hashes in the order of the lines.
    hashes: [OnceCell<Vec<u32>>; 4],
    stop: &'a Stop<'a>,
}

impl<'a> Index<'a> {
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

    /// Returns whether nobody wants to know any more; what was found since is then not all.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }

    /// Returns whether lines stand in this place.
    pub(super) fn is_at(&self, at: usize, wanted: &[&[u8]], level: Level) -> bool {
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

    /// Returns the places where lines stand one after the other, from this line on, in their order.
    /// Blank ones alone stand anywhere, and so nowhere, where blanks are passed over.
    pub(super) fn places<'b>(
        &'b self,
        wanted: &'b [&'b [u8]],
        level: Level,
        from: usize,
    ) -> Box<dyn Iterator<Item = usize> + 'b> {
        let says_something =
            level == Level::Exact || wanted.iter().any(|line| !line.trim_ascii().is_empty());
        // The rarest of them says where they can stand at all.
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
        // Of many lines that are all frequent, comparing them anew in each place would take
        // minutes.
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

    /// Returns the lines that can be this one, by their hash, in their order.
    fn of_hash(&self, level: Level, line: &[u8]) -> &[(u32, u32)] {
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
    // Two lines of one hash cost a comparison.
    hasher.finish() as u32
}

/// Where hunks have their places already: by the line that each begins at, the one that it ends
/// before. None of them reaches into another.
#[derive(Default)]
pub(super) struct Taken(BTreeMap<usize, usize>);

impl Taken {
    /// Returns whether nothing of this is taken, and it does not lie within what is.
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
    fn check(lines: &[&str], wanted: &[&str], level: Level, expected: &[usize]) {
        let never = AtomicBool::new(false);
        let stop = Stop::new(&never, None);
        let index = Index::new(lines.iter().map(|line| line.as_bytes()).collect(), &stop);
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
    fn lines_are_found_wherever_they_stand() {
        let lines = ["{", "a", "}", " {", "a ", "\u{201c}b\u{201d}", "{", "a"];
        check(&lines, &["{", "a"], Level::Exact, &[0, 6]);
        check(&lines, &["{", "a", "}"], Level::Exact, &[0]);
        check(&lines, &["{", "a"], Level::End, &[0, 6]);
        check(&lines, &["{", "a"], Level::Around, &[0, 3, 6]);
        check(&lines, &["a", "\"b\"", "{"], Level::Alike, &[4]);
        check(&lines, &["a", "none"], Level::Alike, &[]);
        // Nothing stands in front of the first line, or behind the last.
        check(&lines, &["x", "{"], Level::Exact, &[]);
        check(&lines, &["a", "x"], Level::Exact, &[]);
        check(&lines, &[], Level::Exact, &[]);
        check(&["", "a", ""], &[""], Level::Exact, &[0, 2]);
        check(&["", "a", ""], &[" "], Level::Around, &[]);
        // Frequent lines, which are looked for in another way.
        check(&["x "; 9], &["x"; 6], Level::End, &[0, 1, 2, 3]);
        check(&["x"; 9], &["x"; 9], Level::Exact, &[0]);
    }

    #[test]
    fn what_is_taken_keeps_others_out_and_leaves_its_edges() {
        let mut taken = Taken::default();
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
