//! Encodings in which ASCII bytes may mean something else, and which a file identifies with
//! certainty: by its byte order mark, by zero bytes, or by escape sequences. Text added to such a
//! file is written in its encoding: UTF-8 would corrupt the file.
//!
//! A file without a mark is identified only where nothing else is likely: strings that end in zero
//! bytes are not UTF-16.

use encoding_rs::EUC_KR;
use encoding_rs::Encoding;
use encoding_rs::GBK;
use encoding_rs::ISO_2022_JP;

use super::read_file::SNIFFED;

/// One of these encodings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DetectedEncoding {
    Utf16(ByteOrder),
    Utf32(ByteOrder),
    Iso2022Jp,
    ShiftEncoding(&'static ShiftEncoding),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

/// A 7-bit encoding in which two escape sequences switch to two-byte characters and back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShiftEncoding {
    name: &'static str,
    /// The sequence that the file begins with.
    head: &'static [u8],
    to_pairs: &'static [u8],
    to_ascii: &'static [u8],
    /// The 8-bit encoding that has the same pairs.
    pairs: &'static Encoding,
    /// A byte that begins sequences, and is doubled where it stands for itself.
    doubled: Option<u8>,
}

static HZ: ShiftEncoding = ShiftEncoding {
    name: "HZ",
    head: b"",
    to_pairs: b"~{",
    to_ascii: b"~}",
    pairs: GBK,
    doubled: Some(b'~'),
};
static ISO_2022_KR: ShiftEncoding = ShiftEncoding {
    name: "ISO-2022-KR",
    head: b"\x1b$)C",
    to_pairs: b"\x0e",
    to_ascii: b"\x0f",
    pairs: EUC_KR,
    doubled: None,
};

const MARK: &str = "\u{feff}";

/// In a text without a mark, at least one character of so many is ASCII.
const ASCII_SHARE: usize = 8;

impl DetectedEncoding {
    /// Returns the encoding that a file identifies itself as.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let start = &bytes[..bytes.len().min(SNIFFED)];
        Self::wide(start).or_else(|| Self::switching(bytes))
    }

    /// Detects UTF-16 and UTF-32 by the beginning of a file.
    pub(super) fn wide(start: &[u8]) -> Option<Self> {
        const UTF_32: [DetectedEncoding; 2] = [
            DetectedEncoding::Utf32(ByteOrder::Little),
            DetectedEncoding::Utf32(ByteOrder::Big),
        ];
        const UTF_16: [DetectedEncoding; 2] = [
            DetectedEncoding::Utf16(ByteOrder::Little),
            DetectedEncoding::Utf16(ByteOrder::Big),
        ];
        let is_marked = |one: &Self| one.encode(MARK).is_ok_and(|mark| start.starts_with(&mark));
        let is_whole = |one: &Self| one.decode_strictly(start).is_some();
        if let Some(marked) = UTF_32
            .into_iter()
            .find(|one| is_marked(one) && is_whole(one))
            .or_else(|| UTF_16.into_iter().find(is_marked))
        {
            return Some(marked);
        }
        if !start.contains(&0) {
            return None;
        }
        let texts = UTF_32.into_iter().chain(UTF_16).filter_map(|one| {
            let text = one.decode_strictly(start)?;
            is_likely(&text, start).then(|| (text.chars().filter(char::is_ascii).count(), one))
        });
        texts
            .max_by_key(|(n_ascii, _)| *n_ascii)
            .map(|(_, one)| one)
    }

    /// Returns whether a pure ASCII text may be something else because of escape sequences.
    pub(super) fn may_switch(text: &[u8]) -> bool {
        memchr::memchr(0x1b, text).is_some() || memchr::memmem::find(text, b"~{").is_some()
    }

    fn switching(bytes: &[u8]) -> Option<Self> {
        if !Self::may_switch(bytes) || !bytes.is_ascii() || bytes.contains(&0) {
            return None;
        }
        let is_foreign = |one: &Self| {
            one.decode_strictly(bytes)
                .is_some_and(|text| !text.is_ascii())
        };
        let all = [
            Self::ShiftEncoding(&ISO_2022_KR),
            Self::Iso2022Jp,
            Self::ShiftEncoding(&HZ),
        ];
        all.into_iter().find(is_foreign)
    }

    /// Returns its name, as `iconv` knows it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Utf16(ByteOrder::Little) => "UTF-16LE",
            Self::Utf16(ByteOrder::Big) => "UTF-16BE",
            Self::Utf32(ByteOrder::Little) => "UTF-32LE",
            Self::Utf32(ByteOrder::Big) => "UTF-32BE",
            Self::Iso2022Jp => "ISO-2022-JP",
            Self::ShiftEncoding(shifted) => shifted.name,
        }
    }

    /// Decodes bytes; invalid ones become replacement characters.
    pub(super) fn decode(self, bytes: &[u8]) -> String {
        match self {
            Self::Utf16(order) => {
                let units = bytes.chunks_exact(2).map(|pair| order.unit(pair) as u16);
                char::decode_utf16(units)
                    .map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect()
            }
            Self::Utf32(order) => bytes
                .chunks_exact(4)
                .map(|four| char::from_u32(order.unit(four)).unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect(),
            Self::Iso2022Jp => ISO_2022_JP
                .decode_without_bom_handling(bytes)
                .0
                .into_owned(),
            Self::ShiftEncoding(shifted) => shifted
                .decode(bytes)
                .unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned()),
        }
    }

    /// Decodes bytes; `None`: some are invalid. The beginning of a file may end within a character.
    fn decode_strictly(self, bytes: &[u8]) -> Option<String> {
        match self {
            Self::Utf16(order) if bytes.len().is_multiple_of(2) => {
                let mut units: Vec<u16> = bytes
                    .chunks_exact(2)
                    .map(|pair| order.unit(pair) as u16)
                    .collect();
                if units
                    .last()
                    .is_some_and(|last| (0xd800..0xdc00).contains(last))
                {
                    units.pop();
                }
                String::from_utf16(&units).ok()
            }
            Self::Utf32(order) if bytes.len().is_multiple_of(4) => bytes
                .chunks_exact(4)
                .map(|four| char::from_u32(order.unit(four)))
                .collect(),
            Self::Iso2022Jp => ISO_2022_JP
                .decode_without_bom_handling_and_without_replacement(bytes)
                .map(std::borrow::Cow::into_owned),
            Self::ShiftEncoding(shifted) => shifted.decode(bytes),
            Self::Utf16(_) | Self::Utf32(_) => None,
        }
    }

    /// Encodes a text; the error is a character that the encoding lacks.
    pub(super) fn encode(self, text: &str) -> Result<Vec<u8>, char> {
        match self {
            Self::Utf16(ByteOrder::Little) => {
                Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect())
            }
            Self::Utf16(ByteOrder::Big) => {
                Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect())
            }
            Self::Utf32(ByteOrder::Little) => Ok(text
                .chars()
                .flat_map(|letter| u32::from(letter).to_le_bytes())
                .collect()),
            Self::Utf32(ByteOrder::Big) => Ok(text
                .chars()
                .flat_map(|letter| u32::from(letter).to_be_bytes())
                .collect()),
            Self::Iso2022Jp => {
                let (bytes, _, is_lossy) = ISO_2022_JP.encode(text);
                let is_lost = |letter: &char| ISO_2022_JP.encode(letter.encode_utf8(&mut [0; 4])).2;
                if is_lossy {
                    Err(text
                        .chars()
                        .find(is_lost)
                        .unwrap_or(char::REPLACEMENT_CHARACTER))
                } else {
                    Ok(bytes.into_owned())
                }
            }
            Self::ShiftEncoding(shifted) => shifted.encode(text),
        }
    }
}

