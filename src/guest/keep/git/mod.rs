//! Git that cannot bite: a session has a git folder of its own, which borrows the objects of the real one and takes over none of its
//! settings that run something.
//!
//! Start with [`find`](find()) (which repositories there are), then [`prepare`](prepare()) (a session's folder, made without git). What a
//! session's start was like is kept where it cannot reach ([`Start`]).

mod checksum;
mod config;
mod find;
mod folder;
mod hide;
mod index;
mod prepare;
#[cfg(test)]
mod prepared;
mod record;
mod refs;
mod repository;
#[cfg(test)]
mod sample;
mod settings;
mod stash;

pub use find::find;
pub use folder::Folder;
pub use prepare::Source;
pub use prepare::prepare;
pub use record::Start;
pub use repository::linked;
