//! Changes paths of the project from one state to another.
//!
//! A journal of all changes is written first. Then they are made path by path, each in one step of
//! the file system: after a kill at any moment, each file is either the old or the new one. A
//! restart goes through the whole journal again and skips what is done. A path that is in neither
//! state was changed by another program and is left alone.
//!
//! The order makes room before anything is added: first files are removed, then folders, the
//! deepest first; then folders are made, then files, the outermost first. Where a file replaces a
//! folder or the reverse, the new entry is made ready beside it and exchanged with it in one step.
//! Modes of folders are set last, since a new mode may forbid changes in the folder.

mod exchange;
mod execution;
mod type_changes;

use self::execution::Execution;
use self::execution::StopReason;
use super::Error;
use super::Store;
use super::compare::Change;
use super::journal::Journal;
use super::journal::Purpose;
use super::path_entry::NameCheck;
use super::path_entry::PathEntry;
use super::plan::Outcome;
use super::plan::Request;
use super::plan::is_done;
use super::plan::make_plan;
use super::plan::open_folders;
use super::plan::token;
use super::plan::wanted_changes;
use super::project::Project;
use super::state_folder::StateFolder;
use podbay_wire::BytesPath;
use podbay_wire::keep::ApplyOutcome;

/// With more changed files than this, files are not flushed one by one: the journal is kept until
/// all of them are on the disk.
const MANY: usize = 256;

/// Changes paths from one state to another. `done` is called when all of it is done and before the
/// journal is removed; if it fails, or the process is killed before, [`resume`] calls it again.
pub fn apply(
    project: &Project,
    state: &StateFolder,
    store: &mut Store,
    request: &Request<'_>,
    done: impl FnOnce(&Store, &Journal, &Outcome) -> Result<(), Error>,
) -> Result<ApplyOutcome, Error> {
    let wanted = wanted_changes(store, request)?;
    apply_wanted(
        project,
        state,
        store,
        request,
        wanted,
        Outcome::default(),
        done,
    )
}

/// Applies some of the changes between the two states; `found` holds the outcome of the others.
pub(super) fn apply_wanted(
    project: &Project,
    state: &StateFolder,
    store: &mut Store,
    request: &Request<'_>,
    wanted: Vec<Change>,
    found: Outcome,
    done: impl FnOnce(&Store, &Journal, &Outcome) -> Result<(), Error>,
) -> Result<ApplyOutcome, Error> {
    if Journal::is_there(state)? {
        return Err(Error::Unfinished);
    }
    let mut look = Journal::look(token(request), request.purpose.clone());
    let opened = open_folders(project, &wanted, |opened| {
        look.opened.clone_from(opened);
        look.save(state)
    });
    let planned =
        opened.and_then(|opened| make_plan(project, store, request, wanted, found, opened));
    let saved = planned.and_then(|journal| journal.save(state).map(|()| journal));
    let journal = match saved {
        Ok(journal) => journal,
        Err(error) => {
            close_opened(project, state, &look)?;
            return Err(error);
        }
    };
    finish((project, request.copy), state, store, &journal, false, done)
}

/// Removes a journal that has only opened folders, and restores the modes of those.
fn close_opened(project: &Project, state: &StateFolder, look: &Journal) -> Result<(), Error> {
    Execution::new((project, None), None, look).close_folders(false);
    Journal::clear(state)
}

/// Drops an interrupted application of which nothing was done yet, and returns its purpose: it can
/// be started again.
pub(super) fn discard_unstarted(
    project: &Project,
    state: &StateFolder,
) -> Result<Option<Purpose>, Error> {
    let Some(journal) = Journal::load(state)?.filter(|journal| journal.is_look) else {
        return Ok(None);
    };
    close_opened(project, state, &journal)?;
    Ok(Some(journal.purpose))
}

