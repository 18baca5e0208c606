//! Letters that only look alike: the same letter composed in another way (NFC, NFD), and the
//! quotes, dashes and blanks of a typesetter where a model writes those of a keyboard, or the other
//! way round.
//!
//! Two texts are alike where [`plain`] makes one of both. A letter of another alphabet, another
//! size or another place on the line is another letter, whatever it looks like: `x2` is not `x²`.

use std::borrow::Cow;

use unicode_normalization::IsNormalized;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::is_nfc_quick;

/// Returns a text with each letter composed, and each sign as it stands on a keyboard; signs that
/// take no room are left out.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(composed(text))
    }
}

/// The same of a text in which some signs are operators: `made` says how a sign is written that
/// stands in the plain form alone.
pub(crate) fn each_plain(text: &str, made: impl Fn(char) -> String) -> String {
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

/// The same of bytes; those that are no text stay as they are.
pub(crate) fn plain_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.is_ascii() => Cow::Owned(composed(text).into_bytes()),
        _ => Cow::Borrowed(bytes),
    }
}

fn composed(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.nfc() {
        match letter {
            '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' => plain.push('-'),
            '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2035}' => plain.push('\''),
            '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{2036}' => plain.push('"'),
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
                plain.push(' ');
            }
            '\u{2026}' => plain.push_str("..."),
            // The keyboard's own signs in the width of a Chinese or Japanese letter.
            '\u{ff01}'..='\u{ff5e}' => plain.extend(char::from_u32(letter as u32 - 0xff01 + 0x21)),
            '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}' => {}
            other => plain.push(other),
        }
    }
    plain
}

/// A text and its plain form, in which a place can be looked for that is then one of the text. A
/// `\r\n` of it is a `\n` of the plain form.
#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) text: String,
    pieces: Vec<Piece>,
    length: usize,
}

/// What begins at a place of both.
#[derive(Clone, Copy, Debug)]
struct Piece {
    plain: usize,
    original: usize,
    /// Byte for byte the same in both; otherwise it is one letter with its marks.
    same: bool,
}

impl Plain {
    pub(crate) fn of(text: &str) -> Self {
        let mut plain = Self {
            text: String::with_capacity(text.len()),
            pieces: Vec::new(),
            length: text.len(),
        };
        let mut at = 0;
        while let Some(first) = text[at..].chars().next() {
            let ends = |letter: char| !letter.is_ascii() || letter == '\r';
            let run = text[at..].find(ends).unwrap_or(text.len() - at);
            let next = text[at + run..].chars().next();
            // A mark belongs to the letter before it.
            let run = if next.is_some_and(joins) {
                run.saturating_sub(1)
            } else {
                run
            };
            if run > 0 && first.is_ascii() && first != '\r' {
                plain.push(at, &text[at..at + run], true);
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
                plain.push(at, "\n", false);
                at += 2;
            } else {
                plain.push(at, &composed(letter), false);
                at += end;
            }
        }
        plain
    }

    fn push(&mut self, original: usize, text: &str, same: bool) {
        self.pieces.push(Piece {
            plain: self.text.len(),
            original,
            same,
        });
        self.text.push_str(text);
    }

    /// Returns where in the text something begins that begins here in the plain form; `None` within
    /// a letter.
    pub(crate) fn begin(&self, plain: usize) -> Option<usize> {
        let last = self
            .pieces
            .partition_point(|piece| piece.plain <= plain)
            .checked_sub(1)?;
        // Behind what takes no room.
        self.within(last, plain)
    }

    /// Returns where in the text something ends that ends here in the plain form; `None` within a
    /// letter.
    pub(crate) fn end(&self, plain: usize) -> Option<usize> {
        let first = self.pieces.partition_point(|piece| piece.plain < plain);
        match self.pieces.get(first) {
            Some(piece) if piece.plain == plain => Some(piece.original),
            _ if plain == self.text.len()
                && !self.pieces.last().is_some_and(|piece| piece.same) =>
            {
                Some(self.length)
            }
            _ => self.within(first.checked_sub(1)?, plain),
        }
    }

    /// Returns whether a place of the text lies between two letters with their marks.
    pub(crate) fn is_cut(&self, original: usize) -> bool {
        let piece = self
            .pieces
            .partition_point(|piece| piece.original <= original)
            .checked_sub(1)
            .map(|last| self.pieces[last]);
        original == self.length
            || piece.is_some_and(|piece| piece.same || piece.original == original)
    }

    fn within(&self, piece: usize, plain: usize) -> Option<usize> {
        let Piece {
            plain: begin,
            original,
            same,
        } = self.pieces[piece];
        (same || begin == plain).then(|| original + (plain - begin))
    }
}

/// Returns whether a letter is put together with the one before it.
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
    fn letters_that_look_alike_are_the_plain_ones() {
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
            assert_eq!(plain(text), expected, "{text}");
            assert_eq!(Plain::of(text).text, expected, "{text}");
        }
        assert_eq!(plain_bytes(b" \xffa "), &b" \xffa "[..]);
    }

    #[test]
    fn a_sign_that_is_plain_in_another_form_is_no_operator() {
        let escaped = |letter: char| format!("<{letter}>");
        for (text, expected) in [
            ("a.b(c)", "a.b(c)"),
            ("\u{ff08}x\u{ff09}.", "<(>x<)>."),
            ("e\u{301}+\u{2026}", "\u{e9}+<.><.><.>"),
            ("a\u{200b}b", "ab"),
        ] {
            assert_eq!(each_plain(text, escaped), expected, "{text}");
        }
    }

    #[test]
    fn letters_that_are_others_stay_others() {
        for (one, other) in [
            ("x\u{b2}", "x2"),
            ("\u{430}", "a"),
            ("l", "1"),
            ("O", "0"),
            ("\u{2460}", "1"),
            ("\u{e9}", "e"),
            ("a  b", "a b"),
        ] {
            assert_ne!(plain(one), plain(other), "{one}");
        }
    }

    #[test]
    fn a_place_in_the_plain_form_is_one_of_the_text() {
        let text = "a\u{301}b \u{200b}\u{201c}c\u{201d}\r\nd";
        let plain = Plain::of(text);
        assert_eq!(plain.text, "\u{e1}b \"c\"\nd");
        let place = |wanted: &str| {
            let at = plain.text.find(wanted).expect("is there");
            plain
                .begin(at)
                .zip(plain.end(at + wanted.len()))
                .map(|(begin, end)| &text[begin..end])
        };
        assert_eq!(place("\u{e1}"), Some("a\u{301}"));
        assert_eq!(place("b "), Some("b "));
        assert_eq!(place("\"c\""), Some("\u{201c}c\u{201d}"));
        assert_eq!(place("\"\nd"), Some("\u{201d}\r\nd"));
        assert_eq!(plain.begin(1), None, "within a letter");
    }

    proptest! {
        #[test]
        fn pieces_come_to_the_same_as_the_whole(text in "[a-c\r\n \u{301}\u{e9}\u{2019}\u{200b}\u{1161}\u{1112}\u{11ab}\u{2026}]{0,12}") {
            let pieces = Plain::of(&text);
            let whole = text.replace("\r\n", "\n");
            prop_assert_eq!(&pieces.text, &*plain(&whole));
            prop_assert!(pieces.end(pieces.text.len()).is_some_and(|end| end <= text.len()));
        }
    }
}
