//! The egress role: lets sandboxes reach the hosts that rules allow, and nothing else.
//!
//! [`rule`] decides, and is pure: one function for plain HTTP, for CONNECT and for what else asks for a host. [`address`] says which addresses
//! are never reached, whatever a name resolves to. [`host_name`] is the one form in which names are compared.

pub mod address;
pub mod host_name;
pub mod rule;
