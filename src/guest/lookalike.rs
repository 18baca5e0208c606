//! Normalizes look-alike characters: composed and decomposed letters (NFC, NFD), and typographic
//! quotes, dashes and blanks where a model writes ASCII ones, or the other way round.
//!
//! Two texts look alike where [`normalize`] makes the same of both. Letters of other alphabets,
//! sizes or positions are different, whatever they look like: `x2` is not `x²`.

use std::borrow::Cow;

use unicode_normalization::IsNormalized;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::is_nfc_quick;

/// Returns a text with letters composed and typographic characters as ASCII; zero-width characters
/// are removed.
pub(crate) fn normalize(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(composed(text))
    }
}

/// Normalizes a text in which some characters are operators: `made` escapes a character that only
/// normalizing produced.
pub(crate) fn normalize_with(text: &str, made: impl Fn(char) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.nfc() {
        let form = composed(letter.encode_utf8(&mut [0; 4]));
        if form.chars().eq([letter]) {
            out.push(letter);
        } else {
            out.extend(form.chars().map(&made));
        }
    }
    out
}

/// Normalizes bytes; invalid UTF-8 stays as it is.
pub(crate) fn normalize_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.is_ascii() => Cow::Owned(composed(text).into_bytes()),
        _ => Cow::Borrowed(bytes),
    }
}

fn composed(text: &str) -> String {
    let mut normalized = String::with_capacity(text.len());
    for letter in text.nfc() {
        match letter {
            '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' => normalized.push('-'),
            '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2035}' => normalized.push('\''),
            '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{2036}' => normalized.push('"'),
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
                normalized.push(' ');
            }
            '\u{2026}' => normalized.push_str("..."),
            // Fullwidth forms of ASCII characters.
            '\u{ff01}'..='\u{ff5e}' => {
                normalized.extend(char::from_u32(letter as u32 - 0xff01 + 0x21));
            }
            '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}' => {}
            other => normalized.push(other),
        }
    }
    normalized
}

/// A text and its normalized form, with positions mapped back to the text. `\r\n` becomes `\n`.
#[derive(Debug)]
pub(crate) struct NormalizedText {
    pub(crate) text: String,
    pieces: Vec<Piece>,
    length: usize,
}

/// A piece of both.
#[derive(Clone, Copy, Debug)]
struct Piece {
    normalized: usize,
    original: usize,
    /// Equal bytes in both; otherwise one letter with its combining marks.
    same: bool,
}

impl NormalizedText {
    pub(crate) fn of(text: &str) -> Self {
        let mut normalized = Self {
            text: String::with_capacity(text.len()),
            pieces: Vec::new(),
            length: text.len(),
        };
        let mut at = 0;
        while let Some(first) = text[at..].chars().next() {
            let ends = |letter: char| !letter.is_ascii() || letter == '\r';
            let run = text[at..].find(ends).unwrap_or(text.len() - at);
            let next = text[at + run..].chars().next();
            // A combining mark belongs exactly before it.
            let run = if next.is_some_and(joins) {
                run.saturating_sub(1)
            } else {
                run
            };
            if run > 0 && first.is_ascii() && first != '\r' {
                normalized.push(at, &text[at..at + run], true);
                at += run;
                continue;
            }
            let rest = &text[at..];
            let end = rest
                .char_indices()
                .skip(1)
                .find(|(_, letter)| !joins(*letter))
                .map_or(rest.len(), |(end, _)| end);
            let letter = &rest[..end];
            if rest.starts_with("\r\n") {
                normalized.push(at, "\n", false);
                at += 2;
            } else {
                normalized.push(at, &composed(letter), false);
                at += end;
            }
        }
        normalized
    }

    fn push(&mut self, original: usize, text: &str, same: bool) {
        self.pieces.push(Piece {
            normalized: self.text.len(),
            original,
            same,
        });
        self.text.push_str(text);
    }

    /// Returns the position in the text where something begins at this position of the normalized
    /// form; `None` within a letter.
    pub(crate) fn begin(&self, normalized: usize) -> Option<usize> {
        let last = self
            .pieces
            .partition_point(|piece| piece.normalized <= normalized)
            .checked_sub(1)?;
        // Behind zero-width characters.
        self.within(last, normalized)
    }

    /// Returns the position in the text where something ends at this position of the normalized
    /// form; `None` within a letter.
    pub(crate) fn end(&self, normalized: usize) -> Option<usize> {
        let first = self
            .pieces
            .partition_point(|piece| piece.normalized < normalized);
        match self.pieces.get(first) {
            Some(piece) if piece.normalized == normalized => Some(piece.original),
            _ if normalized == self.text.len()
                && !self.pieces.last().is_some_and(|piece| piece.same) =>
            {
                Some(self.length)
            }
            _ => self.within(first.checked_sub(1)?, normalized),
        }
    }

