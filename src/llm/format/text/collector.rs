//! Orders what the parser recognized: what can be emitted at once, and what must wait until the
//! rest of the message decides.

use super::call::Call;

/// How much of the beginning of the content is kept, in bytes.
const MAX_HEAD: usize = 4096;

/// A part of a message, emitted as soon as it is certain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Content(String),
    Reasoning(String),
    Call(Call),
    /// Everything before was a thought, including its calls: the thought's opening tag was in the
    /// prompt.
    WasThought,
    /// The first line of the content so far was a header that names the recipient of the rest.
    WasHeader,
}

/// Whether text is part of the answer or of a thought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Content,
    Reasoning,
}

#[derive(Debug)]
enum PendingPiece {
    Text(TextKind, String),
    Noise(String),
    Likely {
        place: TextKind,
        raw: String,
        calls: Vec<Call>,
    },
}

/// What has the form of a call but is content, because other text accompanies it.
#[derive(Debug)]
pub(super) struct RejectedCall {
    pub(super) name: String,
    /// Its source text in the content.
    pub(super) raw: String,
}

#[derive(Debug, Default)]
pub(super) struct Collector {
    ready: Vec<Piece>,
    /// A likely call and everything after it; empty most of the time.
    held: Vec<PendingPiece>,
    has_calls: bool,
    has_content: bool,
    /// The calls so far, with their source texts, as long as they may turn out to be part of a
    /// thought.
    may_be_thought: Vec<(String, Vec<Call>)>,
    beside: Option<RejectedCall>,
    /// Whitespace before the content is part of it.
    keeps_blanks: bool,
    /// Meaningless tokens at the end of the content, and whitespace after them: kept only if more
    /// content follows.
    pad: String,
    /// The whitespace in `pad` alone.
    blanks: String,
    /// No content came since the last call, so a meaningless token belongs to the call.
    is_behind_call: bool,
    /// The beginning of the content.
    head: String,
}

