//! A text without what only decorates it: the colours of a terminal, the marks of a page, characters that nobody sees, capitals.

/// Most of a page's mark that is looked at, in bytes.
const MAX_TAG: usize = 256;
/// Marks that stand within a line.
const WITHIN: [&str; 29] = [
    "a", "abbr", "b", "big", "cite", "code", "del", "em", "font", "i", "ins", "kbd", "label", "mark", "nobr", "q", "s", "samp", "small",
    "span", "strike", "strong", "sub", "sup", "tt", "u", "var", "wbr", "center",
];
/// Marks that part lines.
const BETWEEN: [&str; 34] = [
    "article",
    "blockquote",
    "body",
    "br",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "html",
    "li",
    "main",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "ul",
    "header",
    "footer",
];

/// Returns a text without them. What is none of them stays.
pub(super) fn undecorated(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(c) = rest.chars().next() {
        let behind = &rest[c.len_utf8()..];
        let passed = match c {
            '\u{1b}' => Some((None, behind_escape(behind))),
            '[' => colour(behind).map(|behind| (None, behind)),
            '<' => tag(behind),
            '-' => behind.strip_prefix("->").map(|behind| (Some('\n'), behind)),
            c if is_hidden(c) => Some((None, behind)),
            _ => None,
        };
        let (instead, behind) = passed.unwrap_or((Some(c), behind));
        match instead.map(narrow) {
            // The lower case of a few letters is several.
            Some(c) if c.is_uppercase() => out.extend(c.to_lowercase()),
            Some(c) => out.push(c),
            None => {}
        }
        rest = behind;
    }
    out
}

/// Returns whether nobody sees a character: without a width, a direction, a variant of the one before it, a tag.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e01ef}')
}

/// Returns a sign of the usual width.
fn narrow(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        other => other,
    }
}

/// Returns what stands behind a sequence of a terminal, whose escape was passed.
fn behind_escape(text: &str) -> &str {
    let mut chars = text.chars();
    match chars.next() {
        Some('[') => {
            let rest = chars.as_str().trim_start_matches(|c| matches!(c, '0'..='?' | ' '..='/'));
            let mut rest = rest.chars();
            rest.next();
            rest.as_str()
        }
        Some(']') => {
            let end = text.find(['\u{7}', '\u{1b}', '\n']).unwrap_or(text.len());
            text[end..].trim_start_matches('\u{7}')
        }
        Some(_) => chars.as_str(),
        None => text,
    }
}

/// Returns what stands behind a colour of a terminal that lost its escape, whose `[` was passed.
fn colour(text: &str) -> Option<&str> {
    let behind = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
    if behind.len() == text.len() { None } else { behind.strip_prefix('m') }
}

/// Returns what stands for a mark of a page whose `<` was passed, and what is behind it; `None` where it is no such mark.
fn tag(text: &str) -> Option<(Option<char>, &str)> {
    if let Some(behind) = text.strip_prefix("!--") {
        return Some((Some('\n'), behind));
    }
    let inner = text.strip_prefix('/').unwrap_or(text);
    let n_name = inner.bytes().take(16).take_while(u8::is_ascii_alphanumeric).count();
    let name = inner[..n_name].to_ascii_lowercase();
    let instead = if WITHIN.contains(&name.as_str()) {
        None
    } else if BETWEEN.contains(&name.as_str()) {
        Some('\n')
    } else {
        return None;
    };
    let attributes = inner[n_name..].bytes().take(MAX_TAG).position(|byte| matches!(byte, b'>' | b'<')).map(|end| n_name + end)?;
    let is_tag = inner[n_name..].starts_with(['>', '/']) || inner[n_name..].starts_with(char::is_whitespace);
    (is_tag && inner.as_bytes()[attributes] == b'>').then(|| (instead, &inner[attributes + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_decorates_is_left_out() {
        for (text, expected) in [
            ("\u{1b}[1;31mtouch\u{1b}[0m it", "touch it"),
            ("\u{1b}]8;;http://x\u{7}touch\u{1b}]8;;\u{7} it", "touch it"),
            ("[1mtouch[22;39m it", "touch it"),
            ("to\u{200b}u\u{ad}ch\u{feff} it", "touch it"),
            ("<span class=\"a\">tou</span><B>ch</B> it", "touch it"),
            ("touch it<br>then<BR/>so", "touch it\nthen\nso"),
            ("<!-- touch it -->", "\n touch it \n"),
            ("\u{ff54}ouch\u{ff1a} it", "touch: it"),
            ("TOUCH It", "touch it"),
        ] {
            assert_eq!(undecorated(text), expected, "{text:?}");
        }
    }

    #[test]
    fn all_else_stays() {
        for text in [
            "a < b > c",
            "<tool_call>x</tool_call>",
            "<function=bash>",
            "a[0] [1;2] [m]",
            "<spanner>",
            "<a",
            "<a <b",
            "x --y",
            "\u{e9}<\u{e9}>",
            "",
        ] {
            assert_eq!(undecorated(text), text);
        }
        assert_eq!(undecorated("\u{1b}"), "");
        assert_eq!(undecorated("\u{1b}[\u{e9}x"), "x");
    }

    #[test]
    fn what_never_ends_is_looked_at_once() {
        for unit in ["<a ", "\u{1b}[", "\u{1b}]", "[1", "<", "-", "<!-"] {
            let text = unit.repeat(300_000);
            assert!(undecorated(&text).len() <= text.len(), "{unit}");
        }
    }
}
