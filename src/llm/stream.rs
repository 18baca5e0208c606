//! What comes of a request: updates while it runs, a reply at its end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;

use super::message::Message;
use podbay_event::HalfCall;
use podbay_event::ToolCall;
use podbay_event::Usage;

/// Something that can be shown while the model answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// More of the answer.
    Text(String),
    /// More of what the model thinks aloud.
    Thinking(String),
    /// The model began to write a call.
    CallStarted { name: String },
    /// A call that the server reports is complete while the answer still comes; each once, in the
    /// order of the reply's calls.
    CallReady(Ready),
    /// The server reads the prompt: tokens, those in its cache included.
    Prefill { done: u64, total: u64 },
    /// The server still loads its model.
    Loading { waited: Duration },
    /// Nobody reaches the server, which is waited for; `waited` is nothing the first time.
    Away {
        waited: Duration,
        most: Duration,
        reason: String,
    },
    /// The server refused the request for a parameter of it, and is asked again at once with that
    /// changed.
    Changed { reason: String, change: String },
    /// The request failed before anything was shown or begun, and is tried again; `left` is all the
    /// time there is, where it may be bounded.
    Retrying {
        attempt: u32,
        wait: Duration,
        left: Option<Duration>,
        reason: String,
    },
}

/// A call whose arguments are complete.
///
/// The reply will hold it with these very bytes if the answer comes to its end and the server adds
/// nothing to it: whoever begins it early looks whether it does.
#[derive(Clone, Debug)]
pub struct Ready {
    call: ToolCall,
    begun: Arc<AtomicBool>,
}

impl Ready {
    /// `begun` is set once this call, or another of the same answer, is begun.
    pub(super) fn new(call: ToolCall, begun: &Arc<AtomicBool>) -> Self {
        Self {
            call,
            begun: Arc::clone(begun),
        }
    }

    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// Returns the same call in the words that the reply will have.
    pub(super) fn restored(self, call: ToolCall) -> Self {
        Self { call, ..self }
    }

    /// Says that it is carried out from now on: this answer is not asked for again.
    pub fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }
}

impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        self.call == other.call
    }
}

/// What is asked for besides the conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Most tokens in the answer; `None` leaves it to [`super::Options::max_output_tokens`].
    pub max_tokens: Option<u64>,
    /// Most tokens in the answer whoever says what it may have else; `None` is no such bound.
    pub at_most: Option<u64>,
    /// What the window holds beside the conversation, in tokens: servers refuse a request that asks
    /// for more.
    pub room: Option<u64>,
    /// Randomness; `None` leaves it to [`super::Options::temperature`].
    pub temperature: Option<f64>,
    /// The model may only answer. The tools stay in the prompt, so that the cache still fits.
    pub no_tools: bool,
    /// The answer is held to a schema of the tools' calls although the prompt tells of tools by the
    /// server's own means: the conversation keeps its bytes, and the server need not read what the
    /// model writes.
    pub held: bool,
    /// Tools were told by a schema before they were told by text: an answer may still be an object
    /// of that.
    pub was_held: bool,
    /// The answer goes on with one that was cut: blanks at its beginning part the two.
    pub goes_on: bool,
    /// The answer's text must be JSON that fits this schema; implies `no_tools`.
    pub schema: Option<Value>,
}

/// A finished answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    pub text: String,
    pub thinking: String,
    /// In the order the model asked; ids are unique within the conversation. Arguments may be
    /// anything.
    pub calls: Vec<ToolCall>,
    pub usage: Usage,
    pub finish: Finish,
    pub timings: Option<Timings>,
    /// The server reported no calls, but the text, or a thought, held some: they were taken from
    /// there.
    pub recovered: bool,
    /// The text holds what looks like a call, and is none by where or how it stands.
    pub looks_like_call: bool,
    /// The whole text, where calls were taken from it.
    pub source: Option<String>,
    /// The answer as the model wrote it, where tools are told by text or schema: to be repeated to
    /// the server, not to be shown.
    pub raw: Option<String>,
    /// What was wrong with the answer, in words for the model: it should be told and asked again.
    pub fault: Option<String>,
    /// The call that the most tokens of an answer cut.
    pub half: Option<HalfCall>,
    /// The text with all that was left out of it as noise, where tools are told by text and it
    /// holds no call.
    pub written: Option<String>,
    /// It was to be an object of ours, by a schema, and is none: the server does not hold its model
    /// to that.
    pub is_unheld: bool,
    /// The text is the beginning of an answer that stands in an object: what goes on with it may
    /// end with the end of that.
    pub is_in_object: bool,
}

impl Reply {
    /// Returns the reply as the conversation's next message.
    pub fn message(&self) -> Message {
        Message::Assistant {
            text: self.text.clone(),
            thinking: self.thinking.clone(),
            calls: self.calls.clone(),
            raw: self.raw.clone(),
        }
    }
}

/// Why the answer ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finish {
    /// The model was done, or the server did not say.
    #[default]
    Stop,
    /// It reached the most tokens allowed, or the end of the window.
    Length,
    ToolCalls,
    /// The server held something back.
    ContentFilter,
    /// The person stopped it; calls that were under way are left out.
    Interrupted,
}

/// How llama-server spent its time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timings {
    /// Prompt tokens found in the cache.
    pub cache_n: u64,
    /// Prompt tokens read.
    pub prompt_n: u64,
    /// Tokens written.
    pub predicted_n: u64,
    pub prompt_ms: f64,
    pub predicted_ms: f64,
}

impl Timings {
    /// Returns how many prompt tokens the server reads in a second, where enough of them were read
    /// to tell.
    pub fn prefill_per_second(&self) -> Option<f64> {
        (self.prompt_n >= 16 && self.prompt_ms > 0.0)
            .then(|| self.prompt_n as f64 * 1000.0 / self.prompt_ms)
    }
}
