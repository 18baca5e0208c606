//! What a session changed in a copy that is laid over the project, found without a look at all the rest.
//!
//! The kernel puts what is changed into a layer of its own, and what is removed as a mark there. So only folders that the layer has too are looked
//! into; all else is as it was when the session began, whatever the person has done to it meanwhile. What the kernel notes beside that (a
//! folder that hides what is below, or that stands for one of another name) cannot be read without a privilege, so it is told from what is seen:
//! what shows through from the project is the very file that stands there, by its number.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::FileStat;
use nix::sys::stat::SFlag;
use nix::sys::stat::UtimensatFlags;
use nix::sys::stat::fstatat;
use nix::sys::stat::utimensat;
use nix::sys::time::TimeSpec;

use super::Error;
use super::node::Node;
use super::object::ObjectId;
use super::project::Project;
use super::store::Store;
use super::tree::Tree;
use super::walk::Enter;
use super::walk::Place;
use super::walk::Visited;
use super::walk::Walked;
use crate::root::file_type;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;

/// Entries that are looked at to find out where a folder shows through from.
const MOST_LOOKED_AT: u32 = 4_000;

/// A copy of a project that is laid over it.
pub(super) struct Layer<'a> {
    pub(super) project: &'a Project,
    pub(super) copy: &'a Project,
    /// The session's own.
    pub(super) upper: &'a Project,
    /// How the project was.
    base: ObjectId,
    /// Of that, the folders that were asked for.
    trees: Mutex<HashMap<Vec<u8>, Option<Arc<Tree>>>>,
    /// What stands under another name than in the project, and is nowhere else.
    moved: Mutex<Vec<Vec<u8>>>,
}

/// What the layer has at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Own {
    Nothing,
    /// The mark of something removed.
    Removed,
    Folder,
    Other,
}

/// Whose a file of the copy is.
pub(super) enum Shown {
    /// The session's.
    Own,
    /// It shows through: what was there when the session began, if something was.
    Through(Option<Visited>),
}

/// The folder of the project and the one of the layer that belong to that of the copy which is just looked into.
#[derive(Default)]
pub(super) struct Beside {
    path: Option<Vec<u8>>,
    project: Option<OwnedFd>,
    upper: Option<OwnedFd>,
}

impl<'a> Layer<'a> {
    pub(super) fn new(project: &'a Project, copy: &'a Project, upper: &'a Project, base: ObjectId) -> Self {
        Self { project, copy, upper, base, trees: Mutex::default(), moved: Mutex::default() }
    }

    pub(super) fn enter(&self, store: &Store, path: &[u8]) -> Result<Enter, Error> {
        if self.own(path) == Own::Folder {
            return Ok(Enter::Walk);
        }
        if !self.shows_through(path) {
            self.note_moved(path.to_vec());
            return Ok(Enter::Walk);
        }
        Ok(self.node(store, path)?.map_or(Enter::Pass, Enter::Known))
    }

