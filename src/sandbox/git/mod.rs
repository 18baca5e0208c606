//! The git of a session: a folder in a volume, mounted at `.git` in the sandbox, that borrows the
//! objects of the real repository.
//!
//! A keeper prepares it before the first command and imports from it after the last one; the
//! keeper's part is `guest::keep::git`. If the session's changes are pending review, so are its
//! commits (`reviewed`). Start with [`SessionGit`]; [`Lent`] is what the sandbox sees of it, and
//! [`Ended`] the result.

mod around;
mod below;
mod ended;
mod left;
mod lent;
mod outside;
mod person;
mod reviewed;
mod session;
mod settle;
mod top;
mod volume;

use std::path::PathBuf;

pub use self::around::obeyed_around;
pub(super) use self::around::why_no_git;
pub use self::ended::Ended;
pub use self::left::LeftGit;
pub use self::left::left;
pub(super) use self::lent::DOT_GIT;
pub(super) use self::lent::Lent;
pub(super) use self::outside::outside;
pub use self::person::person;
pub(super) use self::reviewed::is_there;
pub(super) use self::reviewed::keep_for_review;
pub use self::reviewed::take_over;
pub(super) use self::reviewed::volume_of;
pub(super) use self::reviewed::volume_of_below;
pub(super) use self::session::Asked;
pub(super) use self::session::SessionGit;
pub(super) use self::settle::settle_left;
use podbay_wire::keep::UserGitSettings;

/// What a session's git needs besides its project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The folder in the state folder for repositories that a session created.
    pub aside: PathBuf,
    /// The user's identity and settings.
    pub person: UserGitSettings,
    /// The user's patterns for auto-run files.
    pub auto_run: Vec<String>,
    /// Largest file in bytes.
    pub file_size: u64,
}
