//! What is checked out in the user's repository: its branch, `HEAD` and the index are moved
//! together or not at all. An index that stayed behind its branch would revert the session's work
//! with the user's next commit.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

use super::NOTHING;
use super::RefTargets;
use super::RepositoryImport;
use super::STEADY;
use super::fetch::Fetched;
use super::index::IndexGoal;
use super::ref_updates::RefUpdates;
use crate::keep::git::git_command::Git;
use crate::keep::git::index::Index;
use crate::keep::git::index_merge;
use crate::keep::git::index_merge::LockedIndex;
use crate::keep::git::index_merge::MergedIndex;
use crate::keep::git::prepare::UNDER_WAY;
use crate::keep::git::refs::Head;
use crate::keep::git::session_changes::SessionChanges;
use crate::keep::git::session_start::SessionStart;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::ImportedRepository;
use podbay_wire::keep::IndexImport;
use podbay_wire::keep::NotImported;

/// Why the branch that is checked out here stays where it is.
const NOT_ENDED_HERE: &str = "is checked out here, and the session had something else checked out; \
    it can be imported when you have, too";

/// The plan for what the session had checked out, as far as the user has not changed it meanwhile.
pub(super) struct CheckoutPlan<'a> {
    /// The references that concern the checkout without the branch that is checked out here.
    pub(super) names: RefUpdates<'a>,
    /// The branch that is checked out here.
    own: Option<(&'a BytesPath, &'a String)>,
    here: Option<Head>,
    /// What the session had checked out, if that is to be checked out here; it may be already.
    head: Option<&'a Head>,
    /// Whether it was reported that it is not.
    pub(super) is_head_told: bool,
    /// Whether the switch was about to happen before this import was restarted.
    may_be_switched: bool,
}

impl CheckoutPlan<'_> {
    /// Gives up checking out a branch that was not imported: git has no commit for such a one.
    pub(super) fn keep_without_branch(
        &mut self,
        left: &SessionChanges,
        real: &RefTargets,
        done: &mut ImportedRepository,
    ) {
        let Some(Head::Branch { name }) = self.head else {
            return;
        };
        if self.own.is_some_and(|(own, _)| own == name) || real.get(name) == left.bound.get(name) {
            return;
        }
        self.head = None;
        let mut refuse =
            |what: BytesPath, why: String| done.not_imported.push(NotImported { what, why });
        refuse(
            "HEAD".into(),
            format!("the session was on {name}, which was not imported"),
        );
        if let Some((own, _)) = self.own.take_if(|(own, new)| real.get(*own) != Some(new)) {
            refuse(own.clone(), NOT_ENDED_HERE.to_owned());
        }
    }
}

/// What is ready to be put in place, under the lock of the index.
#[derive(Default)]
struct ReadyCheckout<'a> {
    landed: Option<MergedIndex<'a>>,
    /// The lock of an index that stays as it is; removed when dropped.
    held: Option<LockedIndex<'a>>,
}

