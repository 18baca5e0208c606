//! Git that cannot bite: a session has a git folder of its own, which borrows the objects of the
//! real one and takes over none of its settings that run something; what it left there comes back
//! as checked objects and as names that nobody else moved meanwhile.
//!
//! Start with [`carry_out`], which is what the host orders; then [`find`](find()) (which
//! repositories there are), then [`prepare`](prepare()) (a session's folder, made without git),
//! [`import`](import()) (what comes back; this alone runs git, and never in a session's folder),
//! and [`aside`](aside()) (repositories that a session made or put in another's place);
//! [`waiting`](waiting()) says what would come back, where that waits to be accepted. What a
//! session's start was like is kept where it cannot reach ([`Start`]).

#[cfg(test)]
mod again;
mod aside;
#[cfg(test)]
mod attacked;
#[cfg(test)]
mod bounded;
#[cfg(test)]
mod case;
mod checksum;
mod commits;
mod config;
mod copy;
#[cfg(test)]
mod days;
mod find;
mod folder;
mod given_names;
#[cfg(test)]
mod held;
mod hide;
#[cfg(test)]
mod hooked;
mod hooks;
mod import;
#[cfg(test)]
mod imported;
mod index;
#[cfg(test)]
mod joined;
#[cfg(test)]
mod killed;
mod land;
mod left;
mod leftover;
mod logs;
#[cfg(test)]
mod looked;
#[cfg(test)]
mod lost;
#[cfg(test)]
mod many;
mod moving;
mod order;
#[cfg(test)]
mod ordered;
#[cfg(test)]
mod parted;
mod prepare;
#[cfg(test)]
mod prepared;
mod project_paths;
mod record;
mod refs;
mod repositories;
mod repository;
mod run;
#[cfg(test)]
pub(super) mod sample;
mod settings;
mod stage;
mod stash;
mod touched;
mod waiting;
mod way;

pub use aside::Bounds;
pub use aside::aside;
pub use copy::Room;
pub use find::ON_ITS_WAY;
pub use find::find;
pub use folder::Folder;
pub(crate) use folder::Kind;
pub use hooks::HOOKS;
pub(crate) use hooks::named_in;
pub use hooks::obeyed;
pub use hooks::obeyed_at_start;
pub use hooks::obeyed_below;
pub use hooks::obeyed_in_worktree;
pub use hooks::outside;
pub use import::Import;
pub use import::import;
pub use order::Folders;
pub use order::carry_out;
pub use prepare::Source;
pub use prepare::prepare;
pub use record::Start;
pub use repository::is_repository;
pub use repository::linked;
pub use settings::Filtering;
pub use settings::excludes_in;
pub use settings::filters_named;
pub use settings::identity_in;
pub use settings::line_ends_in;
pub use waiting::forget;
pub use waiting::is_on_record;
pub use waiting::remove_taken;
pub use waiting::waiting;
pub(crate) use way::End;
pub(crate) use way::Way;