    /// Returns whose a file is.
    pub(super) fn visit(&self, store: &Store, beside: &mut Beside, place: &Place<'_>, stat: &FileStat) -> Result<Shown, Error> {
        if beside.path.as_deref() != Some(place.path) {
            let open = |project: &Project| project.folder(place.path).ok();
            *beside = Beside { path: Some(place.path.to_vec()), project: open(self.project), upper: open(self.upper) };
        }
        let number = |folder: &Option<OwnedFd>| {
            let stat = fstatat(folder.as_ref()?, place.name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
            Some(stat.st_ino)
        };
        if number(&beside.upper).is_some() {
            return Ok(Shown::Own);
        }
        if number(&beside.project) != Some(stat.st_ino) {
            self.note_moved(join(place.path, place.name));
            return Ok(Shown::Own);
        }
        let node = self.node(store, &join(place.path, place.name))?;
        Ok(Shown::Through(node.map(|node| Visited { node, known: None })))
    }

    /// Adds what the person removed meanwhile, which the session has not.
    pub(super) fn complete(&self, store: &Store, folders: &mut HashMap<Vec<u8>, Walked>) -> Result<(), Error> {
        for (path, walked) in folders {
            let Some(before) = self.tree(store, path)? else { continue };
            let there: BTreeSet<&[u8]> =
                walked.entries.iter().map(|(name, _)| name.as_slice()).chain(walked.folders.iter().map(Vec::as_slice)).collect();
            let is_missing = |(name, _): &&(Vec<u8>, Node)| !there.contains(name.as_slice());
            let removed_by_person = |(name, _): &&(Vec<u8>, Node)| {
                let path = join(path, name);
                self.own(&path) == Own::Nothing && look(self.project, &path).is_none()
            };
            let missing: Vec<_> = before.0.iter().filter(is_missing).filter(removed_by_person).cloned().collect();
            walked.entries.extend(missing.into_iter().map(|(name, node)| (name, Visited { node, known: None })));
        }
        Ok(())
    }

    fn note_moved(&self, path: Vec<u8>) {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }

    /// Has the kernel copy what stands under another name than in the project: it would be gone as soon as it is gone there.
    pub(super) fn copy_moved(&self) -> Result<(), Error> {
        let mut moved = std::mem::take(&mut *self.moved.lock().unwrap_or_else(PoisonError::into_inner));
        moved.sort_unstable();
        moved.iter().try_for_each(|path| copy_up(self.copy, path))
    }

    fn own(&self, path: &[u8]) -> Own {
        match look(self.upper, path) {
            None => Own::Nothing,
            Some(stat) if file_type(&stat) == SFlag::S_IFDIR => Own::Folder,
            Some(stat) if file_type(&stat) == SFlag::S_IFCHR && stat.st_rdev == 0 => Own::Removed,
            Some(_) => Own::Other,
        }
    }

    /// Whether a folder of which the layer has nothing is that of the project with the same path. All that is in it comes from one place, so that one
    /// file tells.
    fn shows_through(&self, path: &[u8]) -> bool {
        let mut n_looked_at = 0;
        let mut waiting = vec![path.to_vec()];
        while let Some(path) = waiting.pop() {
            let (Ok(copy), Ok(project)) = (self.copy.list(&path), self.project.folder(&path)) else { return false };
            let Ok(mut listed) = copy.try_clone().map_err(|_| ()).and_then(|copy| Dir::from_fd(copy).map_err(|_| ())) else { return false };
            for entry in listed.iter().filter_map(Result::ok) {
                let name = entry.file_name().to_bytes();
                if matches!(name, b"." | b"..") {
                    continue;
                }
                n_looked_at += 1;
                if n_looked_at > MOST_LOOKED_AT {
                    return false;
                }
                let Ok(here) = fstatat(&copy, name, AtFlags::AT_SYMLINK_NOFOLLOW) else { return false };
                if file_type(&here) == SFlag::S_IFDIR {
                    waiting.push(join(&path, name));
                } else {
                    return fstatat(&project, name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok_and(|there| there.st_ino == here.st_ino);
                }
            }
        }
        true
    }

    /// Returns what stood at a path.
    fn node(&self, store: &Store, path: &[u8]) -> Result<Option<Node>, Error> {
        let (parent, name) = split(path);
        let Some(tree) = self.tree(store, parent)? else { return Ok(None) };
        Ok(tree.0.binary_search_by(|(other, _)| other.as_slice().cmp(name)).ok().map(|at| tree.0[at].1.clone()))
    }

    /// Returns the folder that was at a path.
    fn tree(&self, store: &Store, path: &[u8]) -> Result<Option<Arc<Tree>>, Error> {
        if let Some(tree) = self.trees.lock().unwrap_or_else(PoisonError::into_inner).get(path) {
            return Ok(tree.clone());
        }
        let id = if path.is_empty() {
            Some(self.base)
        } else {
            match self.node(store, path)? {
                Some(Node::Folder { tree, .. }) => Some(tree),
                _ => None,
            }
        };
        let tree = id.map(|id| Tree::read(store, &id)).transpose()?.map(Arc::new);
        self.trees.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_vec(), tree.clone());
        Ok(tree)
    }
}

/// Has the kernel copy what shows through at a path, if something does, into the layer.
pub(super) fn copy_up(copy: &Project, path: &[u8]) -> Result<(), Error> {
    let (parent, name) = split(path);
    let copied = copy.folder(parent).and_then(|folder| {
        let stat = fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        // Also a time that is set to what it is is a change.
        let time = TimeSpec::new(stat.st_mtime, stat.st_mtime_nsec);
        utimensat(&folder, name, &TimeSpec::UTIME_OMIT, &time, UtimensatFlags::NoFollowSymlink)
    });
    match copied {
        Ok(()) | Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(()),
        Err(source) => Err(Error::Project { doing: "copy, in the session's view,", path: BytesPath::from_bytes(path), source }),
    }
}

fn look(project: &Project, path: &[u8]) -> Option<FileStat> {
    let (parent, name) = split(path);
    let folder = project.folder(parent).ok()?;
    fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()
}

#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;
