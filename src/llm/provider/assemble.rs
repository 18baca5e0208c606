//! Turns the pieces of one answer into updates, and in the end into a reply; bounded in every direction.

use crate::event::ToolCall;
use crate::event::Usage;
use crate::llm::control::neutralise;
use crate::llm::error::Error;
use crate::llm::format::answer::Reader;
use crate::llm::format::answer::Seen;
use crate::llm::format::constrained;
use crate::llm::format::constrained::Parsed;
use crate::llm::format::prompted;
use crate::llm::format::text;
use crate::llm::format::unknown;
use crate::llm::provider::calls::Calls;
use crate::llm::provider::calls::Piece;
use crate::llm::provider::half::Halved;
use crate::llm::provider::half::Joint;
use crate::llm::provider::think::Part;
use crate::llm::provider::think::Splitter;
use crate::llm::stream::Finish;
use crate::llm::stream::Reply;
use crate::llm::stream::Timings;
use crate::llm::stream::Unsure;
use crate::llm::stream::Update;

/// Most bytes of text, and of thinking, in one answer.
const MAX_TEXT: usize = 4 * 1024 * 1024;

/// How the answer is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::llm) enum Reading {
    /// Text is text, calls are the server's.
    Native { with_calls: bool },
    /// The text is one JSON object of ours.
    Json { with_calls: bool },
    /// The text is one JSON object of ours, unless the server reports calls all the same.
    Held,
    /// Calls stand in the text, in any form.
    Text { with_calls: bool },
    /// The text is what the caller's schema says.
    Schema,
}

/// Collects one answer.
#[derive(Debug)]
pub(in crate::llm) struct Assembler {
    reading: Reading,
    tools: text::Tools,
    splitter: Splitter,
    reader: Reader,
    /// Looks for calls in the text, also where the server should have found them.
    parser: Option<text::Parser>,
    parsed: text::Parsed,
    /// How much was said before the first call in the text.
    before_calls: Option<usize>,
    /// The server understood calls of this model before, so that only those count in the text that a token marks: a fence is an example.
    is_understood: bool,
    text: String,
    thinking: String,
    /// Halves of characters that wait for the other half.
    text_joint: Joint,
    thinking_joint: Joint,
    calls: Calls,
    pub(in crate::llm) usage: Option<Usage>,
    pub(in crate::llm) timings: Option<Timings>,
    pub(in crate::llm) finish: Option<Finish>,
    /// What the server measured came after the last word.
    pub(in crate::llm) summed_up: bool,
    /// Words of the answer, or of a thought, reached the caller. That a call began is nothing that could not begin anew: none is carried
    /// out before the answer is whole.
    shown: bool,
    shown_text: bool,
}

impl Assembler {
    pub(in crate::llm) fn new(reading: Reading, tools: &text::Tools) -> Self {
        let looks = match reading {
            Reading::Native { with_calls } => with_calls && !tools.is_empty(),
            Reading::Text { .. } => true,
            Reading::Json { .. } | Reading::Held | Reading::Schema => false,
        };
        Self {
            tools: tools.clone(),
            parser: looks.then(|| text::Parser::new(tools, None)),
            parsed: text::Parsed::default(),
            before_calls: None,
            is_understood: false,
            reading,
            splitter: Splitter::default(),
            reader: Reader::default(),
            text: String::new(),
            thinking: String::new(),
            text_joint: Joint::default(),
            thinking_joint: Joint::default(),
            calls: Calls::default(),
            usage: None,
            timings: None,
            finish: None,
            summed_up: false,
            shown: false,
            shown_text: false,
        }
    }

    /// Says whether the server understood calls of this model before. To be said before the first piece.
    #[must_use]
    pub(in crate::llm) fn after_native_calls(mut self, understood: bool) -> Self {
        self.is_understood = understood && matches!(self.reading, Reading::Native { .. });
        self.parser = self.parser.map(|parser| parser.marked_only(self.is_understood));
        self
    }

    pub(in crate::llm) fn shown(&self) -> bool {
        self.shown
    }

