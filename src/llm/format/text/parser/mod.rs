mod block_ends;
mod token_blocks;
mod unmarked;

use super::call;
use super::channel;
use super::code_context::CodeContext;
use super::collector::Collector;
use super::collector::Piece;
use super::collector::RejectedCall;
use super::collector::TextKind;
use super::cursor::Cursor;
use super::fence::Certainty;
use super::hint::Hint;
use super::openers;
use super::openers::Opener;
use super::suspected_call;
use super::tools::Tools;
use super::unreadable_calls::UnreadableBlock;
use block_ends::BlockEnds;

/// How many bytes may be rescanned for each received byte: the cost of a failed attempt must be
/// earned before the next.
const RESCAN_PER_BYTE: usize = 16;
/// How many bytes may be rescanned in any case.
const RESCAN_FREE: usize = 4096;

/// A part of the text that is unfinished or could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomplete {
    pub part: IncompletePart,
    /// The tool that was about to be called, where it is known.
    pub name: Option<String>,
    /// The source text of the part, as far as it goes.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncompletePart {
    Call,
    /// A complete call with a mark, in a form that cannot be parsed. It is content too.
    Unreadable,
    /// Looks like a call but does not count because of its position or form. It is content too.
    Unclear,
    /// Not an error by itself: the answer that should follow is missing.
    Reasoning,
}

/// Parses one answer incrementally.
#[derive(Debug)]
pub struct Parser {
    tools: Tools,
    hint: Option<Hint>,
    out: Collector,
    /// The text that is undecided from `at` on.
    text: String,
    at: usize,
    state: State,
    line: CodeContext,
    /// The last byte that was emitted.
    last: u8,
    /// A thought may begin here: nothing was emitted since the beginning, or since a call.
    may_think: bool,
    has_thought: bool,
    /// The thought has text: another opening token begins a nested one.
    has_pondered: bool,
    /// Nested thoughts that have no closing token yet.
    n_nested: usize,
    /// The model has ended its turn, and nothing was emitted since.
    has_ended: bool,
    /// Bytes examined by failed attempts from `at` on.
    spent: usize,
    /// An object without an end was found: from now on a closing tag ends a call even where it
    /// seems to be within a string.
    is_bounded: bool,
    /// An element without an end was found within an argument: from now on elements are not
    /// matched.
    is_flat: bool,
    header: FunctionaryHeader,
    /// An untagged call without an end was found: no more of them are searched for.
    is_closed: bool,
    /// Another speaker's turn has begun: nothing after it is part of the answer.
    is_over: bool,
    incomplete: Option<Incomplete>,
    /// The first blocks that could not be parsed.
    unread: Vec<UnreadableBlock>,
    /// Where blocks end in `text`.
    ends: BlockEnds,
    /// All bytes examined, counting repetitions.
    work: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    Thought(&'static [&'static str]),
}

/// Whether the text begins with a header of Functionary without its mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FunctionaryHeader {
    /// Nothing was emitted yet.
    Possible,
    /// The first line may be one, and was emitted as content.
    Said,
    /// The same, with text after it.
    WithWords,
    /// Decided.
    Passed,
}

