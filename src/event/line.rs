use std::fmt::Write as _;

use serde::Serialize;

use podbay_wire::is_hidden;

/// Returns a value as one line of JSON (without the newline) that is safe to show on a terminal.
///
/// JSON itself escapes only what is below U+0020. The rest of what a terminal obeys, or what lets
/// text look like other text, may only stand inside of strings, so it is escaped here; a reader
/// gets back the very same text.
pub fn json_line<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    let json = serde_json::to_string(value)?;
    if !json.chars().any(is_hidden) {
        return Ok(json);
    }
    let mut line = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(line, "\\u{unit:04x}").expect("a string takes all that is written");
            }
        } else {
            line.push(c);
        }
    }
    Ok(line)
}

/// Says in words for a user why a text is no JSON, to stand behind the text's name.
pub fn json_fault(error: &serde_json::Error) -> String {
    if error.is_eof() {
        "ends in the middle".to_owned()
    } else {
        format!(
            "is no JSON from line {}, column {} on",
            error.line(),
            error.column()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, line: &str) {
        let written = json_line(text).expect("a string is JSON");
        assert_eq!(written, line);
        assert_eq!(
            serde_json::from_str::<String>(&written).expect("reads back"),
            text
        );
    }

    #[test]
    fn what_a_terminal_obeys_is_escaped_and_reads_back() {
        check("plain é 🦀", "\"plain é 🦀\"");
        check("\x1b[31m\x7f", "\"\\u001b[31m\\u007f\"");
        check("\u{9b}2J", "\"\\u009b2J\"");
        check("a\u{202e}b", "\"a\\u202eb\"");
        check("\u{e0041}", "\"\\udb40\\udc41\"");
    }
}
