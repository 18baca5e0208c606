//! How paths of the project are brought from one state to another.
//!
//! What is to be done is written down first, then done path by path, each in one step of the file system: whenever it is killed, each
//! file is the old one or the new one. Begun again, it goes through all of it once more, and what is done already is found to be. A
//! path that is in neither state was changed by somebody else and is left alone.
//!
//! The order makes room before anything is put there: first files go, then folders, the deepest first; then folders come, then files,
//! the outermost first; modes of folders are set last, since one of them may forbid to change what is in it.

use std::collections::HashSet;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::sys::stat::FchmodatFlags;
use nix::sys::stat::Mode;
use nix::sys::stat::fchmodat;
use nix::sys::stat::mkdirat;
use nix::unistd::UnlinkatFlags;
use nix::unistd::unlinkat;

use super::Error;
use super::Store;
use super::compare::Change;
use super::folder::Folder;
use super::journal::Journal;
use super::journal::Purpose;
use super::look::Look;
use super::look::Name;
use super::node::Node;
use super::node::are_alike;
use super::plan::Outcome;
use super::plan::Request;
use super::plan::open;
use super::plan::plan_of;
use super::plan::token;
use super::plan::wanted;
use super::project::Project;
use super::read::Found;
use super::swap::Content;
use super::swap::Spot;
use super::swap::Swapped;
use crate::guest::root::split;
use crate::wire::BytesPath;
use crate::wire::keep::Applied;
use crate::wire::keep::Left;
use crate::wire::keep::LeftReason;

/// Where more files are changed than this, they are not flushed one by one: the journal is there until all of them are.
const MANY: usize = 256;

/// Brings paths from one state to another. `done` is called when all of it is done, before that is forgotten: where it fails, or
/// somebody is killed before, [`resume`] calls it again.
pub fn apply(
    project: &Project,
    state: &Folder,
    store: &mut Store,
    request: &Request,
    done: impl FnOnce(&Outcome) -> Result<(), Error>,
) -> Result<Applied, Error> {
    let wanted = wanted(store, request)?;
    apply_wanted(project, state, store, request, wanted, Outcome::default(), done)
}

/// The same for some of the changes between the two states; `found` says what became of the others.
pub(super) fn apply_wanted(
    project: &Project,
    state: &Folder,
    store: &mut Store,
    request: &Request,
    wanted: Vec<Change>,
    found: Outcome,
    done: impl FnOnce(&Outcome) -> Result<(), Error>,
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
    finish(project, state, store, &journal, false, done)
}

/// Forgets an application that has only opened folders, and gives them their modes back.
fn close_again(project: &Project, state: &Folder, look: &Journal) -> Result<(), Error> {
    Run::new(project, None, look).close_folders(false);
    Journal::clear(state)
}

/// Gives up what was interrupted before anything was done for it, and returns what it was for: it can begin anew.
pub(super) fn not_begun(project: &Project, state: &Folder) -> Result<Option<Purpose>, Error> {
    let Some(journal) = Journal::load(state)?.filter(|journal| journal.is_look) else { return Ok(None) };
    close_again(project, state, &journal)?;
    Ok(Some(journal.purpose))
}

/// Finishes what was interrupted, if anything was.
pub fn resume(
    project: &Project,
    state: &Folder,
    store: &Store,
    done: impl FnOnce(&Purpose, &Outcome) -> Result<(), Error>,
) -> Result<Option<(Purpose, Applied)>, Error> {
    not_begun(project, state)?;
    let Some(journal) = Journal::load(state)? else { return Ok(None) };
    let applied = finish(project, state, store, &journal, true, |outcome| done(&journal.purpose, outcome))?;
    Ok(Some((journal.purpose, applied)))
}

/// Whether something was interrupted.
pub fn is_unfinished(state: &Folder) -> Result<bool, Error> {
    Journal::is_there(state)
}

