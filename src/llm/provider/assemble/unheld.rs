//! Answers that were to be one object of ours, and that no schema held to it: they are read like
//! those of a model that is told of its tools by text, so that calls of any form are found there,
//! the words around them stay, and the same questions are asked.

use super::Assembler;
use super::Reading;
use crate::error::Error;
use crate::format::constrained;
use crate::format::constrained::ConstrainedAnswer;
use crate::format::text;
use crate::stream::Update;

impl Assembler {
    /// Returns all that was said so far where words begin an answer that was to be an object; from
    /// then on its calls are held back as in text.
    pub(super) fn begins_unheld(&mut self) -> Option<String> {
        let is_object = matches!(self.reading, Reading::Json { .. } | Reading::Held);
        // A mark is more likely the dress of an object than a word.
        let has_prose = |c: char| !matches!(c, '{' | '`' | '[' | '<');
        if !is_object || self.parser.is_some() || !self.text.trim_start().starts_with(has_prose) {
            return None;
        }
        self.parser = Some(self.text_parser(&self.tools));
        Some(self.text.clone())
    }

    /// Takes the whole answer as text if it is no object of ours; returns whether it was to be one.
    pub(super) fn take_unheld(
        &mut self,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Result<bool, Error> {
        let with_calls = match self.reading {
            Reading::Json { with_calls } => with_calls,
            Reading::Held => true,
            Reading::Native { .. } | Reading::Text { .. } | Reading::Schema => return Ok(false),
        };
        if !self.calls.is_empty() || self.is_object() {
            return Ok(true);
        }
        self.reading = Reading::Text { with_calls };
        if self.parser.is_none() {
            let mut parser = self.text_parser(&self.tools);
            let mut pieces = Vec::new();
            parser.feed(&self.text, &mut |piece| pieces.push(piece));
            self.parser = Some(parser);
            self.add_pieces(pieces, on)?;
        }
        Ok(true)
    }

    pub(super) fn text_parser(&self, tools: &text::Tools) -> text::Parser {
        let mut parser = text::Parser::new(tools, None);
        if self.tells_thoughts {
            parser.without_thoughts();
        }
        if self.keeps_blanks {
            parser.keep_whitespace();
        }
        parser
    }

    /// Returns whether the answer is an object of ours, or one that is only told of within words.
    fn is_object(&self) -> bool {
        let is_single_object = constrained::is_single_object(&self.text, self.is_cut());
        let has_answer = || matches!(constrained::parse(&self.text), ConstrainedAnswer::Call { said, .. } if !said.is_empty());
        if self.text.trim_start().starts_with('{') && (is_single_object || has_answer()) {
            return true;
        }
        // Of a tool that does not exist no text tells; its result says so.
        let is_unknown = || matches!(constrained::parse(&self.text), ConstrainedAnswer::Call { name, .. } if !self.tools.has(&name));
        if !is_single_object && !is_unknown() {
            return false;
        }
        // A value of a call in another form may be such an object too.
        let parsed = text::parse(&self.text, &self.tools, None);
        parsed.calls.is_empty()
    }

    /// Takes an object of ours that stands behind a thought which its template had begun.
    pub(super) fn take_behind_thought(&mut self, told: Reading) {
        if self.reading == told || self.parsed.reasoning.is_empty() || !self.parsed.calls.is_empty()
        {
            return;
        }
        if self.parsed.content.trim_start().starts_with('{')
            && constrained::is_single_object(&self.parsed.content, false)
        {
            self.reading = told;
            self.text = std::mem::take(&mut self.parsed.content);
            self.thinking.push_str(self.parsed.reasoning.trim());
        }
    }
}
