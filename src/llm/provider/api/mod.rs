//! The APIs that a server can have, one file each ([`super::openai`] is a folder).

mod ollama;

use std::fmt;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde::Serialize;

use super::Provider;
use super::assemble::Assembler;
use super::failure::Failure;
use super::openai::Manner;
use super::openai::OpenAi;
use crate::dialect::Dialect;
use crate::error::Error;
use crate::http::Endpoint;
use crate::options::Options;
use crate::prompt::Prompt;
use crate::server_query::ServerQuery;
use crate::sse::Event;
use crate::stream::Request;
use crate::stream::Update;
use ollama::Ollama;

/// Makes [`Api`] with a name for each.
macro_rules! apis {
    ($($(#[$docs:meta])* $name:ident = $setting:literal,)*) => {
        /// The API of a server, as configured.
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
        )]
        pub enum Api {
            $($(#[$docs])* #[serde(rename = $setting)] $name,)*
        }

        impl Api {
            pub(crate) fn chat(self) -> &'static dyn ChatApi {
                match self {
                    $(Self::$name => &$name,)*
                }
            }
        }
    };
}

apis! {
    /// `OpenAI`'s chat completions, which nearly all servers have.
    #[default]
    OpenAi = "openai",
    /// Ollama's own: the context window is set with each request.
    Ollama = "ollama",
}

/// How a chat is requested and answered.
pub(crate) trait ChatApi: fmt::Debug + Send + Sync {
    /// Returns the kinds of servers with this API, probed in this order; the last one accepts any.
    fn kinds(&self) -> &'static [&'static dyn Provider];

    /// Returns the names of the models that the server lists.
    fn model_names<'a>(
        &'a self,
        asking: &'a ServerQuery<'a>,
    ) -> BoxFuture<'a, Result<Vec<String>, Error>>;

    /// Returns how it writes a conversation.
    fn dialect(&self) -> Dialect;

    /// Returns where an answer is requested.
    fn route(&self, endpoint: &Endpoint) -> String;

    /// Returns the body of a request: first the conversation's own bytes, then everything that may
    /// change.
    fn body(
        &self,
        prompt: &Prompt,
        request: &Request,
        options: &Options,
        manner: &Manner,
        stream: bool,
    ) -> Vec<u8>;

    /// Returns how its stream is divided.
    fn framing(&self) -> Framing;

    /// Returns a parser for one answer.
    fn parser(&self) -> Box<dyn EventParser>;

    /// Processes an answer that came as one JSON body.
    fn whole(
        &self,
        body: &[u8],
        failure: &Failure<'_>,
        to: &mut Assembler,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Result<(), Error>;
}

/// How a stream is divided into events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// A JSON value on each line.
    Lines,
}

/// Parses the events of one answer.
pub(crate) trait EventParser: Send {
    /// Processes one event; those after the end are ignored.
    fn event(
        &mut self,
        event: &Event,
        failure: &Failure<'_>,
        to: &mut Assembler,
        on: &mut (dyn FnMut(Update) + Send),
    ) -> Result<(), Error>;

    /// Returns how many events made progress, not counting repetitions.
    fn n_progress(&self) -> u64;

    /// Returns whether the answer has ended.
    fn is_done(&self) -> bool;
}
