mod swap;

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::thread;

use nix::fcntl::AtFlags;
use nix::sys::stat::Mode;
use nix::sys::stat::fstatat;

use super::*;
use crate::keep::Node;
use crate::keep::Origin;
use crate::keep::compare::compare;
use crate::keep::compare::path_changes;
use crate::keep::deflate::Deflate;
use crate::keep::read::FoundEntry;
use crate::keep::swap::IS_WITHOUT_FLAGS;
use crate::keep::swap::NewContent;
use crate::keep::swap::SwapOutcome;
use crate::keep::swap::SwapTarget;
use crate::keep::testing::Scene;
use crate::keep::testing::as_user;
use crate::keep::testing::left;
use crate::keep::tree::Tree;
use podbay_wire::keep::LeftReason;
use podbay_wire::keep::UncapturedReason;

/// Takes a snapshot, makes changes, takes another snapshot.
fn change(scene: &Scene, act: impl FnOnce()) -> (super::super::ObjectId, super::super::ObjectId) {
    let before = scene.take().id;
    act();
    (before, scene.take().id)
}

/// Plans without opening any folder.
fn plan(scene: &Scene, request: &Request<'_>) -> Journal {
    let mut store = scene.store();
    let wanted = wanted_changes(&store, request).expect("compared");
    make_plan(
        &scene.project(),
        &mut store,
        request,
        wanted,
        Outcome::default(),
        BTreeMap::new(),
    )
    .expect("planned")
}

/// Applies in both directions between two states, and compares everything.
#[track_caller]
pub(super) fn back_and_forth(scene: &Scene, act: impl FnOnce()) {
    let one = scene.all();
    let (before, after) = change(scene, act);
    let other = scene.all();
    for (from, to, expected) in [
        (after, before, &one),
        (before, after, &other),
        (after, before, &one),
    ] {
        let applied = scene.apply(from, to);
        assert_eq!(left(&applied.conflicts), [""; 0]);
        assert_eq!(left(&applied.refused), [""; 0]);
        assert_eq!(&scene.all(), expected);
    }
    assert!(!is_unfinished(&scene.state()).expect("told"));
}

#[test]
fn every_kind_of_change_can_be_undone_and_redone() {
    let scene = Scene::new();
    scene.write("modified", "old");
    scene.write("deleted/deep/file", "d");
    scene.write("mode", "m");
    scene.write(b"new\nline \xff", "odd");
    scene.write("file to folder", "f");
    scene.write("folder to file/a/b", "g");
    scene.write("file to link", "h");
    scene.link("/etc/passwd", "link");
    scene.make("empty");
    scene.make("mode of folder");
    scene.write("Case", "case");
    scene.write("Folder/in", "case");
    scene.write("ignored/.gitignore", "*");
    back_and_forth(&scene, || {
        scene.write("modified", "new");
        scene.remove("deleted");
        scene.mode("mode", 0o711);
        fs::remove_file(scene.path(b"new\nline \xff")).expect("removed");
        scene.remove("file to folder");
        scene.write("file to folder/a/b", "f2");
        scene.remove("folder to file");
        scene.write("folder to file", "g2");
        scene.remove("file to link");
        scene.link("x", "file to link");
        scene.remove("link");
        scene.write("link", "no link now");
        scene.remove("empty");
        scene.mode("mode of folder", 0o1700);
        fs::rename(scene.path("Case"), scene.path("case")).expect("renamed");
        fs::rename(scene.path("Folder"), scene.path("folder")).expect("renamed");
        scene.make("new/empty/folders");
        scene.write("new/zeros", vec![0; 300_000]);
        scene.mode("new/zeros", 0o600);
    });
}

#[test]
fn a_read_only_file_is_changed_and_stays_read_only() {
    let scene = Scene::new();
    scene.write("closed/file", "1");
    scene.write("closed/kept", "2");
    scene.write("gone/file", "3");
    scene.write("opens/file", "4");
    for path in ["closed/file", "closed", "gone/file", "gone", "opens"] {
        scene.mode(path, if path.contains('/') { 0o444 } else { 0o555 });
    }
    back_and_forth(&scene, || {
        scene.mode("closed", 0o755);
        scene.remove("closed/file");
        scene.write("closed/file", "11");
        scene.mode("closed/file", 0o440);
        scene.write("closed/new", "5");
        scene.mode("closed", 0o555);
        scene.mode("gone", 0o755);
        scene.remove("gone");
        scene.mode("opens", 0o755);
        scene.write("opens/more", "6");
    });
}

