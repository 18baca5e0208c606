//! Tests of single replacements, and of changes by other programs meanwhile.

use super::*;

#[test]
fn other_hard_links_of_a_replaced_file_keep_their_content() {
    let scene = Scene::new();
    scene.write("one", "1");
    let outside = scene.folder().join("outside");
    fs::hard_link(scene.path("one"), &outside).expect("linked");
    let (before, after) = change(&scene, || scene.write("one", "2"));
    scene.apply(after, before);
    assert_eq!(fs::read(scene.path("one")).expect("there"), b"1");
    assert_eq!(fs::read(outside).expect("there"), b"2");
}

#[test]
fn long_runs_of_zeros_are_written_as_holes() {
    let scene = Scene::new();
    fs::File::create(scene.path("sparse"))
        .expect("made")
        .set_len(20 << 20)
        .expect("grows");
    let (before, after) = change(&scene, || scene.remove("sparse"));
    scene.apply(after, before);
    let metadata = fs::metadata(scene.path("sparse")).expect("there");
    assert_eq!(metadata.len(), 20 << 20);
    assert!(
        metadata.blocks() * 512 < 1 << 20,
        "{} blocks",
        metadata.blocks()
    );
}

#[test]
fn folders_replaced_by_links_meanwhile_are_never_followed() {
    let scene = Scene::new();
    let outside = scene.folder().join("outside");
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("file"), "outside").expect("written");
    let done = AtomicBool::new(false);
    for n in 0..20 {
        scene.write(format!("flips/{n}"), "1");
        scene.write(format!("folder{n}/file"), "1");
    }
    let (before, after) = change(&scene, || {
        for n in 0..20 {
            scene.write(format!("flips/{n}"), "2");
            scene.write(format!("folder{n}/file"), "2");
        }
    });
    thread::scope(|scope| {
        scope.spawn(|| {
            let aside = scene.path("aside");
            let mut n = 0;
            while !done.load(Ordering::Relaxed) {
                n = (n + 1) % 20;
                let folder = scene.path(format!("folder{n}"));
                let _ = fs::rename(&folder, &aside);
                let _ = std::os::unix::fs::symlink(&outside, &folder);
                let _ = fs::remove_file(&folder);
                let _ = fs::rename(&aside, &folder);
                let file = scene.path(format!("flips/{n}"));
                let kept = scene.path("kept");
                let _ = fs::rename(&file, &kept);
                let _ = std::os::unix::fs::symlink(outside.join("file"), &file);
                let _ = fs::remove_file(&file);
                let _ = fs::rename(&kept, &file);
            }
        });
        for n in 0..40 {
            let (from, to) = if n % 2 == 0 {
                (after, before)
            } else {
                (before, after)
            };
            scene.apply(from, to);
            assert_eq!(fs::read_dir(&outside).expect("there").count(), 1);
            assert_eq!(fs::read(outside.join("file")).expect("there"), b"outside");
        }
        done.store(true, Ordering::Relaxed);
    });
    // Whatever the outcome, no file is half written, and each is as in one of the two states.
    for (path, told) in scene.all() {
        assert!(
            told == "file 644 \"1\"" || told == "file 644 \"2\"" || told.starts_with("folder"),
            "{path:?}: {told}"
        );
    }
}

#[test]
fn a_file_saved_during_its_replacement_is_moved_back() {
    let scene = Scene::new();
    scene.write("file", "1");
    let folder = scene.project().list(b"").expect("opens");
    let look = nix::sys::stat::lstat(&scene.path("file")).expect("there");
    // Another program saves between look and change.
    scene.write("other", "mine");
    fs::rename(scene.path("other"), scene.path("file")).expect("renamed");
    let spot = SwapTarget::new(folder.as_fd(), b"file", "token", 0);
    let content = NewContent::File {
        content: b"2".to_vec(),
        mode: 0o644,
        is_flushed: true,
    };
    assert_eq!(spot.put(&content, Some(&look)), Ok(SwapOutcome::Changed));
    assert_eq!(spot.put(&content, None), Ok(SwapOutcome::Changed));
    assert_eq!(spot.remove(&look), Ok(SwapOutcome::Changed));
    assert_eq!(spot.set_mode(0o700, &look), Ok(SwapOutcome::Changed));
    assert_eq!(
        scene.all(),
        BTreeMap::from([("file".into(), "file 644 \"mine\"".to_owned())])
    );
    // Killed in between, it is moved back when it is settled.
    let [from, to] = [b"1", b"2"].map(|content| Node::File {
        mode: 0o644,
        n_bytes: 1,
        object: crate::keep::ObjectId::of(content),
    });
    scene.write(".podbay-token-0.new", "mine");
    scene.write("file", "2");
    assert_eq!(
        spot.settle(is(Some(&from)), is(Some(&to))),
        Ok(SwapOutcome::Changed)
    );
    assert_eq!(
        scene.all(),
        BTreeMap::from([("file".into(), "file 644 \"mine\"".to_owned())])
    );
    fs::rename(scene.path("file"), scene.path(".podbay-token-0.old")).expect("renamed");
    assert_eq!(
        spot.settle(is(Some(&from)), is(None)),
        Ok(SwapOutcome::Changed)
    );
    assert_eq!(
        scene.all(),
        BTreeMap::from([("file".into(), "file 644 \"mine\"".to_owned())])
    );
    // An entry that cannot be moved back is kept and named.
    scene.write(".podbay-token-0.old", "older");
    assert_eq!(
        spot.settle(is(Some(&from)), is(None)),
        Ok(SwapOutcome::KeptAs(".podbay-token-0.old".to_owned()))
    );
    assert_eq!(
        fs::read(scene.path(".podbay-token-0.old")).expect("there"),
        b"older"
    );
}

#[test]
fn without_rename_flags_only_an_expected_file_is_replaced() {
    let scene = Scene::new();
    let project = scene.project();
    let folder = project.folder(b"").expect("opens");
    let spot = SwapTarget::new(folder.as_fd(), b"file", "token", 0);
    IS_WITHOUT_FLAGS.set(true);
    let content = |text: &str| NewContent::File {
        content: text.as_bytes().to_vec(),
        mode: 0o644,
        is_flushed: true,
    };
    let look = || fstatat(&folder, "file", AtFlags::AT_SYMLINK_NOFOLLOW).expect("there");
    let there = || scene.all().into_values().collect::<Vec<_>>();
    assert_eq!(
        (spot.put(&content("1"), None), there()),
        (Ok(SwapOutcome::Done), vec!["file 644 \"1\"".to_owned()])
    );
    assert_eq!(
        (spot.put(&content("2"), None), there()),
        (Ok(SwapOutcome::Changed), vec!["file 644 \"1\"".to_owned()])
    );
    let first = look();
    assert_eq!(
        (spot.put(&content("22"), Some(&first)), there()),
        (Ok(SwapOutcome::Done), vec!["file 644 \"22\"".to_owned()])
    );
    assert_eq!(
        (spot.put(&content("3"), Some(&first)), there()),
        (Ok(SwapOutcome::Changed), vec!["file 644 \"22\"".to_owned()])
    );
    assert_eq!(
        (spot.remove(&first), there()),
        (Ok(SwapOutcome::Changed), vec!["file 644 \"22\"".to_owned()])
    );
    assert_eq!(
        (spot.remove(&look()), there()),
        (Ok(SwapOutcome::Done), Vec::new())
    );
    IS_WITHOUT_FLAGS.set(false);
}

/// Whether the entry is the expected one.
fn is(expected: Option<&Node>) -> impl Fn(&FoundEntry) -> bool {
    move |found| found.node().as_ref() == expected
}
