//! Executes a journal, path by path.

use std::collections::HashSet;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::sys::stat::FchmodatFlags;
use nix::sys::stat::Mode;
use nix::sys::stat::fchmodat;
use nix::sys::stat::mkdirat;
use nix::unistd::UnlinkatFlags;
use nix::unistd::unlinkat;

use super::MANY;
use super::type_changes::TypeChanges;
use crate::keep::Error;
use crate::keep::Store;
use crate::keep::compare::Change;
use crate::keep::journal::Journal;
use crate::keep::node::Node;
use crate::keep::node::are_alike;
use crate::keep::path_entry::NameCheck;
use crate::keep::path_entry::PathEntry;
use crate::keep::plan::CHANGED_IN_COPY;
use crate::keep::plan::Outcome;
use crate::keep::project::Project;
use crate::keep::read::FoundEntry;
use crate::keep::swap::NewContent;
use crate::keep::swap::SwapOutcome;
use crate::keep::swap::SwapTarget;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::LeftPath;
use podbay_wire::keep::LeftReason;

/// Why the whole application stops.
pub(super) enum StopReason {
    Full(Errno),
    Failed(Error),
}

pub(super) struct Execution<'a> {
    pub(super) project: &'a Project,
    /// Source of contents that no store holds.
    copy: Option<&'a Project>,
    /// Source of contents; an application that is given up needs none.
    store: Option<&'a Store>,
    pub(super) journal: &'a Journal,
    pub(super) turning: TypeChanges,
    pub(super) outcome: Outcome,
    /// The numbers of the changes that were left undone.
    left: HashSet<usize>,
}

impl<'a> Execution<'a> {
    pub(super) fn new(
        (project, copy): (&'a Project, Option<&'a Project>),
        store: Option<&'a Store>,
        journal: &'a Journal,
    ) -> Self {
        let outcome = Outcome {
            applied: journal.found.clone(),
            left: journal.left.clone(),
        };
        Self {
            project,
            copy,
            store,
            journal,
            turning: TypeChanges::among(&journal.changes),
            outcome,
            left: HashSet::new(),
        }
    }

