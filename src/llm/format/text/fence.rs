//! Calls in code fences.
//!
//! A fence counts only as a whole: from its first line to its last it must be calls of known tools. Even so it may be an example, so it
//! is a call only where the rest of the message has none (`Parser` decides).

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
    Certain,
    /// Only if the message has no certain one.
    Likely,
    /// The same, and only if the words before do not give it to a person: it is a block of Python.
    Program,
}

/// Words behind the fence that say what it holds.
const CALLS: [&str; 5] = ["tool_call", "tool_calls", "tool_code", "function_call", "tool"];
const ANY: [&str; 6] = ["", "json", "json5", "jsonc", "xml", "plaintext"];
const PYTHON: &str = "python";

/// Reads a fence whose `n` marks were passed.
pub(super) fn read(c: &mut Cursor, mark: &str, tools: &Tools, found: &mut Found) -> Read<Certainty> {
    let tools = &tools.only_known();
    let word = c.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_')?;
    let certainty = if CALLS.contains(&word) {
        Certainty::Certain
    } else if word == PYTHON {
        Certainty::Program
    } else if ANY.contains(&word) {
        Certainty::Likely
    } else {
        return Err(Stop::No);
    };
    c.run(|byte| matches!(byte, b' ' | b'\t' | b'\r'))?;
    c.expect("\n")?;
    let is_python = matches!(certainty, Certainty::Certain | Certainty::Program);
    loop {
        c.spaces();
        let has_some = !found.calls.is_empty();
        if has_some && (c.close(mark)? || c.peek_or_end()?.is_none()) {
            found.end = c.at();
            return Ok(certainty);
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
                if is_json { family::objects(c, Form::Open, tools, found)? } else { pythonic::list(c, tools, found)? }
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
