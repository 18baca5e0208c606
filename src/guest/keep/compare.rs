use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::iter;

use serde::Deserialize;
use serde::Serialize;

use super::Error;
use super::Store;
use super::node::Node;
use super::node::are_alike;
use super::object::ObjectId;
use super::tree::OWN;
use super::tree::Tree;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::keep::ChangeKind;
use podbay_wire::keep::EntryType;
use podbay_wire::keep::ModeChange;
use podbay_wire::keep::PathChange;
use podbay_wire::keep::UncapturedReason;

/// A path that differs between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub path: BytesPath,
    pub before: Option<Node>,
    pub after: Option<Node>,
}

/// Returns the differences, sorted by path: a folder comes before its contents.
pub fn compare(store: &Store, before: &ObjectId, after: &ObjectId) -> Result<Vec<Change>, Error> {
    let mut changes = BTreeMap::new();
    let mut folders = VecDeque::from([(Vec::new(), Some(*before), Some(*after))]);
    while let Some((path, before, after)) = folders.pop_front() {
        if before == after {
            continue;
        }
        let read = |id: Option<ObjectId>| {
            id.map_or_else(|| Ok(Tree::default()), |id| Tree::read(store, &id))
        };
        for (name, before, after) in side_by_side(read(before)?, read(after)?) {
            // A snapshot without an entry for the project's own folder says nothing about it.
            if name == OWN && (before.is_none() || after.is_none()) {
                continue;
            }
            let path = join(&path, &name);
            let (one, other) = (tree_of(before.as_ref()), tree_of(after.as_ref()));
            // The contents of a folder that cannot be read now are unknown, not removed.
            let is_unknown = [&before, &after]
                .into_iter()
                .any(|node| may_be_unreadable_folder(node.as_ref()));
            if !is_unknown {
                folders.push_back((path.clone(), one, other));
            }
            if !are_alike(before.as_ref(), after.as_ref()) {
                changes.insert(
                    path.clone(),
                    Change {
                        path: BytesPath::from_bytes(path),
                        before,
                        after,
                    },
                );
            }
        }
    }
    Ok(changes.into_values().collect())
}

/// Compares without the mode of the project's own folder, since a session's copy has a mode of its
/// own there.
pub(super) fn compare_content(
    store: &Store,
    before: &ObjectId,
    after: &ObjectId,
) -> Result<Vec<Change>, Error> {
    let mut changes = compare(store, before, after)?;
    changes.retain(|change| change.path.as_bytes() != OWN);
    Ok(changes)
}

/// Adds what the second state holds in folders that could not be read in the first: what exists
/// there is unknown, not removed.
pub(super) fn add_behind_unreadable(store: &Store, changes: &mut Vec<Change>) -> Result<(), Error> {
    let hidden = changes
        .iter()
        .filter(|change| may_be_unreadable_folder(change.before.as_ref()));
    let mut folders: Vec<(BytesPath, Option<Node>, ObjectId)> = hidden
        .filter_map(|change| {
            Some((
                change.path.clone(),
                change.before.clone(),
                tree_of(change.after.as_ref())?,
            ))
        })
        .collect();
    if folders.is_empty() {
        return Ok(());
    }
    while let Some((path, before, tree)) = folders.pop() {
        for (name, node) in Tree::read(store, &tree)?.0 {
            let path = BytesPath::from_bytes(join(path.as_bytes(), &name));
            folders.extend(tree_of(Some(&node)).map(|tree| (path.clone(), before.clone(), tree)));
            changes.push(Change {
                path,
                before: before.clone(),
                after: Some(node),
            });
        }
    }
    changes.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(())
}

/// Returns the changes for an answer; files of the same content that were removed and added become
/// renames.
pub fn path_changes(changes: &[Change]) -> Vec<PathChange> {
    let mut gone: HashMap<ObjectId, VecDeque<usize>> = HashMap::new();
    for (at, change) in changes.iter().enumerate() {
        if let (
            Some(Node::File {
                object,
                n_bytes: 1..,
                ..
            }),
            None,
        ) = (&change.before, &change.after)
        {
            gone.entry(*object).or_default().push_back(at);
        }
    }
    let mut origins: HashMap<usize, usize> = HashMap::new();
    for (at, change) in changes.iter().enumerate() {
        if let (None, Some(Node::File { object, .. })) = (&change.before, &change.after)
            && let Some(from) = gone.get_mut(object).and_then(VecDeque::pop_front)
        {
            origins.insert(at, from);
        }
    }
    let moved: Vec<usize> = origins.values().copied().collect();
    let told = changes
        .iter()
        .enumerate()
        .filter(|(at, _)| !moved.contains(at));
    told.map(|(at, change)| path_change(change, origins.get(&at).map(|from| &changes[*from])))
        .collect()
}