/// Gives up what was interrupted: what is done stays done. What lies beside its place is settled, and folders get their modes back. `told` is
/// called with what it was for and the paths that are not known to be done, before that is forgotten.
pub fn abandon(project: &Project, state: &Folder, told: impl FnOnce(&Purpose, Vec<BytesPath>) -> Result<(), Error>) -> Result<bool, Error> {
    let _lock = state.lock()?;
    clear_up(project, state)?;
    let journal = match Journal::load(state) {
        // Nobody can tell what it was to be.
        Err(Error::Unreadable { .. }) => None,
        other => other?,
    };
    if let Some(journal) = &journal {
        Run::new(project, None, journal).clear_up();
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
        Ok(Some(journal)) => Run::new(project, None, &journal).clear_up(),
        // Nobody can tell what it left.
        Err(Error::Unreadable { .. }) => {}
        Err(error) => return Err(error),
    }
    Journal::clear_aside(state)
}

fn finish(
    project: &Project,
    state: &Folder,
    store: &Store,
    journal: &Journal,
    is_resumed: bool,
    done: impl FnOnce(&Outcome) -> Result<(), Error>,
) -> Result<Applied, Error> {
    let mut run = Run::new(project, Some(store), journal);
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
    done(&outcome)?;
    Journal::clear(state)?;
    Ok(outcome.applied)
}

/// Why nothing more can be done for any path.
enum Stop {
    Full(Errno),
    Failed(Error),
}

struct Run<'a> {
    project: &'a Project,
    /// Where contents come from; nobody who gives up needs one.
    store: Option<&'a Store>,
    journal: &'a Journal,
    outcome: Outcome,
    /// Changes that were left, by their numbers.
    left: HashSet<usize>,
}

impl<'a> Run<'a> {
    fn new(project: &'a Project, store: Option<&'a Store>, journal: &'a Journal) -> Self {
        let outcome = Outcome { applied: journal.found.clone(), left: journal.left.clone() };
        Self { project, store, journal, outcome, left: HashSet::new() }
    }