/// Finishes an interrupted application, if there is one. `copy` is the session's copy of the
/// project for a review, where it is available.
pub fn resume(
    (project, copy): (&Project, Option<&Project>),
    state: &StateFolder,
    store: &Store,
    done: impl FnOnce(&Journal, &Outcome) -> Result<(), Error>,
) -> Result<Option<(Purpose, ApplyOutcome)>, Error> {
    discard_unstarted(project, state)?;
    let Some(journal) = Journal::load(state)? else {
        return Ok(None);
    };
    let applied = finish(
        (project, copy),
        state,
        store,
        &journal,
        true,
        |_, journal, outcome| done(journal, outcome),
    )?;
    Ok(Some((journal.purpose, applied)))
}

/// Whether an application was interrupted.
pub fn is_unfinished(state: &StateFolder) -> Result<bool, Error> {
    Journal::is_there(state)
}

/// Gives up an interrupted application: what is done stays done. Temporary files are settled and
/// folders get their modes back. `told` is called with its purpose and the paths that are not known
/// to be done, before the journal is removed.
pub fn abandon(
    project: &Project,
    state: &StateFolder,
    told: impl FnOnce(&Purpose, Vec<BytesPath>) -> Result<(), Error>,
) -> Result<bool, Error> {
    let _lock = state.lock()?;
    clean_up(project, state)?;
    let journal = match Journal::load(state) {
        // An unreadable journal does not say what it was for.
        Err(Error::Unreadable { .. }) => None,
        other => other?,
    };
    if let Some(journal) = &journal {
        Execution::new((project, None), None, journal).clear_up();
        if !journal.is_look {
            told(&journal.purpose, journal.open_paths())?;
        }
    }
    let is_there = Journal::is_there(state)?;
    Journal::clear(state)?;
    Ok(is_there)
}

/// Removes what an application left in the project that a later turn put aside.
pub(super) fn clean_up(project: &Project, state: &StateFolder) -> Result<(), Error> {
    match Journal::load_aside(state) {
        Ok(None) => return Ok(()),
        Ok(Some(journal)) => Execution::new((project, None), None, &journal).clear_up(),
        // An unreadable journal does not say what was left.
        Err(Error::Unreadable { .. }) => {}
        Err(error) => return Err(error),
    }
    Journal::clear_aside(state)
}

fn finish(
    (project, copy): (&Project, Option<&Project>),
    state: &StateFolder,
    store: &Store,
    journal: &Journal,
    is_resumed: bool,
    done: impl FnOnce(&Store, &Journal, &Outcome) -> Result<(), Error>,
) -> Result<ApplyOutcome, Error> {
    let mut run = Execution::new((project, copy), Some(store), journal);
    run.open_folders();
    if is_resumed {
        run.settle();
    }
    let all = run.all();
    run.close_folders(all.is_ok());
    let mut outcome = run.outcome;
    match all {
        Err(StopReason::Full(errno)) => {
            outcome.applied.stopped = Some(errno.desc().to_owned());
            // The journal has the others.
            let is_in = |change: &&Change| {
                let here = PathEntry::at(project, change.path.as_bytes(), NameCheck::Plain);
                here.is_ok_and(|look| {
                    is_done(change, look.found.node().as_ref())
                        || journal.is_after(change, &look.found)
                })
            };
            record_changes(&mut outcome, journal.changes.iter().filter(is_in));
            return Ok(outcome.applied);
        }
        Err(StopReason::Failed(error)) => return Err(error),
        Ok(()) => {}
    }
    if journal.changes.len() > MANY
        && let Ok(folder) = project.list(b"")
    {
        let _ = nix::unistd::syncfs(folder);
    }
    done(store, journal, &outcome)?;
    Journal::clear(state)?;
    Ok(outcome.applied)
}

/// Adds the changed paths to the outcome.
fn record_changes<'c>(outcome: &mut Outcome, changes: impl Iterator<Item = &'c Change> + Clone) {
    let removed = changes.clone().filter(|change| change.after.is_none());
    outcome.applied.removed = removed.map(|change| change.path.clone()).collect();
    outcome.applied.changed = changes.map(|change| change.path.clone()).collect();
}

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod random_state_tests;
#[cfg(test)]
mod tests;
