mod applied_paths;
mod full_disk;
mod git_obeyed;
mod left_out;
mod partial;
mod turn_apply;
mod uncaptured;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;

use super::*;
use crate::keep::testing::Scene;
use crate::keep::testing::left;
use podbay_wire::keep::LeftReason;
use podbay_wire::keep::MayRun;
use podbay_wire::keep::RunTrigger;

/// A project, and the session's copy of it.
struct ReviewScene {
    scene: Scene,
    copy: PathBuf,
}

impl ReviewScene {
    /// Begins a review of a project with some files.
    fn begin() -> Self {
        let scene = Scene::new();
        scene.write("kept.txt", "one\ntwo\nthree\nfour\nfive\n");
        scene.write("gone.txt", "gone\n");
        scene.write("src/moved.txt", "moved\n");
        let copy = scene.folder().join("copy");
        duplicate(&scene.root(), &copy);
        let held = Self { scene, copy };
        begin(
            &held.scene.project(),
            None,
            &held.scene.state(),
            "r1",
            "change it",
        )
        .expect("begun");
        held
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.copy.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, content).expect("written");
    }

    fn change(&self) {
        self.write("kept.txt", "one\n2\nthree\nfour\nfive\n");
        self.write("new/made.txt", "made\n");
        fs::remove_file(self.copy.join("gone.txt")).expect("removed");
        fs::rename(
            self.copy.join("src/moved.txt"),
            self.copy.join("new/moved.txt"),
        )
        .expect("moved");
    }

    fn copy(&self) -> Project {
        Project::open(&self.copy).expect("opens")
    }

    fn end(&self) -> PendingChanges {
        end(
            &self.scene.project(),
            seen(&self.copy()),
            &self.scene.state(),
            "r1",
            &[],
        )
        .expect("ended")
    }

    fn apply(&self, only: &[&str], merge: bool, with_auto_run: bool) -> ReviewApplied {
        let only: Vec<BytesPath> = only.iter().map(|&path| BytesPath::from(path)).collect();
        let auto_run = ["tools/*.run".to_owned()];
        let wanted = ApplySelection {
            only: &only,
            merge,
            with_auto_run,
            auto_run: &auto_run,
            hunks: &[],
        };
        apply(
            &self.scene.project(),
            SessionView::default(),
            &self.scene.state(),
            "r1",
            wanted,
        )
        .expect("applied")
    }

    fn shown(&self) -> String {
        difference(
            &self.scene.project(),
            SessionView::default(),
            &self.scene.state(),
            "r1",
            &[],
            &[],
        )
        .expect("shown")
        .text
    }

    fn listed(&self) -> Vec<(String, Option<u64>)> {
        let listed = list(&self.scene.project(), &self.scene.state()).expect("listed");
        listed
            .into_iter()
            .map(|review| (review.words, review.n_changes))
            .collect()
    }

    fn paths(&self) -> Vec<String> {
        self.scene
            .all()
            .into_keys()
            .map(|path| path.display().to_string())
            .collect()
    }
}

/// The view of a keeper that can see the copy.
fn seen(copy: &Project) -> SessionView<'_> {
    SessionView {
        copy: Some(copy),
        ..SessionView::default()
    }
}

fn duplicate(from: &Path, to: &Path) {
    fs::create_dir(to).expect("made");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_symlink() {
            symlink(fs::read_link(&path).expect("a link"), &to).expect("linked");
        } else if path.is_dir() {
            duplicate(&path, &to);
        } else {
            fs::copy(&path, &to).expect("copied");
        }
    }
}

fn told(pending: &PendingChanges) -> Vec<String> {
    let line = |path: &podbay_wire::keep::CountedPath| match path.lines {
        Some(lines) => format!(
            "{} +{} -{}",
            path.change.path, lines.n_added, lines.n_removed
        ),
        None => path.change.path.to_string(),
    };
    pending.changes.first.iter().map(line).collect()
}

