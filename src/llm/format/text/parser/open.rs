//! What no token marks: fences, code within a line, and calls in the open.

use super::Header;
use super::Parser;
use super::State;
use super::Step;
use crate::format::text::bare;
use crate::format::text::call;
use crate::format::text::cursor::Cursor;
use crate::format::text::cursor::Read;
use crate::format::text::cursor::Stop;
use crate::format::text::family::Found;
use crate::format::text::fence;
use crate::format::text::fence::Certainty;
use crate::format::text::line::MARKS_MAX;
use crate::format::text::markers;
use crate::format::text::openers;

impl Parser {
    /// Reads a fence, or code within a line.
    pub(super) fn fence(&mut self, text: &str, last: bool) -> Step {
        let begin = self.at;
        let mark = text.as_bytes()[begin];
        let mut c = Cursor::new(text, begin, last).flat(self.is_flat);
        let Ok(marks) = c.run_of(MARKS_MAX, |byte| byte == mark) else {
            self.pay(&c);
            return Step::Wait;
        };
        let behind = c.at();
        let may_be = self.line.is_blank() && marks.len() >= 3 && !self.is_closed;
        let mut found = Found::default();
        let result = if may_be {
            fence::read(&mut c, marks, &self.tools, &mut found)
        } else {
            Err(Stop::No)
        };
        self.is_flat |= c.is_unbalanced();
        self.pay(&c);
        if let Some(step) = self.likely(text, result, found, last) {
            return step;
        }
        self.line.code(mark, marks.len());
        self.say(&text[begin..behind]);
        self.go(behind)
    }

    /// Reads a call that no token marks, at the beginning of a line.
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
                self.pay(&c);
                return Step::Wait;
            }
        }
        let mut found = Found::default();
        let result = bare::read(&mut c, &self.tools, &mut found);
        self.pay(&c);
        let seen = c.seen();
        let is_ours = result.is_ok() || last && found.begun.is_some();
        if is_ours && text[self.at..].starts_with('>') {
            self.unhead();
        }
        if let Some(step) = self.likely(text, result, found, last) {
            return step;
        }
        self.plain(text, seen)
    }

    /// Steps over Functionary's header of words for everybody.
    ///
    /// Its template ends with the mark of the first header, so that a text may begin with `all`
    /// alone. Whether that is a header shows only where another follows with its mark, or by the
    /// hint; until then it is a word.
    fn header(&mut self, text: &str, c: &mut Cursor) -> Read<Option<Step>> {
        if bare::everybody(c, ">>>")? {
            self.unhead();
            if !self.line.is_blank() {
                self.say("\n");
            }
            return Ok(Some(self.for_everybody(c.at())));
        }
        let is_hinted = self.hint.is_some_and(|hint| hint.addresses);
        let may_be = self.header == Header::Possible
            && (is_hinted || !self.tools.is_empty())
            && !self.out.has_content()
            && !self.out.has_calls();
        if !may_be || !bare::everybody(c, "")? {
            return Ok(None);
        }
        let is_certain = is_hinted || c.take(markers::CONTENT)?;
        if is_certain {
            return Ok(Some(self.for_everybody(c.at())));
        }
        self.line.addresses();
        let step = self.plain(text, c.at());
        self.header = Header::Said;
        Ok(Some(step))
    }

    /// Begins with words for everybody.
    pub(super) fn for_everybody(&mut self, at: usize) -> Step {
        self.header = Header::Passed;
        self.line.restart();
        self.line.addresses();
        self.go(at)
    }

    /// Takes back that the first line was said: it was a header.
    fn unhead(&mut self) {
        let header = std::mem::replace(&mut self.header, Header::Passed);
        if matches!(header, Header::Said | Header::WithWords) {
            self.out.unhead(header == Header::WithWords);
        }
    }

    /// Settles what may be a call in the open; `None` where it is none.
    fn likely(
        &mut self,
        text: &str,
        result: Read<Certainty>,
        found: Found,
        last: bool,
    ) -> Option<Step> {
        match result {
            Err(Stop::More) if !last => Some(Step::Wait),
            Ok(_) if found.calls.is_empty() => None,
            Ok(certainty) => Some(self.accept(text, found.calls, certainty, found.end)),
            Err(Stop::More) => {
                let rest = &text[self.at..];
                let is_ours = found.begun.is_some()
                    || call::begun_name(rest)
                        .is_some_and(|name| self.tools.resolve(name).is_some());
                // A fence that is not closed may have been cut with the call in it, and goes on in
                // the next answer.
                let is_alone = self.out.is_empty() && behind_fence(rest).is_none_or(str::is_empty);
                if is_ours && found.calls.is_empty() && (found.is_marked || is_alone) {
                    return Some(self.cut_off(text, found.begun));
                }
                // Its end is missing, so nobody knows what else lies within; once is enough.
                self.is_closed = true;
                None
            }
            Err(Stop::No) => None,
        }
    }
}

/// Returns the words behind the fence that a text begins with, or nothing where it begins with none
/// that is closed.
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
