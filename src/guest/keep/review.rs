//! Changes that are held back until a person accepts them.
//!
//! The session works on a copy, most often a file system over the project that takes up what is
//! changed. How the project was before and how the copy is after are kept as snapshots, and what
//! lies between them waits under the session's name: it can be shown and brought in path by path,
//! and no pruning takes it. What is in the project already is not part of it any more.

mod choose;
mod count;
mod duplicate;
mod over;
mod record;
mod redirected;
mod taken;
mod turn;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

pub(super) use self::duplicate::duplicate;
pub(super) use self::over::seen;
use self::record::Record;
pub(super) use self::record::is_on_record;
pub(super) use self::record::place_of;
use super::Error;
use super::Folder;
use super::MOST_DIFFERENCE;
use super::Project;
use super::Store;
use super::apply;
use super::auto_run::AutoRun;
use super::auto_run::Changed;
use super::auto_run::Known;
use super::auto_run::Wholes;
use super::cache::Cache;
use super::compare::Change;
use super::compare::compare_content;
use super::compare::told;
use super::difference::Difference;
use super::difference::unified;
use super::difference::unified_alone;
use super::forbidden::Origin;
use super::journal::Journal;
use super::journal::Purpose;
use super::look::Look;
use super::look::Name;
use super::node::are_alike;
use super::pin;
use super::plan;
use super::plan::Outcome;
use super::plan::Request;
use super::turn::shortened;
use super::undo;
use podbay_wire::BytesPath;
use podbay_wire::keep::Applied;
use podbay_wire::keep::EntryType;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::Named;
use podbay_wire::keep::Pending;
use podbay_wire::keep::Review;
use podbay_wire::keep::ReviewAnswer;
use podbay_wire::keep::ReviewApplied;
use podbay_wire::keep::ReviewBegan;
use podbay_wire::keep::ReviewDifference;
use podbay_wire::keep::ReviewOrder;
use podbay_wire::keep::WaitingGit;

/// What of a review is to be brought in, and how.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub only: &'a [BytesPath],
    pub merge: bool,
    pub with_auto_run: bool,
    pub auto_run: &'a [String],
}

/// What of a session's work is there to be looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen<'a> {
    /// What it worked on.
    pub copy: Option<&'a Project>,
    /// What of that is its own, where it is laid over the project.
    pub upper: Option<&'a Project>,
    /// What it did with git.
    pub git: Option<&'a WaitingGit>,
    /// What git obeys in the project by settings that are not in it.
    pub obeyed: &'a [BytesPath],
}

/// Does what is asked; for an order that [writes](ReviewOrder::writes) the project's folder must be
/// one that can be written to.
pub fn order(
    project: &Project,
    seen: Seen<'_>,
    state: &Folder,
    order: &ReviewOrder,
) -> Result<ReviewAnswer, Error> {
    Ok(match order {
        ReviewOrder::Copy => {
            return Err(Error::NoCopy {
                name: "of no session".to_owned(),
            });
        }
        ReviewOrder::Begin {
            name,
            words,
            is_copied,
            place,
            by_turn,
        } => {
            redirected::refuse(name, seen)?;
            let copy = seen.copy.filter(|_| *is_copied);
            let by_turn = if *by_turn {
                ByTurn::Yes { copy: seen.copy }
            } else {
                ByTurn::No
            };
            let began = begin_in(
                Store::open(state)?,
                project,
                copy,
                state,
                (name, words),
                by_turn,
            )?;
            Record::note_place(state, name, place)?;
            ReviewAnswer::Began(began)
        }
        ReviewOrder::End { name, auto_run } => {
            ReviewAnswer::Ended(end(project, seen, state, name, auto_run)?)
        }
        ReviewOrder::Turn { name, turn } => {
            ReviewAnswer::Turn(Box::new(turn::bring_in(project, seen, state, name, turn)?))
        }
        ReviewOrder::List => ReviewAnswer::Reviews {
            reviews: list(project, state)?.into_iter().collect(),
        },
        ReviewOrder::Diff {
            name,
            only,
            auto_run,
        } => ReviewAnswer::Difference(difference(project, seen, state, name, only, auto_run)?),
        ReviewOrder::Apply {
            name,
            only,
            merge,
            with_auto_run,
            auto_run,
        } => {
            let wanted = Wanted {
                only,
                merge: *merge,
                with_auto_run: *with_auto_run,
                auto_run,
            };
            ReviewAnswer::Applied(Box::new(bring_in(project, seen, state, name, wanted)?))
        }
        ReviewOrder::GitTaken { name } => {
            git_taken(project, state, name)?;
            ReviewAnswer::GitTaken
        }
        ReviewOrder::Discard { name, .. } => {
            discard(state, name)?;
            ReviewAnswer::Discarded
        }
    })
}

