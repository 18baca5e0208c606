//! Where a value stands in a text that nobody would find by looking for its letters: escaped as in an address, a string or a page, or in base 64.

use std::ops::Range;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::alphabet::URL_SAFE;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::NO_PAD;
use memchr::memmem;

/// How often a text may be escaped.
const MAX_LAYERS: usize = 3;
/// Shorter pieces of base 64 say nothing.
const MIN_BASE64: usize = 6;
/// Longest entity without its `&` and `;`, in bytes.
const MAX_ENTITY: usize = 8;

/// Returns a text with a value blotted out wherever it is encoded.
pub(super) fn hide(value: &str, mut text: String) -> String {
    if text.contains(['%', '\\', '&']) {
        text = blotted(&text, escaped(value.as_bytes(), text.as_bytes()));
    }
    for form in forms_in_base64(value.as_bytes()) {
        if text.contains(&form) {
            let found = text.match_indices(&form).map(|(at, form)| run_around(text.as_bytes(), at..at + form.len())).collect();
            text = blotted(&text, found);
        }
    }
    text
}

fn blotted(text: &str, ranges: Vec<Range<usize>>) -> String {
    let (mut out, mut end) = (String::with_capacity(text.len()), 0);
    for range in ranges {
        if range.start >= end
            && let Some(before) = text.get(end..range.start)
        {
            out.push_str(before);
            out.push_str("***");
            end = range.end;
        }
    }
    out.push_str(text.get(end..).unwrap_or_default());
    out
}

/// Returns where a text holds the value once its escapes are read, layer by layer.
fn escaped(value: &[u8], text: &[u8]) -> Vec<Range<usize>> {
    let (mut bytes, mut from): (Vec<u8>, Vec<usize>) = (text.to_vec(), (0..=text.len()).collect());
    let mut found = Vec::new();
    for _ in 0..MAX_LAYERS {
        let (read, places) = unescaped(&bytes);
        if read.len() == bytes.len() {
            break;
        }
        from = places.into_iter().map(|place| from[place]).collect();
        bytes = read;
        found.extend(memmem::find_iter(&bytes, value).map(|at| from[at]..from[at + value.len()]));
    }
    found.sort_by_key(|range| range.start);
    found
}

/// Returns a text without one layer of escapes, and where each byte of it begins, the end included.
fn unescaped(text: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let (mut out, mut from, mut at) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len() + 1), 0);
    while at < text.len() {
        let (byte, length) = match text[at] {
            b'%' => hex(text, at + 1, 2).map(|byte| (byte, 3)),
            b'\\' => match text.get(at + 1) {
                Some(b'u') => hex(text, at + 2, 4).map(|byte| (byte, 6)),
                Some(b'x') => hex(text, at + 2, 2).map(|byte| (byte, 4)),
                Some(byte @ (b'/' | b'"' | b'\'' | b'\\')) => Some((*byte, 2)),
                _ => None,
            },
            b'&' => entity(&text[at + 1..]).map(|(byte, length)| (byte, length + 2)),
            _ => None,
        }
        .unwrap_or((text[at], 1));
        out.push(byte);
        from.push(at);
        at += length;
    }
    from.push(text.len());
    (out, from)
}

/// Returns the ASCII sign that so many digits stand for: keys have no others.
fn hex(text: &[u8], at: usize, n_digits: usize) -> Option<u8> {
    let digits = std::str::from_utf8(text.get(at..at + n_digits)?).ok()?;
    u8::from_str_radix(digits, 16).ok().filter(u8::is_ascii)
}

fn entity(text: &[u8]) -> Option<(u8, usize)> {
    let length = text.iter().take(MAX_ENTITY).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(&text[..length]).ok()?;
    let byte = match name {
        "amp" => b'&',
        "lt" => b'<',
        "gt" => b'>',
        "quot" => b'"',
        "apos" => b'\'',
        _ => match name.strip_prefix('#')? {
            number if number.starts_with(['x', 'X']) => u8::from_str_radix(&number[1..], 16).ok()?,
            number => number.parse().ok()?,
        },
    };
    byte.is_ascii().then_some((byte, length))
}

/// Returns what a value is in base 64, whatever stands before and behind it: all signs that are made of its own bits.
fn forms_in_base64(value: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for alphabet in [STANDARD, URL_SAFE] {
        let engine = GeneralPurpose::new(&alphabet, NO_PAD);
        for n_before in 0..3 {
            let text = engine.encode([&[0; 2][..n_before], value].concat());
            let form = &text[(n_before * 8).div_ceil(6)..(n_before + value.len()) * 8 / 6];
            if form.len() >= MIN_BASE64 && !forms.iter().any(|other| other == form) {
                forms.push(form.to_owned());
            }
        }
    }
    forms
}

/// Returns all the base 64 around a piece of it.
fn run_around(text: &[u8], piece: Range<usize>) -> Range<usize> {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    let before = text[..piece.start].iter().rev().take_while(|byte| is_base64(byte)).count();
    let behind = text[piece.end..].iter().take_while(|byte| is_base64(byte)).count();
    piece.start - before..piece.end + behind
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-a/b+c=d&e~9";

    #[test]
    fn a_value_is_found_in_every_dress() {
        for text in [
            "sk-a%2Fb%2Bc%3Dd%26e~9",
            "sk-a%2fb%2bc%3dd%26e%7e9",
            "%73%6b-a/b+c=d&e~9",
            "sk-a%252Fb%252Bc%253Dd%2526e~9",
            "sk-a\\/b+c=d\\u0026e~9",
            "sk-a\\\\/b+c\\\\u003dd&e~9",
            "sk-a/b&#43;c&#x3d;d&amp;e~9",
        ] {
            assert_eq!(hide(KEY, format!("before {text} behind {text}")), "before *** behind ***", "{text}");
        }
        for before in ["", "u", "us", "user:"] {
            for behind in ["", "x", "xy"] {
                for alphabet in [STANDARD, URL_SAFE] {
                    let text =
                        GeneralPurpose::new(&alphabet, base64::engine::general_purpose::PAD).encode(format!("{before}{KEY}{behind}"));
                    assert_eq!(hide(KEY, format!("Basic {text}, no")), "Basic ***, no", "{before} {behind}");
                }
            }
        }
    }

    #[test]
    fn other_text_stays_as_it_is() {
        for text in ["", "100 % of it & more \\ or less", "%", "&#;", "\\u12", "%zz%e9\u{e9}&amp;", "c2stYQ=="] {
            assert_eq!(hide(KEY, text.to_owned()), text);
        }
    }
}
