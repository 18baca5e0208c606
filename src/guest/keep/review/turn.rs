//! A turn whose changes come into the project at its end, all of them or those that may.
//!
//! The session goes on after it. So what came is no change of the session any more: what it works on is compared with the project as it is with that.

use super::Chosen;
use super::Record;
use super::Seen;
use super::Wanted;
use super::Work;
use super::cache_of_layer;
use super::count;
use super::goes_on;
use super::n_of;
use super::pin_of;
use crate::keep::Change;
use crate::keep::Error;
use crate::keep::Folder;
use crate::keep::MOST_DIFFERENCE;
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
use crate::keep::layer::Layer;
use crate::keep::layer::copy_up;
use crate::keep::look::Look;
use crate::keep::look::Name;
use crate::keep::pin;
use crate::keep::plan;
use crate::keep::snapshot;
use crate::keep::undo;
use podbay_wire::BytesPath;
use podbay_wire::keep::Applied;
use podbay_wire::keep::EndOfTurn;
use podbay_wire::keep::Pending;
use podbay_wire::keep::ReviewedTurn;
use podbay_wire::keep::TurnFate;
use podbay_wire::keep::WaitingGit;

/// The folder of the state for what is written in a session's copy.
const VIEW: &str = "view";

/// Brings in what a turn changed.
pub(super) fn bring_in(project: &Project, seen: Seen<'_>, state: &Folder, name: &str, turn: &EndOfTurn) -> Result<ReviewedTurn, Error> {
    if turn.fate == TurnFate::Drop {
        forget_changes(state, name)?;
        return Ok(ReviewedTurn::default());
    }
    let resumed = finish_before(project, seen, state)?;
    let mut work = look(project, seen, state, name, turn.keeps_view)?;
    if turn.fate == TurnFate::Count {
        let came = Pending { git: work.record.git.clone(), ..Pending::default() };
        return Ok(ReviewedTurn { came, n_left: n_of(&work.rest()?), resumed, ..ReviewedTurn::default() });
    }
    let wanted = Wanted { only: &[], merge: false, with_auto_run: turn.with_auto_run, auto_run: &turn.auto_run };
    let Chosen { changes: chosen, left, .. } = work.chosen(wanted)?;
    let base = work.record.base;
    let mut came: Vec<Change> = Vec::new();
    let mut applied = left;
    let mut is_begun = false;
    if !chosen.is_empty() {
        work.store = undo::begin_held(project, state, work.store, (name, turn.n_turn, &turn.words), base)?;
        is_begun = true;
        let (from, to) = (base, work.record.after());
        let purpose = Purpose::Review { name: name.to_owned() };
        let request = Request { from, to, only: Vec::new(), merge: false, origin: Origin::Elsewhere, copy: seen.copy, purpose };
        let found = Outcome { applied, left: Vec::new() };
        applied = apply::apply_wanted(project, state, &mut work.store, &request, chosen, found, |_, journal, _| {
            came = journal.changes.iter().filter(|change| super::taken::is_in(project, journal, change)).cloned().collect();
            Ok(())
        })?;
    }
    let is_stopped = applied.stopped.is_some();
    if is_begun && !is_stopped {
        work.record.base = edited(&mut work.store, &base, &came)?;
        work.store = undo::end_held(project, state, work.store, work.record.base)?;
    }
    let n_left = n_of(&work.rest()?).max(u64::from(is_stopped));
    let difference = unified(&work.store, &came, MOST_DIFFERENCE)?;
    let came = Pending { git: work.record.git.clone(), ..count::pending(&came, &difference, &work.auto_run(&turn.auto_run)?) };
    // It goes on from there, also in a new copy: that may show what was there before the person changed it, as long as the kernel remembers that.
    work.record.is_open = true;
    pin::pin(state, &work.store, &pin_of(name), work.record.snapshots())?;
    work.record.save(state)?;
    Ok(ReviewedTurn { came, applied, resumed, n_left })
}

/// Has a session go on from where its last turn began, in a new copy.
fn forget_changes(state: &Folder, name: &str) -> Result<(), Error> {
    if apply::is_unfinished(state)? {
        return Err(Error::Unfinished);
    }
    let Some(mut record) = Record::load(state, name)? else { return Ok(()) };
    record.after = None;
    record.git = WaitingGit::default();
    pin::pin(state, &Store::open(state)?, &pin_of(name), record.snapshots())?;
    record.save(state)
}

/// Finishes what was interrupted before, such as the end of the turn before this one.
fn finish_before(project: &Project, seen: Seen<'_>, state: &Folder) -> Result<Option<Applied>, Error> {
    if !apply::is_unfinished(state)? {
        return Ok(None);
    }
    let resumed = match undo::resume(project, state, seen.copy)? {
        undo::Resumed::Review { applied, .. } => {
            goes_on(&applied)?;
            Some(*applied)
        }
        undo::Resumed::Turns(undone) => {
            undone.turns.iter().try_for_each(|turn| goes_on(&turn.applied))?;
            None
        }
        undo::Resumed::Nothing => None,
    };
    if apply::is_unfinished(state)? { Err(Error::Unfinished) } else { Ok(resumed) }
}

/// Looks at what the session has changed: where its copy is laid over the project, at that alone.
///
/// `keeps_view`: the session goes on there, also where the project then lacks what it has under other names.
fn look<'a>(project: &'a Project, seen: Seen<'a>, state: &'a Folder, name: &str, keeps_view: bool) -> Result<Work<'a>, Error> {
    let mut store = Store::open(state)?;
    let (Some(copy), Some(upper)) = (seen.copy, seen.upper) else {
        return Work::with(store, project, seen, state, name, true);
    };
    let Some(mut record) = Record::load(state, name)? else { return Err(Error::NoReview { name: name.to_owned() }) };
    if let Some(git) = seen.git {
        record.git.clone_from(git);
    }
    let layer = Layer::new(project, copy, upper, record.base);
    let after = snapshot::take_layer(&layer, state, &mut store, &cache_of_layer(name))?;
    if keeps_view {
        layer.copy_moved()?;
    }
    record.after = Some(after.id);
    record.not_of_it = Vec::new();
    record.is_cut_short = after.is_cut_short;
    pin::pin(state, &store, &pin_of(name), record.snapshots())?;
    record.save(state)?;
    Ok(Work { project, state, store, record, obeyed: seen.obeyed })
}

/// Has a session that goes on in what it worked on before see what the person changed meanwhile. Returns the paths of which it sees its own version
/// alone, since that waits.
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
    // Most of it shows through. What does not is where the session has its own, and in folders that it made.
    let hidden: Vec<Change> = since.iter().filter(|change| !is_seen(change)).cloned().collect();
    if !hidden.is_empty() {
        // What a kill left there is of no use: all of it is looked at anew.
        let place = state.below(VIEW)?;
        // What is copied in the middle of a step looks as if somebody had changed it just then.
        hidden.iter().try_for_each(|change| copy_up(copy, change.path.as_bytes()))?;
        Journal::clear(&place)?;
        let purpose = Purpose::Review { name: record.name.clone() };
        let (from, to) = (record.base, now);
        let request = Request { from, to, only: Vec::new(), merge: false, origin: Origin::Elsewhere, copy: None, purpose };
        apply::apply_wanted(copy, &place, store, &request, hidden, Outcome::default(), |_, _, _| Ok(()))?;
    }
    let (shown, hidden): (Vec<Change>, Vec<Change>) = since.into_iter().partition(is_seen);
    record.base = edited(store, &record.base, &shown)?;
    Ok(hidden.into_iter().map(|change| change.path).collect())
}
