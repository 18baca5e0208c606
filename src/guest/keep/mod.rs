//! The keeper: our program in a box in which no model's command ever runs, beside that of the
//! session. It finds what a box must cover, keeps how the project's files were, shows what changed,
//! and brings states back.
//!
//! It reads the project, which is hostile: a command of the session changes it meanwhile. So every
//! path is opened beneath the project's folder without following a link, only regular files are
//! read, nothing is waited for, and whatever is passed over is said.
//!
//! Start with [`serve`], which hands each order to the file of its name. Those are functions over
//! folders: the project's ([`Project`]) and that of our own state ([`Folder`]). [`find`] needs the
//! first alone; [`snapshot`] reads the project into the [`store`], [`apply`] is the only one to
//! write in it, and what takes turns back is made of both.

mod accepted;
pub mod apply;
mod auto_run;
mod bare;
mod binary;
mod cache;
mod compare;
mod deflate;
mod difference;
mod edit;
mod error;
pub(super) mod find;
mod folder;
mod forbidden;
pub mod git;
mod holes;
mod journal;
#[cfg(test)]
mod large;
mod layer;
mod look;
mod merge;
mod node;
mod object;
mod pack;
pub mod pin;
mod plan;
mod project;
mod read;
pub mod review;
mod serve;
pub mod snapshot;
mod store;
mod swap;
#[cfg(test)]
mod testing;
mod text;
mod tree;
mod turn;
pub mod undo;
mod unheld;
mod walk;

pub use compare::Change;
pub use compare::compare;
pub use compare::told;
pub use difference::Difference;
pub use difference::MOST_DIFFERENCE;
pub use difference::MOST_FILE_DIFFERENCE;
pub use difference::unified;
pub use difference::unified_alone;
pub use error::Error;
pub use folder::Folder;
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
pub use store::MOST_BYTES;
pub use store::Store;
pub use walk::MOST_ENTRIES;
