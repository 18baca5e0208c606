//! Tests of files that no snapshot holds, and of a full store.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;

use super::*;
use crate::keep::plan::CHANGED_IN_COPY;
use crate::keep::plan::make_plan;
use crate::keep::testing::SmallDisk;
use podbay_soak as soak;
use podbay_wire::keep::LeftReason;
use podbay_wire::keep::UncapturedReason;

/// More than a snapshot holds of one file.
const LARGE: u64 = 70 << 20;

fn noise(seed: u64, n_bytes: usize) -> Vec<u8> {
    (seed..)
        .flat_map(|n| *crate::keep::ObjectId::of(&n.to_le_bytes()).as_bytes())
        .take(n_bytes)
        .collect()
}

/// Makes a large file that is mostly holes.
fn make(path: &Path, word: &str) {
    let file = File::create(path).expect("made");
    file.set_len(LARGE).expect("grows");
    file.write_all_at(word.as_bytes(), LARGE - 100)
        .expect("written");
}

fn word(path: &Path) -> String {
    let mut word = [0; 3];
    File::open(path)
        .expect("opens")
        .read_exact_at(&mut word, LARGE - 100)
        .expect("read");
    String::from_utf8(word.to_vec()).expect("a word")
}

impl ReviewScene {
    /// Begins a review of a project with large files. Only one called `same` shows through in the
    /// copy: removing the other name of a hard-linked file would change its ctime.
    fn with_large(names: &[&str]) -> Self {
        let scene = Scene::new();
        scene.write("plain", "plain");
        let copy = scene.folder().join("copy");
        duplicate(&scene.root(), &copy);
        for name in names {
            make(&scene.path(name), "old");
            if *name == "same" {
                fs::hard_link(scene.path(name), copy.join(name)).expect("linked");
            }
        }
        let held = Self { scene, copy };
        let began = begin(
            &held.scene.project(),
            None,
            &held.scene.state(),
            "r1",
            "change it",
        )
        .expect("begun");
        let over: Vec<_> = began
            .passed_over
            .first
            .iter()
            .map(|over| (over.path.to_text(), over.why))
            .collect();
        assert_eq!(
            over,
            names
                .iter()
                .map(|name| ((*name).to_owned(), UncapturedReason::TooLarge))
                .collect::<Vec<_>>()
        );
        held
    }

    fn replace(&self, name: &str, word: &str) {
        make(&self.copy.join(name), word);
    }

    fn bring_in_with(&self, copy: Option<&Project>) -> ReviewApplied {
        let wanted = ApplySelection {
            only: &[],
            merge: false,
            with_auto_run: false,
            auto_run: &[],
            hunks: &[],
        };
        apply(
            &self.scene.project(),
            SessionView {
                copy,
                ..SessionView::default()
            },
            &self.scene.state(),
            "r1",
            wanted,
        )
        .expect("applied")
    }

    fn leftovers(&self) -> Vec<String> {
        self.paths()
            .into_iter()
            .filter(|path| path.starts_with(".podbay-"))
            .collect()
    }
}

