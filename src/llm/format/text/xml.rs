//! Arguments that stand as bare text between tags: Qwen3-Coder, Nemotron, Seed-OSS, `MiniMax`, `DeepSeek` V3.2.
//!
//! What a value is, and where it ends, is said in `value`.

use serde_json::Map;
use serde_json::Value;

use super::Call;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::exact;
use super::family;
use super::family::Found;
use super::tools::Tools;
use super::value::AROUND;
use super::value::Tags;
use super::value::value;

/// What may stand before the names of elements.
const PREFIXES: [&str; 3] = ["", "\u{ff5c}DSML\u{ff5c}", "antml:"];
/// Longest name of a tool or an argument, in bytes.
const MAX_NAME: usize = 256;

/// Reads `NAME>`, parameters or an object, and `</function>`; `<function=` was passed.
pub(super) fn function(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    let name = family::name(attribute(c)?, tools, found)?;
    c.spaces();
    if c.peek_or_end()? == Some(b'{') {
        let arguments = family::arguments(c)?;
        let end = c.at();
        found.push([Call { name, arguments }], end);
        c.spaces();
        if c.close("</function>")? {
            found.end = c.at();
        } else {
            c.go(end);
        }
        return Ok(());
    }
    let mut fields = Map::new();
    loop {
        c.spaces();
        if c.close("</function>")? {
            break;
        }
        let at = c.at();
        if c.take("</")? {
            // The element around it ends, and this one with it.
            c.go(at);
            break;
        }
        if !fields.is_empty() && c.close_any(&AROUND)? {
            c.go(at);
            break;
        }
        c.expect("<parameter=")?;
        let key = attribute(c)?.to_owned();
        let tags = Tags {
            opener: "<parameter=".to_owned(),
            closer: "</parameter>".to_owned(),
            ends: &["</function>", "</tool_call>", "</seed:tool_call>"],
            end: "</function>".to_owned(),
        };
        let value = value(c, &tags, |c| is_next(attribute(c), &name, &key, &fields, tools))?;
        fields.insert(key.clone(), tools.typed(&name, &key, &value));
    }
    found.push([Call { name, arguments: exact::write(&Value::Object(fields)) }], c.at());
    Ok(())
}

/// Reads a name up to `>`, with or without quotes.
fn attribute<'t>(c: &mut Cursor<'t>) -> Read<&'t str> {
    let text = c.run(|byte| !matches!(byte, b'>' | b'<' | b'\n'))?;
    if text.len() > MAX_NAME {
        return Err(Stop::No);
    }
    c.expect(">")?;
    Ok(text.trim().trim_matches(['"', '\'']))
}

/// Returns whether `<invoke name="` or one of its variants is here.
pub(super) fn is_invoke(c: &mut Cursor) -> Read<bool> {
    let begin = c.at();
    for prefix in PREFIXES {
        c.go(begin + 1);
        if c.take(prefix)? && c.take("invoke name=")? {
            c.go(begin);
            return Ok(true);
        }
    }
    c.go(begin);
    Ok(false)
}

/// Reads `<invoke name="NAME">`, its parameters and `</invoke>`.
pub(super) fn invoke(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    c.expect("<")?;
    let prefix = prefix(c)?;
    c.expect("invoke name=")?;
    let name = family::name(attribute(c)?, tools, found)?;
    let mut fields = Map::new();
    loop {
        c.spaces();
        let at = c.at();
        if !fields.is_empty() && c.close_any(&AROUND)? {
            c.go(at);
            break;
        }
        c.expect("<")?;
        if c.take("/")? {
            let at = c.at();
            if !(c.take(prefix)? && c.close("invoke>")?) {
                c.go(at - 2);
            }
            break;
        }
        c.expect(prefix)?;
        c.expect("parameter name=")?;
        let attributes = c.run(|byte| !matches!(byte, b'>' | b'<' | b'\n'))?;
        c.expect(">")?;
        let key = attributes.split_whitespace().next().unwrap_or_default().trim_matches(['"', '\'']).to_owned();
        let tags = Tags {
            opener: format!("<{prefix}parameter name="),
            closer: format!("</{prefix}parameter>"),
            ends: &["</invoke>"],
            end: format!("</{prefix}invoke>"),
        };
        let value = value(c, &tags, |c| is_next(attribute(c), &name, &key, &fields, tools))?;
        let value = if attributes.contains("string=\"true\"") { Value::String(value) } else { tools.typed(&name, &key, &value) };
        fields.insert(key, value);
    }
    found.push([Call { name, arguments: exact::write(&Value::Object(fields)) }], c.at());
    Ok(())
}

fn prefix(c: &mut Cursor) -> Read<&'static str> {
    for prefix in &PREFIXES[1..] {
        if c.take(prefix)? {
            return Ok(prefix);
        }
    }
    Ok("")
}

/// Returns whether an element within a value, by what was read of its name, is the next argument rather than text.
fn is_next(attribute: Read<&str>, tool: &str, key: &str, fields: &Map<String, Value>, tools: &Tools) -> Read<bool> {
    let next = match attribute {
        Ok(attributes) => attributes.split_whitespace().next().unwrap_or_default().trim_matches(['"', '\'']),
        Err(Stop::More) => return Err(Stop::More),
        Err(Stop::No) => return Ok(false),
    };
    Ok(next != key && !fields.contains_key(next) && tools.may_have(tool, next))
}

/// Reads `NAME</name><arguments>{…}</arguments>`; `<name>` was passed.
pub(super) fn name_and_arguments(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<()> {
    let name = family::name(c.run(|byte| byte != b'<')?, tools, found)?;
    c.expect("</name>")?;
    c.spaces();
    for tag in ["arguments>", "parameters>"] {
        let at = c.at();
        if c.take("<")? && c.take(tag)? {
            let arguments = family::arguments(c)?;
            found.push([Call { name, arguments }], c.at());
            let end = c.at();
            c.spaces();
            if c.close("</arguments>")? || c.close("</parameters>")? {
                found.end = c.at();
            } else {
                c.go(end);
            }
            return Ok(());
        }
        c.go(at);
    }
    Err(Stop::No)
}
