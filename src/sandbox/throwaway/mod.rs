//! Throw-away sandboxes: code of a model runs in a sandbox of its own, which has nothing of the
//! project and is removed with all that is in it.
//!
//! It is made like every other sandbox, from an image that has the language, and lies in memory
//! whole. Start with [`Sandbox::run_throwaway`](super::Sandbox::run_throwaway); the languages are
//! rows of `languages.toml`.

mod language;
mod run;

pub use language::Language;
pub use language::language;
pub use language::languages;
pub use run::ThrowawayCode;
