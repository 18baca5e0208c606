use std::ffi::OsStr;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;

use super::is_hidden;

/// A path as the kernel knows it: bytes without a NUL.
///
/// As text (in JSON and to the model) it is UTF-8 where possible; every other byte is `\xNN`, and
/// so are those of control characters and line breaks, with which one name could look like two; a
/// backslash is `\\`. Parsing is lenient: a backslash that starts neither form stands for itself,
/// because models write such paths.
///
/// Shown to a model or a user ([`Display`](fmt::Display)), invisible characters and bidi controls
/// are escaped too: a name then is what it looks like, and what is read off the screen still names
/// the file. Names are compared by their bytes, never as shown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BytesPath(Vec<u8>);

impl BytesPath {
    /// Takes the bytes as they are.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// Parses the text form.
    pub fn from_text(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match rest {
                [b'\\', b'\\', ..] => {
                    out.push(b'\\');
                    at += 2;
                }
                [b'\\', b'x', high, low, ..] if hex(*high).is_some() && hex(*low).is_some() => {
                    out.push(hex(*high).unwrap_or(0) << 4 | hex(*low).unwrap_or(0));
                    at += 4;
                }
                [byte, ..] => {
                    out.push(*byte);
                    at += 1;
                }
                [] => break,
            }
        }
        Self(out)
    }

    /// Returns the text form; `from_text` restores the same bytes.
    pub fn to_text(&self) -> String {
        // Most paths are written as they are, and lists of them are long.
        match std::str::from_utf8(&self.0) {
            Ok(text) if self.0.iter().all(|byte| is_plain(*byte)) => text.to_owned(),
            _ => self.written(breaks),
        }
    }

    fn written(&self, is_escaped: impl Fn(char) -> bool) -> String {
        let mut out = String::with_capacity(self.0.len());
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    '\\' => out.push_str("\\\\"),
                    character if is_escaped(character) => {
                        push_bytes(&mut out, character.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                    character => out.push(character),
                }
            }
            push_bytes(&mut out, chunk.invalid());
        }
        out
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether a byte is a character of its own that is never escaped.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'\\'
}

fn breaks(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
}

pub(super) fn push_bytes(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push_str("\\x");
        out.extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

impl From<&str> for BytesPath {
    fn from(text: &str) -> Self {
        Self::from_text(text)
    }
}

impl From<&Path> for BytesPath {
    fn from(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }
}

impl From<PathBuf> for BytesPath {
    fn from(path: PathBuf) -> Self {
        Self(path.into_os_string().into_vec())
    }
}

impl From<OsString> for BytesPath {
    fn from(text: OsString) -> Self {
        Self(text.into_vec())
    }
}

impl fmt::Display for BytesPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written(is_hidden))
    }
}

impl fmt::Debug for BytesPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl Serialize for BytesPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

impl<'de> Deserialize<'de> for BytesPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::from_text(&text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], text: &str) {
        let path = BytesPath::from_bytes(bytes);
        assert_eq!(path.to_text(), text);
        assert_eq!(BytesPath::from_text(text), path);
    }

    #[test]
    fn the_text_form_is_readable_where_possible() {
        check(b"src/main.rs", "src/main.rs");
        check("caf\u{e9}".as_bytes(), "caf\u{e9}");
        check(b"caf\xe9.txt", "caf\\xe9.txt");
        check(b"a\\b", "a\\\\b");
        check(b"", "");
    }

    #[test]
    fn no_name_breaks_lines_or_moves_the_cursor() {
        check(b"new\nline", "new\\x0aline");
        check(b"\x1b[2J\t\r\x7f", "\\x1b[2J\\x09\\x0d\\x7f");
        check(
            "a\u{85}b\u{2028}c".as_bytes(),
            "a\\xc2\\x85b\\xe2\\x80\\xa8c",
        );
        // As a model may write it, too.
        assert_eq!(BytesPath::from_text("new\nline").as_bytes(), b"new\nline");
        check("gr\u{fc}n \u{1f600}".as_bytes(), "gr\u{fc}n \u{1f600}");
    }

    #[test]
    fn shown_names_escape_invisible_characters() {
        for (name, shown) in [
            ("invoice\u{202e}fdp.exe", r"invoice\xe2\x80\xaefdp.exe"),
            (".e\u{200b}nv", r".e\xe2\x80\x8bnv"),
            ("a\nb", r"a\x0ab"),
            ("gr\u{fc}n \u{1f600}", "gr\u{fc}n \u{1f600}"),
        ] {
            let path = BytesPath::from_bytes(name);
            assert_eq!(path.to_string(), shown);
            assert_eq!(
                BytesPath::from_text(shown),
                path,
                "it can be named as it is shown"
            );
            assert_eq!(format!("{path:?}"), format!("{shown:?}"));
        }
        // The form that is sent and compared keeps them.
        assert_eq!(
            BytesPath::from_bytes(".e\u{200b}nv").to_text(),
            ".e\u{200b}nv"
        );
    }

    #[test]
    fn lone_backslashes_stand_for_themselves() {
        assert_eq!(BytesPath::from_text(r"a\b").as_bytes(), br"a\b");
        assert_eq!(BytesPath::from_text(r"a\xzz").as_bytes(), br"a\xzz");
        assert_eq!(BytesPath::from_text(r"a\").as_bytes(), br"a\");
    }

    proptest! {
        #[test]
        fn every_path_survives_the_text_form(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let path = BytesPath::from_bytes(bytes);
            prop_assert_eq!(BytesPath::from_text(&path.to_text()), path);
        }
    }
}
