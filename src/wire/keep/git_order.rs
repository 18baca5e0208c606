use serde::Deserialize;
use serde::Serialize;

use super::AsideGit;
use super::ImportedGit;
use super::MayRun;
use super::Named;
use super::Outside;
use super::Person;
use super::PreparedGit;
use crate::BytesPath;

/// What is to be done about the repositories of a project for one session, which has a name of its
/// own here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "git", rename_all = "snake_case")]
pub enum GitOrder {
    /// Before the session: writes down which repositories there are, and makes the session's
    /// folders for those that are named.
    ///
    /// What an earlier preparation of the same session made is made anew, so that this is for a
    /// session in which nothing has run.
    Prepare {
        id: String,
        sources: Vec<GitSource>,
        /// Files and folders of the project that the session cannot read.
        hidden: Vec<BytesPath>,
        person: Person,
        /// The review that the session's changes wait in; where that is on record already, the
        /// session goes on in the folders that it has.
        review: Option<String>,
        /// Where the project's folder is on the person's machine.
        place: BytesPath,
        /// What the host read there of repositories outside of the project.
        #[serde(default)]
        outside: Outside,
    },
    /// After it: takes over what it committed, stashed and staged, and moves repositories out of
    /// the project that it made.
    Settle {
        id: String,
        /// The repository at the top, as it is reached now; the others are on record.
        top: Option<GitSource>,
        /// The folder with those of the session's that are for repositories below the top, if there
        /// is one.
        below: Option<BytesPath>,
        /// Why nothing can be taken over now, if so; repositories that the session made go all the
        /// same.
        no_import: Option<String>,
        /// Whether that may be otherwise at the next start, so that it is to be tried again then.
        tries_again: bool,
        /// Whether the `.git` at the top is the person's, where somebody has watched it.
        is_top_theirs: Option<bool>,
        /// For what waited in a review: that session could make no repository in the project.
        review: Option<ReviewedGit>,
        /// Patterns beside what is known for what may run on the person's machine, and where the
        /// project's folder is there.
        auto_run: Vec<String>,
        place: BytesPath,
        /// How large a file may be: objects above that stay in the session.
        file_size: u64,
    },
}

/// How what waited in a review is taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewedGit {
    /// What may run on the person's machine by their own patterns, beside what is known.
    pub auto_run: Vec<String>,
    /// Takes commits over that hold such a file, and names it; else nothing is taken over then.
    pub with_auto_run: bool,
}

/// A repository that the session is to work in, and where the keeper finds what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitSource {
    /// Where its `.git` stands, from the project's folder.
    pub path: BytesPath,
    /// The real repository; of a linked worktree, the one that it belongs to.
    pub real: BytesPath,
    /// The linked worktree that the project is, by its name in the repository, and the place of its
    /// `.git` file as the repository knows it.
    pub worktree: Option<(BytesPath, BytesPath)>,
    /// The session's folder.
    pub session: BytesPath,
    /// Where a file is written that leads a linked worktree to the session's folder.
    pub pointer: Option<BytesPath>,
    /// Where the box sees the two.
    pub real_in_box: BytesPath,
    pub session_in_box: BytesPath,
}

/// What is answered to a [`GitOrder`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GitAnswer {
    Prepared(PreparedGit),
    Settled(SettledGit),
}

/// What became of what a session left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledGit {
    pub imported: ImportedGit,
    pub aside: AsideGit,
    /// Whether nothing of the session is in its own folder alone. That it is not was told before if
    /// nothing else is told.
    pub is_settled: bool,
    /// Whether what was not taken over is tried again the next time.
    #[serde(default)]
    pub goes_on: bool,
    /// What may run on the person's machine, because of which nothing was taken over.
    pub held: Named<MayRun>,
    /// What of it may run there that was not held because of that.
    pub may_run: Named<MayRun>,
}
