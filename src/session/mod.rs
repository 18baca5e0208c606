//! A session on disk: its events as JSON lines, its artifacts, and the state folder that holds
//! both.
//!
//! `tools` and `agent` decide what is an event, `sandbox` locks the project, and `ui::text` makes
//! rendered text safe for a terminal. A log is append-only. It may end anywhere, even within a
//! character, so reading returns what is whole and reports what is damaged.
//!
//! Start with [`Log`], then [`read`].

mod artifact;
mod change;
mod disk;
mod error;
mod export;
mod find;
mod history;
mod journal;
mod list;
mod log;
mod mask;
mod name;
mod options;
mod past;
mod picture;
mod record;
mod repair;
mod replay;
mod show;
mod state;
mod words;

pub use artifact::Artifacts;
pub use artifact::Page;
pub use artifact::Stored;
pub use change::fork;
pub use change::prune;
pub use change::rewind;
pub use error::Error;
pub use error::few;
pub use export::json;
pub use export::markdown;
pub use find::Found;
pub use find::find;
pub use find::is_held;
pub use find::remove;
pub use history::History;
pub use history::Step;
pub use list::Latest;
pub use list::Listed;
pub use list::Summary;
pub use list::find_latest;
pub use list::last;
pub use list::list;
pub use list::recent;
pub use list::summary;
pub use log::Log;
pub use name::rename;
pub use options::Options;
pub use past::Beginning;
pub use past::Fullness;
pub use past::Open;
pub use past::Past;
pub use record::Header;
pub use record::Problem;
pub use record::Records;
pub use record::read;
pub use repair::Repair;
pub use repair::repair_tail;
pub use show::raw;
pub use show::show;
pub use state::State;

/// Version of the log's format; it is raised only when an older Podbay would misread a newer log.
/// New event types and new fields do not count.
pub const VERSION: u32 = 2;
