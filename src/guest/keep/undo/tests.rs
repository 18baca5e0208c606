use std::fs;

use super::*;
use crate::keep::Request;
use crate::keep::journal::Purpose;
use crate::keep::pin;
use crate::keep::testing::Scene;
use crate::keep::testing::left;
use podbay_wire::BytesPath;
use podbay_wire::keep::LineCount;
use podbay_wire::keep::TurnState;

pub(super) fn take_turn(scene: &Scene, n_turn: u64, act: impl FnOnce()) -> TurnEnded {
    begin(
        &scene.project(),
        &scene.state(),
        "session",
        n_turn,
        &format!("turn {n_turn}"),
    )
    .expect("begun");
    act();
    end(&scene.project(), &scene.state()).expect("ended")
}

pub(super) fn undo(scene: &Scene, n: u32) -> UndoOutcome {
    back(&scene.project(), &scene.state(), n, UndoOptions::default()).expect("undone")
}

pub(super) fn redo(scene: &Scene, n: u32) -> UndoOutcome {
    forward(&scene.project(), &scene.state(), n, UndoOptions::default()).expect("brought back")
}

pub(super) fn numbers(undone: &UndoOutcome) -> (Vec<u64>, u64, u64) {
    (
        undone.turns.iter().map(|turn| turn.turn.n_turn).collect(),
        undone.n_back,
        undone.n_forward,
    )
}

fn listed(scene: &Scene) -> Vec<(u64, TurnState)> {
    list(&scene.state())
        .expect("listed")
        .turns
        .first
        .iter()
        .map(|turn| (turn.n_turn, turn.state))
        .collect()
}

#[test]
fn turns_are_undone_and_redone_completely() {
    let scene = Scene::new();
    scene.write("kept", "0");
    let mut states = vec![scene.all()];
    for n in 1..=3 {
        take_turn(&scene, n, || {
            scene.write("file", n.to_string());
            scene.write(format!("new{n}/file"), "x");
            scene.mode("kept", 0o600 + n as u32);
        });
        states.push(scene.all());
    }
    take_turn(&scene, 4, || {});
    assert_eq!(
        listed(&scene),
        [
            (3, TurnState::Done),
            (2, TurnState::Done),
            (1, TurnState::Done)
        ]
    );
    assert_eq!(numbers(&undo(&scene, 2)), (vec![3, 2], 1, 2));
    assert_eq!(scene.all(), states[1]);
    assert_eq!(
        listed(&scene),
        [
            (3, TurnState::TakenBack),
            (2, TurnState::TakenBack),
            (1, TurnState::Done)
        ]
    );
    assert_eq!(numbers(&redo(&scene, 1)), (vec![2], 2, 1));
    assert_eq!(scene.all(), states[2]);
    assert_eq!(numbers(&redo(&scene, 5)), (vec![3], 3, 0));
    assert_eq!(scene.all(), states[3]);
    assert_eq!(numbers(&undo(&scene, 9)), (vec![3, 2, 1], 0, 3));
    assert_eq!(scene.all(), states[0]);
    assert_eq!(numbers(&undo(&scene, 1)), (vec![], 0, 3));
    // A turn without changes leaves what can be redone, another one does not.
    take_turn(&scene, 5, || {});
    assert_eq!(numbers(&redo(&scene, 1)), (vec![1], 1, 2));
    take_turn(&scene, 6, || scene.write("other", "x"));
    assert_eq!(numbers(&redo(&scene, 1)), (vec![], 2, 0));
    assert_eq!(listed(&scene), [(6, TurnState::Done), (1, TurnState::Done)]);
}

#[test]
fn changes_of_the_user_between_and_after_turns_stay() {
    let scene = Scene::new();
    scene.write("between", "1");
    scene.write("after", "1");
    take_turn(&scene, 1, || {
        scene.write("between", "2");
        scene.write("new", "2");
    });
    scene.write("between", "the user's");
    take_turn(&scene, 2, || {
        scene.write("after", "2");
        scene.write("newer", "2");
    });
    scene.write("after", "the user's");
    let undone = undo(&scene, 2);
    let conflicts: Vec<_> = undone
        .turns
        .iter()
        .flat_map(|turn| left(&turn.applied.conflicts))
        .collect();
    assert_eq!(
        conflicts,
        [
            "after was changed by another program since",
            "between was changed by another program since"
        ]
    );
    let there: Vec<_> = scene
        .all()
        .into_iter()
        .map(|(path, told)| format!("{} {told}", path.display()))
        .collect();
    assert_eq!(
        there,
        [
            "after file 644 \"the user's\"",
            "between file 644 \"the user's\""
        ]
    );
}

