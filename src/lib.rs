//! Podbay: a runner for coding agents whose hands are in a box.
//!
//! `docs/architecture.md` is the map; `tests/it/layers.rs` says which module may name which.

pub mod code;
pub mod guest;
pub mod wire;

#[cfg(feature = "host")]
pub mod agent;
#[cfg(feature = "host")]
pub mod app;
#[cfg(feature = "host")]
pub mod cli;
#[cfg(feature = "host")]
pub mod config;
#[cfg(feature = "host")]
pub mod engine;
#[cfg(feature = "host")]
pub mod event;
#[cfg(feature = "host")]
pub mod inference;
#[cfg(feature = "host")]
pub mod llm;
#[cfg(feature = "host")]
pub mod policy;
#[cfg(feature = "host")]
pub mod sandbox;
#[cfg(feature = "host")]
pub mod session;
#[cfg(feature = "host")]
pub mod tools;
#[cfg(feature = "host")]
pub mod ui;

#[cfg(test)]
#[path = "../tests/it/support/soak.rs"]
mod soak;
