//! Where a value stands in a text that nobody would find by looking for its letters: escaped as in
//! an address, a string or a page, in base 64 or in the digits of its bytes, and any of these
//! within another.

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
    let forms = forms(value.as_bytes());
    if text.contains(['%', '\\', '&']) {
        text = blotted(&text, escaped(value.as_bytes(), &forms, text.as_bytes()));
    }
    let found = found(&forms, text.as_bytes());
    let found = [found, in_digits(value.as_bytes(), text.as_bytes())].concat();
    if found.is_empty() {
        text
    } else {
        blotted(&text, found)
    }
}

/// Returns where a text has one of the forms in base 64, with all that belongs to it.
fn found(forms: &[String], text: &[u8]) -> Vec<Range<usize>> {
    let places = forms.iter().flat_map(|form| {
        memmem::find_iter(text, form)
            .map(|at| at..at + form.len())
            .collect::<Vec<_>>()
    });
    places.map(|place| run_around(text, place)).collect()
}

fn blotted(text: &str, mut ranges: Vec<Range<usize>>) -> String {
    ranges.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
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

/// Returns where a text holds the value, or a form of it, once its escapes are read, layer by
/// layer.
fn escaped(value: &[u8], forms: &[String], text: &[u8]) -> Vec<Range<usize>> {
    let (mut bytes, mut from): (Vec<u8>, Vec<usize>) = (text.to_vec(), (0..=text.len()).collect());
    let mut found = Vec::new();
    for _ in 0..MAX_LAYERS {
        let (read, places) = unescaped(&bytes);
        if read.len() == bytes.len() {
            break;
        }
        from = places.into_iter().map(|place| from[place]).collect();
        bytes = read;
        let plain = memmem::find_iter(&bytes, value).map(|at| at..at + value.len());
        let all = plain
            .chain(self::found(forms, &bytes))
            .chain(in_digits(value, &bytes));
        found.extend(all.map(|range| from[range.start]..from[range.end]));
    }
    found
}

/// Returns a text without one layer of escapes, and where each byte of it begins, the end included.
fn unescaped(text: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let (mut out, mut from, mut at) = (
        Vec::with_capacity(text.len()),
        Vec::with_capacity(text.len() + 1),
        0,
    );
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
    let length = text
        .iter()
        .take(MAX_ENTITY)
        .position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(&text[..length]).ok()?;
    let byte = match name {
        "amp" => b'&',
        "lt" => b'<',
        "gt" => b'>',
        "quot" => b'"',
        "apos" => b'\'',
        _ => match name.strip_prefix('#')? {
            number if number.starts_with(['x', 'X']) => {
                u8::from_str_radix(&number[1..], 16).ok()?
            }
            number => number.parse().ok()?,
        },
    };
    byte.is_ascii().then_some((byte, length))
}

/// Returns what a value is in base 64, once and twice, whatever stands before and behind it.
fn forms(value: &[u8]) -> Vec<String> {
    let once = forms_in_base64(value);
    let twice: Vec<String> = once
        .iter()
        .flat_map(|form| forms_in_base64(form.as_bytes()))
        .collect();
    [once, twice].concat()
}

/// Returns what a value is in base 64, whatever stands before and behind it: all signs that are
/// made of its own bits.
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

/// Returns where the bytes of a value stand as two digits each, of either case, whatever single
/// signs part them, with all digits around.
fn in_digits(value: &[u8], text: &[u8]) -> Vec<Range<usize>> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let nibbles: Vec<u8> = value
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .collect();
    // Signs between two bytes: `73:65`, `73 65`, `0x73, 0x65`, `\x73\x65`.
    let is_between = |byte: &u8| {
        matches!(
            byte,
            b' ' | b':' | b'-' | b',' | b'x' | b'X' | b'\\' | b'\n' | b'\r'
        )
    };
    let (mut digits, mut from) = (Vec::new(), Vec::new());
    let mut found = Vec::new();
    let mut take = |digits: &mut Vec<u8>, from: &mut Vec<usize>| {
        found.extend(
            memmem::find_iter(digits, &nibbles)
                .map(|at| from[at]..from[at + nibbles.len() - 1] + 1),
        );
        digits.clear();
        from.clear();
    };
    for (at, byte) in text.iter().enumerate() {
        match digit(*byte) {
            // A zero before an `x` says that digits follow.
            Some(0) if matches!(text.get(at + 1), Some(b'x' | b'X')) => {}
            Some(nibble) => {
                digits.push(nibble);
                from.push(at);
            }
            None if is_between(byte) => {}
            None => take(&mut digits, &mut from),
        }
    }
    take(&mut digits, &mut from);
    found
}

/// Returns all the base 64 around a piece of it.
fn run_around(text: &[u8], piece: Range<usize>) -> Range<usize> {
    let is_base64 = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
    };
    let before = text[..piece.start]
        .iter()
        .rev()
        .take_while(|byte| is_base64(byte))
        .count();
    let behind = text[piece.end..]
        .iter()
        .take_while(|byte| is_base64(byte))
        .count();
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
            assert_eq!(
                hide(KEY, format!("before {text} behind {text}")),
                "before *** behind ***",
                "{text}"
            );
        }
        for before in ["", "u", "us", "user:"] {
            for behind in ["", "x", "xy"] {
                for alphabet in [STANDARD, URL_SAFE] {
                    let text = GeneralPurpose::new(&alphabet, base64::engine::general_purpose::PAD)
                        .encode(format!("{before}{KEY}{behind}"));
                    assert_eq!(
                        hide(KEY, format!("Basic {text}, no")),
                        "Basic ***, no",
                        "{before} {behind}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_value_is_found_in_digits_and_in_one_form_within_another() {
        let hex: Vec<String> = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
        let once = GeneralPurpose::new(&STANDARD, base64::engine::general_purpose::PAD)
            .encode(format!("u:{KEY}"));
        let twice =
            GeneralPurpose::new(&STANDARD, base64::engine::general_purpose::PAD).encode(&once);
        let escaped: String = once.bytes().map(|byte| format!("%{byte:02X}")).collect();
        for text in [
            hex.concat(),
            hex.concat().to_uppercase(),
            hex.join(":"),
            hex.join(" "),
            twice,
            escaped,
            hex.join("%3A"),
        ] {
            assert_eq!(hide(KEY, format!("key=({text})")), "key=(***)", "{text}");
        }
        for text in [
            format!("\\x{}", hex.join("\\x")),
            format!("0x{}", hex.join(", 0x")),
        ] {
            let hidden = hide(KEY, text);
            assert!(hidden.len() <= 8 && hidden.contains("***"), "{hidden}");
        }
    }

    #[test]
    fn other_text_stays_as_it_is() {
        for text in [
            "",
            "100 % of it & more \\ or less",
            "%",
            "&#;",
            "\\u12",
            "%zz%e9\u{e9}&amp;",
            "c2stYQ==",
            "736b2d",
            "0x73 0x6b",
        ] {
            assert_eq!(hide(KEY, text.to_owned()), text);
        }
    }
}
