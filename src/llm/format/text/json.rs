//! JSON as models write it.
//! Valid JSON is parsed as such. In addition: trailing and missing commas, single quotes, Python's
//! `True`, `False` and `None`, tuples, unquoted keys, line ends and unescaped quotes within
//! strings, unknown escapes, objects whose quotes are all escaped, brackets made superfluous by a
//! closing tag, and Gemma's quoting tokens. Ambiguous input is refused.

use serde_json::Map;
use serde_json::Number;
use serde_json::Value;

use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::escaped_json;
use super::long_numbers;

/// Deeper values are not arguments of any tool.
const MAX_DEPTH: usize = 64;
/// Longest number, in bytes.
const MAX_NUMBER: usize = 64;

/// Tokens that stand for quotes in Gemma's formats.
const QUOTES: [&str; 2] = ["<|\"|>", "<escape>"];

/// Parses one value.
pub(super) fn value(c: &mut Cursor, depth: usize) -> Read<Value> {
    if depth > MAX_DEPTH {
        return Err(Stop::NoMatch);
    }
    c.spaces();
    match c.peek()? {
        b'{' => match escaped_json::object(c, depth)? {
            Some(value) => Ok(value),
            None => object(c, depth).map(Value::Object),
        },
        b'[' => list(c, b']', depth),
        b'(' => list(c, b')', depth),
        b'"' | b'\'' => string(c).map(Value::String),
        b'<' => gemma_string(c).map(Value::String),
        b'-' | b'0'..=b'9' => number(c),
        byte if byte.is_ascii_alphabetic() => match c.run(|byte| byte.is_ascii_alphabetic())? {
            "true" | "True" => Ok(Value::Bool(true)),
            "false" | "False" => Ok(Value::Bool(false)),
            "null" | "None" => Ok(Value::Null),
            _ => Err(Stop::NoMatch),
        },
        _ => Err(Stop::NoMatch),
    }
}

/// Parses an object.
pub(super) fn object(c: &mut Cursor, depth: usize) -> Read<Map<String, Value>> {
    c.expect("{")?;
    let mut fields = Map::new();
    loop {
        c.spaces();
        match peek_within(c, depth, !fields.is_empty())? {
            Some(b'}') => {
                c.take("}")?;
                return Ok(fields);
            }
            Some(b',') if !fields.is_empty() => {
                c.take(",")?;
                continue;
            }
            None => return Ok(fields),
            Some(_) => {}
        }
        let key = key(c)?;
        c.spaces();
        c.expect(":")?;
        let value = value(c, depth + 1)?;
        fields.insert(key, value);
    }
}

/// Returns the next byte within an object or a list; `None` where it ends without its bracket.
/// A closing tag or the end of a fence counts as a bracket. So does the end of the text, but only
/// for the outermost one: what was truncated deeper inside is ambiguous.
fn peek_within(c: &mut Cursor, depth: usize, has_some: bool) -> Read<Option<u8>> {
    let at = c.at();
    let next = if depth == 0 && has_some {
        c.peek_or_end()?
    } else {
        Some(c.peek()?)
    };
    if !has_some {
        return Ok(next);
    }
    match next {
        Some(b'<') => {
            for quote in QUOTES {
                if c.take(quote)? {
                    c.go(at);
                    return Ok(next);
                }
            }
            c.go(at + 1);
            let after = c.peek()?;
            c.go(at);
            Ok(next.filter(|_| !matches!(after, b'/' | b'|' | 0xEF)))
        }
        Some(b'`') => Ok(None),
        other => Ok(other),
    }
}

