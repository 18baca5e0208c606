//! A folder and a file change places, in one step of the file system: whenever that is killed, one
//! of them is there, whole. What went is removed where it then lies, beside the place, once it is
//! known to be what was expected; else the two change places again.
//!
//! Some file systems know no such step. There the old one is removed in its place, and the new one
//! gets its name right after that: in between neither is there.

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::unistd::UnlinkatFlags;
use nix::unistd::unlinkat;

use super::run::Run;
use super::run::StepError;
use super::run::swapped;
use crate::keep::compare::Change;
use crate::keep::look::Look;
use crate::keep::look::Name;
use crate::keep::node::Node;
use crate::keep::plan::names;
use crate::keep::read::Found;
use crate::keep::swap::Spot;
use crate::keep::swap::Swapped;
use crate::root::split;
use podbay_wire::keep::LeftReason;

impl Run<'_> {
    /// Lets the old one and what lies ready for its path change places.
    pub(super) fn change_places(&self, number: usize, change: &Change) -> Result<(), StepError> {
        if !self.turning.is_outermost(number) {
            return Ok(());
        }
        let look = self.look(change)?;
        let (Some(folder), Some(stat)) = (&look.folder, look.found.stat()) else {
            return Ok(());
        };
        // What is done already, and what is somebody else's, is the matter of the steps after this
        // one.
        if !self.is_old(change, &look.found)
            || !self.is_ready(change, &self.look_beside(number)?.found)
        {
            return Ok(());
        }
        if let Some(reason) = self.is_another(number, change.path.as_bytes())? {
            return Err(StepError::Left(reason));
        }
        let spot = Spot::new(
            folder.as_fd(),
            split(change.path.as_bytes()).1,
            &self.journal.token,
            number,
        );
        match spot.change_places() {
            // It went meanwhile, or the file system knows no such step.
            Err(Errno::ENOENT | Errno::EINVAL | Errno::ENOSYS | Errno::EXDEV) => return Ok(()),
            other => other?,
        }
        let is_same = matches!(look.found, Found::Folder { .. }) || spot.is_beside(stat);
        match self.is_another(number, &self.beside(number)) {
            Ok(None) if is_same => self.remove_old(number),
            _ => swapped(self.change_back(number, &spot)),
        }
    }

    /// Clears up what lies beside a path that turns, however far somebody came who was killed.
    pub(super) fn settle_turning(&self, number: usize, change: &Change) -> Result<(), StepError> {
        for number in self.turning.under(number) {
            let beside = self.beside(number);
            if let Ok(folder) = self.project.folder(split(&beside).0) {
                Spot::new(
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
        let spot = Spot::new(
            folder.as_fd(),
            split(change.path.as_bytes()).1,
            &self.journal.token,
            number,
        );
        let was_folder = change.before.as_ref().is_some_and(Node::is_folder);
        match look.found {
            Found::Folder { .. } if was_folder => {
                let under = self.turning.under(number);
                let mut is_whole = under.iter().map(|number| {
                    self.look_beside(*number)
                        .is_ok_and(|look| !matches!(look.found, Found::Nothing))
                });
                if is_whole.all(|is_there| is_there)
                    && self.is_another(number, &self.beside(number))?.is_some()
                {
                    return swapped(self.change_back(number, &spot));
                }
                self.remove_old(number)
            }
            // A folder may be all there is of that path.
            Found::Nothing | Found::Folder { .. } => Ok(()),
            found if self.is_ready(change, &found) => Ok(()),
            found if !was_folder && self.journal.is_before(change, &found) => {
                self.remove_old(number)
            }
            // The disk lost what is in it.
            Found::File { .. } if was_folder && self.is_old(change, &self.look(change)?.found) => {
                Ok(unlinkat(
                    folder,
                    &*self.name_beside(number),
                    UnlinkatFlags::NoRemoveDir,
                )?)
            }
            // They changed places in the very moment in which somebody put another file there.
            _ if self.is_ready(change, &self.look(change)?.found) => {
                swapped(self.change_back(number, &spot))
            }
            _ => swapped(Swapped::KeptAs(self.name_beside(number))),
        }
    }

    /// Whether it is what a path that turns begins with; of a folder, that it is one.
    pub(super) fn is_old(&self, change: &Change, found: &Found) -> bool {
        match &change.before {
            Some(Node::Folder { .. }) => matches!(found, Found::Folder { .. }),
            _ => self.journal.is_before(change, found) && !matches!(found, Found::Nothing),
        }
    }

    /// Returns in what way the old one is not as expected, or holds anything that is not to go; it
    /// lies at `root`. What is gone is gone.
    fn is_another(&self, number: usize, root: &[u8]) -> Result<Option<LeftReason>, Errno> {
        let n_above = self.journal.changes[number].path.as_bytes().len();
        let under = self.turning.under(number);
        let below = |number: &usize| &self.journal.changes[*number].path.as_bytes()[n_above..];
        let known: BTreeSet<&[u8]> = under.iter().map(below).collect();
        for number in &under {
            let change = &self.journal.changes[*number];
            let path = [root, below(number)].concat();
            if !change.before.as_ref().is_some_and(Node::is_folder) {
                let found = Look::at(self.project, &path, Name::Plain)?.found;
                if !matches!(found, Found::Nothing) && !self.journal.is_before(change, &found) {
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

    /// Removes what went, where it lies beside its path; what is not as expected stays there.
    fn remove_old(&self, number: usize) -> Result<(), StepError> {
        let mut is_kept = false;
        for number in self.turning.under(number).into_iter().rev() {
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
            Swapped::KeptAs(self.name_beside(number))
        } else {
            Swapped::Done
        })
    }

    /// Gives what stood at a path its place back, since it is not what was expected.
    fn change_back(&self, number: usize, spot: &Spot<'_>) -> Swapped {
        let is_back = match spot.change_places() {
            // What took its place was taken away from there.
            Err(Errno::ENOENT) => matches!(spot.put_ready(), Ok(Swapped::Done)),
            other => other.is_ok(),
        };
        if is_back {
            Swapped::Changed
        } else {
            Swapped::KeptAs(self.name_beside(number))
        }
    }

    fn name_beside(&self, number: usize) -> String {
        String::from_utf8_lossy(split(&self.beside(number)).1).into_owned()
    }
}