impl ByteOrder {
    /// Returns the number that the bytes form.
    fn unit(self, bytes: &[u8]) -> u32 {
        let add = |sum: u32, byte: &u8| sum << 8 | u32::from(*byte);
        match self {
            Self::Little => bytes.iter().rev().fold(0, add),
            Self::Big => bytes.iter().fold(0, add),
        }
    }
}

impl ShiftEncoding {
    /// Decodes a whole file; `None`: it is not in this encoding.
    fn decode(&self, bytes: &[u8]) -> Option<String> {
        let mut rest = bytes.strip_prefix(self.head)?;
        let mut text = String::with_capacity(rest.len());
        let (mut is_in_pairs, mut n_usual, mut n_pairs) = (false, 0_usize, 0_usize);
        while let Some(first) = rest.first() {
            let switch = if is_in_pairs {
                self.to_ascii
            } else {
                self.to_pairs
            };
            if let Some(behind) = rest.strip_prefix(switch) {
                (is_in_pairs, rest) = (!is_in_pairs, behind);
            } else if is_in_pairs {
                let (pair, behind) = rest.split_at_checked(2)?;
                if !pair.iter().all(|byte| (0x21..=0x7e).contains(byte)) {
                    return None;
                }
                let pair = [pair[0] | 0x80, pair[1] | 0x80];
                text.push_str(
                    &self
                        .pairs
                        .decode_without_bom_handling_and_without_replacement(&pair)?,
                );
                n_pairs += 1;
                // Punctuation, and the more common half of the Chinese characters.
                n_usual += usize::from(pair[0] < 0xd8);
                rest = behind;
            } else {
                let is_doubled = self.doubled == Some(*first);
                if is_doubled && rest.get(1) != Some(first) {
                    return None;
                }
                text.push(char::from(*first));
                rest = &rest[1 + usize::from(is_doubled)..];
            }
        }
        // A few pairs of punctuation between such sequences may be something else, such as a Lisp
        // format string.
        let is_meant = !self.head.is_empty() || (n_pairs > 1 && n_usual * 2 > n_pairs);
        (is_meant && !is_in_pairs).then_some(text)
    }

