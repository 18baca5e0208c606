//! The text of a file that is not UTF-8: how it is shown to a model, matched by edits, and encoded
//! again.
//!
//! No file says for certain which legacy encoding it has. It is decoded by what its bytes look
//! like, by the rules of web browsers, which is a guess: some bytes fit several encodings. New text
//! is therefore never encoded by the guess. Unchanged text keeps its bytes; ASCII is the same in
//! all of these encodings; and a character that already occurs in the file is written with the
//! bytes that it has there, which is right even where the guess is wrong. Any other character is
//! refused.
//!
//! A text that is UTF-8 except for a few broken bytes is treated as UTF-8; those bytes stay as they
//! are.
//!
//! An encoding that the file identifies with certainty is used for all new text, provided that it
//! encodes the old text to the same bytes. Lines that end in a lone carriage return keep that end.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use chardetng::EncodingDetector;
use chardetng::Iso2022JpDetection;
use chardetng::Utf8Detection;
use encoding_rs::BIG5;
use encoding_rs::DecoderResult;
use encoding_rs::EUC_KR;
use encoding_rs::Encoding;
use encoding_rs::GBK;
use encoding_rs::SHIFT_JIS;
use encoding_rs::WINDOWS_1252;
use imara_diff::Algorithm;
use imara_diff::Diff;
use imara_diff::Hunk;
use imara_diff::InternedInput;

use super::detected_encoding::DetectedEncoding;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::shown_text;

/// A file's text, in UTF-8, and how its bytes encode it.
#[derive(Debug)]
pub(super) struct EncodedText<'a> {
    pub(super) text: Cow<'a, str>,
    form: Representation<'a>,
    /// Its lines end in a lone carriage return, which is a line feed in the text.
    has_returns_alone: bool,
}

/// How the bytes of a file encode its text.
#[derive(Debug)]
enum Representation<'a> {
    /// They are UTF-8.
    Plain,
    /// An encoding that is certain; broken where it does not encode the text to the same bytes.
    DetectedEncoding {
        encoding: DetectedEncoding,
        is_exact: bool,
    },
    LegacyText(LegacyText<'a>),
}

/// Why a text cannot be encoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unwritable {
    /// The bytes of this character are not certain, or it has none.
    Letter(char),
    /// Some of the file is invalid in its encoding.
    Broken,
}

#[derive(Debug)]
struct LegacyText<'a> {
    /// The guessed encoding; `None`: UTF-8 with broken bytes, which are shown as escapes such as
    /// `\xff`.
    guess: Option<&'static Encoding>,
    bytes: &'a [u8],
    /// Bytes of each character; of an escape the first character has the byte.
    lengths: Vec<u8>,
    /// Where characters begin in each other encoding that fits the whole file.
    others: Vec<BTreeSet<usize>>,
}

