use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;

use super::*;
use podbay_wire::keep::KnownProtected;

/// A project and a session's copy of it, a full copy here.
struct CopyScene {
    folder: tempfile::TempDir,
}

impl CopyScene {
    fn new() -> Self {
        let scene = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
        };
        for side in ["project", "copy"] {
            for (path, content) in [
                (".gitignore", "target/\n"),
                ("sub/.env", "sesame 1"),
                ("sub/.ssh/id_rsa", "sesame 2"),
                ("sub/code.rs", "fn main() {}"),
                ("conf/plain.txt", "sesame 3"),
                ("docs/plain.txt", "for everybody"),
                ("vendor/.git/config", "sesame 4"),
            ] {
                scene.write(&format!("{side}/{path}"), content);
            }
            symlink("conf/plain.txt", scene.path(&format!("{side}/.env.local"))).expect("linked");
        }
        scene.write("upper/changed", "");
        scene
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, content: &str) {
        fs::create_dir_all(self.path(path).parent().expect("a parent")).expect("made");
        fs::write(self.path(path), content).expect("written");
    }

    fn mv(&self, from: &str, to: &str) {
        let to = self.path(&format!("copy/{to}"));
        fs::create_dir_all(to.parent().expect("a parent")).expect("made");
        fs::rename(self.path(&format!("copy/{from}")), to).expect("renamed");
    }

    fn look(&self, known: &[&str], reveal: &[&str], within: Duration) -> FindResult {
        let hidden = known
            .iter()
            .map(|path| BytesPath::from_bytes(*path))
            .collect();
        let reveal = reveal.iter().map(|&line| line.to_owned()).collect();
        let order = FindOrder {
            budget_ms: 10_000,
            known: KnownProtected {
                hidden,
                read_only: Vec::new(),
            },
            reveal,
            ..FindOrder::default()
        };
        find_within(
            &self.path("project"),
            &self.path("copy"),
            &self.path("upper"),
            &order,
            within,
        )
        .expect("looked through")
    }

    #[track_caller]
    fn check(&self, expected: &[&str]) {
        let found = self.look(&[], &[], LONGEST);
        let hidden: Vec<String> = found
            .secrets
            .iter()
            .map(|secret| secret.path.to_text())
            .collect();
        assert_eq!(
            (hidden, found.lost),
            (
                expected.iter().map(|&path| path.to_owned()).collect(),
                Vec::new()
            )
        );
    }
}

#[test]
fn moved_secrets_are_found_in_ignored_and_git_folders() {
    let scene = CopyScene::new();
    scene.check(&[
        "conf/plain.txt",
        "sub/.env",
        "sub/.ssh",
        "vendor/.git/config",
    ]);
    scene.mv("sub", "target/a/b/sub2");
    scene.check(&[
        "conf/plain.txt",
        "target/a/b/sub2/.env",
        "target/a/b/sub2/.ssh",
        "vendor/.git/config",
    ]);
    // No link leads to it any more, and the readable file of that name stays as it is.
    scene.mv("conf", "conf2");
    scene.mv("vendor", "target/a/b/vendor");
    scene.check(&[
        "conf2/plain.txt",
        "target/a/b/sub2/.env",
        "target/a/b/sub2/.ssh",
        "target/a/b/vendor/.git/config",
    ]);
    // Moved once more, to where no project file is.
    scene.mv("target/a/b", "x/.git/y");
    scene.mv("conf2", "vendor/.git/conf");
    scene.check(&[
        "vendor/.git/conf/plain.txt",
        "x/.git/y/sub2/.env",
        "x/.git/y/sub2/.ssh",
        "x/.git/y/vendor/.git/config",
    ]);
}

