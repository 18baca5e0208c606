//! Puts in order what was recognised: what can be said at once, and what must wait until the message has shown what it is.

use super::call::Call;
use super::shaped;

/// More of a message, as soon as it is sure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Content(String),
    Reasoning(String),
    Call(Call),
    /// Calls that are content so far: words go on behind them in the same line.
    Mention(Mention),
    /// All content so far was a thought: its beginning stood in the prompt.
    Rethought,
    /// The first line of the content so far was a header, which says to whom the rest goes.
    Headed,
}

/// Marked calls with words behind them in their line, so that nobody knows whether they were meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// How they stand in the content.
    pub raw: String,
    pub calls: Vec<Call>,
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
    Likely { place: Place, raw: String, calls: Vec<Call>, is_forbidden: bool },
}

#[derive(Debug, Default)]
pub(super) struct Collector {
    ready: Vec<Piece>,
    /// All that comes after a likely call, and that call; empty most of the time.
    held: Vec<Held>,
    /// Content that is more than blanks is among that.
    holds_content: bool,
    has_calls: bool,
    has_content: bool,
    /// Blanks before the content are part of it.
    keeps_blanks: bool,
    /// Tokens that say nothing at the end of the content, and blanks behind them: they count if more of it follows.
    pad: String,
    /// Those blanks alone.
    blanks: String,
    /// No content came since the last call: a token that says nothing belongs to that.
    is_behind_call: bool,
    /// How the content begins, up to a bound, and whether there is more of it.
    head: String,
    is_longer: bool,
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

    /// Returns all of the content, unless it is long.
    pub(super) fn whole(&self) -> Option<&str> {
        (!self.is_longer).then_some(&self.head)
    }

    pub(super) fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Returns whether content was found that is more than blanks.
    pub(super) fn has_content(&self) -> bool {
        self.has_content || self.holds_content
    }

    pub(super) fn text(&mut self, place: Place, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.held.is_empty() {
            return self.say(place, text);
        }
        // A thought that led to words was no call.
        if place == Place::Content
            && !text.trim().is_empty()
            && self.held.iter().all(|held| !matches!(held, Held::Likely { place: Place::Content, .. }))
        {
            self.release(|_| false);
            return self.say(place, text);
        }
        self.holds_content |= place == Place::Content && !text.trim().is_empty();
        match self.held.last_mut() {
            Some(Held::Text(last, before)) if *last == place => before.push_str(text),
            _ => self.held.push(Held::Text(place, text.to_owned())),
        }
    }

    /// Takes a token that says nothing.
    pub(super) fn noise(&mut self, token: &str) {
        if self.held.is_empty() { self.say_noise(token) } else { self.held.push(Held::Noise(token.to_owned())) }
    }

    /// Forgets tokens that say nothing: what follows is something else than content.
    pub(super) fn drop_noise(&mut self) {
        self.pad.clone_from(&self.blanks);
    }

    /// Takes what is a call if the message has no certain one.
    pub(super) fn likely(&mut self, place: Place, raw: &str, calls: Vec<Call>) {
        self.hold(place, raw, calls, false);
    }

    /// The same of a thought whose words forbid it.
    pub(super) fn forbidden(&mut self, raw: &str, calls: Vec<Call>) {
        self.hold(Place::Reasoning, raw, calls, true);
    }

    fn hold(&mut self, place: Place, raw: &str, calls: Vec<Call>, is_forbidden: bool) {
        if self.has_calls {
            self.text(place, raw);
        } else {
            self.held.push(Held::Likely { place, raw: raw.to_owned(), calls, is_forbidden });
        }
    }

    pub(super) fn certain(&mut self, calls: Vec<Call>) {
        self.has_calls = true;
        self.release(|_| false);
        self.drop_noise();
        self.is_behind_call = true;
        self.ready.extend(calls.into_iter().map(Piece::Call));
    }

    /// Takes calls that are content, which has been said.
    pub(super) fn mention(&mut self, raw: &str, calls: Vec<Call>) {
        self.ready.push(Piece::Mention(Mention { raw: raw.to_owned(), calls }));
    }

    /// Takes back that content was content.
    pub(super) fn rethink(&mut self) {
        self.ready.push(Piece::Rethought);
        self.has_content = false;
        self.head.clear();
        self.is_longer = false;
        self.pad.clear();
        self.blanks.clear();
    }

    /// Takes back that the first line was content; `has_words` says whether more than that was said.
    pub(super) fn unhead(&mut self, has_words: bool) {
        self.ready.push(Piece::Headed);
        self.has_content &= has_words;
        self.head.drain(..self.head.find('\n').map_or(self.head.len(), |end| end + 1));
    }

    /// Decides what was held back: nothing more comes.
    pub(super) fn finish(&mut self) {
        let has_likely = |place| self.held.iter().any(|held| matches!(held, Held::Likely { place: at, .. } if *at == place));
        // Calls in a thought count only where the model came to nothing else.
        let wanted = if has_likely(Place::Content) {
            Some(Place::Content)
        } else {
            (has_likely(Place::Reasoning) && !self.has_content()).then_some(Place::Reasoning)
        };
        if wanted == Some(Place::Reasoning) && (self.weighs() || self.forbids()) {
            // Two ways that a thought weighs, of which nobody knows which one it chose, or one that it speaks against.
            for held in self.take_held() {
                match held {
                    Held::Text(place, text) => self.say(place, &text),
                    Held::Noise(token) => self.say_noise(&token),
                    Held::Likely { place, raw, calls, .. } => {
                        self.say(place, &raw);
                        self.mention(&raw, calls);
                    }
                }
            }
            return;
        }
        self.release(|place| Some(place) == wanted);
    }

    /// Returns whether words stand between the calls of a thought.
    fn weighs(&self) -> bool {
        let is_call = |held: &Held| matches!(held, Held::Likely { .. });
        let is_word = |held: &Held| matches!(held, Held::Text(_, text) if !text.trim().is_empty());
        let first = self.held.iter().position(is_call).unwrap_or_default();
        let last = self.held.iter().rposition(is_call).unwrap_or_default();
        self.held.get(first..last).is_some_and(|between| between.iter().any(is_word))
    }

    /// Returns whether the words of a thought forbid a call in it.
    fn forbids(&self) -> bool {
        self.held.iter().any(|held| matches!(held, Held::Likely { is_forbidden: true, .. }))
    }

    fn take_held(&mut self) -> Vec<Held> {
        self.holds_content = false;
        std::mem::take(&mut self.held)
    }

    fn release(&mut self, is_call: impl Fn(Place) -> bool) {
        for held in self.take_held() {
            match held {
                Held::Text(place, text) => self.say(place, &text),
                Held::Noise(token) => self.say_noise(&token),
                Held::Likely { place, calls, .. } if is_call(place) => {
                    self.has_calls = true;
                    self.drop_noise();
                    self.is_behind_call = true;
                    self.ready.extend(calls.into_iter().map(Piece::Call));
                }
                Held::Likely { place, raw, .. } => self.say(place, &raw),
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
        let text = if self.has_content || self.keeps_blanks { text } else { text.trim_start() };
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
        if !self.is_longer {
            let end = text.floor_char_boundary(shaped::MAX.saturating_sub(self.head.len()));
            self.head.push_str(&text[..end]);
            self.is_longer = end < text.len();
        }
    }

    fn say_noise(&mut self, token: &str) {
        // In front of everything, and behind a call, it is dropped for good.
        if self.has_content && !self.is_behind_call {
            self.pad.push_str(token);
        }
    }
}
