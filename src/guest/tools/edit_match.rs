//! Finds the place of an edit: pure work on bytes, so that no byte outside the place is touched,
//! whatever its encoding.
//!
//! Five attempts, each more lenient, and each only when the one before found nothing:
//! 1. exact bytes;
//! 2. the same text with other line ends: what a model was shown has no `\r`, so places that differ
//!    only in it are all meant;
//! 3. look-alike characters, where exactly one place fits;
//! 4. whole lines that differ in white space at their ends, else within them, else in look-alike
//!    characters too, where exactly one place fits;
//! 5. the text without one level of backslashes (`\n`, `\"`), which weak models add, where exactly
//!    one place fits.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use super::edit_indent::Indents;
use super::edit_line_ends::LineEndFitter;
use super::edit_line_ends::without_returns;
use super::edit_lookalike;
use super::line_search::runs;
use crate::lookalike::joins;
use crate::lookalike::normalize_bytes;
use podbay_wire::Replacement;

/// Line numbers listed for an ambiguous text.
const MAX_PLACES: usize = 10;

/// How an edit found its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchKind {
    Exact,
    Alike,
    Tolerant,
    TolerantAndAlike,
    Unescaped,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct AppliedEdit {
    pub(super) replaced: u64,
    pub(super) how: MatchKind,
}

/// Why an edit was not made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EditFailure {
    NotFound,
    Ambiguous {
        count: u64,
        lines: Vec<u64>,
    },
    /// Size that the text would have, in bytes.
    TooLarge {
        bytes: u64,
    },
}

/// Makes one edit, unless the text would then be longer than `limit`; `old_string` is not empty.
pub(super) fn apply(
    text: &mut Vec<u8>,
    edit: &Replacement,
    limit: u64,
) -> Result<AppliedEdit, EditFailure> {
    let old = edit.old_string.as_bytes();
    let new = edit.new_string.as_bytes();
    let mut places = find(text, old);
    places.retain(|place| !cuts_a_letter(text, place));
    if !places.is_empty() {
        if places.len() > 1 && !edit.replace_all {
            return Err(ambiguous(text, &places));
        }
        let replaced = places.len() as u64;
        // Checked before it is built: a short text that occurs a million times can grow enormously.
        let bytes = (text.len() as u64)
            .saturating_add(replaced.saturating_mul(new.len() as u64))
            .saturating_sub(replaced * old.len() as u64);
        if bytes > limit {
            return Err(EditFailure::TooLarge { bytes });
        }
        replace(text, &places, |ends, place| ends.fit(new, old, place));
        return Ok(AppliedEdit {
            replaced,
            how: MatchKind::Exact,
        });
    }
    let alike = std::str::from_utf8(text)
        .ok()
        .and_then(|text| edit_lookalike::find(text, &edit.old_string, &edit.new_string));
    if let Some((place, new)) = alike {
        replace(text, &[place], |ends, place| ends.fit(&new, b"", place));
        return Ok(AppliedEdit {
            replaced: 1,
            how: MatchKind::Alike,
        });
    }
    if let Some((place, new, how)) = find_lines(text, old, new) {
        replace(text, &[place], |_, _| new.clone());
        return Ok(AppliedEdit { replaced: 1, how });
    }
    if let Some(plain) = unescape(old) {
        let mut places = find(text, &plain);
        places.retain(|place| !cuts_a_letter(text, place));
        if let [_] = places.as_slice() {
            let new = if is_escaped_like(new, old) {
                unescape(new)
            } else {
                None
            }
            .unwrap_or_else(|| new.to_vec());
            let old = plain;
            replace(text, &places, |ends, place| ends.fit(&new, &old, place));
            return Ok(AppliedEdit {
                replaced: 1,
                how: MatchKind::Unescaped,
            });
        }
    }
    Err(EditFailure::NotFound)
}

/// Returns whether an end of a place lies between a letter and its combining mark: the edit would
/// replace another letter than was meant, and its mark would move exactly before.
fn cuts_a_letter(text: &[u8], place: &Range<usize>) -> bool {
    let begins_with_mark = |at: usize| {
        let start = &text[at..text.len().min(at + 4)];
        start
            .utf8_chunks()
            .next()
            .and_then(|chunk| chunk.valid().chars().next())
            .is_some_and(joins)
    };
    let is_within = |at: usize| at > 0 && !text[..at].ends_with(b"\n") && begins_with_mark(at);
    is_within(place.start) || is_within(place.end)
}

/// Finds all places of `old`, with any line ends.
fn find(text: &[u8], old: &[u8]) -> Vec<Range<usize>> {
    if !old.contains(&b'\n') {
        return occurrences(text, old);
    }
    // A `\r` in the old text is meant where the file has it.
    let places = if old.contains(&b'\r') {
        occurrences(text, old)
    } else {
        Vec::new()
    };
    if !places.is_empty() {
        return places;
    }
    let (plain, returns) = without_returns(text);
    let (old, _) = without_returns(old);
    // A `\r` removed before the `\n` at `p` shifts everything from `p` on.
    let back = |at: usize| at + returns.partition_point(|newline| *newline < at);
    occurrences(&plain, &old)
        .into_iter()
        .map(|place| back(place.start)..back(place.end))
        .collect()
}

/// Finds places that do not overlap, but counts an overlap as a second place where that makes the
/// first ambiguous.
fn occurrences(text: &[u8], old: &[u8]) -> Vec<Range<usize>> {
    let finder = memmem::Finder::new(old);
    let mut places: Vec<Range<usize>> = finder
        .find_iter(text)
        .map(|at| at..at + old.len())
        .collect();
    if let [only] = places.as_slice() {
        let from = only.start + 1;
        if let Some(at) = finder.find(&text[from..]) {
            places.push(from + at..from + at + old.len());
        }
    }
    places
}