    fn all(&mut self) -> Result<(), Stop> {
        let last = self.journal.changes.len();
        let backward = || (0..last).rev();
        for (step, order) in [
            (Self::remove as Step<'a>, Order::Deepest),
            (Self::remove_folder, Order::Deepest),
            (Self::make_folder, Order::Outermost),
            (Self::put, Order::Outermost),
            (Self::set_mode, Order::Deepest),
        ] {
            let mut each = |number: usize| -> Result<(), Stop> {
                if self.left.contains(&number) {
                    return Ok(());
                }
                match step(self, number, &self.journal.changes[number]) {
                    Ok(()) => Ok(()),
                    Err(StepError::Left(reason)) => {
                        self.leave(number, reason);
                        Ok(())
                    }
                    Err(StepError::Kernel(errno @ (Errno::ENOSPC | Errno::EDQUOT | Errno::EROFS | Errno::EIO))) => Err(Stop::Full(errno)),
                    Err(StepError::Kernel(errno)) => {
                        self.leave(number, LeftReason::Failed { problem: errno.desc().to_owned() });
                        Ok(())
                    }
                    Err(StepError::Store(error)) => Err(Stop::Failed(error)),
                }
            };
            match order {
                Order::Deepest => backward().try_for_each(&mut each)?,
                Order::Outermost => (0..last).try_for_each(&mut each)?,
            }
        }
        let done = (0..last).filter(|number| !self.left.contains(number));
        self.outcome.applied.changed = done.map(|number| self.journal.changes[number].path.clone()).collect();
        Ok(())
    }

    /// A file or link goes, also where a folder comes.
    fn remove(&self, number: usize, change: &Change) -> Result<(), StepError> {
        let is_removed = change.after.as_ref().is_none_or(Node::is_folder);
        if !is_removed || change.before.as_ref().is_none_or(Node::is_folder) {
            return Ok(());
        }
        let look = self.look(change)?;
        let here = look.found.node();
        // The folder that a file makes room for may be there already.
        let is_made = [&here, &change.after].into_iter().all(|node| node.as_ref().is_some_and(Node::is_folder));
        if here.is_none() || is_made {
            return Ok(());
        }
        let (Some(folder), Some(stat)) = (&look.folder, look.found.stat()) else { return Ok(()) };
        if !are_alike(here.as_ref(), change.before.as_ref()) {
            return Err(StepError::Left(LeftReason::ChangedSince));
        }
        let spot = Spot::new(folder.as_fd(), split(change.path.as_bytes()).1, &self.journal.token, number);
        swapped(spot.remove(stat)?)
    }

    /// A folder goes, also where a file comes.
    fn remove_folder(&self, _number: usize, change: &Change) -> Result<(), StepError> {
        let was_folder = change.before.as_ref().is_some_and(Node::is_folder);
        if !was_folder || change.after.as_ref().is_some_and(Node::is_folder) {
            return Ok(());
        }
        let look = self.look(change)?;
        let (Some(folder), Some(true)) = (&look.folder, look.found.node().map(|node| node.is_folder())) else { return Ok(()) };
        match unlinkat(folder, split(change.path.as_bytes()).1, UnlinkatFlags::RemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(Errno::ENOTEMPTY | Errno::EEXIST) => Err(StepError::Left(LeftReason::NotEmpty)),
            Err(errno) => Err(errno.into()),
        }
    }

    fn make_folder(&self, _number: usize, change: &Change) -> Result<(), StepError> {
        let Some(Node::Folder { mode, .. }) = change.after else { return Ok(()) };
        if change.before.as_ref().is_some_and(Node::is_folder) {
            return Ok(());
        }
        let look = self.look(change)?;
        let Some(folder) = &look.folder else { return Err(StepError::Left(LeftReason::NoFolder)) };
        match look.found.node() {
            None => {}
            Some(Node::Folder { .. }) => return Ok(()),
            Some(_) => return Err(StepError::Left(LeftReason::ChangedSince)),
        }
        match mkdirat(folder, split(change.path.as_bytes()).1, Mode::from_bits_truncate(mode | 0o700)) {
            Err(Errno::EEXIST) => Err(StepError::Left(LeftReason::ChangedSince)),
            other => Ok(other?),
        }
    }

    /// A file or link comes, or takes the place of another one.
    fn put(&self, number: usize, change: &Change) -> Result<(), StepError> {
        let Some(after @ (Node::File { .. } | Node::Link { .. })) = &change.after else { return Ok(()) };
        let look = self.look(change)?;
        let here = look.found.node();
        if here.as_ref().is_some_and(|here| here.is_like(after)) {
            return Ok(());
        }
        let Some(folder) = &look.folder else { return Err(StepError::Left(LeftReason::NoFolder)) };
        // A folder was removed before.
        let expected = change.before.as_ref().filter(|node| !node.is_folder());
        if !are_alike(here.as_ref(), expected) {
            return Err(StepError::Left(LeftReason::ChangedSince));
        }
        let spot = Spot::new(folder.as_fd(), split(change.path.as_bytes()).1, &self.journal.token, number);
        if let (Some(Node::File { object: before, .. }), Node::File { object, mode, .. }) = (expected, after)
            && before == object
            && let Some(stat) = look.found.stat()
        {
            return swapped(spot.set_mode(*mode, stat)?);
        }
        swapped(spot.put(&self.content(after)?, look.found.stat())?)
    }

    /// Folders that were made, or have another mode.
    fn set_mode(&self, _number: usize, change: &Change) -> Result<(), StepError> {
        let Some(Node::Folder { mode, .. }) = change.after else { return Ok(()) };
        let look = self.look(change)?;
        let (Some(folder), Some(Node::Folder { mode: here, .. })) = (&look.folder, look.found.node()) else {
            return Err(StepError::Left(LeftReason::ChangedSince));
        };
        // One that was opened has the bits for that, too.
        let is_expected = |node: &Option<Node>| match node {
            Some(Node::Folder { mode: before, .. }) => {
                here == *before || here == before | 0o700 && self.journal.opened.contains_key(&change.path)
            }
            _ => true,
        };
        if here == mode {
            return Ok(());
        }
        if !is_expected(&change.before) {
            return Err(StepError::Left(LeftReason::ChangedSince));
        }
        let set_id = look.found.stat().map_or(0, |stat| stat.st_mode & 0o6000);
        Ok(chmod(folder, split(change.path.as_bytes()).1, mode | set_id)?)
    }

    /// Clears up what lies beside its place, and closes what was opened for it.
    fn clear_up(&mut self) {
        self.open_folders();
        self.settle();
        self.close_folders(false);
    }

    fn open_folders(&mut self) {
        for (path, mode) in &self.journal.opened {
            // What cannot be opened is told where something is to be changed in it.
            let _ = self.chmod_folder(path, mode | 0o700);
        }
    }

    /// Gives the folders that were opened their modes back; where all is done, some of them have a new one.
    fn close_folders(&self, is_done: bool) {
        for (path, mode) in self.journal.opened.iter().rev() {
            let at = self.journal.changes.binary_search_by(|change| change.path.cmp(path));
            let has_new_mode = is_done && at.is_ok_and(|at| self.journal.changes[at].after.is_some() && !self.left.contains(&at));
            let look = Look::at(self.project, path.as_bytes(), Name::Plain);
            let is_open = look.is_ok_and(|look| matches!(look.found, Found::Folder { stat } if stat.st_mode & 0o7777 == mode | 0o700));
            if is_open && !has_new_mode {
                let _ = self.chmod_folder(path, *mode);
            }
        }
    }

    /// Clears up what lies beside its place.
    fn settle(&mut self) {
        for (number, change) in self.journal.changes.iter().enumerate() {
            let (parent, name) = split(change.path.as_bytes());
            let Ok(folder) = self.project.folder(parent) else { continue };
            let spot = Spot::new(folder.as_fd(), name, &self.journal.token, number);
            if let Ok(settled @ Swapped::KeptAs(_)) = spot.settle(change.before.as_ref(), change.after.as_ref())
                && let Err(StepError::Left(reason)) = swapped(settled)
            {
                self.leave(number, reason);
            }
        }
    }

    fn chmod_folder(&self, path: &BytesPath, mode: u32) -> Result<(), Errno> {
        let (parent, name) = split(path.as_bytes());
        chmod(&self.project.folder(parent)?, name, mode)
    }

    fn look(&self, change: &Change) -> Result<Look, Errno> {
        let kind = if self.journal.ambiguous.contains(&change.path) { Name::Ambiguous } else { Name::Plain };
        Look::at(self.project, change.path.as_bytes(), kind)
    }

    fn content(&self, node: &Node) -> Result<Content, StepError> {
        match node {
            Node::File { mode, object, .. } => {
                let store = self.store.expect("contents are asked for where there is a store");
                let is_flushed = self.journal.changes.len() <= MANY;
                Ok(Content::File { content: store.get(object).map_err(StepError::Store)?, mode: *mode, is_flushed })
            }
            Node::Link { target } => Ok(Content::Link { target: target.clone() }),
            Node::Folder { .. } | Node::Unkept { .. } => unreachable!("only files and links are put somewhere"),
        }
    }

    fn leave(&mut self, number: usize, reason: LeftReason) {
        self.left.insert(number);
        self.outcome.leave(Left { path: self.journal.changes[number].path.clone(), reason });
    }
}

type Step<'a> = fn(&Run<'a>, usize, &Change) -> Result<(), StepError>;

enum Order {
    Deepest,
    Outermost,
}

enum StepError {
    Left(LeftReason),
    Kernel(Errno),
    Store(Error),
}

impl From<Errno> for StepError {
    fn from(errno: Errno) -> Self {
        Self::Kernel(errno)
    }
}

fn swapped(swapped: Swapped) -> Result<(), StepError> {
    match swapped {
        Swapped::Done => Ok(()),
        Swapped::Changed => Err(StepError::Left(LeftReason::ChangedSince)),
        Swapped::KeptAs(name) => {
            let problem = format!("was changed at the very moment it was replaced, and is kept beside it as {name}");
            Err(StepError::Left(LeftReason::Failed { problem }))
        }
    }
}

fn chmod(folder: impl AsFd, name: &[u8], mode: u32) -> Result<(), Errno> {
    fchmodat(folder, name, Mode::from_bits_truncate(mode), FchmodatFlags::NoFollowSymlink)
}

#[cfg(test)]
mod killed;
#[cfg(test)]
mod tests;
