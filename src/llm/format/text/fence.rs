//! Calls in code fences.
//! A fence counts only as a whole: from its first line to its last it must consist of calls of
//! known tools. It may still be an example, so it is a call only where it is the whole answer
//! (`Collector` decides).

use super::call::CallForm;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::openers;
use super::parsed_calls;
use super::parsed_calls::ParsedCalls;
use super::pythonic;
use super::tools::Tools;

/// How certain it is that something is a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    /// A mark says so.
    Certain,
    /// Only if the message is nothing else.
    Likely,
}

/// Info strings of a fence that announce calls, which may be Python as well.
const CALLS: [&str; 6] = [
    "python",
    "tool_call",
    "tool_calls",
    "tool_code",
    "function_call",
    "tool",
];
const ANY: [&str; 6] = ["", "json", "json5", "jsonc", "xml", "plaintext"];

/// Parses a fence whose `n` opening marks are already consumed.
pub(super) fn read(
    c: &mut Cursor,
    mark: &str,
    tools: &Tools,
    found: &mut ParsedCalls,
) -> Read<Certainty> {
    let tools = &tools.only_known();
    let word = c.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_')?;
    let is_python = CALLS.contains(&word);
    if !is_python && !ANY.contains(&word) {
        return Err(Stop::NoMatch);
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
            b'{' => parsed_calls::objects(c, CallForm::Open, tools, found)?,
            b'[' if !c.take("[TOOL_CALL")? => {
                c.next()?;
                c.spaces();
                let is_json = c.peek()? == b'{';
                c.go(begin);
                if is_json {
                    parsed_calls::objects(c, CallForm::Open, tools, found)?;
                } else {
                    pythonic::list(c, tools, found)?;
                }
            }
            b'<' | b'[' => {
                c.go(begin);
                let opener = openers::find(c)?.ok_or(Stop::NoMatch)?;
                openers::read(c, opener, begin, tools, found)?;
            }
            byte if is_python && byte.is_ascii_alphabetic() => pythonic::call(c, tools, found)?,
            _ => return Err(Stop::NoMatch),
        }
        if found.calls.len() == before {
            return Err(Stop::NoMatch);
        }
    }
}
