//! Servers of the Model Context Protocol: starting them, the tools that they list, calls of these.
//!
//! A server is a program that speaks JSON-RPC over its standard streams. This module never starts
//! one: [`Opener`] gives it the two ends of a stream, which `app` opens in the sandbox. Everything
//! a server says is untrusted: lines, lists, names, descriptions, schemas and results have bounds,
//! and no text of it leaves this module with a control character.
//!
//! It leaves to `policy` whether a tool may be called, to `tools` how it is offered to a model, and
//! to `app` which servers there are. Start with [`Servers`].

mod asking;
mod connection;
mod content;
mod definition;
mod error;
mod form;
mod http;
mod known_tools;
mod lines;
mod options;
mod plain_text;
mod progress;
mod project_file;
mod prompts;
mod resources;
mod roots;
mod schema;
mod server;
mod servers;
mod stream;
mod tool_call;

pub use asking::User;
pub use definition::ToolDefinition;
pub use error::Error;
pub use known_tools::Change;
pub use known_tools::KnownTools;
pub use options::Options;
pub use options::ServerOptions;
pub use options::ServerPlace;
pub use options::ToolFilter;
pub use plain_text::plain_line;
pub use project_file::PROJECT_FILE;
pub use project_file::ProjectServers;
pub use project_file::project_servers;
pub use prompts::PromptArgument;
pub use prompts::PromptDefinition;
pub use server::ServerState;
pub use server::Source;
pub use servers::Called;
pub use servers::ServerStatus;
pub use servers::Servers;
pub use stream::ByteStream;
pub use stream::Opener;
pub use stream::ServerEnd;
pub use tool_call::Caller;

use std::future::Future;
use std::pin::Pin;

/// A boxed future, as trait objects return it.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
