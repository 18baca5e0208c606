//! Finds calls where neither server nor parser looks.

use super::Assembler;
use crate::format::text;
use crate::format::unknown_tool;
use crate::provider::calls::Calls;
use crate::provider::calls::Piece;
use crate::stream::Reply;
use podbay_event::ToolCall;

impl Assembler {
    /// Takes calls of unknown tools, which count as calls so that their results can report the
    /// error; returns whether there are any.
    pub(super) fn take_unknown(&mut self) -> bool {
        if !self.with_calls() || !self.calls.is_empty() {
            return false;
        }
        let parser = self.text_parser(&self.tools.and_any());
        let Some(parsed) = unknown_tool::read(&self.text, parser, &self.parsed, &self.tools) else {
            return false;
        };
        self.parsed = parsed;
        true
    }

    /// Takes the calls of a thought that nothing follows; returns whether there were any.
    pub(super) fn take_calls_of_thought(
        &self,
        reply: &mut Reply,
        is_taken: impl Fn(&str) -> bool,
    ) -> bool {
        if self.is_cut() || !reply.text.trim().is_empty() {
            return false;
        }
        let Some((calls, rest)) = in_thought(&reply.thinking, &self.tools) else {
            return false;
        };
        reply.thinking = rest;
        (reply.calls, reply.fault) = numbered(calls, is_taken);
        true
    }
}

/// Returns the calls at the end of a thought, and the rest of it.
fn in_thought(thinking: &str, tools: &text::Tools) -> Option<(Vec<text::Call>, String)> {
    if thinking.trim().is_empty() || tools.is_empty() {
        return None;
    }
    let parsed = text::parse(&format!("<think>{thinking}"), tools, None);
    let rest = [parsed.reasoning, parsed.content]
        .join("\n")
        .trim()
        .to_owned();
    (!parsed.calls.is_empty() && parsed.incomplete.is_none()).then_some((parsed.calls, rest))
}

/// Gives each call an id that is unique in the conversation.
pub(super) fn numbered(
    found: Vec<text::Call>,
    is_taken: impl Fn(&str) -> bool,
) -> (Vec<ToolCall>, Option<String>) {
    let mut calls = Calls::default();
    for (call, index) in found.into_iter().zip(0..) {
        calls.take(Piece {
            index: Some(index),
            id: None,
            name: Some(call.name),
            arguments: call.arguments.into(),
        });
    }
    calls.finish(false, is_taken)
}
