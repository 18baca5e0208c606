//! From an answer's bytes to text for a model: the kind, the letters, and Markdown of HTML.

use std::rc::Rc;

use encoding_rs::Encoding;
use encoding_rs::UTF_8;
use encoding_rs::WINDOWS_1252;
use htmd::HtmlToMarkdown;
use htmd::Node;

use super::limits::DEPTH;
use super::limits::LEFT_OPEN;
use super::limits::STACK;

/// How far into a page its own word about its letters is looked for, as browsers do.
const DECLARED_WITHIN: usize = 1024;

/// Elements that are no words for a reader.
const SKIPPED: [&str; 12] = [
    "head", "script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "nav",
    "button", "select",
];

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Html,
    /// Shown as it is.
    Plain,
}

/// Text of a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PageText {
    pub(crate) text: String,
    pub(crate) notes: Vec<String>,
}

/// Returns the kind of a content type; the error names one that is no text.
pub(crate) fn kind_of(content_type: Option<&str>, bytes: &[u8]) -> Result<Kind, String> {
    let named = content_type.unwrap_or_default();
    let essence = named.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Ok(Kind::Html),
        "" if bytes.contains(&0) => Err("it has no content type and is no text".to_owned()),
        "" if begins_as_html(bytes) => Ok(Kind::Html),
        "" => Ok(Kind::Plain),
        other if is_text(other) => Ok(Kind::Plain),
        other => Err(format!(
            "its content type is {}, and only text is shown; a command such as curl can save it as a file",
            shown(other, 80)
        )),
    }
}

fn is_text(essence: &str) -> bool {
    const OTHERS: [&str; 9] = [
        "application/json",
        "application/xml",
        "application/javascript",
        "application/ecmascript",
        "application/x-ndjson",
        "application/toml",
        "application/yaml",
        "application/x-yaml",
        "application/sql",
    ];
    essence.starts_with("text/")
        || OTHERS.contains(&essence)
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
}

fn begins_as_html(bytes: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]).to_ascii_lowercase();
    let start = start.trim_start();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// Reads bytes as text: by a byte order mark, the header, the page's own word, else as UTF-8 where
/// it is that.
pub(crate) fn decode(
    content_type: Option<&str>,
    kind: Kind,
    bytes: &[u8],
) -> (String, &'static str) {
    let of_header = content_type
        .and_then(charset)
        .and_then(|label| Encoding::for_label(label.as_bytes()));
    let of_page = || {
        let start = &bytes[..bytes.len().min(DECLARED_WITHIN)];
        let start = String::from_utf8_lossy(start);
        let label = charset(&start).filter(|_| kind == Kind::Html)?;
        Encoding::for_label(label.as_bytes())
    };
    let guessed = || {
        if std::str::from_utf8(bytes).is_ok() {
            UTF_8
        } else {
            WINDOWS_1252
        }
    };
    let encoding = of_header.or_else(of_page).unwrap_or_else(guessed);
    // It looks at the byte order mark itself.
    let (text, used, _) = encoding.decode(bytes);
    (text.into_owned(), used.name())
}

/// Finds `charset=LABEL`, with or without quotes.
fn charset(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let (_, rest) = lower.split_once("charset")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let rest = rest.trim_start_matches(['"', '\'']);
    let label = rest
        .split(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c)))
        .next()?;
    (!label.is_empty()).then(|| label.to_owned())
}

/// Converts a page to Markdown, in a thread with room for what is nested deeply.
pub(crate) fn markdown(html: String) -> PageText {
    let converting = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || {
            convert(&html).unwrap_or_else(|problem| PageText {
                text: html,
                notes: vec![problem],
            })
        });
    let converted = converting.map(std::thread::JoinHandle::join);
    match converted {
        Ok(Ok(page)) => page,
        Ok(Err(_)) | Err(_) => PageText {
            text: String::new(),
            notes: vec!["the page could not be converted; `raw` shows its source".to_owned()],
        },
    }
}

fn convert(html: &str) -> Result<PageText, String> {
    // The parser looks through all open elements for each new one.
    if n_left_open(html) > LEFT_OPEN {
        return Err(format!(
            "the page opens more than {LEFT_OPEN} elements that it does not close: its source is shown"
        ));
    }
    let converter = HtmlToMarkdown::builder()
        .scripting_enabled(false)
        .skip_tags(SKIPPED.to_vec())
        .build();
    let tree = converter.html_to_tree(html).map_err(|error| {
        format!("the page could not be converted ({error}): its source is shown")
    })?;
    if is_deeper(&tree, DEPTH) {
        return Err(format!(
            "the page has more than {DEPTH} elements within each other: its source is shown"
        ));
    }
    Ok(PageText {
        text: converter.tree_to_markdown(&tree),
        notes: Vec::new(),
    })
}