/// Keeps how the project is, or how its `copy` is where all of it was copied before. One that waits
/// already goes on.
pub fn begin(
    project: &Project,
    copy: Option<&Project>,
    state: &Folder,
    name: &str,
    words: &str,
) -> Result<ReviewBegan, Error> {
    begin_in(
        Store::open(state)?,
        project,
        copy,
        state,
        (name, words),
        ByTurn::No,
    )
}

/// Whether each turn goes into the project at its end.
#[derive(Clone, Copy, Debug)]
enum ByTurn<'a> {
    No,
    Yes { copy: Option<&'a Project> },
}

fn begin_in(
    store: Store,
    project: &Project,
    copy: Option<&Project>,
    state: &Folder,
    (name, words): (&str, &str),
    by_turn: ByTurn<'_>,
) -> Result<ReviewBegan, Error> {
    let known = Record::load(state, name)?;
    let cache = cache_of(name);
    let undo::Both {
        mut store,
        now,
        copy,
    } = undo::keep_both(
        project,
        state,
        store,
        copy.filter(|_| known.is_none()).map(|copy| (copy, &*cache)),
    )?;
    if let Some(mut record) = known {
        let mut hidden_changes = Named::default();
        if let ByTurn::Yes { copy: Some(copy) } = by_turn
            && record.by_turn
        {
            hidden_changes = turn::go_on(copy, state, &mut store, &mut record, now.id)?
                .into_iter()
                .collect();
            pin::pin(state, &store, &pin_of(name), record.snapshots())?;
        }
        record.is_open = true;
        record.save(state)?;
        return Ok(ReviewBegan {
            goes_on: true,
            passed_over: Named::default(),
            hidden_changes,
        });
    }
    if copy.is_none() && matches!(by_turn, ByTurn::No) {
        // What nobody changes in what is laid over the project looks as it does there.
        Cache::load(state, undo::CACHE)?.save(state, &cache)?;
    }
    let now = copy.unwrap_or(now);
    pin::pin(state, &store, &pin_of(name), [now.id])?;
    let at = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let (name, words) = (name.to_owned(), shortened(words));
    let (is_cut_short, not_of_it, taken, taken_from, git, place) = <_>::default();
    let (is_open, by_turn, waiting, restores) =
        (true, matches!(by_turn, ByTurn::Yes { .. }), None, false);
    Record {
        name,
        words,
        at,
        base: now.id,
        after: None,
        is_open,
        by_turn,
        waiting,
        restores,
        is_cut_short,
        not_of_it,
        git,
        place,
        taken,
        taken_from,
    }
    .save(state)?;
    Ok(ReviewBegan {
        goes_on: false,
        passed_over: now.passed_over,
        hidden_changes: Named::default(),
    })
}

/// Finds what the session changed. A review without changes is none and is forgotten.
pub fn end(
    project: &Project,
    seen: Seen<'_>,
    state: &Folder,
    name: &str,
    auto_run: &[String],
) -> Result<Pending, Error> {
    end_in(Store::open(state)?, project, seen, state, name, auto_run)
}

fn end_in(
    store: Store,
    project: &Project,
    seen: Seen<'_>,
    state: &Folder,
    name: &str,
    auto_run: &[String],
) -> Result<Pending, Error> {
    let work = Work::with(store, project, seen, state, name, true)?;
    let rest = work.rest()?;
    let git = work.record.git.clone();
    // Of a session whose turns are applied one by one, what is in the project does not wait.
    if rest.is_empty() && git.is_empty() && (work.record.by_turn || work.all()?.is_empty()) {
        work.forget()?;
        return Ok(Pending::default());
    }
    let difference = unified(&work.store, &rest, MOST_DIFFERENCE)?;
    let auto_run = work.auto_run(auto_run)?;
    Ok(Pending {
        git,
        ..count::pending(&rest, &difference, &auto_run)
    })
}