#[test]
fn an_unended_turn_ends_with_the_present_state() {
    let scene = Scene::new();
    let begin = |n| begin(&scene.project(), &scene.state(), "session", n, "words").expect("begun");
    begin(1);
    scene.write("a", "1");
    assert_eq!(listed(&scene), [(1, TurnState::Open)]);
    begin(2);
    scene.write("b", "1");
    assert_eq!(listed(&scene), [(2, TurnState::Open), (1, TurnState::Done)]);
    let undone = undo(&scene, 2);
    assert_eq!(numbers(&undone), (vec![2, 1], 0, 2));
    assert!(
        undone
            .turns
            .iter()
            .all(|turn| turn.turn.is_interrupted && turn.turn.n_changed == Some(1))
    );
    assert!(scene.all().is_empty());
    assert!(matches!(
        end(&scene.project(), &scene.state()),
        Err(Error::NoTurn)
    ));
}

#[test]
fn a_resumed_undo_continues_with_the_turns_that_were_to_follow() {
    let scene = Scene::new();
    for n in 1..=3 {
        take_turn(&scene, n, || scene.write("file", n.to_string()));
    }
    // As after a kill while the first of two is undone.
    let log = scene.state();
    let last = TurnLog::load(&log).expect("loads").turns[2].clone();
    let from = last.end.expect("ended").after;
    let request = Request {
        purpose: Purpose::Back {
            turn: last.turn,
            then: 1,
            merge: false,
        },
        ..Scene::request(from, last.before)
    };
    let told = apply::apply(
        &scene.project(),
        &log,
        &mut scene.store(),
        &request,
        |_, _, _| Err(Error::Busy),
    );
    assert!(told.is_err());
    assert!(matches!(
        back(&scene.project(), &log, 1, UndoOptions::default()),
        Err(Error::Unfinished)
    ));
    assert!(list(&log).expect("listed").is_unfinished);
    let Resumed::Turns(undone) = resume(&scene.project(), &log, None).expect("resumed") else {
        panic!("nothing was")
    };
    assert_eq!(numbers(&undone).0, [3, 2]);
    assert_eq!(fs::read(scene.path("file")).expect("there"), b"1");
    assert!(matches!(
        resume(&scene.project(), &log, None),
        Ok(Resumed::Nothing)
    ));
}

#[test]
fn diffs_of_turns_are_shown_separately() {
    let scene = Scene::new();
    take_turn(&scene, 1, || scene.write("file", "1\n"));
    scene.write("file", "the user's\n");
    let ended = take_turn(&scene, 2, || scene.write("file", "2\n"));
    assert_eq!(ended.changes.first.len(), 1);
    let lines = LineCount {
        n_added: 1,
        n_removed: 1,
    };
    assert_eq!(ended.changes.first[0].lines, Some(lines));
    assert_eq!((ended.n_added, ended.n_removed), (1, 1));
    let shown = difference(&scene.state(), 5).expect("shown");
    let lines: Vec<Vec<&str>> = shown
        .iter()
        .map(|turn| turn.text.lines().skip(4).collect())
        .collect();
    assert_eq!(
        lines,
        [vec!["-the user's", "+2"], vec!["@@ -0,0 +1 @@", "+1"]]
    );
}

#[test]
fn old_turns_are_removed_and_pinned_snapshots_kept() {
    let scene = Scene::new();
    scene.write("file", "pinned");
    let pinned = scene.take().id;
    pin::pin(&scene.state(), &scene.store(), "review", [pinned]).expect("pinned");
    let (project, state) = (scene.project(), scene.state());
    for n in 0..10 {
        let mut work = UndoWork {
            most_turns: 4,
            ..UndoWork::open(&project, &state).expect("opens")
        };
        work.begin("session", n, "").expect("begun");
        drop(work);
        scene.write("file", n.to_string());
    }
    end(&project, &state).expect("ended");
    let turns = list(&state).expect("listed").turns;
    assert_eq!((turns.n, turns.first[0].n_turn), (6, 9));
    let now = scene.take().id;
    assert_eq!(
        compare(&scene.store(), &pinned, &now)
            .expect("both are there")
            .len(),
        1
    );
    assert_eq!(undo(&scene, 200).turns.len(), 6);
    assert_eq!(fs::read(scene.path("file")).expect("there"), b"3");
    let mut work = UndoWork::open(&project, &state).expect("opens");
    pin::unpin(&state, &work.store, "review").expect("let go");
    pin::unpin(&state, &work.store, "review").expect("not there");
    let now = work.look().expect("taken");
    work.forget(1, [now.id]).expect("forgotten");
    assert!(matches!(
        compare(&work.store, &pinned, &now.id),
        Err(Error::Broken { .. })
    ));
}

