//! Arguments as bare text between tags: Qwen3-Coder, Nemotron, Seed-OSS, `MiniMax`, `DeepSeek`
//! V3.2.
//! `value` defines what a value is, and where it ends.

use serde_json::Map;
use serde_json::Value;

use super::Call;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::long_numbers;
use super::nested_calls;
use super::parsed_calls;
use super::parsed_calls::ParsedCalls;
use super::tools::Tools;
use super::value::ValueTags;
use super::value::is_text;
use super::value::value;

/// Prefixes of element names.
const PREFIXES: [&str; 4] = ["", "\u{ff5c}DSML\u{ff5c}", "|DSML|", "antml:"];
/// Longest name of a tool or an argument, in bytes.
const MAX_NAME: usize = 256;

/// Parses `NAME>`, parameters or an object, and `</function>`; `<function=` is already consumed.
/// `around` holds the closing tags of the enclosing element, if any. Returns whether its arguments
/// are between tags.
pub(super) fn function(
    c: &mut Cursor,
    around: &[&str],
    tools: &Tools,
    found: &mut ParsedCalls,
) -> Read<bool> {
    let begin = c.at();
    let name = parsed_calls::name(attribute(c)?, tools, found)?;
    c.spaces();
    if c.peek_or_end()? == Some(b'{') {
        let arguments = parsed_calls::arguments(c)?;
        let end = c.at();
        found.push([Call { name, arguments }], end);
        c.spaces();
        if c.close("</function>")? {
            found.end = c.at();
        } else {
            c.go(end);
        }
        return Ok(false);
    }
    found.is_tagged = true;
    let ends: Vec<&str> = ["</function>"].iter().chain(around).copied().collect();
    // Seed-OSS writes its values right between the tags, Qwen on lines of their own.
    let is_inline = around.contains(&"</seed:tool_call>");
    let mut fields = Map::new();
    let mut is_ended = true;
    while argument_follows(c, "</function>", "<parameter=", around, !fields.is_empty())? {
        let key = attribute(c)?.to_owned();
        let (opener, closer, end) = (
            "<parameter=".to_owned(),
            "</parameter>".to_owned(),
            "</function>".to_owned(),
        );
        let tags = ValueTags {
            opener,
            closer,
            ends: &ends,
            end,
            keeps_line_end: is_inline && is_text(&key),
        };
        let value = value(c, &tags, |c| {
            is_next_argument(attribute(c), &name, &key, &fields, tools)
        })?;
        is_ended = c.since(begin).ends_with("</parameter>");
        fields.insert(key.clone(), tools.typed(&name, &key, &value));
    }
    if !is_ended && !c.since(begin).ends_with("</function>") {
        // The closing tag of the enclosing element may be one that the value quotes.
        return Err(Stop::NeedsMore);
    }
    nested_calls::check(c, begin, &nested_calls::FUNCTION, around)?;
    found.push(
        [Call {
            name,
            arguments: long_numbers::write(&Value::Object(fields)),
        }],
        c.at(),
    );
    Ok(true)
}

/// Advances to the name of the next argument, or past the call's own closing tag; returns whether
/// there is another argument.
/// The closing tag of the enclosing element ends the call too, and so does another call. With
/// anything else after an argument the end of the call is unknown: half a value may have contained
/// what looked like its end.
fn argument_follows(
    c: &mut Cursor,
    end: &str,
    opener: &str,
    around: &[&str],
    has_some: bool,
) -> Read<bool> {
    c.spaces();
    if c.take(end)? {
        return Ok(false);
    }
    let at = c.at();
    if c.take_any(around)? || has_some && is_next(c)? {
        c.go(at);
        return Ok(false);
    }
    c.go(at);
    if has_some || c.is_cut_within(end) || around.iter().any(|end| c.is_cut_within(end)) {
        return if c.take(opener)? {
            Ok(true)
        } else {
            Err(Stop::NeedsMore)
        };
    }
    c.expect(opener)?;
    Ok(true)
}

/// Returns whether another call begins here.
pub(super) fn is_next(c: &mut Cursor) -> Read<bool> {
    let at = c.at();
    let is_next = c.peek_or_end()? == Some(b'<')
        && (c.take_any(&["<function=", "<tool_call>", "<seed:tool_call>"])? || is_invoke(c)?);
    c.go(at);
    Ok(is_next)
}

