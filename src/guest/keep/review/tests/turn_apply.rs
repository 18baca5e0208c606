use super::*;
use crate::keep::overlay::testing::OverlayScene;
use podbay_wire::keep::EndOfTurn;
use podbay_wire::keep::ReviewedTurn;
use podbay_wire::keep::TakenHunks;
use podbay_wire::keep::TurnFate;

/// The kind of the session's copy: an overlay, or a complete copy.
enum CopyKind {
    Laid(OverlayScene),
    Whole(Scene),
}

/// A session whose turns are applied one by one.
struct TurnScene {
    view: CopyKind,
    n_turn: u64,
}

impl TurnScene {
    fn begin() -> Option<Self> {
        Some(Self {
            view: CopyKind::Laid(OverlayScene::over(scene())?),
            n_turn: 0,
        })
    }

    fn begin_on_whole_copy() -> Self {
        let scene = scene();
        super::duplicate(&scene.root(), &scene.folder().join("copy"));
        Self {
            view: CopyKind::Whole(scene),
            n_turn: 0,
        }
    }

    fn scene(&self) -> &Scene {
        match &self.view {
            CopyKind::Laid(laid) => &laid.scene,
            CopyKind::Whole(scene) => scene,
        }
    }

    fn copy(&self, path: &str) -> PathBuf {
        self.scene().folder().join("copy").join(path)
    }

