//! What all families share: what they know, and what they found.

use serde_json::Value;

use super::call;
use super::call::Call;
use super::call::Form;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::exact;
use super::json;
use super::tools::Tools;

/// What a block of text turned out to hold.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) calls: Vec<Call>,
    /// Where the last whole call ends.
    pub(super) end: usize,
    /// The tool of a call that has begun.
    pub(super) begun: Option<String>,
    /// Its arguments stand between tags, so that nobody knows where it ends but by its own end.
    pub(super) is_tagged: bool,
    /// Its form has a mark of its own, though no token.
    pub(super) is_marked: bool,
}

impl Found {
    pub(super) fn push(&mut self, calls: impl IntoIterator<Item = Call>, end: usize) {
        let before = self.calls.len();
        self.calls.extend(calls);
        if self.calls.len() > before {
            self.end = end;
            self.begun = None;
            self.is_tagged = false;
        }
    }
}

/// Notes the tool that a call names; without one that may be called this is no call.
pub(super) fn name(written: &str, tools: &Tools, found: &mut Found) -> Read<String> {
    let name = tools.called(written).ok_or(Stop::No)?;
    found.begun = Some(name.to_owned());
    Ok(name.to_owned())
}

/// Reads arguments as a JSON object and returns them; valid ones byte for byte.
pub(super) fn arguments(c: &mut Cursor) -> Read<String> {
    c.spaces();
    let fenced = c.take("```json")? || c.take("```")?;
    c.spaces();
    let begin = c.at();
    // Depth 1: at the end of the text nobody knows whether more arguments would have come.
    let value = json::value(c, 1)?;
    let text = c.since(begin);
    let arguments =
        if text.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
            text.to_owned()
        } else {
            exact::write(&call::arguments(&value).ok_or(Stop::No)?)
        };
    // Nothing encloses arguments, so these brackets open nothing.
    c.run(|byte| byte == b'}')?;
    if fenced {
        let at = c.at();
        c.spaces();
        if !c.close("```")? {
            c.go(at);
        }
    }
    Ok(arguments)
}

/// Steps over brackets behind a whole call that open nothing: models lose count of them.
pub(super) fn superfluous(c: &mut Cursor, found: &mut Found) -> Read<()> {
    if found.calls.is_empty() || found.end != c.at() {
        return Ok(());
    }
    let at = c.at();
    c.spaces();
    if c.run(|byte| matches!(byte, b'}' | b']'))?.is_empty() {
        c.go(at);
    } else {
        found.end = c.at();
    }
    Ok(())
}

/// Reads an object, or a list of them, that holds name and arguments.
pub(super) fn objects(c: &mut Cursor, form: Form, tools: &Tools, found: &mut Found) -> Read<()> {
    let begin = c.at();
    let value = json::value(c, 0)?;
    let value = match value {
        Value::String(text) => call::unwritten(&text, 0).ok_or(Stop::No)?,
        other => other,
    };
    let text = c.since(begin);
    // The end of the text closed it: without arguments nobody knows whether some would have come.
    let is_cut =
        text.starts_with(['{', '[']) && !text.ends_with(['}', ']']) && c.peek_or_end()?.is_none();
    let calls = call::calls(text, &value, if is_cut { Form::Cut } else { form }, tools);
    if is_cut && calls.is_empty() {
        return Err(Stop::More);
    }
    found.push(calls, c.at());
    Ok(())
}
