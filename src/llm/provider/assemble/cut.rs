//! What is left of an answer that was cut: half a call is none, and the model is told why.

use super::Assembler;
use super::end::is_sure;
use crate::format::json_answer::AnswerPiece;
use crate::format::json_answer::JsonAnswerReader;
use crate::format::prompted;
use crate::format::text;
use crate::stream::Finish;
use podbay_event::HalfCall;

impl Assembler {
    /// Returns whether something else than the model ended the answer.
    pub(super) fn is_cut(&self) -> bool {
        matches!(self.finish, Some(Finish::Length | Finish::ContentFilter))
    }

    /// Takes the calls out that the server reports and that the end of the answer cut; returns what
    /// there is of the last one's arguments, and what to tell the model.
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

    /// Looks for one in the words of a model whose server holds its answers to no object of ours.
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

/// Returns the call in the text that the most tokens cut, and what was said before it.
pub(super) fn half(
    parsed: &text::Parsed,
    incomplete: &text::Incomplete,
    finish: Option<Finish>,
) -> Option<HalfCall> {
    let is_half = finish == Some(Finish::Length) && incomplete.part == text::IncompletePart::Call;
    // What stands in the content too is no end of the answer.
    let is_last = is_half && !parsed.content.contains(&incomplete.text);
    is_last.then(|| HalfCall {
        before: parsed.content.clone(),
        begun: incomplete.text.clone(),
        is_reported: false,
    })
}

/// Returns the one JSON object that the most tokens cut, in which a call began.
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

/// Returns what to tell a model whose one JSON object has no end.
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