#[test]
fn old_turns_make_room_and_uncaptured_files_are_reported() {
    let scene = Scene::new();
    let noise = |seed: u64| {
        (seed * 10_000..)
            .flat_map(|n| *super::super::ObjectId::of(&n.to_le_bytes()).as_bytes())
            .take(100_000)
            .collect::<Vec<u8>>()
    };
    let (project, state) = (scene.project(), scene.state());
    for n in 0..6 {
        let store = Store::bounded(&state, 400_000).expect("opens");
        let mut work = UndoWork::with(&project, &state, store).expect("opens");
        let (begun, _) = work.begin("session", n, "").expect("begun");
        assert_eq!(begun.passed_over.n, 0, "turn {n}");
        scene.write("file", noise(n));
    }
    assert!(listed(&scene).len() < 6);
    scene.write(
        "large",
        [noise(10), noise(11), noise(12), noise(13), noise(14)].concat(),
    );
    let store = Store::bounded(&state, 400_000).expect("opens");
    let (begun, _) = UndoWork::with(&project, &state, store)
        .expect("opens")
        .begin("session", 7, "")
        .expect("begun");
    assert_eq!(begun.passed_over.first[0].path, "large".into());
}

#[test]
fn orders_of_the_host_do_the_same_as_the_functions() {
    let scene = Scene::new();
    let (project, state) = (scene.project(), scene.state());
    let begin = TurnOrder::Begin {
        session: "session".to_owned(),
        n_turn: 1,
        words: "do it".to_owned(),
        place: BytesPath::default(),
        auto_run: Vec::new(),
    };
    assert!(matches!(
        turn(&project, &state, &begin),
        Ok(TurnAnswer::Began(_))
    ));
    scene.write("file", "1\n");
    assert!(
        matches!(turn(&project, &state, &TurnOrder::End { place: BytesPath::default(), auto_run: Vec::new() }), Ok(TurnAnswer::Ended(ended)) if ended.changes.n == 1)
    );
    let ask = |undo: UndoOrder| {
        let text = serde_json::to_string(&undo).expect("plain data");
        assert_eq!(
            serde_json::from_str::<UndoOrder>(&text).expect("reads"),
            undo
        );
        let answer = order(&project, &state, &undo).expect("answered");
        let text = serde_json::to_string(&answer).expect("plain data");
        assert_eq!(
            serde_json::from_str::<UndoAnswer>(&text).expect("reads"),
            answer
        );
        answer
    };
    assert!(
        matches!(ask(UndoOrder::List), UndoAnswer::Turns(turns) if turns.turns.first[0].words == "do it")
    );
    assert!(
        matches!(ask(UndoOrder::Diff { n: 1 }), UndoAnswer::Differences { turns } if turns[0].text.ends_with("+1\n"))
    );
    assert!(
        matches!(ask(UndoOrder::Back { n: 1, merge: false, is_beside: false }), UndoAnswer::Undone(undone) if undone.n_forward == 1)
    );
    assert!(
        matches!(ask(UndoOrder::Forward { n: 1, merge: false, is_beside: false }), UndoAnswer::Undone(undone) if undone.n_back == 1)
    );
    assert_eq!(
        (ask(UndoOrder::Resume), ask(UndoOrder::Abandon)),
        (UndoAnswer::Nothing, UndoAnswer::Nothing)
    );
}