    /// Returns whether nothing at all was said.
    pub(in crate::llm) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.thinking.is_empty() && self.calls.is_empty()
    }

    /// Returns whether the server said that this is all: by a reason, or by the sums at the end from those that give no reason.
    pub(in crate::llm) fn is_over(&self) -> bool {
        self.finish.is_some() || self.summed_up
    }

    pub(in crate::llm) fn add_text(&mut self, piece: &str, on: &mut (dyn FnMut(Update) + Send)) -> Result<(), Error> {
        let mut parts = Vec::new();
        self.splitter.feed(piece, |part| parts.push(part));
        self.add_parts(parts, on)
    }

    /// Takes text as a server cut it, maybe within a character.
    pub(in crate::llm) fn add_cut_text(&mut self, piece: &Halved, on: &mut (dyn FnMut(Update) + Send)) -> Result<(), Error> {
        let piece = self.text_joint.join(piece);
        if piece.is_empty() { Ok(()) } else { self.add_text(&piece, on) }
    }

    /// Like [`Self::add_cut_text`], of thoughts.
    pub(in crate::llm) fn add_cut_thinking(&mut self, piece: &Halved, on: &mut (dyn FnMut(Update) + Send)) -> Result<(), Error> {
        let piece = self.thinking_joint.join(piece);
        if piece.is_empty() { Ok(()) } else { self.add_thinking(&piece, on) }
    }

    fn add_parts(&mut self, parts: Vec<Part>, on: &mut (dyn FnMut(Update) + Send)) -> Result<(), Error> {
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
            Seen::Text(text) => {
                *shown = true;
                *shown_text = true;
                on(Update::Text(text));
            }
            Seen::Tool(name) if with_calls => on(Update::CallStarted { name }),
            Seen::Tool(_) => {}
        });
        Ok(())
    }

    fn show_text(&mut self, text: String, on: &mut (dyn FnMut(Update) + Send)) {
        self.shown = true;
        self.shown_text = true;
        on(Update::Text(text));
    }

    /// Shows what was found in the text. What the server itself reports as thoughts and calls is not in it.
    fn add_pieces(&mut self, pieces: Vec<text::Piece>, on: &mut (dyn FnMut(Update) + Send)) -> Result<(), Error> {
        for piece in pieces {
            match &piece {
                text::Piece::Content(text) => self.show_text(text.clone(), on),
                text::Piece::Reasoning(thinking) => {
                    bound("its thinking", self.thinking.len() + thinking.len())?;
                    self.shown = true;
                    on(Update::Thinking(thinking.clone()));
                }
                text::Piece::Call(call) if self.with_calls() && self.calls.is_empty() => {
                    on(Update::CallStarted { name: call.name.clone() });
                }
                text::Piece::Call(_) | text::Piece::Mention(_) | text::Piece::Rethought => {}
            }
            if matches!(piece, text::Piece::Call(_)) {
                self.before_calls.get_or_insert(self.parsed.content.len());
            }
            self.parsed.add(piece);
        }
        Ok(())
    }

    fn with_calls(&self) -> bool {
        matches!(self.reading, Reading::Native { with_calls: true } | Reading::Text { with_calls: true })
    }

    /// Takes what was said beside calls that the server itself reports. What else of the text looks like a call is none then.
    fn take_words(&mut self, reply: &mut Reply) {
        reply.text = match self.reading {
            Reading::Native { .. } | Reading::Schema => std::mem::take(&mut self.text),
            Reading::Json { .. } | Reading::Held => match constrained::parse(&self.text) {
                Parsed::Answer(text) => text,
                Parsed::Call(..) | Parsed::Faulty(_) => begun_answer(&self.text),
            },
            Reading::Text { .. } => {
                let parsed = std::mem::take(&mut self.parsed).ended(None);
                reply.thinking.push_str(&parsed.reasoning);
                parsed.content
            }
        };
    }

    /// Makes a reply of what was found in the text.
    fn take_parsed(&mut self, reply: &mut Reply, incomplete: Option<&text::Incomplete>, is_taken: impl Fn(&str) -> bool) {
        let parsed = std::mem::take(&mut self.parsed).ended(None);
        reply.text = parsed.content;
        reply.thinking.push_str(&parsed.reasoning);
        let is_cut = incomplete.filter(|incomplete| incomplete.part == text::Part::Call);
        if !self.with_calls() {
            return;
        }
        for (call, index) in parsed.calls.into_iter().zip(0..) {
            self.calls.take(Piece { index: Some(index), id: None, name: Some(call.name), arguments: call.arguments.into() });
        }
        (reply.calls, reply.fault) = std::mem::take(&mut self.calls).finish(is_taken);
        if let (None, Some(cut)) = (&reply.fault, is_cut) {
            reply.fault = Some(prompted::cut_off(cut.name.as_deref()));
        }
    }

    pub(in crate::llm) fn add_thinking(&mut self, piece: &str, on: &mut (dyn FnMut(Update) + Send)) -> Result<(), Error> {
        bound("its thinking", self.thinking.len() + piece.len())?;
        self.thinking.push_str(piece);
        self.shown = true;
        on(Update::Thinking(piece.to_owned()));
        Ok(())
    }

    pub(in crate::llm) fn add_call(&mut self, piece: Piece, on: &mut (dyn FnMut(Update) + Send)) {
        // Calls that were not asked for are no calls: after the last turn nobody could carry them out. However the tools were told, a call
        // that the server reports is one.
        let is_asked_for = match self.reading {
            Reading::Native { with_calls } | Reading::Json { with_calls } | Reading::Text { with_calls } => with_calls,
            Reading::Held => true,
            Reading::Schema => false,
        };
        if is_asked_for && let Some(name) = self.calls.take(piece) {
            on(Update::CallStarted { name });
        }
    }

    /// Returns what there is at an interrupt; calls that were under way are left out.
    pub(in crate::llm) fn interrupted(self) -> Reply {
        let text = match self.reading {
            Reading::Json { .. } | Reading::Held => begun_answer(&self.text),
            // As far as it was shown.
            Reading::Text { .. } => self.parsed.content,
            Reading::Native { .. } if self.parser.is_some() => self.parsed.content,
            Reading::Native { .. } | Reading::Schema => self.text,
        };
        Reply {
            text,
            thinking: self.thinking + &self.parsed.reasoning,
            usage: self.usage.unwrap_or_default(),
            finish: Finish::Interrupted,
            timings: self.timings,
            ..Reply::default()
        }
    }

    /// Returns the answer that the server could not read, where the part of it that it repeats holds calls.
    pub(in crate::llm) fn recover(&self, raw: &str, is_taken: impl Fn(&str) -> bool, on: &mut (dyn FnMut(Update) + Send)) -> Option<Reply> {
        // With half a call in hand nobody knows where the rest of it begins.
        if self.reading != (Reading::Native { with_calls: true }) || !self.calls.is_empty() {
            return None;
        }
        let parsed = text::parse(raw, &self.tools, None);
        if parsed.calls.is_empty() || parsed.incomplete.is_some() {
            return None;
        }
        for call in &parsed.calls {
            on(Update::CallStarted { name: call.name.clone() });
        }
        let (calls, fault) = numbered(parsed.calls, is_taken);
        let text = if self.text.trim().is_empty() { parsed.content } else { self.text.clone() };
        let thinking = self.thinking.clone() + &parsed.reasoning;
        let usage = usage(self.usage, self.timings);
        Some(Reply {
            text,
            thinking,
            calls,
            fault,
            usage,
            finish: Finish::ToolCalls,
            timings: self.timings,
            recovered: true,
            ..Reply::default()
        })
    }

    /// Returns the whole answer. `is_taken` says which ids other calls of the conversation have.
    pub(in crate::llm) fn finish(mut self, is_taken: impl Fn(&str) -> bool, on: &mut (dyn FnMut(Update) + Send)) -> Result<Reply, Error> {
        let (thinking, text) = (self.thinking_joint.end(), self.text_joint.end());
        if !thinking.is_empty() {
            self.add_thinking(&thinking, on)?;
        }
        let mut parts = Vec::new();
        self.splitter.feed(&text, |part| parts.push(part));
        self.splitter.finish(|part| parts.push(part));
        self.add_parts(parts, on)?;
        let mut pieces = Vec::new();
        let incomplete = self.parser.take().and_then(|parser| parser.finish(&mut |piece| pieces.push(piece)));
        self.add_pieces(pieces, on)?;
        if self.with_calls() && self.calls.is_empty() {
            unknown::add(&mut self.parsed, self.before_calls, &self.tools);
        }
        let goes_on = text::goes_on(&self.parsed, self.before_calls) || self.parsed.calls.is_empty() && !self.parsed.mentions.is_empty();
        let unsure = (self.with_calls() && self.calls.is_empty() && goes_on).then(|| unsure(&self.parsed, &is_taken));
        let thinking = std::mem::take(&mut self.thinking);
        let mut reply = Reply { thinking, usage: usage(self.usage, self.timings), timings: self.timings, ..Reply::default() };
        let json = match self.reading {
            Reading::Json { with_calls } if self.calls.is_empty() => Some(with_calls),
            Reading::Held if self.calls.is_empty() => Some(true),
            _ => None,
        };
        if let Some(with_calls) = json {
            match constrained::parse(&self.text) {
                Parsed::Answer(text) => {
                    if !self.shown_text && !text.is_empty() {
                        on(Update::Text(text.clone()));
                    }
                    reply.text = text;
                }
                Parsed::Call(name, arguments) if with_calls => {
                    self.calls.take(Piece { index: Some(0), id: None, name: Some(name), arguments: arguments.into() });
                    (reply.calls, reply.fault) = self.calls.finish(is_taken);
                }
                Parsed::Call(..) => reply.fault = Some("No more tools can be used. Reply with {\"answer\": \"your text\"}.".to_owned()),
                Parsed::Faulty(problem) => {
                    // An answer that only ran out of tokens is an answer, as far as it goes.
                    let begun = if self.finish == Some(Finish::Length) { begun_answer(&self.text) } else { String::new() };
                    if begun.is_empty() {
                        reply.fault = Some(problem);
                    } else {
                        reply.text = begun;
                        reply.finish = Finish::Length;
                        return Ok(reply);
                    }
                }
            }
            reply.raw = Some(self.text);
        } else if !self.calls.is_empty() {
            self.take_words(&mut reply);
            (reply.calls, reply.fault) = self.calls.finish(is_taken);
        } else if let Reading::Text { with_calls } = self.reading {
            if unsure.is_some() {
                reply.text.clone_from(&self.text);
                reply.unsure = unsure;
            } else {
                self.take_parsed(&mut reply, incomplete.as_ref(), is_taken);
            }
            if with_calls && reply.unsure.is_none() && reply.calls.is_empty() && reply.fault.is_none() {
                reply.fault = prompted::unknown_tool(&reply.text);
            }
            // What cannot be repeated as it is, or should not be, is written anew.
            let is_whole = incomplete.is_none() && with_calls && matches!(neutralise(&self.text), std::borrow::Cow::Borrowed(_));
            reply.raw = Some(self.text).filter(|_| is_whole);
        } else if unsure.is_none() && (!self.parsed.calls.is_empty() || incomplete.as_ref().is_some_and(|cut| cut.name.is_some())) {
            self.take_parsed(&mut reply, incomplete.as_ref(), is_taken);
            reply.recovered = !reply.calls.is_empty();
        } else {
            reply.text = self.text;
            let with_calls = self.reading == (Reading::Native { with_calls: true });
            let elsewhere = if with_calls && self.finish != Some(Finish::Length) {
                elsewhere(&mut reply, &self.tools, self.is_understood)
            } else {
                Vec::new()
            };
            reply.recovered = !elsewhere.is_empty();
            reply.unsure = unsure.filter(|_| elsewhere.is_empty());
            (reply.calls, reply.fault) = numbered(elsewhere, is_taken);
        }
        reply.finish = finish(self.finish, &reply.calls);
        Ok(reply)
    }
}

