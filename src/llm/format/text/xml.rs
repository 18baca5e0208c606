//! Arguments that stand as bare text between tags: Qwen3-Coder, Nemotron, Seed-OSS, `MiniMax`,
//! `DeepSeek` V3.2.
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
use super::nested;
use super::tools::Tools;
use super::value::Tags;
use super::value::is_text;
use super::value::value;

/// What may stand before the names of elements.
const PREFIXES: [&str; 4] = ["", "\u{ff5c}DSML\u{ff5c}", "|DSML|", "antml:"];
/// Longest name of a tool or an argument, in bytes.
const MAX_NAME: usize = 256;

/// Reads `NAME>`, parameters or an object, and `</function>`; `<function=` was passed. `around`
/// ends what is around it, if anything is. Returns whether tags hold its arguments.
pub(super) fn function(
    c: &mut Cursor,
    around: &[&str],
    tools: &Tools,
    found: &mut Found,
) -> Read<bool> {
    let begin = c.at();
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
        let tags = Tags {
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
        // The end of what is around it may be one that the value quotes.
        return Err(Stop::More);
    }
    nested::check(c, begin, &nested::FUNCTION, around)?;
    found.push(
        [Call {
            name,
            arguments: exact::write(&Value::Object(fields)),
        }],
        c.at(),
    );
    Ok(true)
}

/// Goes to the name of the next argument, or behind the call's own end; returns whether there is
/// one more.
///
/// The end of what is around the call ends it too, and so does another call. Anything else behind
/// an argument means that nobody knows where the call ends: half of a value may have held what
/// looked like its end.
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
            Err(Stop::More)
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

/// Reads a name up to `>`, with or without quotes.
fn attribute<'t>(c: &mut Cursor<'t>) -> Read<&'t str> {
    let text = c.run(|byte| !matches!(byte, b'>' | b'<' | b'\n'))?;
    if text.len() > MAX_NAME {
        return Err(Stop::No);
    }
    c.expect(">")?;
    Ok(text.trim().trim_matches(['"', '\'']))
}

/// Returns whether `<invoke name="` or one of its variants is here, where a `<` is.
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

/// Reads `<invoke name="NAME">`, its parameters and `</invoke>`. `around` ends what is around it,
/// if anything is.
pub(super) fn invoke(
    c: &mut Cursor,
    around: &[&str],
    tools: &Tools,
    found: &mut Found,
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
    // MiniCPM's elements may be those of any file.
    let known = tools.only_known();
    let name = family::name(
        attribute(c)?,
        if element == "function" { &known } else { tools },
        found,
    )?;
    found.is_tagged = true;
    // MiniCPM's word for an argument is a short one.
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
        let tags = Tags {
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
    nested::check(
        c,
        begin,
        if element == "invoke" {
            &nested::INVOKE
        } else {
            &nested::FUNCTION
        },
        around,
    )?;
    found.push(
        [Call {
            name,
            arguments: exact::write(&Value::Object(fields)),
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

/// Returns whether an element within a value, by what was read of its name, is the next argument
/// rather than text.
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