/// Lists what waits, the newest first.
pub fn list(project: &Project, state: &Folder) -> Result<Vec<Review>, Error> {
    let store = Store::open(state)?;
    let mut records = Record::all(state)?;
    records.sort_by(|one, other| (other.at, &other.name).cmp(&(one.at, &one.name)));
    let told = |record: &Record| {
        let rest = if record.is_open {
            None
        } else {
            rest_of(project, &store, record).ok()
        };
        record.told(rest.map(|rest| n_of(&rest)))
    };
    Ok(records.iter().map(told).collect())
}

/// Shows what is not in the project yet.
pub fn difference(
    project: &Project,
    seen: Seen<'_>,
    state: &Folder,
    name: &str,
    only: &[BytesPath],
    auto_run: &[String],
) -> Result<ReviewDifference, Error> {
    let work = Work::open(project, seen, state, name, false)?;
    let mut rest = work.rest()?;
    choose::select(&mut rest, only)?;
    let n_files = told(&rest)
        .iter()
        .filter(|change| change.entry != EntryType::Folder)
        .count();
    let is_alone = !only.is_empty() && n_files == 1;
    let difference = if is_alone {
        unified_alone(&work.store, &rest)?
    } else {
        unified(&work.store, &rest, MOST_DIFFERENCE)?
    };
    let pending = count::pending(&rest, &difference, &work.auto_run(auto_run)?);
    let review = work.record.told(Some(n_of(&rest)));
    let Difference {
        text,
        n_left_out,
        n_cut,
        ..
    } = difference;
    Ok(ReviewDifference {
        review,
        pending,
        text,
        n_left_out,
        n_cut: if is_alone { 0 } else { n_cut },
    })
}

/// Brings changes into the project, as a turn that can be taken back. What was interrupted is
/// finished first.
pub fn bring_in(
    project: &Project,
    seen: Seen<'_>,
    state: &Folder,
    name: &str,
    wanted: Wanted<'_>,
) -> Result<ReviewApplied, Error> {
    bring_in_from(&|| Store::open(state), project, seen, state, name, wanted)
}

fn bring_in_from(
    store: &dyn Fn() -> Result<Store, Error>,
    project: &Project,
    seen: Seen<'_>,
    state: &Folder,
    name: &str,
    wanted: Wanted<'_>,
) -> Result<ReviewApplied, Error> {
    let mut resumed = match finish_interrupted(project, seen, state, name)? {
        Interrupted::Stopped(applied) => {
            let work = Work::with(store()?, project, seen, state, name, false)?;
            let n_left = n_of(&work.rest()?).max(1);
            let may_run = Named::default();
            return Ok(ReviewApplied {
                applied: *applied,
                resumed: None,
                may_run,
                n_left,
                git: work.record.git,
            });
        }
        Interrupted::Finished(resumed) => resumed.map(|applied| *applied),
    };
    // Refused before a turn is begun for it.
    drop(Work::with(store()?, project, seen, state, name, false)?.chosen(wanted)?);
    undo::begin_review(project, state, name)?;
    let mut work = Work::with(store()?, project, seen, state, name, false)?;
    let Chosen {
        changes: chosen,
        left,
        mut may_run,
    } = work.chosen(wanted)?;
    let (from, to) = (work.record.base, work.record.after());
    let purpose = Purpose::Review {
        name: name.to_owned(),
    };
    let request = Request {
        from,
        to,
        only: Vec::new(),
        merge: wanted.merge,
        origin: Origin::Elsewhere,
        copy: seen.copy,
        purpose,
    };
    let found = Outcome {
        applied: left,
        left: Vec::new(),
    };
    let record = &mut work.record;
    let done = |store: &Store, journal: &Journal, _: &Outcome| {
        note_taken(record, project, state, store, journal)
    };
    let applied = apply::apply_wanted(
        project,
        state,
        &mut work.store,
        &request,
        chosen,
        found,
        done,
    )?;
    // One that was stopped is not over, whatever is in.
    let n_left = n_of(&work.rest()?).max(u64::from(applied.stopped.is_some()));
    let git = work.record.git.clone();
    if n_left == 0 && git.is_empty() {
        work.forget()?;
    } else {
        drop(work);
    }
    // What was brought in is in; a turn that has no end ends with the next one.
    let _ = undo::end(project, state);
    if let Some(resumed) = &mut resumed {
        leave_out_again(resumed, &applied);
    }
    leave_out_left(&mut may_run, &applied);
    Ok(ReviewApplied {
        applied,
        resumed,
        may_run,
        n_left,
        git,
    })
}

