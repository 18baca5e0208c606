/// Tracks a JSON object that arrives in pieces, and detects its last brace. It does not validate
/// what is between its braces.
#[derive(Debug, Default)]
pub(super) struct Object {
    depth: u32,
    in_string: bool,
    escaped: bool,
    has_begun: bool,
    /// There is something before or after it.
    is_other: bool,
    /// The last significant byte.
    last: u8,
}

impl Object {
    pub(super) fn feed(&mut self, piece: &str) {
        for byte in piece.bytes() {
            self.take(byte);
        }
    }

    /// Returns whether the object is complete, and nothing else came.
    pub(super) fn is_whole(&self) -> bool {
        self.has_begun && self.depth == 0 && !self.is_other
    }

    /// Returns whether another object may begin here within it, or it is no object at all.
    pub(super) fn may_hold_object(&self) -> bool {
        !self.has_begun
            || self.in_string
            || self.depth > 0 && matches!(self.last, b':' | b'[' | b',')
    }

    /// Returns whether only the last brace is missing.
    pub(super) fn lacks_one_brace(&self) -> bool {
        self.depth == 1 && !self.in_string && !self.is_other
    }

    fn take(&mut self, byte: u8) {
        if !byte.is_ascii_whitespace() {
            self.last = byte;
        }
        if self.in_string {
            let is_end = byte == b'"' && !self.escaped;
            self.escaped = byte == b'\\' && !self.escaped;
            self.in_string = !is_end;
        } else if self.depth == 0 {
            let begins = byte == b'{' && !self.has_begun;
            self.is_other |= !begins && !byte.is_ascii_whitespace();
            self.has_begun |= begins;
            self.depth = u32::from(begins);
        } else {
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => self.depth -= 1,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, is_whole: bool) {
        let mut object = Object::default();
        object.feed(text);
        assert_eq!(object.is_whole(), is_whole, "{text}");
        let mut bytewise = Object::default();
        text.bytes().for_each(|byte| bytewise.take(byte));
        assert_eq!(bytewise.is_whole(), is_whole, "byte by byte: {text}");
    }

    #[test]
    fn an_object_is_complete_with_its_last_brace() {
        check("", false);
        check("{}", true);
        check(" {\"a\": [1, {\"b\": \"}\"}]}\n", true);
        check("{\"a\": {\"b\": 1}", false);
        check(r#"{"a": "\"}"#, false);
        check(r#"{"a": "\\"}"#, true);
        check(r#"{"a": "\\\"}"}"#, true);
        check("{\"a\": \"\u{e9}}", false);
    }

    #[test]
    fn text_around_or_instead_of_an_object_is_detected() {
        check("[]", false);
        check("null", false);
        check("{} {}", false);
        check("{}}", false);
        check("x{}", false);
    }
}
