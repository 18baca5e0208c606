use super::call;
use super::channel;
use super::channel::Follows;
use super::collector::Collector;
use super::collector::Piece;
use super::collector::Place;
use super::cursor::Cursor;
use super::cursor::Read;
use super::cursor::Stop;
use super::example::Before;
use super::family::Found;
use super::fence;
use super::fence::Certainty;
use super::hint::Hint;
use super::line::Line;
use super::openers;
use super::openers::Opener;
use super::tools::Tools;

/// How much may be looked at again for each byte that came: what one attempt in vain cost must be earned before the next.
const PAY: usize = 16;
/// How much may be looked at again in any case, in bytes.
const FREE: usize = 4096;

/// What a text ended in the middle of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomplete {
    pub part: Part,
    /// The tool that was about to be called, where that much is known.
    pub name: Option<String>,
    /// What there is of it.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Call,
    /// Not an error by itself: the answer that should follow is missing.
    Reasoning,
}

/// Follows one answer.
#[derive(Debug)]
pub struct Parser {
    tools: Tools,
    hint: Option<Hint>,
    out: Collector,
    /// What is not decided yet, from `at` on.
    text: String,
    at: usize,
    state: State,
    line: Line,
    before: Before,
    /// A thought may begin here: nothing was said since the beginning, or since a call.
    may_think: bool,
    has_thought: bool,
    /// What was looked at in vain from `at` on.
    spent: usize,
    /// An object without an end was met: from now on a closing tag ends a call even where it seems to stand within a string.
    is_bounded: bool,
    /// A call in the open without an end was met: no more of them are looked for.
    is_closed: bool,
    incomplete: Option<Incomplete>,
    /// All bytes looked at, however often.
    work: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    Thought(&'static [&'static str]),
}

/// What comes next.
enum Step {
    On,
    Wait,
}

impl Parser {
    pub fn new(tools: &Tools, hint: Option<Hint>) -> Self {
        let thought = hint.and_then(|hint| hint.thought);
        Self {
            tools: tools.clone(),
            hint,
            out: Collector::default(),
            text: String::new(),
            at: 0,
            state: thought.map_or(State::Text, State::Thought),
            line: Line::default(),
            before: Before::default(),
            may_think: true,
            has_thought: thought.is_some(),
            spent: 0,
            is_bounded: false,
            is_closed: false,
            incomplete: None,
            work: 0,
        }
    }

    /// Takes the next piece of the answer and tells what became sure.
    pub fn feed(&mut self, piece: &str, on: &mut dyn FnMut(Piece)) {
        self.text.push_str(piece);
        if self.spent <= FREE + PAY * (self.text.len() - self.at) {
            self.run(false);
        }
        self.out.take().into_iter().for_each(on);
    }

    /// Says that nothing more comes; returns what is missing.
    pub fn finish(mut self, on: &mut dyn FnMut(Piece)) -> Option<Incomplete> {
        self.end();
        self.out.take().into_iter().for_each(on);
        self.incomplete
    }

    pub(super) fn end(&mut self) {
        self.run(true);
        self.out.finish();
        if self.incomplete.is_none() && matches!(self.state, State::Thought(_)) && !self.out.has_calls() {
            self.incomplete = Some(Incomplete { part: Part::Reasoning, name: None, text: String::new() });
        }
    }

    fn run(&mut self, last: bool) {
        let mut text = std::mem::take(&mut self.text);
        while let Step::On = self.step(&text, last) {}
        // Moving the rest costs what was decided, so all of it together is linear.
        if self.at * 2 >= text.len() {
            text.drain(..std::mem::take(&mut self.at));
        }
        self.text = text;
    }

    fn step(&mut self, text: &str, last: bool) -> Step {
        let begin = self.at;
        let found = match self.state {
            State::Text => self.line.scan(text, begin, last, !self.is_closed),
            State::Thought(_) => {
                text.as_bytes()[begin..].iter().position(|byte| openers::may_begin(*byte)).map_or(text.len(), |n| begin + n)
            }
        };
        self.work += (found - begin) as u64;
        self.say(&text[begin..found]);
        self.at = found;
        if found == text.len() {
            return Step::Wait;
        }
        match (self.state, text.as_bytes()[found]) {
            (State::Thought(closers), _) => self.within_thought(text, closers, last),
            (State::Text, b'`' | b'~') => self.fence(text, last),
            (State::Text, byte) if openers::may_begin(byte) => self.opener(text, last),
            (State::Text, _) => self.open(text, last),
        }
    }

