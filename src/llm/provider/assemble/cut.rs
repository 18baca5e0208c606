//! What is left of an answer that was cut: half a call is none, and the model is told why.

use super::Assembler;
use crate::llm::format::answer::Reader;
use crate::llm::format::answer::Seen;
use crate::llm::format::prompted;
use crate::llm::stream::Finish;

impl Assembler {
    /// Returns whether something else than the model ended the answer.
    pub(super) fn is_cut(&self) -> bool {
        matches!(self.finish, Some(Finish::Length | Finish::ContentFilter))
    }

    /// Takes the calls out that the server reports and that the end of the answer cut; returns what to tell the model of them.
    pub(super) fn take_half_call(&mut self) -> Option<String> {
        if !self.is_cut() {
            return None;
        }
        let name = self.calls.take_half()?;
        Some(prompted::cut_off(Some(&name).filter(|name| !name.is_empty()).map(String::as_str), self.finish))
    }
}

/// Returns what to tell a model whose one JSON object has no end.
pub(super) fn half_object(json: &str, finish: Option<Finish>, problem: String) -> String {
    if finish != Some(Finish::Length) {
        return problem;
    }
    let mut tool = None;
    Reader::default().feed(json, |seen| {
        if let Seen::Tool(name) = seen {
            tool = Some(name);
        }
    });
    prompted::cut_off(tool.as_deref(), finish)
}