#[test]
fn a_selected_path_may_be_spelled_in_any_way() {
    for (only, expected) in [
        (".", 4),
        ("./", 4),
        ("new//made.txt", 1),
        ("new/./made.txt", 1),
        ("./new/", 1),
        ("./new//*.txt", 1),
    ] {
        let held = ReviewScene::begin();
        held.change();
        held.end();
        let n_before = held.listed()[0].1.expect("known");
        let n_left = held.apply(&[only], false, false).n_left;
        assert!(
            n_before - n_left >= expected && (expected == 4) == (n_left == 0),
            "{only}: {n_left} of {n_before}"
        );
    }
    let held = ReviewScene::begin();
    held.change();
    held.end();
    for only in ["/new/made.txt", "new/../kept.txt", "", "ne"] {
        let only = [BytesPath::from(only)];
        let wanted = ApplySelection {
            only: &only,
            merge: false,
            with_auto_run: false,
            auto_run: &[],
            hunks: &[],
        };
        let refused = apply(
            &held.scene.project(),
            SessionView::default(),
            &held.scene.state(),
            "r1",
            wanted,
        )
        .expect_err("it names nothing");
        assert!(matches!(refused, Error::Pattern { .. }), "{refused}");
    }
}

#[test]
fn changes_are_pending_and_applied_path_by_path() {
    let held = ReviewScene::begin();
    assert_eq!(held.listed(), [("change it".to_owned(), None)]);
    let before = held.scene.all();
    held.change();
    let pending = held.end();
    assert_eq!(
        told(&pending),
        [
            "gone.txt +0 -1",
            "kept.txt +1 -1",
            "new/made.txt +1 -0",
            "new/moved.txt +0 -0"
        ]
    );
    assert_eq!((pending.n_added, pending.n_removed), (2, 2));
    assert_eq!(held.scene.all(), before, "nothing is applied unasked");
    assert!(held.shown().contains("-two\n+2\n"), "{}", held.shown());
    let done = held.apply(&["new"], false, false);
    assert_eq!((done.applied.changed.n, done.n_left), (3, 3));
    assert_eq!(
        held.paths(),
        [
            "gone.txt",
            "kept.txt",
            "new",
            "new/made.txt",
            "new/moved.txt",
            "src",
            "src/moved.txt"
        ]
    );
    assert!(
        !held.shown().contains("made.txt"),
        "what is in is no longer shown"
    );
    assert_eq!(held.listed(), [("change it".to_owned(), Some(3))]);
    let done = held.apply(&["*.txt"], false, false);
    assert_eq!(
        (done.n_left, done.applied.removed.first),
        (0, vec!["gone.txt".into(), "src/moved.txt".into()])
    );
    assert_eq!(
        held.paths(),
        ["kept.txt", "new", "new/made.txt", "new/moved.txt", "src"]
    );
    assert_eq!(held.listed(), []);
    let nothing = difference(
        &held.scene.project(),
        SessionView::default(),
        &held.scene.state(),
        "r1",
        &[],
        &[],
    );
    assert!(
        matches!(nothing, Err(Error::NoReview { .. })),
        "{nothing:?}"
    );
    // What was applied can be undone.
    let undone = undo::back(
        &held.scene.project(),
        &held.scene.state(),
        2,
        undo::UndoOptions::default(),
    )
    .expect("undone");
    assert_eq!((undone.turns.len(), held.scene.all()), (2, before));
}

#[test]
fn a_discarded_or_empty_review_leaves_nothing() {
    let held = ReviewScene::begin();
    held.change();
    held.end();
    let before = held.scene.all();
    discard(&held.scene.state(), "r1").expect("discarded");
    assert_eq!((held.listed(), held.scene.all()), (Vec::new(), before));
    assert!(pin::load(&held.scene.state()).expect("loaded").is_empty());
    let held = ReviewScene::begin();
    assert!(held.end().changes.is_empty());
    assert_eq!(held.listed(), []);
}

