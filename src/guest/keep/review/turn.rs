//! A turn whose changes come into the project at its end, all of them or those that may.
//!
//! The session goes on after it. So what came is no change of the session any more: what it works
//! on is compared with the project as it is with that.

use nix::fcntl::AtFlags;
use nix::fcntl::renameat;
use nix::sys::stat::UtimensatFlags;
use nix::sys::stat::fstatat;
use nix::sys::stat::utimensat;
use nix::sys::time::TimeSpec;

use super::Chosen;
use super::Interrupted;
use super::Record;
use super::Seen;
use super::Wanted;
use super::Work;
use super::cache_of_layer;
use super::count;
use super::finish_interrupted;
use super::goes_on;
use super::n_of;
use super::pin_of;
use crate::keep::Change;
use crate::keep::Error;
use crate::keep::Folder;
use crate::keep::MOST_DIFFERENCE;
use crate::keep::Node;
use crate::keep::ObjectId;
use crate::keep::Origin;
use crate::keep::Outcome;
use crate::keep::Project;
use crate::keep::Purpose;
use crate::keep::Request;
use crate::keep::Store;
use crate::keep::apply;
use crate::keep::compare;
use crate::keep::difference::unified;
use crate::keep::edit::edited;
use crate::keep::journal::Journal;
use crate::keep::layer;
use crate::keep::layer::Layer;
use crate::keep::layer::copy_up;
use crate::keep::look::Look;
use crate::keep::look::Name;
use crate::keep::pin;
use crate::keep::plan;
use crate::keep::undo;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::EndOfTurn;
use podbay_wire::keep::Pending;
use podbay_wire::keep::ReviewedTurn;
use podbay_wire::keep::TurnFate;
use podbay_wire::keep::WaitingGit;

/// What a folder of a session's copy is called for a moment.
const ASIDE: &[u8] = b".podbay-made";

/// The folder of the state for what is written in a session's copy.
const VIEW: &str = "view";

/// Brings in what a turn changed.
pub(super) fn bring_in(
    project: &Project,
    seen: Seen<'_>,
    state: &Folder,
    name: &str,
    turn: &EndOfTurn,
) -> Result<ReviewedTurn, Error> {
    if turn.fate == TurnFate::Drop {
        forget_changes(state, name)?;
        return Ok(ReviewedTurn::default());
    }
    let resumed = match finish_interrupted(project, seen, state, name)? {
        Interrupted::Finished(resumed) => resumed.map(|applied| *applied),
        // Nothing is begun over it.
        Interrupted::Stopped(applied) => {
            goes_on(&applied)?;
            None
        }
    };
    let is_accepted = turn.fate == TurnFate::Accept;
    let mut work = if is_accepted {
        as_it_was(project, seen, state, name)?
    } else {
        look(project, seen, state, name)?
    };
    if turn.fate == TurnFate::Count {
        let came = Pending {
            git: work.record.git.clone(),
            ..Pending::default()
        };
        return Ok(ReviewedTurn {
            came,
            n_left: n_of(&work.of_turn()?),
            resumed,
            ..ReviewedTurn::default()
        });
    }
    let wanted = Wanted {
        only: &[],
        merge: false,
        with_auto_run: turn.with_auto_run || is_accepted,
        auto_run: &turn.auto_run,
    };
    let Chosen {
        changes: chosen,
        left,
        ..
    } = work.chosen(wanted)?;
    let base = work.record.base;
    let mut came: Vec<Change> = Vec::new();
    let mut applied = left;
    let mut is_begun = false;
    if !chosen.is_empty() {
        work.store = undo::begin_held(
            project,
            state,
            work.store,
            (name, turn.n_turn, &turn.words),
            base,
        )?;
        is_begun = true;
        let (from, to) = (base, work.record.after());
        let purpose = Purpose::Review {
            name: name.to_owned(),
        };
        let request = Request {
            from,
            to,
            only: Vec::new(),
            merge: false,
            origin: Origin::Elsewhere,
            copy: seen.copy,
            purpose,
        };
        let found = Outcome {
            applied,
            left: Vec::new(),
        };
        applied = apply::apply_wanted(
            project,
            state,
            &mut work.store,
            &request,
            chosen,
            found,
            |_, journal, _| {
                came = journal
                    .changes
                    .iter()
                    .filter(|change| super::taken::is_in(project, journal, change))
                    .cloned()
                    .collect();
                Ok(())
            },
        )?;
    }
    keep_times(project, seen.copy, &came);
    if let Some(copy) = seen
        .copy
        .filter(|_| turn.keeps_view && seen.upper.is_some())
    {
        part_folders(copy, &came);
    }
    let is_stopped = applied.stopped.is_some();
    if is_begun && !is_stopped {
        work.record.base = edited(&mut work.store, &base, &came)?;
        work.store = undo::end_held(project, state, work.store, work.record.base)?;
    }
    let n_left = n_of(&work.rest()?).max(u64::from(is_stopped));
    let difference = unified(&work.store, &came, MOST_DIFFERENCE)?;
    let came = Pending {
        git: work.record.git.clone(),
        ..count::pending(&came, &difference, &work.auto_run(&turn.auto_run)?)
    };
    // It goes on from there, also in a new copy: that may show what was there before the person
    // changed it, as long as the kernel remembers that.
    work.record.is_open = true;
    work.record.waiting = (n_left > 0).then(|| work.record.after());
    pin::pin(state, &work.store, &pin_of(name), work.record.snapshots())?;
    work.record.save(state)?;
    Ok(ReviewedTurn {
        came,
        applied,
        resumed,
        n_left,
    })
}

