//! Tool calls in the text of an answer, in whatever way the model was taught to write them.
//!
//! [`Parser`] takes an answer piece by piece and tells content, thoughts and calls as soon as each is sure; [`parse`] takes it whole.
//! Both see the same, however the text is cut. Only names of the given [`Tools`] are calls.
//!
//! Reading is linear: each family of formats is a function over a [`cursor::Cursor`], which remembers how far it looked, and what was
//! looked at in vain becomes content as a whole. Where more text is needed the same function runs again later, as often as the bytes
//! that came since pay for.
//!
//! Start with [`Parser`], then `openers`, then `tagged`; `family` is what they share, `corpus` what they must understand.

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
mod example;
mod family;
mod fence;
mod hint;
mod json;
mod line;
mod literal;
mod markers;
mod nested;
#[cfg(test)]
mod oddities;
mod openers;
mod pairs;
mod parser;
mod phrases;
#[cfg(test)]
mod places;
#[cfg(test)]
mod properties;
mod pythonic;
#[cfg(test)]
mod run_on;
mod shaped;
mod tagged;
#[cfg(test)]
mod templates;
mod tools;
mod trailing;
mod turns;
#[cfg(test)]
mod unknown;
mod unread;
mod value;
mod within;
mod xml;

pub use call::Call;
pub use collector::Mention;
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
    /// Calls that stand in the content, as words go on behind them in the same line.
    pub mentions: Vec<Mention>,
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
            Piece::Mention(mention) => self.mentions.push(mention),
            Piece::Rethought => self.reasoning.push_str(&std::mem::take(&mut self.content)),
            Piece::Headed => {
                let rest = self.content.trim_start().split_once('\n').map_or("", |(_, rest)| rest.trim_start());
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

/// Returns how many bytes were said before the calls so far, where another one follows `content`: words that lead on to it from the one before say
/// nothing against either.
pub fn before_call(content: &str, n_before: Option<usize>) -> usize {
    let between = n_before.map(|n| (n, content.get(n..).unwrap_or_default()));
    between.filter(|(_, words)| !example::Before::leads_on(words)).map_or(content.len(), |(n, _)| n)
}

/// Returns whether words follow calls, before which `n_before` bytes were said: nobody knows whether such a call was meant.
pub fn goes_on(parsed: &Parsed, n_before: Option<usize>) -> bool {
    n_before.is_some_and(|n| !parsed.content.get(n..).unwrap_or_default().trim().is_empty())
}

/// Returns whether a text ends with the bare beginning of a call, at the beginning of a line and behind no words that show it. Within a sentence
/// such a mark is spoken of.
pub fn ends_with_mark(text: &str, incomplete: &Incomplete) -> bool {
    let begun = incomplete.text.trim_end();
    let Some(before) = text.trim_end().strip_suffix(begun).filter(|_| incomplete.part == Part::Call) else { return false };
    let is_at_line = before.rsplit('\n').next().is_some_and(|line| line.trim().is_empty());
    // Behind words without an end it is what they speak of: "The token is".
    let words = before.trim_end();
    let is_ended = words.is_empty() || words.ends_with(['.', '!', '?', '\u{2026}']);
    is_at_line && is_ended && openers::begins_with_calls(begun) && !only_shows(before)
}

/// Returns whether the words before an object say that it is shown to somebody, and is no call.
pub fn only_shows(before: &str) -> bool {
    example::Before::only_shows(before)
}

/// Returns the object that arguments stand for which were written into a string, and that into another, or whose quotes were escaped.
pub fn object_within(arguments: &str) -> Option<String> {
    let value = call::unwritten(arguments, 0)?;
    value.is_object().then(|| exact::write(&value))
}

/// Returns the object that arguments stand for which are no valid JSON, where it can only be meant one way: trailing commas, single quotes
/// and the like. Nothing that was cut off is.
pub fn object_meant(arguments: &str) -> Option<String> {
    let arguments = arguments.trim();
    if arguments.len() >= CUT || !arguments.starts_with('{') || !arguments.ends_with('}') {
        return None;
    }
    let tool = ToolSpec { name: "meant".to_owned(), description: String::new(), parameters: Value::Null };
    let call = format!("<tool_call>{{\"name\": \"meant\", \"arguments\": {arguments}}}</tool_call>");
    match parse(&call, &Tools::new([&tool]), None) {
        Parsed { calls, incomplete: None, .. } => <[Call; 1]>::try_from(calls).ok().map(|[only]| only.arguments),
        Parsed { .. } => None,
    }
}

/// Understands a whole answer.
pub fn parse(text: &str, tools: &Tools, hint: Option<Hint>) -> Parsed {
    parse_by(Parser::new(tools, hint), text)
}

/// The same where only a tag or a token makes a call.
pub fn parse_marked(text: &str, tools: &Tools) -> Parsed {
    parse_by(Parser::new(tools, None).marked_only(true), text)
}

fn parse_by(mut parser: Parser, text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    parser.feed(text, &mut |piece| parsed.add(piece));
    let incomplete = parser.finish(&mut |piece| parsed.add(piece));
    parsed.ended(incomplete)
}