#[test]
fn a_read_only_folder_is_made_writable_only_during_the_change() {
    let scene = Scene::new();
    scene.write("closed/file", "1");
    let (before, after) = change(&scene, || scene.write("closed/file", "2"));
    scene.mode("closed", 0o555);
    let request = Scene::request(after, before);
    let journal = plan(&scene, &request);
    assert_eq!(journal.opened, BTreeMap::from([("closed".into(), 0o555)]));
    // The state after a kill in the middle.
    scene.mode("closed", 0o755);
    journal.save(&scene.state()).expect("saved");
    assert_eq!(scene.resume().expect("something is").changed.n, 1);
    assert_eq!(
        fs::metadata(scene.path("closed")).expect("there").mode() & 0o7777,
        0o555
    );
    scene.apply(before, after);
    assert_eq!(
        fs::metadata(scene.path("closed")).expect("there").mode() & 0o7777,
        0o555
    );
    assert_eq!(fs::read(scene.path("closed/file")).expect("there"), b"2");
}

#[test]
fn a_folder_made_inaccessible_by_the_change_is_restored() {
    let scene = Scene::new();
    scene.write("closed/file", "1");
    scene.mode("closed", 0o750);
    let before = scene.take().id;
    let all = scene.all();
    scene.mode("closed", 0);
    // As a user sees it who may not read it, which root always may.
    let mut store = scene.store();
    let mut tree = Tree::read(&store, &before).expect("there");
    tree.0[1].1 = Node::ignored(UncapturedReason::Unreadable);
    let addition = store.add();
    let after = addition
        .put_tree(&tree.encode(), &mut Deflate::default())
        .expect("put");
    let added = addition.finish().expect("finished");
    store.take_in_added(added).expect("taken in");
    drop(store);
    let applied = scene.apply(after, before);
    assert_eq!((applied.changed.n, left(&applied.refused)), (1, vec![]));
    assert_eq!(scene.all(), all);
}

#[test]
fn files_changed_by_another_program_are_left_and_reported() {
    let scene = Scene::new();
    for path in ["edited", "removed", "mode", "turned", "safe"] {
        scene.write(path, "1");
    }
    let (before, after) = change(&scene, || {
        for path in [
            "edited", "removed", "mode", "turned", "safe", "new/a", "new/b",
        ] {
            scene.write(path, "2");
        }
    });
    scene.write("edited", "3");
    scene.remove("removed");
    scene.mode("mode", 0o600);
    scene.remove("turned");
    scene.make("turned");
    scene.write("new/mine", "4");
    scene.write("new/b", "5");
    let applied = scene.apply(after, before);
    let since = "was changed by another program since";
    let expected =
        ["edited", "mode", "new/b", "removed", "turned"].map(|path| format!("{path} {since}"));
    let full = "new holds entries that are left, or that another program added since".to_owned();
    assert_eq!(
        left(&applied.conflicts),
        [expected.to_vec(), vec![full]].concat()
    );
    assert_eq!(applied.changed.first, ["new/a".into(), "safe".into()]);
    let there: Vec<PathBuf> = scene.all().into_keys().collect();
    assert_eq!(
        there,
        [
            "edited", "mode", "new", "new/b", "new/mine", "safe", "turned"
        ]
        .map(PathBuf::from)
    );
    assert_eq!(fs::read(scene.path("edited")).expect("there"), b"3");
    assert_eq!(fs::read(scene.path("safe")).expect("there"), b"1");
    assert!(!is_unfinished(&scene.state()).expect("told"));
}

#[test]
fn a_folder_with_an_unknown_file_is_not_replaced_by_a_file() {
    let scene = Scene::new();
    scene.write("place", "a file");
    let (before, after) = change(&scene, || {
        scene.remove("place");
        scene.write("place/a/b", "1");
        scene.write("place/c", "2");
    });
    scene.write("place/a/mine", "3");
    let all = scene.all();
    let applied = scene.apply(after, before);
    assert_eq!((applied.conflicts.n, applied.changed.n), (4, 0));
    assert_eq!(scene.all(), all);
}