/// Returns about how many elements are opened and not closed, those that need no end among them.
fn n_left_open(html: &str) -> usize {
    let (mut n_opened, mut n_closed) = (0_usize, 0);
    for pair in html.as_bytes().windows(2) {
        match pair {
            [b'<', b'/'] => n_closed += 1,
            [b'<', next] if next.is_ascii_alphabetic() => n_opened += 1,
            _ => {}
        }
    }
    n_opened.saturating_sub(n_closed)
}

/// Whether elements lie deeper within each other; without calling itself for each.
fn is_deeper(tree: &Rc<Node>, most: usize) -> bool {
    let mut left = vec![(Rc::clone(tree), 0)];
    while let Some((node, depth)) = left.pop() {
        if depth > most {
            return true;
        }
        let children = node.children.borrow();
        left.extend(children.iter().map(|child| (Rc::clone(child), depth + 1)));
    }
    false
}

/// Takes out what is no letter, tab or new line, and collapses empty lines.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut is_behind_empty = false;
    for line in text.lines() {
        let letters = line.chars().filter(|&c| c == '\t' || !c.is_control());
        let line: String = letters.collect();
        let line = line.trim_end();
        if line.is_empty() && is_behind_empty {
            continue;
        }
        is_behind_empty = line.is_empty();
        cleaned.push_str(line);
        cleaned.push('\n');
    }
    cleaned.truncate(cleaned.trim_end().len());
    cleaned
}

/// Returns foreign text in one line of a bounded length.
pub(crate) fn shown(text: &str, most: usize) -> String {
    text.chars()
        .take(most)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_becomes_markdown_without_scripts_and_navigation() {
        let page = markdown(
            "<html><head><title>T</title><style>p{}</style></head><body><nav>menu</nav><h1>Head</h1>\
             <p>Some <b>bold</b> words and <a href=\"/x\">a link</a>.</p><script>evil()</script>\
             <ul><li>one</li></ul><pre><code>let x = 1;</code></pre></body></html>"
                .to_owned(),
        );
        assert!(page.notes.is_empty(), "{:?}", page.notes);
        for words in ["# Head", "**bold**", "[a link](/x)", "one", "let x = 1;"] {
            assert!(page.text.contains(words), "{words}: {}", page.text);
        }
        for words in ["evil", "menu", "p{}"] {
            assert!(!page.text.contains(words), "{words}: {}", page.text);
        }
    }

    #[test]
    fn a_page_that_is_nested_without_end_is_shown_as_its_source() {
        let deep = "<div>".repeat(100_000);
        let page = markdown(deep.clone());
        assert!(page.text == deep && page.notes[0].contains("does not close"));
        let page = markdown("<div>".repeat(2000));
        assert!(page.notes[0].contains("within each other"));
        let usual = format!("{}words", "<div>".repeat(300));
        let page = markdown(usual);
        assert!(page.notes.is_empty() && page.text.contains("words"));
    }

    #[test]
    fn what_is_no_text_is_refused_by_its_type() {
        for (named, kind) in [
            ("text/html; charset=utf-8", Kind::Html),
            ("application/xhtml+xml", Kind::Html),
            ("text/plain", Kind::Plain),
            ("application/ld+json", Kind::Plain),
        ] {
            assert_eq!(kind_of(Some(named), b"x"), Ok(kind), "{named}");
        }
        assert_eq!(kind_of(None, b"<!DOCTYPE html><p>"), Ok(Kind::Html));
        assert_eq!(kind_of(None, b"words"), Ok(Kind::Plain));
        for (named, bytes) in [
            (Some("image/png"), &b"x"[..]),
            (Some("application/zip"), b"x"),
            (None, b"a\0b"),
        ] {
            assert!(kind_of(named, bytes).is_err(), "{named:?}");
        }
    }

    #[test]
    fn letters_are_those_that_the_header_or_the_page_names() {
        let decoded = |named, kind, bytes: &[u8]| decode(named, kind, bytes).0;
        assert_eq!(
            decoded(
                Some("text/plain; charset=iso-8859-1"),
                Kind::Plain,
                b"caf\xe9"
            ),
            "café"
        );
        let page = b"<meta charset=\"windows-1251\"><p>\xcf\xf0\xe8";
        assert!(decoded(Some("text/html"), Kind::Html, page).ends_with("При"));
        // The header counts before the page.
        let page = b"<meta charset=windows-1251>\xc3\xa9";
        assert!(decoded(Some("text/html; charset=\"utf-8\""), Kind::Html, page).ends_with('é'));
        assert_eq!(decoded(None, Kind::Plain, "é".as_bytes()), "é");
        assert_eq!(decoded(None, Kind::Plain, b"caf\xe9"), "café");
        assert_eq!(decoded(None, Kind::Plain, b"\xef\xbb\xbfa"), "a");
    }

    #[test]
    fn controls_are_taken_out_and_empty_lines_collapse() {
        assert_eq!(
            clean("a\x1b[31m\r\n\n\n  \n\n  b\0\tc \n"),
            "a[31m\n\n  b\tc"
        );
        assert_eq!(shown("a\nb\x07c", 4), "a b ");
    }
}
