//! Tells apart `<think>…</think>` at the beginning of an answer, for servers that leave it in the text.
//!
//! Only at the beginning: a model that writes *about* the tag later on must not lose its words. And where a thought holds another beginning,
//! what stands behind the first end waits for a second one: only that tells a thought within a thought from a word about the tag.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
/// How much waits so, in bytes.
const MAX_HELD: usize = 64 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(in crate::llm) enum Part {
    Text(String),
    Thinking(String),
}

#[derive(Debug, Default)]
pub(in crate::llm) struct Splitter {
    state: State,
    /// What may still become a tag, or space that may turn out to surround one; at most a few bytes beyond blanks.
    held: String,
    /// Beginnings within the thought that have no end yet.
    n_open: usize,
    /// How much of what is held has no end in it.
    searched: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    Thinking,
    /// Behind an end that may be that of a thought within the thought.
    Between,
    /// Behind the closing tag, before the first word.
    Gap,
    Text,
}

impl Splitter {
    pub(in crate::llm) fn feed(&mut self, piece: &str, mut on: impl FnMut(Part)) {
        if self.state == State::Text {
            return emit(piece.to_owned(), Part::Text, &mut on);
        }
        self.held.push_str(piece);
        loop {
            match self.state {
                State::Start => {
                    let trimmed = self.held.trim_start();
                    if let Some(rest) = trimmed.strip_prefix(OPEN) {
                        self.held = rest.to_owned();
                        self.state = State::Thinking;
                    } else if OPEN.starts_with(trimmed) && self.held.len() < 256 {
                        return;
                    } else {
                        self.state = State::Text;
                    }
                }
                State::Thinking => {
                    let close = self.held.find(CLOSE);
                    if let Some(at) = self.held.find(OPEN).filter(|at| close.is_none_or(|close| *at < close)) {
                        self.n_open += 1;
                        let rest = self.held.split_off(at + OPEN.len());
                        emit(std::mem::replace(&mut self.held, rest), Part::Thinking, &mut on);
                    } else if let Some(at) = close {
                        self.end_thought(at, &mut on);
                    } else {
                        let begins = |tag: &str, n: usize| tag.get(..n).is_some_and(|begin| self.held.ends_with(begin));
                        let kept = (1..CLOSE.len()).rev().find(|&n| begins(CLOSE, n) || n < OPEN.len() && begins(OPEN, n)).unwrap_or(0);
                        let rest = self.held.split_off(self.held.len() - kept);
                        return emit(std::mem::replace(&mut self.held, rest), Part::Thinking, &mut on);
                    }
                }
                State::Between => {
                    let from = self.held.floor_char_boundary(self.searched.saturating_sub(CLOSE.len()));
                    if let Some(at) = self.held[from..].find(CLOSE) {
                        self.end_thought(from + at, &mut on);
                    } else if self.held.len() > MAX_HELD {
                        self.state = State::Gap;
                    } else {
                        self.searched = self.held.len();
                        return;
                    }
                }
                State::Gap => {
                    self.held = self.held.trim_start().to_owned();
                    if self.held.is_empty() {
                        return;
                    }
                    self.state = State::Text;
                }
                State::Text => return emit(std::mem::take(&mut self.held), Part::Text, &mut on),
            }
        }
    }

    /// Takes an end of a thought, which is of this one or of one within it.
    fn end_thought(&mut self, at: usize, on: &mut impl FnMut(Part)) {
        let rest = self.held.split_off(at + CLOSE.len());
        self.held.truncate(at);
        emit(std::mem::replace(&mut self.held, rest), Part::Thinking, on);
        self.searched = 0;
        self.state = if self.n_open > 0 { State::Between } else { State::Gap };
        self.n_open = self.n_open.saturating_sub(1);
    }

    /// Gives out what was held back in vain.
    pub(in crate::llm) fn finish(&mut self, mut on: impl FnMut(Part)) {
        if self.state == State::Between {
            self.held = self.held.trim_start().to_owned();
        }
        let part = if self.state == State::Thinking { Part::Thinking } else { Part::Text };
        emit(std::mem::take(&mut self.held), part, &mut on);
    }
}

fn emit(text: String, part: impl Fn(String) -> Part, on: &mut impl FnMut(Part)) {
    if !text.is_empty() {
        on(part(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, String) {
        let (mut thinking, mut text) = (String::new(), String::new());
        let mut splitter = Splitter::default();
        let mut on = |part| match part {
            Part::Text(more) => text.push_str(&more),
            Part::Thinking(more) => thinking.push_str(&more),
        };
        for piece in pieces {
            splitter.feed(piece, &mut on);
        }
        splitter.finish(&mut on);
        (thinking, text)
    }

    #[track_caller]
    fn check(answer: &str, thinking: &str, text: &str) {
        let expected = (thinking.to_owned(), text.to_owned());
        assert_eq!(split([answer]), expected);
        let single: Vec<String> = answer.chars().map(String::from).collect();
        assert_eq!(split(single.iter().map(String::as_str)), expected, "character by character");
    }

    #[test]
    fn thinking_is_told_from_text() {
        check("<think>\nhm</think>\n\nyes", "\nhm", "yes");
        check(" <think>a </thi b</think>c<think>d", "a </thi b", "c<think>d");
        check("<think>for ever", "for ever", "");
        check("<think></think>", "", "");
    }

    #[test]
    fn a_thought_within_a_thought_ends_only_itself() {
        check("<think>a <think>b</think> c</think>\nd", "a <think>b c", "d");
        check("<think>a<think>b<think>c</think>d</think>e</think>f", "a<think>b<think>cde", "f");
        check("<think>The tag <think> is odd.</think>\nSo it is.", "The tag <think> is odd.", "So it is.");
        let long = "x".repeat(MAX_HELD + 1);
        check(&format!("<think>a<think>b</think>\n{long}"), "a<think>b", &long);
    }

    #[test]
    fn text_without_the_tag_in_front_is_left_alone() {
        check("Use <think> like </think> this.", "", "Use <think> like </think> this.");
        check("  indented", "", "  indented");
        check("<thi", "", "<thi");
        check("", "", "");
    }
}
