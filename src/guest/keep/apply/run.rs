//! What is written down, done path by path.

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
use super::ready::Turning;
use crate::keep::Error;
use crate::keep::Store;
use crate::keep::compare::Change;
use crate::keep::journal::Journal;
use crate::keep::look::Look;
use crate::keep::look::Name;
use crate::keep::node::Node;
use crate::keep::node::are_alike;
use crate::keep::plan::CHANGED_IN_COPY;
use crate::keep::plan::Outcome;
use crate::keep::project::Project;
use crate::keep::read::Found;
use crate::keep::swap::Content;
use crate::keep::swap::Spot;
use crate::keep::swap::Swapped;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::Left;
use podbay_wire::keep::LeftReason;

/// Why nothing more can be done for any path.
pub(super) enum Stop {
    Full(Errno),
    Failed(Error),
}

pub(super) struct Run<'a> {
    pub(super) project: &'a Project,
    /// Where contents come from that no store holds.
    copy: Option<&'a Project>,
    /// Where contents come from; nobody who gives up needs one.
    store: Option<&'a Store>,
    pub(super) journal: &'a Journal,
    pub(super) turning: Turning,
    pub(super) outcome: Outcome,
    /// Changes that were left, by their numbers.
    left: HashSet<usize>,
}

impl<'a> Run<'a> {
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
            turning: Turning::among(&journal.changes),
            outcome,
            left: HashSet::new(),
        }
    }

    pub(super) fn all(&mut self) -> Result<(), Stop> {
        let last = self.journal.changes.len();
        let backward = || (0..last).rev();
        for (step, order, is_before_any_goes) in [
            (Self::remove_plain as Step<'a>, Order::Deepest, false),
            (Self::make_ready, Order::Outermost, true),
            (Self::change_places, Order::Outermost, true),
            (Self::remove_turning, Order::Deepest, false),
            (Self::remove_folder, Order::Deepest, false),
            (Self::make_folder, Order::Outermost, false),
            (Self::put, Order::Outermost, false),
            (Self::set_mode, Order::Deepest, false),
        ] {
            let mut each = |number: usize| -> Result<(), Stop> {
                if self.left.contains(&number) {
                    return Ok(());
                }
                let reason = match step(self, number, &self.journal.changes[number]) {
                    Ok(()) => return Ok(()),
                    Err(StepError::Left(reason)) => reason,
                    Err(StepError::Kernel(
                        errno @ (Errno::ENOSPC | Errno::EDQUOT | Errno::EROFS | Errno::EIO),
                    )) => {
                        return Err(Stop::Full(errno));
                    }
                    Err(StepError::Kernel(errno)) => LeftReason::Failed {
                        problem: errno.desc().to_owned(),
                    },
                    Err(StepError::Store(error)) => return Err(Stop::Failed(error)),
                };
                // What is in a folder does not go for a file that does not come, whatever the
                // reason.
                for other in if is_before_any_goes {
                    self.turning.going_for(number)
                } else {
                    Vec::new()
                } {
                    self.leave(other, reason.clone());
                }
                self.leave(number, reason);
                Ok(())
            };
            let done = match order {
                Order::Deepest => backward().try_for_each(&mut each),
                Order::Outermost => (0..last).try_for_each(&mut each),
            };
            if done.is_err() {
                self.clear_ready(true);
            }
            done?;
        }
        self.clear_ready(false);
        let done = (0..last).filter(|number| !self.left.contains(number));
        super::tell(
            &mut self.outcome,
            done.map(|number| &self.journal.changes[number]),
        );
        Ok(())
    }

    /// What goes without making room for anything goes first: what is made ready after that may
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

    /// A file or link goes, also where a folder comes.
    fn remove(&self, number: usize, change: &Change) -> Result<(), StepError> {
        let is_removed = change.after.as_ref().is_none_or(Node::is_folder);
        if !is_removed || change.before.as_ref().is_none_or(Node::is_folder) {
            return Ok(());
        }
        let look = self.look(change)?;
        let here = look.found.node();
        // The folder that a file makes room for may be there already.
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
        let spot = Spot::new(
            folder.as_fd(),
            split(change.path.as_bytes()).1,
            &self.journal.token,
            number,
        );
        swapped(spot.remove(stat)?)
    }

    /// A folder goes, also where a file comes.
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

    /// A file or link comes, or takes the place of another one.
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
        // A folder was removed before.
        if !self.journal.is_before(change, &look.found) {
            return Err(StepError::Left(LeftReason::ChangedSince));
        }
        if let Some(done) = self.put_ready(number, change, folder)? {
            return done;
        }
        let spot = Spot::new(
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

    /// Folders that were made, or have another mode.
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
        // One that was opened has the bits for that, too.
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

    /// Clears up what lies beside its place, and closes what was opened for it.
    pub(super) fn clear_up(&mut self) {
        self.open_folders();
        self.settle();
        self.put_all_ready();
        self.clear_ready(false);
        self.close_folders(false);
    }

    pub(super) fn open_folders(&mut self) {
        for (path, mode) in &self.journal.opened {
            // A file may have taken its place already. What cannot be opened is told where
            // something is to be changed in it.
            if Look::at(self.project, path.as_bytes(), Name::Plain)
                .is_ok_and(|look| matches!(look.found, Found::Folder { .. }))
            {
                let _ = self.chmod_folder(path, mode | 0o700);
            }
        }
    }

    /// Gives the folders that were opened their modes back; where all is done, some of them have a
    /// new one.
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
            let look = Look::at(self.project, path.as_bytes(), Name::Plain);
            let is_open = look.is_ok_and(|look| matches!(look.found, Found::Folder { stat } if stat.st_mode & 0o7777 == mode | 0o700));
            if is_open && !has_new_mode {
                let _ = self.chmod_folder(path, *mode);
            }
        }
    }

    /// Clears up what lies beside its place.
    pub(super) fn settle(&mut self) {
        for (number, change) in self.journal.changes.iter().enumerate() {
            let is_coming = self.turning.is_coming(number);
            if self.turning.is_outermost(number)
                && let Err(StepError::Left(reason)) = self.settle_turning(number, change)
            {
                if reason == LeftReason::ChangedSince {
                    // It is back in its place.
                    for other in self.turning.going_for(number) {
                        self.leave(other, reason.clone());
                    }
                }
                self.leave(number, reason);
            }
            let (parent, name) = split(change.path.as_bytes());
            let Ok(folder) = self.project.folder(parent) else {
                continue;
            };
            let spot = Spot::new(folder.as_fd(), name, &self.journal.token, number);
            let (is_from, is_to) = (
                |found: &Found| self.journal.is_before(change, found),
                |found: &Found| self.journal.is_after(change, found),
            );
            // What lies ready may be the only one there is.
            let settled = if is_coming {
                spot.settle_removed(is_from)
            } else {
                spot.settle(is_from, is_to)
            };
            if let Ok(settled @ Swapped::KeptAs(_)) = settled
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

    pub(super) fn look(&self, change: &Change) -> Result<Look, Errno> {
        let kind = if self.journal.ambiguous.contains(&change.path) {
            Name::Ambiguous
        } else {
            Name::Plain
        };
        Look::at(self.project, change.path.as_bytes(), kind)
    }

    pub(super) fn content(&self, change: &Change, node: &Node) -> Result<Content, StepError> {
        match node {
            Node::File { mode, object, .. } => {
                let store = self
                    .store
                    .expect("contents are asked for where there is a store");
                let is_flushed = self.journal.changes.len() <= MANY;
                Ok(Content::File {
                    content: store.get(object).map_err(StepError::Store)?,
                    mode: *mode,
                    is_flushed,
                })
            }
            Node::Link { target } => Ok(Content::Link {
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
                Ok(Content::Copied {
                    from: from.ok_or_else(|| StepError::Left(is_another()))?,
                    facts,
                })
            }
            Node::Folder { .. } => unreachable!("only files and links are put somewhere"),
        }
    }

    fn leave(&mut self, number: usize, reason: LeftReason) {
        self.left.insert(number);
        self.outcome.leave(Left {
            path: self.journal.changes[number].path.clone(),
            reason,
        });
    }
}

type Step<'a> = fn(&Run<'a>, usize, &Change) -> Result<(), StepError>;

enum Order {
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

pub(super) fn swapped(swapped: Swapped) -> Result<(), StepError> {
    match swapped {
        Swapped::Done => Ok(()),
        Swapped::Changed => Err(StepError::Left(LeftReason::ChangedSince)),
        Swapped::KeptAs(name) => {
            let problem = format!(
                "was changed at the very moment it was replaced, and is kept beside it as {name}"
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