#[test]
fn large_files_are_copied_if_the_projects_own_is_unchanged() {
    let held = ReviewScene::with_large(&["gone", "mine", "same", "shrunk", "was"]);
    held.replace("mine", "new");
    held.replace("was", "new");
    held.replace("made", "new");
    held.replace("tool", "new");
    fs::set_permissions(held.copy.join("tool"), fs::Permissions::from_mode(0o4755)).expect("set");
    held.replace("run", "new");
    fs::set_permissions(held.copy.join("run"), fs::Permissions::from_mode(0o750)).expect("set");
    held.replace(".envrc", "new");
    held.write("shrunk", "small");
    let pending = held.end();
    assert_eq!(pending.changes.n, 8, "{pending:?}");
    make(&held.scene.path("mine"), "own");
    // Without the copy none of them is applied.
    let done = held.bring_in_with(None);
    let from_copy = |path: &str| {
        format!(
            "{path} {}",
            LeftReason::FromCopy {
                why: UncapturedReason::TooLarge
            }
        )
    };
    assert!(
        left(&done.applied.refused).contains(&from_copy("made")),
        "{done:?}"
    );
    assert_eq!(
        (
            held.scene.path("made").exists(),
            word(&held.scene.path("was"))
        ),
        (false, "old".to_owned())
    );
    let done = held.bring_in_with(Some(&held.copy()));
    assert_eq!(
        left(&done.applied.conflicts),
        ["mine was changed by another program since"]
    );
    let refused = left(&done.applied.refused);
    let stays = "gone is not in the snapshot (larger than 64 MiB), so undo could not restore it, and it stays; remove or replace it by hand";
    for words in [
        ".envrc may run on your machine: ",
        stays,
        "tool would get a set-user-id",
    ] {
        assert!(
            refused.iter().any(|line| line.starts_with(words)),
            "{words}: {refused:?}"
        );
    }
    let read = |name: &str| word(&held.scene.path(name));
    assert_eq!(
        [read("was"), read("made"), read("run"), read("same")],
        ["new", "new", "new", "old"]
    );
    assert_eq!(
        (
            read("mine"),
            fs::read(held.scene.path("shrunk")).expect("there")
        ),
        ("own".to_owned(), b"small".to_vec())
    );
    let facts = fs::metadata(held.scene.path("run")).expect("there");
    assert_eq!((facts.len(), facts.mode() & 0o7777), (LARGE, 0o750));
    assert!(
        facts.blocks() * 512 < 1 << 20,
        "its holes are holes: {} blocks",
        facts.blocks()
    );
    // An applied file is not pending any more, whatever is written into it, and is not applied
    // twice.
    assert_eq!(
        (done.n_left, held.listed()),
        (4, vec![("change it".to_owned(), Some(4))])
    );
    make(&held.scene.path("made"), "own");
    let done = held.bring_in_with(Some(&held.copy()));
    assert_eq!(
        (done.applied.changed.n, done.n_left, read("made").as_str()),
        (0, 4, "own")
    );
    assert_eq!(held.leftovers(), [""; 0]);
}

#[test]
fn a_large_file_that_changed_in_the_copy_since_is_not_applied() {
    let held = ReviewScene::with_large(&[]);
    held.replace("made", "new");
    held.end();
    held.replace("made", "bad");
    let done = held.bring_in_with(Some(&held.copy()));
    assert_eq!(
        left(&done.applied.refused),
        [format!("made {CHANGED_IN_COPY}")]
    );
    assert!(!held.scene.path("made").exists() && done.n_left == 1);
}

