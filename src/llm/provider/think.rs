//! Separates `<think>…</think>` at the beginning of an answer, for servers that leave it in the
//! text.
//! Only at the beginning, and after a thought at the beginning of a line, outside of code, if it is
//! closed: a model that writes *about* the tag later on must not lose its text. And if a thought
//! contains another opening tag, what follows the first closing tag waits for a second one: only
//! that distinguishes a nested thought from a mention of the tag.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
/// At the beginning of a line these begin code, up to the next one.
const FENCES: [&str; 2] = ["```", "~~~"];
/// How much is processed at once, in bytes.
const PART: usize = 1024;
/// How much is buffered while waiting for a closing tag, in bytes.
const MAX_HELD: usize = 64 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Thinking(String),
}

#[derive(Debug, Default)]
pub(crate) struct Splitter {
    state: State,
    /// What may still become a tag, or whitespace that may surround one; at most a few bytes beyond
    /// whitespace.
    held: String,
    /// Nested opening tags that are not closed yet.
    n_open: usize,
    /// How much of the buffer contains no closing tag.
    searched: usize,
    /// There was a thought, so that there may be another one.
    is_thinker: bool,
    /// The current line of text has begun, and begins with no tag.
    is_within_line: bool,
    is_code: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    Thinking,
    /// After a closing tag that may be that of a nested thought.
    Between,
    /// After the closing tag, before the first word.
    Gap,
    Text,
    /// At a line of text that begins a thought if that is closed.
    Later,
}

enum End {
    At(usize),
    Awaited,
    /// It is too far away.
    None,
}

