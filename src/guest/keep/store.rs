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
mod tests;
