//! The egress role: lets sandboxes reach the hosts that rules allow, and nothing else.
//!
//! [`rule`] decides, and is pure: one function for plain HTTP, for CONNECT and for what else asks
//! for a host. [`address`] says which addresses are never reached, whatever a name resolves to.
//! [`host_name`] is the one form in which names are compared. [`limits`] has every bound.
//!
//! ```text
//! gateway ── connection (one client) ── opening (what the guest says of it)
//!              ├─ head (bounds, framing) ── target (which host) ─┬─ connect ── tls (the name in it) ── tunnel
//!              │                                                 └─ forward ── websocket ── tunnel
//!              ├─ direct (a program that knows nothing of proxies) ── tls ── tunnel, or head as above
//!              └─ names (which ports of a name)
//! all ask grant (the rules in force) and then reach (resolve, look at the addresses, dial one of them); attempt tells how it ended
//! ```
//!
//! The user's own machine is reached by `host_streams`, through the controller.
//!
//! What the lines on standard input and output mean belongs to `wire`; containers, volumes and
//! questions belong to others. Start with [`Gateway`].

pub mod address;
mod answer;
mod attempt;
mod body;
mod connect;
mod connection;
mod direct;
mod exchange;
mod forward;
mod gateway;
mod grant;
mod head;
mod headers;
pub mod host_name;
mod host_streams;
pub mod limits;
mod names;
mod opening;
mod reach;
mod resolve;
mod role;
pub mod rule;
mod target;
#[cfg(test)]
mod tests;
mod tls;
mod tunnel;
mod websocket;
pub mod written;

pub use gateway::Gateway;
pub use grant::RuleSet;
pub use host_streams::HostStream;
pub use host_streams::HostStreams;
pub use limits::Limits;
pub use reach::Dial;
pub use reach::Tcp;
pub use resolve::NameServers;
pub use resolve::Resolve;
pub use resolve::ResolveError;
pub use role::main;