fn replace(
    text: &mut Vec<u8>,
    places: &[Range<usize>],
    new: impl Fn(&mut LineEndFitter<'_>, &Range<usize>) -> Vec<u8>,
) {
    let mut ends = LineEndFitter::new(text);
    let mut out = Vec::with_capacity(text.len());
    let mut done = 0;
    for place in places {
        // Two places overlap only where a text overlaps itself; the second is then part of the
        // first.
        if place.start < done {
            continue;
        }
        out.extend_from_slice(&text[done..place.start]);
        out.extend(new(&mut ends, place));
        done = place.end;
    }
    out.extend_from_slice(&text[done..]);
    *text = out;
}

/// Finds the only run of whole lines that equals `old`, ignoring trailing and leading white space,
/// else treating any white space as one blank, else with look-alike characters too. Returns it with
/// the new text indented like the file.
fn find_lines(text: &[u8], old: &[u8], new: &[u8]) -> Option<(Range<usize>, Vec<u8>, MatchKind)> {
    let found = find_lines_as(text, old, new, |line| Cow::Borrowed(line.trim_ascii()))
        .or_else(|| find_lines_as(text, old, new, spaced));
    if let Some((place, new)) = found {
        return Some((place, new, MatchKind::Tolerant));
    }
    let found = find_lines_as(text, old, new, |line| {
        Cow::Owned(spaced(&normalize_bytes(line)).into_owned())
    });
    found.map(|(place, new)| (place, new, MatchKind::TolerantAndAlike))
}

/// Returns a line with one blank for each run of white space, and none at its ends.
fn spaced(line: &[u8]) -> Cow<'_, [u8]> {
    let words: Vec<&[u8]> = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .collect();
    Cow::Owned(words.join(&b' '))
}

fn find_lines_as<'t>(
    text: &'t [u8],
    old: &'t [u8],
    new: &[u8],
    form: impl Fn(&'t [u8]) -> Cow<'t, [u8]>,
) -> Option<(Range<usize>, Vec<u8>)> {
    let wanted: Vec<&[u8]> = lines(old).collect();
    if wanted.iter().all(|line| line.trim_ascii().is_empty()) {
        return None;
    }
    let mut starts = vec![0];
    starts.extend(memchr::memchr_iter(b'\n', text).map(|at| at + 1));
    let here: Vec<Cow<'_, [u8]>> = lines(text).map(&form).collect();
    let wanted_trimmed: Vec<Cow<'_, [u8]>> = wanted.iter().map(|line| form(line)).collect();
    let mut fits = runs(&here, &wanted_trimmed);
    let at = fits.next()?;
    if fits.next().is_some() {
        return None;
    }
    let start = starts[at];
    let last = starts[at + wanted.len() - 1];
    let last_line = lines(&text[last..]).next().unwrap_or_default();
    let mut end = last + last_line.len();
    if old.ends_with(b"\n") {
        end += text[end..]
            .iter()
            .take_while(|byte| matches!(byte, b'\r' | b'\n'))
            .take(if text[end..].starts_with(b"\r\n") {
                2
            } else {
                1
            })
            .count();
    }
    let mut indents = Indents::default();
    for (wanted, found) in wanted.iter().zip(lines(&text[start..])) {
        indents.learn(wanted, found);
    }
    let plain = without_returns(new).0;
    let new = indents.apply(&plain);
    let place = start..end;
    let new = LineEndFitter::new(text).fit(&new, b"", &place);
    Some((place, new))
}

/// Lines without their ends; a final newline starts no further line.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').map(|line| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        line.strip_suffix(b"\r").unwrap_or(line)
    })
}

/// Removes one level of backslashes; `None` where there is none.
fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        match bytes.next() {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(quoted @ (b'"' | b'\'' | b'\\' | b'`' | b'/')) => out.push(*quoted),
            Some(other) => out.extend([b'\\', *other]),
            None => out.push(b'\\'),
        }
    }
    (out != text).then_some(out)
}

/// Returns whether `new` was escaped in the way that `old` was: a character that `old` escapes is
/// escaped here too, and never plain. Otherwise its backslashes are meant.
fn is_escaped_like(new: &[u8], old: &[u8]) -> bool {
    let (_, escaped) = plain_and_escaped(old);
    let (plain, escaped_here) = plain_and_escaped(new);
    escaped_here.iter().any(|byte| escaped.contains(byte))
        && !escaped.iter().any(|byte| plain.contains(byte))
}

/// Returns the bytes that occur plain, and those that occur after a backslash.
fn plain_and_escaped(text: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut plain, mut escaped) = (Vec::new(), Vec::new());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match (byte, if *byte == b'\\' { bytes.next() } else { None }) {
            (_, Some(b'n')) => escaped.push(b'\n'),
            (_, Some(b't')) => escaped.push(b'\t'),
            (_, Some(b'r')) => escaped.push(b'\r'),
            (_, Some(other)) => escaped.push(*other),
            (byte, None) => plain.push(*byte),
        }
    }
    (plain, escaped)
}

fn ambiguous(text: &[u8], places: &[Range<usize>]) -> EditFailure {
    let mut lines = Vec::new();
    let mut line = 1;
    let mut done = 0;
    for place in places.iter().take(MAX_PLACES) {
        line += memchr::memchr_iter(b'\n', &text[done..place.start]).count() as u64;
        done = place.start;
        lines.push(line);
    }
    EditFailure::Ambiguous {
        count: places.len() as u64,
        lines,
    }
}

#[cfg(test)]
mod tests;
