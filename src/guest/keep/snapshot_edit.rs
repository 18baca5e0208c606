//! Derives a snapshot from another one and a list of changes, without reading any file.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::Error;
use super::compare::Change;
use super::deflate::Deflate;
use super::node::Node;
use super::object::ObjectId;
use super::store::Addition;
use super::store::Store;
use super::tree::Tree;
use crate::root::join;
use crate::root::split;

/// Returns the snapshot with the `after` state of each change. A folder only gets its mode; its
/// contents are changes of their own.
pub(super) fn edited<'c>(
    store: &mut Store,
    base: &ObjectId,
    changes: impl IntoIterator<Item = &'c Change>,
) -> Result<ObjectId, Error> {
    let mut edits = SnapshotEdit::default();
    for change in changes {
        let path = change.path.as_bytes();
        let (parent, name) = split(path);
        edits
            .by_folder
            .entry(parent)
            .or_default()
            .insert(name, change.after.as_ref());
        let mut above = parent;
        while !above.is_empty() && edits.touched.insert(above) {
            above = split(above).0;
        }
    }
    let addition = store.add();
    let made = edits.folder(store, &addition, b"", Some(base))?;
    let added = addition.finish()?;
    store.take_in_added(added)?;
    Ok(made)
}

#[derive(Default)]
struct SnapshotEdit<'c> {
    by_folder: BTreeMap<&'c [u8], BTreeMap<&'c [u8], Option<&'c Node>>>,
    /// Folders with changes below them.
    touched: BTreeSet<&'c [u8]>,
}

impl SnapshotEdit<'_> {
    /// Writes the tree of a folder, and those of changed folders below it.
    fn folder(
        &self,
        store: &Store,
        addition: &Addition<'_>,
        path: &[u8],
        before: Option<&ObjectId>,
    ) -> Result<ObjectId, Error> {
        let before = before.map_or_else(|| Ok(Tree::default()), |id| Tree::read(store, id))?;
        let mut entries: BTreeMap<Vec<u8>, Node> = before.0.into_iter().collect();
        let mut trees: BTreeMap<Vec<u8>, ObjectId> = BTreeMap::new();
        for (name, node) in &entries {
            if let Node::Folder { tree, .. } = node {
                trees.insert(name.clone(), *tree);
            }
        }
        let own = self.by_folder.get(path);
        for (name, after) in own.into_iter().flatten() {
            match after {
                Some(node) => entries.insert(name.to_vec(), (*node).clone()),
                None => entries.remove(*name),
            };
        }
        for (name, node) in &mut entries {
            let path = join(path, name);
            let is_new = own.is_some_and(|own| own.contains_key(name.as_slice()));
            if let Node::Folder { tree, .. } = node
                && (is_new || self.touched.contains(path.as_slice()))
            {
                *tree = self.folder(store, addition, &path, trees.get(name))?;
            }
        }
        addition.put_tree(
            &Tree(entries.into_iter().collect()).encode(),
            &mut Deflate::default(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keep::compare::compare;
    use crate::keep::testing::Scene;

    #[test]
    fn an_edit_with_all_changes_equals_the_other_snapshot() {
        let scene = Scene::new();
        for path in [
            "same/deep/file",
            "modified",
            "deleted/a/file",
            "kind",
            "folder/to/file",
        ] {
            scene.write(path, path);
        }
        let before = scene.take().id;
        scene.write("modified", "2");
        scene.remove("deleted");
        scene.remove("kind");
        scene.write("kind/now/folder", "f");
        scene.remove("folder");
        scene.write("folder", "now a file");
        scene.make("empty/in/empty");
        scene.mode("same", 0o700);
        let after = scene.take().id;
        let mut store = scene.store();
        let changes = compare(&store, &before, &after).expect("compared");
        assert_eq!(
            edited(&mut store, &before, &changes).expect("edited"),
            after
        );
        assert_eq!(edited(&mut store, &before, &[]).expect("edited"), before);
        // Some of the changes; a folder does not add contents that are not among them.
        let some = |wanted: &[&str]| {
            changes
                .iter()
                .filter(|change| wanted.iter().any(|path| change.path == (*path).into()))
                .collect::<Vec<_>>()
        };
        let part =
            edited(&mut store, &before, some(&["empty", "modified", "same"])).expect("edited");
        let paths: Vec<String> = compare(&store, &before, &part)
            .expect("compared")
            .iter()
            .map(|change| change.path.to_string())
            .collect();
        assert_eq!(paths, ["empty", "modified", "same"]);
    }
}
