//! The differences between kinds of model servers, one file per kind, beside what several of them
//! share.
//! All of them have `OpenAI`'s chat completions API ([`openai`]), and anything that one of them
//! sends is accepted from any other: a proxy that hides `/props` still passes `timings` through,
//! and a router repeats the errors of every server behind it. So answers and errors are parsed in
//! one place, and a [`Provider`] defines only what is requested from its kind of server, and what
//! is believed.

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

pub(super) use compatible::Compatible;
use futures::future::BoxFuture;
pub(super) use llama_cpp::LlamaCpp;
pub(super) use vllm::Vllm;

use super::error::Error;
use super::options::Options;
use super::probe::ProbeResult;
use super::prompt::Prompt;
use super::server_query::ServerQuery;
use openai::Manner;

/// All kinds, probed in this order; the last one accepts any server.
pub(super) const KINDS: [&dyn Provider; 2] = [&LlamaCpp, &Compatible];

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
        asking: &'a ServerQuery<'a>,
        text: &'a str,
    ) -> BoxFuture<'a, Option<u64>>;

    /// Returns how many tokens a whole conversation has, if the server can count.
    fn count_prompt<'a>(
        &'a self,
        asking: &'a ServerQuery<'a>,
        prompt: &'a Prompt,
    ) -> BoxFuture<'a, Option<u64>>;

    /// Returns the server's name for the repeat penalty, which is not in `OpenAI`'s API.
    fn repeat_penalty(&self) -> &'static str;

    /// Returns the additional request fields for this kind of server, as keys and their JSON.
    fn extras(&self, manner: &Manner, stream: bool) -> Vec<(&'static str, String)>;

    /// Returns whether an empty stream with a normal end is an answer rather than an unreported
    /// error.
    fn may_be_silent(&self, has_reason: bool) -> bool;

    /// Returns whether the model's reasoning should be sent back with its messages; other servers
    /// may refuse the field.
    fn replays_thinking(&self) -> bool;

    /// Returns whether it caches a conversation for a request without output.
    fn reads_ahead(&self) -> bool;

    /// Returns whether an answer can be constrained to a schema although tools are offered
    /// natively.
    fn holds_calls(&self) -> bool;
}
