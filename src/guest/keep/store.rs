//! The content-addressed store of snapshots, below a folder.
//!
//! Not git's object store, whose crates would fit otherwise: an id must be collision-resistant
//! (SHA-1 is not), a snapshot of ten thousand files must not make ten thousand files, and one flush
//! must put all of it on the disk.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::HashSet;
use std::fs::File;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use nix::fcntl::Flock;

use super::Error;
use super::deflate;
use super::deflate::Deflate;
use super::node::Node;
use super::object::ObjectId;
use super::pack::NewPack;
use super::pack::Pack;
use super::pack::PackLocation;
use super::state_folder::StateFolder;
use super::tree::Tree;

/// Limit of all snapshots of a project on the disk.
pub const MOST_BYTES: u64 = 1024 * 1024 * 1024;

/// More packs than this are combined.
const MANY_PACKS: usize = 64;

/// Smaller packs are combined.
const SMALL_PACK: u64 = 1024 * 1024;

/// The stored contents of one project; it holds the lock.
#[derive(Debug)]
pub struct Store {
    folder: StateFolder,
    packs: HashMap<u64, Pack>,
    places: HashMap<ObjectId, (u64, PackLocation)>,
    /// Unreadable packs: their contents are lost, and those that still exist in the project are
    /// stored again.
    broken: BTreeSet<u64>,
    most_bytes: u64,
    _lock: Flock<File>,
}

/// The outcome of storing a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PutOutcome {
    Kept(ObjectId),
    /// It would exceed the limit.
    Full,
}

impl Store {
    /// Opens the store below a state folder; waits for the lock.
    pub fn open(state: &StateFolder) -> Result<Self, Error> {
        Self::bounded(state, MOST_BYTES)
    }

    /// Opens it with another limit than [`MOST_BYTES`].
    pub fn bounded(state: &StateFolder, most_bytes: u64) -> Result<Self, Error> {
        let lock = state.lock()?;
        let folder = state.below("objects")?;
        let mut store = Self {
            folder,
            packs: HashMap::new(),
            places: HashMap::new(),
            broken: BTreeSet::new(),
            most_bytes,
            _lock: lock,
        };
        for name in store.folder.names()? {
            if let Some(number) = name
                .strip_suffix(".pack")
                .and_then(|number| u64::from_str_radix(number, 16).ok())
            {
                match store.take_in(number) {
                    Err(Error::Unreadable { .. }) => _ = store.broken.insert(number),
                    other => other?,
                }
            }
        }
        Ok(store)
    }

    pub fn n_bytes(&self) -> u64 {
        self.packs.values().map(|pack| pack.n_bytes).sum()
    }

    pub fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    pub(super) fn has(&self, id: &ObjectId) -> bool {
        self.places.contains_key(id)
    }

    /// Reads and verifies a content.
    pub(super) fn get(&self, id: &ObjectId) -> Result<Vec<u8>, Error> {
        let broken = || Error::Broken { id: *id };
        let (pack, place) = self.places.get(id).ok_or_else(broken)?;
        let stored = self.packs[pack].read(place)?;
        let content = if place.is_deflated {
            deflate::grow(&stored, place.n_bytes as usize).ok_or_else(broken)?
        } else {
            stored
        };
        if ObjectId::of(&content) == *id {
            Ok(content)
        } else {
            Err(broken())
        }
    }

