//! New entries where a folder is replaced by a file, or a file by a folder. They are made ready
//! beside that path, complete, before anything is removed: a full disk then leaves the old entry as
//! it is, and the rest needs no more room. Then old and new are [exchanged](super::exchange).

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::stat::Mode;
use nix::sys::stat::mkdirat;
use nix::unistd::UnlinkatFlags;
use nix::unistd::unlinkat;

use super::execution::Execution;
use super::execution::StepError;
use super::execution::swapped;
use crate::keep::compare::Change;
use crate::keep::node::Node;
use crate::keep::path_entry::NameCheck;
use crate::keep::path_entry::PathEntry;
use crate::keep::read::FoundEntry;
use crate::keep::swap::SwapOutcome;
use crate::keep::swap::SwapTarget;
use crate::keep::swap::beside;
use crate::root::join;
use crate::root::split;
use podbay_wire::keep::LeftReason;

/// The changes at and below paths where a folder is replaced by a file, or a file by a folder.
/// Below such a path, entries are either all removed or all added.
pub(super) struct TypeChanges {
    /// The number of each change, with that of the outermost path's own change.
    numbers: BTreeMap<usize, usize>,
    /// Those that add an entry.
    coming: BTreeSet<usize>,
}

impl TypeChanges {
    pub(super) fn among(changes: &[Change]) -> Self {
        let turned: BTreeMap<&[u8], usize> = changes
            .iter()
            .enumerate()
            .filter(|(_, change)| matches!((&change.before, &change.after), (Some(before), Some(after)) if before.is_folder() != after.is_folder()))
            .map(|(number, change)| (change.path.as_bytes(), number))
            .collect();
        let mut turning = Self {
            numbers: BTreeMap::new(),
            coming: BTreeSet::new(),
        };
        if turned.is_empty() {
            return turning;
        }
        for (number, change) in changes.iter().enumerate() {
            let above = std::iter::successors(Some(change.path.as_bytes()), |path| {
                Some(split(path).0).filter(|path| !path.is_empty())
            });
            let Some(outermost) = above.filter_map(|path| turned.get(path).copied()).last() else {
                continue;
            };
            turning.numbers.insert(number, outermost);
            if change.after.is_some() {
                turning.coming.insert(number);
            }
        }
        turning
    }

    pub(super) fn has(&self, number: usize) -> bool {
        self.numbers.contains_key(&number)
    }

    /// Whether this is the change of the outermost path itself.
    pub(super) fn is_outermost(&self, number: usize) -> bool {
        self.numbers.get(&number) == Some(&number)
    }

    /// Returns all changes at and below an outermost path, the outermost first.
    pub(super) fn changes_under(&self, outermost: usize) -> Vec<usize> {
        self.numbers
            .iter()
            .filter(|(_, of)| **of == outermost)
            .map(|(number, _)| *number)
            .collect()
    }

    /// Returns the entries that are removed to make room for a change.
    pub(super) fn removed_for(&self, number: usize) -> Vec<usize> {
        let others = self
            .changes_under(number)
            .into_iter()
            .filter(|other| *other != number);
        others.filter(|other| !self.is_added(*other)).collect()
    }

    pub(super) fn is_added(&self, number: usize) -> bool {
        self.coming.contains(&number)
    }
}

