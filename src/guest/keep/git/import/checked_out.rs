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
const NOT_ENDED_HERE: &str = "is checked out here, and the session had something else checked out; it can come when you have, too";

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
            format!("the session was on {name}, which did not come"),
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
    pub(super) fn course<'a>(
        &self,
        (left, first): (&'a SessionChanges, &RefUpdates<'a>),
        fetched: &Fetched,
        real: &RefTargets,
        done: &mut ImportedRepository,
    ) -> Result<CheckoutPlan<'a>, Fault> {
        let here = Head::read(&self.real, &join(&self.private, b"HEAD"))?;
        let names = self.names_that_come(first, fetched, real, done)?;
        let may_be_switched = SessionStart::may_be_switched(self.state, self.id, self.at);
        let mut course = CheckoutPlan {
            names,
            own: None,
            here,
            head: None,
            is_head_told: false,
            may_be_switched,
        };
        self.choose_head(&mut course, left, fetched, real, done)?;
        let Some(Head::Branch { name }) = &course.here else {
            return Ok(course);
        };
        course.own = course.names.remove_entry(name);
        let ends_here = course.head.is_some()
            || left.head.as_ref().unwrap_or(&self.started.head)
                == &Head::Branch { name: name.clone() };
        if let Some((name, new)) = course.own
            && !ends_here
            && real.get(name) != Some(new)
        {
            done.not_imported.push(NotImported {
                what: name.clone(),
                why: NOT_ENDED_HERE.to_owned(),
            });
            course.own = None;
        }
        Ok(course)
    }

    /// Decides whether to check out what the session did: where the user moved on meanwhile, that
    /// stays.
    fn choose_head<'a>(
        &self,
        course: &mut CheckoutPlan<'a>,
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
        if course.here.as_ref() == Some(head) {
            course.head = Some(head);
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
                let object = course.names.get(name).copied().or_else(|| real.get(name));
                if object.is_none() || object != left.bound.get(name) {
                    refuse(format!(
                        "the session was on {name}, which is not here as it left it"
                    ));
                    return Ok(());
                }
            }
            Head::Commit { object } if !fetched.objects.contains(object) => return Ok(()),
            Head::Commit { .. } => {}
        }
        let why = if course.here.as_ref() != Some(&self.started.head) {
            "what is checked out was changed here meanwhile"
        } else if self.is_moved_since(left, real) {
            "the branch that is checked out here was moved meanwhile"
        } else {
            match head {
                Head::Branch { name } if self.checked_out_elsewhere()?.contains(name) => {
                    "it is checked out in another worktree"
                }
                Head::Commit { .. } if left.is_under_way => {
                    "what it was in the middle of stays there"
                }
                _ => {
                    course.head = Some(head);
                    return Ok(());
                }
            }
        };
        match head {
            // All of it is here under its name.
            Head::Branch { name } => {
                course.is_head_told = true;
                done.notes.push(format!(
                    "the session had {name} checked out, which is not done here: {why}"
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
        course: &CheckoutPlan<'_>,
        left: &SessionChanges,
        fetched: &Fetched,
        real: &mut RefTargets,
        done: &mut ImportedRepository,
    ) -> Result<Option<Index>, Fault> {
        let (here, own) = (course.here.as_ref(), course.own);
        let is_moved = own.is_some_and(|(name, new)| real.get(name) != Some(new));
        let switched = course.head.filter(|head| Some(*head) != here);
        let (goal, why) = self.goal(course, left, fetched, real)?;
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
            match self.join_at_rest(goal, here, switched.is_some())? {
                Ok(joined) => rest = joined,
                Err(why) => {
                    refuse_here(
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
                refuse_here(
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
        done.head = course.head.map(|head| match head {
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
        course: &CheckoutPlan<'_>,
        left: &'l SessionChanges,
        fetched: &'l Fetched,
        real: &RefTargets,
    ) -> Result<(Option<IndexGoal<'l>>, Option<String>), Fault> {
        let here = course.here.as_ref();
        let stands_for = |head: &Head| match (head, course.own) {
            (Head::Branch { name }, Some((own, new))) if name == own => Some(new.clone()),
            _ => head.commit(real).cloned(),
        };
        let now = here.and_then(|here| here.commit(real));
        let then = course.head.or(here).and_then(stands_for);
        let start = self.started.head.commit(&self.started.refs);
        let session = left
            .head
            .as_ref()
            .unwrap_or(&self.started.head)
            .commit(&left.bound);
        // Otherwise the index at the session's start is no common base.
        let is_as_at_start =
            now == start || here == Some(&self.started.head) || course.may_be_switched;
        let from = if is_as_at_start {
            start
        } else {
            course
                .own
                .and_then(|(name, _)| self.started.refs.get(name))
                .or(now)
        };
        let other = || {
            "what is staged belongs to another commit than the one that is checked out here"
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
    fn join_at_rest(
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
                "what is checked out was changed here just now; begin again".to_owned(),
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
fn refuse_here(
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
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::time::Duration;

    use super::super::Import;
    use super::super::UnreadRepositories;
    use super::*;
    use crate::keep::git::import_marker::ImportMarker;
    use crate::keep::git::refs;
    use crate::keep::git::sample::ID;
    use crate::keep::git::sample::Sample;
    use crate::keep::git::sample::SampleSession;
    use crate::keep::git::sample::told;
    use crate::keep::git::untrusted_folder::UntrustedFolder;

    /// Imports a session while the user does something else; returns what was reported and what git
    /// says then.
    fn import_while(session: &Work, person: &dyn Fn(&Sample)) -> (Sample, ImportedRepository) {
        let sample = Sample::new();
        sample.commit("a", "1\n");
        sample.git(&["branch", "theirs"]);
        let in_session = SampleSession::of(sample);
        session(&in_session);
        let sample = in_session.end();
        let scratch = sample.beside("scratch");
        fs::create_dir(&scratch).expect("made");
        let state = UntrustedFolder::open(&sample.beside("state")).expect("opens");
        let places = BTreeMap::from([(
            ".git".into(),
            Ok((sample.path(".git"), sample.beside("session"))),
        )]);
        let import = Import {
            id: ID,
            state: &state,
            scratch: &scratch,
            places: &places,
            budget: Duration::from_secs(60),
            file_size: u64::MAX,
            unlooked: &UnreadRepositories::default(),
        };
        let start = SessionStart::read(&state, ID)
            .expect("read")
            .expect("on record");
        let index = start.index(&state, ID, 0).expect("read");
        let place = places
            .values()
            .next()
            .and_then(|place| place.as_ref().ok())
            .expect("a place");
        let end = Instant::now() + import.budget;
        let one = RepositoryImport::open(&import, place, (0, index), end, &start.repositories[0])
            .expect("opens");
        let left = SessionChanges::read(
            &one.session,
            &one.private,
            one.id,
            one.started,
            one.start_index.as_deref(),
        )
        .expect("read");
        let mut done = ImportedRepository::default();
        let (first, _) = one.in_order(&left).expect("read");
        let (mut staging, mut fetched) = (one.staging(&left).expect("made"), Fetched::default());
        if let Some(staging) = &mut staging {
            one.fetch_first(staging, &first, &left, &mut fetched, &mut done)
                .expect("fetched");
        }
        let mut real = refs::read(&one.real).expect("read").bound;
        let course = one
            .course((&left, &first), &fetched, &real, &mut done)
            .expect("found");
        one.move_names(&course.names, &mut real, &mut done)
            .expect("moved");
        person(&sample);
        one.move_here(&course, &left, &fetched, &mut real, &mut done)
            .expect("moved");
        let under = ImportMarker {
            real: &one.real,
            private: &one.private,
            state: &state,
            id: ID,
            at: 0,
        };
        one.remove_own_names(&under).expect("removed");
        sample.git(&["fsck", "--strict", "--no-dangling"]);
        assert!(!sample.path(".git/index.podbay-session-1").exists());
        (sample, done)
    }

    fn switch(session: &SampleSession) {
        session.git(&["checkout", "-q", "-b", "new"]);
    }

    fn commit(session: &SampleSession) {
        session.sample.commit("b", "1\n");
    }

    fn status(sample: &Sample) -> String {
        sample.git(&["status", "--porcelain", "--branch", "--untracked-files=no"])
    }

    type Work = dyn Fn(&SampleSession);

    #[test]
    fn a_checkout_by_the_user_during_an_import_stays() {
        let both = |session: &SampleSession| {
            switch(session);
            commit(session);
        };
        let detached = |session: &SampleSession| {
            session.git(&["checkout", "-q", "--detach"]);
        };
        let works: [(&Work, &str); 4] = [
            (&switch, "HEAD: "),
            (&both, "HEAD: "),
            (&detached, "HEAD: "),
            (&commit, "refs/heads/main: is checked out here, "),
        ];
        for (at, (work, about)) in works.into_iter().enumerate() {
            let (sample, done) = import_while(work, &|sample| {
                sample.git(&["checkout", "-q", "theirs"]);
            });
            let told = told(&done);
            assert!(
                told.starts_with(about)
                    && told.contains("what is checked out was changed here just now"),
                "{at}: {told}"
            );
            assert_eq!(
                (status(&sample).as_str(), done.head, done.index),
                ("## theirs\n", None, IndexImport::Kept),
                "{at}"
            );
        }
        for (work, branch) in [(&switch as &Work, "new"), (&both, "new"), (&commit, "main")] {
            let (sample, done) = import_while(work, &|_| ());
            assert_eq!(
                (told(&done), status(&sample)),
                (String::new(), format!("## {branch}\n")),
                "left alone, it comes"
            );
            assert!(!sample.path(".git/index.lock").exists());
        }
    }

    #[test]
    fn the_checkout_is_not_switched_while_git_locks_the_index() {
        let (sample, done) = import_while(&switch, &|sample| sample.write(".git/index.lock", ""));
        assert_eq!(
            told(&done),
            "HEAD: yours is locked by another git, which must end first\n"
        );
        assert_eq!(status(&sample), "## main\n");
        assert!(
            sample.path(".git/index.lock").exists(),
            "it is somebody else's"
        );
    }
}
