//! The text of a file that is not UTF-8: what a model is shown of it, what its edits match, and the
//! bytes of what they make.
//!
//! Nothing in a file says for certain which of the older encodings it has. It is shown in the one
//! that its bytes look like, by the rules of web browsers, and that is a guess: a few letters can
//! be of several. So new text is never written by the guess. What stays keeps its bytes, whatever
//! they stand for; ASCII is ASCII in all of these encodings; and a letter that stands in the file
//! already is written with the bytes that it has there. Of these the bytes are certain, even where
//! the guess is wrong, since they will look as what the model copied them from. Any other letter is
//! refused.
//!
//! A text that is UTF-8 but for a few broken bytes is still UTF-8; those stay what they are.
//!
//! An encoding that the file tells for certain is another matter: all of the new text is written in
//! it, where that gives the old text its very bytes back. Lines that end in a carriage return alone
//! are lines all the same, and keep that end.

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

use super::certain_encoding::Certain;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::shown_text;

/// A file's text, in UTF-8, over the bytes that stand for it.
#[derive(Debug)]
pub(super) struct Encoded<'a> {
    pub(super) text: Cow<'a, str>,
    form: Form<'a>,
    /// Its lines end in a carriage return alone, each of which is a line feed in the text.
    has_returns_alone: bool,
}

/// How the bytes of a file stand for its text.
#[derive(Debug)]
enum Form<'a> {
    /// They are UTF-8.
    Plain,
    /// In an encoding that is certain, unless some bytes are not those that the text has in it.
    Certain {
        encoding: Certain,
        is_exact: bool,
    },
    Other(Other<'a>),
}

/// Why a text cannot be written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unwritable {
    /// Which bytes this letter has is not certain, or it has none.
    Letter(char),
    /// Some of the file is not what it should be in its encoding.
    Broken,
}

#[derive(Debug)]
struct Other<'a> {
    /// What the bytes look like; `None`: UTF-8, but for those that are shown by their numbers, such
    /// as `\xff`.
    guess: Option<&'static Encoding>,
    bytes: &'a [u8],
    /// How many bytes each letter has; of a number that stands for one the first letter has it.
    lengths: Vec<u8>,
    /// Where letters begin in each other encoding that all of the file could have.
    others: Vec<BTreeSet<usize>>,
}

impl<'a> Encoded<'a> {
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

    /// Returns the encoding of a file that is not UTF-8: what it is, or looks like.
    pub(super) fn name(&self) -> Option<String> {
        match &self.form {
            Form::Certain { encoding, .. } => Some(encoding.name().to_owned()),
            Form::Other(other) => other.guess.map(name),
            Form::Plain => None,
        }
    }

    /// Returns whether its encoding is one that the file tells.
    pub(super) fn is_certain(&self) -> bool {
        matches!(self.form, Form::Certain { .. })
    }

