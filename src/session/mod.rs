//! A session on disk: its events as JSON lines, its artifacts, and the state folder that holds
//! both.
//!
//! `tools` and `agent` decide what is an event, `sandbox` locks the project, and `ui::text` makes
//! rendered text safe for a terminal. A log is append-only. It may end anywhere, even within a
//! character, so reading returns what is whole and reports what is damaged.
//!
//! Start with [`Log`], then [`read`].

mod artifact;
mod command_record;
mod error;
mod export;
mod history;
mod images;
mod job;
mod journal;
mod list;
mod log;
mod log_file;
mod maintenance;
mod markdown_text;
mod memory;
mod memory_file;
mod memory_folder;
mod metrics;
mod options;
mod project_document;
mod record;
mod redact;
mod repair;
mod replay;
mod resume_state;
mod session_file;
mod session_name;
mod show;
mod state;
mod stats;

pub use artifact::ArtifactPage;
pub use artifact::Artifacts;
pub use artifact::Stored;
pub use command_record::CommandRecord;
pub use error::Error;
pub use error::few;
pub use export::json;
pub use export::markdown;
pub use export::redacted;
pub use history::History;
pub use history::Step;
pub use job::JobRecord;
pub use job::JobState;
pub use job::JobWriter;
pub use job::Jobs;
pub use list::LatestSession;
pub use list::SessionList;
pub use list::SessionSummary;
pub use list::find_latest;
pub use list::last;
pub use list::list;
pub use list::recent;
pub use list::spawned;
pub use list::summary;
pub use log::Log;
pub use maintenance::fork;
pub use maintenance::prune;
pub use maintenance::rewind;
pub use memory::Memories;
pub use memory::MemoryList;
pub use memory::MemoryScope;
pub use memory::SavedMemory;
pub use memory::StoredMemory;
pub use options::MemoryOptions;
pub use options::Options;
pub use project_document::PROJECT_DOCUMENT;
pub use record::Header;
pub use record::LogProblem;
pub use record::Records;
pub use record::read;
pub use repair::LogRepair;
pub use repair::repair_tail;
pub use resume_state::Fullness;
pub use resume_state::OpenCall;
pub use resume_state::PromptPrefix;
pub use resume_state::ResumeState;
pub use session_file::SessionFile;
pub use session_file::find;
pub use session_file::is_held;
pub use session_file::remove;
pub use session_name::rename;
pub use show::raw;
pub use show::show;
pub use state::State;
pub use stats::Stats;

/// Version of the log's format; it is raised only when an older Podbay would misread a newer log.
/// New event types and new fields do not count.
pub const VERSION: u32 = 2;