impl<'a> EncodedText<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        let (text, form) = decoded(bytes);
        let has_returns_alone = text.contains('\r') && !text.contains('\n');
        let text = if has_returns_alone {
            Cow::Owned(text.replace('\r', "\n"))
        } else {
            text
        };
        Self {
            text,
            form,
            has_returns_alone,
        }
    }

    /// Returns the encoding of a file that is not UTF-8, certain or guessed.
    pub(super) fn name(&self) -> Option<String> {
        match &self.form {
            Representation::DetectedEncoding { encoding, .. } => Some(encoding.name().to_owned()),
            Representation::LegacyText(other) => other.guess.map(name),
            Representation::Plain => None,
        }
    }

    /// Returns whether its encoding is certain.
    pub(super) fn is_certain(&self) -> bool {
        matches!(self.form, Representation::DetectedEncoding { .. })
    }

    /// Returns whether its text is its bytes.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.form, Representation::Plain) && !self.has_returns_alone
    }

    /// Returns whether some bytes are invalid in its encoding.
    pub(super) fn is_broken(&self) -> bool {
        matches!(
            &self.form,
            Representation::LegacyText(LegacyText { guess: None, .. })
        )
    }

    /// Returns whether its lines end in a lone carriage return.
    pub(super) fn has_returns_alone(&self) -> bool {
        self.has_returns_alone
    }

    /// Returns notes on how new text was encoded.
    pub(super) fn notes(&self) -> Vec<String> {
        let said = |name| {
            let is = if self.is_certain() {
                "is"
            } else {
                "looks like"
            };
            format!(
                "the file is not UTF-8: it was written in the encoding that it has, which {is} {name}"
            )
        };
        let ends = self
            .has_returns_alone
            .then(|| "its lines end in a lone CR, as before".to_owned());
        self.name().map(said).into_iter().chain(ends).collect()
    }

    /// Encodes a text that replaces this one by an edit.
    pub(super) fn with(&self, after: &str) -> Result<Vec<u8>, Unwritable> {
        let after = self.with_its_ends(after);
        match &self.form {
            Representation::Plain => Ok(after.into_owned().into_bytes()),
            Representation::DetectedEncoding {
                is_exact: false, ..
            } => Err(Unwritable::Broken),
            Representation::DetectedEncoding {
                encoding,
                is_exact: true,
            } => encoding.encode(&after).map_err(Unwritable::Letter),
            Representation::LegacyText(other) => other
                .with(&self.with_its_ends(&self.text), &after)
                .map_err(Unwritable::Letter),
        }
    }

    /// Encodes a text that replaces the whole file.
    pub(super) fn replacing(&self, text: &str) -> Result<Vec<u8>, Unwritable> {
        match &self.form {
            Representation::DetectedEncoding { encoding, .. } => encoding
                .encode(&self.with_its_ends(text))
                .map_err(Unwritable::Letter),
            _ => self.with(text),
        }
    }

    /// Like [`Self::with`], with a fault for a text that cannot be encoded.
    pub(super) fn edited(&self, path: &BytesPath, after: &[u8]) -> Result<Vec<u8>, Fault> {
        let after = std::str::from_utf8(after).expect("an edit puts texts into a text");
        self.with(after).map_err(|why| self.refusal(path, &why))
    }

    /// Encodes a text that is appended to this one, which may be only the beginning of a file.
    pub(super) fn addition(&self, path: &BytesPath, text: &str) -> Result<Vec<u8>, Fault> {
        match &self.form {
            Representation::Plain => Ok(self.with_its_ends(text).into_owned().into_bytes()),
            Representation::DetectedEncoding { encoding, .. } => encoding
                .encode(&self.with_its_ends(text))
                .map_err(|letter| self.refusal(path, &Unwritable::Letter(letter))),
            Representation::LegacyText(other) => {
                let all = self.edited(path, format!("{}{text}", self.text).as_bytes())?;
                Ok(all[other.bytes.len()..].to_vec())
            }
        }
    }

    /// Returns a text with the file's lone carriage returns as line ends, where it has them.
    pub(super) fn with_its_ends<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.has_returns_alone {
            Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r"))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// The fault for a file that text in UTF-8 would corrupt.
    fn refusal(&self, path: &BytesPath, why: &Unwritable) -> Fault {
        let encoding = self.name().unwrap_or_else(|| "broken UTF-8".to_owned());
        let letter = match why {
            Unwritable::Letter(letter) => Some(*letter),
            Unwritable::Broken => None,
        };
        Fault::NotUtf8 {
            path: path.clone(),
            encoding,
            letter,
        }
    }
}