impl Collector {
    pub(super) fn take(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.ready)
    }

    pub(super) fn keep_whitespace(&mut self) {
        self.keeps_blanks = true;
    }

    pub(super) fn head(&self) -> &str {
        &self.head
    }

    /// Returns the first call that was rejected because of accompanying text.
    pub(super) fn take_rejected(&mut self) -> Option<RejectedCall> {
        self.beside.take()
    }

    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Returns whether there is content other than whitespace.
    pub(super) fn has_content(&self) -> bool {
        self.has_content
    }

    /// Returns whether there is neither content nor a call yet.
    pub(super) fn is_empty(&self) -> bool {
        !self.has_content && !self.has_calls
    }

    pub(super) fn text(&mut self, place: TextKind, text: &str) {
        if text.is_empty() {
            return;
        }
        if place == TextKind::Content && !text.trim().is_empty() {
            // An unmarked call counts only alone, and a call in a thought only where no content
            // follows.
            self.release(|_| false);
        }
        match self.held.last_mut() {
            None => self.say(place, text),
            Some(PendingPiece::Text(last, before)) if *last == place => before.push_str(text),
            Some(_) => self.held.push(PendingPiece::Text(place, text.to_owned())),
        }
    }

    /// Takes a token that carries no meaning.
    pub(super) fn noise(&mut self, token: &str) {
        if self.held.is_empty() {
            self.say_noise(token);
        } else {
            self.held.push(PendingPiece::Noise(token.to_owned()));
        }
    }

    /// Discards meaningless tokens: content does not continue.
    pub(super) fn drop_noise(&mut self) {
        self.pad.clone_from(&self.blanks);
    }

    /// Takes what is a call if the message is nothing else, or if it ends a thought that nothing
    /// follows.
    pub(super) fn likely(&mut self, place: TextKind, raw: &str, calls: Vec<Call>) {
        let is_alone = !self.has_calls && (place == TextKind::Reasoning || !self.has_content);
        if is_alone {
            self.held.push(PendingPiece::Likely {
                place,
                raw: raw.to_owned(),
                calls,
            });
            return;
        }
        if place == TextKind::Content {
            self.note_rejected(raw, &calls);
        }
        self.text(place, raw);
    }

    fn note_rejected(&mut self, raw: &str, calls: &[Call]) {
        if let (None, Some(call)) = (&self.beside, calls.first()) {
            self.beside = Some(RejectedCall {
                name: call.name.clone(),
                raw: raw.to_owned(),
            });
        }
    }

    /// Takes calls that count whatever accompanies them. `may_be_thought`: no thought has ended
    /// yet, so everything so far may be one.
    pub(super) fn certain(&mut self, raw: &str, calls: Vec<Call>, may_be_thought: bool) {
        self.release(|_| false);
        self.has_calls = true;
        self.drop_noise();
        self.is_behind_call = true;
        if may_be_thought {
            self.may_be_thought.push((raw.to_owned(), calls.clone()));
        }
        self.ready.extend(calls.into_iter().map(Piece::Call));
    }

    /// Reclassifies everything so far as a thought.
    pub(super) fn retract_as_thought(&mut self) {
        self.release(|_| false);
        self.ready.push(Piece::WasThought);
        (self.has_content, self.has_calls, self.is_behind_call) = (false, false, false);
        self.beside = None;
        self.head.clear();
        self.pad.clear();
        self.blanks.clear();
        for (raw, calls) in std::mem::take(&mut self.may_be_thought) {
            self.held.push(PendingPiece::Likely {
                place: TextKind::Reasoning,
                raw,
                calls,
            });
        }
    }

    /// Reclassifies the first line of the content as a header; `has_words` says whether there was
    /// more content.
    pub(super) fn retract_header(&mut self, has_words: bool) {
        self.ready.push(Piece::WasHeader);
        self.has_content &= has_words;
        self.head
            .drain(..self.head.find('\n').map_or(self.head.len(), |end| end + 1));
    }

    /// Decides about pending pieces: the message is complete.
    pub(super) fn finish(&mut self) {
        let is_in = |place| move |held: &PendingPiece| matches!(held, PendingPiece::Likely { place: at, .. } if *at == place);
        if self.held.iter().any(is_in(TextKind::Content)) {
            return self.release(|place| place == TextKind::Content);
        }
        // Of a thought that nothing follows, the calls at its end count.
        let is_said = |held: &PendingPiece| matches!(held, PendingPiece::Text(_, text) if !text.trim().is_empty());
        let last = self.held.iter().rposition(is_said).map_or(0, |at| at + 1);
        let ending = self.held.split_off(last);
        self.release(|_| false);
        self.held = ending;
        self.release(|place| place == TextKind::Reasoning);
    }

    fn release(&mut self, is_call: impl Fn(TextKind) -> bool) {
        for held in std::mem::take(&mut self.held) {
            match held {
                PendingPiece::Text(place, text) => self.say(place, &text),
                PendingPiece::Noise(token) => self.say_noise(&token),
                PendingPiece::Likely { place, calls, .. } if is_call(place) => {
                    self.has_calls = true;
                    self.drop_noise();
                    self.is_behind_call = true;
                    self.ready.extend(calls.into_iter().map(Piece::Call));
                }
                PendingPiece::Likely { place, raw, calls } => {
                    if place == TextKind::Content {
                        self.note_rejected(&raw, &calls);
                    }
                    self.say(place, &raw);
                }
            }
        }
    }

    fn say(&mut self, place: TextKind, text: &str) {
        if place == TextKind::Reasoning {
            // Whitespace after a thought belongs to its tag.
            self.keeps_blanks = false;
            return match self.ready.last_mut() {
                Some(Piece::Reasoning(before)) => before.push_str(text),
                _ => self.ready.push(Piece::Reasoning(text.to_owned())),
            };
        }
        let text = if self.has_content || self.keeps_blanks {
            text
        } else {
            text.trim_start()
        };
        if text.is_empty() {
            return;
        }
        if !self.pad.is_empty() && text.trim().is_empty() {
            self.pad.push_str(text);
            self.blanks.push_str(text);
            return;
        }
        let pad = std::mem::take(&mut self.pad);
        self.blanks.clear();
        self.has_content |= !text.trim().is_empty();
        self.is_behind_call &= text.trim().is_empty();
        self.keep_head(&pad);
        self.keep_head(text);
        match self.ready.last_mut() {
            Some(Piece::Content(before)) => {
                before.push_str(&pad);
                before.push_str(text);
            }
            _ => self.ready.push(Piece::Content(pad + text)),
        }
    }

    fn keep_head(&mut self, text: &str) {
        let end = text.floor_char_boundary(MAX_HEAD.saturating_sub(self.head.len()));
        self.head.push_str(&text[..end]);
    }

    fn say_noise(&mut self, token: &str) {
        // At the beginning, and after a call, it is dropped for good.
        if self.has_content && !self.is_behind_call {
            self.pad.push_str(token);
        }
    }
}
