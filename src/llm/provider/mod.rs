//! The differences between APIs and kinds of model servers, beside what several of them share.
//!
//! An API is a file in [`api`] behind [`ChatApi`], and a line there; [`openai`], which nearly all
//! servers have, is a folder. Anything that one server with `OpenAI`'s API sends is accepted from any
//! other: a proxy that hides `/props` still passes `timings` through, and a router repeats the
//! errors of every server behind it. So its answers and errors are parsed in one place, and a
//! [`Provider`] defines only what is requested from its kind of server, and what is believed; all
//! that is not a query is its [`Quirks`].

pub(super) mod api;
pub(super) mod assemble;
pub(super) mod calls;
mod compatible;
pub(super) mod failure;
pub(super) mod half;
pub(super) mod instead;
mod listed;
mod llama_cpp;
mod object;
pub(super) mod openai;
mod pieces;
pub(crate) mod sameness;
pub(super) mod think;
pub(super) mod too_long;
mod vllm;

use std::fmt;

pub use api::Api;
pub(super) use api::ChatApi;
pub(super) use compatible::Compatible;
use futures::future::BoxFuture;
use futures::future::FutureExt;
pub(super) use llama_cpp::LlamaCpp;
pub(super) use vllm::Vllm;

use super::error::Error;
use super::options::Options;
use super::probe::ProbeResult;
use super::prompt::Prompt;
use super::server_query::ServerQuery;

/// One kind of model server.
pub(super) trait Provider: fmt::Debug + Send + Sync {
    /// Queries the server's properties; `None` if it is of another kind.
    fn probe<'a>(
        &'a self,
        asking: &'a ServerQuery<'a>,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<Option<ProbeResult>, Error>>;

    /// Returns how many tokens the server makes of a text, if it can count.
    fn count<'a>(
        &'a self,
        _asking: &'a ServerQuery<'a>,
        _text: &'a str,
    ) -> BoxFuture<'a, Option<u64>> {
        std::future::ready(None).boxed()
    }

    /// Returns how many tokens a whole conversation has, if the server can count.
    fn count_prompt<'a>(
        &'a self,
        _asking: &'a ServerQuery<'a>,
        _prompt: &'a Prompt,
    ) -> BoxFuture<'a, Option<u64>> {
        std::future::ready(None).boxed()
    }

    fn quirks(&self) -> &'static Quirks;
}

/// What differs between kinds of servers and is no query.
#[derive(Debug)]
pub(super) struct Quirks {
    /// The server's name for the repeat penalty, which is not in `OpenAI`'s API.
    pub(super) repeat_penalty: &'static str,
    /// Additional fields of a request: name and JSON.
    pub(super) extras: &'static [(&'static str, &'static str, SentWhen)],
    /// An empty stream that ends with a reason is an answer rather than an unreported error.
    pub(super) may_be_silent: bool,
    /// The model's reasoning is sent back with its messages; other servers may refuse the field.
    pub(super) replays_thinking: bool,
    /// It caches a conversation for a request without output.
    pub(super) reads_ahead: bool,
    /// An answer can be constrained to a schema although tools are offered natively.
    pub(super) holds_calls: bool,
}

/// Which requests have a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentWhen {
    Always,
    Streamed,
    /// Where the server reports the cost of an answer only on request.
    AsksCost,
}

/// Any server with `OpenAI`'s API.
pub(super) const COMMON: Quirks = Quirks {
    repeat_penalty: "repeat_penalty",
    extras: &[("usage", "{\"include\":true}", SentWhen::AsksCost)],
    // LM Studio ends the stream normally, with a finish reason, when the prompt does not fit, and
    // other servers just hang up.
    may_be_silent: false,
    replays_thinking: false,
    reads_ahead: false,
    holds_calls: false,
};
