use std::fs;

use super::testing::OverlayScene;
use super::*;
use crate::keep::compare::compare;
use crate::keep::testing::Scene;

impl OverlayScene {
    /// Returns the session's changes against `base`, one line each.
    fn changed(&self, base: ObjectId) -> Vec<String> {
        let (project, copy, upper) = (self.scene.project(), self.open("copy"), self.open("upper"));
        let mut store = self.scene.store();
        let layer = Overlay::new(&project, &copy, &upper, base);
        let after = snapshot(&layer, &self.scene.state(), &mut store, "cache-layer")
            .expect("taken")
            .id;
        let changes = compare(&store, &base, &after).expect("compared");
        let kind = |change: &crate::keep::Change| match (&change.before, &change.after) {
            (None, _) => '+',
            (_, None) => '-',
            _ => '~',
        };
        changes
            .iter()
            .map(|change| format!("{}{}", kind(change), change.path))
            .collect()
    }
}

fn scene() -> Scene {
    let scene = Scene::new();
    for path in [
        "top.txt",
        "src/a.rs",
        "src/deep/b.rs",
        "lib/a.rs",
        "lib/deep/b.rs",
        "docs/one.md",
        "docs/two.md",
        "gone/by/all.txt",
    ] {
        scene.write(path, format!("{path}\n"));
    }
    scene
}

#[test]
fn only_the_sessions_changes_are_found_not_the_users() {
    let scene = scene();
    let base = scene.take().id;
    let Some(laid) = OverlayScene::over(scene) else {
        return;
    };
    assert_eq!(laid.changed(base), Vec::<String>::new());
    // Read before the user changes it, and not read.
    for path in ["docs/two.md", "gone/by/all.txt"] {
        fs::read(laid.copy(path)).expect("read");
    }
    fs::write(laid.copy("src/a.rs"), "changed\n").expect("written");
    fs::write(laid.copy("src/new.rs"), "new\n").expect("written");
    fs::remove_file(laid.copy("docs/one.md")).expect("removed");
    laid.scene.write("lib/a.rs", "the user's\n");
    laid.scene.write("lib/made.rs", "the user's\n");
    laid.scene.write("src/deep/made.rs", "the user's\n");
    laid.scene.write("docs/beside.md", "the user's\n");
    laid.scene.remove("docs/two.md");
    laid.scene.remove("gone");
    let expected = ["-docs/one.md", "~src/a.rs", "+src/new.rs"];
    assert_eq!(laid.changed(base), expected);
}

#[test]
fn recreated_folders_hide_the_lower_ones() {
    let scene = scene();
    scene.write("dist/assets/stale.js", "stale");
    scene.write("dist/index.html", "old");
    let base = scene.take().id;
    let Some(laid) = OverlayScene::over(scene) else {
        return;
    };
    // Emptied and made anew: it hides the lower one, and so does a folder in it.
    for folder in ["docs", "dist"] {
        fs::remove_dir_all(laid.copy(folder)).expect("removed");
        fs::create_dir(laid.copy(folder)).expect("made");
    }
    fs::create_dir(laid.copy("dist/assets")).expect("made");
    fs::write(laid.copy("dist/index.html"), "new").expect("written");
    fs::write(laid.copy("docs/three.md"), "3").expect("written");
    // The kernel refuses to rename a folder of the lower layer (EXDEV).
    let refused = fs::rename(laid.copy("src"), laid.copy("code")).expect_err("refused");
    assert_eq!(refused.raw_os_error(), Some(nix::libc::EXDEV));
    let expected = [
        "-dist/assets/stale.js",
        "~dist/index.html",
        "-docs/one.md",
        "+docs/three.md",
        "-docs/two.md",
    ];
    assert_eq!(laid.changed(base), expected);
}

#[test]
fn files_cached_by_the_kernel_are_not_counted_as_the_sessions() {
    let scene = scene();
    let base = scene.take().id;
    let Some(laid) = OverlayScene::over(scene) else {
        return;
    };
    let replace = |path: &str, content: &str| {
        fs::write(laid.scene.path("beside"), content).expect("written");
        fs::rename(laid.scene.path("beside"), laid.scene.path(path)).expect("replaced");
    };
    // Changed, read there, and changed back.
    for path in ["lib/a.rs", "docs/one.md"] {
        replace(path, "other\n");
        fs::read(laid.copy(path)).expect("read");
        replace(path, &format!("{path}\n"));
    }
    fs::write(laid.copy("docs/own.md"), "own").expect("written");
    assert_eq!(laid.changed(base), ["+docs/own.md"]);
}

#[test]
fn examining_an_overlay_reads_only_changed_files() {
    let scene = scene();
    for n in 0..200 {
        scene.write(format!("many/{n}.txt"), format!("{n}"));
    }
    let base = scene.take().id;
    let Some(laid) = OverlayScene::over(scene) else {
        return;
    };
    fs::write(laid.copy("many/7.txt"), "changed").expect("written");
    let (project, copy, upper) = (laid.scene.project(), laid.open("copy"), laid.open("upper"));
    let mut store = laid.scene.store();
    let layer = Overlay::new(&project, &copy, &upper, base);
    let snapshot = snapshot(&layer, &laid.scene.state(), &mut store, "cache-layer").expect("taken");
    assert_eq!(snapshot.n_bytes_read, "changed".len() as u64);
}

/// Unmounts at the end of a test.
struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = nix::mount::umount2(&self.0, nix::mount::MntFlags::MNT_DETACH);
    }
}

/// Another file system, and another folder of the same one, which has the project's device.
#[test]
fn changes_in_a_mount_are_no_changes_of_the_project() {
    let scene = scene();
    let elsewhere = scene.folder().join("elsewhere");
    fs::create_dir(&elsewhere).expect("made");
    fs::write(elsewhere.join("file"), "theirs\n").expect("written");
    scene.write("data/file", "under the mount\n");
    for folder in ["cache", "data"] {
        scene.make(folder);
    }
    let none: Option<&str> = None;
    let mount = |source: Option<&std::path::Path>, at: &str, kind: Option<&str>, flags| {
        let at = scene.path(at);
        nix::mount::mount(source, &at, kind, flags, none).map(|()| Mounted(at))
    };
    let mounted = [
        mount(None, "cache", Some("tmpfs"), nix::mount::MsFlags::empty()),
        mount(Some(&elsewhere), "data", None, nix::mount::MsFlags::MS_BIND),
    ];
    if mounted.iter().any(Result::is_err) {
        // The sandbox has no rights to mount either; `OverlayScene` prints that nothing was tested.
        assert!(OverlayScene::over(scene).is_none());
        return;
    }
    let base = scene.take().id;
    scene.write("cache/made", "x\n");
    scene.write("data/file", "changed\n");
    scene.write("src/a.rs", "changed\n");
    let after = scene.take().id;
    let changes = compare(&scene.store(), &base, &after).expect("compared");
    assert_eq!(
        changes
            .iter()
            .map(|change| change.path.to_string())
            .collect::<Vec<_>>(),
        ["src/a.rs"]
    );
    let laid = OverlayScene::over(scene).expect("what can be mounted once can be twice");
    for path in ["cache/made", "data/file", "data/new"] {
        fs::write(laid.copy(path), "the session's\n").expect("written");
    }
    fs::write(laid.copy("top.txt"), "the session's\n").expect("written");
    assert_eq!(laid.changed(after), ["~top.txt"]);
}
