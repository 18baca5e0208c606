//! Walks a project as it is: hidden and ignored files, links and empty folders included, on several
//! threads.
//!
//! It does not go into folders called `.git` and not into what is mounted in the project from
//! elsewhere, and follows no link: each folder is opened anew from the project's own, beneath it,
//! and what is in it is looked at through the open folder. The walker of the tools would not do: it
//! passes over what cannot be shown, where here everything must be accounted for.

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
use crate::queue::Queue;
use crate::root::as_path;
use crate::root::file_type;
use crate::root::join;
use crate::tools::save::errno_of;
use podbay_wire::BytesPath;
use podbay_wire::keep::Unkept;

/// Most entries of a project.
pub const MOST_ENTRIES: usize = 1_000_000;

/// Longest path that is gone into: the kernel takes no longer ones, and nobody could name what lies
/// there.
const MOST_PATH: usize = 4_000;

/// Files of one folder that one thread takes at a time.
const CHUNK: usize = 128;

/// What is made of each entry that is no folder; called on several threads at once, each with a
/// state of its own.
pub(super) trait Visitor: Sync {
    type State: Default + Send;

    /// Returns what stands there; `None` where it is gone by now.
    fn visit(
        &self,
        state: &mut Self::State,
        place: &Place<'_>,
        stat: &FileStat,
    ) -> Result<Option<Visited>, Error>;

    /// Says whether a folder is gone into.
    fn enter(&self, _path: &[u8]) -> Result<Enter, Error> {
        Ok(Enter::Walk)
    }
}

/// What is done with a folder.
pub(super) enum Enter {
    Walk,
    /// It is known what it is with all that is in it.
    Known(Node),
    /// It counts as not there.
    Pass,
}

/// Where an entry lies.
pub(super) struct Place<'a> {
    pub(super) folder: BorrowedFd<'a>,
    pub(super) path: &'a [u8],
    pub(super) name: &'a [u8],
}

/// What an entry is and, where its content need not be read next time, what it looks like now.
pub(super) struct Visited {
    pub(super) node: Node,
    pub(super) known: Option<Stamp>,
}

/// Entries by their names.
type Entries = Vec<(Vec<u8>, Visited)>;

/// A folder with what is in it. Folders in it have no tree yet; they are found by their paths.
#[derive(Default)]
pub(super) struct Walked {
    /// `None` where it was gone when it was to be read.
    pub(super) node: Option<Node>,
    pub(super) entries: Entries,
    pub(super) folders: Vec<Vec<u8>>,
}

/// Returns all folders of the project by their paths; its own is the empty one. `most`: how many
/// entries it may have.
pub(super) fn walk<V: Visitor>(
    project: &Project,
    visitor: &V,
    most: usize,
) -> Result<HashMap<Vec<u8>, Walked>, Error> {
    let top = project.list(b"").and_then(fstat);
    let top = top.map_err(|source| Error::Project {
        doing: "open",
        path: BytesPath::from_bytes("."),
        source,
    })?;
    // A place of the same file system that is mounted in the project has its device.
    let mounted = project
        .place()
        .map(|place| foreign_below(as_path(&place)))
        .unwrap_or_default();
    let run = Run {
        project,
        visitor,
        device: top.st_dev,
        mounted,
        queue: Queue::default(),
        n_entries: AtomicUsize::new(0),
        most,
    };
    run.queue.push(vec![Work::Folder { path: Vec::new() }]);
    let found: Vec<Found<V>> = run.queue.work(|found, work| run.step(found, work));
    if let Some(error) = run.queue.into_end() {
        return Err(error);
    }
    let mut folders: HashMap<Vec<u8>, Walked> = HashMap::new();
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

/// What one thread brings home.
struct Found<V: Visitor> {
    state: V::State,
    folders: Vec<(Vec<u8>, Walked)>,
    entries: Vec<(Arc<[u8]>, Entries)>,
}

impl<V: Visitor> Default for Found<V> {
    fn default() -> Self {
        Self {
            state: V::State::default(),
            folders: Vec::new(),
            entries: Vec::new(),
        }
    }
}

struct Run<'a, V> {
    project: &'a Project,
    visitor: &'a V,
    device: u64,
    mounted: BTreeSet<BytesPath>,
    queue: Queue<Work, Error>,
    n_entries: AtomicUsize,
    most: usize,
}