    pub(super) fn all(&mut self) -> Result<(), StopReason> {
        let last = self.journal.changes.len();
        let backward = || (0..last).rev();
        for (step, order, is_before_any_goes) in [
            (Self::remove_plain as StepFn<'a>, PathOrder::Deepest, false),
            (Self::make_ready, PathOrder::Outermost, true),
            (Self::change_places, PathOrder::Outermost, true),
            (Self::remove_turning, PathOrder::Deepest, false),
            (Self::remove_folder, PathOrder::Deepest, false),
            (Self::make_folder, PathOrder::Outermost, false),
            (Self::put, PathOrder::Outermost, false),
            (Self::set_mode, PathOrder::Deepest, false),
        ] {
            let mut each = |number: usize| -> Result<(), StopReason> {
                if self.left.contains(&number) {
                    return Ok(());
                }
                let reason = match step(self, number, &self.journal.changes[number]) {
                    Ok(()) => return Ok(()),
                    Err(StepError::Left(reason)) => reason,
                    Err(StepError::Kernel(
                        errno @ (Errno::ENOSPC | Errno::EDQUOT | Errno::EROFS | Errno::EIO),
                    )) => {
                        return Err(StopReason::Full(errno));
                    }
                    Err(StepError::Kernel(errno)) => LeftReason::Failed {
                        problem: errno.desc().to_owned(),
                    },
                    Err(StepError::Store(error)) => return Err(StopReason::Failed(error)),
                };
                // What is in a folder is not removed for a file that is not written, whatever the
                // reason.
                for other in if is_before_any_goes {
                    self.turning.removed_for(number)
                } else {
                    Vec::new()
                } {
                    self.leave(other, reason.clone());
                }
                self.leave(number, reason);
                Ok(())
            };
            let done = match order {
                PathOrder::Deepest => backward().try_for_each(&mut each),
                PathOrder::Outermost => (0..last).try_for_each(&mut each),
            };
            if done.is_err() {
                self.clear_ready(true);
            }
            done?;
        }
        self.clear_ready(false);
        let done = (0..last).filter(|number| !self.left.contains(number));
        super::record_changes(
            &mut self.outcome,
            done.map(|number| &self.journal.changes[number]),
        );
        Ok(())
    }

    /// Removes what makes room for nothing. This goes first, since what is made ready after it may
    /// need the room.
    fn remove_plain(&self, number: usize, change: &Change) -> Result<(), StepError> {
        if self.turning.has(number) {
            Ok(())
        } else {
            self.remove(number, change)
        }
    }

    fn remove_turning(&self, number: usize, change: &Change) -> Result<(), StepError> {
        if self.turning.has(number) {
            self.remove(number, change)
        } else {
            Ok(())
        }
    }

    /// Removes a file or link, also where a folder replaces it.
    fn remove(&self, number: usize, change: &Change) -> Result<(), StepError> {
        let is_removed = change.after.as_ref().is_none_or(Node::is_folder);
        if !is_removed || change.before.as_ref().is_none_or(Node::is_folder) {
            return Ok(());
        }
        let look = self.look(change)?;
        let here = look.found.node();
        // The folder that replaces a file may exist already.
        let is_made = [&here, &change.after]
            .into_iter()
            .all(|node| node.as_ref().is_some_and(Node::is_folder));
        if here.is_none() || is_made {
            return Ok(());
        }
        let (Some(folder), Some(stat)) = (&look.folder, look.found.stat()) else {
            return Ok(());
        };
        if !are_alike(here.as_ref(), change.before.as_ref()) {
            return Err(StepError::Left(LeftReason::ChangedSince));
        }
        let spot = SwapTarget::new(
            folder.as_fd(),
            split(change.path.as_bytes()).1,
            &self.journal.token,
            number,
        );
        swapped(spot.remove(stat)?)
    }

    /// Removes a folder, also where a file replaces it.
    fn remove_folder(&self, _number: usize, change: &Change) -> Result<(), StepError> {
        let was_folder = change.before.as_ref().is_some_and(Node::is_folder);
        if !was_folder || change.after.as_ref().is_some_and(Node::is_folder) {
            return Ok(());
        }
        let look = self.look(change)?;
        let (Some(folder), Some(true)) =
            (&look.folder, look.found.node().map(|node| node.is_folder()))
        else {
            return Ok(());
        };
        match unlinkat(
            folder,
            split(change.path.as_bytes()).1,
            UnlinkatFlags::RemoveDir,
        ) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(Errno::ENOTEMPTY | Errno::EEXIST) => Err(StepError::Left(LeftReason::NotEmpty)),
            Err(errno) => Err(errno.into()),
        }
    }

    fn make_folder(&self, number: usize, change: &Change) -> Result<(), StepError> {
        let Some(Node::Folder { mode, .. }) = change.after else {
            return Ok(());
        };
        if change.before.as_ref().is_some_and(Node::is_folder) {
            return Ok(());
        }
        let look = self.look(change)?;
        let Some(folder) = &look.folder else {
            return Err(StepError::Left(LeftReason::NoFolder));
        };
        match look.found.node() {
            None => {}
            Some(Node::Folder { .. }) => return Ok(()),
            Some(_) => return Err(StepError::Left(LeftReason::ChangedSince)),
        }
        if let Some(done) = self.put_ready(number, change, folder)? {
            return done;
        }
        match mkdirat(
            folder,
            split(change.path.as_bytes()).1,
            Mode::from_bits_truncate(mode | 0o700),
        ) {
            Err(Errno::EEXIST) => Err(StepError::Left(LeftReason::ChangedSince)),
            other => Ok(other?),
        }
    }