#[test]
fn a_replacement_of_a_moved_secret_does_not_end_the_search() {
    let scene = CopyScene::new();
    scene.mv("sub", "target/a/sub2");
    scene.write("copy/sub/.env", "sesame?");
    scene.write("copy/sub/.ssh/id_rsa", "");
    let hidden = [
        "conf/plain.txt",
        "sub/.env",
        "sub/.ssh",
        "target/a/sub2/.env",
        "target/a/sub2/.ssh",
        "vendor/.git/config",
    ];
    scene.check(&hidden);
}

#[test]
fn a_folder_without_secrets_may_be_moved_anywhere() {
    let scene = CopyScene::new();
    scene.mv("docs", "target/a/docs");
    scene.write("copy/target/a/.env.d/config", "");
    scene.check(&[
        "conf/plain.txt",
        "sub/.env",
        "sub/.ssh",
        "vendor/.git/config",
    ]);
}

#[test]
fn a_hidden_file_is_found_again_though_the_project_lost_it() {
    let scene = CopyScene::new();
    scene.mv("conf", "target/a/conf");
    fs::remove_file(scene.path("project/.env.local")).expect("removed");
    fs::remove_dir_all(scene.path("project/conf")).expect("removed");
    let found = scene.look(&["conf/plain.txt"], &[], LONGEST);
    assert!(
        found.is_hidden(&"target/a/conf/plain.txt".into()) && found.lost.is_empty(),
        "{found:?}"
    );
}

#[test]
fn a_secret_moved_below_a_revealed_pattern_stays_hidden() {
    let scene = CopyScene::new();
    scene.write("project/fixtures/.env", "A=1");
    scene.write("copy/fixtures/.env", "A=1");
    scene.mv("sub", "fixtures/sub");
    let found = scene.look(&[], &["fixtures/**"], LONGEST);
    assert!(
        found.is_hidden(&"fixtures/sub/.env".into()) && !found.is_hidden(&"fixtures/.env".into()),
        "{found:?}"
    );
}

#[test]
fn secrets_that_cannot_be_found_or_masked_for_certain_are_lost() {
    let lost = |scene: &CopyScene, within| {
        scene
            .look(&[], &[], within)
            .lost
            .iter()
            .map(BytesPath::to_text)
            .collect::<Vec<_>>()
    };
    let scene = CopyScene::new();
    assert_eq!(
        lost(&scene, Duration::ZERO),
        Vec::<String>::new(),
        "nothing was moved"
    );
    scene.mv("conf", "target/a/conf");
    assert_eq!(lost(&scene, Duration::ZERO), ["conf/plain.txt"]);
    // A name that no engine accepts.
    let bad = std::ffi::OsStr::new("copy").to_owned();
    let bad = [bad.as_encoded_bytes(), b"/target/\xff"].concat();
    let bad = scene.folder.path().join(crate::root::as_path(&bad));
    fs::rename(scene.path("copy/target/a"), &bad).expect("renamed");
    assert_eq!(lost(&scene, LONGEST), ["conf/plain.txt"]);
    fs::rename(&bad, scene.path("copy/target/a")).expect("renamed");
    // More of that name than can be masked.
    for number in 0..MOST_HIDDEN {
        scene.write(&format!("copy/made/{number}/plain.txt"), "decoy");
    }
    assert_eq!(lost(&scene, LONGEST), ["conf/plain.txt"]);
    fs::remove_dir_all(scene.path("copy/made")).expect("removed");
    assert_eq!(lost(&scene, LONGEST), Vec::<String>::new());
    // A folder that its owner closed and can open again. Root can read it anyway.
    if !geteuid().is_root() {
        let closed = scene.path("copy/target/a");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("set");
        assert_eq!(lost(&scene, LONGEST), ["conf/plain.txt"]);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).expect("set");
    }
}

#[test]
fn an_unchanged_copy_is_searched_only_once() {
    let scene = CopyScene::new();
    fs::remove_file(scene.path("upper/changed")).expect("removed");
    let found = scene.look(&["long/gone/.env"], &[], Duration::ZERO);
    assert!(
        found.lost.is_empty() && found.secrets.len() == 4,
        "{found:?}"
    );
}
