//! What differs between kinds of model servers, one file per kind; what several share stands beside
//! them.
//!
//! All of them speak `OpenAI`'s chat completions ([`openai`]), and whatever one of them sends is
//! understood from any other: a proxy that hides `/props` still hands `timings` through, and a
//! router repeats the errors of every server behind it. So answers and errors are read in one
//! place, and a [`Provider`] says only what is asked of its kind of server, and what is believed of
//! it.

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

/// The kinds there are, each asked in turn whether the server is one of it; the last one takes any.
pub(super) const KINDS: [&dyn Provider; 2] = [&LlamaCpp, &Compatible];

/// One kind of model server.
pub(super) trait Provider: fmt::Debug + Send + Sync {
    /// Asks what the server serves; `None` where it is of another kind.
    fn probe<'a>(
        &'a self,
        asking: &'a ServerQuery<'a>,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<Option<ProbeResult>, Error>>;

    /// Returns how many tokens the server makes of a text, where it counts.
    fn count<'a>(
        &'a self,
        asking: &'a ServerQuery<'a>,
        text: &'a str,
    ) -> BoxFuture<'a, Option<u64>>;

    /// Returns how many tokens the server reads for a whole conversation, where it counts.
    fn count_prompt<'a>(
        &'a self,
        asking: &'a ServerQuery<'a>,
        prompt: &'a Prompt,
    ) -> BoxFuture<'a, Option<u64>>;

    /// Returns the server's name for the penalty of what was just written, which is not in
    /// `OpenAI`'s API.
    fn repeat_penalty(&self) -> &'static str;

    /// Returns what a request holds that this kind of server alone is asked for, as keys and their
    /// JSON.
    fn extras(&self, manner: &Manner, stream: bool) -> Vec<(&'static str, String)>;

    /// Returns whether a stream that ends in good order without a word is an answer, rather than an
    /// error that was not said.
    fn may_be_silent(&self, has_reason: bool) -> bool;

    /// Returns whether the model's thinking should go back with its messages; others may refuse the
    /// field.
    fn replays_thinking(&self) -> bool;

    /// Returns whether it reads a conversation into its cache for a request that wants no answer.
    fn reads_ahead(&self) -> bool;

    /// Returns whether an answer can be held to a schema although the prompt tells of tools by the
    /// server's own means.
    fn holds_calls(&self) -> bool;
}
