//! Podbay: a runner for coding agents whose hands are in a sandbox.
//!
//! Each module is a crate of its own in the folder of its name, and says in its `Cargo.toml` which
//! others it may name; `docs/architecture.md` is the map.

pub use podbay_code as code;
pub use podbay_egress as egress;
pub use podbay_guest as guest;
pub use podbay_web as web;
pub use podbay_wire as wire;

#[cfg(feature = "host")]
pub use podbay_agent as agent;
#[cfg(feature = "host")]
pub use podbay_app as app;
#[cfg(feature = "host")]
pub use podbay_cli as cli;
#[cfg(feature = "host")]
pub use podbay_config as config;
#[cfg(feature = "host")]
pub use podbay_engine as engine;
#[cfg(feature = "host")]
pub use podbay_event as event;
#[cfg(feature = "host")]
pub use podbay_inference as inference;
#[cfg(feature = "host")]
pub use podbay_llm as llm;
#[cfg(feature = "host")]
pub use podbay_mcp as mcp;
#[cfg(feature = "host")]
pub use podbay_policy as policy;
#[cfg(feature = "host")]
pub use podbay_sandbox as sandbox;
#[cfg(feature = "host")]
pub use podbay_search as search;
#[cfg(feature = "host")]
pub use podbay_session as session;
#[cfg(feature = "host")]
pub use podbay_tools as tools;
#[cfg(feature = "host")]
pub use podbay_ui as ui;
