//! Extracts what looks like a control token from a chat template.
//! A template is Jinja: literal text, and code whose quoted strings are output. Only these two are
//! searched, since brackets of the code itself mean something else.

use std::borrow::Cow;

use super::MAX_NAME;
use super::MAX_TOKEN;

/// How much of a template is examined, in bytes; no model's own is nearly as long.
const MAX_TEMPLATE: usize = 1024 * 1024;
/// First bytes of tokens made of a word and a run of the same punctuation, such as `@@end@@` and
/// `###END`.
const RUNS: &[u8] = b"@#%$!^&+~=";
/// Longest form that is recognized between `]~` and the next bracket, in bytes.
const MAX_TILDE: usize = 12;

/// Names between `<` and `>` that are common in templates and ordinary files, and not tokens:
/// markup, and the elements in which templates write a tool's arguments.
const ORDINARY: &[&str] = &[
    "a",
    "any",
    "args",
    "arguments",
    "array",
    "b",
    "body",
    "bool",
    "boolean",
    "br",
    "button",
    "code",
    "content",
    "data",
    "date",
    "default",
    "description",
    "dict",
    "div",
    "em",
    "enum",
    "example",
    "file",
    "float",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "head",
    "header",
    "hr",
    "html",
    "i",
    "id",
    "img",
    "input",
    "int",
    "integer",
    "item",
    "items",
    "key",
    "label",
    "li",
    "link",
    "list",
    "main",
    "meta",
    "name",
    "nav",
    "null",
    "number",
    "object",
    "ol",
    "option",
    "p",
    "parameter",
    "parameters",
    "path",
    "pre",
    "properties",
    "property",
    "query",
    "required",
    "script",
    "section",
    "select",
    "span",
    "str",
    "string",
    "strong",
    "style",
    "svg",
    "t",
    "table",
    "td",
    "text",
    "th",
    "time",
    "title",
    "tool",
    "tr",
    "type",
    "u",
    "ul",
    "url",
    "value",
    "values",
];

/// Returns everything in a template that has the form of a token, in order, possibly with
/// duplicates.
pub(super) fn markers(template: &str) -> impl Iterator<Item = Box<str>> {
    let template = &template[..template.floor_char_boundary(MAX_TEMPLATE)];
    written(template).into_iter().flat_map(|text| {
        let may_begin = |byte: u8| matches!(byte, b'<' | b'[' | b']') || RUNS.contains(&byte);
        let begins = |at: usize| {
            text.is_char_boundary(at) && may_begin(text.as_bytes()[at]) && !goes_on(&text, at)
        };
        let found: Vec<Box<str>> = (0..text.len())
            .filter(|at| begins(*at))
            .filter_map(|at| marker(&text[at..]))
            .map(Into::into)
            .collect();
        found
    })
}

/// Returns whether neutralizing a token that the server lists leaves ordinary words intact.
pub(super) fn is_named(token: &str) -> bool {
    let begins = token.starts_with(|c: char| !c.is_alphanumeric() && !c.is_whitespace());
    let is_one = (3..=MAX_TOKEN).contains(&token.len())
        && token.contains(char::is_alphanumeric)
        && !token.contains(['"', '\\']);
    begins && is_one && (!token.contains(char::is_whitespace) || barred(token) == Some(token.len()))
}

/// Returns whether this continues a run of the same punctuation: the token begins with the first
/// one.
fn goes_on(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    at > 0 && bytes[at - 1] == bytes[at] && RUNS.contains(&bytes[at])
}

/// Returns the output parts of a template: the literal text, and the quoted strings in its code.
fn written(template: &str) -> Vec<Cow<'_, str>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some(at) = rest
        .as_bytes()
        .windows(2)
        .position(|two| matches!(two, b"{{" | b"{%" | b"{#"))
    {
        parts.push(Cow::Borrowed(&rest[..at]));
        let (open, code) = rest[at..].split_at(2);
        rest = match open {
            "{{" => quoted(code, "}}", &mut parts),
            "{%" => quoted(code, "%}", &mut parts),
            _ => code.find("#}").map_or("", |end| &code[end + 2..]),
        };
    }
    parts.push(Cow::Borrowed(rest));
    parts
}

