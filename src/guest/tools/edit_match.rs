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
/// replace another letter than was meant, and its mark would move to the letter before.
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: u64 = 1000;

    fn edit(old: &str, new: &str) -> Replacement {
        Replacement {
            old_string: old.into(),
            new_string: new.into(),
            replace_all: false,
        }
    }

    #[track_caller]
    fn check(text: &str, old: &str, new: &str, expected: Result<(&str, MatchKind), EditFailure>) {
        let mut bytes = text.as_bytes().to_vec();
        let applied = apply(&mut bytes, &edit(old, new), LIMIT);
        let after = String::from_utf8_lossy(&bytes).into_owned();
        match (applied, expected) {
            (Ok(applied), Ok((expected, how))) => {
                assert_eq!((after.as_str(), applied.how), (expected, how));
            }
            (applied, expected) => {
                assert_eq!(applied, Err(expected.expect_err("the edit was made")));
            }
        }
    }

    #[test]
    fn exact_text_is_replaced_once() {
        check(
            "let a = 1;\n",
            "1",
            "2",
            Ok(("let a = 2;\n", MatchKind::Exact)),
        );
        check("x", "x", "", Ok(("", MatchKind::Exact)));
    }

    #[test]
    fn a_letter_is_not_separated_from_its_combining_mark() {
        for (text, old, new) in [
            ("cafe\u{301}", "cafe", "tea"),
            ("cafe\u{301}", "e", "a"),
            ("A\u{30a}ngstrom", "A", "O"),
            ("nai\u{308}ve", "\u{308}ve", "x"),
            ("\u{1112}\u{1161}\u{11ab}", "\u{1112}", "x"),
        ] {
            check(text, old, new, Err(EditFailure::NotFound));
        }
        // Where the letter also occurs without a mark, that place is meant.
        check(
            "cafe\u{301} cafe",
            "cafe",
            "tea",
            Ok(("cafe\u{301} tea", MatchKind::Exact)),
        );
        check(
            "cafe\u{301}",
            "cafe\u{301}",
            "tea",
            Ok(("tea", MatchKind::Exact)),
        );
        check(
            "cafe\u{301}",
            "caf\u{e9}",
            "tea",
            Ok(("tea", MatchKind::Alike)),
        );
        check("caf\u{e9}s", "caf", "b", Ok(("b\u{e9}s", MatchKind::Exact)));
    }

    #[test]
    fn text_that_occurs_twice_is_ambiguous_and_its_lines_are_listed() {
        check(
            "a\nb\na\n",
            "a",
            "c",
            Err(EditFailure::Ambiguous {
                count: 2,
                lines: vec![1, 3],
            }),
        );
        check(
            "aaa",
            "aa",
            "b",
            Err(EditFailure::Ambiguous {
                count: 2,
                lines: vec![1, 1],
            }),
        );
    }

    #[test]
    fn replace_all_replaces_each_place_once() {
        let mut text = b"aaa a".to_vec();
        let all = Replacement {
            replace_all: true,
            ..edit("aa", "b")
        };
        apply(&mut text, &all, LIMIT).expect("found");
        assert_eq!(text, b"ba a");
    }

    /// Searched from each of its places, as it once was, this line alone would take minutes.
    #[test]
    fn a_long_line_with_very_many_places_is_searched_once() {
        let mut text = b"{\"a\":1,".repeat(300_000);
        let all = Replacement {
            replace_all: true,
            ..edit("\"a\"", "\"b\"")
        };
        let applied = apply(&mut text, &all, u64::MAX).expect("found");
        assert_eq!(
            (applied.replaced, text),
            (300_000, b"{\"b\":1,".repeat(300_000))
        );
    }

    #[test]
    fn an_edit_beyond_the_size_limit_changes_nothing() {
        let mut text = b"aaaa".to_vec();
        let all = Replacement {
            replace_all: true,
            ..edit("a", "b")
        };
        assert_eq!(
            apply(
                &mut text,
                &Replacement {
                    new_string: "b".repeat(300),
                    ..all
                },
                LIMIT
            ),
            Err(EditFailure::TooLarge { bytes: 1200 })
        );
        assert_eq!(text, b"aaaa");
    }

    #[test]
    fn line_ends_of_the_file_win_over_those_of_the_model() {
        check(
            "a\r\nb\r\nc\r\n",
            "a\nb",
            "x\ny",
            Ok(("x\r\ny\r\nc\r\n", MatchKind::Exact)),
        );
        check(
            "a\r\nb\r\n",
            "b",
            "y\nz",
            Ok(("a\r\ny\r\nz\r\n", MatchKind::Exact)),
        );
        check(
            "a\r\nb\r\nc",
            "\nb\n",
            "\n",
            Ok(("a\r\nc", MatchKind::Exact)),
        );
        check(
            "a\nb\n",
            "a\r\nb",
            "x\r\ny",
            Ok(("x\ny\n", MatchKind::Exact)),
        );
        check(
            "a\nb\r\nc\n",
            "a\nb\nc",
            "1\n2",
            Ok(("1\n2\n", MatchKind::Exact)),
        );
        // Unchanged lines keep their own ends.
        check(
            "a\r\nb\nc\r\nd",
            "a\nb\nc\n",
            "a\nB\nc\n",
            Ok(("a\r\nB\nc\r\nd", MatchKind::Exact)),
        );
        check(
            "a\nb\r\nc\n",
            "a\nb\nc",
            "a\nB\n2\nc",
            Ok(("a\nB\r\n2\r\nc\n", MatchKind::Exact)),
        );
        check(
            "a\nb\r\nc\n",
            "a\nb\nc\n",
            "a\nb\nnew\nc\n",
            Ok(("a\nb\r\nnew\r\nc\n", MatchKind::Exact)),
        );
        check(
            "a\nb\r\nc\n",
            "a\nb\nc\n",
            "a\nc\n",
            Ok(("a\nc\n", MatchKind::Exact)),
        );
        check(
            "a\nb\r\nb\nb\r\n",
            "a\nb\nb\n",
            "a\nb\n",
            Ok(("a\nb\r\nb\r\n", MatchKind::Exact)),
        );
        check("a\nb\r\n", "a\nb\n", "", Ok(("", MatchKind::Exact)));
        check(
            "  a\r\n  b\n  c\r\n",
            "a\nb\nc\n",
            "a\nB\nc\n",
            Ok(("  a\r\n  B\n  c\r\n", MatchKind::Tolerant)),
        );
        check(
            "a\r\nb\r\n",
            "a\r\nb",
            "a\nb",
            Ok(("a\nb\r\n", MatchKind::Exact)),
        );
    }

    #[test]
    fn white_space_at_line_ends_is_ignored_where_one_place_fits() {
        check(
            "fn a() {\n    b();  \n}\n",
            "fn a() {\nb();\n}",
            "fn a() {\nc();\n}",
            Ok(("fn a() {\n    c();\n}\n", MatchKind::Tolerant)),
        );
        check(
            "\tif x {\n\t\ty();\n\t}\n",
            "if x {\n    y();\n}\n",
            "if x {\n    z();\n    w();\n}\n",
            Ok(("\tif x {\n\t\tz();\n\t\tw();\n\t}\n", MatchKind::Tolerant)),
        );
        check(
            "  a\r\n  b\r\n",
            "a\nb\n",
            "c\nd\n",
            Ok(("  c\r\n  d\r\n", MatchKind::Tolerant)),
        );
        check(
            " a\n b\n  a\n  b\n",
            "a\nb",
            "c",
            Err(EditFailure::NotFound),
        );
        check("a\n\n\nb\n", " \n ", "c", Err(EditFailure::NotFound));
    }

    #[test]
    fn runs_of_blanks_match_one_blank_where_one_place_fits() {
        check(
            "  x  =  1\n  y = 2\n",
            "x = 1\ny  = 2",
            "x = 3\ny = 4",
            Ok(("  x = 3\n  y = 4\n", MatchKind::Tolerant)),
        );
        check(
            "def f():\n\tpass\n",
            "def  f():",
            "def g():",
            Ok(("def g():\n\tpass\n", MatchKind::Tolerant)),
        );
        check("a  b\na   b\n", "a b", "c", Err(EditFailure::NotFound));
        // No white space at all is something else.
        check("a b\n", "ab", "c", Err(EditFailure::NotFound));
        check("f(a, b)\n", "f( a, b )", "c", Err(EditFailure::NotFound));
    }

    #[test]
    fn one_extra_level_of_backslashes_is_removed() {
        check(
            "t = 'A'",
            r"t = \'A\'",
            r"t = 'a \textbf \nabla'",
            Ok((r"t = 'a \textbf \nabla'", MatchKind::Unescaped)),
        );
        check(
            "x = \"a\"",
            r#"x = \"a\""#,
            r#"x = "a\nb""#,
            Ok((r#"x = "a\nb""#, MatchKind::Unescaped)),
        );
        check(
            "x = \"a\"",
            r#"x = \"a\""#,
            r"y\nz",
            Ok((r"y\nz", MatchKind::Unescaped)),
        );
        check(
            "say \"hi\"\nbye\n",
            r#"say \"hi\"\nbye"#,
            r#"say \"ho\"\nbye"#,
            Ok(("say \"ho\"\nbye\n", MatchKind::Unescaped)),
        );
        check(
            r"print('a\n')",
            r"print('a\n')",
            r"print('b\n')",
            Ok((r"print('b\n')", MatchKind::Exact)),
        );
    }

    #[test]
    fn bytes_that_are_not_text_are_kept() {
        let mut text = b"\xff\xfe\x00 key = 1 \x80".to_vec();
        apply(&mut text, &edit("key = 1", "key = 2"), LIMIT).expect("found");
        assert_eq!(text, b"\xff\xfe\x00 key = 2 \x80");
    }

    proptest! {
        #[test]
        fn an_edit_keeps_all_bytes_outside_its_place(
            before in proptest::collection::vec(any::<u8>(), 0..64),
            after in proptest::collection::vec(any::<u8>(), 0..64),
            old in "[a-z\n]{1,12}",
            new in "[A-Z\n]{0,12}",
        ) {
            let mut text = before.clone();
            text.extend_from_slice(b"<");
            text.extend_from_slice(old.as_bytes());
            text.extend_from_slice(b">");
            text.extend_from_slice(&after);
            let whole = Replacement { old_string: format!("<{old}>"), new_string: new.clone(), replace_all: false };
            let length = text.len();
            if apply(&mut text, &whole, LIMIT).is_ok() {
                prop_assert!(text.starts_with(&before));
                prop_assert!(text.ends_with(&after));
                let added = text.len() - (length - old.len() - 2);
                prop_assert!(added == new.len() || added == new.len() + new.matches('\n').count());
            }
        }

        #[test]
        fn no_text_makes_an_edit_panic(
            mut text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b' '), Just(b'\t'), Just(b'a'), Just(b'\\'), Just(b'n')], 0..40),
            old in "[\n\r \ta\\\\n]{1,8}",
            new in "[\n\r \tb\\\\n]{0,8}",
            replace_all in any::<bool>(),
        ) {
            let _ = apply(&mut text, &Replacement { old_string: old, new_string: new, replace_all }, LIMIT);
        }
    }
}
