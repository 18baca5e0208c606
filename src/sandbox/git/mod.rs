//! The git of a session: a folder of its own in a volume, which stands where `.git` is in its box
//! and borrows the objects of the real one.
//!
//! A keeper makes it before the first command and takes over what is in it after the last one; what
//! runs in there is `guest::keep::git`. Where the session's changes are held back, what it did with
//! git waits with them (`reviewed`). Start with [`SessionGit`]; [`Lent`] is what the box sees of
//! it, and [`Ended`] what came of it.

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
pub(super) use self::session::SessionGit;
pub(super) use self::settle::settle_left;
use podbay_wire::keep::UserGitSettings;

/// What a session's git needs besides its project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Where repositories go that a session made; a folder of the state.
    pub aside: PathBuf,
    /// What the person's own settings say.
    pub person: UserGitSettings,
    /// Patterns of the person's for what may run on their machine.
    pub auto_run: Vec<String>,
    /// How large a file may be.
    pub file_size: u64,
}