#[test]
fn changes_of_both_sides_are_merged_on_request() {
    let scene = Scene::new();
    scene.write("text", "a\nb\nc\nd\n");
    scene.write("clash", "a\n");
    let (before, after) = change(&scene, || {
        scene.write("text", "a\nb\nc\nD\n");
        scene.write("clash", "b\n");
    });
    scene.write("text", "mine\na\nb\nc\nD\n");
    scene.write("clash", "c\n");
    let request = Request {
        merge: true,
        ..Scene::request(after, before)
    };
    let applied = scene.ask(&request);
    assert_eq!(applied.merged.first, ["text".into()]);
    assert_eq!(
        left(&applied.conflicts),
        ["clash was changed by another program since"]
    );
    assert_eq!(
        fs::read(scene.path("text")).expect("there"),
        b"mine\na\nb\nc\nd\n"
    );
}

#[test]
fn forbidden_changes_are_refused_and_named() {
    let scene = Scene::new();
    scene.write("fine", "1");
    let (before, after) = change(&scene, || {
        scene.write("setuid", "x");
        scene.mode("setuid", 0o4755);
        scene.link("/etc/passwd", "out");
        scene.make("sub");
        scene.link("../../x", "sub/up");
        scene.link("../fine", "sub/in");
        scene.write(".GIT/hooks/pre-commit", "x");
        scene.write("worktree/.git", "gitdir: x");
        scene.write("fine", "2");
        fs::File::create(scene.path("large"))
            .expect("made")
            .set_len(1 << 30)
            .expect("grows");
        nix::unistd::mkfifo(&scene.path("pipe"), Mode::S_IRWXU).expect("made");
    });
    let other = Scene::new();
    other.write("fine", "1");
    let request = Request {
        origin: Origin::Elsewhere,
        ..Scene::request(before, after)
    };
    let state = scene.state();
    let applied = apply(
        &other.project(),
        &state,
        &mut scene.store(),
        &request,
        |_, _, _| Ok(()),
    )
    .expect("applied");
    let git = "is in a git folder, and only git changes those";
    assert_eq!(
        left(&applied.refused),
        [
            format!(".GIT {git}"),
            format!(".GIT/hooks {git}"),
            format!(".GIT/hooks/pre-commit {git}"),
            format!("large {}", LeftReason::FromCopy { why: UncapturedReason::TooLarge }),
            "out would be a link to /etc/passwd, out of the project; make it by hand if you want it".into(),
            "pipe is not in the snapshot (not a file, folder or link), so it could not be restored".into(),
            "setuid would get a set-user-id or set-group-id bit; set it by hand if you want it".into(),
            "sub/up would be a link to ../../x, out of the project; make it by hand if you want it".into(),
            format!("worktree/.git {git}"),
        ]
    );
    let there: Vec<PathBuf> = other.all().into_keys().collect();
    assert_eq!(
        there,
        ["fine", "sub", "sub/in", "worktree"].map(PathBuf::from)
    );
    // Undone in the project that it came from, what no snapshot holds stays.
    let applied = scene.apply(after, before);
    assert!(
        applied
            .conflicts
            .first
            .iter()
            .any(|left| left.path.as_bytes() == b"large")
    );
    assert!(scene.path("large").exists() && !scene.path("out").is_symlink());
}

#[test]
fn an_uncaptured_file_of_the_source_is_never_assumed_unchanged() {
    let scene = Scene::new();
    fs::File::create(scene.path("large"))
        .expect("made")
        .set_len(70 << 20)
        .expect("grows");
    let (before, after) = change(&scene, || scene.write("large", "small now"));
    scene.remove("large");
    let request = Request {
        origin: Origin::Elsewhere,
        ..Scene::request(before, after)
    };
    assert_eq!(
        left(&scene.ask(&request).conflicts),
        [format!("large {}", LeftReason::ChangedSince)]
    );
    assert_eq!(
        scene.apply(before, after).changed.n,
        1,
        "in its own project nothing is in its way"
    );
}

#[test]
fn only_named_paths_and_their_parent_folders_are_applied() {
    let scene = Scene::new();
    scene.write("a", "1");
    scene.write("b", "1");
    let (before, after) = change(&scene, || {
        scene.write("a", "2");
        scene.write("b", "2");
        scene.write("new/deep/c", "2");
        scene.write("new/d", "2");
        scene.write("newer", "2");
    });
    scene.apply(after, before);
    let request = Request {
        only: vec!["new/deep/c".into(), "b/".into()],
        ..Scene::request(before, after)
    };
    assert_eq!(scene.ask(&request).changed.n, 4);
    let there: Vec<PathBuf> = scene.all().into_keys().collect();
    assert_eq!(
        there,
        ["a", "b", "new", "new/deep", "new/deep/c"].map(PathBuf::from)
    );
    assert_eq!(fs::read(scene.path("b")).expect("there"), b"2");
}

