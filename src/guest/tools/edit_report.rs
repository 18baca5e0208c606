use std::collections::HashMap;
use std::fmt::Write;

use super::super::line_diff::LineDiff;
use super::edit_match::lines;

/// Most bytes of a diff shown to the model.
const MAX_DIFF: usize = 4 * 1024;

/// Lines shown where a text was not found.
const MAX_CLOSEST: usize = 12;

/// Most bytes shown of such a line.
const MAX_LINE: usize = 160;

/// Lines compared by letter pairs; more would take longer than the hint is worth.
const MAX_COMPARED: usize = 20_000;

/// Returns a unified diff; a long one ends with the number of lines left out.
pub(super) fn diff(path: &str, old: &[u8], new: &[u8]) -> String {
    let old = String::from_utf8_lossy(old);
    let new = String::from_utf8_lossy(new);
    let whole = LineDiff::of(&old, &new).unified(&format!("a/{path}"), &format!("b/{path}"));
    if whole.len() <= MAX_DIFF {
        return whole;
    }
    let end = whole.floor_char_boundary(MAX_DIFF);
    let end = whole[..end].rfind('\n').map_or(end, |at| at + 1);
    let n_more = whole[end..].lines().count();
    format!("{}… {n_more} more lines of the diff\n", &whole[..end])
}

/// Returns the lines of `text` most similar to `old`, numbered; empty where none is.
pub(super) fn closest(text: &[u8], old: &str) -> String {
    let wanted: Vec<&[u8]> = lines(old.as_bytes()).map(<[u8]>::trim_ascii).collect();
    let here: Vec<&[u8]> = lines(text).collect();
    let Some(start) = by_equal_lines(&here, &wanted).or_else(|| by_letters(&here, &wanted)) else {
        return String::new();
    };
    numbered(text, start as u64, wanted.len().min(MAX_CLOSEST))
}

/// Shows lines of a text with their numbers; the first line is 0 here.
pub(super) fn numbered(text: &[u8], start: u64, n: usize) -> String {
    let here: Vec<&[u8]> = lines(text).collect();
    let start = usize::try_from(start)
        .unwrap_or(usize::MAX)
        .min(here.len().saturating_sub(1));
    let mut shown = String::new();
    for (at, line) in here.iter().enumerate().skip(start).take(n) {
        let cut = &line[..line.len().min(MAX_LINE)];
        let mark = if line.len() > MAX_LINE { "…" } else { "" };
        let _ = writeln!(
            shown,
            "{:>6}\t{}{mark}",
            at + 1,
            String::from_utf8_lossy(cut)
        );
    }
    shown
}

/// Returns how many lines of a text are new, and how many are gone.
pub(super) fn count_lines(old: &[u8], new: &[u8]) -> (u64, u64) {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let diff = LineDiff::of(&old, &new);
    (diff.n_added(), diff.n_removed())
}

/// Finds where most of the wanted lines occur in the same order, weighted by length.
fn by_equal_lines(here: &[&[u8]], wanted: &[&[u8]]) -> Option<usize> {
    let mut numbers: HashMap<&[u8], usize> = HashMap::new();
    for (number, line) in wanted.iter().enumerate().rev() {
        // Braces and blank lines occur everywhere.
        if line.len() > 2 {
            numbers.insert(line, number);
        }
    }
    let mut scores: HashMap<usize, usize> = HashMap::new();
    for (at, line) in here.iter().enumerate() {
        if let Some(number) = numbers.get(line.trim_ascii()) {
            *scores.entry(at.saturating_sub(*number)).or_default() += line.len();
        }
    }
    scores
        .into_iter()
        .max_by_key(|(start, score)| (*score, usize::MAX - start))
        .map(|(start, _)| start)
}

/// Finds the line that shares most letter pairs with the longest wanted one.
fn by_letters(here: &[&[u8]], wanted: &[&[u8]]) -> Option<usize> {
    let (number, longest) = wanted
        .iter()
        .enumerate()
        .max_by_key(|(_, line)| line.len())?;
    let longest = &longest[..longest.len().min(MAX_LINE)];
    if longest.len() < 4 {
        return None;
    }
    let pairs = |line: &[u8]| {
        let mut pairs: Vec<[u8; 2]> = line.windows(2).map(|pair| [pair[0], pair[1]]).collect();
        pairs.sort_unstable();
        pairs
    };
    let target = pairs(longest);
    let likeness = |line: &[u8]| {
        let line = line.trim_ascii();
        let other = pairs(&line[..line.len().min(2 * MAX_LINE)]);
        let (mut i, mut j, mut shared) = (0, 0, 0);
        while i < target.len() && j < other.len() {
            match target[i].cmp(&other[j]) {
                std::cmp::Ordering::Less => i += 1,
                std::cmp::Ordering::Greater => j += 1,
                std::cmp::Ordering::Equal => (i, j, shared) = (i + 1, j + 1, shared + 1),
            }
        }
        200 * shared / (target.len() + other.len()).max(1)
    };
    let best = here
        .iter()
        .take(MAX_COMPARED)
        .enumerate()
        .map(|(at, line)| (likeness(line), at));
    let (score, at) = best.max_by_key(|(score, at)| (*score, usize::MAX - at))?;
    (score >= 50).then(|| at.saturating_sub(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_lines_are_found_by_equal_lines() {
        let text = b"use a;\n\nfn one() {\n    two();\n    three();\n}\n";
        assert_eq!(
            closest(text, "fn one() {\n    tow();\n    three();\n"),
            "     3\tfn one() {\n     4\t    two();\n     5\t    three();\n"
        );
    }

    #[test]
    fn the_closest_line_is_found_by_letter_pairs() {
        assert_eq!(
            closest(b"let counter = 0;\nlet other = 1;\n", "let countr = 0;"),
            "     1\tlet counter = 0;\n"
        );
        assert_eq!(closest(b"abc\ndef\n", "nothing like it"), "");
    }

    #[test]
    fn long_diffs_end_with_the_number_of_lines_left_out() {
        let old = "a line\n".repeat(2000);
        let new = "another line\n".repeat(2000);
        let diff = diff("f", old.as_bytes(), new.as_bytes());
        assert!(diff.len() < MAX_DIFF + 100, "{}", diff.len());
        assert!(diff.ends_with("more lines of the diff\n"));
    }
}
