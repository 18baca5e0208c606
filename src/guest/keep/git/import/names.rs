//! The names that a session moved, each only where nobody else did.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::Bound;
use super::Fetched;
use super::NOTHING;
use super::One;
use crate::guest::keep::git::folder::failed;
use crate::guest::keep::git::left::Left;
use crate::guest::keep::git::refs;
use crate::guest::keep::git::refs::Head;
use crate::guest::keep::git::stash;
use crate::guest::keep::git::stash::Stash;
use crate::guest::root::join;
use crate::wire::BytesPath;
use crate::wire::Fault;
use crate::wire::keep::ImportedRepository;
use crate::wire::keep::MovedRef;
use crate::wire::keep::NotImported;

/// Names and what they come to stand for.
pub(super) type Names<'a> = BTreeMap<&'a BytesPath, &'a String>;

impl One<'_> {
    /// Returns which names can come, and what each comes to stand for: those that nobody else moved.
    pub(super) fn names_that_come<'a>(
        &self,
        left: &'a Left,
        fetched: &Fetched,
        real: &Bound,
        done: &mut ImportedRepository,
    ) -> Result<Names<'a>, Fault> {
        let (elsewhere, rebased) = (self.checked_out_elsewhere()?, self.being_rebased()?);
        let mut names = Names::new();
        for (name, new) in &left.names {
            let mut refuse = |why: String| done.not_imported.push(NotImported { what: name.clone(), why });
            let (now, old) = (real.get(name), self.started.refs.get(name));
            if !fetched.objects.contains(new) {
                // Why, was said where it was fetched.
                continue;
            }
            if now != Some(new) {
                if now != old {
                    let now = now.map_or("deleted", |object| &object[..12]);
                    refuse(format!("was moved here meanwhile (it is {now} now); the session's is {}", &new[..12]));
                    continue;
                }
                if elsewhere.contains(name) {
                    refuse("is checked out in another worktree".to_owned());
                    continue;
                }
                if rebased.contains(name) {
                    refuse("is being rebased here, and belongs to that until it is done".to_owned());
                    continue;
                }
            }
            names.insert(name, new);
        }
        Ok(names)
    }

    pub(super) fn move_names(&self, names: &Names<'_>, real: &mut Bound, done: &mut ImportedRepository) -> Result<(), Fault> {
        for (name, new) in names {
            self.move_name(name, new, real, done)?;
        }
        Ok(())
    }

    /// Moves one name; returns whether it is there then.
    pub(super) fn move_name(&self, name: &BytesPath, new: &String, real: &mut Bound, done: &mut ImportedRepository) -> Result<bool, Fault> {
        let old = self.started.refs.get(name);
        if real.get(name) != Some(new)
            && let Err(why) = self.update(name, new, old.map_or(NOTHING, String::as_str), "")?
        {
            done.not_imported.push(NotImported { what: name.clone(), why });
            return Ok(false);
        }
        real.insert(name.clone(), new.clone());
        done.moved.push(MovedRef { name: name.clone(), old: old.cloned(), new: new.clone() });
        Ok(true)
    }

    /// Moves one name, if it is where it is thought to be.
    fn update(&self, name: &BytesPath, new: &str, old: &str, word: &str) -> Result<Result<(), String>, Fault> {
        let message = if word.is_empty() { format!("podbay: {}", self.id) } else { word.to_owned() };
        let order = [b"update ", name.as_bytes(), format!("\0{new}\0{old}\0").as_bytes()].concat();
        let answer = self.git.run(&["update-ref", "--create-reflog", "-m", &message, "--stdin", "-z"], &order)?;
        Ok(if answer.is_good { Ok(()) } else { Err(answer.problem()) })
    }

    /// Returns the branches that are being rebased: a rebase that finds its branch somewhere else at its end does not end.
    fn being_rebased(&self) -> Result<BTreeSet<BytesPath>, Fault> {
        let mut rebased = BTreeSet::new();
        for place in self.work_trees()? {
            for name in [b"rebase-merge/head-name".as_slice(), b"rebase-apply/head-name"] {
                let branch = self.real.read(&join(&place, name), refs::MAX_SYMBOLIC)?.unwrap_or_default();
                rebased.insert(BytesPath::from_bytes(branch.trim_ascii_end()));
            }
        }
        Ok(rebased)
    }

    /// Returns where the repository keeps what belongs to each of its worktrees.
    fn work_trees(&self) -> Result<Vec<Vec<u8>>, Fault> {
        let mut places = vec![Vec::new()];
        for (name, _) in self.real.names(b"worktrees").map_err(|errno| failed("list", b"worktrees", &errno.into()))? {
            places.push(join(b"worktrees", &name));
        }
        Ok(places)
    }

    /// Returns the branches that other worktrees work on: moving one would turn all of its commits into changes there.
    pub(super) fn checked_out_elsewhere(&self) -> Result<BTreeSet<BytesPath>, Fault> {
        let paths: Vec<Vec<u8>> = self.work_trees()?.iter().map(|place| join(place, b"HEAD")).collect();
        let own = if self.started.worktree.is_some() { join(&self.private, b"HEAD") } else { b"HEAD".to_vec() };
        let heads = paths.iter().filter(|path| **path != own).filter_map(|path| Head::read(&self.real, path).ok().flatten());
        Ok(heads.filter_map(|head| if let Head::Branch { name } = head { Some(name) } else { None }).collect())
    }

    /// Puts the session's stashes on top of those that are here, which all stay; returns those that are there then.
    pub(super) fn put_stashes(
        &self,
        left: &Left,
        fetched: &Fetched,
        real: &mut Bound,
        done: &mut ImportedRepository,
    ) -> Result<Vec<Stash>, Fault> {
        let mut put = Vec::new();
        let here = stash::read(&self.real)?;
        let name = BytesPath::from_bytes(stash::NAME);
        let mut top = real.remove(&name);
        for stash in left.stashes.iter().filter(|stash| fetched.objects.contains(&stash.object)) {
            if !here.iter().any(|known| known.object == stash.object) && top.as_ref() != Some(&stash.object) {
                let message = if stash.message.is_empty() { "WIP" } else { &stash.message };
                if let Err(why) = self.update(&name, &stash.object, top.as_deref().unwrap_or(NOTHING), message)? {
                    done.not_imported.push(NotImported { what: name.clone(), why });
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
