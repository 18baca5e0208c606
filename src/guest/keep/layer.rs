//! What a session changed in a copy that is laid over the project, found without a look at all the
//! rest.
//!
//! The kernel puts what is changed into a layer of its own, and what is removed as a mark there. So
//! only folders that the layer has too are looked into; all else shows through, and is as it was
//! when the session began, whatever the person has done to it meanwhile. That a folder was made
//! anew, and hides all that is below, cannot be read without a privilege: it is told from that
//! nothing of it shows through.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::FileStat;
use nix::sys::stat::SFlag;
use nix::sys::stat::UtimensatFlags;
use nix::sys::stat::fstatat;
use nix::sys::stat::utimensat;
use nix::sys::time::TimeSpec;

use super::Error;
use super::Folder;
use super::Snapshot;
use super::deflate::Deflate;
use super::node::Node;
use super::object::ObjectId;
use super::project::Project;
use super::snapshot::Reader;
use super::snapshot::take_with;
use super::store::Store;
use super::tree::OWN;
use super::tree::Tree;
use super::walk::Enter;
use super::walk::MOST_ENTRIES;
use super::walk::Place;
use super::walk::Visited;
use super::walk::Visitor;
use super::walk::Walked;
use super::walk::walk;
use crate::root::file_type;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::Unkept;

/// A copy of a project that is laid over it.
pub(super) struct Layer<'a> {
    project: &'a Project,
    copy: &'a Project,
    /// The session's own.
    upper: &'a Project,
    /// How the project was.
    base: ObjectId,
    /// Of that, the folders that were asked for.
    trees: Mutex<HashMap<Vec<u8>, Option<Arc<Tree>>>>,
}

/// Takes one of a copy that is laid over a project, by a look at what the session changed there
/// alone. What shows through counts as it was when the session began.
pub(super) fn snapshot(
    layer: &Layer<'_>,
    state: &Folder,
    store: &mut Store,
    cache: &str,
) -> Result<Snapshot, Error> {
    take_with(state, store, cache, |reader, store| {
        let mut folders = walk(
            layer.copy,
            &Layered {
                reader,
                layer,
                store,
            },
            MOST_ENTRIES,
        )?;
        layer.complete(store, &mut folders)?;
        Ok(folders)
    })
}

/// Reads what a session changed alone.
struct Layered<'a, 'r, 's> {
    reader: &'a Reader<'r, 's>,
    layer: &'a Layer<'a>,
    store: &'a Store,
}

impl Visitor for Layered<'_, '_, '_> {
    type State = (Deflate, Beside);

    fn visit(
        &self,
        (deflate, beside): &mut Self::State,
        place: &Place<'_>,
        stat: &FileStat,
    ) -> Result<Option<Visited>, Error> {
        match self.layer.visit(self.store, beside, place)? {
            Shown::Through(visited) => Ok(visited),
            Shown::Own => self.reader.visit(deflate, place, stat),
        }
    }

    fn enter(&self, path: &[u8]) -> Result<Enter, Error> {
        self.layer.enter(self.store, path)
    }
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
enum Shown {
    /// The session's.
    Own,
    /// It shows through: what was there when the session began, if something was.
    Through(Option<Visited>),
}

/// The folder of the layer that belongs to that of the copy which is just looked into.
#[derive(Default)]
struct Beside {
    path: Option<Vec<u8>>,
    upper: Option<OwnedFd>,
}

impl<'a> Layer<'a> {
    pub(super) fn new(
        project: &'a Project,
        copy: &'a Project,
        upper: &'a Project,
        base: ObjectId,
    ) -> Self {
        Self {
            project,
            copy,
            upper,
            base,
            trees: Mutex::default(),
        }
    }

    fn enter(&self, store: &Store, path: &[u8]) -> Result<Enter, Error> {
        let before = self.node(store, path)?;
        // What is mounted in the project does not show through: what the session wrote there stands
        // on nothing, and is no change of the project.
        let is_mount = matches!(
            before,
            Some(Node::Unkept {
                why: Unkept::OtherFileSystem,
                ..
            })
        );
        if self.own(path) == Own::Folder && !is_mount {
            return Ok(Enter::Walk);
        }
        Ok(before.map_or(Enter::Pass, Enter::Known))
    }

