//! Repositories of the project: which there are, how they were prepared for a session, and what was
//! imported from it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;

use super::NamedList;
use crate::BytesPath;

/// The repositories of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundGit {
    pub repositories: Vec<FoundRepository>,
    /// Whether every folder was searched, in time.
    pub whole: bool,
    /// Entries with names of repository parts in folders that are no repositories.
    #[serde(default)]
    pub parts: Vec<BytesPath>,
}

/// A repository, or something that leads git to one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FoundRepository {
    /// Relative to the project's folder: a `.git`, a bare repository's own folder, or a submodule's
    /// below `.git/modules`.
    pub path: BytesPath,
    pub kind: GitKind,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GitKind {
    /// A `.git` folder.
    Folder,
    /// A `.git` file, as of a submodule or a linked worktree.
    Pointer {
        /// The path after `gitdir:`; empty if there is none.
        to: BytesPath,
    },
    /// A `.git` that is a symbolic link.
    Link { to: BytesPath },
    /// A `.git` that is none of these, such as a pipe.
    Special,
    /// A folder that is a repository itself, without a `.git`.
    Bare,
    /// A submodule's repository inside of another one.
    Module,
    /// One of an earlier session that was not moved out of the project completely.
    OnItsWay,
}

/// The author and committer of a session's commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub name: String,
    pub email: String,
}

/// The user's git settings for a session, from files outside of repositories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserGitSettings {
    /// Who commits, where the repository does not say.
    pub identity: Option<Identity>,
    /// The filters with a configured program.
    #[serde(default)]
    pub filters: Vec<BytesPath>,
    /// Whether they include unread files, so that there may be more filters.
    #[serde(default)]
    pub has_more: bool,
    /// The attributes files for all of the user's repositories.
    #[serde(default)]
    pub attributes: Vec<AttributesFile>,
    /// Exclude rules for all of the user's repositories.
    #[serde(default)]
    pub ignored: String,
    /// Line-ending settings of `core` for repositories without their own.
    #[serde(default)]
    pub line_ends: BTreeMap<String, String>,
}

/// An attributes file outside of repositories, or one that is configured for all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributesFile {
    /// A relative one is in each repository's working tree.
    pub path: BytesPath,
    /// The filters that it names, if it could be read on the user's machine.
    #[serde(default)]
    pub filters: Vec<BytesPath>,
    /// Whether it applies also where a repository's own config names another one.
    #[serde(default)]
    pub is_of_machine: bool,
}

/// Why git can only read in a session, or not even that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum GitRefusal {
    #[error("it uses SHA-256 object ids, which are not supported yet")]
    Sha256,
    #[error(
        "its references are stored as `{storage}`, which is not supported yet; `git refs migrate \
        --ref-format=files` converts them"
    )]
    RefStorage { storage: String },
    #[error("it has the unknown extension `{name}`, with which git refuses even to read")]
    Extension { name: String },
    #[error(
        "it borrows objects from {from}, which are not in the sandbox; copy them with `git repack \
        -a -d`, and remove that entry from objects/info/alternates"
    )]
    Alternates { from: BytesPath },
    #[error(
        "it is a partial clone, and missing objects cannot be fetched in a sandbox; `git fetch \
        --refetch --no-filter` fetches them"
    )]
    Partial,
    #[error("it uses LFS, and a commit made in a sandbox would lose large files")]
    LargeFiles,
    #[error(
        "{path} sets the filter `{name}`, which does not run in a sandbox: a commit made there \
        would hold what it encrypts or strips"
    )]
    Filtered { name: BytesPath, path: BytesPath },
    #[error(
        "it may use LFS or a filter, and a commit made in a sandbox would bypass them: cannot read \
        {path}: {problem}"
    )]
    LargeFilesUnknown { path: BytesPath, problem: String },
    #[error("its index holds a merge with conflicts; commit or abort that first")]
    Unmerged,
    #[error("{what} is under way in it; finish or abort that first")]
    UnderWay { what: String },
    #[error("its index is split; `git update-index --no-split-index` joins it")]
    SplitIndex,
    #[error("its index is sparse; `git sparse-checkout reapply --no-sparse-index` expands it")]
    SparseIndex,
    #[error("its core.worktree is {path}, which is not where the project has its files")]
    Elsewhere { path: BytesPath },
    #[error(
        "it has no core.worktree, as after `git submodule deinit`; `git submodule update --init` \
        restores its files"
    )]
    Nowhere,
    #[error(
        "{path} is a symbolic link, or leads through one, and links are not followed; replace it \
        with its target"
    )]
    Linked { path: BytesPath },
    #[error("it was replaced since the session began")]
    Replaced,
    #[error("its worktree does not point back to the project; `git worktree repair` fixes that")]
    NotOurs,
    #[error(
        "it is a worktree of another repository, and only the project itself may be one; use \
        `podbay run -C` with its folder"
    )]
    WorktreeBelow,
    #[error(
        "it has no HEAD, so git sees no repository there; restore the file with the line `ref: \
        refs/heads/BRANCH` and your branch's name"
    )]
    NoHead,
    #[error("its {path} cannot be read: {problem}; `git fsck` may say more")]
    Broken { path: BytesPath, problem: String },
}

