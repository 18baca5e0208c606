use std::ops::Range;

use imara_diff::Algorithm;
use imara_diff::Diff;
use imara_diff::InternedInput;

use super::text::is_text;

/// Three-way merge of a text, line by line; `None` where both sides changed the same or adjacent
/// lines.
pub(super) fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    if [base, ours, theirs].into_iter().any(|side| !is_text(side)) {
        return None;
    }
    let mut hunks =
        [hunks(base, ours), hunks(base, theirs)].map(|hunks| hunks.into_iter().peekable());
    let base = lines(base);
    let mut merged = Vec::new();
    let mut at = 0;
    loop {
        let [one, other] = &mut hunks;
        let hunk = match (one.peek(), other.peek()) {
            (None, None) => break,
            (Some(one), Some(other)) if one.is_same(other) => None,
            (Some(one), Some(other)) if one.touches(other) => return None,
            (Some(one), Some(other)) if one.old.start < other.old.start => Some(0),
            (Some(_), None) => Some(0),
            _ => Some(1),
        };
        let hunk = if let Some(side) = hunk {
            hunks[side].next()?
        } else {
            // Both sides made the same change.
            hunks[0].next()?;
            hunks[1].next()?
        };
        merged.extend(base[at..hunk.old.start].concat());
        merged.extend(hunk.new.concat());
        at = hunk.old.end;
    }
    merged.extend(base[at..].concat());
    Some(merged)
}

/// Lines of the base, and those that replace them.
struct Hunk<'a> {
    old: Range<usize>,
    new: Vec<&'a [u8]>,
}

impl Hunk<'_> {
    fn is_same(&self, other: &Self) -> bool {
        self.old == other.old && self.new == other.new
    }

    fn touches(&self, other: &Self) -> bool {
        self.old.start <= other.old.end && other.old.start <= self.old.end
    }
}

fn hunks<'a>(old: &[u8], new: &'a [u8]) -> Vec<Hunk<'a>> {
    let added = lines(new);
    let input = InternedInput::new(old, new);
    let diff = Diff::compute(Algorithm::Histogram, &input);
    let index = |range: Range<u32>| range.start as usize..range.end as usize;
    diff.hunks()
        .map(|hunk| Hunk {
            old: index(hunk.before),
            new: added[index(hunk.after)].to_vec(),
        })
        .collect()
}

fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|byte| *byte == b'\n').collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(base: &str, ours: &str, theirs: &str, merged: Option<&str>) {
        for (ours, theirs) in [(ours, theirs), (theirs, ours)] {
            let found = merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
            assert_eq!(
                found
                    .map(|bytes| String::from_utf8(bytes).expect("text"))
                    .as_deref(),
                merged
            );
        }
    }

    #[test]
    fn separate_changes_of_both_sides_are_merged() {
        check(
            "a\nb\nc\nd\n",
            "A\nb\nc\nd\n",
            "a\nb\nc\nD\n",
            Some("A\nb\nc\nD\n"),
        );
        check(
            "a\nb\nc\n",
            "a\nb\nc\nd\n",
            "z\na\nb\nc\n",
            Some("z\na\nb\nc\nd\n"),
        );
        check("a\nb\nc\n", "a\nc\n", "a\nb\nc\nd\n", Some("a\nc\nd\n"));
        check("a\nb\nc\n", "a\nc\n", "a\nc\n", Some("a\nc\n"));
        check("a\nb\nc\n", "x\nb\nc", "a\nb\nc\n", Some("x\nb\nc"));
        check("", "", "new\n", Some("new\n"));
    }

    #[test]
    fn adjacent_changes_are_a_conflict() {
        check("a\nb\nc\n", "A\nb\nc\n", "X\nb\nc\n", None);
        check("a\nb\nc\n", "A\nb\nc\n", "a\nB\nc\n", None);
        check("a\nb\n", "a\nx\nb\n", "a\ny\nb\n", None);
        check("a\nb\nc\n", "", "a\nB\nc\n", None);
        check("a\0b\n", "a\0b\nc\n", "z\na\0b\n", None);
    }

    proptest! {
        #[test]
        fn a_change_of_one_side_alone_is_kept(base in "[abc\n]{0,40}", side in "[abc\n]{0,40}") {
            let (base, side) = (base.as_bytes(), side.as_bytes());
            prop_assert_eq!(merge(base, side, base), Some(side.to_vec()));
            prop_assert_eq!(merge(base, base, side), Some(side.to_vec()));
            prop_assert_eq!(merge(base, side, side), Some(side.to_vec()));
        }
    }
}