impl RepositoryImport<'_> {
    pub(super) fn plan<'a>(
        &self,
        (left, first): (&'a SessionChanges, &RefUpdates<'a>),
        fetched: &Fetched,
        real: &RefTargets,
        done: &mut ImportedRepository,
    ) -> Result<CheckoutPlan<'a>, Fault> {
        let here = Head::read(&self.real, &join(&self.private, b"HEAD"))?;
        let names = self.importable_refs(first, fetched, real, done)?;
        let may_be_switched = SessionStart::may_be_switched(self.state, self.id, self.at);
        let mut plan = CheckoutPlan {
            names,
            own: None,
            here,
            head: None,
            is_head_told: false,
            may_be_switched,
        };
        self.choose_head(&mut plan, left, fetched, real, done)?;
        let Some(Head::Branch { name }) = &plan.here else {
            return Ok(plan);
        };
        plan.own = plan.names.remove_entry(name);
        let ends_here = plan.head.is_some()
            || left.head.as_ref().unwrap_or(&self.started.head)
                == &Head::Branch { name: name.clone() };
        if let Some((name, new)) = plan.own
            && !ends_here
            && real.get(name) != Some(new)
        {
            done.not_imported.push(NotImported {
                what: name.clone(),
                why: NOT_ENDED_HERE.to_owned(),
            });
            plan.own = None;
        }
        Ok(plan)
    }

    /// Decides whether to check out what the session did: where the user moved on meanwhile, that
    /// stays.
    fn choose_head<'a>(
        &self,
        plan: &mut CheckoutPlan<'a>,
        left: &'a SessionChanges,
        fetched: &Fetched,
        real: &RefTargets,
        done: &mut ImportedRepository,
    ) -> Result<(), Fault> {
        let Some(head) = left
            .head
            .as_ref()
            .filter(|head| **head != self.started.head)
        else {
            return Ok(());
        };
        if plan.here.as_ref() == Some(head) {
            plan.head = Some(head);
            return Ok(());
        }
        let mut refuse = |why: String| {
            done.not_imported.push(NotImported {
                what: "HEAD".into(),
                why,
            });
        };
        match head {
            Head::Branch { name } => {
                let object = plan.names.get(name).copied().or_else(|| real.get(name));
                if object.is_none() || object != left.bound.get(name) {
                    refuse(format!(
                        "the session was on {name}, which differs here from what it left"
                    ));
                    return Ok(());
                }
            }
            Head::Commit { object } if !fetched.objects.contains(object) => return Ok(()),
            Head::Commit { .. } => {}
        }
        let why = if plan.here.as_ref() != Some(&self.started.head) {
            "another branch or commit was checked out here meanwhile"
        } else if self.is_moved_since(left, real) {
            "the branch that is checked out here moved meanwhile"
        } else {
            match head {
                Head::Branch { name } if self.checked_out_elsewhere()?.contains(name) => {
                    "it is checked out in another worktree"
                }
                Head::Commit { .. } if left.is_under_way => {
                    "its unfinished merge or rebase stays there"
                }
                _ => {
                    plan.head = Some(head);
                    return Ok(());
                }
            }
        };
        match head {
            // All of it is here under its name.
            Head::Branch { name } => {
                plan.is_head_told = true;
                done.notes.push(format!(
                    "the session had {name} checked out, which is not checked out here: {why}"
                ));
            }
            Head::Commit { .. } => refuse(why.to_owned()),
        }
        Ok(())
    }

    /// Whether the branch that the session began on is elsewhere than the session knows.
    fn is_moved_since(&self, left: &SessionChanges, real: &RefTargets) -> bool {
        let Head::Branch { name } = &self.started.head else {
            return false;
        };
        let now = real.get(name);
        now != self.started.refs.get(name) && now != left.bound.get(name)
    }

    /// Moves the checked-out branch, `HEAD` and the index; returns the common state of both indexes
    /// from now on, if it has changed.
    pub(super) fn move_here(
        &self,
        plan: &CheckoutPlan<'_>,
        left: &SessionChanges,
        fetched: &Fetched,
        real: &mut RefTargets,
        done: &mut ImportedRepository,
    ) -> Result<Option<Index>, Fault> {
        let (here, own) = (plan.here.as_ref(), plan.own);
        let is_moved = own.is_some_and(|(name, new)| real.get(name) != Some(new));
        let switched = plan.head.filter(|head| Some(*head) != here);
        let (goal, why) = self.goal(plan, left, fetched, real)?;
        done.not_imported.extend(why.map(|why| NotImported {
            what: "index".into(),
            why,
        }));
        let is_index_told = |done: &ImportedRepository| {
            done.not_imported
                .iter()
                .chain(&left.not_imported)
                .any(|one| one.what.as_bytes() == b"index")
        };
        let mut rest = ReadyCheckout::default();
        if is_moved || switched.is_some() || goal.is_some() {
            match self.make_index_at_rest(goal, here, switched.is_some())? {
                Ok(joined) => rest = joined,
                Err(why) => {
                    report_refused(
                        &why,
                        own.map(|(name, _)| name).filter(|_| is_moved),
                        switched.is_some(),
                        done,
                    );
                    done.index = IndexImport::Kept;
                    return Ok(None);
                }
            }
        }
        if let Some(head) = switched {
            SessionStart::note_switch(self.state, self.id, self.at)?;
            if let Err(why) = self.switch_head(head, here, real)? {
                report_refused(
                    &why,
                    own.map(|(name, _)| name).filter(|_| is_moved),
                    true,
                    done,
                );
                return Ok(None);
            }
        }
        if let Some((name, new)) = own
            && !self.move_name(name, new, real, done)?
            && switched.is_none()
        {
            return Ok(None);
        }
        done.head = plan.head.map(|head| match head {
            Head::Branch { name } => name.to_text(),
            Head::Commit { object } => object.clone(),
        });
        let common = match rest.landed {
            Some(landed) => {
                landed.new.map_or(Ok(()), LockedIndex::put)?;
                done.notes.extend(landed.notes);
                done.index = IndexImport::Taken;
                Some(landed.common)
            }
            None => None,
        };
        if is_index_told(done) {
            done.index = IndexImport::Kept;
        }
        Ok(common)
    }

    /// Decides what the index is to be updated to, if it does not match already, and why staged
    /// changes stay in the session, if they do.
    fn goal<'l>(
        &self,
        plan: &CheckoutPlan<'_>,
        left: &'l SessionChanges,
        fetched: &'l Fetched,
        real: &RefTargets,
    ) -> Result<(Option<IndexGoal<'l>>, Option<String>), Fault> {
        let here = plan.here.as_ref();
        let stands_for = |head: &Head| match (head, plan.own) {
            (Head::Branch { name }, Some((own, new))) if name == own => Some(new.clone()),
            _ => head.commit(real).cloned(),
        };
        let now = here.and_then(|here| here.commit(real));
        let then = plan.head.or(here).and_then(stands_for);
        let start = self.started.head.commit(&self.started.refs);
        let session = left
            .head
            .as_ref()
            .unwrap_or(&self.started.head)
            .commit(&left.bound);
        // Otherwise the index at the session's start is no common base.
        let is_as_at_start =
            now == start || here == Some(&self.started.head) || plan.may_be_switched;
        let from = if is_as_at_start {
            start
        } else {
            plan.own
                .and_then(|(name, _)| self.started.refs.get(name))
                .or(now)
        };
        let other = || {
            "the staged changes are based on another commit than the one that is checked out here"
                .to_owned()
        };
        let is_session = then.as_ref() == session;
        match (&left.index, &fetched.index) {
            (Some(index), Some(name)) if is_session && is_as_at_start && left.head.is_some() => {
                return Ok((Some(IndexGoal::Session { name, index }), None));
            }
            // It matches as it was at the start.
            (None, _) if is_session && is_as_at_start && !left.is_index_lost => {
                return Ok((None, None));
            }
            _ => {}
        }
        let why = self.has_staged(left, fetched, session)?.then(other);
        let goal = then
            .filter(|then| is_session && from != Some(then))
            .map(|to| IndexGoal::Commit {
                from: from.cloned(),
                to,
            });
        Ok((goal, why))
    }

    /// Makes the new index, unless a merge or the like is under way here or something else was
    /// checked out meanwhile. A caller that `switches` the checkout holds the lock of the index
    /// then, as git does.
    fn make_index_at_rest(
        &self,
        goal: Option<IndexGoal<'_>>,
        here: Option<&Head>,
        switches: bool,
    ) -> Result<Result<ReadyCheckout<'_>, String>, Fault> {
        if let Some((_, what)) = UNDER_WAY
            .iter()
            .find(|(name, _)| self.real.kind(&join(&self.private, name)).is_some())
        {
            return Ok(Err(format!(
                "{what} is not finished here; finish or abort that first"
            )));
        }
        let path = join(&self.private, b"index");
        let landed = match goal {
            Some(goal) => self.join_index(goal)?.map(Some),
            None => index_merge::check_index(&self.real, &path)?.map(|()| None),
        };
        let mut rest = match landed {
            Ok(landed) => ReadyCheckout { landed, held: None },
            Err(why) => return Ok(Err(why)),
        };
        if switches
            && rest
                .landed
                .as_ref()
                .is_none_or(|landed| landed.new.is_none())
        {
            match index_merge::lock_index(&self.real, &path, self.id, b"")? {
                Ok(held) => rest.held = Some(held),
                Err(why) => return Ok(Err(why)),
            }
        }
        if Head::read(&self.real, &join(&self.private, b"HEAD"))?.as_ref() != here {
            return Ok(Err(
                "the checkout here changed just now; start again".to_owned()
            ));
        }
        Ok(Ok(rest))
    }

    /// Checks out what the session had checked out.
    fn switch_head(
        &self,
        head: &Head,
        here: Option<&Head>,
        real: &RefTargets,
    ) -> Result<Result<(), String>, Fault> {
        let message = format!("podbay: {}", self.id);
        let answer = match head {
            Head::Branch { name } => {
                let words = [
                    b"symbolic-ref".as_slice(),
                    b"-m",
                    message.as_bytes(),
                    b"HEAD",
                    name.as_bytes(),
                ];
                self.private_git()
                    .run(&words.map(<OsStr as OsStrExt>::from_bytes), b"")?
            }
            Head::Commit { object } => {
                let old = here
                    .and_then(|here| here.commit(real))
                    .map_or(NOTHING, String::as_str);
                self.private_git().run(
                    &[
                        "update-ref",
                        "--no-deref",
                        "--create-reflog",
                        "-m",
                        &message,
                        "HEAD",
                        object,
                        old,
                    ],
                    b"",
                )?
            }
        };
        Ok(if answer.is_good {
            Ok(())
        } else {
            Err(answer.problem())
        })
    }

    fn private_git(&self) -> Git {
        match &self.started.worktree {
            Some(_) => Git::new(
                &self
                    .real_path
                    .join(BytesPath::from_bytes(self.private.clone()).as_path()),
                &self.scratch.join("empty"),
                self.end.max(Instant::now()) + STEADY,
            ),
            None => self.steady.clone(),
        }
    }
}

/// Reports why the checkout here stays as it is.
fn report_refused(
    why: &str,
    branch: Option<&BytesPath>,
    is_switched: bool,
    done: &mut ImportedRepository,
) {
    let mut refuse =
        |what: BytesPath, why: String| done.not_imported.push(NotImported { what, why });
    if let Some(name) = branch {
        refuse(
            name.clone(),
            format!("is checked out here, and the index cannot follow it: {why}"),
        );
    }
    if is_switched {
        refuse("HEAD".into(), why.to_owned());
    }
    if branch.is_none() && !is_switched {
        refuse("index".into(), why.to_owned());
    }
}

#[cfg(test)]
mod tests;
