//! Searches of the web with the engine that the user's settings name: the section `[search]`.
//!
//! The controller asks it, since the user named its address and it may want their key; results are
//! untrusted text. Engines are rows of `engines.toml`. Start with [`Searcher`].

mod engine;
mod options;
mod searcher;

pub use options::Options;
pub use searcher::Searcher;
