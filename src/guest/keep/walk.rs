//! Walks a project on several threads: hidden and ignored files, links and empty folders included.
//!
//! It does not enter folders called `.git` and mounts in the project, and follows no link: each
//! folder is opened from the project's own, beneath it, and its entries are examined through the
//! open folder. The walker of the tools does not fit: it skips names that cannot be displayed,
//! while here every entry must be accounted for.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use nix::dir::Dir;
use nix::dir::Type;
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::FileStat;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstat;
use nix::sys::stat::fstatat;

use super::Error;
use super::node::Node;
use super::object::ObjectId;
use super::project::Project;
use super::read::Stamp;
use crate::mounts::foreign_below;
use crate::root::as_path;
use crate::root::file_type;
use crate::root::join;
use crate::tools::save::errno_of;
use crate::work_queue::Queue;
use podbay_wire::BytesPath;
use podbay_wire::keep::UncapturedReason;

/// Most entries of a project.
pub const MOST_ENTRIES: usize = 1_000_000;

/// Longest path that is entered: the kernel accepts no longer ones.
const MOST_PATH: usize = 4_000;

/// Files of one folder that a thread takes at a time.
const CHUNK: usize = 128;

/// Handles each entry that is no folder; called on several threads at once, each with a state of
/// its own.
pub(super) trait Visitor: Sync {
    type State: Default + Send;

    /// Handles an entry; `None` if it is gone.
    fn visit(
        &self,
        state: &mut Self::State,
        place: &EntryLocation<'_>,
        stat: &FileStat,
    ) -> Result<Option<VisitedEntry>, Error>;

    /// Decides whether a folder is entered.
    fn enter(&self, _path: &[u8]) -> Result<FolderAction, Error> {
        Ok(FolderAction::Walk)
    }
}

/// What is done with a folder.
pub(super) enum FolderAction {
    Walk,
    /// It is known with all of its contents.
    Known(Node),
    /// It counts as missing.
    Pass,
}

/// The location of an entry.
pub(super) struct EntryLocation<'a> {
    pub(super) folder: BorrowedFd<'a>,
    pub(super) path: &'a [u8],
    pub(super) name: &'a [u8],
}

/// The state of an entry and, where its content need not be read next time, its metadata.
pub(super) struct VisitedEntry {
    pub(super) node: Node,
    pub(super) known: Option<Stamp>,
}

/// Entries by name.
type Entries = Vec<(Vec<u8>, VisitedEntry)>;

/// A folder with its entries. Its subfolders have no tree yet; they are found by their paths.
#[derive(Default)]
pub(super) struct WalkedFolder {
    /// `None` if it was gone when it was to be read.
    pub(super) node: Option<Node>,
    pub(super) entries: Entries,
    pub(super) folders: Vec<Vec<u8>>,
}

/// Returns all folders of the project by path; its own is the empty one. `most`: limit of entries.
pub(super) fn walk<V: Visitor>(
    project: &Project,
    visitor: &V,
    most: usize,
) -> Result<HashMap<Vec<u8>, WalkedFolder>, Error> {
    let top = project.list(b"").and_then(fstat);
    let top = top.map_err(|source| Error::Project {
        doing: "open",
        path: BytesPath::from_bytes("."),
        source,
    })?;
    // A bind mount of the same file system in the project has its device.
    let mounted = project
        .place()
        .map(|place| foreign_below(as_path(&place)))
        .unwrap_or_default();
    let run = WalkRun {
        project,
        visitor,
        device: top.st_dev,
        mounted,
        queue: Queue::default(),
        n_entries: AtomicUsize::new(0),
        most,
    };
    run.queue.push(vec![WalkTask::Folder { path: Vec::new() }]);
    let found: Vec<ThreadResult<V>> = run.queue.work(|found, work| run.step(found, work));
    if let Some(error) = run.queue.into_end() {
        return Err(error);
    }
    let mut folders: HashMap<Vec<u8>, WalkedFolder> = HashMap::new();
    for part in found {
        for (path, walked) in part.folders {
            let folder = folders.entry(path).or_default();
            folder.node = walked.node;
            folder.folders = walked.folders;
            folder.entries.extend(walked.entries);
        }
        for (path, entries) in part.entries {
            match folders.get_mut(&*path) {
                Some(folder) => folder.entries.extend(entries),
                None => folders.entry(path.to_vec()).or_default().entries = entries,
            }
        }
    }
    Ok(folders)
}