impl GitRefusal {
    /// Returns whether git can read in a repository that was not prepared. Without its borrowed
    /// objects, or without `HEAD`, it cannot.
    pub fn lets_read(&self) -> bool {
        !matches!(self, Self::Alternates { .. } | Self::NoHead)
    }
}

/// The repositories as a session sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedGit {
    pub repositories: Vec<PreparedRepository>,
    /// How many more there are.
    #[serde(default)]
    pub n_more: u64,
    /// Paths that the user's git obeys because of settings that a session does not see.
    pub obeyed: ObeyedPaths,
}

/// Paths in the project that git on the host obeys because of a repository's config.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObeyedPaths {
    /// Folders of hooks, and included config files.
    pub paths: Vec<BytesPath>,
    /// Config files that were not read: included ones that lie elsewhere or do not exist yet, and
    /// those of a repository elsewhere that a `.git` file below the top leads to. Also those, and
    /// hooks, that are longer or name more than is examined.
    pub unread: Vec<BytesPath>,
    /// Whether there are any of the last kind, so that some of what they have git run is unknown.
    #[serde(default)]
    pub is_cut: bool,
    /// The same paths as written in the config, those that do not exist yet or are links; and
    /// programs that config or hooks name.
    #[serde(default)]
    pub said: Vec<BytesPath>,
}

/// What the host read of repositories outside of the project that `.git` files below its top lead
/// to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideRepositories {
    /// Their config files, named as in [`ObeyedPaths::unread`].
    pub read: Vec<BytesPath>,
    /// What git obeys in the project because of them.
    pub obeyed: ObeyedPaths,
}

