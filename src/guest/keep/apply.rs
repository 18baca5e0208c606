//! How paths of the project are brought from one state to another.
//!
//! What is to be done is written down first, then done path by path, each in one step of the file
//! system: whenever it is killed, each file is the old one or the new one. Begun again, it goes
//! through all of it once more, and what is done already is found to be. A path that is in neither
//! state was changed by somebody else and is left alone.
//!
//! The order makes room before anything is put there: first files go, then folders, the deepest
//! first; then folders come, then files, the outermost first. Where one turns into the other, what
//! comes is made ready beside it, and the two change places in one step. Modes of folders are set
//! last, since one of them may forbid to change what is in it.

mod ready;
mod run;
mod turn;

use self::run::Run;
use self::run::Stop;
use super::Error;
use super::Store;
use super::compare::Change;
use super::folder::Folder;
use super::journal::Journal;
use super::journal::Purpose;
use super::look::Look;
use super::look::Name;
use super::plan::Outcome;
use super::plan::Request;
use super::plan::is_done;
use super::plan::open;
use super::plan::plan_of;
use super::plan::token;
use super::plan::wanted;
use super::project::Project;
use podbay_wire::BytesPath;
use podbay_wire::keep::Applied;

/// Where more files are changed than this, they are not flushed one by one: the journal is there
/// until all of them are.
const MANY: usize = 256;

/// Brings paths from one state to another. `done` is called when all of it is done, before that is
/// forgotten: where it fails, or somebody is killed before, [`resume`] calls it again.
pub fn apply(
    project: &Project,
    state: &Folder,
    store: &mut Store,
    request: &Request<'_>,
    done: impl FnOnce(&Store, &Journal, &Outcome) -> Result<(), Error>,
) -> Result<Applied, Error> {
    let wanted = wanted(store, request)?;
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

/// The same for some of the changes between the two states; `found` says what became of the others.
pub(super) fn apply_wanted(
    project: &Project,
    state: &Folder,
    store: &mut Store,
    request: &Request<'_>,
    wanted: Vec<Change>,
    found: Outcome,
    done: impl FnOnce(&Store, &Journal, &Outcome) -> Result<(), Error>,
) -> Result<Applied, Error> {
    if Journal::is_there(state)? {
        return Err(Error::Unfinished);
    }
    let mut look = Journal::look(token(request), request.purpose.clone());
    let opened = open(project, &wanted, |opened| {
        look.opened.clone_from(opened);
        look.save(state)
    });
    let planned = opened.and_then(|opened| plan_of(project, store, request, wanted, found, opened));
    let saved = planned.and_then(|journal| journal.save(state).map(|()| journal));
    let journal = match saved {
        Ok(journal) => journal,
        Err(error) => {
            close_again(project, state, &look)?;
            return Err(error);
        }
    };
    finish((project, request.copy), state, store, &journal, false, done)
}

/// Forgets an application that has only opened folders, and gives them their modes back.
fn close_again(project: &Project, state: &Folder, look: &Journal) -> Result<(), Error> {
    Run::new((project, None), None, look).close_folders(false);
    Journal::clear(state)
}

/// Gives up what was interrupted before anything was done for it, and returns what it was for: it
/// can begin anew.
pub(super) fn not_begun(project: &Project, state: &Folder) -> Result<Option<Purpose>, Error> {
    let Some(journal) = Journal::load(state)?.filter(|journal| journal.is_look) else {
        return Ok(None);
    };
    close_again(project, state, &journal)?;
    Ok(Some(journal.purpose))
}

/// Finishes what was interrupted, if anything was. Beside the project: what the session of that
/// review worked on, where it is at hand.
pub fn resume(
    (project, copy): (&Project, Option<&Project>),
    state: &Folder,
    store: &Store,
    done: impl FnOnce(&Journal, &Outcome) -> Result<(), Error>,
) -> Result<Option<(Purpose, Applied)>, Error> {
    not_begun(project, state)?;
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

/// Whether something was interrupted.
pub fn is_unfinished(state: &Folder) -> Result<bool, Error> {
    Journal::is_there(state)
}

/// Gives up what was interrupted: what is done stays done. What lies beside its place is settled,
/// and folders get their modes back. `told` is called with what it was for and the paths that are
/// not known to be done, before that is forgotten.
pub fn abandon(
    project: &Project,
    state: &Folder,
    told: impl FnOnce(&Purpose, Vec<BytesPath>) -> Result<(), Error>,
) -> Result<bool, Error> {
    let _lock = state.lock()?;
    clear_up(project, state)?;
    let journal = match Journal::load(state) {
        // Nobody can tell what it was to be.
        Err(Error::Unreadable { .. }) => None,
        other => other?,
    };
    if let Some(journal) = &journal {
        Run::new((project, None), None, journal).clear_up();
        if !journal.is_look {
            told(&journal.purpose, journal.open_paths())?;
        }
    }
    let is_there = Journal::is_there(state)?;
    Journal::clear(state)?;
    Ok(is_there)
}

/// Clears up what an application left in the project over which a turn began.
pub(super) fn clear_up(project: &Project, state: &Folder) -> Result<(), Error> {
    match Journal::load_aside(state) {
        Ok(None) => return Ok(()),
        Ok(Some(journal)) => Run::new((project, None), None, &journal).clear_up(),
        // Nobody can tell what it left.
        Err(Error::Unreadable { .. }) => {}
        Err(error) => return Err(error),
    }
    Journal::clear_aside(state)
}

fn finish(
    (project, copy): (&Project, Option<&Project>),
    state: &Folder,
    store: &Store,
    journal: &Journal,
    is_resumed: bool,
    done: impl FnOnce(&Store, &Journal, &Outcome) -> Result<(), Error>,
) -> Result<Applied, Error> {
    let mut run = Run::new((project, copy), Some(store), journal);
    run.open_folders();
    if is_resumed {
        run.settle();
    }
    let all = run.all();
    run.close_folders(all.is_ok());
    let mut outcome = run.outcome;
    match all {
        Err(Stop::Full(errno)) => {
            outcome.applied.stopped = Some(errno.desc().to_owned());
            // The journal has the rest.
            let is_in = |change: &&Change| {
                let here = Look::at(project, change.path.as_bytes(), Name::Plain);
                here.is_ok_and(|look| {
                    is_done(change, look.found.node().as_ref())
                        || journal.is_after(change, &look.found)
                })
            };
            tell(&mut outcome, journal.changes.iter().filter(is_in));
            return Ok(outcome.applied);
        }
        Err(Stop::Failed(error)) => return Err(error),
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

/// Says what was changed.
fn tell<'c>(outcome: &mut Outcome, changes: impl Iterator<Item = &'c Change> + Clone) {
    let removed = changes.clone().filter(|change| change.after.is_none());
    outcome.applied.removed = removed.map(|change| change.path.clone()).collect();
    outcome.applied.changed = changes.map(|change| change.path.clone()).collect();
}

#[cfg(test)]
mod any;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod tests;
