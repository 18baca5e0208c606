//! The language spoken between the host and the program in the box.
//!
//! Plain data and the bounds on it: calls, outputs, frames, ids. Nothing here does I/O, and nothing here decides anything;
//! `guest` and `sandbox::link` do the talking. Start with [`message`], then [`Call`] and [`Output`].
//!
//! `docs/protocol.md` describes the same from outside.

mod archive;
mod background;
mod call;
mod fault;
pub mod frame;
mod git;
mod limit;
pub mod message;
mod output;
mod patch;
mod path;
mod protected;

pub use archive::Archive;
pub use archive::ArchiveAction;
pub use background::Background;
pub use background::Process;
pub use background::Processes;
pub use call::Bash;
pub use call::Call;
pub use call::Cd;
pub use call::CopyFile;
pub use call::DeleteFile;
pub use call::EditFile;
pub use call::EditLines;
pub use call::Env;
pub use call::Exec;
pub use call::FileEdit;
pub use call::Glob;
pub use call::Grep;
pub use call::GrepOutput;
pub use call::Hook;
pub use call::LineOperation;
pub use call::ListDirectory;
pub use call::Mkdir;
pub use call::MoveFile;
pub use call::MultiEdit;
pub use call::ReadFile;
pub use call::Replacement;
pub use call::Terminal;
pub use call::Tree;
pub use call::UpdateConfig;
pub use call::WriteFile;
pub use fault::Fault;
pub use git::Git;
pub use git::GitQuery;
pub use limit::n_bytes;
pub use limit::size;
pub use message::CallId;
pub use message::Shell;
pub use output::Change;
pub use output::Changed;
pub use output::CommandEnded;
pub use output::Culprit;
pub use output::DirectoryEntry;
pub use output::DirectoryListing;
pub use output::Edited;
pub use output::Encoding;
pub use output::End;
pub use output::EntryKind;
pub use output::Environment;
pub use output::FileChange;
pub use output::FileText;
pub use output::FoundFiles;
pub use output::Image;
pub use output::ImageKind;
pub use output::Limit;
pub use output::MatchedFile;
pub use output::MatchedLine;
pub use output::Matches;
pub use output::Moved;
pub use output::Output;
pub use output::Read;
pub use output::Variable;
pub use output::Written;
pub use patch::ApplyPatch;
pub use patch::FilePatch;
pub use patch::Hunk;
pub use patch::PatchAction;
pub use patch::PatchLine;
pub use path::BytesPath;
pub use protected::Protected;
pub use protected::protected_name;

/// The protocol's version; both ends must have the same one.
pub const PROTOCOL: u32 = 1;
