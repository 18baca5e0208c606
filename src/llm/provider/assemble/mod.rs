//! Assembles the pieces of one answer into updates, and finally into a reply; everything is
//! bounded.

mod cut;
mod elsewhere;
mod end;
mod unheld;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use crate::error::Error;
use crate::format::json_answer::AnswerPiece;
use crate::format::json_answer::JsonAnswerReader;
use crate::format::text;
use crate::provider::calls::Calls;
use crate::provider::calls::Piece;
use crate::provider::half::Halved;
use crate::provider::half::Joint;
use crate::provider::think::Part;
use crate::provider::think::Splitter;
use crate::stream::Finish;
use crate::stream::ReadyCall;
use crate::stream::Reply;
use crate::stream::Timings;
use crate::stream::Update;
use podbay_event::Usage;

/// Maximum bytes of text, and of reasoning, in one answer.
const MAX_TEXT: usize = 4 * 1024 * 1024;

/// How the answer is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Text is text, calls come from the server.
    Native { with_calls: bool },
    /// The text is one JSON object in our form.
    Json { with_calls: bool },
    /// The text is one JSON object in our form, unless the server reports calls all the same.
    Held,
    /// Calls are in the text, in any form.
    Text { with_calls: bool },
    /// The text follows the caller's schema.
    Schema,
}

/// Assembles one answer.
#[derive(Debug)]
pub(crate) struct Assembler {
    reading: Reading,
    tools: text::Tools,
    splitter: Splitter,
    reader: JsonAnswerReader,
    /// Looks for calls in the text, even if the server should have found them.
    parser: Option<text::Parser>,
    parsed: text::Parsed,
    text: String,
    thinking: String,
    /// The server separates thoughts from the text.
    tells_thoughts: bool,
    /// Whitespace at the beginning counts.
    keeps_blanks: bool,
    /// Halves of surrogate pairs that wait for the other half.
    text_joint: Joint,
    thinking_joint: Joint,
    calls: Calls,
    /// The server reported a call though no tools were offered: the stream is not empty, but the
    /// answer is.
    has_unasked: bool,
    pub(crate) usage: Option<Usage>,
    pub(crate) timings: Option<Timings>,
    pub(crate) finish: Option<Finish>,
    /// The server's timings came after the last text.
    pub(crate) summed_up: bool,
    /// Text or reasoning reached the caller. The announcement of a call does not count, since it
    /// can be repeated.
    shown: bool,
    /// The caller executes one of its calls already.
    begun: Arc<AtomicBool>,
    shown_text: bool,
}

impl Assembler {
    pub(crate) fn new(reading: Reading, tools: &text::Tools) -> Self {
        let parser = match reading {
            // Even without tools there are thoughts, and the turns of other speakers.
            Reading::Native { with_calls: false } => {
                Some(text::Parser::new(&text::Tools::default(), None))
            }
            Reading::Native { with_calls: true } | Reading::Text { .. } => {
                Some(text::Parser::new(tools, None))
            }
            Reading::Json { .. } | Reading::Held | Reading::Schema => None,
        };
        Self {
            tools: tools.clone(),
            parser,
            parsed: text::Parsed::default(),
            reading,
            splitter: Splitter::default(),
            reader: JsonAnswerReader::default(),
            text: String::new(),
            thinking: String::new(),
            tells_thoughts: false,
            keeps_blanks: false,
            text_joint: Joint::default(),
            thinking_joint: Joint::default(),
            calls: Calls::default(),
            has_unasked: false,
            usage: None,
            timings: None,
            finish: None,
            summed_up: false,
            shown: false,
            begun: Arc::default(),
            shown_text: false,
        }
    }

    /// Keeps whitespace at the beginning of the answer. Must be called before the first piece.
    pub(crate) fn keep_first_blanks(&mut self) {
        self.keeps_blanks = true;
        self.parser
            .iter_mut()
            .for_each(text::Parser::keep_whitespace);
    }

    /// Returns whether something was emitted that cannot be repeated.
    pub(crate) fn shown(&self) -> bool {
        self.shown || self.begun.load(Ordering::Relaxed)
    }

