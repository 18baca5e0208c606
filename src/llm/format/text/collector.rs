//! Puts in order what was recognised: what can be said at once, and what must wait until the
//! message has shown what it is.

use super::call::Call;

/// How much of the content's beginning is kept, in bytes.
const MAX_HEAD: usize = 4096;

/// More of a message, as soon as it is sure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Content(String),
    Reasoning(String),
    Call(Call),
    /// All so far was a thought, with the calls in it: its beginning stood in the prompt.
    Rethought,
    /// The first line of the content so far was a header, which says to whom the rest goes.
    Headed,
}

/// Where something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Content,
    Reasoning,
}

#[derive(Debug)]
enum Held {
    Text(Place, String),
    Noise(String),
    Likely {
        place: Place,
        raw: String,
        calls: Vec<Call>,
    },
}

/// A call that is none, as other things are said beside it.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) name: String,
    /// How it stands in the content.
    pub(super) raw: String,
}

#[derive(Debug, Default)]
pub(super) struct Collector {
    ready: Vec<Piece>,
    /// All that comes after a likely call, and that call; empty most of the time.
    held: Vec<Held>,
    has_calls: bool,
    has_content: bool,
    /// The calls so far, with their texts, as long as they may turn out to be those of a thought.
    may_be_thought: Vec<(String, Vec<Call>)>,
    beside: Option<Beside>,
    /// Blanks before the content are part of it.
    keeps_blanks: bool,
    /// Tokens that say nothing at the end of the content, and blanks behind them: they count if
    /// more of it follows.
    pad: String,
    /// Those blanks alone.
    blanks: String,
    /// No content came since the last call: a token that says nothing belongs to that.
    is_behind_call: bool,
    /// How the content begins.
    head: String,
}

impl Collector {
    pub(super) fn take(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.ready)
    }

    pub(super) fn keep_blanks(&mut self) {
        self.keeps_blanks = true;
    }

    /// Returns how the content begins.
    pub(super) fn head(&self) -> &str {
        &self.head
    }

    /// Returns the first call that is none because of what stands beside it.
    pub(super) fn take_beside(&mut self) -> Option<Beside> {
        self.beside.take()
    }

    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Returns whether content was found that is more than blanks.
    pub(super) fn has_content(&self) -> bool {
        self.has_content
    }

    /// Returns whether nothing was said or called yet.
    pub(super) fn is_empty(&self) -> bool {
        !self.has_content && !self.has_calls
    }

    pub(super) fn text(&mut self, place: Place, text: &str) {
        if text.is_empty() {
            return;
        }
        if place == Place::Content && !text.trim().is_empty() {
            // What no mark tells from words is a call only alone, and a thought that led to words
            // was none.
            self.release(|_| false);
        }
        match self.held.last_mut() {
            None => self.say(place, text),
            Some(Held::Text(last, before)) if *last == place => before.push_str(text),
            Some(_) => self.held.push(Held::Text(place, text.to_owned())),
        }
    }

    /// Takes a token that says nothing.
    pub(super) fn noise(&mut self, token: &str) {
        if self.held.is_empty() {
            self.say_noise(token);
        } else {
            self.held.push(Held::Noise(token.to_owned()));
        }
    }

    /// Forgets tokens that say nothing: what follows is something else than content.
    pub(super) fn drop_noise(&mut self) {
        self.pad.clone_from(&self.blanks);
    }

    /// Takes what is a call if the message is nothing else, or ends a thought that led to nothing
    /// else.
    pub(super) fn likely(&mut self, place: Place, raw: &str, calls: Vec<Call>) {
        let is_alone = !self.has_calls && (place == Place::Reasoning || !self.has_content);
        if is_alone {
            self.held.push(Held::Likely {
                place,
                raw: raw.to_owned(),
                calls,
            });
            return;
        }
        if place == Place::Content {
            self.note_beside(raw, &calls);
        }
        self.text(place, raw);
    }

    fn note_beside(&mut self, raw: &str, calls: &[Call]) {
        if let (None, Some(call)) = (&self.beside, calls.first()) {
            self.beside = Some(Beside {
                name: call.name.clone(),
                raw: raw.to_owned(),
            });
        }
    }

    /// Takes calls, whatever else is said. `may_be_thought`: no thought has ended yet, so that all
    /// so far may be one.
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

    /// Takes back that what came so far was the answer: it was a thought.
    pub(super) fn rethink(&mut self) {
        self.release(|_| false);
        self.ready.push(Piece::Rethought);
        (self.has_content, self.has_calls, self.is_behind_call) = (false, false, false);
        self.beside = None;
        self.head.clear();
        self.pad.clear();
        self.blanks.clear();
        for (raw, calls) in std::mem::take(&mut self.may_be_thought) {
            self.held.push(Held::Likely {
                place: Place::Reasoning,
                raw,
                calls,
            });
        }
    }

    /// Takes back that the first line was content; `has_words` says whether more than that was
    /// said.
    pub(super) fn unhead(&mut self, has_words: bool) {
        self.ready.push(Piece::Headed);
        self.has_content &= has_words;
        self.head
            .drain(..self.head.find('\n').map_or(self.head.len(), |end| end + 1));
    }

    /// Decides what was held back: nothing more comes.
    pub(super) fn finish(&mut self) {
        let is_in = |place| move |held: &Held| matches!(held, Held::Likely { place: at, .. } if *at == place);
        if self.held.iter().any(is_in(Place::Content)) {
            return self.release(|place| place == Place::Content);
        }
        // Of a thought that led to nothing else those calls count with which it ends.
        let is_said = |held: &Held| matches!(held, Held::Text(_, text) if !text.trim().is_empty());
        let last = self.held.iter().rposition(is_said).map_or(0, |at| at + 1);
        let ending = self.held.split_off(last);
        self.release(|_| false);
        self.held = ending;
        self.release(|place| place == Place::Reasoning);
    }

    fn release(&mut self, is_call: impl Fn(Place) -> bool) {
        for held in std::mem::take(&mut self.held) {
            match held {
                Held::Text(place, text) => self.say(place, &text),
                Held::Noise(token) => self.say_noise(&token),
                Held::Likely { place, calls, .. } if is_call(place) => {
                    self.has_calls = true;
                    self.drop_noise();
                    self.is_behind_call = true;
                    self.ready.extend(calls.into_iter().map(Piece::Call));
                }
                Held::Likely { place, raw, calls } => {
                    if place == Place::Content {
                        self.note_beside(&raw, &calls);
                    }
                    self.say(place, &raw);
                }
            }
        }
    }

    fn say(&mut self, place: Place, text: &str) {
        if place == Place::Reasoning {
            // Those behind a thought belong to its tag.
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
        // In front of everything, and behind a call, it is dropped for good.
        if self.has_content && !self.is_behind_call {
            self.pad.push_str(token);
        }
    }
}
