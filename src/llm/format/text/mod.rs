//! Tool calls in the text of an answer, in whatever way the model was taught to write them.
//!
//! [`Parser`] takes an answer piece by piece and tells content, thoughts and calls as soon as each
//! is sure; [`parse`] takes it whole. Both see the same, however the text is cut. Only names of the
//! given [`Tools`] are calls.
//!
//! Where a call stands decides, and no word around it: one that a mark tells from words counts
//! wherever it stands outside of code, any other, or one in a fence, if it is all of the answer.
//! What looks like a call besides is [`Part::Unclear`].
//!
//! Reading is linear: each family of formats is a function over a [`cursor::Cursor`], which
//! remembers how far it looked, and what was looked at in vain becomes content as a whole. Where
//! more text is needed the same function runs again later, as often as the bytes that came since
//! pay for.
//!
//! Start with [`Parser`], then `openers`, then `tagged`; `family` is what they share, `corpus` what
//! they must understand.

mod bare;
mod call;
mod channel;
mod collector;
#[cfg(test)]
mod corpus;
mod cursor;
#[cfg(test)]
mod cut;
mod elements;
mod escaped;
mod exact;
mod family;
mod fence;
mod hint;
mod json;
mod line;
mod literal;
mod looks_like;
mod markers;
mod nested;
#[cfg(test)]
mod oddities;
mod openers;
mod pairs;
mod parser;
#[cfg(test)]
mod places;
#[cfg(test)]
mod properties;
mod pythonic;
#[cfg(test)]
mod run_on;
mod tagged;
#[cfg(test)]
mod templates;
mod tools;
mod turns;
#[cfg(test)]
mod unknown;
mod unread;
mod value;
mod xml;

pub use call::Call;
pub use collector::Piece;
pub use hint::Hint;
pub use parser::Incomplete;
pub use parser::Parser;
pub use parser::Part;
use serde_json::Value;
pub use tools::Tools;

use crate::message::ToolSpec;
use crate::provider::calls::MAX_ARGUMENTS;

/// Arguments of about this many bytes are those that were cut where a model's answer was taken in.
pub const CUT: usize = MAX_ARGUMENTS - 8;

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    pub content: String,
    pub reasoning: String,
    pub calls: Vec<Call>,
    /// What the text ended in the middle of.
    pub incomplete: Option<Incomplete>,
}

impl Parsed {
    /// Adds what a [`Parser`] told.
    pub fn add(&mut self, piece: Piece) {
        match piece {
            Piece::Content(text) => self.content.push_str(&text),
            Piece::Reasoning(text) => self.reasoning.push_str(&text),
            Piece::Call(call) => self.calls.push(call),
            Piece::Rethought => {
                self.reasoning.push_str(&std::mem::take(&mut self.content));
                self.calls.clear();
            }
            Piece::Headed => {
                let rest = self
                    .content
                    .trim_start()
                    .split_once('\n')
                    .map_or("", |(_, rest)| rest.trim_start());
                self.content = rest.to_owned();
            }
        }
    }

    /// Returns the whole, once the parser told everything. Blanks at the ends belong to the format.
    #[must_use]
    pub fn ended(mut self, incomplete: Option<Incomplete>) -> Self {
        self.content.truncate(self.content.trim_end().len());
        self.reasoning = self.reasoning.trim().to_owned();
        self.incomplete = incomplete;
        self
    }
}

/// Returns whether a text ends with the bare beginning of a call, at the beginning of a line.
/// Within a sentence such a mark is spoken of.
pub fn ends_with_mark(text: &str, incomplete: &Incomplete) -> bool {
    let begun = incomplete.text.trim_end();
    let Some(before) = text
        .trim_end()
        .strip_suffix(begun)
        .filter(|_| incomplete.part == Part::Call)
    else {
        return false;
    };
    let is_at_line = before
        .rsplit('\n')
        .next()
        .is_some_and(|line| line.trim().is_empty());
    is_at_line && openers::begins_with_calls(begun)
}

/// Returns the object that arguments stand for which were written into a string, and that into
/// another, or whose quotes were escaped.
pub fn object_within(arguments: &str) -> Option<String> {
    let value = call::unwritten(arguments, 0)?;
    value.is_object().then(|| exact::write(&value))
}

/// Returns the object that arguments stand for which are no valid JSON, where it can only be meant
/// one way: trailing commas, single quotes and the like. Nothing that was cut off is.
pub fn object_meant(arguments: &str) -> Option<String> {
    let arguments = arguments.trim();
    if arguments.len() >= CUT || !arguments.starts_with('{') || !arguments.ends_with('}') {
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

/// Understands a whole answer.
pub fn parse(text: &str, tools: &Tools, hint: Option<Hint>) -> Parsed {
    let (mut parser, mut parsed) = (Parser::new(tools, hint), Parsed::default());
    parser.feed(text, &mut |piece| parsed.add(piece));
    let incomplete = parser.finish(&mut |piece| parsed.add(piece));
    parsed.ended(incomplete)
}
