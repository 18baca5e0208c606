//! The index, which follows the branch that is checked out here.

use std::path::Path;

use super::RepositoryImport;
use super::fetch::Fetched;
use crate::keep::git::git_command::Git;
use crate::keep::git::index::Index;
use crate::keep::git::index::MAX_INDEX;
use crate::keep::git::index_merge;
use crate::keep::git::index_merge::MergedIndex;
use crate::keep::git::refs;
use crate::keep::git::session_changes::SessionChanges;
use crate::keep::git::untrusted_folder::UntrustedFolder;
use crate::keep::git::untrusted_folder::failed;
use crate::root::join;
use podbay_wire::Fault;

/// What the index here is updated to.
#[derive(Debug)]
pub(super) enum IndexGoal<'a> {
    /// The session's index, and the name of its commit here.
    Session { name: &'a str, index: &'a Index },
    /// The new checkout, from the common base of both sides: as if nothing was staged in the
    /// session.
    Commit { from: Option<String>, to: String },
}

impl RepositoryImport<'_> {
    /// Makes a commit of what the session staged, in the staging repository, so that it is verified
    /// like any other.
    pub(super) fn commit_index(
        &self,
        stage: &Path,
        index: &Index,
        left: &SessionChanges,
    ) -> Result<Result<String, String>, Fault> {
        let mut index = index.clone();
        // Its tree extension is not to be trusted.
        index.forget_trees();
        let folder = UntrustedFolder::open(self.scratch)
            .map_err(|error| failed("open", b"the scratch folder", &error))?;
        folder.remove(b"session.index")?;
        folder.write(b"session.index", &index.write())?;
        let git = Git::new(stage, &self.scratch.join("empty"), self.end);
        let tree = git
            .with_index(&self.scratch.join("session.index"))
            .run(&["write-tree"], b"")?;
        if !tree.is_good {
            return Ok(Err(tree.problem()));
        }
        let tree = String::from_utf8_lossy(&tree.stdout).trim().to_owned();
        let mut words = vec!["commit-tree", "-m", "index", &tree];
        // With a parent git knows what need not be fetched.
        if let Some(commit) = left.head.as_ref().and_then(|head| head.commit(&left.bound)) {
            words.extend(["-p", commit]);
        }
        let commit = git.with_fixed_date().run(&words, b"")?;
        let object = refs::object(commit.stdout.trim_ascii());
        Ok(object.ok_or_else(|| commit.problem()))
    }

    /// Returns whether the session's index differs from the commit that it had checked out.
    pub(super) fn has_staged(
        &self,
        left: &SessionChanges,
        fetched: &Fetched,
        commit: Option<&String>,
    ) -> Result<bool, Fault> {
        let (Some(_), Some(name)) = (&left.index, &fetched.index) else {
            return Ok(false);
        };
        let Some(commit) = commit else {
            return Ok(true);
        };
        let trees = [name, commit].map(|name| format!("{name}^{{tree}}"));
        let answer = self
            .git
            .run(&["rev-parse", "-q", &trees[0], &trees[1]], b"")?;
        let mut lines = answer.stdout.split(|byte| *byte == b'\n');
        Ok(!answer.is_good || lines.next() != lines.next())
    }

    /// Makes the new index under a lock; returns it, or why it stays as it is.
    pub(super) fn join_index(
        &self,
        goal: IndexGoal<'_>,
    ) -> Result<Result<MergedIndex<'_>, String>, Fault> {
        let none = Index::default();
        let (start, session, checked) = match goal {
            IndexGoal::Session { name, index } => (
                Ok(self.start_index.clone()),
                index,
                self.index_of(name)?.map(Some),
            ),
            IndexGoal::Commit { from, to } => {
                let from = from.map_or(Ok(Ok(None)), |from| {
                    self.index_of(&from).map(|index| index.map(Some))
                })?;
                (from, &none, self.index_of(&to)?.map(Some))
            }
        };
        match (start, checked) {
            (Ok(start), Ok(checked)) => index_merge::merge_index(
                &self.real,
                &index_merge::IndexMerge {
                    path: join(&self.private, b"index"),
                    id: self.id,
                    start: start.as_deref(),
                    session,
                    checked: checked.as_deref(),
                },
            ),
            (Err(why), _) | (_, Err(why)) => Ok(Err(why)),
        }
    }

    /// Has git make an index of a commit.
    fn index_of(&self, commit: &str) -> Result<Result<Vec<u8>, String>, Fault> {
        let folder = UntrustedFolder::open(self.scratch)
            .map_err(|error| failed("open", b"the scratch folder", &error))?;
        folder.remove(b"landing.index")?;
        let answer = self
            .git
            .with_index(&self.scratch.join("landing.index"))
            .run(&["read-tree", commit], b"")?;
        if !answer.is_good {
            return Ok(Err(answer.problem()));
        }
        Ok(Ok(folder
            .read(b"landing.index", MAX_INDEX)?
            .unwrap_or_default()))
    }
}