/// What became of an application that was interrupted before.
enum Interrupted {
    /// It is finished, or there was none; what was done of a review.
    Finished(Option<Box<Applied>>),
    /// That of this very review stopped again, such as for a disk that is full.
    Stopped(Box<Applied>),
}

/// Finishes what was interrupted, whatever it was.
fn finish_interrupted(
    project: &Project,
    seen: Seen<'_>,
    state: &Folder,
    name: &str,
) -> Result<Interrupted, Error> {
    if !apply::is_unfinished(state)? {
        return Ok(Interrupted::Finished(None));
    }
    let copy = seen.copy.filter(|_| {
        Journal::load(state)
            .ok()
            .flatten()
            .is_some_and(|journal| is_of(&journal, name))
    });
    let resumed = match undo::resume(project, state, copy)? {
        // It is told as it was the first time.
        undo::Resumed::Review { name: of, applied } if of == name && applied.stopped.is_some() => {
            return Ok(Interrupted::Stopped(applied));
        }
        undo::Resumed::Review { applied, .. } => {
            goes_on(&applied)?;
            Some(applied)
        }
        undo::Resumed::Turns(undone) => {
            undone
                .turns
                .iter()
                .try_for_each(|turn| goes_on(&turn.applied))?;
            None
        }
        undo::Resumed::Nothing => None,
    };
    if apply::is_unfinished(state)? {
        Err(Error::Unfinished)
    } else {
        Ok(Interrupted::Finished(resumed))
    }
}

/// Whether what a journal holds is an apply of this review.
fn is_of(journal: &Journal, name: &str) -> bool {
    matches!(&journal.purpose, Purpose::Review { name: of } if of == name)
}

/// Has what is left once more be told once: as it came out at last.
fn leave_out_again(resumed: &mut Applied, applied: &Applied) {
    let again: BTreeSet<&BytesPath> = applied
        .conflicts
        .first
        .iter()
        .chain(&applied.refused.first)
        .map(|left| &left.path)
        .collect();
    for left in [&mut resumed.conflicts, &mut resumed.refused] {
        let n_told = left.first.len();
        left.first.retain(|left| !again.contains(&left.path));
        left.n -= (n_told - left.first.len()) as u64;
    }
}

/// Takes out what was not brought in after all.
fn leave_out_left(may_run: &mut Named<MayRun>, applied: &Applied) {
    let left: BTreeSet<&BytesPath> = applied
        .conflicts
        .first
        .iter()
        .chain(&applied.refused.first)
        .map(|left| &left.path)
        .collect();
    let n_named = may_run.first.len();
    may_run.first.retain(|file| !left.contains(&file.path));
    may_run.n -= (n_named - may_run.first.len()) as u64;
}

/// Lets nothing begin over something else that stopped, such as for a disk that is full.
fn goes_on(resumed: &Applied) -> Result<(), Error> {
    resumed
        .stopped
        .as_ref()
        .map_or(Ok(()), |why| Err(Error::StoppedAgain { why: why.clone() }))
}

/// Notes what was brought in of a review before that is forgotten: a session that goes on changes
/// it from there.
fn note_taken(
    record: &mut Record,
    project: &Project,
    state: &Folder,
    store: &Store,
    journal: &Journal,
) -> Result<(), Error> {
    taken::take(record, project, store, journal)?;
    record.save(state)
}