    fn ask<T>(&self, ask: impl FnOnce(&Project, SessionView<'_>, &StateFolder) -> T) -> T {
        let open = |name: &str| Project::open(&self.scene().folder().join(name)).expect("opens");
        let upper = if let CopyKind::Laid(_) = &self.view {
            Some(open("upper"))
        } else {
            None
        };
        let copy = open("copy");
        ask(
            &self.scene().project(),
            SessionView {
                copy: Some(&copy),
                upper: upper.as_ref(),
                ..SessionView::default()
            },
            &self.scene().state(),
        )
    }

    /// Begins a turn; returns those of the user's changes that the session does not see.
    fn turn(&mut self) -> Vec<String> {
        self.n_turn += 1;
        let begin = ReviewOrder::Begin {
            name: "s".to_owned(),
            words: "do it".to_owned(),
            is_copied: matches!(self.view, CopyKind::Whole(_)),
            place: BytesPath::default(),
            by_turn: true,
        };
        match self.ask(|project, seen, state| order(project, seen, state, &begin)) {
            Ok(ReviewAnswer::Began(began)) => began
                .hidden_changes
                .first
                .iter()
                .map(ToString::to_string)
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    fn end(&self, keeps_view: bool) -> ReviewedTurn {
        self.end_as(TurnFate::Keep, keeps_view)
    }

    fn end_as(&self, fate: TurnFate, keeps_view: bool) -> ReviewedTurn {
        self.end_with(fate, keeps_view, &[], Vec::new())
    }

    fn end_with(
        &self,
        fate: TurnFate,
        keeps_view: bool,
        only: &[&str],
        hunks: Vec<TakenHunks>,
    ) -> ReviewedTurn {
        let turn = EndOfTurn {
            fate,
            only: only.iter().map(|&path| path.into()).collect(),
            hunks,
            n_turn: self.n_turn,
            words: format!("turn {}", self.n_turn),
            keeps_view,
            next_view: 1,
            with_auto_run: false,
            auto_run: vec![".envrc".to_owned()],
        };
        let order_of = ReviewOrder::Turn {
            name: "s".to_owned(),
            turn,
        };
        match self.ask(|project, seen, state| order(project, seen, state, &order_of)) {
            Ok(ReviewAnswer::Turn(ended)) => *ended,
            other => panic!("{other:?}"),
        }
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.copy(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, content).expect("written");
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.copy(path)).unwrap_or_default()
    }

    fn in_project(&self, path: &str) -> String {
        fs::read_to_string(self.scene().path(path)).unwrap_or_default()
    }

    fn undo(&self, n: u32) -> u64 {
        let undone = undo::back(
            &self.scene().project(),
            &self.scene().state(),
            n,
            undo::UndoOptions::default(),
        )
        .expect("undone");
        undone.n_back
    }
}

fn scene() -> Scene {
    let scene = Scene::new();
    scene.write("a.txt", "one\ntwo\nthree\n");
    scene.write("b.txt", "b\n");
    scene.write("src/moved.rs", "moved\n");
    scene
}

fn came(ended: &ReviewedTurn) -> Vec<String> {
    told(&ended.came)
}

#[test]
fn a_turn_is_shown_before_it_is_applied_and_may_be_applied_in_part() {
    let lines = |changed: &[usize]| -> String {
        let line = |n: usize| {
            if changed.contains(&n) {
                format!("new {n}\n")
            } else {
                format!("{n}\n")
            }
        };
        (1..=30).map(line).collect()
    };
    let mut session = TurnScene::begin_on_whole_copy();
    session.turn();
    session.write("long.txt", &lines(&[]));
    session.end(true);
    session.turn();
    session.write("long.txt", &lines(&[3, 28]));
    session.write("other.txt", "made\n");
    let shown = session.end_as(TurnFate::Show, true);
    assert_eq!((shown.n_left, shown.came.changes.n), (2, 2));
    assert!(
        shown.text.contains("+new 3\n") && shown.text.contains("+made\n"),
        "{}",
        shown.text
    );
    assert_eq!(
        session.in_project("long.txt"),
        lines(&[]),
        "nothing is applied"
    );
    let hunks = TakenHunks {
        path: "long.txt".into(),
        n_hunks: 2,
        taken: vec![1],
    };
    let ended = session.end_with(TurnFate::Keep, true, &["long.txt"], vec![hunks]);
    assert_eq!((ended.n_left, ended.came.changes.n), (2, 1));
    assert_eq!(session.in_project("long.txt"), lines(&[28]));
    let shown = session.end_as(TurnFate::Show, true);
    assert!(
        shown.text.contains("+new 3\n") && !shown.text.contains("+new 28\n"),
        "{}",
        shown.text
    );
    assert_eq!(session.end(true).n_left, 0);
    assert_eq!(session.in_project("long.txt"), lines(&[3, 28]));
}

#[test]
fn a_turn_is_applied_as_one_and_undone_without_the_users_changes() {
    let Some(mut session) = TurnScene::begin() else {
        return;
    };
    session.turn();
    session.write("a.txt", "one\n2\nthree\n");
    session.write("made.txt", "made\n");
    session.write("code/moved.rs", "moved\n");
    fs::remove_dir_all(session.copy("src")).expect("removed");
    session.scene().write("b.txt", "the user's\n");
    let ended = session.end(false);
    assert_eq!(
        came(&ended),
        ["a.txt +1 -1", "made.txt +1 -0", "code/moved.rs +0 -0"]
    );
    assert_eq!(
        (ended.came.n_added, ended.came.n_removed, ended.n_left),
        (2, 1, 0)
    );
    assert_eq!(session.in_project("code/moved.rs"), "moved\n");
    assert!(!session.scene().path("src").exists());
    assert_eq!(session.undo(1), 0);
    assert_eq!(
        (session.in_project("a.txt"), session.in_project("b.txt")),
        ("one\ntwo\nthree\n".to_owned(), "the user's\n".to_owned())
    );
    assert!(
        session.scene().path("src/moved.rs").exists() && !session.scene().path("made.txt").exists()
    );
}

#[test]
fn a_session_that_keeps_its_copy_sees_the_users_changes() {
    let Some(mut session) = TurnScene::begin() else {
        return;
    };
    session.turn();
    session.write("a.txt", "one\n2\nthree\n");
    session.write("own/made.txt", "made\n");
    session.write("code/moved.rs", "moved\n");
    fs::remove_dir_all(session.copy("src")).expect("removed");
    assert_eq!(session.end(true).n_left, 0);
    // Where the session has its own, where it shows through, and where it made the folder.
    session.scene().write("a.txt", "one\n2\n3, the user's\n");
    session.scene().write("b.txt", "the user's\n");
    session.scene().write("own/beside.txt", "the user's\n");
    session.scene().remove("own/made.txt");
    fs::write("/proc/sys/vm/drop_caches", "2").expect("as root");
    assert_eq!(session.turn(), Vec::<String>::new());
    assert_eq!(
        (session.read("a.txt"), session.read("b.txt")),
        (
            "one\n2\n3, the user's\n".to_owned(),
            "the user's\n".to_owned()
        )
    );
    assert_eq!(
        (session.read("own/beside.txt"), session.read("own/made.txt")),
        ("the user's\n".to_owned(), String::new())
    );
    assert_eq!(session.read("code/moved.rs"), "moved\n");
    session.write("b.txt", "both\n");
    let ended = session.end(true);
    assert_eq!(came(&ended), ["b.txt +1 -1"]);
    assert_eq!(
        (session.in_project("a.txt"), session.in_project("b.txt")),
        ("one\n2\n3, the user's\n".to_owned(), "both\n".to_owned())
    );
    // Each turn can be undone.
    assert_eq!(session.undo(1), 1);
    assert_eq!(session.in_project("b.txt"), "the user's\n");
}

#[test]
fn paths_changed_on_both_sides_stay_pending_and_the_rest_is_applied() {
    let Some(mut session) = TurnScene::begin() else {
        return;
    };
    session.turn();
    session.write("a.txt", "one\nthe session's\nthree\n");
    session.write("made.txt", "made\n");
    session.scene().write("a.txt", "one\nthe user's\nthree\n");
    let ended = session.end(false);
    assert_eq!(
        (came(&ended), ended.n_left),
        (vec!["made.txt +1 -0".to_owned()], 1)
    );
    assert_eq!(
        left(&ended.applied.conflicts),
        ["a.txt was changed by another program since"]
    );
    assert_eq!(session.in_project("a.txt"), "one\nthe user's\nthree\n");
    // It stays pending, and the session keeps its own.
    assert_eq!(session.turn(), ["a.txt"]);
    assert_eq!(session.read("a.txt"), "one\nthe session's\nthree\n");
    assert_eq!(session.end(false).n_left, 1);
    // It is over when the user accepts the session's, or reverts theirs.
    session
        .scene()
        .write("a.txt", "one\nthe session's\nthree\n");
    session.turn();
    assert_eq!(session.end(false).n_left, 0);
}

#[test]
fn auto_run_files_of_a_turn_stay_pending() {
    let Some(mut session) = TurnScene::begin() else {
        return;
    };
    session.turn();
    session.write(".envrc", "echo run\n");
    session.write("a.txt", "2\n");
    let ended = session.end(false);
    assert_eq!(
        (came(&ended), ended.n_left),
        (vec!["a.txt +1 -3".to_owned()], 1)
    );
    assert!(left(&ended.applied.refused)[0].starts_with(".envrc may run on your machine"));
    assert!(!session.scene().path(".envrc").exists() && session.read(".envrc") == "echo run\n");
}

#[test]
fn a_turn_without_changes_leaves_no_trace() {
    let Some(mut session) = TurnScene::begin() else {
        return;
    };
    session.turn();
    let ended = session.end(false);
    assert!(ended.came.changes.is_empty());
    assert_eq!(
        undo::list(&session.scene().state())
            .expect("listed")
            .turns
            .n,
        0
    );
    session.scene().write("a.txt", "the user's\n");
    assert_eq!(session.turn(), Vec::<String>::new());
    session.write("b.txt", "2\n");
    assert_eq!(came(&session.end(false)), ["b.txt +1 -1"]);
    assert_eq!(session.in_project("a.txt"), "the user's\n");
}

#[test]
fn a_file_made_and_later_removed_by_the_session_is_removed_in_the_project() {
    for forgets_before in [true, false] {
        let Some(mut session) = TurnScene::begin() else {
            return;
        };
        let forget = || fs::write("/proc/sys/vm/drop_caches", "2").expect("as root");
        session.turn();
        session.write("own/deep/made.txt", "made\n");
        session.write("own/kept.txt", "kept\n");
        session.end(true);
        if forgets_before {
            forget();
        }
        session.turn();
        fs::remove_dir_all(session.copy("own/deep")).expect("removed");
        forget();
        let ended = session.end(true);
        assert_eq!(
            came(&ended),
            ["own/deep/made.txt +0 -1"],
            "{forgets_before}"
        );
        assert!(
            !session.scene().path("own/deep").exists()
                && session.scene().path("own/kept.txt").exists()
        );
    }
}

#[test]
fn a_discarded_turn_is_counted_and_nothing_of_it_is_applied() {
    let Some(mut session) = TurnScene::begin() else {
        return;
    };
    session.turn();
    assert_eq!(session.end_as(TurnFate::Count, false).n_left, 0);
    session.write("a.txt", "2\n");
    session.write("made.txt", "made\n");
    assert_eq!(session.end_as(TurnFate::Count, false).n_left, 2);
    assert_eq!(
        session.end_as(TurnFate::Drop, false),
        ReviewedTurn::default()
    );
    assert_eq!(session.in_project("a.txt"), "one\ntwo\nthree\n");
    assert_eq!(
        undo::list(&session.scene().state())
            .expect("listed")
            .turns
            .n,
        0
    );
}

#[test]
fn a_cached_old_version_of_a_users_file_is_not_the_sessions() {
    let Some(mut session) = TurnScene::begin() else {
        return;
    };
    session.turn();
    for _ in 0..2 {
        // Read there before, and replaced as editors do it.
        session.read("b.txt");
        let beside = session.scene().path("b.txt.new");
        fs::write(&beside, format!("the user's {}\n", session.n_turn)).expect("written");
        fs::rename(&beside, session.scene().path("b.txt")).expect("replaced");
        let expected = session.in_project("b.txt");
        assert_eq!(session.turn(), Vec::<String>::new());
        assert_eq!(session.read("b.txt"), expected);
        session.write("a.txt", &format!("{}\n", session.n_turn));
        let ended = session.end(true);
        assert_eq!(
            (
                ended.came.changes.n,
                ended.n_left,
                session.in_project("b.txt")
            ),
            (1, 0, expected)
        );
    }
}

#[test]
fn turns_of_a_full_copy_are_applied_and_the_copy_follows_the_project() {
    let mut session = TurnScene::begin_on_whole_copy();
    session.turn();
    session.write("a.txt", "one\n2\nthree\n");
    session.scene().write("b.txt", "the user's\n");
    assert_eq!(came(&session.end(true)), ["a.txt +1 -1"]);
    assert_eq!(
        (session.in_project("a.txt"), session.in_project("b.txt")),
        ("one\n2\nthree\n".to_owned(), "the user's\n".to_owned())
    );
    session.scene().write("a.txt", "one\n2\n3\n");
    session.scene().remove("src");
    assert_eq!(session.turn(), Vec::<String>::new());
    assert_eq!(
        (session.read("a.txt"), session.read("b.txt")),
        ("one\n2\n3\n".to_owned(), "the user's\n".to_owned())
    );
    assert!(!session.copy("src").exists());
    session.write("b.txt", "both\n");
    assert_eq!(came(&session.end(true)), ["b.txt +1 -1"]);
    assert_eq!(session.in_project("a.txt"), "one\n2\n3\n");
}

#[test]
fn pending_changes_survive_a_discarded_turn() {
    let Some(mut session) = TurnScene::begin() else {
        return;
    };
    session.turn();
    session.write(".envrc", "echo run\n");
    session.write("a.txt", "the session's\n");
    session.scene().write("a.txt", "the user's\n");
    assert_eq!(session.end(false).n_left, 2);
    session.turn();
    assert_eq!(
        session.end_as(TurnFate::Count, false).n_left,
        0,
        "what was pending before is not of this turn"
    );
    session.write("b.txt", "dropped\n");
    session.write(".envrc", "dropped\n");
    assert_eq!(session.end_as(TurnFate::Count, false).n_left, 2);
    session.end_as(TurnFate::Drop, false);
    if let CopyKind::Laid(laid) = &session.view {
        laid.anew();
    }
    assert_eq!(session.turn(), ["a.txt"]);
    let seen = [".envrc", "a.txt", "b.txt"].map(|path| session.read(path));
    assert_eq!(seen, ["echo run\n", "the session's\n", "b\n"]);
    let ended = session.end(false);
    assert_eq!(
        (
            ended.came.changes.n,
            ended.n_left,
            session.in_project("a.txt")
        ),
        (0, 2, "the user's\n".to_owned())
    );
}

#[test]
fn modification_times_of_applied_files_are_kept() {
    let Some(mut session) = TurnScene::begin() else {
        return;
    };
    session.turn();
    session.write("z.o", "built\n");
    std::thread::sleep(std::time::Duration::from_millis(50));
    session.write("a.c", "changed\n");
    session.end(false);
    let time = |path: &str| {
        fs::metadata(session.scene().path(path))
            .and_then(|facts| facts.modified())
            .expect("there")
    };
    assert!(
        time("a.c") > time("z.o"),
        "by their names the other one comes last"
    );
}

#[test]
fn only_the_approved_changes_are_applied() {
    let Some(mut session) = TurnScene::begin() else {
        return;
    };
    session.turn();
    session.write(".envrc", "asked about\n");
    assert_eq!(session.end(true).n_left, 1);
    // A command in the background continues.
    session.write(".envrc", "changed since\n");
    session.write(".vscode/tasks.json", "made since\n");
    let ended = session.end_as(TurnFate::Accept, true);
    assert_eq!(
        (came(&ended), ended.n_left),
        (vec![".envrc +1 -0".to_owned()], 0)
    );
    assert_eq!(session.in_project(".envrc"), "asked about\n");
    assert!(!session.scene().path(".vscode").exists());
    // Later changes need their own approval.
    session.turn();
    assert_eq!(session.end(true).n_left, 2);
}

/// After a kill in the middle of an apply, its changes were recorded as the user's, and then as
/// removed by the session.
#[test]
fn a_killed_apply_finished_by_another_session_leaves_nothing_pending() {
    let mut session = TurnScene::begin_on_whole_copy();
    session.turn();
    session.write("made/one.txt", "one\n");
    session.write("made/two.txt", "two\n");
    let (project, state) = (session.scene().project(), session.scene().state());
    session.ask(|project, seen, state| {
        let mut work = OpenReview::open(project, seen, state, "s", true).expect("opened");
        let wanted = ApplySelection {
            only: &[],
            merge: false,
            with_auto_run: false,
            auto_run: &[],
            hunks: &[],
        };
        let ChosenChanges {
            changes: chosen, ..
        } = work.chosen(wanted).expect("chosen");
        let purpose = Purpose::Review {
            name: "s".to_owned(),
        };
        let (from, to) = (work.record.base, work.record.after());
        let request = Request {
            from,
            to,
            only: Vec::new(),
            merge: false,
            origin: Origin::Elsewhere,
            purpose,
            copy: None,
        };
        let killed = apply::apply_wanted(
            project,
            state,
            &mut work.store,
            &request,
            chosen,
            Outcome::default(),
            |_, _, _| Err(Error::Busy),
        );
        assert!(matches!(killed, Err(Error::Busy)), "{killed:?}");
    });
    // The second one was not written yet.
    fs::remove_file(session.scene().path("made/two.txt")).expect("removed");
    // The next session looks at what is pending, and later finishes the interrupted apply.
    let pending = session
        .ask(|project, seen, state| end(project, seen, state, "s", &[]))
        .expect("looked at");
    assert_eq!(
        pending
            .changes
            .first
            .iter()
            .map(|change| change.change.path.to_string())
            .collect::<Vec<_>>(),
        ["made/two.txt"]
    );
    undo::resume(&project, &state, None).expect("finished");
    assert_eq!(
        (
            session.in_project("made/one.txt").as_str(),
            session.in_project("made/two.txt").as_str()
        ),
        ("one\n", "two\n")
    );
    let shown = session
        .ask(|project, seen, state| difference(project, seen, state, "s", &[], &[]))
        .expect("shown");
    assert_eq!(shown.review.n_changes, Some(0), "{}", shown.text);
    assert!(
        session
            .ask(|project, seen, state| end(project, seen, state, "s", &[]))
            .expect("over")
            .is_empty()
    );
    assert!(list(&project, &state).expect("listed").is_empty());
}
