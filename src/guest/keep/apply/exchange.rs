//! Exchanges a folder and a file in one step of the file system: after a kill at any moment, one of
//! them is there, complete. The old entry is removed at its temporary place, after a check that it
//! is what was expected; otherwise the two are exchanged back.
//!
//! Some file systems do not support the exchange. There the old entry is removed in its place and
//! the new one renamed right after that; in between neither is there.

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::unistd::UnlinkatFlags;
use nix::unistd::unlinkat;

use super::execution::Execution;
use super::execution::StepError;
use super::execution::swapped;
use crate::keep::compare::Change;
use crate::keep::node::Node;
use crate::keep::path_entry::NameCheck;
use crate::keep::path_entry::PathEntry;
use crate::keep::plan::names;
use crate::keep::read::FoundEntry;
use crate::keep::swap::SwapOutcome;
use crate::keep::swap::SwapTarget;
use crate::root::split;
use podbay_wire::keep::LeftReason;

impl Execution<'_> {
    /// Exchanges the old entry with the ready one.
    pub(super) fn change_places(&self, number: usize, change: &Change) -> Result<(), StepError> {
        if !self.turning.is_outermost(number) {
            return Ok(());
        }
        let look = self.look(change)?;
        let (Some(folder), Some(stat)) = (&look.folder, look.found.stat()) else {
            return Ok(());
        };
        // Entries that are done, and those of other programs, are handled by the steps after this
        // one.
        if !self.is_old(change, &look.found)
            || !self.is_ready(change, &self.look_beside(number)?.found)
        {
            return Ok(());
        }
        if let Some(reason) = self.difference_of_old(number, change.path.as_bytes())? {
            return Err(StepError::Left(reason));
        }
        let spot = SwapTarget::new(
            folder.as_fd(),
            split(change.path.as_bytes()).1,
            &self.journal.token,
            number,
        );
        match spot.change_places() {
            // It disappeared, or the file system does not support the exchange.
            Err(Errno::ENOENT | Errno::EINVAL | Errno::ENOSYS | Errno::EXDEV) => return Ok(()),
            other => other?,
        }
        let is_same = matches!(look.found, FoundEntry::Folder { .. }) || spot.is_beside(stat);
        match self.difference_of_old(number, &self.beside(number)) {
            Ok(None) if is_same => self.remove_old(number),
            _ => swapped(self.change_back(number, &spot)),
        }
    }

    /// Cleans up beside a path that changes its type, wherever the application was killed.
    pub(super) fn settle_turning(&self, number: usize, change: &Change) -> Result<(), StepError> {
        for number in self.turning.changes_under(number) {
            let beside = self.beside(number);
            if let Ok(folder) = self.project.folder(split(&beside).0) {
                SwapTarget::new(
                    folder.as_fd(),
                    split(&beside).1,
                    &self.journal.token,
                    number,
                )
                .unlink_part();
            }
        }
        let look = self.look_beside(number)?;
        let Some(folder) = &look.folder else {
            return Ok(());
        };
        let spot = SwapTarget::new(
            folder.as_fd(),
            split(change.path.as_bytes()).1,
            &self.journal.token,
            number,
        );
        let was_folder = change.before.as_ref().is_some_and(Node::is_folder);
        match look.found {
            FoundEntry::Folder { .. } if was_folder => {
                let under = self.turning.changes_under(number);
                let mut is_whole = under.iter().map(|number| {
                    self.look_beside(*number)
                        .is_ok_and(|look| !matches!(look.found, FoundEntry::Nothing))
                });
                if is_whole.all(|is_there| is_there)
                    && self
                        .difference_of_old(number, &self.beside(number))?
                        .is_some()
                {
                    return swapped(self.change_back(number, &spot));
                }
                self.remove_old(number)
            }
            // A folder may be all that is left of that path.
            FoundEntry::Nothing | FoundEntry::Folder { .. } => Ok(()),
            found if self.is_ready(change, &found) => Ok(()),
            found if !was_folder && self.journal.is_before(change, &found) => {
                self.remove_old(number)
            }
            // Its content was lost in a power failure.
            FoundEntry::File { .. }
                if was_folder && self.is_old(change, &self.look(change)?.found) =>
            {
                Ok(unlinkat(
                    folder,
                    &*self.name_beside(number),
                    UnlinkatFlags::NoRemoveDir,
                )?)
            }
            // They were exchanged at the very moment when another program wrote a file there.
            _ if self.is_ready(change, &self.look(change)?.found) => {
                swapped(self.change_back(number, &spot))
            }
            _ => swapped(SwapOutcome::KeptAs(self.name_beside(number))),
        }
    }

    /// Whether it is the state before the change; for a folder, only that it is one.
    pub(super) fn is_old(&self, change: &Change, found: &FoundEntry) -> bool {
        match &change.before {
            Some(Node::Folder { .. }) => matches!(found, FoundEntry::Folder { .. }),
            _ => self.journal.is_before(change, found) && !matches!(found, FoundEntry::Nothing),
        }
    }

    /// Returns how the old entry at `root` differs from the expected one, or holds entries that are
    /// not to be removed. Missing entries are fine.
    fn difference_of_old(&self, number: usize, root: &[u8]) -> Result<Option<LeftReason>, Errno> {
        let n_above = self.journal.changes[number].path.as_bytes().len();
        let under = self.turning.changes_under(number);
        let below = |number: &usize| &self.journal.changes[*number].path.as_bytes()[n_above..];
        let known: BTreeSet<&[u8]> = under.iter().map(below).collect();
        for number in &under {
            let change = &self.journal.changes[*number];
            let path = [root, below(number)].concat();
            if !change.before.as_ref().is_some_and(Node::is_folder) {
                let found = PathEntry::at(self.project, &path, NameCheck::Plain)?.found;
                if !matches!(found, FoundEntry::Nothing) && !self.journal.is_before(change, &found)
                {
                    return Ok(Some(LeftReason::ChangedSince));
                }
                continue;
            }
            let listed = match self.project.list(&path).and_then(names) {
                Err(Errno::ENOENT) => continue,
                Err(Errno::ENOTDIR | Errno::ELOOP) => return Ok(Some(LeftReason::ChangedSince)),
                other => other?,
            };
            if listed
                .iter()
                .any(|name| !known.contains([below(number), b"/", name].concat().as_slice()))
            {
                return Ok(Some(LeftReason::NotEmpty));
            }
        }
        Ok(None)
    }

    /// Removes the old entry beside its path; what is not as expected stays there.
    fn remove_old(&self, number: usize) -> Result<(), StepError> {
        let mut is_kept = false;
        for number in self.turning.changes_under(number).into_iter().rev() {
            let change = &self.journal.changes[number];
            let path = self.beside(number);
            let look = self.look_beside(number)?;
            let (Some(folder), Some(_)) = (&look.folder, look.found.stat()) else {
                continue;
            };
            let kind = match change.before {
                Some(Node::Folder { .. }) => UnlinkatFlags::RemoveDir,
                _ => UnlinkatFlags::NoRemoveDir,
            };
            is_kept |= !self.is_old(change, &look.found)
                || !matches!(
                    unlinkat(folder, split(&path).1, kind),
                    Ok(()) | Err(Errno::ENOENT)
                );
        }
        swapped(if is_kept {
            SwapOutcome::KeptAs(self.name_beside(number))
        } else {
            SwapOutcome::Done
        })
    }

    /// Exchanges an unexpected entry back to its place.
    fn change_back(&self, number: usize, spot: &SwapTarget<'_>) -> SwapOutcome {
        let is_back = match spot.change_places() {
            // The entry that replaced it was removed there.
            Err(Errno::ENOENT) => matches!(spot.put_ready(), Ok(SwapOutcome::Done)),
            other => other.is_ok(),
        };
        if is_back {
            SwapOutcome::Changed
        } else {
            SwapOutcome::KeptAs(self.name_beside(number))
        }
    }

    fn name_beside(&self, number: usize) -> String {
        String::from_utf8_lossy(split(&self.beside(number)).1).into_owned()
    }
}
