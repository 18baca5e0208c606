//! Repositories of the project: which there are, what became of them for a session, and what of the
//! session came back.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error;

use super::Named;
use crate::BytesPath;

/// The repositories of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundGit {
    pub repositories: Vec<FoundRepository>,
    /// Whether every folder was looked into, in time.
    pub whole: bool,
    /// What bears a name that git has in its repositories and lies in a folder that is none.
    #[serde(default)]
    pub parts: Vec<BytesPath>,
}

/// Something that git takes for a repository, or for the way to one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FoundRepository {
    /// From the project's folder: a `.git`, a bare repository's own folder, or a submodule's below
    /// `.git/modules`.
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
        /// What stands behind `gitdir:`; empty where nothing of the kind does.
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
    /// One that an earlier session made, whose moving out of the project was cut off.
    OnItsWay,
}

/// Who commits in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub name: String,
    pub email: String,
}

/// What settings of the person's, which lie in no repository, say of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// Who commits, where the repository does not say.
    pub identity: Option<Identity>,
    /// The filters that they give programs to.
    #[serde(default)]
    pub filters: Vec<BytesPath>,
    /// Whether they include files that nobody read, so that there may be more.
    #[serde(default)]
    pub has_more: bool,
    /// The files of attributes that count in each of their repositories.
    #[serde(default)]
    pub attributes: Vec<Attributes>,
    /// Rules of what git leaves alone in each of their repositories.
    #[serde(default)]
    pub ignored: String,
    /// How lines end, where the repository does not say: settings of `core` and what they are set
    /// to.
    #[serde(default)]
    pub line_ends: BTreeMap<String, String>,
}

/// A file of attributes that lies in no repository, or is named for all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// A relative one is in the folder of each repository's files.
    pub path: BytesPath,
    /// The filters that it names, as far as somebody could read it on the person's machine.
    #[serde(default)]
    pub filters: Vec<BytesPath>,
    /// Whether it counts also where a repository's own settings name another one.
    #[serde(default)]
    pub is_of_machine: bool,
}

/// Why git can only read in a session, or not even that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum GitRefusal {
    #[error("its objects are named by SHA-256, which is not supported yet")]
    Sha256,
    #[error(
        "its references are kept as `{storage}`, which is not supported yet; `git refs migrate --ref-format=files` makes them files"
    )]
    RefStorage { storage: String },
    #[error(
        "it has the extension `{name}`, which is not known here; a git that does not know it does not even read there"
    )]
    Extension { name: String },
    #[error(
        "it borrows objects from {from}, which the sandbox does not have; `git repack -a -d` without that entry in objects/info/alternates makes it whole"
    )]
    Alternates { from: BytesPath },
    #[error(
        "it was cloned in part, and what it lacks cannot be fetched in a sandbox; `git fetch --refetch --no-filter` makes it whole"
    )]
    Partial,
    #[error(
        "it keeps large files outside of git (LFS), which a commit made in a sandbox would lose"
    )]
    LargeFiles,
    #[error(
        "{path} has files go through the filter `{name}`, which runs in no sandbox: a commit made there would hold what it encrypts or strips"
    )]
    Filtered { name: BytesPath, path: BytesPath },
    #[error(
        "nobody can tell whether it keeps large files outside of git (LFS), or has files go through a filter, which a commit made in a sandbox would lose: {path} cannot be read: {problem}"
    )]
    LargeFilesUnknown { path: BytesPath, problem: String },
    #[error("its index holds a merge with conflicts; commit or abort that first")]
    Unmerged,
    #[error("{what} is under way in it; finish or abort that first")]
    UnderWay { what: String },
    #[error("its index is split; `git update-index --no-split-index` joins it")]
    SplitIndex,
    #[error(
        "its index is sparse; `git sparse-checkout reapply --no-sparse-index` makes it a full one"
    )]
    SparseIndex,
    #[error(
        "its files are said to be in {path} (core.worktree), which is not where the project has them"
    )]
    Elsewhere { path: BytesPath },
    #[error(
        "it does not say where its files are (core.worktree), as after `git submodule deinit`; `git submodule update --init` puts them there again"
    )]
    Nowhere,
    #[error(
        "{path} is a symbolic link, or leads through one, which is not followed; put what it leads to in its place"
    )]
    Linked { path: BytesPath },
    #[error("it is another one than when the session began")]
    Replaced,
    #[error(
        "its worktree does not lead back to the project; `git worktree repair` sets that right"
    )]
    NotOurs,
    #[error(
        "it is a worktree of another repository, and only the project itself may be one; `podbay run -C` with its folder works there"
    )]
    WorktreeBelow,
    #[error(
        "it has no HEAD, without which git knows no repository there; the line `ref: refs/heads/BRANCH`, with the branch that you were on, mends it"
    )]
    NoHead,
    #[error("its {path} cannot be read: {problem}; `git fsck` may say more")]
    Broken { path: BytesPath, problem: String },
}

