//! Line diffs of two texts, as a unified patch shows them.
//!
//! Only a newline ends a line, as in git. If a lone carriage return ended a line too, the text
//! after it would look like a line of the file.

use std::fmt::Write;
use std::ops::Range;

use imara_diff::Algorithm;
use imara_diff::Diff;
use imara_diff::Hunk;
use imara_diff::InternedInput;

/// Context lines around a change.
const CONTEXT: u32 = 3;

/// Two texts that were compared.
pub struct LineDiff<'a> {
    lines: InternedInput<&'a str>,
    diff: Diff,
}

impl<'a> LineDiff<'a> {
    /// Compares two texts in about linear time: with very many differences the result is coarser
    /// than necessary.
    pub fn of(before: &'a str, after: &'a str) -> Self {
        let lines = InternedInput::new(before, after);
        let mut diff = Diff::compute(Algorithm::Histogram, &lines);
        diff.postprocess_lines(&lines);
        Self { lines, diff }
    }

    /// Returns how many lines were added.
    pub fn n_added(&self) -> u64 {
        self.diff.count_additions().into()
    }

    /// Returns how many lines were removed.
    pub fn n_removed(&self) -> u64 {
        self.diff.count_removals().into()
    }

    /// Returns a unified diff with the names of both sides; empty where they are equal.
    pub fn unified(&self, before: &str, after: &str) -> String {
        let hunks = self.hunks();
        if hunks.is_empty() {
            hunks
        } else {
            format!("--- {before}\n+++ {after}\n{hunks}")
        }
    }

    /// Returns the hunks of a unified diff.
    pub fn hunks(&self) -> String {
        let mut text = String::new();
        for together in grouped(&self.diff.hunks().collect::<Vec<_>>()) {
            self.hunk(together, &mut text);
        }
        text
    }

    /// Returns the lines that each hunk replaces, and those that replace them; a hunk may have
    /// several changes.
    pub fn ranges(&self) -> Vec<Vec<(Range<usize>, Range<usize>)>> {
        let whole = |range: &Range<u32>| range.start as usize..range.end as usize;
        grouped(&self.diff.hunks().collect::<Vec<_>>())
            .map(|together| {
                let both = |hunk: &Hunk| (whole(&hunk.before), whole(&hunk.after));
                together.iter().map(both).collect()
            })
            .collect()
    }

    fn hunk(&self, changes: &[Hunk], text: &mut String) {
        let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
            return;
        };
        let n_ahead = first.before.start.min(CONTEXT);
        let n_behind = (self.lines.before.len() as u32 - last.before.end).min(CONTEXT);
        let header = |first: u32, last: u32| range(first - n_ahead..last + n_behind);
        let (old, new) = (
            header(first.before.start, last.before.end),
            header(first.after.start, last.after.end),
        );
        _ = writeln!(text, "@@ -{old} +{new} @@");
        let mut at = first.before.start - n_ahead;
        for change in changes {
            self.put(' ', false, at..change.before.start, text);
            self.put('-', false, change.before.clone(), text);
            self.put('+', true, change.after.clone(), text);
            at = change.before.end;
        }
        self.put(' ', false, at..at + n_behind, text);
    }

    fn put(&self, mark: char, is_after: bool, range: Range<u32>, text: &mut String) {
        let side = if is_after {
            &self.lines.after
        } else {
            &self.lines.before
        };
        for token in &side[range.start as usize..range.end as usize] {
            let line = self.lines.interner[*token];
            let end = if line.ends_with('\n') {
                ""
            } else {
                "\n\\ No newline at end of file\n"
            };
            _ = write!(text, "{mark}{line}{end}");
        }
    }
}

/// Returns the changes whose context touches: they share a hunk.
fn grouped(changes: &[Hunk]) -> impl Iterator<Item = &[Hunk]> {
    changes.chunk_by(|one, next| next.before.start - one.before.end <= 2 * CONTEXT)
}

/// Returns a line range as in a hunk header: the first line, or the one before where the range is
/// empty, and the length.
fn range(lines: Range<u32>) -> String {
    match lines.end - lines.start {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        n => format!("{},{n}", lines.start + 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn shown(before: &str, after: &str) -> String {
        LineDiff::of(before, after).hunks()
    }

    #[test]
    fn a_hunk_has_three_lines_of_context_and_git_s_header() {
        let before: String = (1..=20).map(|n| format!("{n}\n")).collect();
        assert_eq!(
            shown(&before, &before.replace("5\n", "five\n")),
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@ -12,7 +12,7 @@\n 12\n 13\n 14\n-15\n+1five\n 16\n 17\n 18\n"
        );
        assert_eq!(shown("", "a\n"), "@@ -0,0 +1 @@\n+a\n");
        assert_eq!(shown("a\nb\n", ""), "@@ -1,2 +0,0 @@\n-a\n-b\n");
        assert_eq!(
            shown("a\rb\n", "a\rc"),
            "@@ -1 +1 @@\n-a\rb\n+a\rc\n\\ No newline at end of file\n"
        );
        assert_eq!(
            (
                shown("a\n", "a\n"),
                LineDiff::of("a", "a").unified("x", "y")
            ),
            (String::new(), String::new())
        );
        let diff = LineDiff::of("a\nb\n", "b\nc\nd\n");
        assert_eq!((diff.n_added(), diff.n_removed()), (2, 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[expect(clippy::disallowed_methods, reason = "git reads what is shown")]
        #[test]
        fn git_applies_the_diff(before in vec(0..4_u8, 0..40), after in vec(0..4_u8, 0..40), ends in any::<[bool; 2]>()) {
            let text = |lines: &[u8], is_ended: bool| {
                let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                if is_ended { text } else { text.trim_end().to_owned() }
            };
            let (before, after) = (text(&before, ends[0]), text(&after, ends[1]));
            prop_assume!(before != after && !before.is_empty() && !after.is_empty());
            let folder = tempfile::tempdir().expect("a folder");
            let path = |name: &str| folder.path().join(name);
            std::fs::write(path("f"), &before).expect("written");
            std::fs::write(path("p"), LineDiff::of(&before, &after).unified("a/f", "b/f")).expect("written");
            let done = std::process::Command::new("git").args(["apply", "p"]).current_dir(folder.path()).output().expect("git");
            prop_assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            prop_assert_eq!(std::fs::read_to_string(path("f")).expect("read"), after);
        }
    }
}
