//! What all parsers share: their results and the arguments they all read.

use serde_json::Value;

use super::call;
use super::call::Call;
use super::call::CallForm;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::json;
use super::long_numbers;
use super::tools::Tools;

/// The calls found in a block of text.
#[derive(Debug, Default)]
pub(super) struct ParsedCalls {
    pub(super) calls: Vec<Call>,
    /// Where the last complete call ends.
    pub(super) end: usize,
    /// The tool of a call that is still incomplete.
    pub(super) begun: Option<String>,
    /// Its arguments are between tags, so only its own closing tag shows where it ends.
    pub(super) is_tagged: bool,
    /// Its form has a distinctive mark, though not a token.
    pub(super) is_marked: bool,
}

impl ParsedCalls {
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

/// Records the tool that a call names; `NoMatch` where no such tool may be called.
pub(super) fn name(written: &str, tools: &Tools, found: &mut ParsedCalls) -> Read<String> {
    let name = tools.called(written).ok_or(Stop::NoMatch)?;
    found.begun = Some(name.to_owned());
    Ok(name.to_owned())
}

/// Parses arguments as a JSON object and returns them; valid ones byte for byte.
pub(super) fn arguments(c: &mut Cursor) -> Read<String> {
    c.spaces();
    let fenced = c.take("```json")? || c.take("```")?;
    c.spaces();
    let begin = c.at();
    // Depth 1: at the end of the text it is unknown whether more arguments would have followed.
    let value = json::value(c, 1)?;
    let text = c.since(begin);
    let arguments =
        if text.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
            text.to_owned()
        } else {
            long_numbers::write(&call::arguments(&value).ok_or(Stop::NoMatch)?)
        };
    // Nothing encloses arguments, so these brackets are unbalanced.
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

/// Skips unbalanced closing brackets after a complete call: models miscount them.
pub(super) fn skip_extra_brackets(c: &mut Cursor, found: &mut ParsedCalls) -> Read<()> {
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

/// Parses an object, or a list of them, that contains name and arguments.
pub(super) fn objects(
    c: &mut Cursor,
    form: CallForm,
    tools: &Tools,
    found: &mut ParsedCalls,
) -> Read<()> {
    let begin = c.at();
    let value = json::value(c, 0)?;
    let value = match value {
        Value::String(text) => call::embedded_value(&text, 0).ok_or(Stop::NoMatch)?,
        other => other,
    };
    let text = c.since(begin);
    // The end of the text closed it: without arguments it is unknown whether some would have
    // followed.
    let is_cut =
        text.starts_with(['{', '[']) && !text.ends_with(['}', ']']) && c.peek_or_end()?.is_none();
    let calls = call::calls(
        text,
        &value,
        if is_cut { CallForm::Cut } else { form },
        tools,
    );
    if is_cut && calls.is_empty() {
        return Err(Stop::NeedsMore);
    }
    found.push(calls, c.at());
    Ok(())
}
