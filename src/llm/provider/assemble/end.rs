//! Builds the reply at the end of an answer: complete, truncated, or unparsable for the server.

use super::Assembler;
use super::Reading;
use super::cut::half;
use super::cut::half_object;
use super::cut::half_of_object;
use super::elsewhere::numbered;
use crate::control::neutralise;
use crate::error::Error;
use crate::format::constrained;
use crate::format::constrained::ConstrainedAnswer;
use crate::format::json_answer::AnswerPiece;
use crate::format::json_answer::JsonAnswerReader;
use crate::format::prompted;
use crate::format::text;
use crate::provider::calls::Piece;
use crate::stream::Finish;
use crate::stream::Reply;
use crate::stream::Timings;
use crate::stream::Update;
use podbay_event::HalfCall;
use podbay_event::ToolCall;
use podbay_event::Usage;

impl Assembler {
    /// Returns the partial reply after an interrupt; incomplete calls are dropped.
    pub(crate) fn interrupted(self) -> Reply {
        let text = match self.reading {
            Reading::Json { .. } | Reading::Held if self.parser.is_none() => {
                partial_answer(&self.text)
            }
            // As far as it was shown.
            Reading::Json { .. }
            | Reading::Held
            | Reading::Text { .. }
            | Reading::Native { .. } => self.parsed.content,
            Reading::Schema => self.text,
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

    /// Returns an answer that the server could not parse, if the part that it repeats contains
    /// calls.
    pub(crate) fn recover(
        &self,
        raw: &str,
        is_taken: impl Fn(&str) -> bool,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Option<Reply> {
        let has_calls = match self.reading {
            Reading::Native { with_calls } => with_calls,
            // If calls are parsed from the text, its result is available already.
            Reading::Json { with_calls } | Reading::Text { with_calls } => {
                with_calls && self.text.is_empty()
            }
            Reading::Held => self.text.is_empty(),
            Reading::Schema => false,
        };
        // After an incomplete call it is unknown where the rest of it begins.
        if !has_calls || !self.calls.is_empty() {
            return None;
        }
        let parsed = text::parse(raw, &self.tools, None);
        if parsed.calls.is_empty() || parsed.incomplete.is_some() {
            return None;
        }
        for call in &parsed.calls {
            on(Update::CallStarted {
                name: call.name.clone(),
            });
        }
        let (calls, fault) = numbered(parsed.calls, is_taken);
        let text = if self.text.trim().is_empty() {
            parsed.content
        } else {
            self.text.clone()
        };
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

    /// Returns the complete reply. `is_taken` says which ids other calls of the conversation have.
    pub(crate) fn finish(
        mut self,
        is_taken: impl Fn(&str) -> bool,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Result<Reply, Error> {
        let (thinking, text) = (self.thinking_joint.end(), self.text_joint.end());
        if !thinking.is_empty() {
            self.add_thinking(&thinking, on)?;
        }
        let mut parts = Vec::new();
        self.splitter.feed(&text, |part| parts.push(part));
        self.splitter.finish(|part| parts.push(part));
        self.add_parts(parts, on)?;
        let (told, is_cut) = (self.reading, self.is_cut());
        let was_to_be_object = self.take_unheld(on)?;
        let mut pieces = Vec::new();
        let is_over = self.parser.as_ref().is_some_and(text::Parser::is_over);
        let mut incomplete = self
            .parser
            .as_mut()
            .and_then(|parser| parser.close(&mut |piece| pieces.push(piece)));
        self.parser = None;
        self.add_pieces(pieces, on)?;
        self.take_behind_thought(told);
        if self.take_unknown() {
            incomplete = None;
        }
        let is_unheld = was_to_be_object && self.reading != told;
        if is_over && (is_unheld || !was_to_be_object) {
            // What the model invented for other speakers must not be repeated as its own text.
            self.parsed.content.trim_end().clone_into(&mut self.text);
        }
        let is_unclear = incomplete
            .as_ref()
            .is_some_and(|incomplete| incomplete.part == text::IncompletePart::Unclear);
        let looks_like_call = is_unclear && self.with_calls() && self.calls.is_empty();
        let thinking = std::mem::take(&mut self.thinking);
        let mut reply = Reply {
            thinking,
            usage: usage(self.usage, self.timings),
            timings: self.timings,
            is_unheld,
            looks_like_call,
            ..Reply::default()
        };
        let json = match self.reading {
            Reading::Json { with_calls } if self.calls.is_empty() => Some(with_calls),
            Reading::Held if self.calls.is_empty() => Some(true),
            _ => None,
        };
        if json == Some(true)
            && self.text.trim().is_empty()
            && self.take_calls_of_thought(&mut reply, &is_taken)
        {
            reply.finish = finish(self.finish, &reply.calls);
            return Ok(reply);
        }
        if let Some(with_calls) = json {
            let parsed = match constrained::parse(&self.text) {
                // Beside a call that cannot be executed the text is the answer.
                ConstrainedAnswer::Call { said, name, .. }
                    if !(said.is_empty() || with_calls && self.tools.has(&name)) =>
                {
                    ConstrainedAnswer::Answer(said)
                }
                parsed => parsed,
            };
            let is_unfinished_object = match &parsed {
                ConstrainedAnswer::Answer(text) => self.is_cut() && text == self.text.trim(),
                ConstrainedAnswer::Faulty(_) => true,
                ConstrainedAnswer::Call { .. } => false,
            };
            if let Some(begun) = is_unfinished_object
                .then(|| constrained::partial_answer(&self.text))
                .flatten()
            {
                // An answer that only ran out of tokens counts as far as it goes, and any part of
                // one is better than none. Its truncated raw form would only teach the model to
                // truncate.
                if !self.shown_text {
                    on(Update::Text(begun.clone()));
                }
                reply.half = self.half_in_prose(&begun).filter(|_| with_calls);
                reply.text = begun;
                reply.is_in_object = true;
                reply.finish = finish(self.finish, &[]);
                if let (ConstrainedAnswer::Faulty(problem), false) = (parsed, self.is_cut()) {
                    reply.fault = Some(problem);
                }
                return Ok(reply);
            }
            match parsed {
                ConstrainedAnswer::Answer(text) => {
                    self.show_rest(&text, on);
                    reply.half = self.half_in_prose(&text).filter(|_| with_calls);
                    reply.text = text;
                }
                ConstrainedAnswer::Call {
                    said,
                    name,
                    arguments,
                } if with_calls => {
                    self.show_rest(&said, on);
                    reply.text = said;
                    self.calls.take(Piece {
                        index: Some(0),
                        id: None,
                        name: Some(name),
                        arguments: arguments.into(),
                    });
                    (reply.calls, reply.fault) = self.calls.finish(is_cut, is_taken);
                }
                ConstrainedAnswer::Call { .. } => {
                    reply.fault = Some(
                        "No more tools can be used. Reply with {\"answer\": \"your text\"}."
                            .to_owned(),
                    );
                }
                ConstrainedAnswer::Faulty(problem) => {
                    reply.half = half_of_object(&self.text, self.finish);
                    reply.fault = Some(half_object(&self.text, self.finish, problem));
                }
            }
            reply.raw = Some(self.text);
        } else if !self.calls.is_empty() {
            self.take_words(&mut reply);
            let half = self.take_half_call();
            (reply.calls, reply.fault) = self.calls.finish(is_cut, is_taken);
            if let Some((begun, fault)) = half {
                reply.half = Some(HalfCall {
                    before: reply.text.clone(),
                    begun,
                    is_reported: true,
                });
                reply.fault = Some(fault);
            }
        } else if let Reading::Text { with_calls } = self.reading {
            let has_thought = !self.parsed.reasoning.is_empty();
            self.take_parsed(&mut reply, incomplete.as_ref(), &is_taken);
            if with_calls && reply.calls.is_empty() && reply.fault.is_none() {
                self.take_calls_of_thought(&mut reply, &is_taken);
            }
            if with_calls
                && reply.calls.is_empty()
                && reply.fault.is_none()
                && !reply.looks_like_call
            {
                reply.fault = prompted::unknown_tool(&reply.text, is_unheld);
            }
            let is_plain =
                reply.calls.is_empty() && reply.half.is_none() && !is_over && !has_thought;
            reply.written = is_plain.then(|| self.text.clone());
            // What cannot or should not be repeated unchanged is rewritten.
            let is_whole = incomplete.is_none()
                && !is_over
                && with_calls
                && matches!(neutralise(&self.text), std::borrow::Cow::Borrowed(_));
            reply.raw = Some(self.text).filter(|text| is_whole && !text.trim().is_empty());
        } else if !self.parsed.calls.is_empty()
            || incomplete
                .as_ref()
                .is_some_and(|incomplete| is_sure(incomplete, &self.text))
        {
            self.take_parsed(&mut reply, incomplete.as_ref(), is_taken);
            reply.recovered = !reply.calls.is_empty();
        } else {
            let with_calls = self.reading == (Reading::Native { with_calls: true });
            self.take_thought(&mut reply, incomplete.as_ref());
            // With a truncated tag it is not known yet to be one.
            reply.half = incomplete
                .filter(|_| with_calls)
                .and_then(|incomplete| half(&self.parsed, &incomplete, self.finish));
            if with_calls {
                reply.recovered = self.take_calls_of_thought(&mut reply, is_taken);
            }
        }
        reply.looks_like_call &= reply.calls.is_empty() && reply.fault.is_none();
        reply.finish = finish(self.finish, &reply.calls);
        Ok(reply)
    }

    /// Shows the rest of the text in an object that was not shown while streaming.
    fn show_rest(&self, text: &str, on: &mut (dyn FnMut(Update) + Send)) {
        let shown = partial_answer(&self.text);
        let rest = if self.shown_text {
            text.strip_prefix(shown.as_str())
                .or_else(|| text.strip_prefix(shown.trim_end()))
        } else {
            Some(text)
        };
        if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            on(Update::Text(rest.to_owned()));
        }
    }

    /// Takes the text beside calls that the server itself reports. Anything else in it that looks
    /// like a call is none.
    fn take_words(&mut self, reply: &mut Reply) {
        reply.text = match self.reading {
            Reading::Native { .. } | Reading::Schema => std::mem::take(&mut self.text),
            Reading::Json { .. } | Reading::Held => match constrained::parse(&self.text) {
                ConstrainedAnswer::Answer(text) => text,
                ConstrainedAnswer::Call { .. } | ConstrainedAnswer::Faulty(_) => {
                    partial_answer(&self.text)
                }
            },
            Reading::Text { .. } => {
                let parsed = std::mem::take(&mut self.parsed).ended(None);
                reply.thinking.push_str(&parsed.reasoning);
                parsed.content
            }
        };
    }

    /// Takes the text, and separates a thought that the template began and the server left in it.
    fn take_thought(&mut self, reply: &mut Reply, incomplete: Option<&text::Incomplete>) {
        let is_whole = self.parsed.calls.is_empty()
            && incomplete.is_none_or(|incomplete| incomplete.part == text::IncompletePart::Unclear);
        // The headers of gpt-oss are not content, even without a thought among them.
        let has_header = ["<|channel|>", "<|start|>"]
            .iter()
            .any(|header| self.text.trim_start().starts_with(header));
        if self.parsed.reasoning.is_empty() && !has_header || !is_whole {
            // A truncated answer continues, so its last tag is in the middle of the whole answer.
            if incomplete.is_none() && !self.is_cut() {
                self.drop_end_of_turn();
            }
            reply.text = std::mem::take(&mut self.text);
            return;
        }
        let parsed = std::mem::take(&mut self.parsed).ended(None);
        reply.text = parsed.content;
        self.keep_blanks(&mut reply.text);
        reply.thinking.push_str(&parsed.reasoning);
    }

    /// Drops the model's end-of-turn token from the end of an answer, if its server left it there.
    fn drop_end_of_turn(&mut self) {
        let said = self.parsed.content.trim_end();
        let rest = self.text.strip_prefix(said).map(str::trim);
        if !said.is_empty()
            && rest.is_some_and(|rest| {
                rest.starts_with(['<', '[']) && rest.ends_with(['>', ']']) && !rest.contains(' ')
            })
        {
            self.text.truncate(said.len());
        }
    }

    /// Keeps whitespace at the end of a truncated answer: it separates it from its continuation.
    fn keep_blanks(&self, text: &mut String) {
        let said = self.text.trim_end();
        if self.finish == Some(Finish::Length) && !text.is_empty() && said.ends_with(text.as_str())
        {
            text.push_str(&self.text[said.len()..]);
        }
    }

    /// Builds the reply from the parsed text.
    fn take_parsed(
        &mut self,
        reply: &mut Reply,
        incomplete: Option<&text::Incomplete>,
        is_taken: impl Fn(&str) -> bool,
    ) {
        reply.half = incomplete.and_then(|incomplete| half(&self.parsed, incomplete, self.finish));
        let parsed = std::mem::take(&mut self.parsed).ended(None);
        reply.text = parsed.content;
        self.keep_blanks(&mut reply.text);
        reply.thinking.push_str(&parsed.reasoning);
        let fault =
            incomplete.and_then(|incomplete| prompted::not_carried_out(incomplete, self.finish));
        if !self.with_calls() {
            return;
        }
        reply.source = (!parsed.calls.is_empty()).then(|| self.text.clone());
        for (call, index) in parsed.calls.into_iter().zip(0..) {
            self.calls.take(Piece {
                index: Some(index),
                id: None,
                name: Some(call.name),
                arguments: call.arguments.into(),
            });
        }
        (reply.calls, reply.fault) = std::mem::take(&mut self.calls).finish(false, is_taken);
        reply.fault = reply.fault.take().or(fault);
    }
}

/// Returns whether there was an unexecuted call in a text, rather than only the beginning of
/// something.
pub(super) fn is_sure(incomplete: &text::Incomplete, text: &str) -> bool {
    match incomplete.part {
        text::IncompletePart::Call => {
            incomplete.name.is_some() || text::ends_with_mark(text, incomplete)
        }
        text::IncompletePart::Unreadable => true,
        text::IncompletePart::Unclear | text::IncompletePart::Reasoning => false,
    }
}

/// Returns the answer in the beginning of a JSON text. It was shown to the user; the truncated raw
/// form would only teach the model to truncate.
fn partial_answer(json: &str) -> String {
    let mut text = String::new();
    JsonAnswerReader::default().feed(json, |seen| {
        if let AnswerPiece::Text(more) = seen {
            text.push_str(&more);
        }
    });
    text
}

/// Returns the server's count, else llama-server's timings.
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

/// Calls decide: some servers give the reason `stop` with them, some `tool_calls` without.
fn finish(said: Option<Finish>, calls: &[ToolCall]) -> Finish {
    match said {
        Some(Finish::Length) => Finish::Length,
        Some(Finish::ContentFilter) => Finish::ContentFilter,
        _ if !calls.is_empty() => Finish::ToolCalls,
        _ => Finish::Stop,
    }
}
