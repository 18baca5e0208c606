//! What comes where a folder makes room for a file, or a file for a folder. It lies ready beside
//! that, complete, before anything goes: a full disk then leaves the old one as it is, and what
//! comes after needs no room. Then the two [change places](super::turn).

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::stat::Mode;
use nix::sys::stat::mkdirat;
use nix::unistd::UnlinkatFlags;
use nix::unistd::unlinkat;

use super::run::Run;
use super::run::StepError;
use super::run::swapped;
use crate::keep::compare::Change;
use crate::keep::look::Look;
use crate::keep::look::Name;
use crate::keep::node::Node;
use crate::keep::read::Found;
use crate::keep::swap::Spot;
use crate::keep::swap::Swapped;
use crate::keep::swap::beside;
use crate::root::join;
use crate::root::split;
use podbay_wire::keep::LeftReason;

/// The changes that have to do with paths where a folder makes room for a file, or a file for a
/// folder. Under such a path things either all go or all come.
pub(super) struct Turning {
    /// Of each the number of that path's own change.
    numbers: BTreeMap<usize, usize>,
    /// Those of them that come.
    coming: BTreeSet<usize>,
}

impl Turning {
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

    /// Whether it is the change of such a path itself.
    pub(super) fn is_outermost(&self, number: usize) -> bool {
        self.numbers.get(&number) == Some(&number)
    }

    /// Returns all that has to do with such a path, the outermost first.
    pub(super) fn under(&self, outermost: usize) -> Vec<usize> {
        self.numbers
            .iter()
            .filter(|(_, of)| **of == outermost)
            .map(|(number, _)| *number)
            .collect()
    }

    /// Returns what else is to go for a change.
    pub(super) fn going_for(&self, number: usize) -> Vec<usize> {
        let others = self
            .under(number)
            .into_iter()
            .filter(|other| *other != number);
        others.filter(|other| !self.is_coming(*other)).collect()
    }

    pub(super) fn is_coming(&self, number: usize) -> bool {
        self.coming.contains(&number)
    }
}

impl Run<'_> {
    /// Returns where something lies before it comes, or after it went: under the name beside the
    /// path that turns.
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

    pub(super) fn look_beside(&self, number: usize) -> Result<Look, Errno> {
        Look::at(self.project, &self.beside(number), Name::Plain)
    }

    pub(super) fn is_ready(&self, change: &Change, found: &Found) -> bool {
        match &change.after {
            Some(Node::Folder { .. }) => matches!(found, Found::Folder { .. }),
            _ => self.journal.is_after(change, found),
        }
    }

    /// Makes what comes ready, while what it takes the place of is still there.
    pub(super) fn make_ready(&self, number: usize, change: &Change) -> Result<(), StepError> {
        let Some(after) = change
            .after
            .as_ref()
            .filter(|_| self.turning.is_coming(number))
        else {
            return Ok(());
        };
        let outermost = &self.journal.changes[self.turning.numbers[&number]];
        if self.is_ready(outermost, &self.look(outermost)?.found) {
            // They have changed places already.
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
        let is_folder = matches!(look.found, Found::Folder { .. });
        if is_folder || after.is_folder() && !matches!(look.found, Found::Nothing) {
            return swapped(Swapped::KeptAs(String::from_utf8_lossy(name).into_owned()));
        }
        if let Node::Folder { mode, .. } = after {
            return Ok(mkdirat(
                folder,
                name,
                Mode::from_bits_truncate(mode | 0o700),
            )?);
        }
        // One that is there already is ours as well, and the disk lost what is in it.
        let spot = Spot::new(folder.as_fd(), name, &self.journal.token, number);
        Ok(spot.make_whole(&self.content(change, after)?)?)
    }

    /// Puts in its place what lies ready for it, where nothing stands; `None`: nothing lies ready.
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
        let spot = Spot::new(
            folder.as_fd(),
            split(change.path.as_bytes()).1,
            &self.journal.token,
            number,
        );
        Ok(Some(swapped(spot.put_ready()?)))
    }

    /// Puts in their places what lies ready where its old one is gone already, for one who gives
    /// up: else neither would be there.
    pub(super) fn put_all_ready(&self) {
        for number in self.outermosts() {
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
        for outermost in self.outermosts() {
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
                .under(outermost)
                .into_iter()
                .rev()
                .filter(|number| self.turning.is_coming(*number))
            {
                self.unlink_ready(number);
            }
        }
    }

    /// Removes what was made ready; what somebody changed meanwhile stays.
    fn unlink_ready(&self, number: usize) {
        let Ok(Look {
            folder: Some(folder),
            found,
        }) = self.look_beside(number)
        else {
            return;
        };
        let path = self.beside(number);
        let name = split(&path).1;
        Spot::new(folder.as_fd(), name, &self.journal.token, number).unlink_part();
        let change = &self.journal.changes[number];
        if self.is_ready(change, &found) {
            let is_folder = matches!(found, Found::Folder { .. });
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

    fn outermosts(&self) -> Vec<usize> {
        self.turning
            .numbers
            .iter()
            .filter(|(number, of)| number == of)
            .map(|(number, _)| *number)
            .collect()
    }
}
