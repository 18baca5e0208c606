//! The model: what is said to it, how, and what comes back.
//!
//! This room owns HTTP ([`http`]), the stream's format ([`sse`]), the conversation as the server
//! reads it ([`Prompt`]) and the three ways of telling a model about tools (`format`). It leaves to
//! others which tools there are (`tools`), when to ask again and when to compact (`agent`), and how
//! a model server is started (`inference`). Whatever a server sends is bounded and taken for
//! hostile.
//!
//! What differs between kinds of servers is one trait, `provider::Provider`. Start with
//! [`Client::stream`], then [`Prompt`], then `provider::openai`.

mod asking;
mod client;
mod completion;
pub mod control;
mod count;
mod error;
mod exchange;
mod format;
pub mod http;
pub mod message;
mod named;
mod objection;
mod options;
mod parameters;
mod price;
mod probe;
mod prompt;
mod provider;
mod refusal;
mod restored;
pub mod retry;
mod sampling;
pub mod sse;
mod stream;
mod waiting;

pub use client::Client;
pub use error::Error;
pub use format::call_tail;
pub use format::fences::Fences;
pub use format::text;
pub use http::Endpoint;
pub use message::Message;
pub use message::ToolSpec;
pub use named::Provider;
pub use objection::Objection;
pub use options::Options;
pub use options::ToolModeChoice;
pub use price::Price;
pub use probe::Probed;
pub use probe::Server;
pub use prompt::Prompt;
pub use provider::assemble::understood;
pub use provider::instead::Instead;
pub use provider::sameness::is_same;
pub use refusal::KeyFrom;
pub use refusal::Refusal;
pub use sampling::Sampled;
pub use sampling::Sampling;
pub use sampling::TaskKind;
pub use stream::Finish;
pub use stream::Ready;
pub use stream::Reply;
pub use stream::Request;
pub use stream::Timings;
pub use stream::Update;
