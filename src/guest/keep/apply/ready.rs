//! What comes where a folder makes room for a file, or a file for a folder. The two cannot change places in one step, so it lies ready beside
//! that, complete, before anything goes: a full disk then leaves the old one as it is, and what comes after needs no room.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;

use nix::errno::Errno;

use super::run::Run;
use super::run::StepError;
use super::run::swapped;
use crate::guest::keep::compare::Change;
use crate::guest::keep::node::Node;
use crate::guest::keep::read::Found;
use crate::guest::keep::swap::Spot;
use crate::guest::root::split;

/// The changes that have to do with paths where a folder makes room for a file, or a file for a folder.
pub(super) struct Turning {
    /// Of each the number of that path's own change.
    numbers: BTreeMap<usize, usize>,
    /// The same of those that come. Beside that path each lies ready.
    coming: BTreeMap<usize, usize>,
}

impl Turning {
    pub(super) fn among(changes: &[Change]) -> Self {
        let turned: BTreeMap<&[u8], usize> = changes
            .iter()
            .enumerate()
            .filter(|(_, change)| matches!((&change.before, &change.after), (Some(before), Some(after)) if before.is_folder() != after.is_folder()))
            .map(|(number, change)| (change.path.as_bytes(), number))
            .collect();
        let mut turning = Self { numbers: BTreeMap::new(), coming: BTreeMap::new() };
        if turned.is_empty() {
            return turning;
        }
        for (number, change) in changes.iter().enumerate() {
            let above = std::iter::successors(Some(change.path.as_bytes()), |path| Some(split(path).0).filter(|path| !path.is_empty()));
            let Some(outermost) = above.filter_map(|path| turned.get(path).copied()).last() else { continue };
            turning.numbers.insert(number, outermost);
            if change.after.is_some() {
                turning.coming.insert(number, outermost);
            }
        }
        turning
    }

    pub(super) fn has(&self, number: usize) -> bool {
        self.numbers.contains_key(&number)
    }

    /// Returns what else is to go for a change.
    pub(super) fn going_for(&self, number: usize) -> Vec<usize> {
        let others = self.numbers.iter().filter(|(other, outermost)| **outermost == number && **other != number);
        others.map(|(other, _)| *other).filter(|other| !self.is_coming(*other)).collect()
    }

    pub(super) fn is_coming(&self, number: usize) -> bool {
        self.coming.contains_key(&number)
    }
}

impl Run<'_> {
    /// Opens the folder in which something lies ready, or is to.
    fn place(&self, number: usize) -> Result<OwnedFd, Errno> {
        self.project.folder(split(self.journal.changes[self.turning.coming[&number]].path.as_bytes()).0)
    }

    fn is_ready(&self, change: &Change, found: &Found) -> bool {
        match &change.after {
            Some(Node::Folder { .. }) => matches!(found, Found::Folder { .. }),
            _ => self.journal.is_after(change, found),
        }
    }

    /// Makes what comes ready, while what it takes the place of is still there.
    pub(super) fn make_ready(&self, number: usize, change: &Change) -> Result<(), StepError> {
        let Some(after) = change.after.as_ref().filter(|_| self.turning.is_coming(number)) else { return Ok(()) };
        let look = self.look(change)?;
        if self.is_ready(change, &look.found) {
            // It is in its place already.
            return Ok(());
        }
        let place = match self.place(number) {
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => return Err(StepError::Left(crate::wire::keep::LeftReason::NoFolder)),
            other => other?,
        };
        let spot = Spot::new(place.as_fd(), b"", &self.journal.token, number);
        if self.is_ready(change, &spot.ready()?) {
            return Ok(());
        }
        match after {
            Node::Folder { mode, .. } => Ok(spot.make_folder_ready(*mode)?),
            _ => Ok(spot.make_ready(&self.content(change, after)?)?),
        }
    }

    /// Puts in its place what lies ready for it, where nothing stands; `None`: nothing lies ready.
    pub(super) fn put_ready(&self, number: usize, change: &Change, folder: &OwnedFd) -> Result<Option<Result<(), StepError>>, Errno> {
        if !self.turning.is_coming(number) {
            return Ok(None);
        }
        let place = self.place(number)?;
        let ready = Spot::new(place.as_fd(), b"", &self.journal.token, number);
        if !self.is_ready(change, &ready.ready()?) {
            return Ok(None);
        }
        let spot = Spot::new(folder.as_fd(), split(change.path.as_bytes()).1, &self.journal.token, number);
        Ok(Some(swapped(spot.put_ready(&ready)?)))
    }

    /// Clears up what lies half ready.
    pub(super) fn settle_ready(&self, number: usize, change: &Change) {
        let Ok(place) = self.place(number) else { return };
        let spot = Spot::new(place.as_fd(), b"", &self.journal.token, number);
        spot.unlink_part();
        if !spot.ready().is_ok_and(|found| self.is_ready(change, &found)) {
            spot.unlink_ready();
        }
    }

    /// Puts in their places what lies ready where its old one is gone already, for one who gives up: else neither would be there.
    pub(super) fn put_all_ready(&self) {
        for &number in self.turning.coming.keys() {
            let change = &self.journal.changes[number];
            if let Ok(look) = self.look(change)
                && let (Some(folder), Found::Nothing) = (&look.folder, &look.found)
            {
                // What does not go is cleared up with the rest.
                let _ = self.put_ready(number, change, folder);
            }
        }
    }

    /// Clears up what lies ready and is not needed.
    pub(super) fn clear_ready(&self, unless_needed: bool) {
        for (&number, &outermost) in &self.turning.coming {
            let old = &self.journal.changes[outermost];
            let is_there = |found: &Found| match &old.before {
                Some(Node::Folder { .. }) => matches!(found, Found::Folder { .. }),
                _ => self.journal.is_before(old, found) && !matches!(found, Found::Nothing),
            };
            if unless_needed && !self.look(old).is_ok_and(|look| is_there(&look.found)) {
                continue;
            }
            if let Ok(place) = self.place(number) {
                Spot::new(place.as_fd(), b"", &self.journal.token, number).unlink_ready();
            }
        }
    }
}
