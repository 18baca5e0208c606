//! Objects whose quotes are escaped as if within a string, once or more: `{\"path\": \"a\"}`.
//! No JSON object begins like this, so nothing well-formed is changed, however many backslashes its
//! strings contain.

use serde_json::Value;

use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::json;

/// Most backslashes before a quote: escaped three times, more than any model writes.
const MAX_SLASHES: usize = 7;

/// Parses such an object; `None`, consuming nothing, where its quotes are not escaped.
pub(super) fn object(c: &mut Cursor, depth: usize) -> Read<Option<Value>> {
    let begin = c.at();
    let Some(n_slashes) = slashes(c)? else {
        c.go(begin);
        return Ok(None);
    };
    if n_slashes > MAX_SLASHES || !(n_slashes + 1).is_power_of_two() {
        return Err(Stop::NoMatch);
    }
    c.go(begin);
    skip_object(c, (n_slashes + 1).ilog2())?;
    let text = once(c.since(begin))?;
    json::value(&mut Cursor::new(&text, 0, true), depth + 1)
        .map(Some)
        .map_err(|_| Stop::NoMatch)
}

/// Counts the backslashes before the first quote of an object; between its bracket and them there
/// may be whitespace, escaped or not.
fn slashes(c: &mut Cursor) -> Read<Option<usize>> {
    c.expect("{")?;
    loop {
        c.spaces();
        let n_slashes = c.run(|byte| byte == b'\\')?.len();
        if n_slashes == 0 {
            return Ok(None);
        }
        match c.peek()? {
            b'"' => return Ok(Some(n_slashes)),
            b'n' | b'r' | b't' => c.next()?,
            _ => return Ok(None),
        };
    }
}

/// Skips to after the bracket that closes the object here, which is escaped `n_layers` times.
fn skip_object(c: &mut Cursor, n_layers: u32) -> Read<()> {
    let (mut depth, mut in_string, mut n_slashes) = (0_usize, false, 0_usize);
    loop {
        let character = c.next()?;
        match character {
            '"' => in_string ^= is_quote(n_slashes, n_layers).ok_or(Stop::NoMatch)?,
            '{' | '[' if !in_string => depth += 1,
            '}' | ']' if !in_string => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok(());
        }
        n_slashes = if character == '\\' { n_slashes + 1 } else { 0 };
    }
}

/// Returns whether a quote after this many backslashes opens or closes a string; `None` where it is
/// escaped less often than the others.
fn is_quote(n_slashes: usize, n_layers: u32) -> Option<bool> {
    let left = (0..n_layers).try_fold(n_slashes, |left, _| (left % 2 == 1).then_some(left / 2))?;
    Some(left % 2 == 0)
}

/// Removes one layer of escapes.
fn once(text: &str) -> Read<String> {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    serde_json::from_str(&quoted).map_err(|_| Stop::NoMatch)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Encodes a value as JSON, and that as a string `n_layers` times, without the outer quotes.
    fn escaped(value: &Value, n_layers: usize) -> String {
        (0..n_layers).fold(value.to_string(), |text, _| {
            let quoted = Value::from(text).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        })
    }

    #[test]
    fn an_object_is_parsed_however_often_it_was_escaped() {
        for value in [
            json!({"path": "a"}),
            json!({"a": "say \"no\" {", "b": ["}", {"c": "\\"}], "d": "C:\\new\\", "e": "é\n\t\u{1}", "f": 1}),
            json!({"content": "printf(\"a\\nb\\\\n\");\n{\\\"x\\\": 1}\n"}),
        ] {
            for n_layers in 1..=3 {
                let text = escaped(&value, n_layers);
                let mut c = Cursor::new(&text, 0, true);
                assert_eq!(object(&mut c, 0), Ok(Some(value.clone())), "{text}");
                assert_eq!(c.at(), text.len());
                assert_eq!(
                    object(&mut Cursor::new(&text[..text.len() - 1], 0, false), 0),
                    Err(Stop::NeedsMore),
                    "{text}"
                );
            }
        }
        let pretty = "{\\n  \\\"a\\\": [\n    1\n  ]\\n}";
        assert_eq!(
            object(&mut Cursor::new(pretty, 0, true), 0),
            Ok(Some(json!({"a": [1]})))
        );
    }

    #[test]
    fn unescaped_objects_are_left_to_the_json_parser() {
        for text in [
            r#"{"a": "\\\"b\\\""}"#,
            "{}",
            "{ \n \"a\": 1}",
            "{a: 1}",
            r"{\d}",
            r"{\\n}",
        ] {
            let mut c = Cursor::new(text, 0, true);
            assert_eq!((object(&mut c, 0), c.at()), (Ok(None), 0), "{text}");
        }
        // Not all of them are escaped alike.
        for text in [r#"{\"a": 1}"#, r#"{\"a\": "b"}"#, r#"{\\"a\\": 1}"#] {
            assert_eq!(
                object(&mut Cursor::new(text, 0, true), 0),
                Err(Stop::NoMatch),
                "{text}"
            );
        }
    }
}
