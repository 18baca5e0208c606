//! Queries that git would refuse with a message that does not help a model: it names sandbox
//! internals, or a remedy that the model does not have.

use super::Asking;
use crate::tools::invalid;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::GitBranch;
use podbay_wire::GitQuery;
use podbay_wire::GitStash;

impl Asking<'_> {
    /// Refuses a query that will fail, before git runs.
    pub(super) async fn refuse(&self, query: &GitQuery) -> Result<(), Fault> {
        match query {
            GitQuery::Diff {
                base: Some(base), ..
            } => {
                for name in ends(base) {
                    self.refuse_unknown("base", name).await?;
                }
                Ok(())
            }
            GitQuery::Checkout {
                target,
                create: false,
            } if !self.has_remote(target).await? => self.refuse_unknown("target", target).await,
            GitQuery::Branch(GitBranch::Create { name })
                if self.has(&format!("refs/heads/{name}")).await? =>
            {
                Err(invalid(
                    "name",
                    format!(
                        "there is a branch `{name}` already; git_checkout switches to it, or choose another name for a new one"
                    ),
                ))
            }
            GitQuery::Branch(GitBranch::Delete { name }) => self.refuse_delete(name).await,
            GitQuery::Stash(
                GitStash::Pop { index } | GitStash::Apply { index } | GitStash::Drop { index },
            ) => self.refuse_no_stash(*index).await,
            _ => Ok(()),
        }
    }

    /// Returns the files of a commit that must be staged: all except those whose removal is staged
    /// already. A missing file that git does not know is refused.
    pub(super) async fn to_stage<'f>(
        &self,
        files: &'f [BytesPath],
    ) -> Result<Vec<&'f BytesPath>, Fault> {
        let mut found = Vec::new();
        for file in files {
            // Git itself reports problems with existing files.
            let Some(fault) = self.session.directories.lacks(file) else {
                found.push(file);
                continue;
            };
            let path = self.session.directories.absolute(file)?;
            if self.has_some(&["ls-files", "--cached"], &path).await {
                found.push(file);
            } else if !self
                .has_some(&["diff", "--cached", "--name-only", "--no-ext-diff"], &path)
                .await
            {
                return Err(fault);
            }
        }
        Ok(found)
    }

    /// Returns whether git prints anything for a path; also where it prints more than is read.
    async fn has_some(&self, words: &[&str], path: &[u8]) -> bool {
        let words = words
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .chain([b"--".to_vec(), super::literal(path)]);
        self.question(words.collect())
            .await
            .map_or(true, |said| !said.is_empty())
    }

    async fn refuse_unknown(&self, field: &str, name: &str) -> Result<(), Fault> {
        if self.is_commit(name).await? {
            return Ok(());
        }
        let remedy = "git_branch lists the branches, git_log the last commits";
        Err(match name {
            "HEAD" | "@" if field == "base" => invalid(
                field,
                "there is no commit yet to compare with; omit it, or commit first",
            ),
            name if field == "target" => invalid(
                field,
                format!(
                    "`{name}` is not a branch, tag or commit of this repository; {remedy}; with create set to true a new branch is created"
                ),
            ),
            name => invalid(
                field,
                format!("`{name}` is not a branch, tag or commit of this repository; {remedy}"),
            ),
        })
    }

    async fn is_commit(&self, name: &str) -> Result<bool, Fault> {
        Ok(!name.starts_with('-') && self.has(&format!("{name}^{{commit}}")).await?)
    }

    async fn has(&self, name: &str) -> Result<bool, Fault> {
        Ok(!self
            .answer(&["rev-parse", "--verify", "--quiet", name])
            .await?
            .is_empty())
    }

    /// Returns whether a remote branch has this name; checking it out creates a local branch.
    async fn has_remote(&self, name: &str) -> Result<bool, Fault> {
        Ok(!self
            .answer(&[
                "for-each-ref",
                "--count=1",
                &format!("refs/remotes/*/{name}"),
            ])
            .await?
            .is_empty())
    }

    async fn refuse_delete(&self, name: &str) -> Result<(), Fault> {
        let branch = format!("refs/heads/{name}");
        if !self.has(&branch).await? {
            return Err(invalid(
                "name",
                format!("there is no branch `{name}`; git_branch lists those that there are"),
            ));
        }
        if self.answer(&["symbolic-ref", "--quiet", "HEAD"]).await? == branch.as_bytes() {
            return Err(invalid(
                "name",
                format!(
                    "`{name}` is checked out, so it cannot be deleted; check out another branch first, with git_checkout"
                ),
            ));
        }
        // As git decides it: merged into its upstream, where it has one, else into HEAD.
        let follows = format!("{name}@{{upstream}}");
        let has_upstream = self.has(&follows).await?;
        let kept = if has_upstream { &follows } else { "HEAD" };
        if self
            .answer(&["rev-list", "--max-count=1", &branch, &format!("^{kept}")])
            .await?
            .is_empty()
        {
            return Ok(());
        }
        let problem = if has_upstream {
            format!(
                "`{name}` has commits that its upstream does not have, so git keeps it; leave it there and say that the user may delete it"
            )
        } else {
            format!(
                "`{name}` has commits that `HEAD` has not, which would be lost, so nothing was deleted; merge it first (`git merge {name}`), or \
                 leave it there and say that the user may delete it"
            )
        };
        Err(invalid("name", problem))
    }

    async fn refuse_no_stash(&self, index: u32) -> Result<(), Fault> {
        let n = self
            .answer(&["stash", "list", "--format=%H"])
            .await?
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .count();
        if (index as usize) < n {
            return Ok(());
        }
        Err(match n {
            0 => invalid("index", "there is no stash; continue without it"),
            1 => invalid(
                "index",
                format!("there is no stash {index}; there is one, and its index is 0"),
            ),
            n => invalid(
                "index",
                format!(
                    "there is no stash {index}; the existing ones have the indexes 0 to {}, as action list shows",
                    n - 1
                ),
            ),
        })
    }
}

/// Returns the commits that a diff names.
fn ends(base: &str) -> Vec<&str> {
    let ends = base
        .split_once("...")
        .or_else(|| base.split_once(".."))
        .map_or_else(|| vec![base], |(from, to)| vec![from, to]);
    ends.into_iter().filter(|name| !name.is_empty()).collect()
}