/// Reads a whole text as the answer of a server that tells of no calls and understood none before.
pub fn understood(text: &str, tools: &text::Tools) -> Result<Reply, Error> {
    let mut assembler = Assembler::new(Reading::Native { with_calls: true }, tools);
    assembler.add_text(text, &mut |_| {})?;
    assembler.finish(|_| false, &mut |_| {})
}

/// Takes calls out of places where neither server nor parser looks: a thought that led to nothing else, and a call of a tool that does not
/// exist, which is one all the same, so that its result can say so.
fn elsewhere(reply: &mut Reply, tools: &text::Tools, marked_only: bool) -> Vec<text::Call> {
    if reply.text.trim().is_empty()
        && let Some((calls, rest)) = thought(&reply.thinking, tools, marked_only)
    {
        reply.thinking = rest;
        return calls;
    }
    let (before, calls) = unknown::calls(&reply.text, tools);
    if !calls.is_empty() {
        reply.text = before.to_owned();
    }
    calls
}

/// Returns all calls of an answer, whatever follows them, and the words around them.
fn unsure(parsed: &text::Parsed, is_taken: impl Fn(&str) -> bool) -> Unsure {
    let mentioned = parsed.mentions.iter().flat_map(|mention| &mention.calls);
    let (calls, _) = numbered(parsed.calls.iter().chain(mentioned).cloned().collect(), is_taken);
    let text = parsed.mentions.iter().fold(parsed.content.clone(), |text, mention| text.replacen(&mention.raw, "", 1));
    Unsure { calls, text: text.trim().to_owned() }
}