impl Work<'_> {
    /// Returns what is not in the project and was not pending before this turn.
    fn of_turn(&self) -> Result<Vec<Change>, Error> {
        let mut rest = self.rest()?;
        if let Some(waiting) = self.record.waiting {
            let since = compare(&self.store, &waiting, &self.record.after())?;
            rest.retain(|change| {
                since
                    .binary_search_by(|other| other.path.cmp(&change.path))
                    .is_ok()
            });
        }
        Ok(rest)
    }
}

/// Has a session go on from where its last turn began, in a new copy.
fn forget_changes(state: &Folder, name: &str) -> Result<(), Error> {
    if apply::is_unfinished(state)? {
        return Err(Error::Unfinished);
    }
    let Some(mut record) = Record::load(state, name)? else {
        return Ok(());
    };
    // What waited before the turn does so in the new copy, too.
    record.after = record.waiting;
    record.restores = record.waiting.is_some();
    record.git = WaitingGit::default();
    pin::pin(
        state,
        &Store::open(state)?,
        &pin_of(name),
        record.snapshots(),
    )?;
    record.save(state)
}

/// Returns what the session had changed when it was last looked at.
fn as_it_was<'a>(
    project: &'a Project,
    seen: Seen<'a>,
    state: &'a Folder,
    name: &str,
) -> Result<Work<'a>, Error> {
    let Some(record) = Record::load(state, name)? else {
        return Err(Error::NoReview {
            name: name.to_owned(),
        });
    };
    Ok(Work {
        project,
        state,
        store: Store::open(state)?,
        record,
        obeyed: seen.obeyed,
    })
}

/// Looks at what the session has changed: where its copy is laid over the project, at that alone.
fn look<'a>(
    project: &'a Project,
    seen: Seen<'a>,
    state: &'a Folder,
    name: &str,
) -> Result<Work<'a>, Error> {
    let mut store = Store::open(state)?;
    let (Some(copy), Some(upper)) = (seen.copy, seen.upper) else {
        return Work::with(store, project, seen, state, name, true);
    };
    let Some(mut record) = Record::load(state, name)? else {
        return Err(Error::NoReview {
            name: name.to_owned(),
        });
    };
    if let Some(git) = seen.git {
        record.git.clone_from(git);
    }
    let laid_over = Layer::new(project, copy, upper, record.base);
    let after = layer::snapshot(&laid_over, state, &mut store, &cache_of_layer(name))?;
    record.after = Some(after.id);
    record.not_of_it = Vec::new();
    record.is_cut_short = after.is_cut_short;
    pin::pin(state, &store, &pin_of(name), record.snapshots())?;
    record.save(state)?;
    Ok(Work {
        project,
        state,
        store,
        record,
        obeyed: seen.obeyed,
    })
}