    /// Returns whether nothing was received.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.thinking.is_empty() && self.calls.is_empty()
    }

    /// Returns whether the server sent nothing, not even an unrequested call.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_empty() && !self.has_unasked
    }

    /// Returns whether this text ends with everything received so far, and calls came if it has
    /// some.
    pub(crate) fn has_all(&self, text: &str, with_calls: bool) -> bool {
        let said = self.text.trim();
        !self.is_empty()
            && (!with_calls || !self.calls.is_empty())
            && text.ends_with(said)
            && text.is_empty() == said.is_empty()
    }

    /// Returns whether the server marked the end: by a finish reason, or by the usage from those
    /// that give no reason.
    pub(crate) fn is_over(&self) -> bool {
        self.finish.is_some() || self.summed_up
    }

    pub(crate) fn add_text(
        &mut self,
        piece: &str,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Result<(), Error> {
        let mut parts = Vec::new();
        self.splitter.feed(piece, |part| parts.push(part));
        self.add_parts(parts, on)
    }

    /// Adds text as the server split it, possibly within a character.
    pub(crate) fn add_cut_text(
        &mut self,
        piece: &Halved,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Result<(), Error> {
        let piece = self.text_joint.join(piece);
        if piece.is_empty() {
            Ok(())
        } else {
            self.add_text(&piece, on)
        }
    }

    /// Like [`Self::add_cut_text`], for reasoning.
    pub(crate) fn add_cut_thinking(
        &mut self,
        piece: &Halved,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Result<(), Error> {
        let piece = self.thinking_joint.join(piece);
        if !piece.trim().is_empty() {
            self.tells_thoughts = true;
            self.parser
                .iter_mut()
                .for_each(text::Parser::without_thoughts);
        }
        if piece.is_empty() {
            Ok(())
        } else {
            self.add_thinking(&piece, on)
        }
    }

    fn add_parts(
        &mut self,
        parts: Vec<Part>,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Result<(), Error> {
        for part in parts {
            match part {
                Part::Thinking(thinking) => self.add_thinking(&thinking, on)?,
                Part::Text(text) => {
                    bound("its text", self.text.len() + text.len())?;
                    self.text.push_str(&text);
                    self.show(text, on)?;
                }
            }
        }
        Ok(())
    }

    fn show(&mut self, text: String, on: &mut (dyn FnMut(Update) + Send)) -> Result<(), Error> {
        if let Some(parser) = &mut self.parser {
            let mut pieces = Vec::new();
            parser.feed(&text, &mut |piece| pieces.push(piece));
            return self.add_pieces(pieces, on);
        }
        if let Some(text) = self.begins_unheld() {
            return self.show(text, on);
        }
        let with_calls = match self.reading {
            Reading::Json { with_calls } => with_calls,
            Reading::Held => true,
            Reading::Native { .. } | Reading::Text { .. } | Reading::Schema => {
                self.show_text(text, on);
                return Ok(());
            }
        };
        let (shown, shown_text) = (&mut self.shown, &mut self.shown_text);
        self.reader.feed(&text, |seen| match seen {
            AnswerPiece::Text(text) => {
                *shown = true;
                *shown_text = true;
                on(Update::Text(text));
            }
            AnswerPiece::Tool(name) if with_calls => on(Update::CallStarted { name }),
            AnswerPiece::Tool(_) => {}
        });
        Ok(())
    }

    fn show_text(&mut self, text: String, on: &mut (dyn FnMut(Update) + Send)) {
        self.shown = true;
        self.shown_text = true;
        on(Update::Text(text));
    }

    /// Shows what was parsed from the text. Reasoning and calls that the server itself reports are
    /// not in it.
    fn add_pieces(
        &mut self,
        pieces: Vec<text::Piece>,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Result<(), Error> {
        for piece in pieces {
            match &piece {
                text::Piece::Content(text) => self.show_text(text.clone(), on),
                text::Piece::Reasoning(thinking) => {
                    bound("its thinking", self.thinking.len() + thinking.len())?;
                    self.shown = true;
                    on(Update::Thinking(thinking.clone()));
                }
                text::Piece::Call(call) if self.with_calls() && self.calls.is_empty() => {
                    on(Update::CallStarted {
                        name: call.name.clone(),
                    });
                }
                text::Piece::Call(_) | text::Piece::WasThought | text::Piece::WasHeader => {}
            }
            self.parsed.add(piece);
        }
        Ok(())
    }

    fn with_calls(&self) -> bool {
        match self.reading {
            Reading::Native { with_calls } | Reading::Text { with_calls } => with_calls,
            // An answer that begins with words is parsed as text.
            Reading::Json { with_calls } => with_calls && self.parser.is_some(),
            Reading::Held => self.parser.is_some(),
            Reading::Schema => false,
        }
    }

    pub(crate) fn add_thinking(
        &mut self,
        piece: &str,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Result<(), Error> {
        bound("its thinking", self.thinking.len() + piece.len())?;
        self.thinking.push_str(piece);
        self.shown = true;
        on(Update::Thinking(piece.to_owned()));
        Ok(())
    }

    pub(crate) fn add_call(&mut self, piece: Piece, on: &mut (dyn FnMut(Update) + Send)) {
        // Unrequested calls do not count: after the last turn nothing could execute them. In every
        // tool mode, a call reported by the server is a call.
        let is_asked_for = match self.reading {
            Reading::Native { with_calls }
            | Reading::Json { with_calls }
            | Reading::Text { with_calls } => with_calls,
            Reading::Held => true,
            Reading::Schema => false,
        };
        if !is_asked_for {
            self.has_unasked = true;
            return;
        }
        if let Some(name) = self.calls.take(piece) {
            on(Update::CallStarted { name });
        }
        while let Some(call) = self.calls.next_ready() {
            on(Update::CallReady(ReadyCall::new(call, &self.begun)));
        }
    }
}

/// Parses a whole text as the answer of a server that reports no calls.
pub fn understood(text: &str, tools: &text::Tools) -> Result<Reply, Error> {
    let mut assembler = Assembler::new(Reading::Native { with_calls: true }, tools);
    assembler.add_text(text, &mut |_| {})?;
    assembler.finish(|_| false, &mut |_| {})
}

fn bound(what: &'static str, n_bytes: usize) -> Result<(), Error> {
    if n_bytes > MAX_TEXT {
        Err(Error::TooLarge {
            what,
            limit: MAX_TEXT as u64,
        })
    } else {
        Ok(())
    }
}
