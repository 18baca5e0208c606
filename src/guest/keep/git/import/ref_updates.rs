//! Updates of references: each only where the user has not moved it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::NOTHING;
use super::RefTargets;
use super::RepositoryImport;
use super::fetch::AT_ONCE;
use super::fetch::Fetched;
use super::fetch::note_late;
use crate::keep::git::refs;
use crate::keep::git::refs::Head;
use crate::keep::git::repository_layout::is_bare;
use crate::keep::git::session_changes::SessionChanges;
use crate::keep::git::stash;
use crate::keep::git::stash::Stash;
use crate::keep::git::untrusted_folder::failed;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::ImportedRepository;
use podbay_wire::keep::MovedRef;
use podbay_wire::keep::NotImported;

/// Most branches that are checked for commits that they lost, and most commits that are counted of
/// each.
const MAX_LOOKED: usize = 20;
const MAX_LEFT_OUT: u64 = 1000;

/// References and their new targets.
pub(super) type RefUpdates<'a> = BTreeMap<&'a BytesPath, &'a String>;

impl RepositoryImport<'_> {
    /// Returns the references that can be imported with their new targets: those that were moved by
    /// the session alone.
    pub(super) fn importable_refs<'a>(
        &self,
        left: &RefUpdates<'a>,
        fetched: &Fetched,
        real: &RefTargets,
        done: &mut ImportedRepository,
    ) -> Result<RefUpdates<'a>, Fault> {
        let (elsewhere, rebased) = (self.checked_out_elsewhere()?, self.being_rebased()?);
        let mut names = RefUpdates::new();
        for (&name, &new) in left {
            let mut refuse = |why: String| {
                done.not_imported.push(NotImported {
                    what: name.clone(),
                    why,
                });
            };
            let (now, old) = (real.get(name), self.started.refs.get(name));
            if !fetched.objects.contains(new) {
                // The reason was reported by the fetch.
                continue;
            }
            if now != Some(new) {
                if now != old {
                    let now = now.map_or("deleted", |object| &object[..12]);
                    refuse(format!(
                        "moved here meanwhile (now {now}); the session's is {}",
                        &new[..12]
                    ));
                    continue;
                }
                if elsewhere.contains(name) {
                    refuse("is checked out in another worktree".to_owned());
                    continue;
                }
                if rebased.contains(name) {
                    refuse("is being rebased here; finish or abort that first".to_owned());
                    continue;
                }
            }
            names.insert(name, new);
        }
        Ok(names)
    }

    /// Moves references, as many at once as possible: one that fails does not keep others back.
    /// Those for which there is no time stay.
    pub(super) fn move_names(
        &self,
        names: &RefUpdates<'_>,
        real: &mut RefTargets,
        done: &mut ImportedRepository,
    ) -> Result<(), Fault> {
        let (there, to_move): (Vec<_>, Vec<_>) = names
            .iter()
            .map(|(name, new)| (*name, *new))
            .partition(|(name, new)| real.get(*name) == Some(new));
        self.have_moved(&there, real, done);
        let mut waiting: Vec<_> = to_move.chunks(AT_ONCE).rev().collect();
        while let Some(some) = waiting.pop() {
            if self.git.is_late() {
                for (name, _) in some {
                    note_late((*name).clone(), done);
                }
                continue;
            }
            match (self.update_all(some)?, some) {
                (Ok(()), _) => self.have_moved(some, real, done),
                (Err(why), [(name, _)]) => done.not_imported.push(NotImported {
                    what: (*name).clone(),
                    why,
                }),
                // Git moves all or none of them.
                (Err(_), _) => {
                    let (one, other) = some.split_at(some.len() / 2);
                    waiting.extend([other, one]);
                }
            }
        }
        Ok(())
    }

    /// Reports which branches lost commits that they had: the first ones, as far as there is time.
    /// They are imported whatever git answers.
    pub(super) fn note_lost_commits(&self, done: &mut ImportedRepository) {
        let branches = done
            .moved
            .iter()
            .filter(|moved| moved.name.as_bytes().starts_with(b"refs/heads/"));
        for moved in branches.take(MAX_LOOKED) {
            let Some(old) = &moved.old else { continue };
            let range = format!("{}..{old}", moved.new);
            let most = format!("--max-count={}", MAX_LEFT_OUT + 1);
            let Ok(answer) = self.git.run(&["rev-list", "--count", &most, &range], b"") else {
                break;
            };
            let count = if answer.is_good {
                String::from_utf8_lossy(&answer.stdout)
                    .trim()
                    .parse()
                    .unwrap_or(0)
            } else {
                0
            };
            let n = if count > MAX_LEFT_OUT {
                format!("more than {MAX_LEFT_OUT}")
            } else {
                count.to_string()
            };
            if count > 0 {
                let words = if count == 1 {
                    "1 commit".to_owned()
                } else {
                    format!("{n} commits")
                };
                let old = &old[..12];
                done.notes.push(format!(
                    "{} lost {words} that it had up to {old}; `git branch saved {old}` restores \
                    them",
                    moved.name
                ));
            }
        }
    }

    fn have_moved(
        &self,
        names: &[(&BytesPath, &String)],
        real: &mut RefTargets,
        done: &mut ImportedRepository,
    ) {
        for (name, new) in names {
            real.insert((*name).clone(), (*new).clone());
            done.moved.push(MovedRef {
                name: (*name).clone(),
                old: self.started.refs.get(*name).cloned(),
                new: (*new).clone(),
            });
        }
    }

    /// Moves references if each has the expected target; else none.
    fn update_all(&self, names: &[(&BytesPath, &String)]) -> Result<Result<(), String>, Fault> {
        let order = |(name, new): &(&BytesPath, &String)| {
            let old = self.started.refs.get(*name).map_or(NOTHING, String::as_str);
            [
                b"update ",
                name.as_bytes(),
                format!("\0{new}\0{old}\0").as_bytes(),
            ]
            .concat()
        };
        self.update(
            &names.iter().flat_map(order).collect::<Vec<u8>>(),
            &format!("podbay: {}", self.id),
        )
    }

    /// Moves one reference; returns whether it is there then.
    pub(super) fn move_name(
        &self,
        name: &BytesPath,
        new: &String,
        real: &mut RefTargets,
        done: &mut ImportedRepository,
    ) -> Result<bool, Fault> {
        if real.get(name) != Some(new)
            && let Err(why) = self.update_all(&[(name, new)])?
        {
            done.not_imported.push(NotImported {
                what: name.clone(),
                why,
            });
            return Ok(false);
        }
        self.have_moved(&[(name, new)], real, done);
        Ok(true)
    }

    fn update(&self, order: &[u8], message: &str) -> Result<Result<(), String>, Fault> {
        let answer = self.steady.run(
            &[
                "update-ref",
                "--create-reflog",
                "-m",
                message,
                "--stdin",
                "-z",
            ],
            order,
        )?;
        Ok(if answer.is_good {
            Ok(())
        } else {
            Err(answer.problem())
        })
    }

    /// Returns the branches that are being rebased: a rebase fails at its end if its branch was
    /// moved.
    fn being_rebased(&self) -> Result<BTreeSet<BytesPath>, Fault> {
        let mut rebased = BTreeSet::new();
        for place in self.work_trees()? {
            for name in [
                b"rebase-merge/head-name".as_slice(),
                b"rebase-apply/head-name",
            ] {
                let branch = self
                    .real
                    .read(&join(&place, name), refs::MAX_SYMBOLIC)?
                    .unwrap_or_default();
                rebased.insert(BytesPath::from_bytes(branch.trim_ascii_end()));
            }
        }
        Ok(rebased)
    }

    /// Returns the private folders of the repository's worktrees.
    fn work_trees(&self) -> Result<Vec<Vec<u8>>, Fault> {
        let mut places = vec![Vec::new()];
        for (name, _) in self
            .real
            .names(b"worktrees")
            .map_err(|errno| failed("list", b"worktrees", &errno.into()))?
        {
            places.push(join(b"worktrees", &name));
        }
        Ok(places)
    }

    /// Returns the branches that are checked out in other worktrees: moving one would show all of
    /// its commits as changes there.
    pub(super) fn checked_out_elsewhere(&self) -> Result<BTreeSet<BytesPath>, Fault> {
        let is_bare = is_bare(&self.real);
        // A bare repository has nothing checked out itself, whatever its `HEAD` names.
        let places = self
            .work_trees()?
            .into_iter()
            .filter(|place| !place.is_empty() || !is_bare);
        let paths: Vec<Vec<u8>> = places.map(|place| join(&place, b"HEAD")).collect();
        let own = if self.started.worktree.is_some() {
            join(&self.private, b"HEAD")
        } else {
            b"HEAD".to_vec()
        };
        let heads = paths
            .iter()
            .filter(|path| **path != own)
            .filter_map(|path| Head::read(&self.real, path).ok().flatten());
        Ok(heads
            .filter_map(|head| {
                if let Head::Branch { name } = head {
                    Some(name)
                } else {
                    None
                }
            })
            .collect())
    }

    /// Adds the session's stashes on top of the existing ones; returns those that are there then.
    pub(super) fn put_stashes(
        &self,
        left: &SessionChanges,
        fetched: &Fetched,
        real: &mut RefTargets,
        done: &mut ImportedRepository,
    ) -> Result<Vec<Stash>, Fault> {
        let mut put = Vec::new();
        let here = stash::read(&self.real)?;
        let name = BytesPath::from_bytes(stash::NAME);
        let mut top = real.remove(&name);
        for stash in left
            .stashes
            .iter()
            .filter(|stash| fetched.objects.contains(&stash.object))
        {
            if !here.iter().any(|known| known.object == stash.object)
                && top.as_ref() != Some(&stash.object)
            {
                let message = if stash.message.is_empty() {
                    "WIP"
                } else {
                    &stash.message
                };
                let old = top.as_deref().unwrap_or(NOTHING);
                let order = [
                    b"update ",
                    stash::NAME,
                    format!("\0{}\0{old}\0", stash.object).as_bytes(),
                ]
                .concat();
                if let Err(why) = self.update(&order, message)? {
                    done.not_imported.push(NotImported {
                        what: name.clone(),
                        why,
                    });
                    break;
                }
                top = Some(stash.object.clone());
            }
            done.stashes.push(stash.message.clone());
            put.push(stash.clone());
        }
        Ok(put)
    }
}

