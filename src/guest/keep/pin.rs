//! Snapshots that are needed for more than undo, such as those of a pending review: pruning keeps
//! them.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::Error;
use super::ObjectId;
use super::StateFolder;
use super::Store;

const NAME: &str = "pins.json";

/// Pins snapshots under a name, in place of earlier ones. The caller holds the store, and so its
/// lock.
pub fn pin(
    state: &StateFolder,
    _store: &Store,
    name: &str,
    snapshots: impl IntoIterator<Item = ObjectId>,
) -> Result<(), Error> {
    let mut pins = load(state)?;
    pins.insert(name.to_owned(), snapshots.into_iter().collect());
    save(state, &pins)
}

/// Unpins the snapshots of a name.
pub fn unpin(state: &StateFolder, _store: &Store, name: &str) -> Result<(), Error> {
    let mut pins = load(state)?;
    match pins.remove(name) {
        Some(_) => save(state, &pins),
        None => Ok(()),
    }
}

/// Returns the pinned snapshots, by name.
pub fn load(state: &StateFolder) -> Result<BTreeMap<String, BTreeSet<ObjectId>>, Error> {
    let broken = |error: serde_json::Error| Error::Unreadable {
        name: NAME.to_owned(),
        problem: error.to_string(),
    };
    state.read(NAME)?.map_or_else(
        || Ok(BTreeMap::new()),
        |bytes| serde_json::from_slice(&bytes).map_err(broken),
    )
}

fn save(state: &StateFolder, pins: &BTreeMap<String, BTreeSet<ObjectId>>) -> Result<(), Error> {
    state.replace(
        NAME,
        &serde_json::to_vec(pins).expect("pins are plain data"),
    )
}
