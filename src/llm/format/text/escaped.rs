//! Objects whose quotes are escaped, as if they stood within a string, once or more often:
//! `{\"path\": \"a\"}`.
//!
//! No object of JSON begins so, thus nothing that is well-formed is changed, whatever backslashes
//! its texts have.

use serde_json::Value;

use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::json;

/// So many backslashes before a quote are more than any model writes: three times escaped.
const MAX_SLASHES: usize = 7;

/// Reads such an object; `None`, with nothing passed, where it is written as objects are.
pub(super) fn object(c: &mut Cursor, depth: usize) -> Read<Option<Value>> {
    let begin = c.at();
    let Some(n_slashes) = slashes(c)? else {
        c.go(begin);
        return Ok(None);
    };
    if n_slashes > MAX_SLASHES || !(n_slashes + 1).is_power_of_two() {
        return Err(Stop::No);
    }
    c.go(begin);
    to_its_end(c, (n_slashes + 1).ilog2())?;
    let text = once(c.since(begin))?;
    json::value(&mut Cursor::new(&text, 0, true), depth + 1)
        .map(Some)
        .map_err(|_| Stop::No)
}

/// Returns how many backslashes stand before the first quote of an object; between its bracket and
/// them there may be blanks, escaped or not.
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

/// Goes behind the bracket that ends the object here, all of which was escaped so often.
fn to_its_end(c: &mut Cursor, n_layers: u32) -> Read<()> {
    let (mut depth, mut in_string, mut n_slashes) = (0_usize, false, 0_usize);
    loop {
        let character = c.next()?;
        match character {
            '"' => in_string ^= is_quote(n_slashes, n_layers).ok_or(Stop::No)?,
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

/// Returns whether a quote behind so many backslashes begins or ends a text; `None` where it was
/// not escaped as often as the others.
fn is_quote(n_slashes: usize, n_layers: u32) -> Option<bool> {
    let left = (0..n_layers).try_fold(n_slashes, |left, _| (left % 2 == 1).then_some(left / 2))?;
    Some(left % 2 == 0)
}

/// Takes off one layer of escapes.
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
    serde_json::from_str(&quoted).map_err(|_| Stop::No)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Writes a value as JSON, and that into a string, so many times; without the quotes around it.
    fn escaped(value: &Value, n_layers: usize) -> String {
        (0..n_layers).fold(value.to_string(), |text, _| {
            let quoted = Value::from(text).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        })
    }

    #[test]
    fn an_object_is_read_however_often_it_was_escaped() {
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
                    Err(Stop::More),
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
    fn what_is_written_as_objects_are_is_left_to_others() {
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
                Err(Stop::No),
                "{text}"
            );
        }
    }
}