#[cfg(test)]
mod tests {
    use crate::keep::git::sample::Sample;
    use crate::keep::git::sample::SampleSession;

    /// Returns the notes for a session that did this after two commits of the user's.
    fn notes(work: &[&[&str]]) -> Vec<String> {
        let sample = Sample::new();
        sample.commit("a", "1\n");
        let old = sample.commit("a", "2\n");
        let session = SampleSession::of(sample);
        for words in work {
            session.git(words);
        }
        let imported = session.end().import_one();
        assert!(
            imported.not_imported.is_empty() && imported.moved.len() == 1,
            "{imported:?}"
        );
        imported
            .notes
            .into_iter()
            .map(|note| note.replace(&old[..12], "OLD"))
            .collect()
    }

    #[test]
    fn commits_that_a_branch_lost_are_reported() {
        let none: Vec<String> = Vec::new();
        assert_eq!(
            notes(&[&["commit", "-q", "--allow-empty", "-m", "on top"]]),
            none
        );
        let of = |words: &str| {
            vec![format!(
                "refs/heads/main lost {words} that it had up to OLD; `git branch saved OLD` restores them"
            )]
        };
        assert_eq!(
            notes(&[&["commit", "-q", "--amend", "-m", "mended"]]),
            of("1 commit")
        );
        let anew: [&[&str]; 3] = [
            &["checkout", "-q", "--orphan", "anew"],
            &["commit", "-q", "-m", "anew"],
            &["branch", "-q", "-M", "anew", "main"],
        ];
        assert_eq!(notes(&anew), of("2 commits"));
    }
}