    fn place(&self) -> Place {
        if self.state == State::Text { Place::Content } else { Place::Reasoning }
    }

    fn say(&mut self, text: &str) {
        if self.state == State::Text {
            self.before.add(text);
            self.may_think &= text.bytes().all(|byte| byte.is_ascii_whitespace());
        }
        let place = self.place();
        self.out.text(place, text);
    }

    /// Makes the text up to `end`, and one character at least, content.
    fn plain(&mut self, text: &str, end: usize) -> Step {
        let one = text[self.at..].chars().next().map_or(0, char::len_utf8);
        let end = text.floor_char_boundary(end).max(self.at + one);
        if self.state == State::Text {
            self.line.pass(&text[self.at..end]);
        }
        self.say(&text[self.at..end]);
        self.go(end)
    }

    fn go(&mut self, at: usize) -> Step {
        self.at = at;
        self.spent = 0;
        Step::On
    }

    fn pay(&mut self, c: &Cursor) {
        let looked = c.seen().saturating_sub(self.at) + 1;
        self.spent += looked;
        self.work += looked as u64;
    }

    fn opener(&mut self, text: &str, last: bool) -> Step {
        let begin = self.at;
        let mut c = Cursor::new(text, begin, last);
        let opener = openers::find(&mut c);
        self.pay(&c);
        match opener {
            Err(_) => Step::Wait,
            Ok(None) if last && openers::is_cut_off(&text[begin..]) => self.cut_off(text, None),
            // A list of calls may stand in the open.
            Ok(None) if text.as_bytes()[begin] == b'[' && self.line.is_blank() && !self.is_closed => self.open(text, last),
            Ok(None) => self.plain(text, c.seen()),
            Ok(Some(Opener::Noise)) => {
                self.out.noise(&text[begin..c.at()]);
                self.go(c.at())
            }
            Ok(Some(Opener::Thought(closers))) if self.may_think => {
                self.state = State::Thought(closers);
                self.has_thought = true;
                self.go(c.at())
            }
            Ok(Some(Opener::Thought(_))) => {
                // It is spoken of, and so is its end.
                self.has_thought = true;
                self.plain(text, c.at())
            }
            Ok(Some(Opener::ThoughtEnd)) => {
                let end = c.at();
                let ends_line = match c.peek_or_end() {
                    Ok(next) => matches!(next, None | Some(b'\n')),
                    Err(_) => return Step::Wait,
                };
                if self.has_thought || self.out.has_calls() || !(ends_line || self.line.is_blank()) {
                    return self.plain(text, end);
                }
                self.out.rethink();
                self.thought_ended();
                self.go(end)
            }
            Ok(Some(Opener::Channel)) => {
                let mut found = Found::default();
                let follows = channel::read(&mut c, &self.tools, &mut found);
                self.pay(&c);
                match follows {
                    Ok(Follows::Call) if self.before.quotes() => self.plain(text, found.end),
                    Ok(Follows::Call) => self.certain(text, found, last),
                    Ok(Follows::Answer) => {
                        self.out.drop_noise();
                        self.out.text(Place::Content, "\n\n");
                        self.go(c.at())
                    }
                    Ok(Follows::Thought) => {
                        self.out.drop_noise();
                        self.state = State::Thought(channel::THOUGHT_ENDS);
                        self.has_thought = true;
                        self.go(c.at())
                    }
                    Err(Stop::No) => self.plain(text, c.seen()),
                    Err(Stop::More) if last => self.cut_off(text, found.begun),
                    Err(Stop::More) => Step::Wait,
                }
            }
            Ok(Some(opener)) => self.block(text, opener, c, last),
        }
    }

