//! Calls in Python syntax: Llama 4, LFM2, Olmo, Gemma's `tool_code`, and the built-in tools of
//! Llama 3.

use serde_json::Map;
use serde_json::Value;

use super::Call;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::json;
use super::long_numbers;
use super::parsed_calls;
use super::parsed_calls::ParsedCalls;
use super::python_literal;
use super::tag_body::is_name;
use super::tools::Tools;

/// Parses `[name(key=value, …)]`.
pub(super) fn list(c: &mut Cursor, tools: &Tools, found: &mut ParsedCalls) -> Read<()> {
    c.expect("[")?;
    loop {
        c.spaces();
        if c.close("]")? {
            found.end = c.at();
            return if found.calls.is_empty() {
                Err(Stop::NoMatch)
            } else {
                Ok(())
            };
        }
        if c.peek()? == b',' && !found.calls.is_empty() {
            c.next()?;
            continue;
        }
        call(c, tools, found)?;
    }
}

/// Parses a value: as Python first, then as models write it.
fn value(c: &mut Cursor) -> Read<Value> {
    c.spaces();
    let begin = c.at();
    match python_literal::strings(c) {
        Ok(text) => Ok(Value::String(text)),
        Err(Stop::NeedsMore) => Err(Stop::NeedsMore),
        Err(Stop::NoMatch) => {
            c.go(begin);
            json::value(c, 1)
        }
    }
}

/// Parses `name(key=value, …)`.
pub(super) fn call(c: &mut Cursor, tools: &Tools, found: &mut ParsedCalls) -> Read<()> {
    let begin = c.at();
    let printed = c.take("print(")?;
    if !printed {
        c.go(begin);
    }
    let word = c.run(is_name)?;
    // Llama 3 calls its built-in tools `name.call(…)`.
    let written = word.strip_suffix(".call").unwrap_or(word);
    if c.peek()? != b'(' {
        return Err(Stop::NoMatch);
    }
    let name = parsed_calls::name(written, tools, found)?;
    c.next()?;
    let mut fields = Map::new();
    let mut n_placed = 0;
    loop {
        c.spaces();
        match c.peek()? {
            b')' => {
                c.next()?;
                break;
            }
            b',' if !fields.is_empty() => {
                c.next()?;
                continue;
            }
            b'*' => {
                c.expect("**")?;
                fields.extend(json::object(c, 1)?);
                continue;
            }
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                let at = c.at();
                let key = c
                    .run(|byte| byte.is_ascii_alphanumeric() || byte == b'_')?
                    .to_owned();
                c.spaces();
                if c.peek()? == b'=' {
                    c.next()?;
                    fields.insert(key, value(c)?);
                    continue;
                }
                c.go(at);
            }
            _ => {}
        }
        let value = value(c)?;
        let key = tools.parameter(&name, n_placed).ok_or(Stop::NoMatch)?;
        n_placed += 1;
        fields.insert(key.to_owned(), value);
    }
    if printed {
        c.spaces();
        c.expect(")")?;
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
