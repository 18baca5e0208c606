//! Tests of files of which only some hunks are applied.

use super::*;
use crate::keep::apply;
use podbay_wire::keep::TakenHunks;

/// Thirty lines, of which these are changed.
fn lines(changed: &[usize]) -> String {
    (1..=30)
        .map(|n| {
            if changed.contains(&n) {
                format!("new {n}\n")
            } else {
                format!("{n}\n")
            }
        })
        .collect()
}

fn hunks(path: &str, n_hunks: u32, taken: &[u32]) -> TakenHunks {
    TakenHunks {
        path: path.into(),
        n_hunks,
        taken: taken.to_vec(),
    }
}

impl ReviewScene {
    /// A review of one file with three hunks, beside another file.
    fn with_hunks() -> Self {
        let held = Self::begin();
        held.scene.write("long.txt", lines(&[]));
        begin(
            &held.scene.project(),
            None,
            &held.scene.state(),
            "r2",
            "change it",
        )
        .expect("begun");
        held.write("long.txt", &lines(&[3, 15, 28]));
        held.write("other.txt", "made\n");
        end(
            &held.scene.project(),
            seen(&held.copy()),
            &held.scene.state(),
            "r2",
            &[],
        )
        .expect("ended");
        held
    }

    fn take(&self, only: &[&str], hunks: &[TakenHunks]) -> Result<ReviewApplied, Error> {
        let only: Vec<BytesPath> = only.iter().map(|&path| path.into()).collect();
        let wanted = ApplySelection {
            only: &only,
            merge: false,
            with_auto_run: false,
            auto_run: &[],
            hunks,
        };
        super::apply(
            &self.scene.project(),
            SessionView::default(),
            &self.scene.state(),
            "r2",
            wanted,
        )
    }

    fn rest(&self) -> String {
        difference(
            &self.scene.project(),
            SessionView::default(),
            &self.scene.state(),
            "r2",
            &["long.txt".into()],
            &[],
        )
        .expect("shown")
        .text
    }

    fn long(&self) -> String {
        fs::read_to_string(self.scene.path("long.txt")).expect("there")
    }
}

#[test]
fn hunks_that_were_left_stay_pending_and_come_later() {
    let held = ReviewScene::with_hunks();
    let done = held
        .take(&["long.txt"], &[hunks("long.txt", 3, &[1])])
        .expect("applied");
    assert_eq!(held.long(), lines(&[15]));
    assert_eq!((done.applied.changed.n, done.n_left), (1, 2));
    let rest = held.rest();
    assert!(
        rest.contains("+new 3\n") && rest.contains("+new 28\n") && !rest.contains("+new 15\n"),
        "{rest}"
    );
    // Of what is left there are two hunks now.
    held.take(&["long.txt"], &[hunks("long.txt", 2, &[1])])
        .expect("applied");
    assert_eq!(held.long(), lines(&[15, 28]));
    let done = held.take(&[], &[]).expect("applied");
    assert_eq!(
        (left(&done.applied.conflicts), done.n_left),
        (Vec::new(), 0)
    );
    assert_eq!(held.long(), lines(&[3, 15, 28]));
}

#[test]
fn a_file_whose_hunks_are_others_by_now_is_refused_as_a_whole() {
    let held = ReviewScene::with_hunks();
    for wrong in [hunks("long.txt", 2, &[0]), hunks("other.txt", 2, &[0])] {
        let refused = held.take(&[], &[wrong]).expect_err("it is refused");
        assert!(
            refused.to_string().contains("look at them again"),
            "{refused}"
        );
    }
    assert_eq!(held.long(), lines(&[]));
    assert!(!apply::is_unfinished(&held.scene.state()).expect("known"));
    // All of them is the whole file.
    held.take(&["long.txt"], &[hunks("long.txt", 3, &[0, 1, 2])])
        .expect("applied");
    assert_eq!(held.long(), lines(&[3, 15, 28]));
}

#[test]
fn a_part_that_was_undone_is_pending_with_the_rest() {
    let held = ReviewScene::with_hunks();
    held.take(&["long.txt"], &[hunks("long.txt", 3, &[0, 2])])
        .expect("applied");
    held.scene.write("long.txt", lines(&[]));
    let rest = held.rest();
    assert_eq!(rest.matches("\n@@ ").count(), 3, "{rest}");
    held.scene.write("long.txt", lines(&[7]));
    let pending = difference(
        &held.scene.project(),
        SessionView::default(),
        &held.scene.state(),
        "r2",
        &[],
        &[],
    )
    .expect("shown")
    .pending;
    assert_eq!(pending.conflicts.first, ["long.txt".into()]);
}