    /// Reads the calls behind an opener.
    fn block<'t>(&mut self, text: &'t str, opener: Opener, mut c: Cursor<'t>, last: bool) -> Step {
        let begin = self.at;
        let behind = c.at();
        if self.state == State::Text && self.before.quotes() {
            return self.plain(text, behind);
        }
        let mut found = Found::default();
        let closed = if last || self.is_bounded { end_of_block(text, behind, opener) } else { None };
        if self.is_bounded && matches!(opener, Opener::Calls(_)) {
            match closed {
                Some(bound) => c = Cursor::new(&text[..bound], behind, true),
                None if last => {}
                None => {
                    self.spent += text.len() - begin;
                    self.work += (text.len() - begin) as u64;
                    return Step::Wait;
                }
            }
        }
        let result = openers::read(&mut c, opener, begin, &self.tools, &mut found);
        self.pay(&c);
        match result {
            Err(Stop::More) if !last && closed.is_none() => Step::Wait,
            Err(Stop::More) if found.calls.is_empty() => match closed {
                Some(_) if !self.is_bounded => {
                    // A quote is missing somewhere, so that the text seems to be one string to its end.
                    self.is_bounded = true;
                    Step::On
                }
                Some(end) => {
                    self.note_incomplete(&text[begin..end], found.begun);
                    self.plain(text, end)
                }
                None if self.out.has_calls() && text[behind..].trim().is_empty() => {
                    self.out.noise(&text[begin..]);
                    self.go(text.len())
                }
                None => self.cut_off(text, found.begun),
            },
            Err(Stop::More) => {
                let end = found.end;
                let begun = found.begun.take();
                self.accept(text, found.calls, Certainty::Certain, end);
                match closed {
                    // Only its own text was looked at; what is behind it is still to come.
                    Some(bound) if self.is_bounded => self.plain(text, bound.max(end)),
                    _ if text[end..].trim().is_empty() => self.go(text.len()),
                    _ => self.cut_off(text, begun),
                }
            }
            _ if found.calls.is_empty() => match end_of_block(&text[..text.floor_char_boundary(c.seen())], behind, opener) {
                Some(end) if !self.is_bounded => {
                    // It went on beyond its own end: a quote is missing here too.
                    self.is_bounded = true;
                    self.note_incomplete(&text[begin..end], found.begun);
                    self.plain(text, end)
                }
                _ => self.plain(text, c.seen()),
            },
            _ => self.certain(text, found, last),
        }
    }

    /// Takes calls that are marked as such, unless they are mentioned within a sentence about them.
    fn certain(&mut self, text: &str, found: Found, last: bool) -> Step {
        if self.state == State::Text {
            let mut c = Cursor::new(text, found.end, last);
            match goes_on(&mut c) {
                Err(_) => return Step::Wait,
                Ok(true) => return self.plain(text, found.end),
                Ok(false) => {}
            }
        }
        self.accept(text, found.calls, Certainty::Certain, found.end);
        Step::On
    }

    /// Takes the calls in the text up to `end`.
    fn accept(&mut self, text: &str, calls: Vec<super::Call>, certainty: Certainty, end: usize) {
        if certainty == Certainty::Certain && self.state == State::Text {
            self.out.certain(calls);
        } else {
            let place = self.place();
            self.out.likely(place, &text[self.at..end], calls);
        }
        self.before.clear();
        self.line = Line::default();
        self.may_think = true;
        self.go(end);
    }

    /// Takes what the end of the text cut off.
    fn cut_off(&mut self, text: &str, begun: Option<String>) -> Step {
        let rest = &text[self.at..];
        if self.note_incomplete(rest, begun) { self.go(text.len()) } else { self.plain(text, text.len()) }
    }

    /// Notes a call without its end; returns false where it would be none of ours.
    fn note_incomplete(&mut self, rest: &str, begun: Option<String>) -> bool {
        let name = match (begun, call::begun_name(rest)) {
            (Some(begun), _) => Some(begun),
            (None, Some(written)) => match self.tools.resolve(written) {
                Some(name) => Some(name.to_owned()),
                None => return false,
            },
            (None, None) => None,
        };
        self.incomplete = Some(Incomplete { part: Part::Call, name, text: rest.to_owned() });
        true
    }

    fn within_thought(&mut self, text: &str, closers: &'static [&'static str], last: bool) -> Step {
        let begin = self.at;
        let mut c = Cursor::new(text, begin, last);
        let closed = c.close_any(closers);
        let opener = if closed == Ok(false) { openers::find(&mut c) } else { Ok(None) };
        self.pay(&c);
        match (closed, opener) {
            (Err(_), _) | (_, Err(_)) => Step::Wait,
            (Ok(true), _) => {
                self.thought_ended();
                self.go(c.at())
            }
            (_, Ok(Some(Opener::Channel))) if closers == channel::THOUGHT_ENDS => {
                self.thought_ended();
                Step::On
            }
            // The hint said that a thought has begun, and the text says it again.
            (_, Ok(Some(Opener::Thought(same)))) if same == closers => self.go(c.at()),
            (_, Ok(None | Some(Opener::Noise | Opener::Thought(_) | Opener::ThoughtEnd | Opener::Channel))) => {
                self.plain(text, c.seen().max(begin + 1))
            }
            (_, Ok(Some(opener))) => self.block(text, opener, c, last),
        }
    }

    fn thought_ended(&mut self) {
        self.state = State::Text;
        self.has_thought = true;
        self.may_think = true;
        self.line = Line::default();
        self.before.clear();
    }

    /// Reads a fence, or code within a line.
    fn fence(&mut self, text: &str, last: bool) -> Step {
        let begin = self.at;
        let mark = text.as_bytes()[begin];
        let mut c = Cursor::new(text, begin, last);
        let Ok(marks) = c.run(|byte| byte == mark) else { return Step::Wait };
        let behind = c.at();
        let may_be = self.line.is_blank() && marks.len() >= 3 && !self.is_closed;
        let mut found = Found::default();
        let result = if may_be { fence::read(&mut c, marks, &self.tools, &mut found) } else { Err(Stop::No) };
        self.pay(&c);
        if let Some(step) = self.likely(text, result, found, last) {
            return step;
        }
        self.line.code(mark, marks.len());
        self.say(&text[begin..behind]);
        self.go(behind)
    }

    /// Reads a call that no token marks, at the beginning of a line.
    fn open(&mut self, text: &str, last: bool) -> Step {
        let mut c = Cursor::new(text, self.at, last);
        let mut found = Found::default();
        let result = super::bare::read(&mut c, &self.tools, &mut found);
        self.pay(&c);
        let seen = c.seen();
        match self.likely(text, result, found, last) {
            Some(step) => step,
            None => self.plain(text, seen),
        }
    }

    /// Settles what may be a call in the open; `None` where it is none.
    fn likely(&mut self, text: &str, result: Read<Certainty>, found: Found, last: bool) -> Option<Step> {
        match result {
            Err(Stop::More) if !last => Some(Step::Wait),
            Ok(_) if found.calls.is_empty() || self.before.introduces_example() => None,
            Ok(certainty) => {
                let open = self.hint.is_some_and(|hint| hint.open);
                self.accept(text, found.calls, if open { Certainty::Certain } else { certainty }, found.end);
                Some(Step::On)
            }
            Err(Stop::More) => {
                let rest = &text[self.at..];
                let is_ours = found.begun.is_some() || call::begun_name(rest).is_some_and(|name| self.tools.resolve(name).is_some());
                if is_ours && found.calls.is_empty() {
                    return Some(self.cut_off(text, found.begun));
                }
                // Its end is missing, so nobody knows what else lies within; once is enough.
                self.is_closed = true;
                None
            }
            Err(Stop::No) => None,
        }
    }

    #[cfg(test)]
    pub(super) fn work(&self) -> u64 {
        self.work
    }
}

/// Returns where a block ends by its first closing token.
fn end_of_block(text: &str, behind: usize, opener: Opener) -> Option<usize> {
    let Opener::Calls(closers) = opener else { return None };
    let end = |closer: &&str| memchr::memmem::find(&text.as_bytes()[behind..], closer.as_bytes()).map(|at| behind + at + closer.len());
    closers.iter().filter_map(end).min()
}

/// Returns whether the sentence goes on in the same line.
fn goes_on(c: &mut Cursor) -> Read<bool> {
    loop {
        c.run(|byte| matches!(byte, b' ' | b'\t'))?;
        let next = c.peek_or_end()?;
        if !next.is_some_and(openers::may_begin) {
            return Ok(next.is_some_and(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b",.;:!?\"')".contains(&byte)));
        }
        match openers::find(c)? {
            Some(Opener::Noise) => {}
            other => return Ok(other.is_none() && next != Some(b'<')),
        }
    }
}
