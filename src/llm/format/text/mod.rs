//! Parses tool calls in the text of an answer, in whatever format the model was trained on.
//! [`Parser`] takes an answer piece by piece and emits content, thoughts and calls as soon as each
//! is certain; [`parse`] takes it whole. Both give the same result, however the text is split. Only
//! names of the given [`Tools`] are calls.
//! Position decides whether a call counts, not the words around it: one that a mark distinguishes
//! from words counts anywhere outside of code; any other, or one in a fence, only if it is the
//! whole answer. Whatever else looks like a call is [`IncompletePart::Unclear`].
//! Parsing is linear: each family of formats is a function over a [`cursor::Cursor`], which records
//! how far it looked, and the text of a failed attempt becomes content as a whole. Where more text
//! is needed the same function runs again later, within a budget that grows with the received
//! bytes.
//! Start with [`Parser`], then `openers`, then `tag_body`; `parsed_calls` is what they share,
//! `format_corpus` what they must parse.

mod call;
#[cfg(test)]
mod call_position;
mod channel;
mod code_context;
mod collector;
mod cursor;
mod escaped_json;
#[cfg(test)]
mod family_templates;
mod fence;
#[cfg(test)]
mod foreign_turns;
#[cfg(test)]
mod format_corpus;
mod glm_pairs;
mod hint;
mod json;
mod kimi_minimax;
mod long_numbers;
#[cfg(test)]
mod malformed_calls;
mod markers;
mod nested_calls;
mod openers;
mod parsed_calls;
mod parser;
#[cfg(test)]
mod properties;
mod python_literal;
mod pythonic;
mod suspected_call;
mod tag_body;
mod tools;
#[cfg(test)]
mod truncated_calls;
mod turns;
#[cfg(test)]
mod unknown_tools;
mod unreadable_calls;
mod untagged;
mod value;
mod xml;

pub use call::Call;
pub use collector::Piece;
pub use hint::Hint;
pub use parser::Incomplete;
pub use parser::IncompletePart;
pub use parser::Parser;
use serde_json::Value;
pub use tools::Tools;

use crate::message::ToolSpec;
use crate::provider::calls::MAX_ARGUMENTS;

/// Stored arguments of at least this many bytes were truncated when the model's answer was
/// received.
pub const TRUNCATED_ARGUMENTS: usize = MAX_ARGUMENTS - 8;

/// A parsed answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    pub content: String,
    pub reasoning: String,
    pub calls: Vec<Call>,
    /// The unfinished or unparsed part of the text, if any.
    pub incomplete: Option<Incomplete>,
}

impl Parsed {
    /// Adds a piece emitted by a [`Parser`].
    pub fn add(&mut self, piece: Piece) {
        match piece {
            Piece::Content(text) => self.content.push_str(&text),
            Piece::Reasoning(text) => self.reasoning.push_str(&text),
            Piece::Call(call) => self.calls.push(call),
            Piece::WasThought => {
                self.reasoning.push_str(&std::mem::take(&mut self.content));
                self.calls.clear();
            }
            Piece::WasHeader => {
                let rest = self
                    .content
                    .trim_start()
                    .split_once('\n')
                    .map_or("", |(_, rest)| rest.trim_start());
                self.content = rest.to_owned();
            }
        }
    }

    /// Finishes the answer after the parser's last piece: trims whitespace at both ends, which
    /// belongs to the format.
    #[must_use]
    pub fn ended(mut self, incomplete: Option<Incomplete>) -> Self {
        self.content.truncate(self.content.trim_end().len());
        self.reasoning = self.reasoning.trim().to_owned();
        self.incomplete = incomplete;
        self
    }
}

/// Returns whether a text ends with the bare opening mark of a call, at the beginning of a line.
/// Within a sentence such a mark is only mentioned.
pub fn ends_with_mark(text: &str, incomplete: &Incomplete) -> bool {
    let begun = incomplete.text.trim_end();
    let Some(before) = text
        .trim_end()
        .strip_suffix(begun)
        .filter(|_| incomplete.part == IncompletePart::Call)
    else {
        return false;
    };
    let is_at_line = before
        .rsplit('\n')
        .next()
        .is_some_and(|line| line.trim().is_empty());
    is_at_line && openers::begins_with_calls(begun)
}

/// Returns the object within arguments that were encoded as a string, possibly several times, or
/// whose quotes were escaped.
pub fn unescaped_object(arguments: &str) -> Option<String> {
    let value = call::embedded_value(arguments, 0)?;
    value.is_object().then(|| long_numbers::write(&value))
}

/// Repairs arguments that are not valid JSON, where only one object can be meant: trailing commas,
/// single quotes and the like. Truncated arguments are not repaired.
pub fn repaired_object(arguments: &str) -> Option<String> {
    let arguments = arguments.trim();
    if arguments.len() >= TRUNCATED_ARGUMENTS
        || !arguments.starts_with('{')
        || !arguments.ends_with('}')
    {
        return None;
    }
    let tool = ToolSpec {
        name: "meant".to_owned(),
        description: String::new(),
        parameters: Value::Null,
    };
    let call =
        format!("<tool_call>{{\"name\": \"meant\", \"arguments\": {arguments}}}</tool_call>");
    match parse(&call, &Tools::new([&tool]), None) {
        Parsed {
            calls,
            incomplete: None,
            ..
        } => <[Call; 1]>::try_from(calls)
            .ok()
            .map(|[only]| only.arguments),
        Parsed { .. } => None,
    }
}

/// Parses a whole answer.
pub fn parse(text: &str, tools: &Tools, hint: Option<Hint>) -> Parsed {
    let (mut parser, mut parsed) = (Parser::new(tools, hint), Parsed::default());
    parser.feed(text, &mut |piece| parsed.add(piece));
    let incomplete = parser.finish(&mut |piece| parsed.add(piece));
    parsed.ended(incomplete)
}
