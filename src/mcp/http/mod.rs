//! Servers over HTTP ("streamable HTTP"), through the gateway of the session.
//!
//! Each connection is a stream to the gateway's socket, which a program in the sandbox carries, so
//! that the rules about hosts decide as for every command. TLS begins and ends here: the sandbox
//! and the gateway see neither the keys in headers nor what is said. `rmcp` speaks the protocol;
//! what it is given is bounded.

mod address;
mod bounds;
mod client;
mod connect;

pub(super) use address::Address;
pub(super) use address::invalid_header;
pub(super) use client::HttpClient;
pub(super) use client::HttpError;
pub(super) use client::transport;