    /// Starts an addition; nothing is visible until it is finished.
    pub(super) fn add(&self) -> Addition<'_> {
        Addition {
            store: self,
            pack: Mutex::default(),
            number: self.next_number(),
            n_bytes_before: self.n_bytes(),
        }
    }

    /// Adds the pack of a finished addition.
    pub(super) fn take_in_added(&mut self, number: Option<u64>) -> Result<(), Error> {
        number.map_or(Ok(()), |number| self.take_in(number))
    }

    /// Removes what none of these snapshots needs.
    pub fn prune(&mut self, keep: &BTreeSet<ObjectId>) -> Result<(), Error> {
        let mut wanted = HashSet::new();
        for snapshot in keep {
            self.want(*snapshot, &mut wanted)?;
        }
        let mut live: HashMap<u64, u64> = HashMap::new();
        for (id, (pack, place)) in &self.places {
            if wanted.contains(id) {
                *live.entry(*pack).or_default() += place.n_stored;
            }
        }
        let merge_small = self.packs.len() > MANY_PACKS;
        let old: Vec<u64> = self
            .packs
            .iter()
            .filter(|(number, pack)| {
                let live = live.get(number).copied().unwrap_or(0);
                live < pack.n_bytes / 2 || merge_small && pack.n_bytes < SMALL_PACK
            })
            .map(|(number, _)| *number)
            .collect();
        let mut moved: Vec<(ObjectId, u64, PackLocation)> = self
            .places
            .iter()
            .filter(|(id, (pack, _))| wanted.contains(*id) && old.contains(pack))
            .map(|(id, (pack, place))| (*id, *pack, *place))
            .collect();
        moved.sort_unstable_by_key(|(_, pack, place)| (*pack, place.at));
        if !moved.is_empty() {
            let number = self.next_number();
            let mut new = NewPack::begin(&self.folder, name_of(number))?;
            for (id, pack, place) in &moved {
                new.add(
                    *id,
                    &self.packs[pack].read(place)?,
                    place.n_bytes,
                    place.is_deflated,
                )?;
            }
            new.finish()?;
            self.take_in(number)?;
        }
        for number in old {
            self.folder.remove(&name_of(number))?;
            self.packs.remove(&number);
        }
        while let Some(number) = self.broken.pop_first() {
            self.folder.remove(&name_of(number))?;
        }
        let packs = &self.packs;
        self.places.retain(|_, (pack, _)| packs.contains_key(pack));
        Ok(())
    }

    /// Adds everything that a tree needs to `wanted`. A tree in it was visited before.
    fn want(&self, tree: ObjectId, wanted: &mut HashSet<ObjectId>) -> Result<(), Error> {
        let mut trees = vec![tree];
        while let Some(id) = trees.pop() {
            if !wanted.insert(id) {
                continue;
            }
            let tree = match Tree::read(self, &id) {
                // A lost content needs nothing else.
                Err(Error::Broken { .. }) => continue,
                other => other?,
            };
            for (_, node) in tree.0 {
                match node {
                    Node::Folder { tree, .. } => trees.push(tree),
                    Node::File { object, .. } => {
                        wanted.insert(object);
                    }
                    Node::Link { .. } | Node::Unkept { .. } => {}
                }
            }
        }
        Ok(())
    }

    fn take_in(&mut self, number: u64) -> Result<(), Error> {
        let (pack, places) = Pack::open(&self.folder, &name_of(number))?;
        self.places
            .extend(places.into_iter().map(|(id, place)| (id, (number, place))));
        self.packs.insert(number, pack);
        Ok(())
    }

    fn next_number(&self) -> u64 {
        self.packs
            .keys()
            .chain(&self.broken)
            .max()
            .map_or(0, |number| number + 1)
    }
}

fn name_of(number: u64) -> String {
    format!("{number:016x}.pack")
}

/// Contents that are being added, by several threads at once.
pub(super) struct Addition<'a> {
    store: &'a Store,
    pack: Mutex<AddedContents<'a>>,
    number: u64,
    n_bytes_before: u64,
}

#[derive(Default)]
struct AddedContents<'a> {
    pack: Option<NewPack<'a>>,
    ids: HashSet<ObjectId>,
}

impl<'a> Addition<'a> {
    pub(super) fn has(&self, id: &ObjectId) -> bool {
        self.store.has(id) || self.lock().ids.contains(id)
    }

    /// Stores a file's content if there is room.
    pub(super) fn put(&self, content: &[u8], deflate: &mut Deflate) -> Result<PutOutcome, Error> {
        self.put_within(content, deflate, self.store.most_bytes)
    }

