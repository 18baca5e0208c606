//! Arguments between marks that never occur in ordinary text: Kimi K3 and `MiniMax` M3.

use serde_json::Map;
use serde_json::Value;

use super::Call;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::long_numbers;
use super::parsed_calls;
use super::parsed_calls::ParsedCalls;
use super::tools::Tools;

/// Precedes every tag of `MiniMax` M3.
pub(super) const MINIMAX: &str = "]<]minimax[>[";
/// The same with the `<` of a tag.
const MINIMAX_TAG: &str = "]<]minimax[>[<";
/// Longest name of a tool or an argument with its attributes, in bytes.
const MAX_NAME: usize = 256;
/// Deeper values are not arguments of any tool.
const MAX_DEPTH: usize = 16;

/// Parses Kimi's `NAME" index="1"<|sep|>`, arguments with the types given there, and
/// `<|close|>call<|sep|>`; `<|open|>call tool="` is already consumed.
pub(super) fn kimi(c: &mut Cursor, tools: &Tools, found: &mut ParsedCalls) -> Read<()> {
    let word = within(c, b'"')?;
    let name = parsed_calls::name(word, tools, found)?;
    within(c, b'<')?;
    c.expect("<|sep|>")?;
    let mut fields = Map::new();
    loop {
        c.spaces();
        if c.take("<|close|>call<|sep|>")? {
            break;
        }
        c.expect("<|open|>argument key=\"")?;
        let key = within(c, b'"')?;
        let attributes = within(c, b'<')?;
        c.expect("<|sep|>")?;
        let text = c.until("<|close|>argument<|sep|>")?;
        let is_text = attributes.contains("type=\"string\"");
        let value = if is_text {
            Value::String(text.to_owned())
        } else {
            tools.typed(&name, key, text)
        };
        fields.insert(key.to_owned(), value);
    }
    found.push(
        [Call {
            name,
            arguments: long_numbers::write(&Value::Object(fields)),
        }],
        c.at(),
    );
    Ok(())
}

/// Parses `MiniMax`'s `"NAME">`, arguments whose tags are their names, and the end of the call;
/// `]<]minimax[>[<invoke name=` is already consumed.
pub(super) fn minimax(c: &mut Cursor, tools: &Tools, found: &mut ParsedCalls) -> Read<()> {
    let word = within(c, b'>')?;
    let name = parsed_calls::name(word, tools, found)?;
    c.expect(">")?;
    let mut fields = Map::new();
    loop {
        c.spaces();
        if c.take("]<]minimax[>[</invoke>")? {
            break;
        }
        let key = tag(c)?;
        let is_text = tools.typed(&name, key, "[]").is_string();
        let value = value(c, key, is_text, &|text| tools.typed(&name, key, text), 0)?;
        fields.insert(key.to_owned(), value);
    }
    found.push(
        [Call {
            name,
            arguments: long_numbers::write(&Value::Object(fields)),
        }],
        c.at(),
    );
    Ok(())
}

/// Parses the value after a tag, and its closing tag: text, or elements, where those named `item`
/// form a list.
fn value(
    c: &mut Cursor,
    key: &str,
    is_text: bool,
    typed: &dyn Fn(&str) -> Value,
    depth: usize,
) -> Read<Value> {
    let closer = format!("{MINIMAX}</{key}>");
    let begin = c.at();
    c.spaces();
    let has_elements = !is_text && c.take(MINIMAX_TAG)? && c.peek()? != b'/';
    c.go(begin);
    if !has_elements {
        return c.until(&closer).map(typed);
    }
    if depth > MAX_DEPTH {
        return Err(Stop::NoMatch);
    }
    let (mut items, mut fields) = (Vec::new(), Map::new());
    loop {
        c.spaces();
        if c.take(&closer)? {
            return Ok(if items.is_empty() {
                Value::Object(fields)
            } else {
                Value::Array(items)
            });
        }
        let key = tag(c)?;
        let inner = value(c, key, false, &guess_value, depth + 1)?;
        if key == "item" {
            items.push(inner);
        } else {
            fields.insert(key.to_owned(), inner);
        }
    }
}

/// Guesses the type of a text without a schema.
fn guess_value(text: &str) -> Value {
    long_numbers::number(text)
        .or_else(|| {
            serde_json::from_str(text)
                .ok()
                .filter(|value: &Value| !value.is_string())
        })
        .unwrap_or_else(|| text.into())
}

/// Parses a tag and returns its name.
fn tag<'t>(c: &mut Cursor<'t>) -> Read<&'t str> {
    c.expect(MINIMAX_TAG)?;
    let name = within(c, b'>')?;
    c.expect(">")?;
    Ok(name)
}

/// Returns what precedes a byte that must come on the same line; needs more text where it ends
/// before.
fn within<'t>(c: &mut Cursor<'t>, sign: u8) -> Read<&'t str> {
    let text = c.run(|byte| byte != sign && byte != b'\n')?;
    match c.peek()? {
        byte if byte == sign && text.len() <= MAX_NAME => Ok(text),
        _ => Err(Stop::NoMatch),
    }
}