    fn encode(&self, text: &str) -> Result<Vec<u8>, char> {
        let mut out = self.head.to_vec();
        let mut is_in_pairs = false;
        for letter in text.chars() {
            if letter.is_ascii() == is_in_pairs {
                out.extend_from_slice(if is_in_pairs {
                    self.to_ascii
                } else {
                    self.to_pairs
                });
                is_in_pairs = !is_in_pairs;
            }
            if letter.is_ascii() {
                let n = if self.doubled == Some(letter as u8) {
                    2
                } else {
                    1
                };
                out.extend(std::iter::repeat_n(letter as u8, n));
                continue;
            }
            match *self.pairs.encode(letter.encode_utf8(&mut [0; 4])).0 {
                [first @ 0xa1..=0xfe, second @ 0xa1..=0xfe] => {
                    out.extend([first & 0x7f, second & 0x7f]);
                }
                _ => return Err(letter),
            }
        }
        if is_in_pairs {
            out.extend_from_slice(self.to_ascii);
        }
        Ok(out)
    }
}

/// Returns whether a decoded text without a mark is plausible: no control characters, some ASCII or
/// the letters of one alphabet, and bytes that are not themselves zero-terminated text.
fn is_likely(text: &str, bytes: &[u8]) -> bool {
    let is_control =
        |letter: char| letter.is_control() && !matches!(letter, '\t' | '\n' | '\r' | '\u{c}');
    let is_east_asian = |letter: char| matches!(letter, '\u{3000}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{ff00}'..='\u{ffef}');
    let is_plain = |byte: &u8| matches!(byte, 0 | b'\t' | b'\n' | b'\r' | b' '..=b'~');
    let n_ascii = text.chars().filter(char::is_ascii).count();
    let n_letters = text.chars().count();
    n_ascii > 0
        && !text.chars().any(is_control)
        && (n_ascii == n_letters || !bytes.iter().all(is_plain))
        && (n_ascii * ASCII_SHARE >= n_letters
            || text
                .chars()
                .all(|letter| letter.is_ascii() || is_east_asian(letter)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [DetectedEncoding; 7] = [
        DetectedEncoding::Utf16(ByteOrder::Little),
        DetectedEncoding::Utf16(ByteOrder::Big),
        DetectedEncoding::Utf32(ByteOrder::Little),
        DetectedEncoding::Utf32(ByteOrder::Big),
        DetectedEncoding::Iso2022Jp,
        DetectedEncoding::ShiftEncoding(&HZ),
        DetectedEncoding::ShiftEncoding(&ISO_2022_KR),
    ];

    fn text_for(encoding: DetectedEncoding) -> &'static str {
        match encoding.name() {
            "ISO-2022-JP" => "メニュー\nprice: 5\n",
            "HZ" => "菜单 ~ \n价格: 5\n",
            "ISO-2022-KR" => "메뉴판입니다\n가격: 5\n",
            _ => "Menü for today\nprice: 5\n",
        }
    }

    #[test]
    fn every_encoding_is_detected_and_round_trips() {
        for encoding in ALL {
            let text = text_for(encoding);
            let bytes = encoding.encode(text).expect("it has these letters");
            assert_eq!(DetectedEncoding::of(&bytes), Some(encoding));
            assert_eq!(encoding.decode(&bytes), text, "{}", encoding.name());
        }
        for encoding in &ALL[..4] {
            for text in [
                "菜单\n价格\n结束\n",
                "Меню на сегодня\nцена: 5\n",
                "\u{feff}κ",
                "\u{feff}",
                "ab\r\n",
            ] {
                let bytes = encoding.encode(text).expect("it has all letters");
                assert_eq!(DetectedEncoding::of(&bytes), Some(*encoding), "{text}");
            }
        }
    }

    #[test]
    fn other_bytes_are_not_detected() {
        let bytes: [&[u8]; 14] = [
            b"plain\n",
            b"abc\0",
            b"line\n\0",
            b"src\0lib\0docs\0",
            b"A=1\0PATH=/bin\0",
            b"\x01\0\x02\0\x03\0",
            b"\x7fELF\x02\x01\x01\0\0\0\0\0",
            b"\0\0\0\0",
            b"\x1b[31mred\x1b[0m\n",
            b"(format t \"~{~a~^, ~}\" list)\n",
            b"~{ab~}\n",
            b"~{abc~} and ~{x~}\n",
            b"caf\xe9 ~{VPND~}\n",
            b"\x1b$B is a sequence\n",
        ];
        for bytes in bytes {
            assert_eq!(
                DetectedEncoding::of(bytes),
                None,
                "{}",
                bytes.escape_ascii()
            );
        }
    }

    #[test]
    fn a_character_that_an_encoding_lacks_is_named() {
        for encoding in &ALL[4..] {
            assert_eq!(encoding.encode("a☃b"), Err('☃'), "{}", encoding.name());
        }
    }
}
