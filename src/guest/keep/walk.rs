//! Walks a project as it is: hidden and ignored files, links and empty folders included, on several threads.
//!
//! It does not go into folders called `.git` and not into other file systems, and follows no link: each folder is opened anew from
//! the project's own, beneath it, and what is in it is looked at through the open folder. The walker of the tools would not do: it
//! passes over what cannot be shown, where here everything must be accounted for.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::thread;

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
use crate::guest::root::file_type;
use crate::guest::root::join;
use crate::guest::tools::save::errno_of;
use crate::wire::BytesPath;
use crate::wire::keep::Unkept;

/// Most entries of a project.
pub const MOST_ENTRIES: usize = 1_000_000;

/// Longest path that is gone into: the kernel takes no longer ones, and nobody could name what lies there.
const MOST_PATH: usize = 4_000;

/// Threads at the most; more only wait for each other in the kernel.
const MAX_THREADS: usize = 8;

/// Files of one folder that one thread takes at a time.
const CHUNK: usize = 128;

/// Work that must lie ready before other threads are started: a small project is walked sooner than they are.
const WORTH_A_THREAD: usize = 4;

/// What is made of each entry that is no folder; called on several threads at once, each with a state of its own.
pub(super) trait Visitor: Sync {
    type State: Default + Send;

    /// Returns what stands there; `None` where it is gone by now.
    fn visit(&self, state: &mut Self::State, place: &Place<'_>, stat: &FileStat) -> Result<Option<Visited>, Error>;
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

/// Returns all folders of the project by their paths; its own is the empty one.
pub(super) fn walk<V: Visitor>(project: &Project, visitor: &V) -> Result<HashMap<Vec<u8>, Walked>, Error> {
    let top = project.list(b"").and_then(fstat);
    let top = top.map_err(|source| Error::Project { doing: "open", path: BytesPath::from_bytes("."), source })?;
    let run = Run { project, visitor, device: top.st_dev, queue: Queue::default(), n_entries: AtomicUsize::new(0) };
    run.queue.push([Work::Folder { path: Vec::new() }]);
    let mut own = Found::<V>::default();
    let mut found = Vec::new();
    while run.queue.len() < WORTH_A_THREAD && run.step(&mut own) {}
    if run.queue.len() >= WORTH_A_THREAD {
        let n_threads = thread::available_parallelism().map_or(2, usize::from).clamp(2, MAX_THREADS);
        thread::scope(|scope| {
            let work = || {
                let mut found = Found::<V>::default();
                while run.step(&mut found) {}
                found
            };
            let helpers: Vec<_> = (1..n_threads).map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
            while run.step(&mut own) {}
            found.extend(helpers.into_iter().map(|helper| helper.join().expect("a visitor does not panic")));
        });
    }
    found.push(own);
    if let Some(error) = run.queue.lock().error.take() {
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
        Self { state: V::State::default(), folders: Vec::new(), entries: Vec::new() }
    }
}

struct Run<'a, V> {
    project: &'a Project,
    visitor: &'a V,
    device: u64,
    queue: Queue,
    n_entries: AtomicUsize,
}

enum Work {
    Folder { path: Vec<u8> },
    Files { folder: Arc<OwnedFd>, path: Arc<[u8]>, names: Vec<Vec<u8>> },
}

impl<V: Visitor> Run<'_, V> {
    /// Does one piece of work; `false` when there is none and none will come.
    fn step(&self, found: &mut Found<V>) -> bool {
        let Some(work) = self.queue.take() else { return false };
        // Also when a visitor panics the others must learn that no more work comes from here.
        let _taken = Taken(&self.queue);
        let done = match work {
            Work::Folder { path } => self.folder(found, path),
            Work::Files { folder, path, names } => self.files(found, folder.as_fd(), &path, names),
        };
        if let Err(error) = done {
            self.queue.end(error);
        }
        true
    }

