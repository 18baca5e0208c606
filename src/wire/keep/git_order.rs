use serde::Deserialize;
use serde::Serialize;

use super::ImportedGit;
use super::MayRun;
use super::MovedOutGit;
use super::NamedList;
use super::OutsideRepositories;
use super::PreparedGit;
use super::UserGitSettings;
use crate::BytesPath;

/// An order about the repositories of a project for one session, which is identified by an id of
/// its own here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "git", rename_all = "snake_case")]
pub enum GitOrder {
    /// Before the session: records which repositories there are, and makes the session's folders
    /// for the given ones.
    ///
    /// An earlier preparation of the same session is replaced, so this is for a session in which no
    /// command has run.
    Prepare {
        id: String,
        sources: Vec<GitSource>,
        /// Files and folders of the project that the session cannot read.
        hidden: Vec<BytesPath>,
        person: UserGitSettings,
        /// The review for the session's changes; if that has a record already, the session resumes
        /// in its folders.
        review: Option<String>,
        /// Path of the project's folder on the user's machine.
        place: BytesPath,
        /// What the host read of repositories outside of the project.
        #[serde(default)]
        outside: OutsideRepositories,
    },
    /// After the session: imports what it committed, stashed and staged, and moves its new
    /// repositories out of the project.
    Settle {
        id: String,
        /// The repository at the top, by its present paths; the others are recorded.
        top: Option<GitSource>,
        /// The folder of the session's folders for repositories below the top, if there is one.
        below: Option<BytesPath>,
        /// Why nothing can be imported now, if so; new repositories are moved out all the same.
        no_import: Option<String>,
        /// Whether that may change by the next start, so that it is retried then.
        tries_again: bool,
        /// Whether the `.git` at the top is the user's, if that was watched.
        is_top_theirs: Option<bool>,
        /// For pending work of a review: such a session cannot have made a repository in the
        /// project.
        review: Option<ReviewedGit>,
        /// The user's patterns of files that may run, besides the built-in ones, and the path of
        /// the project's folder on their machine.
        auto_run: Vec<String>,
        place: BytesPath,
        /// Size limit of a file: larger objects stay in the session.
        file_size: u64,
    },
    /// After a session: forgets what was written down, if nothing came of it. So it is where
    /// nothing has run, and where the session's folder and the project's repositories are as they
    /// were. Nothing is changed in the project.
    Forget {
        id: String,
        has_run: bool,
        /// The session's folder, where the keeper sees it.
        session: Option<BytesPath>,
    },
}

/// How the pending git work of a review is imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewedGit {
    /// The user's patterns of files that may run, besides the built-in ones.
    pub auto_run: Vec<String>,
    /// Imports commits with such files, and names those; otherwise nothing is imported then.
    pub with_auto_run: bool,
}

/// A repository that the session is to work in, with its paths in the keeper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitSource {
    /// Path of its `.git`, relative to the project's folder.
    pub path: BytesPath,
    /// The real repository; for a linked worktree, the main one.
    pub real: BytesPath,
    /// If the project is a linked worktree: its name in the repository, and the path of its `.git`
    /// file as recorded there.
    pub worktree: Option<(BytesPath, BytesPath)>,
    /// The session's folder.
    pub session: BytesPath,
    /// Where to write a file that leads a linked worktree to the session's folder.
    pub pointer: Option<BytesPath>,
    /// Paths of the two in the sandbox.
    pub real_in_box: BytesPath,
    pub session_in_box: BytesPath,
}

/// The answer to a [`GitOrder`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GitAnswer {
    Prepared(PreparedGit),
    Settled(SettledGit),
    Forgotten { is_forgotten: bool },
}

/// The outcome of settling a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledGit {
    pub imported: ImportedGit,
    pub aside: MovedOutGit,
    /// Whether nothing of the session is in its own folder alone. If it is not, and nothing else is
    /// set, that was reported before.
    pub is_settled: bool,
    /// Whether what was not imported is retried the next time.
    #[serde(default)]
    pub goes_on: bool,
    /// Files that may run on the user's machine, because of which nothing was imported.
    pub held: NamedList<MayRun>,
    /// Files that may run there and were imported all the same.
    pub may_run: NamedList<MayRun>,
}