    /// Stores a tree, without which no file of a snapshot would be found; trees are small, and the
    /// limit does not apply.
    pub(super) fn put_tree(
        &self,
        content: &[u8],
        deflate: &mut Deflate,
    ) -> Result<ObjectId, Error> {
        match self.put_within(content, deflate, u64::MAX)? {
            PutOutcome::Kept(id) => Ok(id),
            PutOutcome::Full => unreachable!("there is no bound"),
        }
    }

    fn put_within(
        &self,
        content: &[u8],
        deflate: &mut Deflate,
        most_bytes: u64,
    ) -> Result<PutOutcome, Error> {
        let id = ObjectId::of(content);
        if self.has(&id) {
            return Ok(PutOutcome::Kept(id));
        }
        let shrunk = deflate.shrink(content);
        let stored = shrunk.unwrap_or(content);
        let mut added = self.lock();
        let n_bytes = self.n_bytes_before
            + added.pack.as_ref().map_or(0, NewPack::n_bytes)
            + stored.len() as u64;
        if n_bytes > most_bytes {
            return Ok(PutOutcome::Full);
        }
        // Two threads may have read the same content at the same time.
        if added.ids.insert(id) {
            let added = &mut *added;
            let pack = match &mut added.pack {
                Some(pack) => pack,
                none => none.insert(NewPack::begin(&self.store.folder, name_of(self.number))?),
            };
            pack.add(id, stored, content.len() as u64, shrunk.is_some())?;
        }
        Ok(PutOutcome::Kept(id))
    }