#[test]
fn a_kill_at_any_moment_leaves_the_old_or_the_new_large_file() {
    for step in soak::sample(["nothing", "a part", "complete", "exchanged", "in"], 3) {
        let held = ReviewScene::with_large(&["was"]);
        held.replace("was", "new");
        held.replace("made", "new");
        held.end();
        let (project, state, copy) = (held.scene.project(), held.scene.state(), held.copy());
        {
            let mut work = OpenReview::open(
                &project,
                SessionView {
                    copy: Some(&copy),
                    ..SessionView::default()
                },
                &state,
                "r1",
                false,
            )
            .expect("opened");
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
                copy: Some(&copy),
            };
            let wanted = work.all().expect("compared");
            let journal = make_plan(
                &project,
                &mut work.store,
                &request,
                wanted,
                Outcome::default(),
                BTreeMap::new(),
            )
            .expect("planned");
            journal.save(&state).expect("saved");
            let at = journal
                .changes
                .iter()
                .position(|change| change.path == "was".into())
                .expect("planned");
            let beside = |end: &str| {
                held.scene
                    .path(format!(".podbay-{}-{at}.{end}", journal.token))
            };
            let complete = |to: &Path| {
                make(to, "new");
                let changed = fs::metadata(held.copy.join("was"))
                    .and_then(|facts| facts.modified())
                    .expect("there");
                File::options()
                    .write(true)
                    .open(to)
                    .and_then(|file| file.set_modified(changed))
                    .expect("set");
            };
            match step {
                "a part" => fs::write(beside("part"), "half").expect("written"),
                "complete" => complete(&beside("new")),
                "exchanged" => {
                    fs::rename(held.scene.path("was"), beside("new")).expect("renamed");
                    complete(&held.scene.path("was"));
                }
                "in" => {
                    fs::remove_file(held.scene.path("was")).expect("removed");
                    complete(&held.scene.path("was"));
                }
                _ => {}
            }
        }
        // A resume without the copy leaves out what comes from there.
        if step != "in" {
            undo::resume(&project, &state, None).expect("resumed");
            assert!(!held.scene.path("made").exists());
        }
        let done = held.bring_in_with(Some(&copy));
        assert_eq!(
            (done.n_left, left(&done.applied.conflicts)),
            (0, Vec::new()),
            "{step}: {done:?}"
        );
        let (was, made) = (
            word(&held.scene.path("was")),
            word(&held.scene.path("made")),
        );
        assert_eq!(
            ([was, made], held.leftovers()),
            (["new".to_owned(), "new".to_owned()], Vec::new()),
            "{step}"
        );
    }
}

#[test]
fn old_turns_are_removed_to_make_room_for_a_review() {
    let held = ReviewScene::begin();
    let (project, state) = (held.scene.project(), held.scene.state());
    for n in 0..5 {
        undo::begin(&project, &state, "chat", n, "").expect("begun");
        held.scene.write("theirs", noise(n * 10_000, 100_000));
        undo::end(&project, &state).expect("ended");
    }
    held.scene.remove("theirs");
    fs::write(held.copy.join("made"), noise(1_000_000, 300_000)).expect("written");
    let store = Store::bounded(&state, 550_000).expect("opens");
    let pending = end_in(store, &project, seen(&held.copy()), &state, "r1", &[]).expect("ended");
    assert!(
        pending
            .changes
            .first
            .iter()
            .all(|path| path.change.unkept.is_none()),
        "{pending:?}"
    );
    let turns = undo::list(&state).expect("listed").turns;
    assert!(
        (1..5).contains(&turns.n) && turns.first[0].n_turn == 4,
        "the newest stays: {turns:?}"
    );
    assert_eq!(held.apply(&["made"], false, false).n_left, 0);
    assert_eq!(
        fs::read(held.scene.path("made")).expect("there"),
        noise(1_000_000, 300_000)
    );
}