/// Collects the quoted strings of a piece of code; returns what follows its end.
fn quoted<'a>(code: &'a str, end: &str, parts: &mut Vec<Cow<'a, str>>) -> &'a str {
    let bytes = code.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if code.as_bytes()[at..].starts_with(end.as_bytes()) {
            return &code[at + end.len()..];
        }
        let quote = bytes[at];
        at += 1;
        if !matches!(quote, b'\'' | b'"') {
            continue;
        }
        let from = at;
        while at < bytes.len() && bytes[at] != quote {
            at += if bytes[at] == b'\\' { 2 } else { 1 };
        }
        let to = at.min(bytes.len());
        parts.extend(code.get(from..to).map(unescaped));
        at += 1;
    }
    ""
}

/// Decodes the escapes in a quoted string that a token can be written with.
fn unescaped(quoted: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = quoted;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let n_digits = match escape.as_bytes().get(1) {
            Some(b'x') => 2,
            Some(b'u') => 4,
            Some(b'U') => 8,
            _ => 0,
        };
        let code = escape
            .get(2..2 + n_digits)
            .and_then(|code| u32::from_str_radix(code, 16).ok())
            .and_then(char::from_u32);
        let (plain, n_read) = match (code, escape[1..].chars().next()) {
            (Some(c), _) => (c, 2 + n_digits),
            (None, Some('n' | 'r' | 't' | 'b' | 'f' | 'v')) => (' ', 2),
            (None, Some(c)) => (c, 1 + c.len_utf8()),
            (None, None) => ('\\', 1),
        };
        out.push(plain);
        rest = &escape[n_read..];
    }
    if out.is_empty() {
        Cow::Borrowed(rest)
    } else {
        Cow::Owned(out + rest)
    }
}

/// Returns the token that `rest` begins with, by its form alone.
fn marker(rest: &str) -> Option<&str> {
    let len = match rest.as_bytes() {
        [b'<', b'|', ..] => barred(rest).or_else(|| Some(angle(&rest[1..])? + 1))?,
        [b'<', ..] => angle(&rest[1..])? + 1,
        [b'[', b'|', ..] => barred(rest)?,
        [b'[', ..] => square(&rest[1..]).or_else(|| tilde(&rest[1..]))? + 1,
        [b']', b'~', ..] => rest[2..]
            .bytes()
            .take(MAX_TILDE)
            .position(|byte| matches!(byte, b'[' | b']'))
            .map(|at| at + 3)?,
        [mark, again, ..] if mark == again && RUNS.contains(mark) => run(rest, *mark)?,
        _ => return None,
    };
    let token = rest.get(..len)?;
    let is_one = !token.contains(char::is_whitespace) || barred(token) == Some(len);
    (token.len() <= MAX_TOKEN && is_one).then_some(token)
}

/// `<|name|>` and `[|name|]` of one or more words; returns the total length.
fn barred(rest: &str) -> Option<usize> {
    let close = match rest.as_bytes() {
        [b'<', b'|', ..] => "|>",
        [b'[', b'|', ..] => "|]",
        _ => return None,
    };
    let is_part = |c: char| super::is_name(c) || matches!(c, ' ' | '/');
    let name = &rest[2..];
    let (end, _) = name
        .char_indices()
        .take(MAX_NAME)
        .find(|(_, c)| !is_part(*c))?;
    let is_name = name[..end].contains(|c: char| c.is_ascii_alphabetic())
        && name[..end].trim() == &name[..end];
    (is_name && name[end..].starts_with(close)).then_some(end + 4)
}