    /// Flushes everything to the disk; the result is for [`Store::take_in_added`].
    pub(super) fn finish(self) -> Result<Option<u64>, Error> {
        let added = self
            .pack
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        match added.pack {
            Some(pack) => pack.finish().map(|()| Some(self.number)),
            None => Ok(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, AddedContents<'a>> {
        self.pack.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keep::testing::Scene;

    fn noise(seed: u64, n_bytes: usize) -> Vec<u8> {
        (seed..)
            .flat_map(|n| *ObjectId::of(&n.to_le_bytes()).as_bytes())
            .take(n_bytes)
            .collect()
    }

    fn add(store: &mut Store, contents: &[&[u8]]) -> Vec<PutOutcome> {
        let addition = store.add();
        let put = contents
            .iter()
            .map(|content| addition.put(content, &mut Deflate::default()).expect("put"))
            .collect();
        let added = addition.finish().expect("finished");
        store.take_in_added(added).expect("taken in");
        put
    }

    #[test]
    fn stored_contents_survive_reopening_and_are_stored_once() {
        let scene = Scene::new();
        let contents: [&[u8]; 4] = [b"", b"small", &vec![7; 100_000], &noise(0, 100_000)];
        let put = add(&mut scene.store(), &contents);
        let before = scene.store().n_bytes();
        assert!(before < 102_000, "{before}");
        let mut store = scene.store();
        assert_eq!(add(&mut store, &contents), put);
        assert_eq!(store.n_bytes(), before);
        for (content, put) in contents.iter().zip(put) {
            let PutOutcome::Kept(id) = put else {
                panic!("full")
            };
            assert_eq!(store.get(&id).expect("there"), *content);
        }
        assert!(matches!(
            store.get(&ObjectId::of(b"never put")),
            Err(Error::Broken { .. })
        ));
    }

    #[test]
    fn contents_over_the_limit_are_refused_and_smaller_ones_still_stored() {
        let scene = Scene::new();
        let mut store = Store::bounded(&scene.state(), 100_000).expect("opens");
        let put = add(
            &mut store,
            &[&noise(0, 60_000), &noise(9_000, 60_000), b"small"],
        );
        assert!(
            matches!(
                put[..],
                [PutOutcome::Kept(_), PutOutcome::Full, PutOutcome::Kept(_)]
            ),
            "{put:?}"
        );
    }

    #[test]
    fn a_dropped_addition_leaves_nothing() {
        let scene = Scene::new();
        let store = scene.store();
        let addition = store.add();
        addition
            .put(&noise(0, 5_000_000), &mut Deflate::default())
            .expect("put");
        drop(addition);
        drop(store);
        assert_eq!(
            scene
                .state()
                .below("objects")
                .expect("opens")
                .names()
                .expect("lists"),
            Vec::<String>::new()
        );
        // Nor one whose process was killed: its file has a temporary name.
        let objects = scene.state().below("objects").expect("opens");
        objects.begin("0000000000000000.pack").expect("begins");
        assert_eq!(scene.store().n_bytes(), 0);
    }

    #[test]
    fn a_broken_pack_loses_only_its_own_contents() {
        let scene = Scene::new();
        let put = add(&mut scene.store(), &[&noise(0, 1_000)]);
        let objects = scene.state().below("objects").expect("opens");
        let pack = objects
            .read("0000000000000000.pack")
            .expect("reads")
            .expect("there");
        let PutOutcome::Kept(id) = put[0] else {
            panic!("full")
        };
        for (at, is_content) in [
            (5, true),
            (pack.len() - 60, false),
            (pack.len() - 40, false),
            (pack.len() - 1, false),
        ] {
            let mut broken = pack.clone();
            broken[at] ^= 1;
            objects
                .replace("0000000000000000.pack", &broken)
                .expect("replaced");
            let opened = scene.store();
            assert_eq!(opened.packs.len(), usize::from(is_content));
            assert!(matches!(opened.get(&id), Err(Error::Broken { .. })), "{at}");
        }
        objects
            .replace("0000000000000000.pack", &pack[..20])
            .expect("replaced");
        let mut store = scene.store();
        assert_eq!(
            add(&mut store, &[&noise(0, 1_000)]),
            put,
            "what is still there is stored anew"
        );
        assert_eq!(store.get(&id).expect("there"), noise(0, 1_000));
        store.prune(&BTreeSet::new()).expect("prunes");
        assert_eq!(objects.names().expect("lists"), Vec::<String>::new());
    }

    #[test]
    fn pruning_keeps_exactly_what_the_kept_snapshots_need() {
        let scene = Scene::new();
        scene.write("stays", noise(0, 50_000));
        scene.write("goes", noise(100_000, 200_000));
        let first = scene.take().id;
        scene.remove("goes");
        scene.write("in/new", noise(200_000, 50_000));
        let second = scene.take().id;
        let mut store = scene.store();
        let full = store.n_bytes();
        store
            .prune(&BTreeSet::from([first, second]))
            .expect("prunes");
        assert_eq!(store.n_bytes(), full, "all of it is needed");
        store.prune(&BTreeSet::from([second])).expect("prunes");
        drop(store);
        let store = scene.store();
        assert!(
            (100_000..120_000).contains(&store.n_bytes()),
            "{}",
            store.n_bytes()
        );
        let Node::File { object, .. } = Tree::read(&store, &second).expect("there").0[2].1.clone()
        else {
            panic!("no file")
        };
        assert_eq!(store.get(&object).expect("there"), noise(0, 50_000));
        assert!(matches!(
            Tree::read(&store, &first),
            Err(Error::Broken { .. })
        ));
        drop(store);
        let mut store = scene.store();
        store.prune(&BTreeSet::new()).expect("prunes");
        assert_eq!(
            (
                store.n_bytes(),
                scene
                    .state()
                    .below("objects")
                    .expect("opens")
                    .names()
                    .expect("lists")
                    .len()
            ),
            (0, 0)
        );
    }

    #[test]
    fn many_small_packs_are_combined() {
        let scene = Scene::new();
        let mut last = None;
        for n in 0..MANY_PACKS + 6 {
            scene.write(format!("{n}"), n.to_string());
            last = Some(scene.take().id);
        }
        let mut store = scene.store();
        assert!(store.packs.len() > MANY_PACKS);
        store.prune(&last.into_iter().collect()).expect("prunes");
        assert_eq!(store.packs.len(), 1);
        assert_eq!(
            Tree::read(&store, &last.expect("taken"))
                .expect("there")
                .0
                .len(),
            MANY_PACKS + 7
        );
    }
}
