//! Calls in places where neither server nor parser looks, and calls of which nobody knows whether they were meant.

use std::collections::HashSet;

use super::Assembler;
use crate::format::text;
use crate::format::unknown;
use crate::provider::calls::Calls;
use crate::provider::calls::Piece;
use crate::stream::Reply;
use crate::stream::Unsure;
use podbay_event::ToolCall;

/// Takes calls out of a place where neither server nor parser looks: a thought that led to nothing else.
///
/// Returns, too, whether nobody knows if they were meant: words stand between those of a thought, as between two ways that it weighs.
pub(super) fn elsewhere(reply: &mut Reply, tools: &text::Tools, marked_only: bool) -> (Vec<text::Call>, bool) {
    let found = if reply.text.trim().is_empty() { in_thought(reply, tools, marked_only) } else { None };
    found.unwrap_or_default()
}

impl Assembler {
    /// Takes calls of tools that do not exist, which are calls all the same, so that their results can say so; returns whether there are any.
    pub(super) fn take_unknown(&mut self) -> bool {
        if !self.with_calls() || !self.calls.is_empty() {
            return false;
        }
        let parser = self.text_parser(&self.tools.and_any()).marked_only(self.is_understood);
        let Some(read) = unknown::read(&self.text, parser, &self.parsed, &self.tools) else { return false };
        (self.parsed, self.before_calls) = (read.parsed, read.n_before);
        true
    }

    /// Takes the calls of a thought that led to nothing else, where tools are told by text or a schema; returns whether there were any.
    pub(super) fn take_calls_of_thought(&self, reply: &mut Reply, is_taken: impl Fn(&str) -> bool) -> bool {
        if self.is_cut() {
            return false;
        }
        let Some((calls, weighs)) = in_thought(reply, &self.tools, false) else { return false };
        (reply.calls, reply.fault) = numbered(calls, is_taken);
        if weighs {
            ask_about_thought(reply);
        }
        true
    }
}

/// Takes the calls that a thought ends with, and says whether it weighs them.
fn in_thought(reply: &mut Reply, tools: &text::Tools, marked_only: bool) -> Option<(Vec<text::Call>, bool)> {
    let Thought { calls, rest, weighs } = thought(&reply.thinking, tools, marked_only)?;
    reply.source = Some(without(&reply.thinking, &rest));
    reply.thinking = rest;
    Some((calls, weighs))
}

/// Has the calls of a thought asked about: what the answer is to say is only there.
pub(super) fn ask_about_thought(reply: &mut Reply) {
    reply.text = reply.source.take().unwrap_or_default();
    reply.unsure = Some(Unsure { calls: std::mem::take(&mut reply.calls), ..Unsure::default() });
    (reply.recovered, reply.fault) = (false, None);
}

/// What a thought ends with.
struct Thought {
    calls: Vec<text::Call>,
    rest: String,
    /// Words stand between the calls.
    weighs: bool,
}

/// Returns the lines of a text that are none of these words.
fn without(text: &str, words: &str) -> String {
    let words: HashSet<&str> = words.lines().map(str::trim).collect();
    text.lines().filter(|line| !words.contains(line.trim())).collect::<Vec<_>>().join("\n")
}

/// Returns all calls of an answer, whatever follows them, and the words around them.
pub(super) fn unsure(parsed: &text::Parsed, is_taken: impl Fn(&str) -> bool) -> Unsure {
    let mentioned = parsed.mentions.iter().flat_map(|mention| &mention.calls);
    let (calls, _) = numbered(parsed.calls.iter().chain(mentioned).cloned().collect(), is_taken);
    let text = parsed.mentions.iter().fold(parsed.content.clone(), |text, mention| text.replacen(&mention.raw, "", 1));
    Unsure { calls, text: text.trim().to_owned(), is_shown: false }
}

/// Returns the calls that a thought ends with, and the rest of it.
fn thought(thinking: &str, tools: &text::Tools, marked_only: bool) -> Option<Thought> {
    if thinking.trim().is_empty() || tools.is_empty() {
        return None;
    }
    let (mut parsed, mut goes_on, mut weighs) = (text::Parsed::default(), false, false);
    let mut parser = text::Parser::new(tools, None).marked_only(marked_only);
    let mut take = |piece: text::Piece| {
        let is_call = matches!(piece, text::Piece::Call(_));
        weighs |= is_call && goes_on;
        goes_on = !is_call && (goes_on || !parsed.calls.is_empty() && is_said(&piece));
        parsed.add(piece);
    };
    parser.feed(thinking, &mut take);
    let incomplete = parser.finish(&mut take);
    let parsed = parsed.ended(incomplete);
    let rest = [parsed.reasoning, parsed.content].join("\n").trim().to_owned();
    (!parsed.calls.is_empty() && !goes_on && parsed.incomplete.is_none()).then_some(Thought { calls: parsed.calls, rest, weighs })
}

fn is_said(piece: &text::Piece) -> bool {
    matches!(piece, text::Piece::Content(text) | text::Piece::Reasoning(text) if !text.trim().is_empty())
}

/// Gives each call an id that no other call of the conversation has.
pub(super) fn numbered(found: Vec<text::Call>, is_taken: impl Fn(&str) -> bool) -> (Vec<ToolCall>, Option<String>) {
    let mut calls = Calls::default();
    for (call, index) in found.into_iter().zip(0..) {
        calls.take(Piece { index: Some(index), id: None, name: Some(call.name), arguments: call.arguments.into() });
    }
    calls.finish(false, is_taken)
}