/// Has a session that goes on in what it worked on before see what the person changed meanwhile.
/// Returns the paths of which it sees its own version alone, since that waits.
pub(super) fn go_on(
    copy: &Project,
    state: &Folder,
    store: &mut Store,
    record: &mut Record,
    now: ObjectId,
) -> Result<Vec<BytesPath>, Error> {
    let is_seen = |change: &Change| {
        let look = Look::at(copy, change.path.as_bytes(), Name::Plain);
        look.is_ok_and(|look| plan::is_done(change, look.found.node().as_ref()))
    };
    let since = compare(store, &record.base, &now)?;
    let lost = match record.waiting.filter(|_| record.restores) {
        Some(waiting) => compare(store, &record.base, &waiting)?,
        None => Vec::new(),
    };
    // Most of it shows through. What does not is where the session has its own, and in folders that
    // it made.
    let hidden: Vec<Change> = since
        .iter()
        .filter(|change| !is_seen(change))
        .cloned()
        .collect();
    write_in(copy, state, store, record, now, hidden)?;
    // What both changed is the session's in its copy, and the person's in the project.
    let is_lost = |change: &Change| {
        lost.binary_search_by(|other| other.path.cmp(&change.path))
            .is_ok()
    };
    let (shown, hidden): (Vec<Change>, Vec<Change>) = since
        .into_iter()
        .partition(|change| is_seen(change) && !is_lost(change));
    if let Some(waiting) = record.waiting.filter(|_| record.restores) {
        let here = |path: &BytesPath| {
            Look::at(copy, path.as_bytes(), Name::Plain)
                .ok()
                .and_then(|look| look.found.node())
        };
        let again = lost
            .into_iter()
            .map(|change| Change {
                before: here(&change.path),
                ..change
            })
            .collect();
        write_in(copy, state, store, record, waiting, again)?;
        record.restores = false;
    }
    record.base = edited(store, &record.base, &shown)?;
    Ok(hidden.into_iter().map(|change| change.path).collect())
}

/// Makes changes in a session's copy.
fn write_in(
    copy: &Project,
    state: &Folder,
    store: &mut Store,
    record: &Record,
    to: ObjectId,
    changes: Vec<Change>,
) -> Result<(), Error> {
    if changes.is_empty() {
        return Ok(());
    }
    // What a kill left there is of no use: all of it is looked at anew.
    let place = state.below(VIEW)?;
    Journal::clear(&place)?;
    // What is copied in the middle of a step looks as if somebody had changed it just then.
    changes
        .iter()
        .try_for_each(|change| copy_up(copy, change.path.as_bytes()))?;
    let purpose = Purpose::Review {
        name: record.name.clone(),
    };
    let request = Request {
        from: record.base,
        to,
        only: Vec::new(),
        merge: false,
        origin: Origin::Elsewhere,
        copy: None,
        purpose,
    };
    apply::apply_wanted(
        copy,
        &place,
        store,
        &request,
        changes,
        Outcome::default(),
        |_, _, _| Ok(()),
    )
    .map(drop)
}

/// Gives files that came the times that they have in the copy: what builds by them goes by which of
/// two is the newer one.
fn keep_times(project: &Project, copy: Option<&Project>, came: &[Change]) {
    for change in came
        .iter()
        .filter(|change| matches!(change.after, Some(Node::File { .. })))
    {
        let (parent, name) = split(change.path.as_bytes());
        let folders =
            copy.and_then(|copy| Some((copy.folder(parent).ok()?, project.folder(parent).ok()?)));
        let Some((from, to)) = folders else { continue };
        if let Ok(stat) = fstatat(&from, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            let time = TimeSpec::new(stat.st_mtime, stat.st_mtime_nsec);
            // Nothing depends on it but a build that does too much or too little.
            let _ = utimensat(
                &to,
                name,
                &TimeSpec::UTIME_OMIT,
                &time,
                UtimensatFlags::NoFollowSymlink,
            );
        }
    }
}

/// Has folders that the session made, and that the project has now as well, stay its own in its
/// copy. As long as the kernel takes them for new it leaves no mark of what is removed in them,
/// which would be there again as soon as it has forgotten that. A folder that is renamed to where
/// the project has one is marked as one that hides it.
fn part_folders(copy: &Project, came: &[Change]) {
    let mut made: Option<&[u8]> = None;
    // A folder stands before what is in it.
    for change in came.iter().filter(|change| {
        change.before.is_none() && matches!(change.after, Some(Node::Folder { .. }))
    }) {
        let path = change.path.as_bytes();
        if made.is_some_and(|made| {
            path.strip_prefix(made)
                .is_some_and(|rest| rest.starts_with(b"/"))
        }) {
            continue;
        }
        made = Some(path);
        let (parent, name) = split(path);
        let Ok(folder) = copy.folder(parent) else {
            continue;
        };
        if renameat(&folder, name, &folder, ASIDE).is_ok() {
            // Where it was is free, unless a command in the background makes something there at
            // this very moment; then that is what has the name.
            let _ = renameat(&folder, ASIDE, &folder, name);
        }
    }
}
