//! An answer in the words that its model meant: control tokens that were broken on their way to it
//! are whole again.
//!
//! A model that copies from what it was shown copies the break too, and neither a person who reads
//! the answer, nor a script, nor the log can know of that. What is sent of the answer later is
//! broken anew, to the bytes that the model wrote, so that the server finds them in its cache.

use super::control::Flow;
use super::control::Tokens;
use super::stream::Reply;
use super::stream::Update;
use podbay_event::ToolCall;

/// Restores what is told of an answer while it comes.
pub(super) struct Restored {
    tokens: Tokens,
    text: Flow,
    thinking: Flow,
}

impl Restored {
    pub(super) fn new(tokens: &Tokens) -> Self {
        Self {
            tokens: tokens.clone(),
            text: Flow::new(tokens),
            thinking: Flow::new(tokens),
        }
    }

    /// Passes an update on.
    pub(super) fn take(&mut self, update: Update, on: &mut (dyn FnMut(Update) + Send)) {
        match update {
            Update::Text(text) => {
                show(self.thinking.end(), Update::Thinking, on);
                show(self.text.feed(&text), Update::Text, on);
            }
            Update::Thinking(thinking) => {
                show(self.text.end(), Update::Text, on);
                show(self.thinking.feed(&thinking), Update::Thinking, on);
            }
            Update::CallReady(ready) => {
                self.end(on);
                let call = self.call(ready.call());
                on(Update::CallReady(ready.restored(call)));
            }
            other => {
                self.end(on);
                on(other);
            }
        }
    }

    /// Passes on what was held back.
    pub(super) fn end(&mut self, on: &mut (dyn FnMut(Update) + Send)) {
        show(self.thinking.end(), Update::Thinking, on);
        show(self.text.end(), Update::Text, on);
    }

    /// Returns the answer itself. Its raw form stays as the model wrote it: it is kept for the
    /// server alone.
    pub(super) fn reply(&self, mut reply: Reply) -> Reply {
        let restored = |text: &mut String| {
            if let std::borrow::Cow::Owned(whole) = self.tokens.restore(text) {
                *text = whole;
            }
        };
        restored(&mut reply.text);
        restored(&mut reply.thinking);
        reply.calls = reply.calls.iter().map(|call| self.call(call)).collect();
        for text in [&mut reply.written, &mut reply.source]
            .into_iter()
            .flatten()
        {
            restored(text);
        }
        if let Some(half) = &mut reply.half {
            restored(&mut half.before);
            restored(&mut half.begun);
        }
        reply
    }

    fn call(&self, call: &ToolCall) -> ToolCall {
        ToolCall {
            id: call.id.clone(),
            name: self.tokens.restore(&call.name).into_owned(),
            arguments: self.tokens.restore_json(&call.arguments).into_owned(),
        }
    }
}

fn show(text: String, kind: fn(String) -> Update, on: &mut (dyn FnMut(Update) + Send)) {
    if !text.is_empty() {
        on(kind(text));
    }
}