/// Parses a name up to `>`, with or without quotes.
fn attribute<'t>(c: &mut Cursor<'t>) -> Read<&'t str> {
    let text = c.run(|byte| !matches!(byte, b'>' | b'<' | b'\n'))?;
    if text.len() > MAX_NAME {
        return Err(Stop::NoMatch);
    }
    c.expect(">")?;
    Ok(text.trim().trim_matches(['"', '\'']))
}

/// Returns whether `<invoke name="` or one of its variants is here, at a `<`.
pub(super) fn is_invoke(c: &mut Cursor) -> Read<bool> {
    let begin = c.at();
    for prefix in PREFIXES {
        c.go(begin + 1);
        if c.take(prefix)? && c.take_any(&["invoke name=", "function name="])? {
            c.go(begin);
            return Ok(true);
        }
    }
    c.go(begin);
    Ok(false)
}

/// Parses `<invoke name="NAME">`, its parameters and `</invoke>`. `around` holds the closing tags
/// of the enclosing element, if any.
pub(super) fn invoke(
    c: &mut Cursor,
    around: &[&str],
    tools: &Tools,
    found: &mut ParsedCalls,
) -> Read<()> {
    c.expect("<")?;
    let prefix = prefix(c)?;
    let element = if c.take("function name=")? {
        "function"
    } else {
        "invoke"
    };
    if element == "invoke" {
        c.expect("invoke name=")?;
    }
    let begin = c.at();
    // MiniCPM's elements may also occur in ordinary files.
    let known = tools.only_known();
    let name = parsed_calls::name(
        attribute(c)?,
        if element == "function" { &known } else { tools },
        found,
    )?;
    found.is_tagged = true;
    // MiniCPM's tag for an argument is short.
    c.spaces();
    let (at, short) = (c.at(), format!("<{prefix}param name="));
    let is_short = c.close(&short)?;
    c.go(at);
    let argument = if is_short { "param" } else { "parameter" };
    let (opener, end) = (
        format!("<{prefix}{argument} name="),
        format!("</{prefix}{element}>"),
    );
    let own = [end.as_str()];
    let mut fields = Map::new();
    while argument_follows(c, &end, &opener, around, !fields.is_empty())? {
        let attributes = c.run(|byte| !matches!(byte, b'>' | b'<' | b'\n'))?;
        c.expect(">")?;
        let key = attributes
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .trim_matches(['"', '\''])
            .to_owned();
        let (opener, closer, end) = (
            opener.clone(),
            format!("</{prefix}{argument}>"),
            end.clone(),
        );
        let tags = ValueTags {
            opener,
            closer,
            ends: &own,
            end,
            keeps_line_end: is_text(&key),
        };
        let value = value(c, &tags, |c| {
            is_next_argument(attribute(c), &name, &key, &fields, tools)
        })?;
        let value = value
            .strip_prefix("<![CDATA[")
            .and_then(|value| value.strip_suffix("]]>"))
            .map_or(value.clone(), str::to_owned);
        let value = if attributes.contains("string=\"true\"") {
            Value::String(value)
        } else {
            tools.typed(&name, &key, &value)
        };
        fields.insert(key, value);
    }
    nested_calls::check(
        c,
        begin,
        if element == "invoke" {
            &nested_calls::INVOKE
        } else {
            &nested_calls::FUNCTION
        },
        around,
    )?;
    found.push(
        [Call {
            name,
            arguments: long_numbers::write(&Value::Object(fields)),
        }],
        c.at(),
    );
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

/// Returns whether an element within a value is the next argument rather than text, by its
/// `attribute`.
fn is_next_argument(
    attribute: Read<&str>,
    tool: &str,
    key: &str,
    fields: &Map<String, Value>,
    tools: &Tools,
) -> Read<bool> {
    let next = match attribute {
        Ok(attributes) => attributes
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .trim_matches(['"', '\'']),
        Err(Stop::NeedsMore) => return Err(Stop::NeedsMore),
        Err(Stop::NoMatch) => return Ok(false),
    };
    Ok(next != key && !fields.contains_key(next) && tools.may_have(tool, next))
}

/// Parses `NAME</name><arguments>{…}</arguments>`; `<name>` is already consumed.
pub(super) fn name_and_arguments(
    c: &mut Cursor,
    tools: &Tools,
    found: &mut ParsedCalls,
) -> Read<()> {
    let name = parsed_calls::name(c.run(|byte| byte != b'<')?, tools, found)?;
    c.expect("</name>")?;
    c.spaces();
    for tag in ["arguments>", "parameters>"] {
        let at = c.at();
        if c.take("<")? && c.take(tag)? {
            let arguments = parsed_calls::arguments(c)?;
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
    Err(Stop::NoMatch)
}