/// What the parser does next.
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
            line: CodeContext::default(),
            last: b'\n',
            may_think: true,
            has_thought: thought.is_some(),
            has_pondered: false,
            n_nested: 0,
            has_ended: false,
            spent: 0,
            is_bounded: false,
            is_flat: false,
            header: FunctionaryHeader::Possible,
            is_closed: false,
            is_over: false,
            incomplete: None,
            unread: Vec::new(),
            ends: BlockEnds::default(),
            work: 0,
        }
    }

    /// Keeps whitespace at the beginning of the text: it continues with another one.
    pub(crate) fn keep_whitespace(&mut self) {
        self.out.keep_whitespace();
    }

    /// Notes that thoughts arrive separately, so that a closing tag in the text ends none.
    pub(crate) fn without_thoughts(&mut self) {
        self.has_thought = true;
    }

    /// Parses the next piece of the answer and emits what became certain.
    pub fn feed(&mut self, piece: &str, on: &mut dyn FnMut(Piece)) {
        if self.is_over {
            return;
        }
        self.text.push_str(piece);
        for unread in &mut self.unread {
            unread.add(piece);
        }
        if self.spent <= RESCAN_FREE + RESCAN_PER_BYTE * (self.text.len() - self.at) {
            self.run(false);
        }
        self.out.take().into_iter().for_each(on);
    }

    /// Returns whether another speaker's turn has begun, so that the rest of the text does not
    /// count.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Ends the text; returns what is incomplete.
    pub fn finish(mut self, on: &mut dyn FnMut(Piece)) -> Option<Incomplete> {
        self.close(on)
    }

    /// Like [`Self::finish`], for a parser that is still needed afterwards.
    pub fn close(&mut self, on: &mut dyn FnMut(Piece)) -> Option<Incomplete> {
        self.end();
        self.out.take().into_iter().for_each(on);
        self.incomplete.take()
    }

    pub(super) fn end(&mut self) {
        self.run(true);
        self.out.finish();
        if self.incomplete.is_none() {
            self.incomplete = std::mem::take(&mut self.unread)
                .into_iter()
                .find_map(|unread| unread.settle(&self.tools));
        }
        if self.incomplete.is_none() && !self.out.has_calls() {
            self.incomplete = self.looks_like_call();
        }
        if self.incomplete.is_none()
            && matches!(self.state, State::Thought(_))
            && !self.out.has_calls()
        {
            self.incomplete = Some(Incomplete {
                part: IncompletePart::Reasoning,
                name: None,
                text: String::new(),
            });
        }
    }

    /// Returns what looks like a call in the content.
    fn looks_like_call(&mut self) -> Option<Incomplete> {
        if let Some(RejectedCall { name, raw }) = self.out.take_rejected() {
            return Some(Incomplete {
                part: IncompletePart::Unclear,
                name: Some(name),
                text: raw,
            });
        }
        let name = suspected_call::named(self.out.head(), &self.tools)?;
        Some(Incomplete {
            part: IncompletePart::Unclear,
            name: Some(name),
            text: self.out.head().to_owned(),
        })
    }

    fn run(&mut self, last: bool) {
        let mut text = std::mem::take(&mut self.text);
        self.ends.clear();
        while let Step::On = self.step(&text, last) {}
        // Moving the rest is paid for by what was decided, so the total is linear.
        if self.at * 2 >= text.len() {
            text.drain(..std::mem::take(&mut self.at));
        }
        self.text = text;
    }

    fn step(&mut self, text: &str, last: bool) -> Step {
        let begin = self.at;
        let found = match self.state {
            State::Text => self.line.scan(text, begin, last, !self.is_closed),
            State::Thought(closers) => {
                let first = closers[0].as_bytes()[0];
                let may_end = |byte: &u8| *byte == first || openers::may_begin(*byte);
                text.as_bytes()[begin..]
                    .iter()
                    .position(may_end)
                    .map_or(text.len(), |n| begin + n)
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

    fn place(&self) -> TextKind {
        if self.state == State::Text {
            TextKind::Content
        } else {
            TextKind::Reasoning
        }
    }

    fn say(&mut self, text: &str) {
        let is_blank = text.bytes().all(|byte| byte.is_ascii_whitespace());
        self.has_ended &= is_blank;
        self.has_pondered |= !is_blank && self.state != State::Text;
        self.last = text.as_bytes().last().copied().unwrap_or(self.last);
        if self.state == State::Text {
            self.may_think &= is_blank;
            if !is_blank {
                self.header = match self.header {
                    FunctionaryHeader::Said | FunctionaryHeader::WithWords => {
                        FunctionaryHeader::WithWords
                    }
                    FunctionaryHeader::Possible | FunctionaryHeader::Passed => {
                        FunctionaryHeader::Passed
                    }
                };
            }
        }
        let place = self.place();
        self.out.text(place, text);
    }

    /// Makes the text up to `end`, at least one character, content.
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

    /// Ends the answer here, whatever follows.
    fn over(&mut self, text: &str) -> Step {
        self.is_over = true;
        for unread in &mut self.unread {
            unread.remove_last(text.len() - self.at);
        }
        self.at = text.len();
        Step::Wait
    }

    fn charge(&mut self, c: &Cursor) {
        let looked = c.seen().saturating_sub(self.at) + 1;
        self.spent += looked;
        self.work += looked as u64;
    }

    /// Returns whether the current line contains text and a space or bracket follows: the sentence
    /// continues.
    fn is_mid_line(&self) -> bool {
        !self.line.is_blank() && matches!(self.last, b' ' | b'\t' | b'(' | b'"' | b'\'')
    }

    /// Takes the calls in the text up to `end`.
    fn accept(
        &mut self,
        text: &str,
        calls: Vec<super::Call>,
        certainty: Certainty,
        end: usize,
    ) -> Step {
        for unread in &mut self.unread {
            unread.note(&calls);
        }
        let raw = &text[self.at..end];
        if certainty == Certainty::Certain && self.state == State::Text {
            self.out.certain(raw, calls, !self.has_thought);
        } else {
            let place = self.place();
            self.out.likely(place, raw, calls);
        }
        self.line.restart();
        self.last = b'\n';
        self.may_think = true;
        self.go(end)
    }

    /// Handles a call that the end of the text truncates.
    fn cut_off(&mut self, text: &str, begun: Option<String>) -> Step {
        let rest = &text[self.at..];
        // A name alone may be the answer: "Which shell do you use?"
        let is_word = !rest.trim().is_empty()
            && rest
                .trim()
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_word && self.note_incomplete(rest, begun) {
            self.go(text.len())
        } else {
            self.plain(text, text.len())
        }
    }

    /// Records a call without an end; returns false where it names no known tool.
    fn note_incomplete(&mut self, rest: &str, begun: Option<String>) -> bool {
        let name = match (begun, call::partial_name(rest)) {
            (Some(begun), _) => Some(begun),
            (None, Some(written)) => match self.tools.resolve(written) {
                Some(name) => Some(name.to_owned()),
                None => return false,
            },
            (None, None) => None,
        };
        self.incomplete = Some(Incomplete {
            part: IncompletePart::Call,
            name,
            text: rest.to_owned(),
        });
        true
    }

    fn within_thought(&mut self, text: &str, closers: &'static [&'static str], last: bool) -> Step {
        let begin = self.at;
        let mut c = Cursor::new(text, begin, last);
        let closed = c.close_any(closers);
        let opener = if closed == Ok(false) {
            openers::find(&mut c)
        } else {
            Ok(None)
        };
        self.charge(&c);
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
            (_, Ok(Some(Opener::Other))) => self.over(text),
            // The hint said that a thought has begun, and the text says so again; or one begins
            // within it.
            (_, Ok(Some(Opener::Thought(same)))) if same == closers => {
                self.n_nested += usize::from(self.has_pondered);
                self.go(c.at())
            }
            (
                _,
                Ok(
                    None
                    | Some(
                        Opener::Section
                        | Opener::Noise
                        | Opener::Thought(_)
                        | Opener::ThoughtEnd
                        | Opener::Channel,
                    ),
                ),
            ) => self.plain(text, c.seen().max(begin + 1)),
            (_, Ok(Some(opener))) => self.block(text, opener, c, last),
        }
    }

    fn thought_ended(&mut self) {
        self.state = State::Text;
        self.has_thought = true;
        self.has_pondered = false;
        self.header = if self.out.has_content() {
            FunctionaryHeader::Passed
        } else {
            FunctionaryHeader::Possible
        };
        self.may_think = true;
        self.line.restart();
    }

    #[cfg(test)]
    pub(super) fn work(&self) -> u64 {
        self.work
    }
}