impl LegacyText<'_> {
    fn with(&self, before: &str, after: &str) -> Result<Vec<u8>, char> {
        let lines = InternedInput::new(before, after);
        let mut diff = Diff::compute(Algorithm::Histogram, &lines);
        diff.postprocess_lines(&lines);
        let known = self.known(before);
        // Where each line begins: in the text, in characters and in bytes.
        let mut starts = vec![(0, 0, 0)];
        let (mut at_text, mut at_letter, mut at_byte) = (0, 0, 0);
        for token in &lines.before {
            let line = lines.interner[*token];
            let n_letters = line.chars().count();
            at_byte += self.lengths[at_letter..at_letter + n_letters]
                .iter()
                .map(|length| usize::from(*length))
                .sum::<usize>();
            (at_text, at_letter) = (at_text + line.len(), at_letter + n_letters);
            starts.push((at_text, at_letter, at_byte));
        }
        let mut out = Vec::with_capacity(self.bytes.len());
        let mut done = 0;
        let after = |lines_of: Range<u32>| {
            lines.after[lines_of.start as usize..lines_of.end as usize]
                .iter()
                .map(|line| lines.interner[*line])
                .collect::<String>()
        };
        for Hunk {
            before: old,
            after: new,
        } in diff.hunks()
        {
            out.extend_from_slice(&self.bytes[done..starts[old.start as usize].2]);
            done = starts[old.end as usize].2;
            // Equal numbers of lines are paired one by one.
            let pairs = if old.len() == new.len() {
                old.zip(new)
                    .map(|(old, new)| (old..old + 1, new..new + 1))
                    .collect()
            } else {
                vec![(old, new)]
            };
            for (old, new) in pairs {
                let (begin, end) = (starts[old.start as usize], starts[old.end as usize]);
                let old = Part {
                    text: &before[begin.0..end.0],
                    lengths: &self.lengths[begin.1..end.1],
                    bytes: &self.bytes[begin.2..end.2],
                };
                self.change(&old, begin.2, &after(new), &known, &mut out)?;
            }
        }
        out.extend_from_slice(&self.bytes[done..]);
        Ok(out)
    }

    /// Encodes a replaced part, which begins at this byte: its unchanged first and last characters
    /// keep their bytes.
    fn change(
        &self,
        old: &Part<'_>,
        at: usize,
        new: &str,
        known: &HashMap<char, Option<&[u8]>>,
        out: &mut Vec<u8>,
    ) -> Result<(), char> {
        let same = |(one, other): &(char, char)| one == other;
        let mut n_head = old.text.chars().zip(new.chars()).take_while(same).count();
        let (n_old, n_new) = (old.text.chars().count(), new.chars().count());
        let most = n_old.min(n_new) - n_head;
        let mut n_tail = old
            .text
            .chars()
            .rev()
            .zip(new.chars().rev())
            .take(most)
            .take_while(same)
            .count();
        let bytes = |lengths: &[u8]| {
            lengths
                .iter()
                .map(|length| usize::from(*length))
                .sum::<usize>()
        };
        // An escape for a byte is not split.
        let is_inside = |at: usize| old.lengths.get(at) == Some(&0);
        while is_inside(n_head) {
            n_head -= 1;
        }
        while is_inside(n_old - n_tail) {
            n_tail -= 1;
        }
        // What is ASCII by the guess may be the second half of a character.
        let ends = [
            at + bytes(&old.lengths[..n_head]),
            at + bytes(&old.lengths[..n_old - n_tail]),
        ];
        if n_head + n_tail < n_old.max(n_new)
            && self
                .others
                .iter()
                .any(|starts| ends.iter().any(|end| !starts.contains(end)))
        {
            return Err(old
                .text
                .chars()
                .nth(n_head)
                .or_else(|| new.chars().nth(n_head))
                .unwrap_or('\n'));
        }
        out.extend_from_slice(&old.bytes[..bytes(&old.lengths[..n_head])]);
        let put: String = new
            .chars()
            .skip(n_head)
            .take(n_new - n_head - n_tail)
            .collect();
        // A typed escape may be text or mean the byte: ambiguous.
        if self.lengths.contains(&0) && put.contains(r"\x") {
            return Err('\\');
        }
        for letter in put.chars() {
            match known.get(&letter) {
                _ if letter.is_ascii() => out.push(letter as u8),
                Some(Some(bytes)) => out.extend_from_slice(bytes),
                None if self.guess.is_none() => {
                    out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Some(None) | None => return Err(letter),
            }
        }
        out.extend_from_slice(
            &old.bytes[old.bytes.len() - bytes(&old.lengths[n_old - n_tail..])..],
        );
        Ok(())
    }

    /// Returns the bytes of each character that is not ASCII; none for one that occurs with
    /// different bytes.
    fn known(&self, text: &str) -> HashMap<char, Option<&[u8]>> {
        let mut known: HashMap<char, Option<&[u8]>> = HashMap::new();
        let mut at = 0;
        for (letter, length) in text.chars().zip(&self.lengths) {
            let bytes = &self.bytes[at..at + usize::from(*length)];
            at += bytes.len();
            if letter.is_ascii() {
                continue;
            }
            match known.entry(letter) {
                Entry::Occupied(mut entry) if *entry.get() != Some(bytes) => {
                    let _ = entry.insert(None);
                }
                Entry::Occupied(_) => {}
                Entry::Vacant(entry) => drop(entry.insert(Some(bytes))),
            }
        }
        known
    }
}

struct Part<'a> {
    text: &'a str,
    lengths: &'a [u8],
    bytes: &'a [u8],
}