/// `@@name@@`, and `###NAME`; returns the total length.
fn run(rest: &str, mark: u8) -> Option<usize> {
    let n_marks = rest
        .bytes()
        .take(MAX_TILDE)
        .take_while(|byte| *byte == mark)
        .count();
    let (marks, behind) = rest.split_at(n_marks);
    let end = behind
        .char_indices()
        .take(MAX_NAME)
        .find(|(_, c)| !super::is_name(*c))
        .map_or(behind.len(), |(end, _)| end);
    let name = &behind[..end];
    if name.len() > MAX_NAME || !name.contains(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    if behind[end..].starts_with(marks) {
        return Some(n_marks + end + n_marks);
    }
    let is_loud = name.len() >= 3
        && name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    is_loud.then_some(n_marks + end)
}

/// `<name>`, with any character that templates use in names; returns the length after the bracket.
fn angle(rest: &str) -> Option<usize> {
    let is_part = |c: char| {
        super::is_name(c) || matches!(c, '|' | '\u{ff5c}' | '/' | '~' | '@' | '!' | '?' | '<')
    };
    let (end, last) = rest
        .char_indices()
        .take(MAX_NAME)
        .find(|(_, c)| !is_part(*c))?;
    let name = rest[..end].strip_prefix('/').unwrap_or(&rest[..end]);
    let is_token =
        last == '>' && name.contains(|c: char| c.is_ascii_alphabetic()) && !name.contains('<');
    (is_token && !ORDINARY.contains(&name.to_ascii_lowercase().as_str())).then_some(end + 1)
}

/// `[NAME]`; lower-case letters alone are an index or a choice.
fn square(rest: &str) -> Option<usize> {
    let (end, last) = rest
        .char_indices()
        .take(MAX_NAME)
        .find(|(at, c)| !(c.is_ascii_alphanumeric() || *c == '_' || *at == 0 && *c == '/'))?;
    let capitals = rest[..end].bytes().filter(u8::is_ascii_uppercase).count();
    (last == ']' && capitals >= 2 && end >= 3).then_some(end + 1)
}

/// `[e~[`.
fn tilde(rest: &str) -> Option<usize> {
    let end = rest
        .bytes()
        .take(MAX_TILDE)
        .position(|byte| !byte.is_ascii_alphanumeric())?;
    rest.as_bytes()[end..].starts_with(b"~[").then_some(end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(template: &str, expected: &[&str]) {
        assert_eq!(
            markers(template).map(String::from).collect::<Vec<_>>(),
            expected,
            "{template}"
        );
    }

    #[test]
    fn tokens_are_found_only_in_text_and_quoted_strings() {
        check(
            "<|im_start|>user\n{{ content }}<|im_end|>",
            &["<|im_start|>", "<|im_end|>"],
        );
        check(
            "{{ '<user>' + m['content'] + \"[END_OF]\" }}",
            &["<user>", "[END_OF]"],
        );
        check(
            "{%- if a<b and c>d or messages[LAST] %}{{ x }}{% endif %}",
            &[],
        );
        check(
            "{# <no> #}{{ ']~!b[' ~ ']~b]' ~ role ~ '[e~[' }}",
            &["]~!b[", "]~b]", "[e~["],
        );
        check("{{- '[gMASK]<sop>' -}}", &["[gMASK]", "<sop>"]);
        check(r"{{ 'it\'s <one>' }}<two>", &["<one>", "<two>"]);
        check(
            "{{ '@@end@@' }}##FIN\n{{ '\\u003cuser\\x3e' }}<|my tok|>[|user|]",
            &["@@end@@", "##FIN", "<user>", "<|my tok|>", "[|user|]"],
        );
        check(
            "{{ '<\u{ff5c}User\u{ff5c}>' }}",
            &["<\u{ff5c}User\u{ff5c}>"],
        );
    }

    #[test]
    fn words_braces_and_markup_are_not_tokens() {
        check("{\"name\": \"x\", \"list\": [1, [2]], \"t\": [a]}", &[]);
        check(
            "a < b and c > d <name>x</name> <a href=\"#\">[optional] <Type></TYPE>",
            &[],
        );
        check(
            "{{ 'Vec<string>' }} {{ '[]' }} {{ '<>' }} {{ '</>' }} {{ '[1]' }}",
            &[],
        );
        check(
            "## Tools\n### Instruction:\n# one @mention a@@ ## C++ == x && y ~~~ $$ #!/bin/sh ###End <| f |> [| |]",
            &[],
        );
        for cut in [
            "@@",
            "@@e",
            "##",
            "[|",
            "<|a b",
            "{{ '\\u00",
            "{{ '\\U0011ffff<' }}",
            "{{ '<us",
            "{{ '",
            "{%",
            "{{ 'a\\",
            "{#",
            "<",
            "[",
            "]~",
            "{{ '\u{e9}\\\u{e9}",
        ] {
            check(cut, &[]);
        }
    }

    #[test]
    fn a_hostile_template_is_scanned_in_linear_time() {
        for piece in [
            "{{ '", "<a", "[A", "]~", "{%", "{#", "\\", "@@a", "##", "[|a",
        ] {
            assert!(markers(&piece.repeat(MAX_TEMPLATE)).all(|token| token.len() <= MAX_TOKEN));
        }
    }

    #[test]
    fn a_listed_token_counts_only_if_it_looks_like_one() {
        assert!(
            [
                "<s>",
                "<|endoftext|>",
                "[EOS]",
                "</s>",
                "@@eos@@",
                "###END",
                "<|my tok|>"
            ]
            .into_iter()
            .all(is_named)
        );
        assert!(
            ![
                "",
                "a",
                "<",
                "the",
                "< s >",
                ",",
                "###",
                "\n\n",
                ". a",
                "\"a\"",
                &"<".repeat(65)
            ]
            .into_iter()
            .any(is_named)
        );
    }
}