/// The result of one thread.
struct ThreadResult<V: Visitor> {
    state: V::State,
    folders: Vec<(Vec<u8>, WalkedFolder)>,
    entries: Vec<(Arc<[u8]>, Entries)>,
}

impl<V: Visitor> Default for ThreadResult<V> {
    fn default() -> Self {
        Self {
            state: V::State::default(),
            folders: Vec::new(),
            entries: Vec::new(),
        }
    }
}

struct WalkRun<'a, V> {
    project: &'a Project,
    visitor: &'a V,
    device: u64,
    mounted: BTreeSet<BytesPath>,
    queue: Queue<WalkTask, Error>,
    n_entries: AtomicUsize,
    most: usize,
}

enum WalkTask {
    Folder {
        path: Vec<u8>,
    },
    Files {
        folder: Arc<OwnedFd>,
        path: Arc<[u8]>,
        names: Vec<Vec<u8>>,
    },
}

impl<V: Visitor> WalkRun<'_, V> {
    fn step(&self, found: &mut ThreadResult<V>, work: WalkTask) {
        let done = match work {
            WalkTask::Folder { path } => self.folder(found, path),
            WalkTask::Files {
                folder,
                path,
                names,
            } => self.files(found, folder.as_fd(), &path, names),
        };
        if let Err(error) = done {
            self.queue.end(error);
        }
    }

    fn folder(&self, found: &mut ThreadResult<V>, path: Vec<u8>) -> Result<(), Error> {
        let mut walked = WalkedFolder::default();
        match self.open(&path) {
            Ok(OpenedEntry::Folder(folder, stat)) => {
                walked.node = Some(Node::folder(&stat, ObjectId::of(b"")));
                let mut files = self.list(&path, &folder, &mut walked)?.into_iter();
                let (folder, shared) = (Arc::new(folder), Arc::<[u8]>::from(path.as_slice()));
                let mut work: Vec<WalkTask> = walked
                    .folders
                    .iter()
                    .map(|name| WalkTask::Folder {
                        path: join(&path, name),
                    })
                    .collect();
                loop {
                    let names: Vec<_> = files.by_ref().take(CHUNK).collect();
                    if names.is_empty() {
                        break;
                    }
                    work.push(WalkTask::Files {
                        folder: Arc::clone(&folder),
                        path: Arc::clone(&shared),
                        names,
                    });
                }
                self.queue.push(work);
            }
            Ok(OpenedEntry::Elsewhere) => {
                walked.node = Some(Node::ignored(UncapturedReason::OtherFileSystem));
            }
            // It was removed or replaced since its name was read.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::ESTALE) => {}
            Err(_) => walked.node = Some(Node::ignored(UncapturedReason::Unreadable)),
        }
        found.folders.push((path, walked));
        Ok(())
    }

    fn open(&self, path: &[u8]) -> Result<OpenedEntry, Errno> {
        let fd = self.project.list(path)?;
        let stat = fstat(&fd)?;
        if stat.st_dev != self.device
            || !self.mounted.is_empty() && self.mounted.contains(&BytesPath::from_bytes(path))
        {
            return Ok(OpenedEntry::Elsewhere);
        }
        Ok(OpenedEntry::Folder(fd, stat))
    }

    /// Adds folders and what is never entered, and returns the other names.
    fn list(
        &self,
        path: &[u8],
        folder: &OwnedFd,
        walked: &mut WalkedFolder,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let failed = |source| Error::Project {
            doing: "list",
            path: BytesPath::from_bytes(path),
            source,
        };
        let again = folder
            .try_clone()
            .map_err(|error| failed(errno_of(&error)))?;
        let mut listed = Dir::from_fd(again).map_err(failed)?;
        let mut others = Vec::new();
        let mut unknown = Vec::new();
        for entry in listed.iter() {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if self.n_entries.fetch_add(1, Ordering::Relaxed) >= self.most {
                return Err(Error::TooMany { most: self.most });
            }
            match entry.file_type() {
                None => unknown.push(name.to_vec()),
                Some(kind) => others.extend(self.enter(
                    walked,
                    path,
                    name.to_vec(),
                    kind == Type::Directory,
                )?),
            }
        }
        for name in unknown {
            let stat = fstatat(folder, name.as_slice(), AtFlags::AT_SYMLINK_NOFOLLOW);
            let is_folder = stat.is_ok_and(|stat| file_type(&stat) == SFlag::S_IFDIR);
            others.extend(self.enter(walked, path, name, is_folder)?);
        }
        Ok(others)
    }

    /// Adds a name, or returns it if it must be examined.
    fn enter(
        &self,
        walked: &mut WalkedFolder,
        path: &[u8],
        name: Vec<u8>,
        is_folder: bool,
    ) -> Result<Option<Vec<u8>>, Error> {
        let node = match is_folder {
            true if name == b".git" => Node::ignored(UncapturedReason::GitFolder),
            _ if path.len() + name.len() >= MOST_PATH => Node::ignored(UncapturedReason::TooDeep),
            true => match self.visitor.enter(&join(path, &name))? {
                FolderAction::Walk => {
                    walked.folders.push(name);
                    return Ok(None);
                }
                FolderAction::Known(node) => node,
                FolderAction::Pass => return Ok(None),
            },
            false => return Ok(Some(name)),
        };
        walked
            .entries
            .push((name, VisitedEntry { node, known: None }));
        Ok(None)
    }

    fn files(
        &self,
        found: &mut ThreadResult<V>,
        folder: BorrowedFd<'_>,
        path: &Arc<[u8]>,
        names: Vec<Vec<u8>>,
    ) -> Result<(), Error> {
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            if self.queue.has_ended() {
                break;
            }
            let stat = match fstatat(folder, name.as_slice(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                // In a folder that may be listed and not searched.
                Err(Errno::EACCES) => {
                    entries.push((
                        name,
                        VisitedEntry {
                            node: Node::ignored(UncapturedReason::Unreadable),
                            known: None,
                        },
                    ));
                    continue;
                }
                Err(_) => continue,
            };
            if !self.mounted.is_empty()
                && self
                    .mounted
                    .contains(&BytesPath::from_bytes(join(path, &name)))
            {
                entries.push((
                    name,
                    VisitedEntry {
                        node: Node::ignored(UncapturedReason::OtherFileSystem),
                        known: None,
                    },
                ));
                continue;
            }
            let place = EntryLocation {
                folder,
                path,
                name: &name,
            };
            if let Some(visited) = self.visitor.visit(&mut found.state, &place, &stat)? {
                entries.push((name, visited));
            }
        }
        found.entries.push((Arc::clone(path), entries));
        Ok(())
    }
}

enum OpenedEntry {
    Folder(OwnedFd, FileStat),
    Elsewhere,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keep::testing::Scene;

    /// Records every entry as uncaptured.
    struct Blind;

    impl Visitor for Blind {
        type State = ();

        fn visit(
            &self,
            (): &mut (),
            _: &EntryLocation<'_>,
            _: &FileStat,
        ) -> Result<Option<VisitedEntry>, Error> {
            Ok(Some(VisitedEntry {
                node: Node::ignored(UncapturedReason::Special),
                known: None,
            }))
        }
    }

    #[test]
    fn a_project_over_the_entry_limit_is_refused() {
        let scene = Scene::new();
        for path in ["a", "b/c", "b/d/e"] {
            scene.write(path, "x");
        }
        let walked = walk(&scene.project(), &Blind, 5).expect("five entries");
        assert_eq!(
            walked
                .values()
                .map(|folder| folder.entries.len() + folder.folders.len())
                .sum::<usize>(),
            5
        );
        let Err(error) = walk(&scene.project(), &Blind, 4) else {
            panic!("there is one more")
        };
        assert_eq!(
            error.to_string(),
            "the project has more than 4 entries, which is too many for snapshots"
        );
    }
}
