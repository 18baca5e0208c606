//! Repositories that a turn made. They leave the project when its session ends, since git on the
//! user's machine would obey their config: so neither undo nor redo restores one.

use std::collections::BTreeSet;

use super::UndoWork;
use super::steps::Direction;
use crate::keep::Error;
use crate::keep::ObjectId;
use crate::keep::Store;
use crate::keep::bare_repository::NewRepositoryParts;
use crate::keep::bare_repository::RepositoryPart;
use crate::keep::bare_repository::is_bare;
use crate::keep::compare::Change;
use crate::keep::node::Node;
use crate::keep::plan::Outcome;
use crate::keep::tree::Tree;
use crate::root::split;
use podbay_wire::keep::LeftPath;
use podbay_wire::keep::LeftReason;

impl UndoWork<'_> {
    /// Leaves out what would make a folder a repository, or lead git to one, unless the user had it
    /// so.
    pub(super) fn leave_out_made(
        &self,
        way: Direction,
        turn: u64,
        wanted: &mut Vec<Change>,
        found: &mut Outcome,
    ) -> Result<(), Error> {
        let mut parts = NewRepositoryParts::of(self.project, wanted);
        let mut made: BTreeSet<Vec<u8>> = BTreeSet::new();
        for folder in parts.folders() {
            if self.is_made_by_turn(way, turn, |state| {
                Ok(is_bare(&parts_in(&self.store, state, folder)?))
            })? {
                made.insert(folder.to_vec());
            }
        }
        parts.retain(|folder| made.contains(folder));
        let mut leads: BTreeSet<Vec<u8>> = BTreeSet::new();
        for change in wanted.iter().filter(|change| leads_to_git(change)) {
            let is_so = |state: &ObjectId| {
                Ok(node_at(&self.store, state, change.path.as_bytes())? == change.after)
            };
            if self.is_made_by_turn(way, turn, is_so)? {
                leads.insert(change.path.as_bytes().to_vec());
            }
        }
        let is_left = |change: &mut Change| {
            change.after.is_some()
                && (parts.has(change.path.as_bytes()) || leads.contains(change.path.as_bytes()))
        };
        for change in wanted.extract_if(.., is_left) {
            found.leave(LeftPath {
                path: change.path,
                reason: LeftReason::MadeGit,
            });
        }
        Ok(())
    }

    /// Whether the cause for the target state is a turn. What existed before the first turn, or
    /// since the time between two, is the user's.
    fn is_made_by_turn(
        &self,
        way: Direction,
        number: u64,
        holds: impl Fn(&ObjectId) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        for turn in self
            .log
            .turns
            .iter()
            .rev()
            .filter(|turn| turn.turn <= number)
        {
            let Some(end) = turn.end else { continue };
            let is_it = turn.turn == number;
            // It is only caused together with what is in the project: the user never had it so.
            let is_over = is_it && way == Direction::Back;
            if !is_over && !holds(&end.after)? {
                return Ok(is_it);
            }
            if !holds(&turn.before)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether it is a `.git` that is no folder. A folder of that name is never restored.
fn leads_to_git(change: &Change) -> bool {
    split(change.path.as_bytes()).1 == b".git" && change.after.is_some()
}

fn parts_in(
    store: &Store,
    state: &ObjectId,
    folder: &[u8],
) -> Result<BTreeSet<RepositoryPart>, Error> {
    let tree = if folder.is_empty() {
        Some(*state)
    } else {
        tree_of(node_at(store, state, folder)?.as_ref())
    };
    let Some(tree) = tree else {
        return Ok(BTreeSet::new());
    };
    Ok(Tree::read(store, &tree)?
        .0
        .iter()
        .filter_map(|(name, _)| RepositoryPart::of(name))
        .collect())
}

/// Returns the entry at a path of a snapshot.
fn node_at(store: &Store, state: &ObjectId, path: &[u8]) -> Result<Option<Node>, Error> {
    let mut tree = Some(*state);
    let mut node = None;
    for name in path.split(|byte| *byte == b'/') {
        let Some(folder) = tree else { return Ok(None) };
        node = Tree::read(store, &folder)?
            .0
            .into_iter()
            .find(|(known, _)| known == name)
            .map(|(_, node)| node);
        tree = tree_of(node.as_ref());
    }
    Ok(node)
}

fn tree_of(node: Option<&Node>) -> Option<ObjectId> {
    match node {
        Some(Node::Folder { tree, .. }) => Some(*tree),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::redo;
    use super::super::tests::take_turn;
    use super::super::tests::undo;
    use crate::keep::testing::Scene;
    use crate::keep::testing::left;
    use podbay_wire::keep::UndoOutcome;

    fn make(scene: &Scene) {
        scene.write("lib/HEAD", "ref: refs/heads/main\n");
        scene.write("lib/objects/x", "x");
        scene.write("lib/refs/y", "y");
    }

    fn clear(scene: &Scene) {
        for path in ["lib/HEAD", "lib/objects", "lib/refs"] {
            scene.remove(path);
        }
    }

    /// Returns the paths that were left because they make a repository.
    fn left_out(undone: &UndoOutcome) -> Vec<String> {
        let all = undone
            .turns
            .iter()
            .flat_map(|turn| [left(&turn.applied.conflicts), left(&turn.applied.refused)].concat());
        all.map(|line| {
            line.replace(
                " is part of a repository that a turn made, or leads to one; git on your \
                machine would obey it",
                "",
            )
        })
        .collect()
    }

    const PARTS: [&str; 5] = [
        "lib/HEAD",
        "lib/objects",
        "lib/objects/x",
        "lib/refs",
        "lib/refs/y",
    ];

    #[test]
    fn a_repository_made_by_a_turn_and_moved_out_is_not_restored() {
        let scene = Scene::new();
        scene.write("lib/config", "theirs");
        scene.write("sub/.git", "gitdir: ../theirs\n");
        let before = scene.all();
        take_turn(&scene, 1, || {
            make(&scene);
            scene.write("lib/config", "evil");
            scene.write("lib/made", "x");
            scene.write("sub/.git", "gitdir: ../lib\n");
            scene.write("new/.git", "gitdir: ../lib\n");
        });
        // The state after the session.
        clear(&scene);
        scene.write("sub/.git", "gitdir: ../theirs\n");
        scene.remove("new/.git");
        assert_eq!(left_out(&undo(&scene, 1)), [""; 0]);
        assert_eq!(scene.all(), before);
        assert_eq!(
            left_out(&redo(&scene, 1)),
            [&PARTS[..], &["new/.git", "sub/.git"]].concat()
        );
        let there: Vec<String> = scene
            .all()
            .into_keys()
            .map(|path| path.display().to_string())
            .collect();
        assert_eq!(
            there,
            ["lib", "lib/config", "lib/made", "new", "sub", "sub/.git"]
        );
        assert!(scene.all()["lib/config".as_ref() as &std::path::Path].contains("evil"));
        assert_eq!(left_out(&undo(&scene, 1)), [""; 0]);
        assert_eq!(scene.all(), before);
    }

    #[test]
    fn repositories_that_the_user_had_are_restored() {
        let scene = Scene::new();
        make(&scene);
        scene.write("sub/.git", "gitdir: ../theirs\n");
        let before = scene.all();
        take_turn(&scene, 1, || scene.write("other", "1"));
        take_turn(&scene, 2, || {
            clear(&scene);
            scene.remove("sub");
        });
        assert_eq!(left_out(&undo(&scene, 2)), [""; 0]);
        assert_eq!(scene.all(), before);
        assert_eq!(left_out(&redo(&scene, 2)), [""; 0]);
        assert!(!scene.path("lib/HEAD").exists());
    }

    #[test]
    fn a_repository_removed_by_a_later_turn_is_restored_only_if_the_user_made_it() {
        let scene = Scene::new();
        scene.write("lib/file", "1");
        take_turn(&scene, 1, || make(&scene));
        take_turn(&scene, 2, || clear(&scene));
        assert_eq!(left_out(&undo(&scene, 1)), PARTS);
        assert_eq!(left_out(&redo(&scene, 1)), [""; 0]);
        make(&scene);
        take_turn(&scene, 3, || clear(&scene));
        assert_eq!(left_out(&undo(&scene, 1)), [""; 0]);
        assert!(scene.path("lib/HEAD").exists(), "they put it there");
    }

    #[test]
    fn repository_parts_are_not_combined_across_states() {
        let scene = Scene::new();
        scene.write("lib/file", "1");
        take_turn(&scene, 1, || {
            scene.write("lib/objects/x", "x");
            scene.write("lib/refs/y", "y");
        });
        undo(&scene, 1);
        scene.write("lib/HEAD", "a file of theirs");
        assert_eq!(left_out(&redo(&scene, 1)), PARTS[1..]);
    }
}
