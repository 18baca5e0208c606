//! Restores control tokens in an answer that were neutralized in the prompt.
//! A model that copies from its prompt copies the neutralized form too, and neither users nor
//! scripts nor the log should see it. What is sent of the answer later is neutralized again, to the
//! bytes that the model wrote, so that the server finds them in its cache.

use super::control::ControlTokens;
use super::control::StreamRestorer;
use super::stream::Reply;
use super::stream::Update;
use podbay_event::ToolCall;

/// Restores a streamed answer.
pub(super) struct ReplyRestorer {
    tokens: ControlTokens,
    text: StreamRestorer,
    thinking: StreamRestorer,
}

impl ReplyRestorer {
    pub(super) fn new(tokens: &ControlTokens) -> Self {
        Self {
            tokens: tokens.clone(),
            text: StreamRestorer::new(tokens),
            thinking: StreamRestorer::new(tokens),
        }
    }

    /// Restores and forwards an update.
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

    /// Forwards buffered text at the end.
    pub(super) fn end(&mut self, on: &mut (dyn FnMut(Update) + Send)) {
        show(self.thinking.end(), Update::Thinking, on);
        show(self.text.end(), Update::Text, on);
    }

    /// Restores the final reply. Its raw form is only for the server and stays as the model wrote
    /// it.
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