/// Returns the calls that a thought ends with, and the rest of it.
fn thought(thinking: &str, tools: &text::Tools, marked_only: bool) -> Option<(Vec<text::Call>, String)> {
    if thinking.trim().is_empty() || tools.is_empty() {
        return None;
    }
    let (mut parsed, mut goes_on) = (text::Parsed::default(), false);
    let mut parser = text::Parser::new(tools, None).marked_only(marked_only);
    let mut take = |piece: text::Piece| {
        let is_call = matches!(piece, text::Piece::Call(_));
        goes_on = !is_call && (goes_on || !parsed.calls.is_empty() && is_said(&piece));
        parsed.add(piece);
    };
    parser.feed(thinking, &mut take);
    let incomplete = parser.finish(&mut take);
    let parsed = parsed.ended(incomplete);
    let rest = [parsed.reasoning, parsed.content].join("\n").trim().to_owned();
    (!parsed.calls.is_empty() && !goes_on && parsed.incomplete.is_none()).then_some((parsed.calls, rest))
}

fn is_said(piece: &text::Piece) -> bool {
    matches!(piece, text::Piece::Content(text) | text::Piece::Reasoning(text) if !text.trim().is_empty())
}

/// Gives each call an id that no other call of the conversation has.
fn numbered(found: Vec<text::Call>, is_taken: impl Fn(&str) -> bool) -> (Vec<ToolCall>, Option<String>) {
    let mut calls = Calls::default();
    for (call, index) in found.into_iter().zip(0..) {
        calls.take(Piece { index: Some(index), id: None, name: Some(call.name), arguments: call.arguments.into() });
    }
    calls.finish(is_taken)
}

