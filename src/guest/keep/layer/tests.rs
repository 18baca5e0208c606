use std::fs;

use super::testing::Laid;
use super::*;
use crate::keep::compare::compare;
use crate::keep::snapshot::take_layer;
use crate::keep::testing::Scene;

impl Laid {
    /// What the session changed against `base`, a line each.
    fn changed(&self, base: ObjectId) -> Vec<String> {
        let (project, copy, upper) = (self.scene.project(), self.open("copy"), self.open("upper"));
        let mut store = self.scene.store();
        let layer = Layer::new(&project, &copy, &upper, base);
        let after = take_layer(&layer, &self.scene.state(), &mut store, "cache-layer").expect("taken").id;
        let changes = compare(&store, &base, &after).expect("compared");
        let kind = |change: &crate::keep::Change| match (&change.before, &change.after) {
            (None, _) => '+',
            (_, None) => '-',
            _ => '~',
        };
        changes.iter().map(|change| format!("{}{}", kind(change), change.path)).collect()
    }
}

fn scene() -> Scene {
    let scene = Scene::new();
    for path in ["top.txt", "src/a.rs", "src/deep/b.rs", "lib/a.rs", "lib/deep/b.rs", "docs/one.md", "docs/two.md", "gone/by/all.txt"] {
        scene.write(path, format!("{path}\n"));
    }
    scene
}

#[test]
fn what_a_session_changed_is_found_and_what_the_person_did_is_not_taken_for_it() {
    let scene = scene();
    let base = scene.take().id;
    let Some(laid) = Laid::over(scene) else { return };
    assert_eq!(laid.changed(base), Vec::<String>::new());
    // Seen before the person changes it, and not seen.
    for path in ["docs/two.md", "gone/by/all.txt"] {
        fs::read(laid.copy(path)).expect("read");
    }
    fs::write(laid.copy("src/a.rs"), "changed\n").expect("written");
    fs::write(laid.copy("src/new.rs"), "new\n").expect("written");
    fs::remove_file(laid.copy("docs/one.md")).expect("removed");
    laid.scene.write("lib/a.rs", "the person's\n");
    laid.scene.write("lib/made.rs", "the person's\n");
    laid.scene.write("src/deep/made.rs", "the person's\n");
    laid.scene.write("docs/beside.md", "the person's\n");
    laid.scene.remove("docs/two.md");
    laid.scene.remove("gone");
    let expected = ["-docs/one.md", "~src/a.rs", "+src/new.rs"];
    assert_eq!(laid.changed(base), expected);
}

#[test]
fn folders_that_came_in_the_place_of_others_are_told_by_what_is_in_them() {
    let scene = scene();
    scene.write("same/x/y.txt", "1");
    scene.write("other/x/y.txt", "2");
    let base = scene.take().id;
    let Some(laid) = Laid::over(scene) else { return };
    // Emptied and made anew: it hides what lies below.
    fs::remove_dir_all(laid.copy("docs")).expect("removed");
    fs::create_dir(laid.copy("docs")).expect("made");
    fs::write(laid.copy("docs/three.md"), "3").expect("written");
    // Renamed in one step, to a new name and to that of another.
    fs::rename(laid.copy("src"), laid.copy("code")).expect("renamed");
    fs::rename(laid.copy("same"), laid.copy("kept")).expect("renamed");
    fs::rename(laid.copy("other"), laid.copy("same")).expect("renamed");
    let expected = [
        "+code",
        "+code/a.rs",
        "+code/deep",
        "+code/deep/b.rs",
        "-docs/one.md",
        "+docs/three.md",
        "-docs/two.md",
        "+kept",
        "+kept/x",
        "+kept/x/y.txt",
        "-other",
        "-other/x",
        "-other/x/y.txt",
        "~same/x/y.txt",
        "-src",
        "-src/a.rs",
        "-src/deep",
        "-src/deep/b.rs",
    ];
    assert_eq!(laid.changed(base), expected);
}

#[test]
fn a_renamed_folder_stays_whole_when_what_it_was_is_gone() {
    for copies in [true, false] {
        let scene = scene();
        scene.make("src/empty/deep");
        scene.link("a.rs", "src/deep/link");
        let base = scene.take().id;
        let Some(laid) = Laid::over(scene) else { return };
        fs::rename(laid.copy("src"), laid.copy("code")).expect("renamed");
        let (project, copy, upper) = (laid.scene.project(), laid.open("copy"), laid.open("upper"));
        let mut store = laid.scene.store();
        let layer = Layer::new(&project, &copy, &upper, base);
        take_layer(&layer, &laid.scene.state(), &mut store, "cache-layer").expect("taken");
        if copies {
            layer.copy_moved().expect("copied");
        }
        laid.scene.remove("src");
        // What the kernel remembers of the folders goes.
        fs::write("/proc/sys/vm/drop_caches", "2").expect("as root");
        let is_whole = ["code/a.rs", "code/deep/b.rs"].iter().all(|path| fs::read(laid.copy(path)).is_ok())
            && fs::read_link(laid.copy("code/deep/link")).is_ok()
            && laid.copy("code/empty/deep").is_dir();
        assert_eq!(is_whole, copies);
    }
}

#[test]
fn a_look_at_a_copy_reads_no_more_than_what_was_changed() {
    let scene = scene();
    for n in 0..200 {
        scene.write(format!("many/{n}.txt"), format!("{n}"));
    }
    let base = scene.take().id;
    let Some(laid) = Laid::over(scene) else { return };
    fs::write(laid.copy("many/7.txt"), "changed").expect("written");
    let (project, copy, upper) = (laid.scene.project(), laid.open("copy"), laid.open("upper"));
    let mut store = laid.scene.store();
    let layer = Layer::new(&project, &copy, &upper, base);
    let snapshot = take_layer(&layer, &laid.scene.state(), &mut store, "cache-layer").expect("taken");
    assert_eq!(snapshot.n_bytes_read, "changed".len() as u64);
}
