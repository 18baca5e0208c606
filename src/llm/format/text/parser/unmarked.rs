//! Parses what no token marks: fences, inline code, and untagged calls.

use super::FunctionaryHeader;
use super::Parser;
use super::State;
use super::Step;
use crate::format::text::call;
use crate::format::text::code_context::MARKS_MAX;
use crate::format::text::cursor::Cursor;
use crate::format::text::cursor::Read;
use crate::format::text::cursor::Stop;
use crate::format::text::fence;
use crate::format::text::fence::Certainty;
use crate::format::text::markers;
use crate::format::text::openers;
use crate::format::text::parsed_calls::ParsedCalls;
use crate::format::text::untagged;

impl Parser {
    /// Parses a fence, or inline code.
    pub(super) fn fence(&mut self, text: &str, last: bool) -> Step {
        let begin = self.at;
        let mark = text.as_bytes()[begin];
        let mut c = Cursor::new(text, begin, last).flat(self.is_flat);
        let Ok(marks) = c.run_of(MARKS_MAX, |byte| byte == mark) else {
            self.charge(&c);
            return Step::Wait;
        };
        let behind = c.at();
        let may_be = self.line.is_blank() && marks.len() >= 3 && !self.is_closed;
        let mut found = ParsedCalls::default();
        let result = if may_be {
            fence::read(&mut c, marks, &self.tools, &mut found)
        } else {
            Err(Stop::NoMatch)
        };
        self.is_flat |= c.is_unbalanced();
        self.charge(&c);
        if let Some(step) = self.likely(text, result, found, last) {
            return step;
        }
        self.line.code(mark, marks.len());
        self.say(&text[begin..behind]);
        self.go(behind)
    }

    /// Parses an untagged call at the beginning of a line.
    pub(super) fn open(&mut self, text: &str, last: bool) -> Step {
        let mut c = Cursor::new(text, self.at, last);
        if self.may_think && !self.has_thought && !self.out.has_content() {
            for words in openers::THOUGHT_WORDS {
                match c.take(words) {
                    Ok(true) => {
                        self.state = State::Thought(openers::ANSWER_WORDS);
                        self.has_thought = true;
                        return self.go(c.at());
                    }
                    Ok(false) => {}
                    Err(_) => return Step::Wait,
                }
            }
        }
        match self.header(text, &mut c) {
            Ok(None) => {}
            Ok(Some(step)) => return step,
            Err(_) => {
                self.charge(&c);
                return Step::Wait;
            }
        }
        let mut found = ParsedCalls::default();
        let result = untagged::read(&mut c, &self.tools, &mut found);
        self.charge(&c);
        let seen = c.seen();
        let is_ours = result.is_ok() || last && found.begun.is_some();
        if is_ours && text[self.at..].starts_with('>') {
            self.retract_header();
        }
        if let Some(step) = self.likely(text, result, found, last) {
            return step;
        }
        self.plain(text, seen)
    }

    /// Skips Functionary's header for text addressed to all.
    /// Its template ends with the mark of the first header, so that a text may begin with `all`
    /// alone. Whether that is a header shows only where another header with its mark follows, or by
    /// the hint; until then it is content.
    fn header(&mut self, text: &str, c: &mut Cursor) -> Read<Option<Step>> {
        if untagged::skip_all_header(c, ">>>")? {
            self.retract_header();
            if !self.line.is_blank() {
                self.say("\n");
            }
            return Ok(Some(self.take_all_header(c.at())));
        }
        let is_hinted = self.hint.is_some_and(|hint| hint.addresses);
        let may_be = self.header == FunctionaryHeader::Possible
            && (is_hinted || !self.tools.is_empty())
            && !self.out.has_content()
            && !self.out.has_calls();
        if !may_be || !untagged::skip_all_header(c, "")? {
            return Ok(None);
        }
        let is_certain = is_hinted || c.take(markers::CONTENT)?;
        if is_certain {
            return Ok(Some(self.take_all_header(c.at())));
        }
        self.line.addresses();
        let step = self.plain(text, c.at());
        self.header = FunctionaryHeader::Said;
        Ok(Some(step))
    }

    /// Begins text addressed to all.
    pub(super) fn take_all_header(&mut self, at: usize) -> Step {
        self.header = FunctionaryHeader::Passed;
        self.line.restart();
        self.line.addresses();
        self.go(at)
    }

    /// Reclassifies the first line, already emitted as content, as a header.
    fn retract_header(&mut self) {
        let header = std::mem::replace(&mut self.header, FunctionaryHeader::Passed);
        if matches!(
            header,
            FunctionaryHeader::Said | FunctionaryHeader::WithWords
        ) {
            self.out
                .retract_header(header == FunctionaryHeader::WithWords);
        }
    }

    /// Decides about a possible untagged call; `None` where it is none.
    fn likely(
        &mut self,
        text: &str,
        result: Read<Certainty>,
        found: ParsedCalls,
        last: bool,
    ) -> Option<Step> {
        match result {
            Err(Stop::NeedsMore) if !last => Some(Step::Wait),
            Ok(_) if found.calls.is_empty() => None,
            Ok(certainty) => Some(self.accept(text, found.calls, certainty, found.end)),
            Err(Stop::NeedsMore) => {
                let rest = &text[self.at..];
                let is_ours = found.begun.is_some()
                    || call::partial_name(rest)
                        .is_some_and(|name| self.tools.resolve(name).is_some());
                // An unclosed fence may have been truncated together with the call in it, and
                // continues in the next answer.
                let is_alone = self.out.is_empty() && behind_fence(rest).is_none_or(str::is_empty);
                if is_ours && found.calls.is_empty() && (found.is_marked || is_alone) {
                    return Some(self.cut_off(text, found.begun));
                }
                // Its end is missing, so what else lies within it is unknown; one such search is
                // enough.
                self.is_closed = true;
                None
            }
            Err(Stop::NoMatch) => None,
        }
    }
}

/// Returns the text after the fence that a text begins with; `None` where it begins with no closed
/// fence.
fn behind_fence(text: &str) -> Option<&str> {
    let mark = text
        .chars()
        .next()
        .filter(|mark| matches!(mark, '`' | '~'))?;
    let marks = &text[..text.len() - text.trim_start_matches(mark).len()];
    let (_, behind) = text[marks.len()..].split_once(&format!("\n{marks}"))?;
    behind
        .lines()
        .next()
        .is_none_or(|line| line.trim().is_empty())
        .then(|| behind.trim())
}