#[test]
fn changes_of_the_user_are_not_part_of_the_review_or_conflict() {
    let held = ReviewScene::begin();
    held.change();
    // It shows through where the session left the file alone.
    held.scene.write("theirs.txt", "theirs\n");
    held.write("theirs.txt", "theirs\n");
    held.scene.write("kept.txt", "one\ntwo\nthree\nfour\n5\n");
    assert!(!told(&held.end()).iter().any(|line| line.contains("theirs")));
    held.scene.write("theirs.txt", "theirs, later\n");
    let done = held.apply(&[], false, false);
    assert_eq!(
        left(&done.applied.conflicts),
        ["kept.txt was changed by another program since"]
    );
    assert_eq!(done.n_left, 1);
    assert_eq!(
        fs::read_to_string(held.scene.path("theirs.txt")).expect("there"),
        "theirs, later\n"
    );
    let done = held.apply(&[], true, false);
    assert_eq!(
        (
            done.applied.merged.n,
            fs::read_to_string(held.scene.path("kept.txt"))
                .expect("there")
                .as_str()
        ),
        (1, "one\n2\nthree\nfour\n5\n")
    );
}

#[test]
fn a_selected_name_that_looks_like_a_pattern_is_the_name() {
    let held = ReviewScene::begin();
    held.write("app/[id]/page.tsx", "page\n");
    held.write("app/i/page.tsx", "other\n");
    held.end();
    held.apply(&["app/[id]/page.tsx"], false, false);
    assert!(held.scene.path("app/[id]/page.tsx").exists() && !held.scene.path("app/i").exists());
    held.apply(&["app/[ij]/*"], false, false);
    assert!(held.scene.path("app/i/page.tsx").exists());
}

#[test]
fn the_copy_of_an_interrupted_session_is_examined_on_demand() {
    let held = ReviewScene::begin();
    held.change();
    let asked = |copy: Option<&Project>| {
        difference(
            &held.scene.project(),
            SessionView {
                copy,
                ..SessionView::default()
            },
            &held.scene.state(),
            "r1",
            &[],
            &[],
        )
    };
    assert!(matches!(asked(None), Err(Error::NoCopy { .. })));
    let shown = asked(Some(&held.copy())).expect("shown");
    assert_eq!(
        shown.review.n_changes,
        Some(shown.pending.changes.n),
        "it is one number"
    );
    // It continues from its first state.
    assert!(
        begin(
            &held.scene.project(),
            None,
            &held.scene.state(),
            "r1",
            "more"
        )
        .expect("begun")
        .goes_on
    );
    held.write("more.txt", "more\n");
    assert!(told(&held.end()).contains(&"more.txt +1 -0".to_owned()));
    assert_eq!(held.apply(&[], false, false).n_left, 0);
    assert_eq!(
        held.paths(),
        [
            "kept.txt",
            "more.txt",
            "new",
            "new/made.txt",
            "new/moved.txt",
            "src"
        ]
    );
}

#[test]
fn selecting_an_unchanged_path_is_an_error() {
    let held = ReviewScene::begin();
    held.change();
    held.end();
    for only in ["nowhere", "*.rs", "[", "kept"] {
        let only = [BytesPath::from(only)];
        let wanted = ApplySelection {
            only: &only,
            merge: false,
            with_auto_run: false,
            auto_run: &[],
            hunks: &[],
        };
        let refused = apply(
            &held.scene.project(),
            SessionView::default(),
            &held.scene.state(),
            "r1",
            wanted,
        );
        assert!(matches!(refused, Err(Error::Pattern { .. })), "{refused:?}");
    }
    assert!(
        undo::list(&held.scene.state())
            .expect("listed")
            .turns
            .is_empty()
    );
}

