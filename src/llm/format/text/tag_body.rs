//! Parses what stands between a tag for calls and its closing tag: Hermes and Qwen, `OpenMono`,
//! Orangutan, Granite, Llama's `<|python_tag|>`, Command-R, Nemotron, `MiniMax`, LFM2, GLM, Gemma
//! and others use one of a few forms there.
//! The first characters decide which one. A tag followed by anything else is only mentioned.

use super::call::CallForm;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::glm_pairs;
use super::markers;
use super::parsed_calls;
use super::parsed_calls::ParsedCalls;
use super::pythonic;
use super::tools::Tools;
use super::xml;

/// Parses calls until one of `closers`, or until something that is not a call.
pub(super) fn read(
    c: &mut Cursor,
    closers: &[&str],
    tools: &Tools,
    found: &mut ParsedCalls,
) -> Read<()> {
    loop {
        c.spaces();
        if c.close_any(closers)? {
            if found.calls.is_empty() {
                return Err(Stop::NoMatch);
            }
            found.end = c.at();
            return Ok(());
        }
        let before = found.calls.len();
        match c.peek_or_end()? {
            None if before > 0 => return Ok(()),
            None => return Err(Stop::NeedsMore),
            Some(b',' | b';' | b'}' | b']') if before > 0 => {
                c.next()?;
                continue;
            }
            Some(b'{' | b'"') => parsed_calls::objects(c, CallForm::Marked, tools, found)?,
            Some(b'[') => list(c, tools, found)?,
            // Hunyuan marks each call of a list again.
            Some(b'<') if closers == ["</tool_calls>"] && c.take("<tool_call>")? => {
                read(c, &["</tool_call>"], tools, found)?;
            }
            Some(b'<') => {
                let is_tagged = element(c, closers, tools, found)?;
                if is_tagged && let Err(stop) = is_followed(c, closers) {
                    // Half a value may have contained a closing tag like this call's.
                    (found.begun, found.is_tagged) =
                        (found.calls.pop().map(|call| call.name), true);
                    return Err(stop);
                }
            }
            Some(b'`') => {
                // A fence within the tag.
                c.expect("```")?;
                c.run(|byte| byte.is_ascii_alphabetic() || byte == b'_')?;
                let inner = read(c, &["```"], tools, found);
                match inner {
                    Ok(()) => continue,
                    stop => return stop,
                }
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                named(c, closers, tools, found)?;
            }
            Some(_) => return Err(Stop::NoMatch),
        }
        if found.calls.len() == before && before == 0 {
            return Err(Stop::NoMatch);
        }
    }
}

/// Parses a list of objects, or of calls in Python syntax.
fn list(c: &mut Cursor, tools: &Tools, found: &mut ParsedCalls) -> Read<()> {
    let begin = c.at();
    c.next()?;
    c.spaces();
    let first = c.peek()?;
    c.go(begin);
    if first == b'{' || first == b']' {
        parsed_calls::objects(c, CallForm::Marked, tools, found)
    } else {
        pythonic::list(c, tools, found)
    }
}

/// Parses an element: `<function=…>`, `<invoke …>`, or `<name>…</name>`; returns whether its
/// arguments are between tags.
fn element(c: &mut Cursor, closers: &[&str], tools: &Tools, found: &mut ParsedCalls) -> Read<bool> {
    let begin = c.at();
    if [
        "<function=",
        "<invoke name=",
        "<\u{ff5c}DSML\u{ff5c}invoke name=",
        "<|DSML|invoke name=",
    ]
    .iter()
    .any(|token| c.is_cut_within(token))
    {
        return Err(Stop::NeedsMore);
    }
    if c.take("<function=")? {
        return xml::function(c, closers, tools, found);
    }
    if xml::is_invoke(c)? {
        return xml::invoke(c, closers, tools, found).map(|()| true);
    }
    c.go(begin);
    if c.take("<name>")? {
        xml::name_and_arguments(c, tools, found)?;
    } else {
        markers::read(c, tools, found)?;
    }
    Ok(false)
}

/// Checks that the enclosing closing tag, or another call, follows.
fn is_followed(c: &mut Cursor, closers: &[&str]) -> Read<()> {
    let at = c.at();
    c.spaces();
    // Models mix up the order of closing tags.
    while c.take_any(&["</parameter>", "</function>"])? {
        c.spaces();
    }
    let is_followed = c.peek_or_end()? == Some(b'<') && (c.take_any(closers)? || xml::is_next(c)?);
    c.go(at);
    if is_followed {
        Ok(())
    } else {
        Err(Stop::NeedsMore)
    }
}

/// Parses what begins with a name: GLM's pairs, Python, Gemma's `call:`, or a name before an
/// object.
fn named(c: &mut Cursor, closers: &[&str], tools: &Tools, found: &mut ParsedCalls) -> Read<()> {
    let begin = c.at();
    let gemma = c.take("call:")?;
    let word = c.run(is_name)?;
    let next = c.peek_or_end()?;
    if next == Some(b'(') {
        c.go(begin);
        return pythonic::call(c, tools, found);
    }
    let name = match parsed_calls::name(word, tools, found) {
        // The name may be incomplete.
        Err(_) if next.is_none() => return Err(Stop::NeedsMore),
        other => other?,
    };
    c.spaces();
    if c.take("<tool_sep>")? {
        c.spaces();
    }
    let at = c.at();
    if gemma || matches!(c.peek_or_end()?, Some(b'{' | b'`')) {
        let arguments = parsed_calls::arguments(c)?;
        found.push([super::Call { name, arguments }], c.at());
        return Ok(());
    }
    // A bare word between the tags is a call only of a tool that is known to take no arguments.
    if tools.resolve(&name).is_none() && !c.take("<arg_key>")? {
        return Err(Stop::NoMatch);
    }
    c.go(at);
    glm_pairs::pairs(c, &name, closers, tools, found)
}

pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}
