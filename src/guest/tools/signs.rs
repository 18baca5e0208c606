//! Quotes, dashes and blanks that look alike: a model writes the plain ones where a file has those of a typesetter, or the other way round.

use std::borrow::Cow;

/// Returns a line, without white space around it, in which each such sign is the plain one; one that is no UTF-8 stays as it is.
pub(super) fn plain(line: &[u8]) -> Cow<'_, [u8]> {
    let Some(text) = std::str::from_utf8(line).ok().filter(|_| !line.is_ascii()) else { return Cow::Borrowed(line.trim_ascii()) };
    let plain: String = text.chars().map(sign).collect();
    Cow::Owned(plain.trim().as_bytes().to_vec())
}

fn sign(sign: char) -> char {
    match sign {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_that_look_alike_are_the_plain_ones() {
        for (line, expected) in [
            ("\u{201c}a\u{201d} \u{2018}b\u{2019}", "\"a\" 'b'"),
            ("1\u{2013}2 \u{2014} \u{2212}3", "1-2 - -3"),
            ("\u{a0} 10\u{202f}km\u{3000}", "10 km"),
            ("  plain \t", "plain"),
            ("é…\u{200b}", "é…\u{200b}"),
        ] {
            assert_eq!(plain(line.as_bytes()), expected.as_bytes(), "{line}");
        }
        assert_eq!(plain(b" \xffa "), &b"\xffa"[..]);
    }
}