impl GitRefusal {
    /// Returns whether git can read in a repository that nothing was made for. Without the objects
    /// that it borrows, or without `HEAD`, it cannot.
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
    /// What the person's git obeys by settings that a session does not see.
    pub obeyed: Obeyed,
}

/// What git on the host obeys in the project because the settings of a repository there say so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obeyed {
    /// Folders with hooks, and files of settings that others include.
    pub paths: Vec<BytesPath>,
    /// Files of settings that were not read: included ones that lie elsewhere, or are not there
    /// yet, and those of a repository elsewhere that a file `.git` below the top leads to. Those
    /// and hooks as well that are longer, or name more, than is looked at.
    pub unread: Vec<BytesPath>,
    /// Whether there are any of the last kind, so that not all is known that they have git run.
    #[serde(default)]
    pub is_cut: bool,
    /// The same paths as the settings have them, and those where nothing is yet, or a link; and
    /// programs that settings or hooks name.
    #[serde(default)]
    pub said: Vec<BytesPath>,
}

/// What the host read of repositories outside of the project that files `.git` below its top lead
/// to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// Their settings, as [`Obeyed::unread`] names what nobody read.
    pub read: Vec<BytesPath>,
    /// What git obeys in the project because of them.
    pub obeyed: Obeyed,
}

impl Outside {
    /// Adds it to what is known without.
    pub fn add_to(&self, obeyed: &mut Obeyed) {
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
    /// submodule, only what git needs to pass it over.
    pub refused: Option<GitRefusal>,
    /// What differs from the real one, in words.
    pub notes: Vec<String>,
    pub n_refs: u64,
    /// Files with secrets that are tracked: the session's index takes them for unchanged. Of very
    /// many an answer names some.
    pub hidden: Vec<BytesPath>,
    /// What is to stand in the project's `.git` file, where the repository is a linked worktree.
    pub pointer: Option<BytesPath>,
}

impl PreparedRepository {
    /// One that nothing was made for.
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

/// What a session left, and what of it is in the real repositories now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedGit {
    pub repositories: Vec<ImportedRepository>,
    /// How many more there are.
    pub n_more: u64,
}

impl ImportedGit {
    /// Returns whether nothing of the sessions' work is in its own folder alone.
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
    /// Stashes that were put on top of the person's.
    pub stashes: Vec<String>,
    /// What is checked out now, where the session changed that.
    pub head: Option<String>,
    pub index: IndexImport,
    pub not_imported: Vec<NotImported>,
    /// Whether there was no time, or no room on the disk, for some of that: it can come the next
    /// time.
    #[serde(default)]
    pub is_late: bool,
    /// What the person may want to know besides, such as branches that the session deleted.
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
    /// With all of its name: `refs/heads/main`.
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
    /// The session staged nothing and left no commit behind that asks for it.
    #[default]
    Unchanged,
    /// The real index is what the session left, with what the person staged meanwhile.
    Taken,
    /// It is as it was; [`ImportedRepository::not_imported`] says why.
    Kept,
}

/// Repositories that a session made, or put in the place of others, and that are out of the project
/// now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsideGit {
    /// Those that are not where they belong come first.
    pub moved: Named<Aside>,
    /// How many of them are in the project, under a name that git does not know; how many wait
    /// there for the next time; how many are still where they were.
    pub n_left: u64,
    pub n_waiting: u64,
    pub n_stuck: u64,
    /// Whether every folder was looked into, in time.
    pub whole: bool,
    /// Whether there is more to do for which there was no time.
    pub is_late: bool,
    /// Whether some of it may have been there when the session began, since not all was seen then.
    #[serde(default)]
    pub is_unsure: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aside {
    /// Where it was, from the project's folder.
    pub path: BytesPath,
    /// The names in its folder that were moved, where the rest of that stays; none: all of it was.
    #[serde(default)]
    pub parts: Named<BytesPath>,
    /// Its name in the folder of such.
    pub kept: Option<BytesPath>,
    /// Where it is in the project, under a name that git does not know, because there is more of it
    /// than is copied, or because of a problem.
    pub left: Option<BytesPath>,
    /// The same of one that is to be copied the next time.
    pub waits: Option<BytesPath>,
    /// Pipes, sockets, devices and what could not be read, which are not kept.
    pub n_passed_over: u64,
    /// Whether the `.git` file that it had taken the place of is there again.
    pub is_restored: bool,
    /// What went wrong. Where it is nowhere else it may still be where it was.
    pub problem: Option<String>,
}

impl Aside {
    /// One that nothing was done with yet.
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
