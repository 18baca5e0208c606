//! The keeper: our program in a container of its own in which no model's command ever runs, beside
//! the session's sandbox. It finds what a sandbox must mask, keeps snapshots of the project's
//! files, shows what changed, and restores earlier states.
//!
//! The project is hostile: a command of the session may change it meanwhile. So every path is
//! opened beneath the project's folder without following links, only regular files are read, no
//! open or read blocks, and everything that is skipped is reported.
//!
//! Start with [`serve`], which passes each order to the module of its name. Those are functions
//! over two folders: the project's ([`Project`]) and that of our own state ([`StateFolder`]).
//! [`find`] needs only the first; [`snapshot`] reads the project into the [`store`], [`apply`] is
//! the only module that writes in the project, and [`undo`] combines both.

mod accepted_reviews;
pub mod apply;
mod auto_run;
mod bare_repository;
mod cache;
mod compare;
mod deflate;
mod diff;
mod encoding;
mod error;
pub(super) mod find;
mod forbidden;
pub mod git;
mod journal;
#[cfg(test)]
mod large_project_tests;
mod merge;
mod node;
mod object;
mod overlay;
mod pack;
mod path_entry;
pub mod pin;
mod plan;
mod project;
mod read;
pub mod review;
mod serve;
pub mod snapshot;
mod snapshot_edit;
mod sparse_copy;
mod state_folder;
mod store;
mod swap;
#[cfg(test)]
mod testing;
mod text;
mod tree;
mod turn_log;
mod uncaptured;
pub mod undo;
mod walk;

pub use compare::Change;
pub use compare::compare;
pub use compare::path_changes;
pub use diff::Diff;
pub use diff::MOST_DIFF;
pub use diff::MOST_FILE_DIFF;
pub use diff::unified;
pub use diff::unified_alone;
pub use error::Error;
pub use forbidden::Origin;
pub use journal::Purpose;
pub use node::Node;
pub use object::ObjectId;
pub use plan::Outcome;
pub use plan::Request;
pub use project::Project;
pub use read::MOST_FILE_BYTES;
pub(super) use serve::Places;
pub(super) use serve::run;
pub use snapshot::Snapshot;
pub use state_folder::StateFolder;
pub use store::MOST_BYTES;
pub use store::Store;
pub use walk::MOST_ENTRIES;