/// The same for one that was interrupted.
pub(super) fn resumed(
    project: &Project,
    state: &Folder,
    store: &Store,
    name: &str,
    journal: &Journal,
) -> Result<(), Error> {
    let Some(mut record) = Record::load(state, name)? else {
        return Ok(());
    };
    note_taken(&mut record, project, state, store, journal)
}

/// Notes that nothing of what the session did with git waits any more. With no path left it is
/// over.
fn git_taken(project: &Project, state: &Folder, name: &str) -> Result<(), Error> {
    let none = WaitingGit::default();
    if let Some(record) =
        Record::load(state, name)?.filter(|record| record.by_turn && record.is_open)
    {
        // Its session goes on.
        return Record {
            git: none,
            ..record
        }
        .save(state);
    }
    let work = Work::open(
        project,
        Seen {
            git: Some(&none),
            ..Seen::default()
        },
        state,
        name,
        false,
    )?;
    if work.rest()?.is_empty() {
        work.forget()
    } else {
        work.record.save(state)
    }
}

/// Forgets a review.
pub fn discard(state: &Folder, name: &str) -> Result<(), Error> {
    let store = Store::open(state)?;
    if apply::is_unfinished(state)? {
        return Err(Error::Unfinished);
    }
    forget(state, &store, name)
}

/// What of a review is brought in.
struct Chosen {
    changes: Vec<Change>,
    /// What became of the rest.
    left: Applied,
    /// Which of them may run on the person's machine later.
    may_run: Named<MayRun>,
}

/// All that work on a review needs, as long as nobody else does any.
struct Work<'a> {
    project: &'a Project,
    state: &'a Folder,
    store: Store,
    record: Record,
    obeyed: &'a [BytesPath],
}

impl<'a> Work<'a> {
    /// Opens a review, and looks at the copy where the session that worked on it was cut off;
    /// `anew`: in any case.
    fn open(
        project: &'a Project,
        seen: Seen<'a>,
        state: &'a Folder,
        name: &str,
        anew: bool,
    ) -> Result<Self, Error> {
        Self::with(Store::open(state)?, project, seen, state, name, anew)
    }

    fn with(
        store: Store,
        project: &'a Project,
        seen: Seen<'a>,
        state: &'a Folder,
        name: &str,
        anew: bool,
    ) -> Result<Self, Error> {
        let Some(mut record) = Record::load(state, name)? else {
            return Err(Error::NoReview {
                name: name.to_owned(),
            });
        };
        let obeyed = seen.obeyed;
        if let Some(git) = seen.git {
            record.git.clone_from(git);
        }
        // There may be room by now for what there was none for.
        let may_be_whole = record.is_cut_short && seen.copy.is_some();
        if !record.is_open && !anew && !may_be_whole {
            return Ok(Self {
                project,
                state,
                store,
                record,
                obeyed,
            });
        }
        let no_copy = || Error::NoCopy {
            name: name.to_owned(),
        };
        let cache = cache_of(name);
        let copy = seen.copy.ok_or_else(no_copy)?;
        redirected::refuse(name, seen)?;
        let undo::Both { store, now, copy } =
            undo::keep_both(project, state, store, Some((copy, &cache)))?;
        let after = copy.ok_or_else(no_copy)?;
        // What somebody changed in the project meanwhile shows through in the copy.
        let since: BTreeMap<BytesPath, Change> = compare_content(&store, &record.base, &now.id)?
            .into_iter()
            .map(|change| (change.path.clone(), change))
            .collect();
        let shows_through = |change: &Change| {
            let same = since
                .get(&change.path)
                .filter(|since| are_alike(since.after.as_ref(), change.after.as_ref()));
            same.map(|change| change.path.clone())
        };
        let theirs = compare_content(&store, &record.base, &after.id)?;
        // What was applied is the session's, though it is there; also where the apply was
        // interrupted.
        let applying: BTreeSet<BytesPath> =
            match Journal::load(state)?.filter(|journal| is_of(journal, name)) {
                Some(journal) => journal
                    .changes
                    .into_iter()
                    .map(|change| change.path)
                    .collect(),
                None => BTreeSet::new(),
            };
        let is_taken =
            |path: &BytesPath| record.taken_at(path).is_some() || applying.contains(path);
        let theirs = theirs.iter().filter(|change| !is_taken(&change.path));
        record.not_of_it = theirs.filter_map(shows_through).collect();
        record.after = Some(after.id);
        record.is_open = false;
        record.is_cut_short = after.is_cut_short;
        pin::pin(state, &store, &pin_of(name), record.snapshots())?;
        record.save(state)?;
        Ok(Self {
            project,
            state,
            store,
            record,
            obeyed,
        })
    }