#[test]
fn git_work_is_pending_with_and_without_paths() {
    use podbay_wire::keep::PendingRepository;
    let held = ReviewScene::begin();
    let repository = PendingRepository {
        path: ".git".into(),
        is_staged: true,
        ..PendingRepository::default()
    };
    let git = PendingGit {
        repositories: vec![repository],
    };
    let with_git = |copy| SessionView {
        copy,
        git: Some(&git),
        ..SessionView::default()
    };
    let copy = held.copy();
    let pending = end(
        &held.scene.project(),
        with_git(Some(&copy)),
        &held.scene.state(),
        "r1",
        &[],
    )
    .expect("ended");
    assert!(pending.changes.is_empty() && pending.git == git);
    let listed = list(&held.scene.project(), &held.scene.state()).expect("listed");
    assert_eq!((listed[0].n_changes, &listed[0].git), (Some(0), &git));
    // It is resumed and applied: only the paths, by this.
    begin(
        &held.scene.project(),
        None,
        &held.scene.state(),
        "r1",
        "more",
    )
    .expect("begun");
    held.change();
    end(
        &held.scene.project(),
        with_git(Some(&copy)),
        &held.scene.state(),
        "r1",
        &[],
    )
    .expect("ended");
    let done = held.apply(&["kept.txt"], false, false);
    assert!(done.n_left > 0 && done.git == git);
    let done = held.apply(&[], false, false);
    assert_eq!((done.n_left, &done.git), (0, &git));
    assert_eq!(held.listed(), [("change it".to_owned(), Some(0))]);
    let done = held.apply(&[], false, false);
    assert_eq!(
        (done.applied.changed.n, &done.git),
        (0, &git),
        "again is no harm"
    );
    git_imported(&held.scene.project(), &held.scene.state(), "r1").expect("noted");
    assert_eq!(held.listed(), []);
    // With pending paths the review stays.
    let held = ReviewScene::begin();
    held.change();
    end(
        &held.scene.project(),
        with_git(Some(&held.copy())),
        &held.scene.state(),
        "r1",
        &[],
    )
    .expect("ended");
    git_imported(&held.scene.project(), &held.scene.state(), "r1").expect("noted");
    let listed = list(&held.scene.project(), &held.scene.state()).expect("listed");
    assert_eq!(
        (listed[0].n_changes, listed[0].git.is_empty()),
        (Some(4), true)
    );
}

#[test]
fn lines_of_a_file_replaced_by_a_folder_are_counted() {
    let held = ReviewScene::begin();
    fs::remove_file(held.copy.join("gone.txt")).expect("removed");
    held.write("gone.txt/in", "1\n2\n");
    let pending = held.end();
    assert_eq!(told(&pending), ["gone.txt +0 -1", "gone.txt/in +2 -0"]);
    assert_eq!((pending.n_added, pending.n_removed), (2, 1));
}

#[test]
fn all_lines_of_a_long_change_are_counted_and_shown_for_a_single_path() {
    let held = ReviewScene::begin();
    let long: String = (0..30_000).map(|n| format!("line {n}\n")).collect();
    held.write("long.txt", &long);
    held.write("deep/other.txt", &long);
    held.write("huge.txt", &"x\n".repeat(600_000));
    held.write("image", "\0");
    let pending = held.end();
    assert_eq!(
        (pending.n_added, pending.n_uncounted),
        (60_000, 1),
        "{:?}",
        told(&pending)
    );
    let shown = |only: &[&str]| {
        let only: Vec<BytesPath> = only.iter().map(|&path| BytesPath::from(path)).collect();
        let shown = difference(
            &held.scene.project(),
            SessionView::default(),
            &held.scene.state(),
            "r1",
            &only,
            &[],
        )
        .expect("shown");
        (shown.n_cut, shown.text.matches("+line 29999\n").count())
    };
    assert_eq!(shown(&[]), (2, 0));
    assert_eq!(shown(&["long.txt", "deep"]), (2, 0));
    // With its parent folder.
    assert_eq!((shown(&["long.txt"]), shown(&["deep"])), ((0, 1), (0, 1)));
}

#[test]
fn only_empty_new_folders_are_counted_as_changes() {
    let held = ReviewScene::begin();
    held.change();
    fs::create_dir_all(held.copy.join("empty/er")).expect("made");
    let pending = held.end();
    assert_eq!(
        told(&pending),
        [
            "gone.txt +0 -1",
            "kept.txt +1 -1",
            "empty/er",
            "new/made.txt +1 -0",
            "new/moved.txt +0 -0"
        ]
    );
    assert_eq!(
        (pending.changes.n, held.listed()),
        (5, vec![("change it".to_owned(), Some(5))])
    );
}
