use std::fs;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::tests::redo;
use super::tests::take_turn;
use super::tests::undo;
use super::*;
use crate::keep::testing::Scene;
use crate::keep::testing::as_user;
use crate::keep::testing::left;
use podbay_wire::keep::LeftReason;
use podbay_wire::keep::UncapturedReason;

const MERGE: UndoOptions = UndoOptions {
    merge: true,
    is_beside: false,
};

fn try_again(scene: &Scene, how: UndoOptions) -> UndoOutcome {
    retry(&scene.project(), &scene.state(), how).expect("tried again")
}

/// Returns the paths left of all turns, conflicts first.
fn all_left(undone: &UndoOutcome) -> Vec<String> {
    undone
        .turns
        .iter()
        .flat_map(|turn| [left(&turn.applied.conflicts), left(&turn.applied.refused)].concat())
        .collect()
}

fn not_kept(path: &str, why: UncapturedReason) -> String {
    format!("{path} {}", LeftReason::NotKept { why })
}

fn n_left(scene: &Scene) -> Vec<u64> {
    list(&scene.state())
        .expect("listed")
        .turns
        .first
        .iter()
        .map(|turn| turn.n_left)
        .collect()
}

#[test]
fn contents_of_an_emptied_and_closed_folder_are_restored() {
    as_user(|| {
        let scene = Scene::new();
        for path in [
            "d/in",
            "d/s/t",
            "deep/er/file",
            "deep/kept",
            "half/gone",
            "half/kept",
        ] {
            scene.write(path, path);
        }
        let before = scene.all();
        take_turn(&scene, 1, || {
            for path in ["d/in", "d/s", "deep/er/file", "half/gone"] {
                scene.remove(path);
            }
            for (path, mode) in [("d", 0), ("deep/er", 0), ("deep", 0), ("half", 0o600)] {
                scene.mode(path, mode);
            }
        });
        assert_eq!(all_left(&undo(&scene, 1)), [""; 0]);
        assert_eq!(scene.all(), before);
    });
}

#[test]
fn unknown_files_in_a_closed_folder_are_named_and_stay() {
    as_user(|| {
        let scene = Scene::new();
        scene.write("d/in", "old");
        scene.write("d/same", "same");
        take_turn(&scene, 1, || {
            scene.write("d/in", "new");
            scene.write("d/made", "new");
            scene.mode("d", 0);
        });
        let undone = undo(&scene, 1);
        assert_eq!(
            all_left(&undone),
            ["d/made", "d/in"].map(|path| not_kept(path, UncapturedReason::Unreadable))
        );
        assert_eq!(
            fs::read(scene.path("d/in")).expect("it is open again"),
            b"new"
        );
        assert_eq!(n_left(&scene), [2]);
        scene.remove("d/in");
        assert_eq!(
            all_left(&try_again(&scene, UndoOptions::default())),
            [""; 0]
        );
        assert_eq!(
            (fs::read(scene.path("d/in")).expect("back"), n_left(&scene)),
            (b"old".to_vec(), vec![0])
        );
        // The state after it is not known, so it cannot be redone; that is reported.
        let held = LeftReason::Unkept {
            why: UncapturedReason::Unreadable,
        };
        assert_eq!(all_left(&redo(&scene, 1)), [format!("d {held}")]);
    });
}