#[test]
fn the_outcome_is_reported_before_the_journal_is_removed() {
    let scene = Scene::new();
    scene.write("a", "1");
    let (before, after) = change(&scene, || scene.write("a", "2"));
    let request = Scene::request(after, before);
    let told = apply(
        &scene.project(),
        &scene.state(),
        &mut scene.store(),
        &request,
        |_, _, _| Err(Error::NoTurn),
    );
    assert!(matches!(told, Err(Error::NoTurn)));
    let again = apply(
        &scene.project(),
        &scene.state(),
        &mut scene.store(),
        &request,
        |_, _, _| Ok(()),
    );
    assert!(
        matches!(again, Err(Error::Unfinished)),
        "nothing else begins before it is finished"
    );
    assert_eq!(scene.resume().expect("it is not forgotten").changed.n, 1);
    assert!(scene.resume().is_none());
    assert_eq!(fs::read(scene.path("a")).expect("there"), b"1");
}

#[test]
fn an_abandoned_apply_keeps_what_was_done() {
    let scene = Scene::new();
    scene.write("a", "1");
    let (before, after) = change(&scene, || scene.write("a", "2"));
    let journal = plan(&scene, &Scene::request(after, before));
    journal.save(&scene.state()).expect("saved");
    scene.write(format!(".podbay-{}-0.part", journal.token), "hal");
    assert!(abandon(&scene.project(), &scene.state(), |_, _| Ok(())).expect("given up"));
    assert!(!abandon(&scene.project(), &scene.state(), |_, _| Ok(())).expect("nothing to give up"));
    assert_eq!(
        scene.all(),
        BTreeMap::from([("a".into(), "file 644 \"2\"".to_owned())])
    );
}

#[test]
fn folder_modes_with_the_projects_own_are_reported_and_restored() {
    let scene = Scene::new();
    scene.write("src/a", "x");
    scene.mode("", 0o750);
    scene.mode("src", 0o711);
    let (before, after) = change(&scene, || {
        scene.mode("", 0o777);
        scene.mode("src", 0o1777);
    });
    let changes = path_changes(&compare(&scene.store(), &before, &after).expect("compares"));
    let told: Vec<String> = changes
        .iter()
        .map(|change| {
            format!(
                "{} {:?} {:?}",
                change.path,
                change.what,
                change.mode.map(|mode| (mode.before, mode.after))
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            format!(". Mode Some(({}, {}))", 0o750, 0o777),
            format!("src Mode Some(({}, {}))", 0o711, 0o1777)
        ]
    );
    let modes =
        || ["", "src"].map(|path| fs::metadata(scene.path(path)).expect("there").mode() & 0o7777);
    for (from, to, expected) in [
        (after, before, [0o750, 0o711]),
        (before, after, [0o777, 0o1777]),
    ] {
        let applied = scene.apply(from, to);
        assert_eq!((applied.changed.n, modes()), (2, expected));
    }
    // A mode that was set since stays.
    scene.mode("", 0o700);
    assert_eq!(left(&scene.apply(after, before).conflicts).len(), 1);
    assert_eq!(modes(), [0o700, 0o711]);
}

#[test]
fn files_are_restored_in_a_project_whose_own_folder_was_closed() {
    as_user(|| {
        let scene = Scene::new();
        for path in ["gone", "-first/gone", "src/kept"] {
            scene.write(path, path);
        }
        scene.mode("", 0o755);
        let one = scene.all();
        let (before, after) = change(&scene, || {
            scene.remove("gone");
            scene.remove("-first");
            scene.write("made", "y");
            scene.mode("", 0o500);
        });
        let applied = scene.apply(after, before);
        assert_eq!(
            (left(&applied.conflicts), left(&applied.refused)),
            (vec![], vec![])
        );
        assert_eq!(scene.all(), one);
        assert_eq!(
            fs::metadata(scene.path("")).expect("there").mode() & 0o7777,
            0o755
        );
    });
}