    fn folder(&self, found: &mut Found<V>, path: Vec<u8>) -> Result<(), Error> {
        let mut walked = Walked::default();
        match self.open(&path) {
            Ok(Opened::Folder(folder, stat)) => {
                walked.node = Some(Node::folder(&stat, ObjectId::of(b"")));
                let mut files = self.list(&path, &folder, &mut walked)?.into_iter();
                let (folder, shared) = (Arc::new(folder), Arc::<[u8]>::from(path.as_slice()));
                let mut work: Vec<Work> = walked.folders.iter().map(|name| Work::Folder { path: join(&path, name) }).collect();
                loop {
                    let names: Vec<_> = files.by_ref().take(CHUNK).collect();
                    if names.is_empty() {
                        break;
                    }
                    work.push(Work::Files { folder: Arc::clone(&folder), path: Arc::clone(&shared), names });
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
        if stat.st_dev != self.device {
            return Ok(Opened::Elsewhere);
        }
        Ok(Opened::Folder(fd, stat))
    }

    /// Enters the folders and what is never gone into, and returns the other names.
    fn list(&self, path: &[u8], folder: &OwnedFd, walked: &mut Walked) -> Result<Vec<Vec<u8>>, Error> {
        let failed = |source| Error::Project { doing: "list", path: BytesPath::from_bytes(path), source };
        let again = folder.try_clone().map_err(|error| failed(errno_of(&error)))?;
        let mut listed = Dir::from_fd(again).map_err(failed)?;
        let mut others = Vec::new();
        let mut unknown = Vec::new();
        for entry in listed.iter() {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if self.n_entries.fetch_add(1, Ordering::Relaxed) >= MOST_ENTRIES {
                return Err(Error::TooMany { most: MOST_ENTRIES });
            }
            match entry.file_type() {
                None => unknown.push(name.to_vec()),
                Some(kind) => others.extend(enter(walked, path, name.to_vec(), kind == Type::Directory)),
            }
        }
        for name in unknown {
            let stat = fstatat(folder, name.as_slice(), AtFlags::AT_SYMLINK_NOFOLLOW);
            let is_folder = stat.is_ok_and(|stat| file_type(&stat) == SFlag::S_IFDIR);
            others.extend(enter(walked, path, name, is_folder));
        }
        Ok(others)
    }

    fn files(&self, found: &mut Found<V>, folder: BorrowedFd<'_>, path: &Arc<[u8]>, names: Vec<Vec<u8>>) -> Result<(), Error> {
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            if self.queue.has_ended() {
                break;
            }
            let Ok(stat) = fstatat(folder, name.as_slice(), AtFlags::AT_SYMLINK_NOFOLLOW) else { continue };
            let place = Place { folder, path, name: &name };
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

/// Enters a name, or gives it back if it must be looked at.
fn enter(walked: &mut Walked, path: &[u8], name: Vec<u8>, is_folder: bool) -> Option<Vec<u8>> {
    let why = match is_folder {
        true if name == b".git" => Unkept::GitFolder,
        _ if path.len() + name.len() >= MOST_PATH => Unkept::TooDeep,
        true => {
            walked.folders.push(name);
            return None;
        }
        false => return Some(name),
    };
    walked.entries.push((name, Visited { node: Node::ignored(why), known: None }));
    None
}

/// Work not yet taken. The last in is the first out, so that few folders are open at a time.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    work: Vec<Work>,
    n_busy: usize,
    error: Option<Error>,
}

impl Queue {
    fn push(&self, work: impl IntoIterator<Item = Work>) {
        self.lock().work.extend(work);
        self.changed.notify_all();
    }

    /// Takes a piece of work, waits for one as long as somebody may yet bring it, or says that none will come.
    fn take(&self) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if state.error.is_some() {
                return None;
            }
            if let Some(work) = state.work.pop() {
                state.n_busy += 1;
                return Some(work);
            }
            if state.n_busy == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self, error: Error) {
        self.lock().error.get_or_insert(error);
        self.changed.notify_all();
    }

    fn has_ended(&self) -> bool {
        self.lock().error.is_some()
    }

    fn len(&self) -> usize {
        self.lock().work.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stands for one piece of work that is being done.
struct Taken<'a>(&'a Queue);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.n_busy -= 1;
        if state.n_busy == 0 && state.work.is_empty() {
            drop(state);
            self.0.changed.notify_all();
        }
    }
}
