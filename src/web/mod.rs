//! Pages of the web for a model, fetched from inside a sandbox: the role `podbay web`, an ordinary
//! command there.
//!
//! It has no way to a host but the gateway's socket, which every command has, so that it can reach
//! nothing that `curl` could not: rules, names and addresses are the gateway's. Pages are parsed
//! here, in the sandbox, within bounds of its own. Start with [`fetch`]. For a client outside of
//! the sandbox it carries bytes to the gateway and back, and looks at none ([`carry`]).

mod body;
mod carry;
mod diagnose;
mod fetch;
mod gateway;
mod limits;
mod role;
mod text;

pub use fetch::Address;
pub use fetch::address;
pub use role::main;

#[cfg(test)]
mod tests;
