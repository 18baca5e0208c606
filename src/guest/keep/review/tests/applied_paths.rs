//! Tests of sessions that continue after some of their changes were applied.

use super::*;

const FIRST: &str = "one\ntwo\nthree\nfour\nfive\n";
const SECOND: &str = "one\n2\nthree\nfour\nfive\n";
const THIRD: &str = "one\n2\n3\nfour\nfive\n";

impl ReviewScene {
    fn go_on(&self) {
        assert!(
            begin(
                &self.scene.project(),
                None,
                &self.scene.state(),
                "r1",
                "more"
            )
            .expect("begun")
            .goes_on
        );
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.scene.path(path)).expect("there")
    }

    /// Begins a review of which a part was applied.
    fn taken_in_part() -> Self {
        let held = Self::begin();
        held.change();
        held.end();
        assert_eq!(
            held.apply(&["kept.txt", "gone.txt"], false, false)
                .applied
                .changed
                .n,
            2
        );
        held
    }
}

#[test]
fn an_applied_path_can_be_changed_further_without_a_conflict() {
    let held = ReviewScene::taken_in_part();
    held.go_on();
    held.write("kept.txt", THIRD);
    held.write("gone.txt", "there again\n");
    let pending = told(&held.end());
    assert!(
        pending.contains(&"kept.txt +1 -1".to_owned())
            && pending.contains(&"gone.txt +1 -0".to_owned()),
        "{pending:?}"
    );
    assert!(
        held.shown().contains("-three\n+3\n") && !held.shown().contains("+2\n"),
        "{}",
        held.shown()
    );
    let done = held.apply(&[], false, false);
    assert_eq!(
        (left(&done.applied.conflicts), done.n_left),
        (Vec::new(), 0)
    );
    assert_eq!(
        (
            held.read("kept.txt").as_str(),
            held.read("gone.txt").as_str()
        ),
        (THIRD, "there again\n")
    );
}

#[test]
fn an_applied_path_changed_back_is_applied_as_it_was() {
    let held = ReviewScene::taken_in_part();
    held.go_on();
    held.write("kept.txt", FIRST);
    assert!(told(&held.end()).contains(&"kept.txt +1 -1".to_owned()));
    assert_eq!(
        held.apply(&["kept.txt"], false, false).applied.conflicts.n,
        0
    );
    assert_eq!(held.read("kept.txt"), FIRST);
    // The same in the other direction.
    held.go_on();
    held.write("kept.txt", SECOND);
    held.end();
    assert_eq!(held.apply(&[], false, false).n_left, 0);
    assert_eq!(held.read("kept.txt"), SECOND);
}

#[test]
fn later_changes_of_the_user_conflict_only_with_later_ones_of_the_session() {
    let held = ReviewScene::taken_in_part();
    held.scene.write("kept.txt", "one\n2\nthree\nfour\n5\n");
    assert!(
        !held.shown().contains("kept.txt"),
        "what is in does not wait: {}",
        held.shown()
    );
    held.go_on();
    held.write("kept.txt", THIRD);
    held.end();
    let done = held.apply(&["kept.txt"], false, false);
    assert_eq!(
        left(&done.applied.conflicts),
        ["kept.txt was changed by another program since"]
    );
    assert_eq!(held.apply(&["kept.txt"], true, false).applied.merged.n, 1);
    assert_eq!(held.read("kept.txt"), "one\n2\n3\nfour\n5\n");
}

#[test]
fn a_merged_path_counts_as_applied() {
    let held = ReviewScene::begin();
    held.change();
    held.end();
    held.scene.write("kept.txt", "one\ntwo\nthree\nfour\n5\n");
    assert_eq!(held.apply(&["kept.txt"], true, false).applied.merged.n, 1);
    assert!(!held.shown().contains("kept.txt"), "{}", held.shown());
    let done = held.apply(&[], false, false);
    assert_eq!((done.applied.n_already, done.n_left), (1, 0));
    assert_eq!(held.listed(), []);
    assert_eq!(held.read("kept.txt"), "one\n2\nthree\nfour\n5\n");
}

#[test]
fn an_applied_path_that_was_undone_is_pending_again() {
    let held = ReviewScene::taken_in_part();
    undo::back(
        &held.scene.project(),
        &held.scene.state(),
        1,
        undo::UndoOptions::default(),
    )
    .expect("undone");
    assert!(
        held.shown().contains("kept.txt") && held.shown().contains("gone.txt"),
        "{}",
        held.shown()
    );
    held.go_on();
    held.end();
    assert!(
        held.shown().contains("kept.txt"),
        "still after the session continued: {}",
        held.shown()
    );
    assert_eq!(held.apply(&[], false, false).n_left, 0);
    assert_eq!(held.read("kept.txt"), SECOND);
}

#[test]
fn paths_applied_by_a_killed_keeper_count_as_applied() {
    let held = ReviewScene::begin();
    held.change();
    held.end();
    let (project, state) = (held.scene.project(), held.scene.state());
    {
        let mut work = OpenReview::open(&project, SessionView::default(), &state, "r1", false)
            .expect("opened");
        let only = [BytesPath::from("kept.txt")];
        let wanted = ApplySelection {
            only: &only,
            merge: false,
            with_auto_run: false,
            auto_run: &[],
            hunks: &[],
        };
        let ChosenChanges {
            changes: chosen, ..
        } = work.chosen(wanted).expect("chosen");
        let purpose = Purpose::Review {
            name: "r1".to_owned(),
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
            &project,
            &state,
            &mut work.store,
            &request,
            chosen,
            Outcome::default(),
            |_, _, _| Err(Error::Busy),
        );
        assert!(matches!(killed, Err(Error::Busy)), "{killed:?}");
    }
    undo::resume(&project, &state, None).expect("finished");
    held.go_on();
    held.write("kept.txt", THIRD);
    held.end();
    assert_eq!(
        left(&held.apply(&["kept.txt"], false, false).applied.conflicts),
        Vec::<String>::new()
    );
    assert_eq!(held.read("kept.txt"), THIRD);
}

#[test]
fn the_snapshots_of_applied_paths_are_not_pruned() {
    let held = ReviewScene::taken_in_part();
    held.go_on();
    held.write("kept.txt", THIRD);
    held.end();
    let pins = pin::load(&held.scene.state()).expect("loaded");
    let record = ReviewRecord::load(&held.scene.state(), "r1")
        .expect("loaded")
        .expect("there");
    assert_eq!(
        (pins[&pin_of("r1")].len(), &pins[&pin_of("r1")]),
        (3, &record.snapshots())
    );
}