#[test]
fn lost_contents_affect_only_the_turns_that_need_them() {
    let scene = Scene::new();
    let (project, state) = (scene.project(), scene.state());
    take_turn(&scene, 1, || scene.write("file", "1"));
    begin(&project, &state, "session", 2, "").expect("begun");
    let objects = state.below("objects").expect("opens");
    for pack in objects.names().expect("listed") {
        objects.replace(&pack, b"zeros").expect("replaced");
    }
    scene.write("file", "2");
    assert_eq!(end(&project, &state).expect("ended").changes.n, 0);
    take_turn(&scene, 3, || scene.write("file", "3"));
    assert_eq!(numbers(&undo(&scene, 1)), (vec![3], 1, 1));
    assert_eq!(fs::read(scene.path("file")).expect("there"), b"2");
    assert!(matches!(
        back(&project, &state, 1, UndoOptions::default()),
        Err(Error::Broken { .. })
    ));
    let mut work = UndoWork::open(&project, &state).expect("opens");
    let now = work.look().expect("taken");
    work.forget(9, [now.id])
        .expect("what is lost needs nothing");
}

#[test]
fn paths_obeyed_by_git_are_named_at_the_end_of_a_turn() {
    use crate::keep::git::sample::run_git;
    let scene = Scene::new();
    run_git(&scene.root(), &["init", "-q"]);
    let hooks = scene.path("tools/hooks").display().to_string();
    run_git(&scene.root(), &["config", "core.hooksPath", &hooks]);
    scene.write("mk/inc", "all:");
    scene.link("mk/inc", "Makefile");
    let (project, state) = (scene.project(), scene.state());
    let place = || BytesPath::from(scene.root());
    let auto_run = || vec!["tools/*.run".to_owned()];
    let begin = TurnOrder::Begin {
        session: "session".to_owned(),
        n_turn: 1,
        words: "do it".to_owned(),
        place: place(),
        auto_run: auto_run(),
    };
    let begun = || match turn(&project, &state, &begin) {
        Ok(TurnAnswer::Began(began)) => named(&began.may_run),
        other => panic!("it does not begin: {other:?}"),
    };
    let change = |words: &str| {
        for path in [
            "tools/hooks/pre-commit",
            "tools/plain",
            "tools/a.run",
            "mk/inc",
        ] {
            scene.write(path, words);
        }
    };
    assert!(begun().is_empty());
    change("1");
    let Ok(TurnAnswer::Ended(ended)) = turn(
        &project,
        &state,
        &TurnOrder::End {
            place: place(),
            auto_run: auto_run(),
        },
    ) else {
        panic!("it does not end")
    };
    assert_eq!(
        named(&ended.may_run),
        ["mk/inc", "tools/a.run", "tools/hooks/pre-commit"]
    );
    // For an unended turn it is reported when the next one begins, once.
    assert!(begun().is_empty());
    change("2");
    fs::remove_file(scene.path("tools/plain")).expect("removed");
    scene.write("deep/er/.envrc", "x");
    assert_eq!(
        begun(),
        [
            "mk/inc",
            "tools/a.run",
            "deep/er/.envrc",
            "tools/hooks/pre-commit"
        ]
    );
    assert!(begun().is_empty());
}

fn named(may_run: &NamedList<MayRun>) -> Vec<String> {
    may_run
        .first
        .iter()
        .map(|file| file.path.to_text())
        .collect()
}

#[test]
fn undo_reports_folders_deeper_than_a_path_may_be_long() {
    use nix::fcntl::OFlag;
    use nix::fcntl::openat;
    use nix::sys::stat::Mode;
    use nix::sys::stat::mkdirat;
    let scene = Scene::new();
    scene.write("file", "0");
    take_turn(&scene, 1, || {
        let mut folder = std::os::fd::OwnedFd::from(fs::File::open(scene.path("")).expect("opens"));
        for _ in 0..1500 {
            mkdirat(&folder, "deep", Mode::S_IRWXU).expect("made");
            folder = openat(&folder, "deep", OFlag::O_DIRECTORY, Mode::empty()).expect("opens");
        }
    });
    let undone = undo(&scene, 1);
    let reasons: Vec<String> = undone.turns[0]
        .applied
        .conflicts
        .first
        .iter()
        .map(|left| left.reason.to_string())
        .collect();
    assert!(
        reasons[0].contains("its path is longer than 4,000 bytes"),
        "{reasons:?}"
    );
    assert!(
        reasons[1..]
            .iter()
            .all(|reason| reason.starts_with("holds entries that are left, or ")),
        "{reasons:?}"
    );
}
