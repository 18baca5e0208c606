//! The headers of gpt-oss ("Harmony"): `<|start|>assistant<|channel|>commentary to=functions.NAME
//! <|constrain|>json<|message|>`.

use serde_json::json;

use super::Call;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::family;
use super::family::Found;
use super::tools::Tools;

/// Longest header, in bytes.
const MAX_HEADER: usize = 512;
const END: &str = "<|message|>";

/// What follows a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Follows {
    Thought,
    Call,
    /// The answer, words before a call, or of no known kind.
    Answer,
}

/// A thought of gpt-oss ends with any of these.
pub(super) const THOUGHT_ENDS: &[&str] = &["<|end|>", "<|return|>", "<|call|>"];

/// Steps over what stands from `begin` to the end of a call that is no object, and returns
/// arguments which hold it.
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

/// Reads a header to its end, and the arguments behind it where it addresses a tool.
pub(super) fn read(c: &mut Cursor, tools: &Tools, found: &mut Found) -> Read<Follows> {
    let begin = c.at();
    while !c.take(END)? {
        let byte = c.peek()?;
        if c.at() - begin > MAX_HEADER || byte == b'{' {
            return Err(Stop::No);
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
        let name = family::name(recipient, tools, found)?;
        c.spaces();
        let end = c.at();
        // Some write nothing at all where a tool wants nothing.
        let arguments = if c.take_any(THOUGHT_ENDS)? {
            c.go(end);
            "{}".to_owned()
        } else {
            match family::arguments(c) {
                // What has no arguments of ours at all, as the code for gpt-oss's own `python`: its
                // name says enough.
                Err(Stop::No) if !tools.has(&name) => without_object(c, end)?,
                arguments => arguments?,
            }
        };
        found.push([Call { name, arguments }], c.at());
        return Ok(Follows::Call);
    }
    Ok(if words("analysis").is_some() {
        Follows::Thought
    } else {
        Follows::Answer
    })
}