#[test]
fn files_without_room_in_the_store_are_reported_and_copied() {
    let scene = Scene::new();
    scene.write("plain", "plain");
    let copy = scene.folder().join("copy");
    duplicate(&scene.root(), &copy);
    for name in ["theirs", "was"] {
        scene.write(name, noise(0, 300_000));
    }
    let held = ReviewScene { scene, copy };
    let (project, state, copy) = (held.scene.project(), held.scene.state(), held.copy());
    let bounded = || Store::bounded(&state, 100_000);
    let began = begin_in(
        bounded().expect("opens"),
        &project,
        None,
        &state,
        ("r1", "change it"),
        ByTurn::No,
    )
    .expect("begun");
    let over: Vec<_> = began
        .passed_over
        .first
        .iter()
        .map(|over| (over.path.to_text(), over.why))
        .collect();
    assert_eq!(
        over,
        [
            ("theirs".to_owned(), UncapturedReason::StoreFull),
            ("was".to_owned(), UncapturedReason::StoreFull)
        ]
    );
    for (name, seed) in [
        ("theirs", 1_000_000),
        ("was", 2_000_000),
        ("made", 3_000_000),
    ] {
        fs::write(held.copy.join(name), noise(seed, 200_000)).expect("written");
    }
    let pending = end_in(
        bounded().expect("opens"),
        &project,
        seen(&copy),
        &state,
        "r1",
        &[],
    )
    .expect("ended");
    assert_eq!(
        pending
            .changes
            .first
            .iter()
            .filter(|path| path.change.unkept == Some(UncapturedReason::StoreFull))
            .count(),
        3,
        "{pending:?}"
    );
    held.scene.write("theirs", "the user's");
    let wanted = ApplySelection {
        only: &[],
        merge: false,
        with_auto_run: false,
        auto_run: &[],
        hunks: &[],
    };
    // The copy is gone, which is reported.
    let done = apply_from(
        &bounded,
        &project,
        SessionView::default(),
        &state,
        "r1",
        wanted,
    )
    .expect("applied");
    let refused = left(&done.applied.refused);
    assert_eq!(
        refused[0],
        format!(
            "made {}",
            LeftReason::FromCopy {
                why: UncapturedReason::StoreFull
            }
        )
    );
    let done = apply_from(&bounded, &project, seen(&copy), &state, "r1", wanted).expect("applied");
    assert_eq!(
        left(&done.applied.conflicts),
        ["theirs was changed by another program since"]
    );
    let read = |name: &str| fs::read(held.scene.path(name)).expect("there");
    assert!(
        read("was") == noise(2_000_000, 200_000)
            && read("made") == noise(3_000_000, 200_000)
            && read("theirs") == b"the user's"
    );
    assert_eq!(done.n_left, 1);
    // There is room now: what was left out is captured, and shown.
    assert_eq!(held.bring_in_with(Some(&copy)).n_left, 1);
    let record = ReviewRecord::load(&state, "r1")
        .expect("loaded")
        .expect("there");
    assert!(!record.is_cut_short);
}

#[test]
fn a_full_disk_is_reported_again_and_the_rest_applied_later() {
    let scene = Scene::new();
    let Some(_small) = SmallDisk::mount(scene.root(), "1m") else {
        return;
    };
    scene.write("kept", "1");
    let copy = scene.folder().join("copy");
    duplicate(&scene.root(), &copy);
    let held = ReviewScene { scene, copy };
    begin(
        &held.scene.project(),
        None,
        &held.scene.state(),
        "r1",
        "change it",
    )
    .expect("begun");
    fs::write(held.copy.join("made"), noise(0, 600_000)).expect("written");
    held.end();
    held.scene.write("mine", noise(1_000_000, 600_000));
    for _ in 0..3 {
        let done = held.apply(&[], false, false);
        assert_eq!(
            (done.applied.stopped.as_deref(), done.n_left),
            (Some("No space left on device"), 1)
        );
    }
    let wanted = ApplySelection {
        only: &[],
        merge: false,
        with_auto_run: false,
        auto_run: &[],
        hunks: &[],
    };
    let other = apply(
        &held.scene.project(),
        SessionView::default(),
        &held.scene.state(),
        "r2",
        wanted,
    )
    .expect_err("nothing else begins");
    assert!(
        other
            .to_string()
            .contains("stopped again: No space left on device"),
        "{other}"
    );
    held.scene.remove("mine");
    assert_eq!(held.apply(&[], false, false).n_left, 0);
    assert!(fs::read(held.scene.path("made")).expect("there") == noise(0, 600_000));
}

#[test]
fn a_file_with_a_temporary_name_of_ours_is_left_and_named() {
    let held = ReviewScene::begin();
    held.write(".podbay-0123456789abcdef-0.new", "x");
    held.end();
    let done = held.apply(&[], false, false);
    assert_eq!(
        (done.n_left, left(&done.applied.refused)),
        (
            1,
            vec![format!(
                ".podbay-0123456789abcdef-0.new {}",
                LeftReason::OwnName
            )]
        )
    );
    assert_eq!(held.leftovers(), [""; 0]);
}
