//! Git for sessions, safe for the user: a session has a git folder of its own, which borrows the
//! objects of the real one and gets none of its settings that run something. The session's work is
//! imported as verified objects, and as references that the user has not moved meanwhile.
//!
//! Start with [`execute`], the entry point for the host's orders; then [`find`](find()) (finds
//! repositories), [`prepare`](prepare()) (makes a session's folder, without git),
//! [`import`](import()) (imports the session's work; this alone runs git, and never in a session's
//! folder), and [`move_out_new`] (moves repositories of the session out of the project);
//! [`pending_git`] lists what is pending until it is accepted. The state at a session's start is
//! recorded out of its reach ([`SessionStart`]).

#[cfg(test)]
mod auto_run_commit_tests;
mod bounded_copy;
#[cfg(test)]
mod branch_and_index_tests;
#[cfg(test)]
mod broken_object_tests;
mod commits;
mod committed_auto_run;
mod config;
mod find;
#[cfg(test)]
mod forgotten;
mod git_command;
mod hidden_files;
#[cfg(test)]
mod hook_link_tests;
mod hooks;
#[cfg(test)]
mod hostile_session_tests;
mod import;
mod import_marker;
#[cfg(test)]
mod import_obstacle_tests;
#[cfg(test)]
mod import_tests;
mod index;
mod index_merge;
#[cfg(test)]
mod killed_import_tests;
mod link_path;
#[cfg(test)]
mod live_commit_tests;
#[cfg(test)]
mod many_refs_tests;
mod move_out;
#[cfg(test)]
mod move_out_bounds_tests;
mod new_repositories;
mod order;
#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod partial_repository_tests;
mod pending;
mod prepare;
#[cfg(test)]
mod prepare_tests;
mod project_paths;
mod ref_aliases;
mod reflogs;
mod refs;
#[cfg(test)]
mod repeated_import_tests;
mod repositories;
mod repository_layout;
#[cfg(test)]
pub(super) mod sample;
mod session_changes;
mod session_config;
mod session_start;
#[cfg(test)]
mod settle_case;
mod staging;
mod stash;
mod untrusted_folder;

pub use bounded_copy::CopyAllowance;
pub use find::MOVING_OUT;
pub use find::find;
pub use hooks::HOOKS;
pub(crate) use hooks::named_in;
pub use hooks::obeyed_paths;
pub use hooks::obeyed_paths_at_start;
pub use hooks::obeyed_paths_below;
pub use hooks::obeyed_paths_in_worktree;
pub use hooks::outside_repository;
pub use import::Import;
pub use import::import;
pub(crate) use link_path::LinkPath;
pub(crate) use link_path::PathEnd;
pub use new_repositories::MoveOutBounds;
pub use new_repositories::move_out_new;
pub use order::KeeperFolders;
pub use order::execute;
pub use pending::forget;
pub use pending::is_on_record;
pub use pending::pending_git;
pub use pending::remove_taken;
pub use prepare::PrepareSource;
pub use prepare::prepare;
pub use repository_layout::is_repository;
pub use repository_layout::linked;
pub use session_config::FilterSettings;
pub use session_config::excludes_in;
pub use session_config::filters_named;
pub use session_config::identity_in;
pub use session_config::line_ends_in;
pub use session_start::SessionStart;
pub(crate) use untrusted_folder::FileKind;
pub use untrusted_folder::UntrustedFolder;
