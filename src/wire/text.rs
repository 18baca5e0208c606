use std::borrow::Cow;

/// Returns bytes as text. Each invalid byte is written as `\x80`, so that it differs from any
/// other, and from a real replacement character.
pub fn shown_text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        super::path::push_bytes(&mut out, chunk.invalid());
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_invalid_byte_is_shown_as_an_escape() {
        for (bytes, text) in [
            (&b"caf\xe9 au lait"[..], r"caf\xe9 au lait"),
            (b"\x80\x81", r"\x80\x81"),
            (b"a\xf0\x9f\x98b", r"a\xf0\x9f\x98b"),
            (
                "plain \u{fffd} \u{1f600}\n".as_bytes(),
                "plain \u{fffd} \u{1f600}\n",
            ),
            (b"", ""),
        ] {
            assert_eq!(shown_text(bytes), text);
        }
    }
}
