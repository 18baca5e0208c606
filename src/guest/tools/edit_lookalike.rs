//! Edits whose old text occurs in the file with look-alike characters: typographic quotes for ASCII
//! ones, or a different Unicode composition.

use std::ops::Range;

use memchr::memmem;

use crate::lookalike::NormalizedText;
use crate::lookalike::normalize;

/// Finds the only place of a text by look-alike characters; returns it with the new text for it.
/// Common prefix and suffix of the old and new text keep the characters of the file.
pub(super) fn find(text: &str, old: &str, new: &str) -> Option<(Range<usize>, Vec<u8>)> {
    let text_plain = NormalizedText::of(text);
    let old_plain = NormalizedText::of(old);
    let wanted = old_plain.text.as_str();
    if wanted.trim().is_empty() {
        return None;
    }
    let finder = memmem::Finder::new(wanted);
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = finder.find(&text_plain.text.as_bytes()[from..]) {
        let at = from + at;
        from = at + 1;
        // A base letter without its combining mark is another letter.
        if let Some((begin, end)) = text_plain.begin(at).zip(text_plain.end(at + wanted.len())) {
            places.push((at, begin..end));
            if places.len() > 1 {
                return None;
            }
        }
    }
    let (at, place) = places.pop()?;
    let (head, tail) = stays(old, new);
    let there = |length: usize| {
        text_plain
            .begin(at + length)
            .or_else(|| text_plain.end(at + length))
    };
    let head_end = there(normalize(&old[..head]).replace("\r\n", "\n").len())?;
    let tail_begin = there(
        wanted.len()
            - normalize(&old[old.len() - tail..])
                .replace("\r\n", "\n")
                .len(),
    )?
    .min(place.end);
    let inner = &new[head..new.len() - tail];
    let mut out = text.as_bytes().get(place.start..head_end)?.to_vec();
    out.extend_from_slice(inner.as_bytes());
    out.extend_from_slice(text.as_bytes().get(tail_begin..place.end)?);
    Some((place, out))
}

/// Returns the lengths of the common prefix and suffix of two texts, in bytes, at whole characters
/// with their combining marks.
fn stays(old: &str, new: &str) -> (usize, usize) {
    let is_same = |(one, other): &(&u8, &u8)| one == other;
    let cuts = |text: &str| NormalizedText::of(text);
    let (old_cuts, new_cuts) = (cuts(old), cuts(new));
    let is_cut = |at_old: usize, at_new: usize| old_cuts.is_cut(at_old) && new_cuts.is_cut(at_new);
    let mut head = old
        .bytes()
        .zip(new.bytes())
        .take_while(|(one, other)| one == other)
        .count();
    while !is_cut(head, head) {
        head -= 1;
    }
    let most = old.len().min(new.len()) - head;
    let mut tail = old
        .as_bytes()
        .iter()
        .rev()
        .zip(new.as_bytes().iter().rev())
        .take(most)
        .take_while(is_same)
        .count();
    while !is_cut(old.len() - tail, new.len() - tail) {
        tail -= 1;
    }
    (head, tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, old: &str, new: &str, expected: Option<&str>) {
        let after = find(text, old, new).map(|(place, new)| {
            let mut bytes = text.as_bytes().to_vec();
            bytes.splice(place, new);
            String::from_utf8(bytes).expect("text")
        });
        assert_eq!(after.as_deref(), expected);
    }

    #[test]
    fn look_alike_text_is_found_and_unchanged_parts_keep_their_characters() {
        let quoted = "say \u{201c}hello\u{201d} now\n";
        check(
            quoted,
            "say \"hello\" now",
            "say \"hello\" then",
            Some("say \u{201c}hello\u{201d} then\n"),
        );
        check(
            quoted,
            "\"hello\" now",
            "\"bye\" now",
            Some("say \u{201c}bye\u{201d} now\n"),
        );
        check(
            "cafe\u{301} au lait",
            "caf\u{e9} au",
            "caf\u{e9} sans",
            Some("cafe\u{301} sans lait"),
        );
        check(
            "caf\u{e9} au lait",
            "cafe\u{301} au",
            "th\u{e9} au",
            Some("th\u{e9} au lait"),
        );
        check(
            "10\u{202f}km \u{2013} fast",
            "10 km - fast",
            "12 km - fast",
            Some("12\u{202f}km \u{2013} fast"),
        );
        check(
            "\u{ff08}a\u{ff09}\r\nb\r\n",
            "(a)\nb",
            "(a)\nc",
            Some("\u{ff08}a\u{ff09}\r\nc\r\n"),
        );
        check(
            "wait\u{2026} done",
            "wait... done",
            "wait... over",
            Some("wait\u{2026} over"),
        );
    }

    #[test]
    fn a_combining_mark_makes_another_letter_and_two_places_are_ambiguous() {
        check("cafe\u{301}", "cafe", "tea", None);
        check("it\u{2019}s, it\u{2019}s", "it's", "is", None);
        check("x\u{b2}\u{2019}", "x2'", "y", None);
        check("\u{a0}\n", " ", "x", None);
    }
}
