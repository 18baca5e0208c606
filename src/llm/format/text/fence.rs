//! Calls in code fences.
//!
//! A fence counts only as a whole: from its first line to its last it must be calls of known tools.
//! Even so it may be an example, so it is a call only where it is all of the answer (`Collector`
//! decides).

use super::call::Form;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::family;
use super::family::Found;
use super::openers;
use super::pythonic;
use super::tools::Tools;

/// How sure it is that something is a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    /// A mark says so.
    Certain,
    /// Only if the message is nothing else.
    Likely,
}

/// Words behind the fence that say what it holds, which may be Python as well.
const CALLS: [&str; 6] = [
    "python",
    "tool_call",
    "tool_calls",
    "tool_code",
    "function_call",
    "tool",
];
const ANY: [&str; 6] = ["", "json", "json5", "jsonc", "xml", "plaintext"];

/// Reads a fence whose `n` marks were passed.
pub(super) fn read(
    c: &mut Cursor,
    mark: &str,
    tools: &Tools,
    found: &mut Found,
) -> Read<Certainty> {
    let tools = &tools.only_known();
    let word = c.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_')?;
    let is_python = CALLS.contains(&word);
    if !is_python && !ANY.contains(&word) {
        return Err(Stop::No);
    }
    c.run(|byte| matches!(byte, b' ' | b'\t' | b'\r'))?;
    c.expect("\n")?;
    loop {
        c.spaces();
        let has_some = !found.calls.is_empty();
        if has_some && (c.close(mark)? || c.peek_or_end()?.is_none()) {
            found.end = c.at();
            return Ok(Certainty::Likely);
        }
        let before = found.calls.len();
        let begin = c.at();
        match c.peek()? {
            b',' | b';' | b'}' | b']' if has_some => {
                c.next()?;
                continue;
            }
            b'{' => family::objects(c, Form::Open, tools, found)?,
            b'[' if !c.take("[TOOL_CALL")? => {
                c.next()?;
                c.spaces();
                let is_json = c.peek()? == b'{';
                c.go(begin);
                if is_json {
                    family::objects(c, Form::Open, tools, found)?;
                } else {
                    pythonic::list(c, tools, found)?;
                }
            }
            b'<' | b'[' => {
                c.go(begin);
                let opener = openers::find(c)?.ok_or(Stop::No)?;
                openers::read(c, opener, begin, tools, found)?;
            }
            byte if is_python && byte.is_ascii_alphabetic() => pythonic::call(c, tools, found)?,
            _ => return Err(Stop::No),
        }
        if found.calls.len() == before {
            return Err(Stop::No);
        }
    }
}
