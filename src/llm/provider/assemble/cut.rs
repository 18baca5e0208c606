//! Handles a truncated answer: an incomplete call is no call, and the model is told why.

use super::Assembler;
use super::end::is_sure;
use crate::format::json_answer::AnswerPiece;
use crate::format::json_answer::JsonAnswerReader;
use crate::format::prompted;
use crate::format::text;
use crate::stream::Finish;
use podbay_event::HalfCall;

impl Assembler {
    /// Returns whether something other than the model ended the answer.
    pub(super) fn is_cut(&self) -> bool {
        matches!(self.finish, Some(Finish::Length | Finish::ContentFilter))
    }

    /// Removes the server's calls that the end of the answer truncated; returns the arguments of
    /// the last one as far as they go, and the message for the model.
    pub(super) fn take_half_call(&mut self) -> Option<(String, String)> {
        if !self.is_cut() {
            return None;
        }
        let (name, arguments) = self.calls.take_half()?;
        Some((
            arguments,
            prompted::cut_off(
                Some(&name)
                    .filter(|name| !name.is_empty())
                    .map(String::as_str),
                self.finish,
            ),
        ))
    }

    /// Looks for one in the text of a model whose server does not enforce the schema.
    pub(super) fn half_in_prose(&self, words: &str) -> Option<HalfCall> {
        if self.finish != Some(Finish::Length) {
            return None;
        }
        let parsed = text::parse(words, &self.tools, None);
        let incomplete = parsed
            .incomplete
            .as_ref()
            .filter(|incomplete| is_sure(incomplete, words))?;
        half(&parsed, incomplete, self.finish)
    }
}

/// Returns the call in the text that the token limit truncated, and the text before it.
pub(super) fn half(
    parsed: &text::Parsed,
    incomplete: &text::Incomplete,
    finish: Option<Finish>,
) -> Option<HalfCall> {
    let is_half = finish == Some(Finish::Length) && incomplete.part == text::IncompletePart::Call;
    // What is part of the content too is not the end of the answer.
    let is_last = is_half && !parsed.content.contains(&incomplete.text);
    is_last.then(|| HalfCall {
        before: parsed.content.clone(),
        begun: incomplete.text.clone(),
        is_reported: false,
    })
}

/// Returns the call in a single JSON object that the token limit truncated.
pub(super) fn half_of_object(json: &str, finish: Option<Finish>) -> Option<HalfCall> {
    let begun = json
        .find('{')
        .filter(|_| finish == Some(Finish::Length))
        .map(|at| json[at..].to_owned())?;
    Some(HalfCall {
        before: String::new(),
        begun,
        is_reported: true,
    })
}

/// Returns the message for a model whose single JSON object is unterminated.
pub(super) fn half_object(json: &str, finish: Option<Finish>, problem: String) -> String {
    if finish != Some(Finish::Length) {
        return problem;
    }
    let mut tool = None;
    JsonAnswerReader::default().feed(json, |seen| {
        if let AnswerPiece::Tool(name) = seen {
            tool = Some(name);
        }
    });
    prompted::cut_off(tool.as_deref(), finish)
}