/// Returns the answer in the beginning of a JSON text. What was shown is what the person knows of; the raw half of a JSON text would only
/// teach the model to write halves.
fn begun_answer(json: &str) -> String {
    let mut text = String::new();
    Reader::default().feed(json, |seen| {
        if let Seen::Text(more) = seen {
            text.push_str(&more);
        }
    });
    text
}

fn bound(what: &'static str, n_bytes: usize) -> Result<(), Error> {
    if n_bytes > MAX_TEXT { Err(Error::TooLarge { what, limit: MAX_TEXT as u64 }) } else { Ok(()) }
}

/// The server's count, or else what llama-server measured.
fn usage(usage: Option<Usage>, timings: Option<Timings>) -> Usage {
    let mut usage = usage.unwrap_or_default();
    if let Some(timings) = timings {
        usage.cached = usage.cached.max(timings.cache_n);
        if usage.prompt == 0 {
            usage.prompt = timings.cache_n.saturating_add(timings.prompt_n);
        }
        if usage.completion == 0 {
            usage.completion = timings.predicted_n;
        }
    }
    usage.cached = usage.cached.min(usage.prompt);
    usage
}

/// Calls are what counts: some servers give the reason `stop` with them, some `tool_calls` without.
fn finish(said: Option<Finish>, calls: &[ToolCall]) -> Finish {
    match said {
        Some(Finish::Length) => Finish::Length,
        Some(Finish::ContentFilter) => Finish::ContentFilter,
        _ if !calls.is_empty() => Finish::ToolCalls,
        _ => Finish::Stop,
    }
}