    /// Writes a file or link, new or in place of another one.
    fn put(&self, number: usize, change: &Change) -> Result<(), StepError> {
        let Some(after) = change.after.as_ref().filter(|node| !node.is_folder()) else {
            return Ok(());
        };
        let look = self.look(change)?;
        if self.journal.is_after(change, &look.found) {
            return Ok(());
        }
        let Some(folder) = &look.folder else {
            return Err(StepError::Left(LeftReason::NoFolder));
        };
        // The folder in its place was removed before.
        if !self.journal.is_before(change, &look.found) {
            return Err(StepError::Left(LeftReason::ChangedSince));
        }
        if let Some(done) = self.put_ready(number, change, folder)? {
            return done;
        }
        let spot = SwapTarget::new(
            folder.as_fd(),
            split(change.path.as_bytes()).1,
            &self.journal.token,
            number,
        );
        if let (Some(Node::File { object: before, .. }), Node::File { object, mode, .. }) =
            (&change.before, after)
            && before == object
            && let Some(stat) = look.found.stat()
        {
            return swapped(spot.set_mode(*mode, stat)?);
        }
        swapped(spot.put(&self.content(change, after)?, look.found.stat())?)
    }

    /// Sets the modes of new folders and of those whose mode changed.
    fn set_mode(&self, _number: usize, change: &Change) -> Result<(), StepError> {
        let Some(Node::Folder { mode, .. }) = change.after else {
            return Ok(());
        };
        let look = self.look(change)?;
        let (Some(folder), Some(Node::Folder { mode: here, .. })) =
            (&look.folder, look.found.node())
        else {
            return Err(StepError::Left(LeftReason::ChangedSince));
        };
        // The mode of an opened folder has the bits for that as well.
        let is_expected = |node: &Option<Node>| match node {
            Some(Node::Folder { mode: before, .. }) => {
                here == *before
                    || here == before | 0o700 && self.journal.opened.contains_key(&change.path)
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
        Ok(chmod(
            folder,
            split(change.path.as_bytes()).1,
            mode | set_id,
        )?)
    }

    /// Removes temporary files beside their places, and restores the modes of opened folders.
    pub(super) fn clear_up(&mut self) {
        self.open_folders();
        self.settle();
        self.put_all_ready();
        self.clear_ready(false);
        self.close_folders(false);
    }

    pub(super) fn open_folders(&mut self) {
        for (path, mode) in &self.journal.opened {
            // A file may have replaced it already. A folder that cannot be opened is reported when
            // a change in it fails.
            if PathEntry::at(self.project, path.as_bytes(), NameCheck::Plain)
                .is_ok_and(|look| matches!(look.found, FoundEntry::Folder { .. }))
            {
                let _ = self.chmod_folder(path, mode | 0o700);
            }
        }
    }

    /// Restores the modes of opened folders; when all is done, some of them have a new one.
    pub(super) fn close_folders(&self, is_done: bool) {
        for (path, mode) in self.journal.opened.iter().rev() {
            let at = self
                .journal
                .changes
                .binary_search_by(|change| change.path.cmp(path));
            let has_new_mode = is_done
                && at.is_ok_and(|at| {
                    self.journal.changes[at].after.is_some() && !self.left.contains(&at)
                });
            let look = PathEntry::at(self.project, path.as_bytes(), NameCheck::Plain);
            let is_open = look.is_ok_and(|look| matches!(look.found, FoundEntry::Folder { stat } if stat.st_mode & 0o7777 == mode | 0o700));
            if is_open && !has_new_mode {
                let _ = self.chmod_folder(path, *mode);
            }
        }
    }

    /// Settles the temporary files beside their places.
    pub(super) fn settle(&mut self) {
        for (number, change) in self.journal.changes.iter().enumerate() {
            let is_coming = self.turning.is_added(number);
            if self.turning.is_outermost(number)
                && let Err(StepError::Left(reason)) = self.settle_turning(number, change)
            {
                if reason == LeftReason::ChangedSince {
                    // It is back in its place.
                    for other in self.turning.removed_for(number) {
                        self.leave(other, reason.clone());
                    }
                }
                self.leave(number, reason);
            }
            let (parent, name) = split(change.path.as_bytes());
            let Ok(folder) = self.project.folder(parent) else {
                continue;
            };
            let spot = SwapTarget::new(folder.as_fd(), name, &self.journal.token, number);
            let (is_from, is_to) = (
                |found: &FoundEntry| self.journal.is_before(change, found),
                |found: &FoundEntry| self.journal.is_after(change, found),
            );
            // The ready entry may be the only copy.
            let settled = if is_coming {
                spot.settle_removed(is_from)
            } else {
                spot.settle(is_from, is_to)
            };
            if let Ok(settled @ SwapOutcome::KeptAs(_)) = settled
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

    pub(super) fn look(&self, change: &Change) -> Result<PathEntry, Errno> {
        let kind = if self.journal.ambiguous.contains(&change.path) {
            NameCheck::Ambiguous
        } else {
            NameCheck::Plain
        };
        PathEntry::at(self.project, change.path.as_bytes(), kind)
    }

    pub(super) fn content(&self, change: &Change, node: &Node) -> Result<NewContent, StepError> {
        match node {
            Node::File { mode, object, .. } => {
                let store = self
                    .store
                    .expect("contents are asked for where there is a store");
                let is_flushed = self.journal.changes.len() <= MANY;
                Ok(NewContent::File {
                    content: store.get(object).map_err(StepError::Store)?,
                    mode: *mode,
                    is_flushed,
                })
            }
            Node::Link { target } => Ok(NewContent::Link {
                target: target.clone(),
            }),
            Node::Unkept { why, .. } => {
                let facts = self
                    .journal
                    .unheld
                    .get(&change.path)
                    .and_then(|unheld| unheld.after);
                let (Some(copy), Some(facts)) = (self.copy, facts) else {
                    return Err(StepError::Left(LeftReason::FromCopy { why: *why }));
                };
                let is_another = || LeftReason::Failed {
                    problem: CHANGED_IN_COPY.to_owned(),
                };
                let from = facts
                    .open(copy, change.path.as_bytes())
                    .map_err(|_| StepError::Left(is_another()))?;
                Ok(NewContent::Copied {
                    from: from.ok_or_else(|| StepError::Left(is_another()))?,
                    facts,
                })
            }
            Node::Folder { .. } => unreachable!("only files and links are put somewhere"),
        }
    }

    fn leave(&mut self, number: usize, reason: LeftReason) {
        self.left.insert(number);
        self.outcome.leave(LeftPath {
            path: self.journal.changes[number].path.clone(),
            reason,
        });
    }
}

type StepFn<'a> = fn(&Execution<'a>, usize, &Change) -> Result<(), StepError>;

enum PathOrder {
    Deepest,
    Outermost,
}

pub(super) enum StepError {
    Left(LeftReason),
    Kernel(Errno),
    Store(Error),
}

impl From<Errno> for StepError {
    fn from(errno: Errno) -> Self {
        Self::Kernel(errno)
    }
}

pub(super) fn swapped(swapped: SwapOutcome) -> Result<(), StepError> {
    match swapped {
        SwapOutcome::Done => Ok(()),
        SwapOutcome::Changed => Err(StepError::Left(LeftReason::ChangedSince)),
        SwapOutcome::KeptAs(name) => {
            let problem = format!(
                "changed while it was being replaced; its version is kept beside it as {name}"
            );
            Err(StepError::Left(LeftReason::Failed { problem }))
        }
    }
}

fn chmod(folder: impl AsFd, name: &[u8], mode: u32) -> Result<(), Errno> {
    fchmodat(
        folder,
        name,
        Mode::from_bits_truncate(mode),
        FchmodatFlags::NoFollowSymlink,
    )
}
