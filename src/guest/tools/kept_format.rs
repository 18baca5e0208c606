//! Replacing the whole text of an existing file: byte order mark, encoding and line ends, which a
//! model is not shown, are kept. What cannot be kept is reported.

use super::edit_line_ends::LineEndFitter;
use super::edit_line_ends::n_line_ends;
use super::encoded_text::EncodedText;
use super::encoded_text::Unwritable;
use super::read_file::BINARY;
use super::read_file::SNIFFED;
use super::read_file::binary_kind;

const MARK: &str = "\u{feff}";

/// Encodes a new text like the old one; also returns notes for the model.
pub(super) fn in_format_of(old: &[u8], new: &str) -> (Vec<u8>, Vec<String>) {
    let mut notes = Vec::new();
    if old.is_empty() {
        return (new.as_bytes().to_vec(), notes);
    }
    if let Some(kind) = binary_kind(&old[..old.len().min(SNIFFED)]) {
        if kind == BINARY {
            notes.push(
                "the old file was not text: it had zero bytes; the file is UTF-8 now".to_owned(),
            );
        }
        return (new.as_bytes().to_vec(), notes);
    }
    let encoded_text = EncodedText::of(old);
    let mut text = if encoded_text.has_returns_alone() {
        notes.push("its lines end in a lone CR, as before".to_owned());
        encoded_text.with_its_ends(new).into_owned()
    } else {
        with_line_ends(&encoded_text.text, new, &mut notes)
    };
    if encoded_text.text.starts_with(MARK) && !text.starts_with(MARK) {
        text.insert_str(0, MARK);
        if !encoded_text.is_certain() {
            notes.push("the byte order mark in front of it is kept".to_owned());
        }
    }
    let written = encoded_text.replacing(&text);
    match (written, encoded_text.name()) {
        (Ok(bytes), Some(name)) if encoded_text.is_certain() => {
            notes.push(format!("it is {name} as before"));
            (bytes, notes)
        }
        (Ok(bytes), Some(guess)) if !text.is_ascii() => {
            notes.push(format!(
                "it is not UTF-8 but {guess}, which the old text looked like"
            ));
            (bytes, notes)
        }
        (Ok(bytes), _) => (bytes, notes),
        (Err(Unwritable::Letter(letter)), Some(name)) => {
            let why = if encoded_text.is_certain() {
                format!("was {name}, which has no `{letter}`")
            } else {
                format!(
                    "was not UTF-8 but looked like {name}, and the bytes of `{letter}` in it are not certain"
                )
            };
            notes.push(format!("the old text {why}: the file is UTF-8 now"));
            (text.into_bytes(), notes)
        }
        (Err(_), _) => {
            notes.push(
                "what is shown as \u{fffd} stood for broken bytes, and is that letter itself now"
                    .to_owned(),
            );
            (text.into_bytes(), notes)
        }
    }
}

/// Gives a new text the line ends of the old one, unless it contains `\r` itself and so means it
/// exactly.
fn with_line_ends(old: &str, new: &str, notes: &mut Vec<String>) -> String {
    let new = if new.contains('\r') {
        new.to_owned()
    } else {
        let fitted = LineEndFitter::new(old.as_bytes()).fit(new.as_bytes(), b"", &(0..old.len()));
        String::from_utf8(fitted).expect("line ends are text")
    };
    match (line_ends(old), line_ends(&new)) {
        (Some(before), Some(now)) if before != now => {
            notes.push(format!("its line ends were {before} and are {now} now"));
        }
        (Some(kept), Some(_)) if kept != "LF" => {
            notes.push(format!("its line ends are {kept} as before"));
        }
        _ => {}
    }
    new
}