    /// Returns what the session changed.
    fn all(&self) -> Result<Vec<Change>, Error> {
        all_of(self.project, &self.store, &self.record)
    }

    /// Returns what of that is not in the project.
    fn rest(&self) -> Result<Vec<Change>, Error> {
        rest_of(self.project, &self.store, &self.record)
    }

    /// Returns what is wanted, and what became of that which is not brought in unasked.
    fn chosen(&self, wanted: Wanted<'_>) -> Result<Chosen, Error> {
        let mut changes = self.all()?;
        choose::select(&mut changes, wanted.only)?;
        let mut left = Applied::default();
        let all = changes.clone();
        let auto_run = self.auto_run(wanted.auto_run)?;
        let wholes = Wholes::of(&auto_run, all.iter().map(Changed::from));
        choose::leave_broken_wholes(self.project, &mut changes, &wholes, &mut left);
        if !wanted.with_auto_run {
            choose::leave_auto_run(self.project, &mut changes, &auto_run, &mut left);
        }
        choose::leave_old_names(self.project, &all, &mut changes, &mut left);
        let new: Vec<&Change> = changes
            .iter()
            .filter(|change| !is_in(self.project, change))
            .collect();
        let may_run = auto_run.named(new.into_iter().map(Changed::from));
        Ok(Chosen {
            changes,
            left,
            may_run,
        })
    }

    /// Returns what knows which files may run on the person's machine; `patterns` are those of the
    /// person's.
    fn auto_run(&self, patterns: &[String]) -> Result<AutoRun, Error> {
        let known = Known {
            patterns,
            place: self.record.place.as_bytes(),
            obeyed: self.obeyed,
        };
        AutoRun::in_project(self.project, known)
    }

    fn forget(self) -> Result<(), Error> {
        forget(self.state, &self.store, &self.record.name)
    }
}

fn all_of(project: &Project, store: &Store, record: &Record) -> Result<Vec<Change>, Error> {
    let all = compare_content(store, &record.base, &record.after())?;
    // A path that was applied is a change of the session, whoever else was taken to have made it.
    let mut all = taken::go_on(record, project, all);
    all.retain(|change| record.not_of_it.binary_search(&change.path).is_err());
    Ok(all)
}

fn rest_of(project: &Project, store: &Store, record: &Record) -> Result<Vec<Change>, Error> {
    let mut rest = all_of(project, store, record)?;
    rest.retain(|change| !is_in(project, change));
    Ok(rest)
}

/// Whether a change is in the project. What cannot be looked at is not there yet.
fn is_in(project: &Project, change: &Change) -> bool {
    let here = Look::at(project, change.path.as_bytes(), Name::Plain);
    here.is_ok_and(|look| plan::is_done(change, look.found.node().as_ref()))
}

/// Counts what waits as it is told.
fn n_of(rest: &[Change]) -> u64 {
    count::counted(rest).len() as u64
}

/// The record goes last: without it nothing else would ever be.
fn forget(state: &Folder, store: &Store, name: &str) -> Result<(), Error> {
    pin::unpin(state, store, &pin_of(name))?;
    state.remove(&cache_of(name))?;
    state.remove(&cache_of_layer(name))?;
    Record::remove(state, name)
}

fn pin_of(name: &str) -> String {
    format!("review-{name}")
}

fn cache_of_layer(name: &str) -> String {
    format!("cache-layer-{name}")
}

fn cache_of(name: &str) -> String {
    format!("cache-review-{name}")
}

#[cfg(test)]
mod tests;
