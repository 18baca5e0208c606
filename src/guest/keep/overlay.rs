//! Finds what a session changed in an overlay over the project, without searching all the rest.
//!
//! The kernel keeps changed entries in the upper layer, and a whiteout for each removed one. So
//! only folders that exist in the upper layer are searched; everything else shows through, and
//! counts as it was when the session began, whatever the user did to it meanwhile. The mark of a
//! new folder that hides the lower one (opaque) cannot be read without a privilege: it is
//! recognized because nothing of the lower one shows through.

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
use super::Snapshot;
use super::StateFolder;
use super::deflate::Deflate;
use super::node::Node;
use super::object::ObjectId;
use super::project::Project;
use super::snapshot::SnapshotReader;
use super::snapshot::take_with;
use super::store::Store;
use super::tree::OWN;
use super::tree::Tree;
use super::walk::EntryLocation;
use super::walk::FolderAction;
use super::walk::MOST_ENTRIES;
use super::walk::VisitedEntry;
use super::walk::Visitor;
use super::walk::WalkedFolder;
use super::walk::walk;
use crate::root::file_type;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::UncapturedReason;

/// An overlay over a project.
pub(super) struct Overlay<'a> {
    project: &'a Project,
    copy: &'a Project,
    /// The upper layer, with the session's changes.
    upper: &'a Project,
    /// The snapshot of the project at the session's start.
    base: ObjectId,
    /// Trees of that snapshot that were read.
    trees: Mutex<HashMap<Vec<u8>, Option<Arc<Tree>>>>,
}

/// Takes a snapshot of an overlay by examining only the session's changes. What shows through
/// counts as it was when the session began.
pub(super) fn snapshot(
    layer: &Overlay<'_>,
    state: &StateFolder,
    store: &mut Store,
    cache: &str,
) -> Result<Snapshot, Error> {
    take_with(state, store, cache, |reader, store| {
        let mut folders = walk(
            layer.copy,
            &OverlayVisitor {
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

/// Visits only what a session changed.
struct OverlayVisitor<'a, 'r, 's> {
    reader: &'a SnapshotReader<'r, 's>,
    layer: &'a Overlay<'a>,
    store: &'a Store,
}

impl Visitor for OverlayVisitor<'_, '_, '_> {
    type State = (Deflate, UpperFolder);

    fn visit(
        &self,
        (deflate, beside): &mut Self::State,
        place: &EntryLocation<'_>,
        stat: &FileStat,
    ) -> Result<Option<VisitedEntry>, Error> {
        match self.layer.visit(self.store, beside, place)? {
            CopyEntry::Through(visited) => Ok(visited),
            CopyEntry::Own => self.reader.visit(deflate, place, stat),
        }
    }

    fn enter(&self, path: &[u8]) -> Result<FolderAction, Error> {
        self.layer.enter(self.store, path)
    }
}

/// The entry of the upper layer at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UpperEntry {
    Nothing,
    /// A whiteout.
    Removed,
    Folder,
    Other,
}

/// The origin of a file in the overlay.
enum CopyEntry {
    /// The session's.
    Own,
    /// It shows through: the entry at the session's start, if there was one.
    Through(Option<VisitedEntry>),
}

/// The folder of the upper layer for the overlay's folder that is being visited.
#[derive(Default)]
struct UpperFolder {
    path: Option<Vec<u8>>,
    upper: Option<OwnedFd>,
}

impl<'a> Overlay<'a> {
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

    fn enter(&self, store: &Store, path: &[u8]) -> Result<FolderAction, Error> {
        let before = self.node(store, path)?;
        // What is mounted in the project does not show through: what the session wrote there is no
        // change of the project.
        let is_mount = matches!(
            before,
            Some(Node::Unkept {
                why: UncapturedReason::OtherFileSystem,
                ..
            })
        );
        if self.own(path) == UpperEntry::Folder && !is_mount {
            return Ok(FolderAction::Walk);
        }
        Ok(before.map_or(FolderAction::Pass, FolderAction::Known))
    }

    /// Returns the origin of a file.
    fn visit(
        &self,
        store: &Store,
        beside: &mut UpperFolder,
        place: &EntryLocation<'_>,
    ) -> Result<CopyEntry, Error> {
        if beside.path.as_deref() != Some(place.path) {
            *beside = UpperFolder {
                path: Some(place.path.to_vec()),
                upper: self.upper.folder(place.path).ok(),
            };
        }
        let is_own =
            |upper: &OwnedFd| fstatat(upper, place.name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok();
        if beside.upper.as_ref().is_some_and(is_own) {
            return Ok(CopyEntry::Own);
        }
        let node = self.node(store, &join(place.path, place.name))?;
        Ok(CopyEntry::Through(
            node.map(|node| VisitedEntry { node, known: None }),
        ))
    }

    /// Adds entries that are not listed any more and were not removed by the session: the user
    /// removed them, or the kernel's list is cached.
    fn complete(
        &self,
        store: &Store,
        folders: &mut HashMap<Vec<u8>, WalkedFolder>,
    ) -> Result<(), Error> {
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
            // A new folder shows nothing of the lower one.
            let shows_something = there
                .iter()
                .any(|name| self.own(&join(path, name)) == UpperEntry::Nothing);
            let is_removed = |name: &[u8]| {
                let path = join(path, name);
                let is_hidden = || {
                    !shows_something
                        && look(self.copy, &path).is_none()
                        && look(self.project, &path).is_some()
                };
                self.own(&path) == UpperEntry::Removed || is_hidden()
            };
            let kept: Vec<_> = missing
                .into_iter()
                .filter(|(name, _)| name != OWN && !is_removed(name))
                .cloned()
                .collect();
            walked.entries.extend(
                kept.into_iter()
                    .map(|(name, node)| (name, VisitedEntry { node, known: None })),
            );
        }
        Ok(())
    }

    fn own(&self, path: &[u8]) -> UpperEntry {
        match look(self.upper, path) {
            None => UpperEntry::Nothing,
            Some(stat) if file_type(&stat) == SFlag::S_IFDIR => UpperEntry::Folder,
            Some(stat) if file_type(&stat) == SFlag::S_IFCHR && stat.st_rdev == 0 => {
                UpperEntry::Removed
            }
            Some(_) => UpperEntry::Other,
        }
    }

    /// Returns the entry at a path when the session began.
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

    /// Returns the folder at a path when the session began.
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

/// Has the kernel copy an entry that shows through into the upper layer.
pub(super) fn copy_up(copy: &Project, path: &[u8]) -> Result<(), Error> {
    let (parent, name) = split(path);
    let copied = copy.folder(parent).and_then(|folder| {
        let stat = fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        // Setting a time to its present value is a change as well.
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