enum Work {
    Folder {
        path: Vec<u8>,
    },
    Files {
        folder: Arc<OwnedFd>,
        path: Arc<[u8]>,
        names: Vec<Vec<u8>>,
    },
}

impl<V: Visitor> Run<'_, V> {
    fn step(&self, found: &mut Found<V>, work: Work) {
        let done = match work {
            Work::Folder { path } => self.folder(found, path),
            Work::Files {
                folder,
                path,
                names,
            } => self.files(found, folder.as_fd(), &path, names),
        };
        if let Err(error) = done {
            self.queue.end(error);
        }
    }

    fn folder(&self, found: &mut Found<V>, path: Vec<u8>) -> Result<(), Error> {
        let mut walked = Walked::default();
        match self.open(&path) {
            Ok(Opened::Folder(folder, stat)) => {
                walked.node = Some(Node::folder(&stat, ObjectId::of(b"")));
                let mut files = self.list(&path, &folder, &mut walked)?.into_iter();
                let (folder, shared) = (Arc::new(folder), Arc::<[u8]>::from(path.as_slice()));
                let mut work: Vec<Work> = walked
                    .folders
                    .iter()
                    .map(|name| Work::Folder {
                        path: join(&path, name),
                    })
                    .collect();
                loop {
                    let names: Vec<_> = files.by_ref().take(CHUNK).collect();
                    if names.is_empty() {
                        break;
                    }
                    work.push(Work::Files {
                        folder: Arc::clone(&folder),
                        path: Arc::clone(&shared),
                        names,
                    });
                }
                self.queue.push(work);
            }
            Ok(Opened::Elsewhere) => walked.node = Some(Node::ignored(Unkept::OtherFileSystem)),
            // It was removed, or became something else, since its name was read.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::ESTALE) => {}
            Err(_) => walked.node = Some(Node::ignored(Unkept::Unreadable)),
        }
        found.folders.push((path, walked));
        Ok(())
    }

    fn open(&self, path: &[u8]) -> Result<Opened, Errno> {
        let fd = self.project.list(path)?;
        let stat = fstat(&fd)?;
        if stat.st_dev != self.device
            || !self.mounted.is_empty() && self.mounted.contains(&BytesPath::from_bytes(path))
        {
            return Ok(Opened::Elsewhere);
        }
        Ok(Opened::Folder(fd, stat))
    }

    /// Enters the folders and what is never gone into, and returns the other names.
    fn list(
        &self,
        path: &[u8],
        folder: &OwnedFd,
        walked: &mut Walked,
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

    /// Enters a name, or gives it back if it must be looked at.
    fn enter(
        &self,
        walked: &mut Walked,
        path: &[u8],
        name: Vec<u8>,
        is_folder: bool,
    ) -> Result<Option<Vec<u8>>, Error> {
        let node = match is_folder {
            true if name == b".git" => Node::ignored(Unkept::GitFolder),
            _ if path.len() + name.len() >= MOST_PATH => Node::ignored(Unkept::TooDeep),
            true => match self.visitor.enter(&join(path, &name))? {
                Enter::Walk => {
                    walked.folders.push(name);
                    return Ok(None);
                }
                Enter::Known(node) => node,
                Enter::Pass => return Ok(None),
            },
            false => return Ok(Some(name)),
        };
        walked.entries.push((name, Visited { node, known: None }));
        Ok(None)
    }

    fn files(
        &self,
        found: &mut Found<V>,
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
                // In a folder that may be listed and not be passed through.
                Err(Errno::EACCES) => {
                    entries.push((
                        name,
                        Visited {
                            node: Node::ignored(Unkept::Unreadable),
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
                    Visited {
                        node: Node::ignored(Unkept::OtherFileSystem),
                        known: None,
                    },
                ));
                continue;
            }
            let place = Place {
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

enum Opened {
    Folder(OwnedFd, FileStat),
    Elsewhere,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keep::testing::Scene;

    /// Takes each entry for what it is not.
    struct Blind;

    impl Visitor for Blind {
        type State = ();

        fn visit(
            &self,
            (): &mut (),
            _: &Place<'_>,
            _: &FileStat,
        ) -> Result<Option<Visited>, Error> {
            Ok(Some(Visited {
                node: Node::ignored(Unkept::Special),
                known: None,
            }))
        }
    }

    #[test]
    fn a_project_with_more_entries_than_may_be_is_refused_and_one_with_as_many_is_not() {
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
            "the project has more than 4 entries; snapshots are taken of smaller ones only"
        );
    }
}