    /// Returns whether a position of the text is between two letters with their combining marks.
    pub(crate) fn is_cut(&self, original: usize) -> bool {
        let piece = self
            .pieces
            .partition_point(|piece| piece.original <= original)
            .checked_sub(1)
            .map(|last| self.pieces[last]);
        original == self.length
            || piece.is_some_and(|piece| piece.same || piece.original == original)
    }

    fn within(&self, piece: usize, normalized: usize) -> Option<usize> {
        let Piece {
            normalized: begin,
            original,
            same,
        } = self.pieces[piece];
        (same || begin == normalized).then(|| original + (normalized - begin))
    }
}

/// Returns whether a character combines with the one before it.
pub(crate) fn joins(letter: char) -> bool {
    !letter.is_ascii()
        && (canonical_combining_class(letter) != 0
            || is_nfc_quick(std::iter::once(letter)) == IsNormalized::Maybe)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn look_alike_characters_are_normalized() {
        for (text, expected) in [
            ("\u{201c}a\u{201d} \u{2018}b\u{2019}", "\"a\" 'b'"),
            ("1\u{2013}2 \u{2014} \u{2212}3", "1-2 - -3"),
            ("10\u{202f}km\u{3000}\u{a0}", "10 km  "),
            ("cafe\u{301} \u{212b}", "caf\u{e9} \u{c5}"),
            ("\u{1112}\u{1161}\u{11ab}", "\u{d55c}"),
            ("\u{ff08}\u{ff21}\u{ff09}\u{2026}", "(A)..."),
            ("a\u{200b}b\u{ad}c", "abc"),
            ("plain \t", "plain \t"),
        ] {
            assert_eq!(normalize(text), expected, "{text}");
            assert_eq!(NormalizedText::of(text).text, expected, "{text}");
        }
        assert_eq!(normalize_bytes(b" \xffa "), &b" \xffa "[..]);
    }

    #[test]
    fn normalized_operators_are_escaped() {
        let escaped = |letter: char| format!("<{letter}>");
        for (text, expected) in [
            ("a.b(c)", "a.b(c)"),
            ("\u{ff08}x\u{ff09}.", "<(>x<)>."),
            ("e\u{301}+\u{2026}", "\u{e9}+<.><.><.>"),
            ("a\u{200b}b", "ab"),
        ] {
            assert_eq!(normalize_with(text, escaped), expected, "{text}");
        }
    }

    #[test]
    fn different_letters_are_not_normalized() {
        for (one, other) in [
            ("x\u{b2}", "x2"),
            ("\u{430}", "a"),
            ("l", "1"),
            ("O", "0"),
            ("\u{2460}", "1"),
            ("\u{e9}", "e"),
            ("a  b", "a b"),
        ] {
            assert_ne!(normalize(one), normalize(other), "{one}");
        }
    }

    #[test]
    fn positions_map_back_to_the_text() {
        let text = "a\u{301}b \u{200b}\u{201c}c\u{201d}\r\nd";
        let normalized = NormalizedText::of(text);
        assert_eq!(normalized.text, "\u{e1}b \"c\"\nd");
        let place = |wanted: &str| {
            let at = normalized.text.find(wanted).expect("is there");
            normalized
                .begin(at)
                .zip(normalized.end(at + wanted.len()))
                .map(|(begin, end)| &text[begin..end])
        };
        assert_eq!(place("\u{e1}"), Some("a\u{301}"));
        assert_eq!(place("b "), Some("b "));
        assert_eq!(place("\"c\""), Some("\u{201c}c\u{201d}"));
        assert_eq!(place("\"\nd"), Some("\u{201d}\r\nd"));
        assert_eq!(normalized.begin(1), None, "within a letter");
    }

    proptest! {
        #[test]
        fn pieces_come_to_the_same_as_the_whole(text in "[a-c\r\n \u{301}\u{e9}\u{2019}\u{200b}\u{1161}\u{1112}\u{11ab}\u{2026}]{0,12}") {
            let pieces = NormalizedText::of(&text);
            let whole = text.replace("\r\n", "\n");
            prop_assert_eq!(&pieces.text, &*normalize(&whole));
            prop_assert!(pieces.end(pieces.text.len()).is_some_and(|end| end <= text.len()));
        }
    }
}