    /// Returns whether its text is its bytes.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.form, Form::Plain) && !self.has_returns_alone
    }

    /// Returns whether some bytes stand for nothing, in whatever encoding.
    pub(super) fn is_broken(&self) -> bool {
        matches!(&self.form, Form::Other(Other { guess: None, .. }))
    }

    /// Returns whether its lines end in a carriage return alone.
    pub(super) fn has_returns_alone(&self) -> bool {
        self.has_returns_alone
    }

    /// Returns what is to be said of what was written there.
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
            .then(|| "its lines end in CR alone, as before".to_owned());
        self.name().map(said).into_iter().chain(ends).collect()
    }

    /// Returns the bytes of a text that takes the place of this one.
    pub(super) fn with(&self, after: &str) -> Result<Vec<u8>, Unwritable> {
        let after = self.with_its_ends(after);
        match &self.form {
            Form::Plain => Ok(after.into_owned().into_bytes()),
            Form::Certain {
                is_exact: false, ..
            } => Err(Unwritable::Broken),
            Form::Certain {
                encoding,
                is_exact: true,
            } => encoding.encode(&after).map_err(Unwritable::Letter),
            Form::Other(other) => other
                .with(&self.with_its_ends(&self.text), &after)
                .map_err(Unwritable::Letter),
        }
    }

    /// Returns the bytes of a text that is to stand in the place of all of this one, whatever it
    /// held.
    pub(super) fn anew(&self, text: &str) -> Result<Vec<u8>, Unwritable> {
        match &self.form {
            Form::Certain { encoding, .. } => encoding
                .encode(&self.with_its_ends(text))
                .map_err(Unwritable::Letter),
            _ => self.with(text),
        }
    }

    /// The same as [`Self::with`], for a file that is left as it is where that cannot be.
    pub(super) fn edited(&self, path: &BytesPath, after: &[u8]) -> Result<Vec<u8>, Fault> {
        let after = std::str::from_utf8(after).expect("an edit puts texts into a text");
        self.with(after).map_err(|why| self.refusal(path, &why))
    }

    /// Returns the bytes of a text that goes to the end of this one, which may be only the
    /// beginning of a file.
    pub(super) fn addition(&self, path: &BytesPath, text: &str) -> Result<Vec<u8>, Fault> {
        match &self.form {
            Form::Plain => Ok(self.with_its_ends(text).into_owned().into_bytes()),
            Form::Certain { encoding, .. } => encoding
                .encode(&self.with_its_ends(text))
                .map_err(|letter| self.refusal(path, &Unwritable::Letter(letter))),
            Form::Other(other) => {
                let all = self.edited(path, format!("{}{text}", self.text).as_bytes())?;
                Ok(all[other.bytes.len()..].to_vec())
            }
        }
    }

    /// Returns a text with the line ends of the file, where they are of their own kind.
    pub(super) fn with_its_ends<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.has_returns_alone {
            Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r"))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// The fault for a file whose encoding a text written in UTF-8 would spoil.
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

impl Other<'_> {
    fn with(&self, before: &str, after: &str) -> Result<Vec<u8>, char> {
        let lines = InternedInput::new(before, after);
        let mut diff = Diff::compute(Algorithm::Histogram, &lines);
        diff.postprocess_lines(&lines);
        let known = self.known(before);
        // Where each line begins, in the text, among its letters and in the bytes.
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
            // As many as before take their places one by one.
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

    /// Writes what takes the place of a part, which begins at this byte: letters at its beginning
    /// and its end that stay keep their bytes.
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
        // A number that stands for a byte is not cut in two.
        let is_inside = |at: usize| old.lengths.get(at) == Some(&0);
        while is_inside(n_head) {
            n_head -= 1;
        }
        while is_inside(n_old - n_tail) {
            n_tail -= 1;
        }
        // What is ASCII by the guess may be the second half of a letter.
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
        // Whether such a number is text or stands for the byte once more nobody knows.
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

    /// Returns the bytes of each letter that is not ASCII; none for one that stands there with
    /// different ones.
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

/// Returns the text of a file, and how its bytes stand for it.
fn decoded(bytes: &[u8]) -> (Cow<'_, str>, Form<'_>) {
    if let Some(encoding) = Certain::of(bytes) {
        let text = encoding.decode(bytes);
        let is_exact = encoding.encode(&text).is_ok_and(|again| again == bytes);
        return (Cow::Owned(text), Form::Certain { encoding, is_exact });
    }
    let broken = match std::str::from_utf8(bytes) {
        Ok(text) => return (Cow::Borrowed(text), Form::Plain),
        Err(_) => broken_utf8(bytes),
    };
    let (guess, (text, lengths)) = match broken {
        Some(broken) => (None, broken),
        None => guessed(bytes),
    };
    let others = guess.map_or_else(Vec::new, |guess| other_readings(bytes, guess));
    (
        Cow::Owned(text),
        Form::Other(Other {
            guess,
            bytes,
            lengths,
            others,
        }),
    )
}

/// Returns the text of what is UTF-8 but for a few bytes: more of its letters are UTF-8 than are
/// not, which no text in another encoding has.
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

/// Returns where letters begin in each encoding with letters of several bytes that all of the bytes
/// could be in. A short text could be in many.
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

/// Returns the encoding that bytes look like, the text they are in it, and how many bytes each of
/// its letters has.
fn guessed(bytes: &[u8]) -> (Option<&'static Encoding>, (String, Vec<u8>)) {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let guess = detector.guess(None, Utf8Detection::Deny);
    // In this one all bytes are letters.
    let or_any = || letters(bytes, WINDOWS_1252).map(|letters| (Some(WINDOWS_1252), letters));
    letters(bytes, guess)
        .map(|letters| (Some(guess), letters))
        .or_else(or_any)
        .expect("each byte is a letter of windows-1252")
}

/// Returns the letters that bytes are in an encoding; `None`: some are none, or not one by one.
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

/// Returns a name that `iconv` knows too, with the better known one of what most texts in it are.
fn name(encoding: &'static Encoding) -> String {
    if encoding == WINDOWS_1252 {
        "windows-1252 (Latin-1)".to_owned()
    } else {
        encoding.name().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(encoding: &str, text: &str) -> Vec<u8> {
        let encoding = Encoding::for_label(encoding.as_bytes()).expect("known");
        let (bytes, _, lost) = encoding.encode(text);
        assert!(!lost, "{text}");
        bytes.into_owned()
    }

    /// Some lines in each encoding, of which one is changed.
    const TEXTS: [(&str, &str, &str, &str); 8] = [
        ("gbk", "菜单\n价格: 5\n结束\n", "5", "6"),
        ("shift_jis", "メニュー\nprice: 5\n", "price: 5", "price: 6"),
        ("euc-kr", "메뉴판입니다\n가격: 5\n", "5", "[6]"),
        ("big5", "菜單與價格一覽\n價格: 5\n", ": 5", " = 6"),
        ("euc-jp", "メニューの一覧です\n値段: 5\n", "5", "6"),
        ("windows-1251", "Меню на сегодня\nцена: 5\n", "5", "6"),
        (
            "windows-1252",
            "# Carte du café\r\nprice: 5\r\nend\r\n",
            "5",
            "6",
        ),
        (
            "windows-1250",
            "Příliš žluťoučký kůň úpěl\nmenu: 5\n",
            "5",
            "6",
        ),
    ];

    #[test]
    fn a_text_is_shown_in_the_encoding_that_it_looks_like_and_an_edit_keeps_all_other_bytes() {
        for (encoding, text, old, new) in TEXTS {
            let before = bytes(encoding, text);
            let encoded = Encoded::of(&before);
            assert_eq!(encoded.text, text, "{encoding} {:?}", encoded.name());
            let guess = encoded.name().expect("it is not UTF-8").to_lowercase();
            assert!(guess.starts_with(encoding), "{guess}");
            let after = text.replace(old, new);
            assert_eq!(
                encoded.with(&after),
                Ok(bytes(encoding, &after)),
                "{encoding}"
            );
        }
    }

    #[test]
    fn a_letter_of_the_file_is_written_as_it_is_there_and_any_other_is_refused() {
        for (encoding, text, _, _) in TEXTS {
            let before = bytes(encoding, text);
            let encoded = Encoded::of(&before);
            let letters: String = text
                .chars()
                .filter(|letter| !letter.is_ascii())
                .rev()
                .collect();
            let after = format!("{text}{letters}\n{letters}+");
            assert_eq!(
                encoded.with(&after),
                Ok(bytes(encoding, &after)),
                "{encoding}"
            );
            assert_eq!(
                encoded.with(&format!("{text}€☃")),
                Err(Unwritable::Letter('€')),
                "{encoding}"
            );
        }
    }

    /// The control: of Latin-1 and Latin-2 the same bytes are other letters, and no length of a
    /// file tells them apart for certain.
    #[test]
    fn where_the_guess_is_wrong_the_bytes_are_right_all_the_same() {
        let text = "cena: 5 zł\n";
        let before = bytes("windows-1250", text);
        let encoded = Encoded::of(&before);
        let shown = encoded.text.replace('5', "6");
        let shown = format!("{shown}{}", encoded.text);
        assert_eq!(
            encoded.with(&shown),
            Ok(bytes("windows-1250", "cena: 6 zł\ncena: 5 zł\n"))
        );
    }

    /// A short file looks like many encodings: a backslash may be half of a letter.
    #[test]
    fn what_may_be_half_of_a_letter_is_not_changed() {
        for word in ["表示", "十分", "能力", "構成", "予定"] {
            let before = bytes("shift_jis", &format!("print(\"{word}\")\nX\n"));
            let encoded = Encoded::of(&before);
            for ascii in ('!'..='~')
                .filter(|ascii| !"print(\")X".contains(*ascii) && encoded.text.contains(*ascii))
            {
                assert_eq!(
                    encoded.with(&encoded.text.replace(ascii, "/")),
                    Err(Unwritable::Letter(ascii)),
                    "{word}"
                );
            }
            assert_eq!(
                encoded.with(&encoded.text.replace('X', "Y")),
                Ok(bytes("shift_jis", &format!("print(\"{word}\")\nY\n"))),
                "{word}"
            );
        }
    }

    #[test]
    fn broken_bytes_among_utf_8_stay_and_new_letters_are_utf_8() {
        let before = b"caf\xc3\xa9 d\xc3\xa9j\xc3\xa0\nbroken \xff here\nand \xfe\n";
        let encoded = Encoded::of(before);
        assert_eq!(
            (encoded.text.as_ref(), encoded.name()),
            ("café déjà\nbroken \\xff here\nand \\xfe\n", None)
        );
        let after = encoded.text.replace("here", "hère").replace("café", "thé");
        assert_eq!(
            encoded.with(&after),
            Ok(b"th\xc3\xa9 d\xc3\xa9j\xc3\xa0\nbroken \xff h\xc3\xa8re\nand \xfe\n".to_vec())
        );
        // A byte goes as a whole, and a number that is written anew is not certain to be one.
        assert_eq!(
            encoded.with(&encoded.text.replace(r"\xff", r"\n")),
            Ok(b"caf\xc3\xa9 d\xc3\xa9j\xc3\xa0\nbroken \\n here\nand \xfe\n".to_vec())
        );
        assert_eq!(
            encoded.with(&format!("{}\\xff", encoded.text)),
            Err(Unwritable::Letter('\\'))
        );
    }

    #[test]
    fn an_encoding_that_is_certain_takes_any_letter_and_what_is_broken_in_it_stays() {
        let wide = |text: &str| {
            text.encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<u8>>()
        };
        let before = wide("\u{feff}price: 5\r\n");
        let encoded = Encoded::of(&before);
        assert_eq!(
            (encoded.text.as_ref(), encoded.name().as_deref()),
            ("\u{feff}price: 5\r\n", Some("UTF-16LE"))
        );
        assert_eq!(
            encoded.with(&encoded.text.replace('5', "☕")),
            Ok(wide("\u{feff}price: ☕\r\n"))
        );
        let broken = [wide("\u{feff}a"), vec![0, 0xd8], wide("b\n")].concat();
        assert_eq!(Encoded::of(&broken).with("new"), Err(Unwritable::Broken));
        let japanese = bytes("iso-2022-jp", "メニュー\nprice: 5\n");
        let encoded = Encoded::of(&japanese);
        assert_eq!(
            encoded.with(&encoded.text.replace('5', "六")),
            Ok(bytes("iso-2022-jp", "メニュー\nprice: 六\n"))
        );
        assert_eq!(
            encoded.with(&encoded.text.replace('5', "☃")),
            Err(Unwritable::Letter('☃'))
        );
    }

    #[test]
    fn a_carriage_return_alone_ends_a_line_and_stays_one() {
        for (before, text) in [
            ("a\rb\rc", "a\nb\nc"),
            ("one\r", "one\n"),
            ("é\rü\r", "é\nü\n"),
        ] {
            let encoded = Encoded::of(before.as_bytes());
            assert_eq!(encoded.text, text);
            assert_eq!(encoded.with(text), Ok(before.as_bytes().to_vec()));
            assert_eq!(
                encoded.with(&format!("{text}x\n")),
                Ok(format!("{before}x\r").into_bytes())
            );
        }
        let latin = Encoded::of(b"caf\xe9\rtea\r");
        assert_eq!(
            latin.with("caf\u{e9}\nmilk\ntea\n"),
            Ok(b"caf\xe9\rmilk\rtea\r".to_vec())
        );
        // With a line feed anywhere it is no such file.
        assert_eq!(Encoded::of(b"a\rb\n").text, "a\rb\n");
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_are_the_text_as_it_is_gives_them_back(before in proptest::collection::vec(any::<u8>(), 0..64), more in "[ -~\n]{0,8}") {
            let encoded = Encoded::of(&before);
            prop_assume!(!encoded.is_certain());
            prop_assert_eq!(encoded.with(&encoded.text), Ok(before.clone()));
            let after = format!("{more}{}", encoded.text);
            let more = if encoded.has_returns_alone { more.replace('\n', "\r") } else { more };
            prop_assert_eq!(encoded.with(&after), Ok([more.as_bytes(), &before].concat()));
        }
    }
}