/// Returns the text of a file, and how its bytes encode it.
fn decoded(bytes: &[u8]) -> (Cow<'_, str>, Representation<'_>) {
    if let Some(encoding) = DetectedEncoding::of(bytes) {
        let text = encoding.decode(bytes);
        let is_exact = encoding.encode(&text).is_ok_and(|again| again == bytes);
        return (
            Cow::Owned(text),
            Representation::DetectedEncoding { encoding, is_exact },
        );
    }
    let broken = match std::str::from_utf8(bytes) {
        Ok(text) => return (Cow::Borrowed(text), Representation::Plain),
        Err(_) => broken_utf8(bytes),
    };
    let (guess, (text, lengths)) = match broken {
        Some(broken) => (None, broken),
        None => guessed(bytes),
    };
    let others = guess.map_or_else(Vec::new, |guess| other_readings(bytes, guess));
    (
        Cow::Owned(text),
        Representation::LegacyText(LegacyText {
            guess,
            bytes,
            lengths,
            others,
        }),
    )
}

/// Returns the text of UTF-8 with a few broken bytes: more of its non-ASCII characters are valid
/// than not, which no text in another encoding has.
fn broken_utf8(bytes: &[u8]) -> Option<(String, Vec<u8>)> {
    let (mut text, mut lengths) = (
        String::with_capacity(bytes.len()),
        Vec::with_capacity(bytes.len()),
    );
    let (mut n_letters, mut n_broken) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        lengths.extend(chunk.valid().chars().map(|letter| letter.len_utf8() as u8));
        n_letters += chunk
            .valid()
            .chars()
            .filter(|letter| !letter.is_ascii())
            .count();
        n_broken += usize::from(!chunk.invalid().is_empty());
        for byte in chunk.invalid() {
            text.push_str(&shown_text(&[*byte]));
            lengths.extend([1, 0, 0, 0]);
        }
    }
    (n_letters > n_broken).then_some((text, lengths))
}

/// Returns where characters begin in each multi-byte encoding that fits all of the bytes. A short
/// text may fit many.
fn other_readings(bytes: &[u8], guess: &'static Encoding) -> Vec<BTreeSet<usize>> {
    let others = [SHIFT_JIS, GBK, BIG5, EUC_KR]
        .into_iter()
        .filter(|other| *other != guess);
    let starts = |lengths: Vec<u8>| {
        let ends = lengths.into_iter().scan(0, |at, length| {
            *at += usize::from(length);
            Some(*at)
        });
        [0].into_iter().chain(ends).collect()
    };
    others
        .filter_map(|other| letters(bytes, other))
        .map(|(_, lengths)| starts(lengths))
        .collect()
}

/// Returns the guessed encoding, the text in it, and the bytes of each character.
fn guessed(bytes: &[u8]) -> (Option<&'static Encoding>, (String, Vec<u8>)) {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let guess = detector.guess(None, Utf8Detection::Deny);
    // In this one all bytes are characters.
    let or_any = || letters(bytes, WINDOWS_1252).map(|letters| (Some(WINDOWS_1252), letters));
    letters(bytes, guess)
        .map(|letters| (Some(guess), letters))
        .or_else(or_any)
        .expect("each byte is a letter of windows-1252")
}

/// Decodes bytes character by character; `None`: some are invalid.
fn letters(bytes: &[u8], encoding: &'static Encoding) -> Option<(String, Vec<u8>)> {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let (mut text, mut lengths) = (
        String::with_capacity(bytes.len() * 2),
        Vec::with_capacity(bytes.len()),
    );
    let mut length = 0;
    for at in 0..bytes.len() {
        let mut letter = [0; 16];
        let is_last = at + 1 == bytes.len();
        let (result, _, written) =
            decoder.decode_to_utf8_without_replacement(&bytes[at..=at], &mut letter, is_last);
        length += 1;
        if result != DecoderResult::InputEmpty {
            return None;
        }
        let letter = std::str::from_utf8(&letter[..written]).ok()?;
        match letter.chars().count() {
            0 => {}
            1 => {
                text.push_str(letter);
                lengths.push(length);
                length = 0;
            }
            _ => return None,
        }
    }
    (length == 0).then_some((text, lengths))
}

/// Returns a name that `iconv` knows too, with the more familiar name of its most common subset.
fn name(encoding: &'static Encoding) -> String {
    if encoding == WINDOWS_1252 {
        "windows-1252 (Latin-1)".to_owned()
    } else {
        encoding.name().to_owned()
    }
}

#[cfg(test)]
mod tests;