/// Returns the line ends of a text; `None`: it has none.
fn line_ends(text: &str) -> Option<&'static str> {
    match n_line_ends(text.as_bytes()) {
        (_, 0) => None,
        (0, _) => Some("LF"),
        (n_returns, n) if n_returns == n => Some("CRLF"),
        _ => Some("mixed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &[u8], new: &str, expected: &[u8], said: &str) {
        let (bytes, notes) = in_format_of(old, new);
        assert_eq!(
            (bytes.escape_ascii().to_string(), notes.join("; ").as_str()),
            (expected.escape_ascii().to_string(), said)
        );
    }

    #[test]
    fn a_new_text_keeps_mark_encoding_and_line_ends() {
        check(b"a\nb\n", "c\nd", b"c\nd", "");
        check(
            b"a\r\nb\r\n",
            "c\nd\n",
            b"c\r\nd\r\n",
            "its line ends are CRLF as before",
        );
        check(
            b"\xef\xbb\xbfa\n",
            "b\n",
            b"\xef\xbb\xbfb\n",
            "the byte order mark in front of it is kept",
        );
        check(b"\xef\xbb\xbfa\n", "\u{feff}b\n", b"\xef\xbb\xbfb\n", "");
        check(
            b"\xff\xfea\0\r\0\n\0",
            "\u{e9}\n",
            b"\xff\xfe\xe9\0\r\0\n\0",
            "its line ends are CRLF as before; it is UTF-16LE as before",
        );
        check(
            b"\xfe\xff\0a",
            "b\n",
            b"\xfe\xff\0b\0\n",
            "it is UTF-16BE as before",
        );
        let menu = b"# Carte du caf\xe9\r\nprice: 5\r\n";
        check(
            menu,
            "caf\u{e9}: 6\n",
            b"caf\xe9: 6\r\n",
            "its line ends are CRLF as before; it is not UTF-8 but windows-1252 (Latin-1), which the old text looked like",
        );
        check(
            menu,
            "tea\n",
            b"tea\r\n",
            "its line ends are CRLF as before",
        );
        check(b"\xff\xd8\xff\xe0\r\n", "text\n", b"text\n", "");
        check(b"", "a\r\n", b"a\r\n", "");
        check(
            b"a\rb\r",
            "c\nd\n",
            b"c\rd\r",
            "its lines end in a lone CR, as before",
        );
        check(
            b"a\0\n\0",
            "\u{e9}\n",
            b"\xe9\0\n\0",
            "it is UTF-16LE as before",
        );
        check(
            b"\xff\xfe\0\0a\0\0\0\n\0\0\0",
            "b\n",
            b"\xff\xfe\0\0b\0\0\0\n\0\0\0",
            "it is UTF-32LE as before",
        );
        check(
            b"\x1b$B%a%K\x1b(B\n",
            "\u{30e1}\n",
            b"\x1b$B%a\x1b(B\n",
            "it is ISO-2022-JP as before",
        );
    }

    #[test]
    fn what_cannot_be_kept_is_reported() {
        check(
            b"a\nb\n",
            "c\r\n",
            b"c\r\n",
            "its line ends were LF and are CRLF now",
        );
        check(
            b"a\r\nb\nc\n",
            "a\nb\nd\n",
            b"a\r\nb\nd\n",
            "its line ends are mixed as before",
        );
        check(
            b"a\r\nb\nc\n",
            "x\n",
            b"x\r\n",
            "its line ends were mixed and are CRLF now",
        );
        check(
            b"\x1b$B%a%K\x1b(B\n",
            "\u{2603}\n",
            "\u{2603}\n".as_bytes(),
            "the old text was ISO-2022-JP, which has no `\u{2603}`: the file is UTF-8 now",
        );
        check(
            b"a\rb\r",
            "c\r\n",
            b"c\r",
            "its lines end in a lone CR, as before",
        );
        check(
            b"\x01\0\x02\0",
            "text\n",
            b"text\n",
            "the old file was not text: it had zero bytes; the file is UTF-8 now",
        );
        let said = "the old text was not UTF-8 but looked like windows-1252 (Latin-1), and the bytes of `\u{e8}` in it are not certain: the file is UTF-8 now";
        check(
            b"# Carte du caf\xe9\n",
            "cr\u{e8}me\n",
            "cr\u{e8}me\n".as_bytes(),
            said,
        );
    }
}
