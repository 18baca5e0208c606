//! Snapshots that somebody needs for more than undo, such as a review that waits: no pruning takes
//! them.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::Error;
use super::Folder;
use super::ObjectId;
use super::Store;

const NAME: &str = "pins.json";

/// Keeps snapshots under a name, in place of those that were kept under it. Who has the store is
/// the only one who does.
pub fn pin(
    state: &Folder,
    _store: &Store,
    name: &str,
    snapshots: impl IntoIterator<Item = ObjectId>,
) -> Result<(), Error> {
    let mut pins = load(state)?;
    pins.insert(name.to_owned(), snapshots.into_iter().collect());
    save(state, &pins)
}

/// Lets go of what was kept under a name.
pub fn unpin(state: &Folder, _store: &Store, name: &str) -> Result<(), Error> {
    let mut pins = load(state)?;
    match pins.remove(name) {
        Some(_) => save(state, &pins),
        None => Ok(()),
    }
}

/// Returns what is kept, by name.
pub fn load(state: &Folder) -> Result<BTreeMap<String, BTreeSet<ObjectId>>, Error> {
    let broken = |error: serde_json::Error| Error::Unreadable {
        name: NAME.to_owned(),
        problem: error.to_string(),
    };
    state.read(NAME)?.map_or_else(
        || Ok(BTreeMap::new()),
        |bytes| serde_json::from_slice(&bytes).map_err(broken),
    )
}

fn save(state: &Folder, pins: &BTreeMap<String, BTreeSet<ObjectId>>) -> Result<(), Error> {
    state.replace(
        NAME,
        &serde_json::to_vec(pins).expect("pins are plain data"),
    )
}