#[test]
fn captured_files_are_restored_once_uncaptured_ones_are_out_of_the_way() {
    let scene = Scene::new();
    for path in ["large", "pipe", "folder/in", "away"] {
        scene.write(path, "old text\n");
    }
    let before = scene.all();
    let grow = |path: &str| {
        fs::File::create(scene.path(path))
            .expect("made")
            .set_len(70 << 20)
            .expect("grows");
    };
    take_turn(&scene, 1, || {
        for path in ["pipe", "folder"] {
            scene.remove(path);
            mkfifo(&scene.path(path), Mode::S_IRWXU).expect("made");
        }
        for path in ["large", "away", "more"] {
            grow(path);
        }
    });
    let shown = difference(&scene.state(), 1).expect("shown");
    assert_eq!(
        shown[0].text.matches("-old text").count(),
        4,
        "{}",
        shown[0].text
    );
    // Removed before: nothing is in its way.
    scene.remove("away");
    let undone = undo(&scene, 1);
    let no_folder = format!("folder/in {}", LeftReason::NoFolder);
    let [folder, pipe] = ["folder", "pipe"].map(|path| not_kept(path, UncapturedReason::Special));
    let [large, more] = ["large", "more"].map(|path| not_kept(path, UncapturedReason::TooLarge));
    assert_eq!(all_left(&undone), [folder, large, more, pipe, no_folder]);
    assert_eq!(fs::read(scene.path("away")).expect("back"), b"old text\n");
    assert_eq!(
        all_left(&try_again(&scene, UndoOptions::default())).len(),
        5,
        "nothing is out of its way yet"
    );
    for path in ["folder", "large", "more", "pipe"] {
        scene.remove(path);
    }
    assert_eq!(
        all_left(&try_again(&scene, UndoOptions::default())),
        [""; 0]
    );
    assert_eq!(scene.all(), before);
    assert!(try_again(&scene, UndoOptions::default()).turns.is_empty());
}

#[test]
fn left_paths_can_be_retried_after_another_turn() {
    let scene = Scene::new();
    scene.write("text", "a\nb\nc\nd\n");
    scene.write("other", "1");
    take_turn(&scene, 1, || {
        scene.write("text", "a\nb\nc\nD\n");
        scene.write("other", "2");
    });
    scene.write("text", "mine\na\nb\nc\nD\n");
    assert_eq!(undo(&scene, 1).turns[0].turn.n_left, 1);
    // What was restored belongs to the user again.
    scene.write("other", "2");
    take_turn(&scene, 2, || scene.write("new", "x"));
    assert!(redo(&scene, 1).turns.is_empty(), "another turn came since");
    assert_eq!(n_left(&scene), [0, 1]);
    assert_eq!(
        all_left(&try_again(&scene, UndoOptions::default())),
        ["text was changed by another program since"]
    );
    assert_eq!(all_left(&try_again(&scene, MERGE)), [""; 0]);
    assert_eq!(
        fs::read(scene.path("text")).expect("there"),
        b"mine\na\nb\nc\nd\n"
    );
    assert_eq!(fs::read(scene.path("other")).expect("there"), b"2");
    assert_eq!(undo(&scene, 5).turns.len(), 1);
}

#[test]
fn a_path_that_the_user_moved_away_is_restored_by_a_retry() {
    let scene = Scene::new();
    scene.write("file", "old");
    take_turn(&scene, 1, || scene.write("file", "new"));
    scene.remove("file");
    assert_eq!(
        all_left(&undo(&scene, 1)).len(),
        1,
        "it was the user who removed it"
    );
    assert_eq!(
        all_left(&try_again(&scene, UndoOptions::default())),
        [""; 0]
    );
    assert_eq!(fs::read(scene.path("file")).expect("back"), b"old");
}

#[test]
fn paths_left_by_a_redo_can_be_retried() {
    let scene = Scene::new();
    for n in 1..=2 {
        take_turn(&scene, n, || scene.write("file", n.to_string()));
    }
    undo(&scene, 2);
    scene.write("file", "mine");
    assert_eq!(all_left(&redo(&scene, 2)).len(), 2);
    scene.remove("file");
    assert_eq!(
        all_left(&try_again(&scene, UndoOptions::default())),
        [""; 0]
    );
    assert_eq!(fs::read(scene.path("file")).expect("there"), b"2");
}

