//! The headers of gpt-oss ("Harmony"): `<|start|>assistant<|channel|>commentary to=functions.NAME
//! <|constrain|>json<|message|>`.

use serde_json::json;

use super::Call;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::parsed_calls;
use super::parsed_calls::ParsedCalls;
use super::tools::Tools;

/// Longest header, in bytes.
const MAX_HEADER: usize = 512;
const END: &str = "<|message|>";

/// What follows a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeaderTarget {
    Thought,
    Call,
    /// The answer, text before a call, or an unknown channel.
    Answer,
}

/// Any of these ends a thought of gpt-oss.
pub(super) const THOUGHT_ENDS: &[&str] = &["<|end|>", "<|return|>", "<|call|>"];

/// Skips from `begin` to the end of a call whose body is not an object, and returns arguments that
/// contain it.
fn without_object(c: &mut Cursor, begin: usize) -> Read<String> {
    c.go(begin);
    loop {
        let at = c.at();
        if c.peek_or_end()?.is_none() || c.take_any(THOUGHT_ENDS)? {
            c.go(at);
            return Ok(json!({ "input": c.since(begin).trim_end() }).to_string());
        }
        c.next()?;
    }
}

/// Parses a header to its end, and the arguments after it where it addresses a tool.
pub(super) fn read(c: &mut Cursor, tools: &Tools, found: &mut ParsedCalls) -> Read<HeaderTarget> {
    let begin = c.at();
    while !c.take(END)? {
        let byte = c.peek()?;
        if c.at() - begin > MAX_HEADER || byte == b'{' {
            return Err(Stop::NoMatch);
        }
        c.next()?;
    }
    let header = c.since(begin);
    let header = &header[..header.len() - END.len()];
    let words = |text: &'static str| {
        header
            .split([' ', '<', '>', '|', '\n'])
            .find_map(|word| word.strip_prefix(text))
    };
    if let Some(recipient) =
        words("to=").filter(|name| !name.is_empty() && *name != "assistant" && *name != "all")
    {
        let name = parsed_calls::name(recipient, tools, found)?;
        c.spaces();
        let end = c.at();
        // Some models write nothing at all for a tool without arguments.
        let arguments = if c.take_any(THOUGHT_ENDS)? {
            c.go(end);
            "{}".to_owned()
        } else {
            match parsed_calls::arguments(c) {
                // Not an object of arguments, for example the code for gpt-oss's own `python`: its
                // name is enough.
                Err(Stop::NoMatch) if !tools.has(&name) => without_object(c, end)?,
                arguments => arguments?,
            }
        };
        found.push([Call { name, arguments }], c.at());
        return Ok(HeaderTarget::Call);
    }
    Ok(if words("analysis").is_some() {
        HeaderTarget::Thought
    } else {
        HeaderTarget::Answer
    })
}
