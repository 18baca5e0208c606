//! Tests of applications that a full disk stops, and that are finished when there is room.

use super::*;
use crate::keep::ObjectId;
use crate::keep::testing::SmallDisk;
use podbay_wire::keep::TurnSummary;

const PATHS: [&str; 6] = ["f1", "f2", "f3", "f4", "f5", "f6"];

/// A review whose apply was stopped by a full disk, and the project before; `None`, which is
/// printed: no small disk can be mounted here.
fn stopped() -> Option<(ReviewScene, SmallDisk, BTreeMap<PathBuf, String>)> {
    let scene = Scene::new();
    let small = SmallDisk::mount(scene.root(), "512k")?;
    for path in PATHS {
        scene.write(path, "old\n");
    }
    let before = scene.all();
    let copy = scene.folder().join("copy");
    duplicate(&scene.root(), &copy);
    begin(&scene.project(), None, &scene.state(), "r1", "change it").expect("begun");
    let held = ReviewScene { scene, copy };
    for (path, n) in PATHS.into_iter().zip(0_u64..) {
        let noise: Vec<u8> = (0..4000)
            .flat_map(|at: u64| *ObjectId::of(&(n * 10_000 + at).to_le_bytes()).as_bytes())
            .take(100_000)
            .collect();
        fs::write(held.copy.join(path), noise).expect("written");
    }
    held.end();
    let done = held.apply(&[], false, false);
    assert_eq!(
        done.applied.stopped.as_deref(),
        Some("No space left on device")
    );
    assert!((2..6).contains(&done.applied.changed.n), "{done:?}");
    Some((held, small, before))
}

fn turns(held: &ReviewScene) -> Vec<TurnSummary> {
    undo::list(&held.scene.state()).expect("listed").turns.first
}

fn take_back(held: &ReviewScene, n: u32) {
    let undone = undo::back(
        &held.scene.project(),
        &held.scene.state(),
        n,
        undo::UndoOptions::default(),
    )
    .expect("undone");
    assert!(
        undone
            .turns
            .iter()
            .all(|turn| turn.applied.conflicts.is_empty() && turn.applied.refused.is_empty()),
        "{undone:?}"
    );
}

#[test]
fn an_apply_stopped_and_finished_later_is_undone_as_one_turn() {
    for by_apply in [true, false] {
        let Some((held, small, before)) = stopped() else {
            return;
        };
        assert_eq!(turns(&held).len(), 1);
        small.grow("8m");
        if by_apply {
            let done = held.apply(&[], false, false);
            assert_eq!(
                (done.resumed.map(|resumed| resumed.changed.n), done.n_left),
                (Some(6), 0)
            );
        } else {
            undo::resume(&held.scene.project(), &held.scene.state(), None).expect("finished");
        }
        let told: Vec<_> = turns(&held)
            .iter()
            .map(|turn| (turn.words.clone(), turn.n_changed, turn.is_interrupted))
            .collect();
        assert_eq!(
            told,
            [("apply of the review r1".to_owned(), Some(6), false)],
            "{by_apply}"
        );
        take_back(&held, 1);
        assert_eq!(held.scene.all(), before, "{by_apply}");
    }
}

#[test]
fn changes_made_before_a_stopped_apply_was_finished_stay() {
    let Some((held, small, before)) = stopped() else {
        return;
    };
    let n_first = turns(&held)[0].n_changed;
    held.scene.write("mine", "mine\n");
    small.grow("8m");
    assert_eq!(held.apply(&[], false, false).n_left, 0);
    let told: Vec<_> = turns(&held).iter().map(|turn| turn.n_changed).collect();
    assert_eq!(told, [n_first.map(|n| 6 - n), n_first]);
    take_back(&held, 2);
    assert_eq!(
        fs::read(held.scene.path("mine")).expect("it stays"),
        b"mine\n"
    );
    held.scene.remove("mine");
    assert_eq!(held.scene.all(), before);
}

#[test]
fn paths_left_by_a_finished_apply_are_reported_once() {
    let Some((held, small, _)) = stopped() else {
        return;
    };
    held.scene.write("f1", "mine\n");
    held.scene.write("f6", "mine\n");
    small.grow("8m");
    let done = held.apply(&[], false, false);
    let resumed = done.resumed.expect("it was stopped");
    assert_eq!(
        (resumed.changed.n, resumed.conflicts.n, resumed.refused.n),
        (4, 0, 0)
    );
    assert_eq!(
        left(&done.applied.conflicts),
        ["f1", "f6"].map(|path| format!("{path} was changed by another program since"))
    );
    assert_eq!(done.n_left, 2);
}