    /// Returns whose a file is.
    fn visit(&self, store: &Store, beside: &mut Beside, place: &Place<'_>) -> Result<Shown, Error> {
        if beside.path.as_deref() != Some(place.path) {
            *beside = Beside {
                path: Some(place.path.to_vec()),
                upper: self.upper.folder(place.path).ok(),
            };
        }
        let is_own =
            |upper: &OwnedFd| fstatat(upper, place.name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok();
        if beside.upper.as_ref().is_some_and(is_own) {
            return Ok(Shown::Own);
        }
        let node = self.node(store, &join(place.path, place.name))?;
        Ok(Shown::Through(
            node.map(|node| Visited { node, known: None }),
        ))
    }

    /// Adds what is not listed any more and was not removed by the session: the person did that, or
    /// the kernel lists what was there a while ago.
    fn complete(&self, store: &Store, folders: &mut HashMap<Vec<u8>, Walked>) -> Result<(), Error> {
        for (path, walked) in folders {
            let Some(before) = self.tree(store, path)? else {
                continue;
            };
            let there: BTreeSet<&[u8]> = walked
                .entries
                .iter()
                .map(|(name, _)| name.as_slice())
                .chain(walked.folders.iter().map(Vec::as_slice))
                .collect();
            let missing: Vec<&(Vec<u8>, Node)> = before
                .0
                .iter()
                .filter(|(name, _)| !there.contains(name.as_slice()))
                .collect();
            if missing.is_empty() {
                continue;
            }
            // A folder that was made anew shows nothing of what is below.
            let shows_something = there
                .iter()
                .any(|name| self.own(&join(path, name)) == Own::Nothing);
            let is_removed = |name: &[u8]| {
                let path = join(path, name);
                let is_hidden = || {
                    !shows_something
                        && look(self.copy, &path).is_none()
                        && look(self.project, &path).is_some()
                };
                self.own(&path) == Own::Removed || is_hidden()
            };
            let kept: Vec<_> = missing
                .into_iter()
                .filter(|(name, _)| name != OWN && !is_removed(name))
                .cloned()
                .collect();
            walked.entries.extend(
                kept.into_iter()
                    .map(|(name, node)| (name, Visited { node, known: None })),
            );
        }
        Ok(())
    }

    fn own(&self, path: &[u8]) -> Own {
        match look(self.upper, path) {
            None => Own::Nothing,
            Some(stat) if file_type(&stat) == SFlag::S_IFDIR => Own::Folder,
            Some(stat) if file_type(&stat) == SFlag::S_IFCHR && stat.st_rdev == 0 => Own::Removed,
            Some(_) => Own::Other,
        }
    }

    /// Returns what stood at a path.
    fn node(&self, store: &Store, path: &[u8]) -> Result<Option<Node>, Error> {
        let (parent, name) = split(path);
        let Some(tree) = self.tree(store, parent)? else {
            return Ok(None);
        };
        Ok(tree
            .0
            .binary_search_by(|(other, _)| other.as_slice().cmp(name))
            .ok()
            .map(|at| tree.0[at].1.clone()))
    }

    /// Returns the folder that was at a path.
    fn tree(&self, store: &Store, path: &[u8]) -> Result<Option<Arc<Tree>>, Error> {
        if let Some(tree) = self
            .trees
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(path)
        {
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
        let tree = id
            .map(|id| Tree::read(store, &id))
            .transpose()?
            .map(Arc::new);
        self.trees
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(path.to_vec(), tree.clone());
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
        utimensat(
            &folder,
            name,
            &TimeSpec::UTIME_OMIT,
            &time,
            UtimensatFlags::NoFollowSymlink,
        )
    });
    match copied {
        Ok(()) | Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(()),
        Err(source) => Err(Error::Project {
            doing: "copy, in the session's view,",
            path: BytesPath::from_bytes(path),
            source,
        }),
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
