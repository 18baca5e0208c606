//! Git's quoted names, for names with unusual characters: `"caf\303\251.txt"`, `"a\tb"`,
//! `"two words"`.

/// Parses a quoted name; returns it and what follows the quotes. `None`: it is not quoted.
pub fn unquoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut name = Vec::new();
    loop {
        match rest {
            [b'"', after @ ..] => return Some((name, after)),
            [
                b'\\',
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                after @ ..,
            ] => {
                name.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            [b'\\', sign, after @ ..] => {
                name.push(match sign {
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    b'r' => b'\r',
                    b'"' | b'\\' => *sign,
                    _ => return None,
                });
                rest = after;
            }
            [byte, after @ ..] => {
                name.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_up_to_its_closing_quote() {
        for (text, expected) in [
            (&br#""a b" rest"#[..], Some((&b"a b"[..], &b" rest"[..]))),
            (
                br#""caf\303\251.txt""#,
                Some(("caf\u{e9}.txt".as_bytes(), b"")),
            ),
            (br#""a\\tb""#, Some((br"a\tb", b""))),
            (br#""\q""#, None),
            (br#""open"#, None),
            (b"plain", None),
        ] {
            let read = unquoted(text);
            assert_eq!(
                read.as_ref().map(|(name, after)| (name.as_slice(), *after)),
                expected,
                "{}",
                text.escape_ascii()
            );
        }
    }
}