impl Execution<'_> {
    /// Returns where an entry is before it is put in place, or after it was removed: below the
    /// temporary name beside the outermost path.
    pub(super) fn beside(&self, number: usize) -> Vec<u8> {
        let outermost = self.turning.numbers[&number];
        let path = |number: usize| self.journal.changes[number].path.as_bytes();
        let below = &path(number)[path(outermost).len()..];
        [
            &*join(
                split(path(outermost)).0,
                beside(&self.journal.token, outermost).as_bytes(),
            ),
            below,
        ]
        .concat()
    }

    pub(super) fn look_beside(&self, number: usize) -> Result<PathEntry, Errno> {
        PathEntry::at(self.project, &self.beside(number), NameCheck::Plain)
    }

    pub(super) fn is_ready(&self, change: &Change, found: &FoundEntry) -> bool {
        match &change.after {
            Some(Node::Folder { .. }) => matches!(found, FoundEntry::Folder { .. }),
            _ => self.journal.is_after(change, found),
        }
    }

    /// Makes a new entry ready while the old one is still there.
    pub(super) fn make_ready(&self, number: usize, change: &Change) -> Result<(), StepError> {
        let Some(after) = change
            .after
            .as_ref()
            .filter(|_| self.turning.is_added(number))
        else {
            return Ok(());
        };
        let outermost = &self.journal.changes[self.turning.numbers[&number]];
        if self.is_ready(outermost, &self.look(outermost)?.found) {
            // They were exchanged before.
            return Ok(());
        }
        let look = self.look_beside(number)?;
        if self.is_ready(change, &look.found) {
            return Ok(());
        }
        let Some(folder) = &look.folder else {
            return Err(StepError::Left(LeftReason::NoFolder));
        };
        let path = self.beside(number);
        let name = split(&path).1;
        let is_folder = matches!(look.found, FoundEntry::Folder { .. });
        if is_folder || after.is_folder() && !matches!(look.found, FoundEntry::Nothing) {
            return swapped(SwapOutcome::KeptAs(
                String::from_utf8_lossy(name).into_owned(),
            ));
        }
        if let Node::Folder { mode, .. } = after {
            return Ok(mkdirat(
                folder,
                name,
                Mode::from_bits_truncate(mode | 0o700),
            )?);
        }
        // One that exists is ours as well; its content was lost in a power failure.
        let spot = SwapTarget::new(folder.as_fd(), name, &self.journal.token, number);
        Ok(spot.make_whole(&self.content(change, after)?)?)
    }

    /// Moves a ready entry to its place where nothing exists there; `None`: none is ready.
    pub(super) fn put_ready(
        &self,
        number: usize,
        change: &Change,
        folder: &OwnedFd,
    ) -> Result<Option<Result<(), StepError>>, Errno> {
        if !self.turning.is_outermost(number)
            || !self.is_ready(change, &self.look_beside(number)?.found)
        {
            return Ok(None);
        }
        let spot = SwapTarget::new(
            folder.as_fd(),
            split(change.path.as_bytes()).1,
            &self.journal.token,
            number,
        );
        Ok(Some(swapped(spot.put_ready()?)))
    }

    /// Moves all ready entries to their places whose old entry is gone. Used when an application is
    /// given up, since otherwise neither would be there.
    pub(super) fn put_all_ready(&self) {
        for number in self.outermost_paths() {
            let change = &self.journal.changes[number];
            if let Ok(look) = self.look(change)
                && let (Some(folder), FoundEntry::Nothing) = (&look.folder, &look.found)
            {
                // What cannot be moved is removed with the rest.
                let _ = self.put_ready(number, change, folder);
            }
        }
    }

    /// Removes ready entries that are not needed.
    pub(super) fn clear_ready(&self, unless_needed: bool) {
        for outermost in self.outermost_paths() {
            let old = &self.journal.changes[outermost];
            if unless_needed
                && !self
                    .look(old)
                    .is_ok_and(|look| self.is_old(old, &look.found))
            {
                continue;
            }
            for number in self
                .turning
                .changes_under(outermost)
                .into_iter()
                .rev()
                .filter(|number| self.turning.is_added(*number))
            {
                self.unlink_ready(number);
            }
        }
    }

    /// Removes a ready entry, unless another program changed it.
    fn unlink_ready(&self, number: usize) {
        let Ok(PathEntry {
            folder: Some(folder),
            found,
        }) = self.look_beside(number)
        else {
            return;
        };
        let path = self.beside(number);
        let name = split(&path).1;
        SwapTarget::new(folder.as_fd(), name, &self.journal.token, number).unlink_part();
        let change = &self.journal.changes[number];
        if self.is_ready(change, &found) {
            let is_folder = matches!(found, FoundEntry::Folder { .. });
            let _ = unlinkat(
                &folder,
                name,
                if is_folder {
                    UnlinkatFlags::RemoveDir
                } else {
                    UnlinkatFlags::NoRemoveDir
                },
            );
        }
    }

    fn outermost_paths(&self) -> Vec<usize> {
        self.turning
            .numbers
            .iter()
            .filter(|(number, of)| number == of)
            .map(|(number, _)| *number)
            .collect()
    }
}
