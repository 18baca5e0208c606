use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::FileStat;
use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::fstat;
use nix::unistd::Whence;
use nix::unistd::lseek;

use super::Error;
use super::cache::Cache;
use super::cache::CachedFile;
use super::cache::settled_before;
use super::deflate::Deflate;
use super::node::Node;
use super::object::ObjectId;
use super::project::Project;
use super::read::FoundEntry;
use super::read::MOST_FILE_BYTES;
use super::read::stamp;
use super::state_folder::StateFolder;
use super::store::Addition;
use super::store::PutOutcome;
use super::store::Store;
use super::tree::OWN;
use super::tree::Tree;
use super::walk::EntryLocation;
use super::walk::MOST_ENTRIES;
use super::walk::VisitedEntry;
use super::walk::Visitor;
use super::walk::WalkedFolder;
use super::walk::walk;
use crate::root::file_type;
use crate::root::join;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::NamedList;
use podbay_wire::keep::UncapturedPath;
use podbay_wire::keep::UncapturedReason;

/// Larger files are read by one thread at a time, so that memory holds only one of them.
const LARGE: i64 = 4 * 1024 * 1024;

/// Smaller files are read as fast as examined for holes.
const SHORTEST_HOLE: i64 = 64 * 1024;

/// A snapshot of a project.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Equal for equal states.
    pub id: ObjectId,
    pub n_files: u64,
    /// What it does not hold; folders called `.git` are never held and not named.
    pub passed_over: NamedList<UncapturedPath>,
    /// Whether some of that is only for lack of room in the store.
    pub is_cut_short: bool,
    /// Bytes of files that had to be read, holes included.
    pub n_bytes_read: u64,
}

/// Takes a snapshot. `cache`, a name in the state folder, records which files need not be read the
/// next time; every captured folder needs a name of its own.
pub fn take(
    project: &Project,
    state: &StateFolder,
    store: &mut Store,
    cache: &str,
) -> Result<Snapshot, Error> {
    take_with(state, store, cache, |reader, _| {
        walk(project, reader, MOST_ENTRIES)
    })
}

/// Takes a snapshot of what `walk` finds.
pub(super) fn take_with(
    state: &StateFolder,
    store: &mut Store,
    cache: &str,
    walk: impl FnOnce(&SnapshotReader<'_, '_>, &Store) -> Result<HashMap<Vec<u8>, WalkedFolder>, Error>,
) -> Result<Snapshot, Error> {
    let known = Cache::load(state, cache)?;
    let addition = store.add();
    let reader = SnapshotReader {
        known,
        addition: &addition,
        settled_before: settled_before(SystemTime::now()),
        large: Mutex::new(()),
        holes: Mutex::default(),
        n_bytes_read: AtomicU64::new(0),
    };
    let folders = walk(&reader, store)?;
    let n_bytes_read = reader.n_bytes_read.into_inner();
    let known = reader.known;
    let (snapshot, cached) = put_together(folders, &addition)?;
    let snapshot = Snapshot {
        n_bytes_read,
        ..snapshot
    };
    let added = addition.finish()?;
    store.take_in_added(added)?;
    if cached != known {
        cached.save(state, cache)?;
    }
    Ok(snapshot)
}

/// Reads files into the store, except cached ones.
pub(super) struct SnapshotReader<'a, 's> {
    known: Cache,
    addition: &'a Addition<'s>,
    settled_before: (i64, i64),
    large: Mutex<()>,
    /// Contents of files that are a single hole, by length: such files take no room on a disk, and
    /// reading each takes long.
    holes: Mutex<HashMap<u64, ObjectId>>,
    n_bytes_read: AtomicU64,
}

impl SnapshotReader<'_, '_> {
    fn is_settled(&self, stat: &FileStat) -> bool {
        (stat.st_ctime, stat.st_ctime_nsec) < self.settled_before
    }

    fn holes(&self) -> MutexGuard<'_, HashMap<u64, ObjectId>> {
        self.holes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the entry of a file that is a single hole, if one of its length was read before.
    fn as_hole(&self, hole: &FileStat) -> Option<VisitedEntry> {
        let n_bytes = hole.st_size as u64;
        let object = self.holes().get(&n_bytes).copied()?;
        Some(VisitedEntry {
            node: Node::file(hole, n_bytes, object),
            known: self.is_settled(hole).then(|| stamp(hole)),
        })
    }
}

impl Visitor for SnapshotReader<'_, '_> {
    type State = Deflate;

