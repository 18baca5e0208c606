//! The client side of a model: conversations, requests, streamed answers.
//! This module owns HTTP ([`http`]), the stream's format ([`sse`]), the conversation as the server
//! reads it ([`Prompt`]) and the three ways of offering tools to a model (`format`). It leaves to
//! others which tools there are (`tools`), when to retry and when to compact (`agent`), and how a
//! model server is started (`inference`). Everything a server sends is bounded and treated as
//! hostile.
//! An API is one file behind `provider::ChatApi`, a kind of server with it one behind
//! `provider::Provider`. Start with [`Client::stream`], then [`Prompt`], then `provider::openai`.

mod client;
mod completion;
pub mod control;
mod count;
mod dialect;
mod error;
mod exchange;
mod format;
pub mod http;
mod idle_timer;
pub mod message;
mod model_names;
mod objection;
mod options;
mod price;
mod probe;
mod prompt;
mod provider;
mod provider_options;
mod refusal;
mod reply_restorer;
pub mod retry;
mod sampling;
mod server_query;
pub mod sse;
mod stream;
mod unsupported_parameters;

pub use client::Client;
pub use dialect::Dialect;
pub use error::Error;
pub use format::call_tail;
pub use format::fences::Fences;
pub use format::text;
pub use http::Endpoint;
pub use message::Message;
pub use message::ToolSpec;
pub use objection::Objection;
pub use options::Options;
pub use options::ToolModeChoice;
pub use price::Price;
pub use probe::ProbeResult;
pub use probe::Server;
pub use prompt::Prompt;
pub use provider::Api;
pub use provider::assemble::understood;
pub use provider::instead::Instead;
pub use provider::sameness::is_same;
pub use provider_options::ProviderOptions;
pub use refusal::KeySource;
pub use refusal::Refusal;
pub use sampling::Sampling;
pub use sampling::SamplingParameters;
pub use sampling::TaskKind;
pub use stream::Finish;
pub use stream::ReadyCall;
pub use stream::Reply;
pub use stream::Request;
pub use stream::Timings;
pub use stream::Update;