impl Splitter {
    pub(crate) fn feed(&mut self, piece: &str, mut on: impl FnMut(Part)) {
        // The buffer is searched and moved for each tag in it, so it stays short however long the
        // piece is.
        let mut rest = piece;
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(rest.ceil_char_boundary(PART.min(rest.len())));
            self.feed_part(part, &mut on);
            rest = behind;
        }
    }

    fn feed_part(&mut self, part: &str, on: &mut impl FnMut(Part)) {
        self.held.push_str(part);
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
                    if let Some(at) = self
                        .held
                        .find(OPEN)
                        .filter(|at| close.is_none_or(|close| *at < close))
                    {
                        self.n_open += 1;
                        let rest = self.held.split_off(at + OPEN.len());
                        emit(std::mem::replace(&mut self.held, rest), Part::Thinking, on);
                    } else if let Some(at) = close {
                        self.end_thought(at, on);
                    } else {
                        let begins = |tag: &str, n: usize| {
                            tag.get(..n).is_some_and(|begin| self.held.ends_with(begin))
                        };
                        let kept = (1..CLOSE.len())
                            .rev()
                            .find(|&n| begins(CLOSE, n) || n < OPEN.len() && begins(OPEN, n))
                            .unwrap_or(0);
                        let rest = self.held.split_off(self.held.len() - kept);
                        return emit(std::mem::replace(&mut self.held, rest), Part::Thinking, on);
                    }
                }
                State::Between => match self.find_end() {
                    End::At(at) => self.end_thought(at, on),
                    End::None => self.state = State::Gap,
                    End::Awaited => return,
                },
                State::Gap => {
                    self.held = self.held.trim_start().to_owned();
                    if let Some(rest) = self.held.strip_prefix(OPEN) {
                        self.held = rest.to_owned();
                        self.state = State::Thinking;
                    } else if OPEN.starts_with(&self.held) {
                        return;
                    } else {
                        self.state = State::Text;
                    }
                }
                State::Text => {
                    if !self.is_thinker {
                        return emit(std::mem::take(&mut self.held), Part::Text, on);
                    }
                    if !self.take_text(on) {
                        return;
                    }
                }
                State::Later => match self.find_end() {
                    End::At(at) => {
                        let begin = self.held.find(OPEN).map_or(0, |open| open + OPEN.len());
                        self.held.drain(..begin);
                        self.end_thought(at - begin, on);
                    }
                    End::None => (self.state, self.is_within_line) = (State::Text, true),
                    End::Awaited => return,
                },
            }
        }
    }

    /// Emits text up to a line that may begin a thought; returns whether it begins with the tag.
    fn take_text(&mut self, on: &mut impl FnMut(Part)) -> bool {
        let mut at = 0;
        let is_thought = loop {
            if self.is_within_line {
                let Some(end) = self.held[at..].find('\n') else {
                    at = self.held.len();
                    break false;
                };
                at += end + 1;
            }
            self.is_within_line = false;
            let line = self.held[at..].trim_start_matches([' ', '\t']);
            if !self.is_code && line.starts_with(OPEN) {
                break true;
            }
            let is_fence = FENCES.iter().any(|fence| line.starts_with(fence));
            if !is_fence
                && [OPEN, FENCES[0], FENCES[1]]
                    .iter()
                    .any(|mark| mark.starts_with(line))
                && self.held.len() - at < 256
            {
                break false;
            }
            self.is_code ^= is_fence;
            self.is_within_line = true;
        };
        if is_thought {
            (self.state, self.searched) = (State::Later, 0);
        }
        let rest = self.held.split_off(at);
        emit(std::mem::replace(&mut self.held, rest), Part::Text, on);
        is_thought
    }

    /// Searches the buffer for a closing tag, within a fixed number of bytes however they arrived.
    fn find_end(&mut self) -> End {
        let from = self
            .held
            .floor_char_boundary(self.searched.saturating_sub(CLOSE.len()));
        self.searched = self.held.len();
        match self.held[from..].find(CLOSE).map(|at| from + at) {
            Some(at) if at <= MAX_HELD => End::At(at),
            None if self.held.len() < MAX_HELD + CLOSE.len() => End::Awaited,
            _ => End::None,
        }
    }

    /// Handles a closing tag, of this thought or of a nested one.
    fn end_thought(&mut self, at: usize, on: &mut impl FnMut(Part)) {
        let rest = self.held.split_off(at + CLOSE.len());
        self.held.truncate(at);
        emit(std::mem::replace(&mut self.held, rest), Part::Thinking, on);
        self.searched = 0;
        (self.is_thinker, self.is_within_line) = (true, false);
        self.state = if self.n_open > 0 {
            State::Between
        } else {
            State::Gap
        };
        self.n_open = self.n_open.saturating_sub(1);
    }

    /// Emits the remaining buffer.
    pub(crate) fn finish(&mut self, mut on: impl FnMut(Part)) {
        if self.state == State::Between {
            self.held = self.held.trim_start().to_owned();
        }
        let part = if self.state == State::Thinking {
            Part::Thinking
        } else {
            Part::Text
        };
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
        assert_eq!(
            split(single.iter().map(String::as_str)),
            expected,
            "character by character"
        );
    }

    #[test]
    fn thinking_is_separated_from_text() {
        check("<think>\nhm</think>\n\nyes", "\nhm", "yes");
        check(
            " <think>a </thi b</think>c<think>d",
            "a </thi b",
            "c<think>d",
        );
        check("<think>for ever", "for ever", "");
        check("<think></think>", "", "");
    }

    #[test]
    fn a_nested_thought_ends_only_itself() {
        check(
            "<think>a <think>b</think> c</think>\nd",
            "a <think>b c",
            "d",
        );
        check(
            "<think>a<think>b<think>c</think>d</think>e</think>f",
            "a<think>b<think>cde",
            "f",
        );
        check(
            "<think>The tag <think> is odd.</think>\nSo it is.",
            "The tag <think> is odd.",
            "So it is.",
        );
        let long = "x".repeat(MAX_HELD + 1);
        check(
            &format!("<think>a<think>b</think>\n{long}"),
            "a<think>b",
            &long,
        );
    }

    #[test]
    fn a_second_thought_is_recognized_after_a_first() {
        check("<think>a</think>\n<think>b</think>\n\nc", "ab", "c");
        check("<think></think>\n\n<think>for ever", "for ever", "");
        check(
            "<think>a</think>One.\n  <think>b</think>\nTwo.\n<think>c</think>",
            "abc",
            "One.\nTwo.\n",
        );
        check(
            "<think>a</think>One.\n<think> is a tag.\nTwo.",
            "a",
            "One.\n<think> is a tag.\nTwo.",
        );
        check(
            "<think>a</think>```\n<think>b</think>\n```\n<think>c</think>d",
            "ac",
            "```\n<think>b</think>\n```\nd",
        );
        check(
            "One.\n<think>b</think>\nTwo.",
            "",
            "One.\n<think>b</think>\nTwo.",
        );
        let long = format!("x\n<think>{}", "y\n".repeat(MAX_HELD));
        check(
            &format!("<think>a</think>{long}</think>"),
            "a",
            &format!("{long}</think>"),
        );
    }

    /// Searching the whole rest for each tag would take minutes here.
    #[test]
    fn a_megabyte_of_tags_in_one_piece_is_split_in_linear_time() {
        for tags in [
            "<think>",
            "</think>",
            "<think></think>",
            "<think></think>\n",
            "<think>a</think>b\n",
            "<think><think></think>",
        ] {
            let text = tags.repeat((1 << 20) / tags.len());
            let (thinking, rest) = split([text.as_str()]);
            assert!(thinking.len() + rest.len() <= text.len(), "{tags}");
        }
    }

    #[test]
    fn text_without_a_leading_tag_is_unchanged() {
        check(
            "Use <think> like </think> this.",
            "",
            "Use <think> like </think> this.",
        );
        check("  indented", "", "  indented");
        check("<thi", "", "<thi");
        check("", "", "");
    }
}
