//! Answers that violate a requested schema: they are parsed like those of text mode, so that calls
//! in any form are found, the text around them is kept, and the same questions are asked.

use super::Assembler;
use super::Reading;
use crate::error::Error;
use crate::format::constrained;
use crate::format::constrained::ConstrainedAnswer;
use crate::format::text;
use crate::stream::Update;

impl Assembler {
    /// Returns everything received so far if an answer that should be an object begins with words;
    /// from then on its calls are hidden as in text mode.
    pub(super) fn begins_unheld(&mut self) -> Option<String> {
        let is_object = matches!(self.reading, Reading::Json { .. } | Reading::Held);
        // A mark more likely wraps an object than begins words.
        let has_prose = |c: char| !matches!(c, '{' | '`' | '[' | '<');
        if !is_object || self.parser.is_some() || !self.text.trim_start().starts_with(has_prose) {
            return None;
        }
        self.parser = Some(self.text_parser(&self.tools));
        Some(self.text.clone())
    }

    /// Parses the whole answer as text if it is no object in our form; returns whether it should
    /// have been one.
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

    /// Returns whether the answer is an object in our form, rather than one mentioned within text.
    fn is_object(&self) -> bool {
        let is_single_object = constrained::is_single_object(&self.text, self.is_cut());
        let has_answer = || matches!(constrained::parse(&self.text), ConstrainedAnswer::Call { said, .. } if !said.is_empty());
        if self.text.trim_start().starts_with('{') && (is_single_object || has_answer()) {
            return true;
        }
        // The text parser does not know an unknown tool; its result reports the error.
        let is_unknown = || matches!(constrained::parse(&self.text), ConstrainedAnswer::Call { name, .. } if !self.tools.has(&name));
        if !is_single_object && !is_unknown() {
            return false;
        }
        // A value of a call in another form may be such an object too.
        let parsed = text::parse(&self.text, &self.tools, None);
        parsed.calls.is_empty()
    }

    /// Takes an object after a thought that its template had begun.
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
