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
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;
    use std::thread;

    use nix::sys::stat::mkdirat;

    use super::*;
    use crate::keep::testing::Scene;

    /// Returns everything that a snapshot holds, by path.
    fn held(store: &Store, id: ObjectId) -> Vec<(BytesPath, Node)> {
        let mut all = Vec::new();
        let mut trees = vec![(Vec::new(), id)];
        while let Some((path, id)) = trees.pop() {
            for (name, node) in Tree::read(store, &id)
                .expect("a tree")
                .0
                .into_iter()
                .filter(|(name, _)| name != OWN)
            {
                let path = join(&path, &name);
                if let Node::Folder { tree, .. } = &node {
                    trees.push((path.clone(), *tree));
                }
                all.push((BytesPath::from_bytes(path), node));
            }
        }
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }

    fn passed_over(snapshot: &Snapshot) -> Vec<(String, UncapturedReason)> {
        snapshot
            .passed_over
            .first
            .iter()
            .map(|passed| (passed.path.to_string(), passed.why))
            .collect()
    }

    #[test]
    fn hidden_ignored_empty_and_oddly_named_files_are_captured() {
        let scene = Scene::new();
        scene.write(".gitignore", "target\n");
        scene.write("target/built", "x");
        scene.write(".hidden/.file", "");
        scene.write(b"new\nline", "a");
        scene.write(b"not \xff\xfe UTF-8", "b");
        scene.make("empty/within");
        scene.link("/etc/passwd", "out");
        scene.link("target", "in");
        scene.write("run", "#!/bin/sh\n");
        scene.mode("run", 0o750);
        scene.mode("empty", 0o555);
        let snapshot = scene.take();
        let store = scene.store();
        let held = held(&store, snapshot.id);
        let told: Vec<String> = held
            .iter()
            .map(|(path, node)| match node {
                Node::Folder { mode, .. } => format!("{path}/ {mode:o}"),
                Node::File {
                    mode,
                    n_bytes,
                    object,
                } => {
                    assert_eq!(store.get(object).expect("held").len() as u64, *n_bytes);
                    format!("{path} {mode:o} {n_bytes}")
                }
                Node::Link { target } => format!("{path} -> {target}"),
                Node::Unkept { why, .. } => format!("{path} {why:?}"),
            })
            .collect();
        let expected = [
            ".gitignore 644 7",
            ".hidden/ 755",
            ".hidden/.file 644 0",
            "empty/ 555",
            "empty/within/ 755",
            "in -> target",
            r"new\x0aline 644 1",
            r"not \xff\xfe UTF-8 644 1",
            "out -> /etc/passwd",
            "run 750 10",
            "target/ 755",
            "target/built 644 1",
        ];
        assert_eq!(told, expected);
        assert_eq!((snapshot.n_files, passed_over(&snapshot)), (6, vec![]));
        drop(store);
        assert_eq!(scene.take().id, snapshot.id);
    }

    #[test]
    fn uncaptured_files_are_reported() {
        let scene = Scene::new();
        scene.write("sub/.git/config", "");
        scene.write(".git/config", "");
        scene.write("worktree/.git", "gitdir: elsewhere\n");
        File::create(scene.path("sparse"))
            .expect("made")
            .set_len(5 << 30)
            .expect("grows");
        File::create(scene.path("holes"))
            .expect("made")
            .set_len(5 << 20)
            .expect("grows");
        nix::unistd::mkfifo(&scene.path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
        let _socket = std::os::unix::net::UnixListener::bind(scene.path("socket")).expect("made");
        let snapshot = scene.take();
        let over = [
            ("pipe", UncapturedReason::Special),
            ("socket", UncapturedReason::Special),
            ("sparse", UncapturedReason::TooLarge),
        ];
        assert_eq!(
            passed_over(&snapshot),
            over.map(|(path, why)| (path.to_owned(), why))
        );
        let paths: Vec<String> = held(&scene.store(), snapshot.id)
            .into_iter()
            .map(|(path, _)| path.to_string())
            .collect();
        assert_eq!(
            paths,
            [
                ".git",
                "holes",
                "pipe",
                "socket",
                "sparse",
                "sub",
                "sub/.git",
                "worktree",
                "worktree/.git"
            ]
        );
        // Changes in `.git` are no changes of the project; those of files that are too large are
        // detected.
        scene.write(".git/config", "changed");
        assert_eq!(scene.take().id, snapshot.id);
        File::options()
            .write(true)
            .open(scene.path("sparse"))
            .expect("opens")
            .set_len(6 << 30)
            .expect("grows");
        assert_ne!(scene.take().id, snapshot.id);
    }

    #[test]
    fn files_that_are_one_hole_are_read_once_and_restored_as_holes() {
        const LENGTH: u64 = 8 << 20;
        let scene = Scene::new();
        let make = |name: &str| {
            File::create(scene.path(name))
                .and_then(|file| file.set_len(LENGTH))
                .expect("made");
        };
        (0..16).for_each(|n| make(&format!("hole{n}")));
        // Of the same length, and not empty.
        let mut content = vec![0; LENGTH as usize];
        content[0] = 1;
        scene.write("full", &content);
        let before = scene.take();
        assert!(
            before.n_bytes_read <= 3 * LENGTH,
            "two threads may read the first one each: {}",
            before.n_bytes_read
        );
        let store = scene.store();
        for (path, node) in held(&store, before.id) {
            let Node::File {
                object, n_bytes, ..
            } = node
            else {
                panic!("{path}: {node:?}")
            };
            assert_eq!(n_bytes, LENGTH);
            let expected = u8::from(path == "full".into());
            assert_eq!(
                store
                    .get(&object)
                    .expect("held")
                    .iter()
                    .map(|byte| u32::from(*byte))
                    .sum::<u32>(),
                u32::from(expected)
            );
        }
        drop(store);
        scene.remove("hole7");
        let after = scene.take();
        assert_eq!(scene.apply(after.id, before.id).changed.n, 1);
        let facts = fs::metadata(scene.path("hole7")).expect("it is back");
        assert_eq!(
            (facts.len(), facts.blocks(), scene.take().id),
            (LENGTH, 0, before.id)
        );
    }

    #[test]
    fn a_path_longer_than_the_kernels_limit_is_skipped() {
        let scene = Scene::new();
        let name = "d".repeat(200);
        // Folder by folder: the whole path is longer than the kernel accepts.
        let mut folder = scene.project().list(b"").expect("opens");
        for _ in 0..30 {
            mkdirat(&folder, name.as_str(), Mode::S_IRWXU).expect("made");
            folder = openat(
                &folder,
                name.as_str(),
                OFlag::O_RDONLY | OFlag::O_DIRECTORY,
                Mode::empty(),
            )
            .expect("opens");
        }
        let snapshot = scene.take();
        assert_eq!(snapshot.passed_over.first.len(), 1);
        assert_eq!(snapshot.passed_over.first[0].why, UncapturedReason::TooDeep);
    }

    #[test]
    fn a_file_is_read_again_only_if_its_metadata_changed() {
        let scene = Scene::new();
        for name in ["same", "times", "moved", "grown"] {
            scene.write(name, "1");
        }
        let settle = |scene: &Scene| {
            // Simulates that two seconds pass: what was read now was last changed long ago.
            let state = scene.state();
            let mut cache = Cache::default();
            let known = ["grown", "moved", "same", "times"].map(|name| {
                let stat = nix::sys::stat::lstat(&scene.path(name)).expect("it is there");
                CachedFile {
                    name: name.into(),
                    stamp: stamp(&stat),
                    object: ObjectId::of(b"1"),
                }
            });
            cache.0.insert(Vec::new(), known.into());
            cache.save(&state, "cache").expect("saves");
        };
        let before = scene.take();
        assert_eq!(
            Cache::load(&scene.state(), "cache").expect("loads"),
            Cache::default(),
            "all of it is too new to be trusted"
        );
        settle(&scene);
        assert_eq!(scene.take().id, before.id);
        // The same length and times as before: only the ctime, which no program can set, differs.
        let old = fs::metadata(scene.path("times"))
            .expect("it is there")
            .modified()
            .expect("a time");
        scene.write("times", "2");
        File::options()
            .write(true)
            .open(scene.path("times"))
            .expect("opens")
            .set_modified(old)
            .expect("set");
        scene.write("other", "3");
        fs::rename(scene.path("other"), scene.path("moved")).expect("renamed");
        scene.write("grown", "11");
        let after = scene.take();
        let store = scene.store();
        let contents: Vec<Vec<u8>> = held(&store, after.id)
            .iter()
            .map(|(_, node)| match node {
                Node::File { object, .. } => store.get(object).expect("held"),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(contents, [&b"11"[..], b"3", b"1", b"2"]);
    }

    #[test]
    fn cached_contents_missing_in_the_store_are_read_again() {
        let scene = Scene::new();
        scene.write("a", "1");
        let stat = nix::sys::stat::lstat(&scene.path("a")).expect("it is there");
        let known = CachedFile {
            name: b"a".to_vec(),
            stamp: stamp(&stat),
            object: ObjectId::of(b"1"),
        };
        Cache(HashMap::from([(Vec::new(), vec![known])]))
            .save(&scene.state(), "cache")
            .expect("saves");
        let snapshot = scene.take();
        let store = scene.store();
        assert!(
            matches!(held(&store, snapshot.id)[0].1, Node::File { object, .. } if store.get(&object).expect("held") == b"1")
        );
    }

    #[test]
    fn hard_links_are_captured_as_separate_files() {
        let scene = Scene::new();
        scene.write("one", "x");
        fs::hard_link(scene.path("one"), scene.path("two")).expect("linked");
        assert_eq!(fs::metadata(scene.path("one")).expect("there").nlink(), 2);
        assert_eq!(scene.take().n_files, 2);
    }

    #[test]
    fn many_files_in_one_folder_and_in_many_folders_are_all_found() {
        let scene = Scene::new();
        for n in 0..1_000 {
            scene.write(format!("flat/{n}"), n.to_string());
            scene.write(format!("deep/{}/{}/{n}", n % 10, n % 7), n.to_string());
        }
        let snapshot = scene.take();
        let held: BTreeSet<String> = held(&scene.store(), snapshot.id)
            .into_iter()
            .map(|(path, _)| path.to_string())
            .collect();
        let there: BTreeSet<String> = scene
            .all()
            .into_keys()
            .map(|path| path.display().to_string())
            .collect();
        assert_eq!(held, there);
        assert_eq!((snapshot.n_files, scene.take().id), (2_000, snapshot.id));
    }

    #[test]
    fn files_that_appear_and_disappear_meanwhile_break_nothing() {
        let scene = Scene::new();
        for n in 0..200 {
            scene.write(format!("stays/{n}"), "x");
        }
        scene.make("flips");
        let done = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    scene.write("flips/a/b/c", "x");
                    scene.remove("flips/a");
                    scene.link("/etc", "flips/a");
                    scene.remove("flips/a");
                    scene.write("flips/a", "y");
                    scene.remove("flips/a");
                }
            });
            for _ in 0..30 {
                let snapshot = scene.take();
                let store = scene.store();
                let held = held(&store, snapshot.id);
                assert!(
                    held.iter()
                        .filter(|(path, _)| path.as_bytes().starts_with(b"stays/"))
                        .count()
                        == 200
                );
                let within: Vec<_> = held
                    .iter()
                    .map(|(path, _)| path.to_string())
                    .filter(|path| path.starts_with("flips/a/"))
                    .collect();
                assert!(
                    within
                        .iter()
                        .all(|path| path == "flips/a/b" || path == "flips/a/b/c"),
                    "{within:?}"
                );
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