    fn visit(
        &self,
        deflate: &mut Deflate,
        place: &EntryLocation<'_>,
        stat: &FileStat,
    ) -> Result<Option<VisitedEntry>, Error> {
        let is_file = file_type(stat) == SFlag::S_IFREG;
        if is_file
            && let Some(object) = self.known.find(place.path, place.name, stat)
            && self.addition.has(&object)
        {
            let node = Node::file(stat, stat.st_size as u64, object);
            return Ok(Some(VisitedEntry {
                node,
                known: Some(stamp(stat)),
            }));
        }
        let _alone = (is_file && stat.st_size > LARGE)
            .then(|| self.large.lock().unwrap_or_else(PoisonError::into_inner));
        let hole = if is_file && stat.st_blocks == 0 && stat.st_size >= SHORTEST_HOLE {
            hole(place.folder, place.name)
        } else {
            None
        };
        if let Some(visited) = hole.as_ref().and_then(|hole| self.as_hole(hole)) {
            return Ok(Some(visited));
        }
        let failed = |source| Error::Project {
            doing: "read",
            path: BytesPath::from_bytes(join(place.path, place.name)),
            source,
        };
        let found = FoundEntry::at(place.folder, place.name).map_err(failed)?;
        let FoundEntry::File {
            content,
            stat,
            is_settled,
        } = &found
        else {
            // A folder replaced the listed entry: the next snapshot captures it.
            let node = found.node().filter(|node| !node.is_folder());
            return Ok(node.map(|node| VisitedEntry { node, known: None }));
        };
        self.n_bytes_read
            .fetch_add(content.len() as u64, Ordering::Relaxed);
        // It did not change between the two looks at it.
        let is_hole = *is_settled && hole.is_some_and(|hole| stamp(&hole) == stamp(stat));
        let is_settled = *is_settled && self.is_settled(stat);
        Ok(Some(match self.addition.put(content, deflate)? {
            PutOutcome::Kept(object) => {
                if is_hole {
                    self.holes().insert(content.len() as u64, object);
                }
                let node = Node::file(stat, content.len() as u64, object);
                VisitedEntry {
                    node,
                    known: is_settled.then(|| stamp(stat)),
                }
            }
            PutOutcome::Full => VisitedEntry {
                node: Node::unkept(UncapturedReason::StoreFull, stat),
                known: None,
            },
        }))
    }
}

/// Returns a file's metadata if it is a single hole.
fn hole(folder: BorrowedFd<'_>, name: &[u8]) -> Option<FileStat> {
    let flags = OFlag::O_RDONLY
        | OFlag::O_NOFOLLOW
        | OFlag::O_NONBLOCK
        | OFlag::O_NOCTTY
        | OFlag::O_CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty()).ok()?;
    let before = fstat(&file).ok()?;
    let is_file = file_type(&before) == SFlag::S_IFREG && before.st_size as u64 <= MOST_FILE_BYTES;
    let is_hole = is_file && lseek(&file, 0, Whence::SeekData) == Err(Errno::ENXIO);
    let after = fstat(&file).ok()?;
    (is_hole && stamp(&before) == stamp(&after)).then_some(after)
}

/// Makes trees of what was found, the deepest first, and the cache for the next time.
fn put_together(
    mut folders: HashMap<Vec<u8>, WalkedFolder>,
    addition: &Addition<'_>,
) -> Result<(Snapshot, Cache), Error> {
    let mut paths: Vec<Vec<u8>> = folders.keys().cloned().collect();
    // A folder's path is longer than that of its parent.
    paths.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    let mut deflate = Deflate::default();
    let mut cache = Cache::default();
    let mut n_files = 0;
    let mut passed_over = Vec::new();
    let mut finished: HashMap<Vec<u8>, Vec<(Vec<u8>, Node)>> = HashMap::new();
    let mut id = None;
    for path in paths {
        let walked = folders.remove(&path).expect("it is one of the keys");
        let mut entries = finished.remove(&path).unwrap_or_default();
        let mut known = Vec::new();
        for (name, visited) in walked.entries {
            match &visited.node {
                Node::File { object, .. } => {
                    n_files += 1;
                    known.extend(visited.known.map(|stamp| CachedFile {
                        name: name.clone(),
                        stamp,
                        object: *object,
                    }));
                }
                Node::Unkept { why, .. } if *why != UncapturedReason::GitFolder => {
                    passed_over.push((join(&path, &name), *why));
                }
                _ => {}
            }
            entries.push((name, visited.node));
        }
        if !known.is_empty() {
            known.sort_unstable_by(|one, other| one.name.cmp(&other.name));
            cache.0.insert(path.clone(), known);
        }
        let node = match walked.node {
            Some(Node::Folder { mode, .. }) => {
                if path.is_empty() {
                    entries.push((
                        OWN.to_vec(),
                        Node::Folder {
                            mode,
                            tree: addition.put_tree(&Tree::default().encode(), &mut deflate)?,
                        },
                    ));
                }
                let tree = addition.put_tree(&Tree(entries).encode(), &mut deflate)?;
                if path.is_empty() {
                    id = Some(tree);
                }
                Node::Folder { mode, tree }
            }
            Some(node) => {
                passed_over.extend(match &node {
                    Node::Unkept { why, .. } => Some((path.clone(), *why)),
                    _ => None,
                });
                node
            }
            None => continue,
        };
        let (parent, name) = split(&path);
        finished
            .entry(parent.to_vec())
            .or_default()
            .push((name.to_vec(), node));
    }
    let failed = || Error::Project {
        doing: "read",
        path: BytesPath::from_bytes("."),
        source: nix::errno::Errno::ENOENT,
    };
    passed_over.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    let is_cut_short = passed_over
        .iter()
        .any(|(_, why)| *why == UncapturedReason::StoreFull);
    let passed_over = passed_over
        .into_iter()
        .map(|(path, why)| UncapturedPath {
            path: BytesPath::from_bytes(path),
            why,
        })
        .collect();
    Ok((
        Snapshot {
            id: id.ok_or_else(failed)?,
            n_files,
            passed_over,
            is_cut_short,
            n_bytes_read: 0,
        },
        cache,
    ))
}

#[cfg(test)]
mod tests;
