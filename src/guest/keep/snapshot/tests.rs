use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::thread;

use nix::sys::stat::mkdirat;

use super::*;
use crate::keep::testing::Scene;

/// Returns everything that a snapshot holds, by path.
fn held(store: &Store, id: ObjectId) -> Vec<(BytesPath, Node)> {
    let mut all = Vec::new();
    let mut trees = vec![(Vec::new(), id)];
    while let Some((path, id)) = trees.pop() {
        for (name, node) in Tree::read(store, &id)
            .expect("a tree")
            .0
            .into_iter()
            .filter(|(name, _)| name != OWN)
        {
            let path = join(&path, &name);
            if let Node::Folder { tree, .. } = &node {
                trees.push((path.clone(), *tree));
            }
            all.push((BytesPath::from_bytes(path), node));
        }
    }
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

fn passed_over(snapshot: &Snapshot) -> Vec<(String, UncapturedReason)> {
    snapshot
        .passed_over
        .first
        .iter()
        .map(|passed| (passed.path.to_string(), passed.why))
        .collect()
}

#[test]
fn hidden_ignored_empty_and_oddly_named_files_are_captured() {
    let scene = Scene::new();
    scene.write(".gitignore", "target\n");
    scene.write("target/built", "x");
    scene.write(".hidden/.file", "");
    scene.write(b"new\nline", "a");
    scene.write(b"not \xff\xfe UTF-8", "b");
    scene.make("empty/within");
    scene.link("/etc/passwd", "out");
    scene.link("target", "in");
    scene.write("run", "#!/bin/sh\n");
    scene.mode("run", 0o750);
    scene.mode("empty", 0o555);
    let snapshot = scene.take();
    let store = scene.store();
    let held = held(&store, snapshot.id);
    let told: Vec<String> = held
        .iter()
        .map(|(path, node)| match node {
            Node::Folder { mode, .. } => format!("{path}/ {mode:o}"),
            Node::File {
                mode,
                n_bytes,
                object,
            } => {
                assert_eq!(store.get(object).expect("held").len() as u64, *n_bytes);
                format!("{path} {mode:o} {n_bytes}")
            }
            Node::Link { target } => format!("{path} -> {target}"),
            Node::Unkept { why, .. } => format!("{path} {why:?}"),
        })
        .collect();
    let expected = [
        ".gitignore 644 7",
        ".hidden/ 755",
        ".hidden/.file 644 0",
        "empty/ 555",
        "empty/within/ 755",
        "in -> target",
        r"new\x0aline 644 1",
        r"not \xff\xfe UTF-8 644 1",
        "out -> /etc/passwd",
        "run 750 10",
        "target/ 755",
        "target/built 644 1",
    ];
    assert_eq!(told, expected);
    assert_eq!((snapshot.n_files, passed_over(&snapshot)), (6, vec![]));
    drop(store);
    assert_eq!(scene.take().id, snapshot.id);
}

#[test]
fn uncaptured_files_are_reported() {
    let scene = Scene::new();
    scene.write("sub/.git/config", "");
    scene.write(".git/config", "");
    scene.write("worktree/.git", "gitdir: elsewhere\n");
    File::create(scene.path("sparse"))
        .expect("made")
        .set_len(5 << 30)
        .expect("grows");
    File::create(scene.path("holes"))
        .expect("made")
        .set_len(5 << 20)
        .expect("grows");
    nix::unistd::mkfifo(&scene.path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    let _socket = std::os::unix::net::UnixListener::bind(scene.path("socket")).expect("made");
    let snapshot = scene.take();
    let over = [
        ("pipe", UncapturedReason::Special),
        ("socket", UncapturedReason::Special),
        ("sparse", UncapturedReason::TooLarge),
    ];
    assert_eq!(
        passed_over(&snapshot),
        over.map(|(path, why)| (path.to_owned(), why))
    );
    let paths: Vec<String> = held(&scene.store(), snapshot.id)
        .into_iter()
        .map(|(path, _)| path.to_string())
        .collect();
    assert_eq!(
        paths,
        [
            ".git",
            "holes",
            "pipe",
            "socket",
            "sparse",
            "sub",
            "sub/.git",
            "worktree",
            "worktree/.git"
        ]
    );
    // Changes in `.git` are no changes of the project; those of files that are too large are
    // detected.
    scene.write(".git/config", "changed");
    assert_eq!(scene.take().id, snapshot.id);
    File::options()
        .write(true)
        .open(scene.path("sparse"))
        .expect("opens")
        .set_len(6 << 30)
        .expect("grows");
    assert_ne!(scene.take().id, snapshot.id);
}

#[test]
fn files_that_are_one_hole_are_read_once_and_restored_as_holes() {
    const LENGTH: u64 = 8 << 20;
    let scene = Scene::new();
    let make = |name: &str| {
        File::create(scene.path(name))
            .and_then(|file| file.set_len(LENGTH))
            .expect("made");
    };
    (0..16).for_each(|n| make(&format!("hole{n}")));
    // Of the same length, and not empty.
    let mut content = vec![0; LENGTH as usize];
    content[0] = 1;
    scene.write("full", &content);
    let before = scene.take();
    assert!(
        before.n_bytes_read <= 3 * LENGTH,
        "two threads may read the first one each: {}",
        before.n_bytes_read
    );
    let store = scene.store();
    for (path, node) in held(&store, before.id) {
        let Node::File {
            object, n_bytes, ..
        } = node
        else {
            panic!("{path}: {node:?}")
        };
        assert_eq!(n_bytes, LENGTH);
        let expected = u8::from(path == "full".into());
        assert_eq!(
            store
                .get(&object)
                .expect("held")
                .iter()
                .map(|byte| u32::from(*byte))
                .sum::<u32>(),
            u32::from(expected)
        );
    }
    drop(store);
    scene.remove("hole7");
    let after = scene.take();
    assert_eq!(scene.apply(after.id, before.id).changed.n, 1);
    let facts = fs::metadata(scene.path("hole7")).expect("it is back");
    assert_eq!(
        (facts.len(), facts.blocks(), scene.take().id),
        (LENGTH, 0, before.id)
    );
}

#[test]
fn a_path_longer_than_the_kernels_limit_is_skipped() {
    let scene = Scene::new();
    let name = "d".repeat(200);
    // Folder by folder: the whole path is longer than the kernel accepts.
    let mut folder = scene.project().list(b"").expect("opens");
    for _ in 0..30 {
        mkdirat(&folder, name.as_str(), Mode::S_IRWXU).expect("made");
        folder = openat(
            &folder,
            name.as_str(),
            OFlag::O_RDONLY | OFlag::O_DIRECTORY,
            Mode::empty(),
        )
        .expect("opens");
    }
    let snapshot = scene.take();
    assert_eq!(snapshot.passed_over.first.len(), 1);
    assert_eq!(snapshot.passed_over.first[0].why, UncapturedReason::TooDeep);
}

#[test]
fn a_file_is_read_again_only_if_its_metadata_changed() {
    let scene = Scene::new();
    for name in ["same", "times", "moved", "grown"] {
        scene.write(name, "1");
    }
    let settle = |scene: &Scene| {
        // Simulates that two seconds pass: what was read now was last changed long ago.
        let state = scene.state();
        let mut cache = Cache::default();
        let known = ["grown", "moved", "same", "times"].map(|name| {
            let stat = nix::sys::stat::lstat(&scene.path(name)).expect("it is there");
            CachedFile {
                name: name.into(),
                stamp: stamp(&stat),
                object: ObjectId::of(b"1"),
            }
        });
        cache.0.insert(Vec::new(), known.into());
        cache.save(&state, "cache").expect("saves");
    };
    let before = scene.take();
    assert_eq!(
        Cache::load(&scene.state(), "cache").expect("loads"),
        Cache::default(),
        "all of it is too new to be trusted"
    );
    settle(&scene);
    assert_eq!(scene.take().id, before.id);
    // The same length and times as before: only the ctime, which no program can set, differs.
    let old = fs::metadata(scene.path("times"))
        .expect("it is there")
        .modified()
        .expect("a time");
    scene.write("times", "2");
    File::options()
        .write(true)
        .open(scene.path("times"))
        .expect("opens")
        .set_modified(old)
        .expect("set");
    scene.write("other", "3");
    fs::rename(scene.path("other"), scene.path("moved")).expect("renamed");
    scene.write("grown", "11");
    let after = scene.take();
    let store = scene.store();
    let contents: Vec<Vec<u8>> = held(&store, after.id)
        .iter()
        .map(|(_, node)| match node {
            Node::File { object, .. } => store.get(object).expect("held"),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(contents, [&b"11"[..], b"3", b"1", b"2"]);
}

#[test]
fn cached_contents_missing_in_the_store_are_read_again() {
    let scene = Scene::new();
    scene.write("a", "1");
    let stat = nix::sys::stat::lstat(&scene.path("a")).expect("it is there");
    let known = CachedFile {
        name: b"a".to_vec(),
        stamp: stamp(&stat),
        object: ObjectId::of(b"1"),
    };
    Cache(HashMap::from([(Vec::new(), vec![known])]))
        .save(&scene.state(), "cache")
        .expect("saves");
    let snapshot = scene.take();
    let store = scene.store();
    assert!(
        matches!(held(&store, snapshot.id)[0].1, Node::File { object, .. } if store.get(&object).expect("held") == b"1")
    );
}

#[test]
fn hard_links_are_captured_as_separate_files() {
    let scene = Scene::new();
    scene.write("one", "x");
    fs::hard_link(scene.path("one"), scene.path("two")).expect("linked");
    assert_eq!(fs::metadata(scene.path("one")).expect("there").nlink(), 2);
    assert_eq!(scene.take().n_files, 2);
}

#[test]
fn many_files_in_one_folder_and_in_many_folders_are_all_found() {
    let scene = Scene::new();
    for n in 0..1_000 {
        scene.write(format!("flat/{n}"), n.to_string());
        scene.write(format!("deep/{}/{}/{n}", n % 10, n % 7), n.to_string());
    }
    let snapshot = scene.take();
    let held: BTreeSet<String> = held(&scene.store(), snapshot.id)
        .into_iter()
        .map(|(path, _)| path.to_string())
        .collect();
    let there: BTreeSet<String> = scene
        .all()
        .into_keys()
        .map(|path| path.display().to_string())
        .collect();
    assert_eq!(held, there);
    assert_eq!((snapshot.n_files, scene.take().id), (2_000, snapshot.id));
}

#[test]
fn files_that_appear_and_disappear_meanwhile_break_nothing() {
    let scene = Scene::new();
    for n in 0..200 {
        scene.write(format!("stays/{n}"), "x");
    }
    scene.make("flips");
    let done = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                scene.write("flips/a/b/c", "x");
                scene.remove("flips/a");
                scene.link("/etc", "flips/a");
                scene.remove("flips/a");
                scene.write("flips/a", "y");
                scene.remove("flips/a");
            }
        });
        for _ in 0..30 {
            let snapshot = scene.take();
            let store = scene.store();
            let held = held(&store, snapshot.id);
            assert!(
                held.iter()
                    .filter(|(path, _)| path.as_bytes().starts_with(b"stays/"))
                    .count()
                    == 200
            );
            let within: Vec<_> = held
                .iter()
                .map(|(path, _)| path.to_string())
                .filter(|path| path.starts_with("flips/a/"))
                .collect();
            assert!(
                within
                    .iter()
                    .all(|path| path == "flips/a/b" || path == "flips/a/b/c"),
                "{within:?}"
            );
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