fn path_change(change: &Change, origin: Option<&Change>) -> PathChange {
    let before = origin.map_or(change.before.as_ref(), |origin| origin.before.as_ref());
    let after = change.after.as_ref();
    let what = match (before, after) {
        _ if let Some(origin) = origin => ChangeKind::Renamed {
            from: origin.path.clone(),
        },
        (None, _) => ChangeKind::Created,
        (_, None) => ChangeKind::Deleted,
        (Some(before), Some(after)) if before.entry_type() != after.entry_type() => {
            ChangeKind::Type {
                before: before.entry_type(),
            }
        }
        (Some(Node::File { object, .. }), Some(Node::File { object: other, .. }))
            if object == other =>
        {
            ChangeKind::Mode
        }
        (Some(Node::Folder { .. }), Some(_)) => ChangeKind::Mode,
        (Some(_), Some(_)) => ChangeKind::Modified,
    };
    let mode = match (before, after) {
        (Some(before), Some(after))
            if before.entry_type() == after.entry_type() && before.mode() != after.mode() =>
        {
            before
                .mode()
                .zip(after.mode())
                .map(|(before, after)| ModeChange { before, after })
        }
        _ => None,
    };
    let shown = after.or(before);
    PathChange {
        path: change.path.clone(),
        what,
        entry: shown.map_or(EntryType::Unkept, Node::entry_type),
        mode,
        n_bytes: match shown {
            Some(Node::File { n_bytes, .. }) => Some(*n_bytes),
            _ => None,
        },
        unkept: [before, after]
            .into_iter()
            .flatten()
            .find_map(|node| match node {
                Node::Unkept { why, .. } => Some(*why),
                _ => None,
            }),
    }
}

/// Pairs the entries of both trees by name.
fn side_by_side(
    before: Tree,
    after: Tree,
) -> impl Iterator<Item = (Vec<u8>, Option<Node>, Option<Node>)> {
    let mut before = before.0.into_iter().peekable();
    let mut after = after.0.into_iter().peekable();
    iter::from_fn(move || {
        let order = match (before.peek(), after.peek()) {
            (Some(one), Some(other)) => one.0.cmp(&other.0),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        let one = if order.is_le() { before.next() } else { None };
        let other = if order.is_ge() { after.next() } else { None };
        let (one_name, one) = one.unzip();
        let (other_name, other) = other.unzip();
        Some((one_name.or(other_name)?, one, other))
    })
}

fn tree_of(node: Option<&Node>) -> Option<ObjectId> {
    match node {
        Some(Node::Folder { tree, .. }) => Some(*tree),
        _ => None,
    }
}

/// Whether it may be a folder whose names are not known.
fn may_be_unreadable_folder(node: Option<&Node>) -> bool {
    matches!(
        node,
        Some(Node::Unkept {
            why: UncapturedReason::Unreadable | UncapturedReason::OtherFileSystem,
            ..
        })
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keep::testing::Scene;

    /// Returns the changes, one line each.
    fn lines(scene: &Scene, before: &ObjectId, after: &ObjectId) -> Vec<String> {
        let changes = path_changes(&compare(&scene.store(), before, after).expect("compares"));
        let line = |change: PathChange| {
            let mode = change.mode.map_or(String::new(), |mode| {
                format!(" {:o}>{:o}", mode.before, mode.after)
            });
            format!("{} {:?} {:?}{mode}", change.path, change.what, change.entry)
        };
        changes.into_iter().map(line).collect()
    }

    #[test]
    fn each_kind_of_change_is_reported_in_both_directions() {
        let scene = Scene::new();
        scene.write("same/deep/file", "x");
        scene.write("modified", "old");
        scene.write("deleted/file", "d");
        scene.write("mode", "m");
        scene.write("old name", "content");
        scene.write("file to folder", "f");
        scene.write("folder to file/in it", "g");
        scene.write("file to link", "h");
        scene.link("here", "link");
        scene.make("closed");
        scene.write("Case", "case");
        let before = scene.take().id;
        assert_eq!(lines(&scene, &before, &before), Vec::<String>::new());
        scene.write("modified", "new");
        scene.remove("deleted");
        scene.mode("mode", 0o755);
        scene.remove("old name");
        scene.write("new/name", "content");
        scene.remove("file to folder");
        scene.write("file to folder/in it", "f2");
        scene.remove("folder to file");
        scene.write("folder to file", "g2");
        scene.remove("file to link");
        scene.link("x", "file to link");
        scene.remove("link");
        scene.link("there", "link");
        scene.mode("closed", 0o500);
        scene.remove("Case");
        scene.write("case", "case");
        let after = scene.take().id;
        let there = [
            r#"case Renamed { from: "Case" } File"#,
            "closed Mode Folder 755>500",
            "deleted Deleted Folder",
            "deleted/file Deleted File",
            "file to folder Type { before: File } Folder",
            "file to folder/in it Created File",
            "file to link Type { before: File } Link",
            "folder to file Type { before: Folder } File",
            "folder to file/in it Deleted File",
            "link Modified Link",
            "mode Mode File 644>755",
            "modified Modified File",
            "new Created Folder",
            r#"new/name Renamed { from: "old name" } File"#,
        ];
        let mut told = lines(&scene, &before, &after);
        told.sort();
        assert_eq!(told, there);
        assert_eq!(lines(&scene, &after, &before).len(), there.len());
    }

    #[test]
    fn empty_and_duplicate_files_are_not_reported_as_renames() {
        let scene = Scene::new();
        scene.write("empty", "");
        scene.write("a", "same");
        let before = scene.take().id;
        scene.remove("empty");
        scene.write("other", "");
        scene.remove("a");
        scene.write("b", "same");
        scene.write("c", "same");
        let after = scene.take().id;
        let told = lines(&scene, &before, &after);
        assert_eq!(
            told,
            [
                r#"b Renamed { from: "a" } File"#,
                "c Created File",
                "empty Deleted File",
                "other Created File"
            ]
        );
    }
}
