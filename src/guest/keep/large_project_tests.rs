//! Tests of large projects: very many files, and files over the limit of snapshots.

use std::fs;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;

use super::Project;
use super::compare;
use super::review;
use super::testing::Scene;
use super::testing::left;
use podbay_soak as soak;

const GIB: u64 = 1 << 30;

#[test]
fn few_changes_among_a_hundred_thousand_files_are_found_and_undone() {
    let scene = Scene::new();
    let n_in_folder = soak::whole_or(1000, 100);
    for folder in 0..100 {
        scene.make(&folder.to_string());
        for n in 0..n_in_folder {
            fs::write(scene.path(format!("{folder}/{n}")), "x").expect("written");
        }
    }
    let before = scene.take();
    assert_eq!(
        (before.n_files, before.passed_over.n),
        (100 * n_in_folder, 0)
    );
    for n in 0..100 {
        scene.write(format!("{n}/0"), "changed");
    }
    let after = scene.take();
    assert_eq!(
        compare(&scene.store(), &before.id, &after.id)
            .expect("compared")
            .len(),
        100
    );
    assert_eq!(scene.apply(after.id, before.id).changed.n, 100);
    assert_eq!(scene.take().id, before.id);
}

#[test]
fn a_five_gigabyte_sparse_file_is_copied_with_holes_and_its_changes_named() {
    let scene = Scene::new();
    let sparse = File::create(scene.path("sparse")).expect("made");
    sparse.set_len(5 * GIB).expect("grows");
    sparse
        .write_all_at(b"in the middle", 3 * GIB)
        .expect("written");
    scene.write("small", "old\n");
    let copy = scene.folder().join("copy");
    fs::create_dir(&copy).expect("made");
    let copy = Project::open(&copy).expect("opens");
    let copied = review::duplicate(&scene.project(), &copy).expect("copied");
    assert!(
        copied.n_files == 2 && copied.n_bytes < 1 << 20,
        "{copied:?}"
    );
    let path = scene.folder().join("copy/sparse");
    let facts = fs::metadata(&path).expect("there");
    assert_eq!(facts.len(), 5 * GIB);
    assert!(facts.blocks() * 512 < 1 << 20, "{} blocks", facts.blocks());
    let mut there = [0; 13];
    let file = File::options()
        .read(true)
        .write(true)
        .open(&path)
        .expect("opens");
    file.read_exact_at(&mut there, 3 * GIB).expect("read");
    assert_eq!(&there, b"in the middle");
    // A session changes it.
    let (project, state) = (scene.project(), scene.state());
    review::begin(&project, Some(&copy), &state, "r", "change it").expect("begun");
    file.write_all_at(b"changed", 4 * GIB).expect("written");
    fs::write(scene.folder().join("copy/small"), "new\n").expect("written");
    let pending = review::end(
        &project,
        review::SessionView {
            copy: Some(&copy),
            ..review::SessionView::default()
        },
        &state,
        "r",
        &[],
    )
    .expect("ended");
    assert_eq!(pending.changes.n, 2, "{pending:?}");
    let wanted = review::ApplySelection {
        only: &[],
        merge: false,
        with_auto_run: false,
        auto_run: &[],
        hunks: &[],
    };
    let done = review::apply(
        &project,
        review::SessionView::default(),
        &state,
        "r",
        wanted,
    )
    .expect("applied");
    assert_eq!((done.applied.changed.n, done.n_left), (1, 1));
    let refused = [left(&done.applied.refused), left(&done.applied.conflicts)].concat();
    assert!(
        refused.len() == 1 && refused[0].starts_with("sparse "),
        "{refused:?}"
    );
    assert_eq!(fs::read(scene.path("small")).expect("there"), b"new\n");
    let own = File::open(scene.path("sparse")).expect("opens");
    own.read_exact_at(&mut there, 4 * GIB).expect("read");
    assert_eq!(there, [0; 13], "the project's own is as it was");
}