fn key(c: &mut Cursor) -> Read<String> {
    match c.peek()? {
        b'"' | b'\'' => string(c),
        b'<' => gemma_string(c),
        byte if byte.is_ascii_alphabetic() || byte == b'_' => c
            .run(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
            .map(str::to_owned),
        _ => Err(Stop::NoMatch),
    }
}

fn list(c: &mut Cursor, close: u8, depth: usize) -> Read<Value> {
    c.next()?;
    let mut items = Vec::new();
    loop {
        c.spaces();
        match peek_within(c, depth, !items.is_empty())? {
            Some(byte) if byte == close => {
                c.next()?;
                return Ok(Value::Array(items));
            }
            Some(b',') if !items.is_empty() => {
                c.next()?;
            }
            None => return Ok(Value::Array(items)),
            // A superfluous bracket after an object in the list.
            Some(b'}') if items.last().is_some_and(Value::is_object) => {
                c.next()?;
            }
            Some(_) => items.push(value(c, depth + 1)?),
        }
    }
}

fn number(c: &mut Cursor) -> Read<Value> {
    let text =
        c.run(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E'))?;
    if text.len() > MAX_NUMBER {
        return Err(Stop::NoMatch);
    }
    if let Some(number) = long_numbers::number(text) {
        return Ok(number);
    }
    serde_json::from_str::<Number>(text)
        .map(Value::Number)
        .map_err(|_| Stop::NoMatch)
}

fn gemma_string(c: &mut Cursor) -> Read<String> {
    for quote in QUOTES {
        if c.take(quote)? {
            return c.until(quote).map(str::to_owned);
        }
    }
    Err(Stop::NoMatch)
}

/// Parses a string in double, single or triple quotes.
pub(super) fn string(c: &mut Cursor) -> Read<String> {
    let quote = c.peek()?;
    for three in ["\"\"\"", "'''"] {
        if quote == three.as_bytes()[0] && c.take(three)? {
            return c
                .until(three)
                .map(|text| text.strip_prefix('\n').unwrap_or(text).to_owned());
        }
    }
    c.next()?;
    let mut out = String::new();
    loop {
        match c.next()? {
            '\\' => escape(c, &mut out)?,
            character if character == char::from(quote) => {
                if ends_here(c)? {
                    return Ok(out);
                }
                out.push(character);
            }
            character => out.push(character),
        }
    }
}

/// Returns whether the quote just consumed ends its string: something that can follow a string must
/// follow.
fn ends_here(c: &mut Cursor) -> Read<bool> {
    let at = c.at();
    c.spaces();
    let new_line = c.since(at).contains('\n');
    let ends = match c.peek_or_end()? {
        None | Some(b',' | b':' | b'}' | b']' | b')' | b';' | b'`') => true,
        Some(b'"' | b'\'') => new_line,
        Some(b'<') => {
            c.next()?;
            match c.peek_or_end()? {
                None => true,
                Some(byte) => matches!(byte, b'/' | b'|' | 0xEF),
            }
        }
        Some(b'[') => c.take("[/")?,
        Some(_) => false,
    };
    c.go(at);
    Ok(ends)
}

fn escape(c: &mut Cursor, out: &mut String) -> Read<()> {
    match c.next()? {
        'n' => out.push('\n'),
        't' => out.push('\t'),
        'r' => out.push('\r'),
        'b' => out.push('\u{8}'),
        'f' => out.push('\u{c}'),
        escaped @ ('"' | '\'' | '\\' | '/') => out.push(escaped),
        'u' => match unit(c)? {
            Some(high @ 0xD800..=0xDBFF) => out.push(second_half(c, high)?),
            Some(unit) => out.push(char::from_u32(unit).unwrap_or('\u{fffd}')),
            None => out.push_str("\\u"),
        },
        // A line continuation, as in a shell.
        '\n' => out.push_str("\\\n"),
        // Not a JSON escape: a regular expression whose backslash was not doubled.
        other => {
            out.push('\\');
            out.push(other);
        }
    }
    Ok(())
}

fn second_half(c: &mut Cursor, high: u32) -> Read<char> {
    let at = c.at();
    if c.take("\\u")?
        && let Some(low @ 0xDC00..=0xDFFF) = unit(c)?
    {
        return Ok(
            char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
                .unwrap_or('\u{fffd}'),
        );
    }
    c.go(at);
    Ok('\u{fffd}')
}

/// Parses four hexadecimal digits; consumes nothing if there are fewer.
fn unit(c: &mut Cursor) -> Read<Option<u32>> {
    let at = c.at();
    let mut unit = 0;
    for _ in 0..4 {
        let Some(digit) = char::from(c.peek()?).to_digit(16) else {
            c.go(at);
            return Ok(None);
        };
        unit = unit * 16 + digit;
        c.next()?;
    }
    Ok(Some(unit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Value) {
        assert_eq!(
            value(&mut Cursor::new(text, 0, true), 0),
            Ok(expected),
            "{text}"
        );
    }

    #[test]
    fn malformed_json_of_models_is_parsed() {
        check(
            r#"{"a": 1, "b": [true, null,],}"#,
            json!({"a": 1, "b": [true, null]}),
        );
        check(
            "{'a': 'it\\'s', 'b': 'don't', c: True, \"d\": None}",
            json!({"a": "it's", "b": "don't", "c": true, "d": null}),
        );
        check("{\"a\": \"one\ntwo\"}", json!({"a": "one\ntwo"}));
        check(
            r#"{"a": "echo "hi" there", "b": "\d+\.rs"}"#,
            json!({"a": "echo \"hi\" there", "b": "\\d+\\.rs"}),
        );
        check(
            r#"{"a": "é\ud83e\udd80\ud83e"}"#,
            json!({"a": "é🦀\u{fffd}"}),
        );
        check(
            "{\"a\": 1\n \"b\": \"x\"\n \"c\": (1, 2)}",
            json!({"a": 1, "b": "x", "c": [1, 2]}),
        );
        check(r#"{"a": {"b": [1</tool_call>"#, json!({"a": {"b": [1]}}));
        check(r#"{"a": {"b": 1}"#, json!({"a": {"b": 1}}));
        check(
            "{a:<|\"|>x, \"y\"<|\"|>,b:<escape>1<escape>}",
            json!({"a": "x, \"y\"", "b": "1"}),
        );
        check("\"\"\"\na \"b\"\n\"\"\"", json!("a \"b\"\n"));
    }

    #[test]
    fn truncated_or_ambiguous_json_is_refused() {
        let read = |text| value(&mut Cursor::new(text, 0, true), 0);
        for cut in [
            "",
            "{",
            "{\"a",
            "{\"a\": ",
            "{\"a\": \"x",
            "{\"a\": {\"b\": 1",
            "{\"a\" 1}",
            "[1, {\"a\": \"\\u12",
        ] {
            assert_eq!(read(cut), Err(Stop::NeedsMore), "{cut}");
        }
        for no in [
            "x",
            "{1: 2}",
            "1.2.3",
            "{\"a\": yes}",
            "+",
            &"[".repeat(100),
        ] {
            assert_eq!(read(no), Err(Stop::NoMatch), "{no}");
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|n| json!(n)),
            (-1e9..1e9).prop_map(|n: f64| json!(n)),
            "[ -~\n\té<`|/,:{}]{0,12}".prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec(("[ -~]{0,8}", inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn valid_json_is_parsed_exactly(value in json(), pretty in any::<bool>()) {
            let wrapped = json!({ "v": value });
            let text = if pretty { serde_json::to_string_pretty(&wrapped) } else { serde_json::to_string(&wrapped) }.expect("writes");
            let expected: Value = serde_json::from_str(&text).expect("is valid");
            prop_assert_eq!(super::value(&mut Cursor::new(&text, 0, true), 0), Ok(expected));
        }
    }
}
