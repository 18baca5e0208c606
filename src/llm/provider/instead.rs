//! Recognizes bodies that are no API response: a web page, or something compressed that was not
//! requested.

use std::fmt;

use crate::error::plain;

/// Maximum length of a shown page title, in characters.
const MAX_TITLE: usize = 80;
/// How much of a page is searched for its title, in bytes.
const MAX_HEAD: usize = 16 * 1024;

/// A body that is no API response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// A web page: of a proxy, for a login, or because the address belongs to something else.
    Page {
        title: String,
    },
    Packed {
        with: &'static str,
    },
    Nothing,
    Other,
}

impl Instead {
    /// Recognizes a body by its head and first bytes.
    pub(crate) fn of(body: &[u8], packed: Option<&'static str>, is_html: bool) -> Self {
        const MAGIC: [(&[u8], &str); 2] = [(b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd")];
        let packed = packed.or_else(|| {
            MAGIC
                .iter()
                .find(|(magic, _)| body.starts_with(magic))
                .map(|(_, name)| *name)
        });
        match packed {
            Some(with) => Self::Packed { with },
            None if is_html || body.trim_ascii_start().starts_with(b"<") => Self::Page {
                title: title(body).unwrap_or_default(),
            },
            None if body.trim_ascii().is_empty() => Self::Nothing,
            None => Self::Other,
        }
    }
}

impl fmt::Display for Instead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Page { title } if title.is_empty() => f.write_str("a web page"),
            Self::Page { title } => write!(f, "a web page (\"{title}\")"),
            Self::Packed { with } => {
                write!(f, "something packed with {with}, which was not asked for")
            }
            Self::Nothing => f.write_str("nothing at all"),
            Self::Other => f.write_str("something else"),
        }
    }
}

/// Returns the content encoding given in a header, `None` if there is none.
pub(crate) fn content_encoding(header: &str) -> Option<&'static str> {
    match header.trim().to_ascii_lowercase().as_str() {
        "" | "identity" => None,
        "gzip" | "x-gzip" => Some("gzip"),
        "deflate" => Some("deflate"),
        "br" => Some("brotli"),
        "zstd" => Some("zstd"),
        _ => Some("something unknown"),
    }
}

/// Returns whether the first bytes of a body begin an event stream, `None` if they are too few to
/// say; `is_document` is what its head says.
/// The beginnings of its lines count more than its content type; with `lines`, where each line is
/// an object, as a document may be, only the content type tells.
pub(crate) fn is_stream(head: &[u8], is_document: bool, lines: bool) -> Option<bool> {
    const LINES: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
    const MARK: &[u8] = b"\xEF\xBB\xBF";
    if MARK.starts_with(head) {
        return None;
    }
    let head = head.strip_prefix(MARK).unwrap_or(head).trim_ascii_start();
    if lines && head.starts_with(b"{") {
        return Some(!is_document);
    }
    if [&b"{"[..], b"<", b"\x1f\x8b"]
        .iter()
        .any(|begin| head.starts_with(begin))
    {
        return Some(false);
    }
    if LINES.iter().any(|line| head.starts_with(line)) {
        return Some(true);
    }
    if LINES.iter().any(|line| line.starts_with(head)) {
        return None;
    }
    Some(!is_document)
}

/// Returns the title of a page.
fn title(body: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&body[..body.len().min(MAX_HEAD)]);
    let at = head.to_ascii_lowercase().find("<title")?;
    let (_, text) = head[at..].split_once('>')?;
    let (text, _) = text.split_once('<')?;
    Some(plain(
        &text.split_whitespace().collect::<Vec<_>>().join(" "),
        MAX_TITLE,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &[u8], expected: &str) {
        assert_eq!(Instead::of(body, None, false).to_string(), expected);
    }

    #[test]
    fn a_stream_is_recognized_by_its_lines_not_its_content_type() {
        for is_document in [false, true] {
            for head in [
                &b"data: {"[..],
                b"\r\n\ndata:",
                b": ping",
                b"event: error",
                b"id:1",
                b"retry: 5",
                b"\xEF\xBB\xBFdata:",
            ] {
                assert_eq!(is_stream(head, is_document, false), Some(true), "{head:?}");
                for end in 0..head.iter().position(|byte| *byte == b':').expect("a colon") {
                    assert!(
                        is_stream(&head[..end], is_document, false).unwrap_or(true),
                        "{head:?} cut at {end}"
                    );
                }
            }
            for head in [&b"{"[..], b" \n{\"a\"", b"<html", b"\x1f\x8b\x08"] {
                assert_eq!(is_stream(head, is_document, false), Some(false), "{head:?}");
            }
            for head in [&b""[..], b" \n", b"d", b"dat", b"retr"] {
                assert_eq!(is_stream(head, is_document, false), None, "{head:?}");
            }
        }
        assert_eq!(
            (
                is_stream(b"OK", true, false),
                is_stream(b"date", false, false)
            ),
            (Some(false), Some(true))
        );
    }

    #[test]
    fn unexpected_bodies_are_named() {
        check(b"<!DOCTYPE html><h1>It works!</h1>", "a web page");
        check(
            b" <html><head><TITLE lang=en>\n Sign in\x1b[2J </TITLE>",
            "a web page (\"Sign in [2J\")",
        );
        check(
            format!("<title>{}</title>", "x".repeat(500)).as_bytes(),
            &format!("a web page (\"{}\u{2026}\")", "x".repeat(80)),
        );
        check(b"<title>no end", "a web page");
        check(
            "<title>\u{130}</title>".as_bytes(),
            "a web page (\"\u{130}\")",
        );
        check(
            b"\x1f\x8b\x08\0",
            "something packed with gzip, which was not asked for",
        );
        check(b"OK", "something else");
        check(b"", "nothing at all");
        check(b" \r\n", "nothing at all");
        assert_eq!(
            Instead::of(b"", content_encoding(" GZIP"), true).to_string(),
            "something packed with gzip, which was not asked for"
        );
        assert_eq!(
            Instead::of(b"", content_encoding("identity"), true).to_string(),
            "a web page"
        );
        assert_eq!(content_encoding("aes128gcm"), Some("something unknown"));
    }
}