#[test]
fn paths_that_a_running_sandbox_may_mask_are_left_until_it_ends() {
    let scene = Scene::new();
    for path in [".env", "home/.ssh/known", "plain", "id_card.py"] {
        scene.write(path, "1");
    }
    scene.write("id_work", "-----BEGIN OPENSSH PRIVATE KEY-----\n1");
    let before = scene.all();
    take_turn(&scene, 1, || {
        for path in [".env", "home/.ssh/known", "plain", "id_card.py", "id_work"] {
            scene.write(path, "2");
        }
    });
    let order = UndoOrder::Back {
        n: 1,
        merge: false,
        is_beside: false,
    }
    .beside_a_sandbox();
    let Ok(UndoAnswer::Undone(undone)) = super::order(&scene.project(), &scene.state(), &order)
    else {
        panic!("not undone")
    };
    assert_eq!(
        all_left(&undone),
        [".env", "home/.ssh/known", "id_work"]
            .map(|path| format!("{path} {}", LeftReason::BesideSandbox))
    );
    assert_eq!(fs::read(scene.path(".env")).expect("there"), b"2");
    assert_eq!(fs::read(scene.path("id_card.py")).expect("there"), b"1");
    assert_eq!(
        all_left(&try_again(&scene, UndoOptions::default())),
        [""; 0]
    );
    assert_eq!(scene.all(), before);
}

#[test]
fn a_set_id_file_is_restored_without_its_set_id_bits() {
    let scene = Scene::new();
    scene.write("tool", "1");
    scene.mode("tool", 0o4755);
    scene.write("changed", "1");
    scene.mode("changed", 0o2755);
    let contents = || {
        ["tool", "changed"].map(|path| {
            (
                fs::read_to_string(scene.path(path)).ok(),
                scene.all().get(path.as_ref() as &std::path::Path).cloned(),
            )
        })
    };
    take_turn(&scene, 1, || {
        scene.remove("tool");
        scene.write("changed", "2");
        scene.mode("changed", 0o2755);
    });
    let after = scene.all();
    let undone = undo(&scene, 1);
    assert_eq!(all_left(&undone), [""; 0]);
    assert_eq!(
        undone.turns[0].applied.without_set_id.first,
        ["changed".into(), "tool".into()]
    );
    let plain = || (Some("1".to_owned()), Some("file 755 \"1\"".to_owned()));
    assert_eq!(contents(), [plain(), plain()]);
    assert_eq!(all_left(&redo(&scene, 1)), [""; 0]);
    assert!(!scene.path("tool").exists());
    assert_eq!(
        scene.all()["changed".as_ref() as &std::path::Path],
        after["changed".as_ref() as &std::path::Path].replace("2755", "755")
    );
    assert_eq!(all_left(&undo(&scene, 1)), [""; 0]);
    assert_eq!(contents(), [plain(), plain()]);
}

#[test]
fn an_undo_reports_a_full_disk_and_finishes_when_there_is_room() {
    use crate::keep::testing::SmallDisk;
    let scene = Scene::new();
    let Some(_small) = SmallDisk::mount(scene.root(), "1m") else {
        return;
    };
    let noise = |seed: u64, n: usize| {
        (seed..)
            .flat_map(|n| *super::super::ObjectId::of(&n.to_le_bytes()).as_bytes())
            .take(n)
            .collect::<Vec<u8>>()
    };
    for n in 0..4 {
        scene.write(format!("{n}"), noise(n * 10_000, 100_000));
        scene.write(format!("turned{n}"), noise(n * 10_000 + 500_000, 50_000));
    }
    let before = scene.all();
    take_turn(&scene, 1, || {
        for n in 0..4 {
            scene.write(format!("{n}"), "");
            scene.remove(&format!("turned{n}"));
            scene.write(format!("turned{n}/in"), "x");
        }
    });
    scene.write("mine", noise(9_000_000, 800_000));
    let undone = undo(&scene, 1);
    let applied = &undone.turns[0].applied;
    assert_eq!(
        (applied.stopped.as_deref(), all_left(&undone)),
        (Some("No space left on device"), Vec::new())
    );
    scene.remove("mine");
    let Ok(Resumed::Turns(undone)) = resume(&scene.project(), &scene.state(), None) else {
        panic!("nothing was")
    };
    assert_eq!((all_left(&undone), scene.all()), (Vec::new(), before));
}