impl OutsideRepositories {
    /// Adds these to what is known without them.
    pub fn add_to(&self, obeyed: &mut ObeyedPaths) {
        obeyed.unread.retain(|path| !self.read.contains(path));
        for (list, more) in [
            (&mut obeyed.paths, &self.obeyed.paths),
            (&mut obeyed.unread, &self.obeyed.unread),
            (&mut obeyed.said, &self.obeyed.said),
        ] {
            list.extend(more.iter().cloned());
            list.sort();
            list.dedup();
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedRepository {
    /// As in [`FoundRepository`].
    pub path: BytesPath,
    /// Why git cannot write there: nothing was made for it in the session's folder, or, for a
    /// submodule, only what git needs to ignore it.
    pub refused: Option<GitRefusal>,
    /// Differences from the real one, as messages.
    pub notes: Vec<String>,
    pub n_refs: u64,
    /// Tracked files with secrets, which the session's index marks as unchanged. Of very many an
    /// answer names some.
    pub hidden: Vec<BytesPath>,
    /// Content for the project's `.git` file, where the repository is a linked worktree.
    pub pointer: Option<BytesPath>,
}

impl PreparedRepository {
    /// Returns one that was not prepared.
    pub fn refused(path: &BytesPath, refusal: GitRefusal) -> Self {
        let (path, refused) = (path.clone(), Some(refusal));
        Self {
            path,
            refused,
            notes: Vec::new(),
            n_refs: 0,
            hidden: Vec::new(),
            pointer: None,
        }
    }
}

/// What was imported from a session, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedGit {
    pub repositories: Vec<ImportedRepository>,
    /// How many more there are.
    pub n_more: u64,
}

impl ImportedGit {
    /// Returns whether nothing of the session's work is in its own folder alone.
    pub fn is_whole(&self) -> bool {
        self.repositories.iter().all(ImportedRepository::is_whole)
    }

    /// Returns whether there was no time for some of it.
    pub fn is_late(&self) -> bool {
        self.repositories.iter().any(|one| one.is_late)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedRepository {
    /// As in [`FoundRepository`].
    pub path: BytesPath,
    /// Branches and tags that are in the real repository as the session left them.
    pub moved: Vec<MovedRef>,
    /// Stashes that were added on top of the user's.
    pub stashes: Vec<String>,
    /// The new checkout, where the session changed it.
    pub head: Option<String>,
    pub index: IndexImport,
    pub not_imported: Vec<NotImported>,
    /// Whether time or room on the disk was lacking for some of that: it can be imported the next
    /// time.
    #[serde(default)]
    pub is_late: bool,
    /// Notes for the user, such as on branches that the session deleted.
    pub notes: Vec<String>,
    /// How many more there are of each than are named.
    pub n_more: MoreImported,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoreImported {
    pub moved: u64,
    pub not_imported: u64,
    pub notes: u64,
}

impl ImportedRepository {
    /// Returns whether nothing of the session's work is in its own folder alone.
    pub fn is_whole(&self) -> bool {
        self.not_imported.is_empty() && self.n_more.not_imported == 0
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedRef {
    /// The full name: `refs/heads/main`.
    pub name: BytesPath,
    /// `None`: it is new.
    pub old: Option<String>,
    pub new: String,
}

/// Something that stays in the session's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotImported {
    /// `refs/heads/main`, `HEAD`, `index`, `stash`.
    pub what: BytesPath,
    pub why: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IndexImport {
    /// The session staged nothing, and no commit of it is checked out.
    #[default]
    Unchanged,
    /// The real index has what the session staged, merged with what the user staged meanwhile.
    Taken,
    /// It is unchanged; [`ImportedRepository::not_imported`] says why.
    Kept,
}

/// Repositories that a session made or replaced, and that were moved out of the project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedOutGit {
    /// Those that are not where they should be come first.
    pub moved: NamedList<MovedOutRepository>,
    /// How many of them are in the project under a name that git does not know; how many wait there
    /// for the next time; how many could not be moved.
    pub n_left: u64,
    pub n_waiting: u64,
    pub n_stuck: u64,
    /// Whether every folder was searched, in time.
    pub whole: bool,
    /// Whether there was no time for some of it.
    pub is_late: bool,
    /// Whether some may have existed when the session began, since not everything was searched
    /// then.
    #[serde(default)]
    pub is_unsure: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedOutRepository {
    /// Its original path, relative to the project's folder.
    pub path: BytesPath,
    /// The names in its folder that were moved, if the rest of it stays; empty: all of it was
    /// moved.
    #[serde(default)]
    pub parts: NamedList<BytesPath>,
    /// Its name in the folder where such repositories are kept.
    pub kept: Option<BytesPath>,
    /// Its path in the project, under a name that git does not know, if it exceeds the limits or
    /// because of a problem.
    pub left: Option<BytesPath>,
    /// The same for one that is to be copied the next time.
    pub waits: Option<BytesPath>,
    /// Pipes, sockets, devices and unreadable entries, which are not kept.
    pub n_passed_over: u64,
    /// Whether the `.git` file that it had replaced is restored.
    pub is_restored: bool,
    /// What went wrong. If no other path is set, it may still be at its original one.
    pub problem: Option<String>,
}

impl MovedOutRepository {
    /// Returns one that was not handled yet.
    pub fn at(path: &BytesPath) -> Self {
        Self {
            path: path.clone(),
            ..Self::default()
        }
    }

    /// Whether git still finds it.
    pub fn is_stuck(&self) -> bool {
        self.kept.is_none() && self.left.is_none() && self.waits.is_none()
    }

    /// Returns whether a path of the project was moved with it.
    pub fn has(&self, path: &[u8]) -> bool {
        let within = |place: &[u8], path: &[u8]| {
            path.strip_prefix(place)
                .is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
        };
        let folder = self.path.as_bytes();
        if self.parts.is_empty() {
            return within(folder, path);
        }
        let inside = if folder.is_empty() {
            Some(path)
        } else {
            path.strip_prefix(folder)
                .and_then(|rest| rest.strip_prefix(b"/"))
        };
        inside.is_some_and(|inside| {
            self.parts
                .first
                .iter()
                .any(|part| within(part.as_bytes(), inside))
        })
    }
}
