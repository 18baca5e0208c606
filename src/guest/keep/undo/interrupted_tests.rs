//! Tests of an interrupted undo or redo, and of turns after it.

use std::collections::BTreeMap;
use std::fs;

use super::tests::numbers;
use super::tests::redo;
use super::tests::take_turn;
use super::tests::undo;
use super::*;
use crate::keep::Node;
use crate::keep::Outcome;
use crate::keep::Request;
use crate::keep::journal::Journal;
use crate::keep::journal::Purpose;
use crate::keep::plan::make_plan;
use crate::keep::plan::wanted_changes;
use crate::keep::testing::Scene;
use crate::keep::testing::as_user;

const FILES: [&str; 3] = ["a", "b", "c"];

/// Leaves the project as if killed while the newest turn is undone, or the oldest one redone: the
/// first file is done, the second one is under its temporary name, the third is as before.
fn interrupt(scene: &Scene, way: Direction, then: u32) {
    let state = scene.state();
    let log = TurnLog::load(&state).expect("loads");
    let turn = match way {
        Direction::Back => log.back().next(),
        Direction::Forward => log.forward().next(),
    };
    let turn = turn.expect("there is one");
    let after = turn.end.expect("ended").after;
    let (from, to) = if way == Direction::Back {
        (after, turn.before)
    } else {
        (turn.before, after)
    };
    let request = Request {
        purpose: way.purpose(turn.turn, then, false),
        ..Scene::request(from, to)
    };
    let mut store = scene.store();
    let wanted = wanted_changes(&store, &request).expect("compared");
    let journal = make_plan(
        &scene.project(),
        &mut store,
        &request,
        wanted,
        Outcome::default(),
        BTreeMap::new(),
    )
    .expect("planned");
    assert_eq!(journal.changes.len(), FILES.len());
    journal.save(&state).expect("saved");
    let content = |at: usize| match &journal.changes[at].after {
        Some(Node::File { object, .. }) => store.get(object).expect("kept"),
        other => panic!("{other:?}"),
    };
    scene.write(FILES[0], content(0));
    scene.write(format!(".podbay-{}-1.new", journal.token), content(1));
}

fn fill(scene: &Scene, word: &str) {
    for path in FILES {
        scene.write(path, format!("{path} {word}\n"));
    }
}

fn leftovers(scene: &Scene) -> usize {
    scene
        .all()
        .keys()
        .filter(|path| path.as_os_str().as_encoded_bytes().starts_with(b".podbay-"))
        .count()
}

#[test]
fn a_turn_after_an_interrupted_undo_or_redo_loses_nothing() {
    for way in [Direction::Back, Direction::Forward] {
        let scene = Scene::new();
        fill(&scene, "0");
        let originals = scene.all();
        for n in 1..=3 {
            take_turn(&scene, n, || fill(&scene, &n.to_string()));
        }
        if way == Direction::Forward {
            undo(&scene, 3);
        }
        interrupt(&scene, way, 2);
        let begun = begin(&scene.project(), &scene.state(), "session", 4, "").expect("begun");
        assert!(begun.is_given_up && !begun.is_unfinished);
        scene.write("new", "4");
        scene.write("b", "turn 4");
        end(&scene.project(), &scene.state()).expect("ended");
        assert_eq!(leftovers(&scene), 1);
        assert!(matches!(
            resume(&scene.project(), &scene.state(), None),
            Ok(Resumed::Nothing)
        ));
        assert_eq!(
            leftovers(&scene),
            0,
            "it is cleaned up as soon as the project is writable"
        );
        let undone = undo(&scene, 9);
        assert!(
            undone
                .turns
                .iter()
                .all(|turn| turn.applied.conflicts.is_empty() && turn.applied.refused.is_empty()),
            "{undone:?}"
        );
        assert_eq!(
            numbers(&undone).0,
            if way == Direction::Back {
                vec![4, 3, 2, 1]
            } else {
                vec![4, 1]
            }
        );
        assert_eq!(scene.all(), originals, "{way:?}");
    }
}

#[test]
fn temporary_files_removed_in_a_turn_are_not_restored_with_it() {
    let scene = Scene::new();
    fill(&scene, "0");
    let originals = scene.all();
    take_turn(&scene, 1, || fill(&scene, "1"));
    interrupt(&scene, Direction::Back, 0);
    take_turn(&scene, 2, || {
        let is_ours = |path: &std::path::PathBuf| {
            path.as_os_str().as_encoded_bytes().starts_with(b".podbay-")
        };
        for path in scene.all().into_keys().filter(is_ours) {
            fs::remove_file(scene.root().join(path)).expect("removed");
        }
        scene.write("new", "2");
    });
    assert_eq!(numbers(&undo(&scene, 2)).0, [2, 1]);
    assert_eq!(scene.all(), originals);
}

#[test]
fn the_rest_of_an_interrupted_redo_is_restorable_after_another_turn() {
    let scene = Scene::new();
    fill(&scene, "0");
    take_turn(&scene, 1, || fill(&scene, "1"));
    let after = scene.all();
    undo(&scene, 1);
    interrupt(&scene, Direction::Forward, 0);
    take_turn(&scene, 2, || scene.write("new", "2"));
    undo(&scene, 1);
    let undone =
        retry(&scene.project(), &scene.state(), UndoOptions::default()).expect("tried again");
    assert_eq!(undone.turns[0].applied.changed.n, 2);
    assert_eq!(scene.all(), after);
}

#[test]
fn an_abandoned_redo_can_be_undone() {
    let scene = Scene::new();
    fill(&scene, "0");
    let originals = scene.all();
    take_turn(&scene, 1, || fill(&scene, "1"));
    undo(&scene, 1);
    interrupt(&scene, Direction::Forward, 0);
    assert!(abandon(&scene.project(), &scene.state()).expect("given up"));
    // A turn now would end what could be redone.
    take_turn(&scene, 2, || scene.write("new", "2"));
    assert_eq!(numbers(&undo(&scene, 2)).0, [2, 1]);
    assert_eq!(scene.all(), originals);
    redo(&scene, 1);
    assert_eq!(fs::read(scene.path("c")).expect("there"), b"c 1\n");
}

#[test]
fn an_undo_interrupted_before_any_change_starts_again() {
    as_user(|| {
        let scene = Scene::new();
        scene.write("closed/file", "1");
        let before = scene.all();
        take_turn(&scene, 1, || {
            scene.remove("closed/file");
            scene.mode("closed", 0);
        });
        // As after a kill when only the folder was opened.
        let mut look = Journal::look(
            "0123456789abcdef".to_owned(),
            Purpose::Back {
                turn: 1,
                then: 0,
                merge: false,
            },
        );
        look.opened.insert("closed".into(), 0);
        look.save(&scene.state()).expect("saved");
        scene.mode("closed", 0o700);
        assert!(matches!(
            back(&scene.project(), &scene.state(), 1, UndoOptions::default()),
            Err(Error::Unfinished)
        ));
        let Ok(Resumed::Turns(undone)) = resume(&scene.project(), &scene.state(), None) else {
            panic!("nothing was")
        };
        assert_eq!(numbers(&undone).0, [1]);
        assert!(!apply::is_unfinished(&scene.state()).expect("told"));
        assert_eq!(scene.all(), before);
    });
}
