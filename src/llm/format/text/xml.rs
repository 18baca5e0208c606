//! Arguments that stand as bare text between tags: Qwen3-Coder, Nemotron, Seed-OSS, `MiniMax`, GLM, `DeepSeek` V3.2.
//!
//! A value goes to its own closing tag. Models forget that tag, so a line that begins with the next element ends a value as well.

use serde_json::Map;
use serde_json::Value;

use super::Call;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::family;
use super::family::Found;
use super::tools::Tools;

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
        c.expect("<parameter=")?;
        let key = attribute(c)?.to_owned();
        let value = value(c, "", &["<parameter=", "</function>", "</tool_call>", "</seed:tool_call>"])?;
        fields.insert(key.clone(), tools.typed(&name, &key, &value));
    }
    found.push([Call { name, arguments: Value::Object(fields).to_string() }], c.at());
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
        let value = value(c, prefix, &["<parameter name=", "</invoke>"])?;
        let value = if attributes.contains("string=\"true\"") { Value::String(value) } else { tools.typed(&name, &key, &value) };
        fields.insert(key, value);
    }
    found.push([Call { name, arguments: Value::Object(fields).to_string() }], c.at());
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

/// Reads the text of a parameter; one line end after the opening tag and one before the closing tag belong to the tags.
fn value(c: &mut Cursor, prefix: &str, next: &[&str]) -> Read<String> {
    let begin = c.at();
    // Only at the beginning of a line: within one it is more likely what the value is about.
    let mut is_line_start = false;
    loop {
        let at = c.at();
        match c.peek()? {
            b'<' => {
                let text = c.since(begin);
                if c.take("</")? && c.take(prefix)? && c.close("parameter>")? {
                    return Ok(trimmed(text).to_owned());
                }
                c.go(at);
                if is_line_start && c.close_any(next)? {
                    c.go(at);
                    return Ok(trimmed(text.trim_end_matches([' ', '\t'])).to_owned());
                }
                c.go(at + 1);
                is_line_start = false;
            }
            byte => {
                c.next()?;
                is_line_start = byte == b'\n' || is_line_start && matches!(byte, b' ' | b'\t');
            }
        }
    }
}

fn trimmed(text: &str) -> &str {
    let text = text.strip_prefix('\n').unwrap_or(text);
    text.strip_suffix('\n').unwrap_or(text)
}

/// Reads GLM's `<arg_key>…</arg_key><arg_value>…</arg_value>` pairs behind a name, up to one of `closers`.
pub(super) fn pairs(c: &mut Cursor, name: &str, closers: &[&str], tools: &Tools, found: &mut Found) -> Read<()> {
    let mut fields = Map::new();
    loop {
        c.spaces();
        let at = c.at();
        if c.close_any(closers)? {
            c.go(at);
            break;
        }
        c.expect("<arg_key>")?;
        let key = c.until("</arg_key>")?.trim().to_owned();
        c.spaces();
        c.expect("<arg_value>")?;
        let text = c.until("</arg_value>")?;
        fields.insert(key.clone(), tools.typed(name, &key, trimmed(text)));
    }
    found.push([Call { name: name.to_owned(), arguments: Value::Object(fields).to_string() }], c.at());
    Ok(())
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
