//! The results of a request: updates while it runs, a reply at its end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;

use super::message::Message;
use podbay_event::HalfCall;
use podbay_event::ToolCall;
use podbay_event::Usage;

/// Progress to show while the model answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// More of the answer.
    Text(String),
    /// More of the model's reasoning.
    Thinking(String),
    /// The model began to write a call.
    CallStarted { name: String },
    /// A call that the server reports is complete while the answer is still streaming; each once,
    /// in the order of the reply's calls.
    CallReady(ReadyCall),
    /// The server reads the prompt: tokens, including cached ones.
    Prefill { done: u64, total: u64 },
    /// The server is still loading its model.
    Loading { waited: Duration },
    /// The server is unreachable and is waited for; `waited` is zero the first time.
    Away {
        waited: Duration,
        most: Duration,
        reason: String,
    },
    /// The server refused a parameter of the request, which is retried at once without or with
    /// another one.
    Changed { reason: String, change: String },
    /// The request failed before anything was shown or begun, and is retried; `left` is the total
    /// time left, where it is bounded.
    Retrying {
        attempt: u32,
        wait: Duration,
        left: Option<Duration>,
        reason: String,
    },
}

/// A call whose arguments are complete.
/// The reply will contain it with these exact bytes if the answer ends normally and the server adds
/// nothing to it: a caller that executes it early must check that.
#[derive(Clone, Debug)]
pub struct ReadyCall {
    call: ToolCall,
    begun: Arc<AtomicBool>,
}

impl ReadyCall {
    /// `begun` is set once this call, or another of the same answer, is executed.
    pub(super) fn new(call: ToolCall, begun: &Arc<AtomicBool>) -> Self {
        Self {
            call,
            begun: Arc::clone(begun),
        }
    }

    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// Returns the same call with restored control tokens.
    pub(super) fn restored(self, call: ToolCall) -> Self {
        Self { call, ..self }
    }

    /// Marks the call as being executed: from now on this answer is not retried.
    pub fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }
}

impl PartialEq for ReadyCall {
    fn eq(&self, other: &Self) -> bool {
        self.call == other.call
    }
}

/// Parameters of a request besides the conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Maximum number of output tokens; `None` leaves it to [`super::Options::max_output_tokens`].
    pub max_tokens: Option<u64>,
    /// A further bound on output tokens that applies in any case; `None` for none.
    pub at_most: Option<u64>,
    /// Tokens of the window that the conversation leaves free: servers refuse a request that asks
    /// for more.
    pub room: Option<u64>,
    /// Randomness; `None` leaves it to [`super::Options::temperature`].
    pub temperature: Option<f64>,
    /// The model may only answer. The tools stay in the prompt, so that the cache remains valid.
    pub no_tools: bool,
    /// The answer is constrained to a schema of the tools' calls although the prompt offers tools
    /// natively: the conversation keeps its bytes, and the server does not parse the model's
    /// output.
    pub held: bool,
    /// Tools were offered by a schema before they were offered by text: an answer may still be such
    /// an object.
    pub was_held: bool,
    /// The answer continues a truncated one: whitespace at its beginning is significant.
    pub goes_on: bool,
    /// The answer's text must be JSON that fits this schema; implies `no_tools`.
    pub schema: Option<Value>,
}

/// A finished answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    pub text: String,
    pub thinking: String,
    /// In the order of the model's calls; ids are unique within the conversation. Arguments may be
    /// anything.
    pub calls: Vec<ToolCall>,
    pub usage: Usage,
    pub finish: Finish,
    pub timings: Option<Timings>,
    /// The server reported no calls, but they were parsed from the text or the reasoning.
    pub recovered: bool,
    /// The text contains what looks like a call but does not count because of its position or form.
    pub looks_like_call: bool,
    /// The whole text, where calls were parsed from it.
    pub source: Option<String>,
    /// The answer as the model wrote it, in constrained and text mode: sent back to the server,
    /// never shown.
    pub raw: Option<String>,
    /// What was wrong with the answer, as a message for the model: the request should be repeated
    /// with it.
    pub fault: Option<String>,
    /// The call truncated by the limit on output tokens.
    pub half: Option<HalfCall>,
    /// The text including dropped noise, in text mode and without calls.
    pub written: Option<String>,
    /// A schema was requested and the answer does not conform: the server does not enforce it.
    pub is_unheld: bool,
    /// The text is the beginning of an answer within an object: its continuation may end with the
    /// end of that object.
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
    /// The limit on output tokens, or the end of the window, was reached.
    Length,
    ToolCalls,
    /// The server withheld something.
    ContentFilter,
    /// The user stopped it; incomplete calls are dropped.
    Interrupted,
}

/// How llama-server spent its time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timings {
    /// Prompt tokens found in the cache.
    pub cache_n: u64,
    /// Prompt tokens read.
    pub prompt_n: u64,
    /// Tokens generated.
    pub predicted_n: u64,
    pub prompt_ms: f64,
    pub predicted_ms: f64,
}

impl Timings {
    /// Returns the prefill rate in tokens per second, if enough tokens were read to tell.
    pub fn prefill_per_second(&self) -> Option<f64> {
        (self.prompt_n >= 16 && self.prompt_ms > 0.0)
            .then(|| self.prompt_n as f64 * 1000.0 / self.prompt_ms)
    }
}
