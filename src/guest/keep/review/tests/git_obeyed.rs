//! Tests of session files that the user's git would obey.

use super::*;
use crate::keep::git::sample::run_git;

/// Writes a repository as plain files into a folder of the copy, with a config that starts a
/// program.
fn arm(held: &ReviewScene, folder: &str) {
    let script = held.scene.folder().join("script");
    fs::write(
        &script,
        format!(
            "#!/bin/sh\ntouch {}\n",
            held.scene.folder().join("PWN").display()
        ),
    )
    .expect("written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("set");
    held.write(&format!("{folder}/HEAD"), "ref: refs/heads/main\n");
    let settings = "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\nfsmonitor = ";
    held.write(
        &format!("{folder}/config"),
        &format!("{settings}{}\n", script.display()),
    );
    held.write(&format!("{folder}/objects/pack/keep"), "");
    held.write(&format!("{folder}/refs/heads/keep"), "");
}

/// Whether git starts that program when the user runs it in a folder of the project.
fn bites(held: &ReviewScene, folder: &str) -> bool {
    run_git(&held.scene.path(folder), &["status"]);
    fs::remove_file(held.scene.folder().join("PWN")).is_ok()
}

fn refused(done: &ReviewApplied) -> Vec<String> {
    left(&done.applied.refused)
        .into_iter()
        .filter(|line| line.contains("is in a git folder"))
        .collect()
}

#[test]
fn a_bare_repository_is_not_applied() {
    for folder in ["src", "new", "."] {
        let held = ReviewScene::begin();
        arm(&held, folder);
        held.end();
        let done = held.apply(&[], false, true);
        assert!(!bites(&held, folder), "{folder}");
        assert_eq!(refused(&done).len(), 7, "{done:?}");
        assert!(
            held.scene.path(folder).join("config").exists()
                && !held.scene.path(folder).join("HEAD").exists()
        );
    }
}

#[test]
fn a_bare_repository_is_not_applied_in_parts_or_through_links() {
    let held = ReviewScene::begin();
    arm(&held, "src");
    duplicate(&held.copy.join("src"), &held.scene.path("bites"));
    assert!(bites(&held, "bites"), "as git takes it");
    fs::remove_dir_all(held.scene.path("bites")).expect("removed");
    held.end();
    for (part, n_refused) in [
        ("src/objects", 0),
        ("src/config", 0),
        ("src/refs", 0),
        ("src/HEAD", 1),
    ] {
        assert_eq!(
            refused(&held.apply(&[part], false, true)).len(),
            n_refused,
            "{part}"
        );
    }
    assert!(!bites(&held, "src"));
    // The user's own files, which are not meant for git.
    let held = ReviewScene::begin();
    held.scene.write("objects/sprite", "x");
    held.scene.write("refs/book", "x");
    held.write("HEAD", "ref: refs/heads/main\n");
    held.end();
    assert_eq!(refused(&held.apply(&[], false, true)).len(), 1);
    let held = ReviewScene::begin();
    held.write("src/objects/x", "x");
    held.write("src/refs/x", "x");
    symlink("refs/x", held.copy.join("src/HEAD")).expect("linked");
    held.write("lure/commondir", "../src");
    held.write("lure/HEAD", "ref: refs/heads/main\n");
    held.end();
    let done = held.apply(&[], false, true);
    assert!(
        !held.scene.path("src/HEAD").is_symlink() && !held.scene.path("lure/HEAD").exists(),
        "{done:?}"
    );
}

#[test]
fn single_repository_parts_and_the_users_bare_repository_are_applied() {
    let held = ReviewScene::begin();
    for path in [
        "game/objects/sprite",
        "game/refs/book",
        "notes/HEAD",
        "game/objects/refs/HEAD",
    ] {
        held.write(path, "x");
    }
    for root in [
        held.scene.path("fixture.git"),
        held.copy.join("fixture.git"),
    ] {
        fs::create_dir(&root).expect("made");
        run_git(&root, &["init", "-q", "--bare", "."]);
    }
    begin(
        &held.scene.project(),
        None,
        &held.scene.state(),
        "r1",
        "more",
    )
    .expect("begun");
    held.write(
        "fixture.git/refs/heads/main",
        "0123456789012345678901234567890123456789\n",
    );
    held.write("fixture.git/objects/x", "x");
    held.end();
    let done = held.apply(&[], false, false);
    assert_eq!((left(&done.applied.refused), done.n_left), (Vec::new(), 0));
    assert!(
        held.scene.path("fixture.git/refs/heads/main").exists()
            && held.scene.path("notes/HEAD").exists()
    );
}

/// A project with these git settings, and a session that worked on a copy of it.
fn settled(
    settings: &[(&str, &str)],
    before: impl Fn(&Scene),
    work: impl Fn(&ReviewScene),
) -> (ReviewScene, Vec<String>) {
    let scene = Scene::new();
    scene.write("plain.txt", "plain\n");
    before(&scene);
    let copy = scene.folder().join("copy");
    let held = ReviewScene { scene, copy };
    run_git(&held.scene.root(), &["init", "-q"]);
    for (key, value) in settings {
        run_git(&held.scene.root(), &["config", key, value]);
    }
    duplicate(&held.scene.root(), &held.copy);
    begin(
        &held.scene.project(),
        None,
        &held.scene.state(),
        "r1",
        "work",
    )
    .expect("begun");
    work(&held);
    held.write("plain.txt", "changed\n");
    let named = held
        .end()
        .may_run
        .first
        .iter()
        .map(|file| file.path.to_string())
        .collect();
    let done = held.apply(&[], false, false);
    assert_eq!(
        fs::read_to_string(held.scene.path("plain.txt")).expect("there"),
        "changed\n",
        "{done:?}"
    );
    (held, named)
}

const HOOK: &str = "tools/hooks/pre-commit";

#[test]
fn files_run_by_the_users_hooks_are_applied_only_on_request() {
    let hook = |scene: &Scene| {
        scene.write(
            ".git/hooks/pre-commit",
            "#!/bin/sh\n. ./scripts/lib.sh\nexec ./scripts/check.sh\n",
        );
        scene.write("scripts/check.sh", "#!/bin/sh\n");
    };
    let work = |held: &ReviewScene| {
        for path in ["scripts/check.sh", "scripts/lib.sh", "scripts/other.sh"] {
            held.write(path, "echo changed\n");
        }
    };
    let (held, named) = settled(&[], hook, work);
    assert_eq!(named, ["scripts/check.sh", "scripts/lib.sh"]);
    let is_there = |path: &str| held.scene.path(path).exists();
    assert!(!is_there("scripts/lib.sh") && is_there("scripts/other.sh"));
    assert_eq!(
        fs::read_to_string(held.scene.path("scripts/check.sh")).expect("there"),
        "#!/bin/sh\n"
    );
    held.apply(&[], false, true);
    assert!(is_there("scripts/lib.sh"));
    // Without the hook nothing is left out.
    let (held, named) = settled(&[], |_| {}, work);
    assert_eq!(
        (named, held.scene.path("scripts/lib.sh").exists()),
        (Vec::new(), true)
    );
}

#[test]
fn missing_files_named_by_hooks_or_config_are_applied_only_on_request() {
    let hook = |scene: &Scene| {
        let hook = "[ -x tools/local ] && tools/local\nL=\"$(git rev-parse --show-toplevel)/tools/new\"; [ -f \"$L\" ] && . \"$L\"\n";
        scene.write(".git/hooks/pre-commit", hook);
        scene.write("tools/kept.txt", "x");
    };
    let work = |held: &ReviewScene| {
        for path in [
            "tools/local",
            "tools/new",
            "my-tools/show",
            "my-tools/lint",
            "tools/plain.txt",
        ] {
            held.write(path, "x\n");
        }
    };
    let settings = [
        ("diff.z.textconv", "\"my-tools/show\" -z"),
        ("alias.lint", "!my-tools/lint"),
    ];
    let (held, named) = settled(&settings, hook, work);
    assert_eq!(
        named,
        ["my-tools/lint", "my-tools/show", "tools/local", "tools/new"]
    );
    assert!(
        named.iter().all(|path| !held.scene.path(path).exists())
            && held.scene.path("tools/plain.txt").exists()
    );
}

#[test]
fn hooks_that_name_too_many_files_are_reported_with_the_review() {
    for (n_names, is_cut) in [(100, false), (500, true)] {
        let held = ReviewScene::begin();
        held.scene.write(".git/HEAD", "ref: refs/heads/main\n");
        let names: String = (0..n_names).map(|n| format!("./a{n}\n")).collect();
        held.scene.write(".git/hooks/pre-commit", &names);
        held.write("made.txt", "made\n");
        assert_eq!(held.end().is_may_run_cut, is_cut);
    }
}

#[test]
fn configured_hooks_are_applied_only_on_request_in_any_form() {
    let by = |held: &ReviewScene, hook: &str| held.write(hook, "#!/bin/sh\n");
    let none = |_: &Scene| {};
    let (held, named) = settled(&[("core.hooksPath", "./tools//hooks/")], none, |held| {
        by(held, HOOK);
    });
    assert_eq!(named, [HOOK], "where no such folder was");
    assert!(!held.scene.path("tools").exists());
    held.apply(&[], false, true);
    assert!(held.scene.path(HOOK).exists(), "the user has asked for it");
    // The folder above is moved away.
    let there = |scene: &Scene| scene.write(HOOK, "#!/bin/sh\n# theirs\n");
    let (held, named) = settled(&[("core.hooksPath", "src/../tools/hooks")], there, |held| {
        fs::rename(held.copy.join("tools"), held.copy.join("t2")).expect("moved");
        by(held, HOOK);
        by(held, "tools/hooks/post-commit");
    });
    assert_eq!(named, ["tools/hooks/post-commit", HOOK]);
    assert!(
        fs::read_to_string(held.scene.path(HOOK))
            .expect("there")
            .contains("theirs")
            && held.scene.path("t2").exists()
    );
    // A link replaces it, or an entry in it.
    for link in ["tools", "tools/hooks"] {
        let (held, named) = settled(&[("core.hooksPath", "tools/hooks")], none, |held| {
            by(held, "evil/hooks/pre-commit");
            fs::create_dir_all(held.copy.join(link).parent().expect("a folder")).expect("made");
            symlink(
                if link == "tools" {
                    "evil"
                } else {
                    "../evil/hooks"
                },
                held.copy.join(link),
            )
            .expect("linked");
        });
        assert_eq!(named, [link]);
        assert!(!held.scene.path(link).is_symlink());
    }
    // The user's own link leads there.
    let linked = |scene: &Scene| {
        scene.make("t2/hooks");
        scene.link("t2", "tools");
    };
    let (held, named) = settled(&[("core.hooksPath", "tools/hooks")], linked, |held| {
        by(held, "t2/hooks/pre-commit");
    });
    assert_eq!(named, ["t2/hooks/pre-commit"]);
    assert!(!held.scene.path("t2/hooks/pre-commit").exists());
}

/// A link, its target, the file that git obeys then, and the settings for that.
type Linked = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

#[test]
fn targets_of_repository_links_are_applied_only_on_request() {
    let cases: [Linked; 5] = [
        (
            ".git/hooks/pre-commit",
            "../../scripts/pc",
            "scripts/pc",
            &[],
        ),
        (".git/hooks", "../gh", "gh/pre-commit", &[]),
        (
            "hooks/pre-commit",
            "../scripts/pc",
            "scripts/pc",
            &[("core.hooksPath", "hooks")],
        ),
        (".git/config", "../gitcfg", "gitcfg", &[]),
        (".git/inc", "../x.inc", "x.inc", &[("include.path", "inc")]),
    ];
    for (link, target, file, settings) in cases {
        for is_there in [true, false] {
            let linked = |scene: &Scene| {
                scene.make(link.rsplit_once('/').expect("a folder").0);
                scene.make(if file.contains('/') {
                    file.split('/').next().expect("one")
                } else {
                    "other"
                });
                // Git makes its own config.
                if is_there || link == ".git/config" {
                    scene.write(file, "\n");
                }
                scene.link(target, link);
            };
            let (held, named) = settled(settings, linked, |held| {
                held.write(file, "[core]\nfsmonitor = x\n");
            });
            assert_eq!(named, [file], "{link}");
            assert!(
                !fs::read_to_string(held.scene.path(file))
                    .unwrap_or_default()
                    .contains("fsmonitor"),
                "{link}"
            );
            held.apply(&[], false, true);
            assert!(
                fs::read_to_string(held.scene.path(file))
                    .expect("there")
                    .contains("fsmonitor"),
                "{link}: the user has asked for it"
            );
        }
    }
}

#[test]
fn included_config_files_are_applied_only_on_request() {
    for key in ["include.path", "includeIf.gitdir:/.path"] {
        let (held, named) = settled(
            &[(key, "../conf/own")],
            |_| {},
            |held| held.write("conf/own", "[core]\nfsmonitor = x\n"),
        );
        assert_eq!(named, ["conf/own"]);
        assert!(!held.scene.path("conf/own").exists());
    }
    let (held, named) = settled(
        &[
            ("core.hooksPath", "tools/hooks"),
            ("include.path", "../conf/own"),
        ],
        |_| {},
        |held| {
            for path in [
                "tools/hooks.txt",
                "tools/x",
                "src/hooks/pre-commit",
                "conf/own.txt",
                "own",
            ] {
                held.write(path, "x\n");
            }
            symlink("src", held.copy.join("src2")).expect("linked");
        },
    );
    assert_eq!(named, [""; 0]);
    assert!(held.scene.path("src2/hooks/pre-commit").exists() && held.listed().is_empty());
}

#[test]
fn targets_of_the_users_auto_run_links_are_applied_only_on_request() {
    let linked = |scene: &Scene| {
        scene.write("mk/inc", "all:\n");
        scene.write("mk/other", "x\n");
        scene.link("mk/inc", ".envrc");
    };
    let (held, named) = settled(&[], linked, |held| {
        held.write("mk/inc", "all: evil\n");
        held.write("mk/other", "y\n");
    });
    assert_eq!(named, ["mk/inc"]);
    let read = |path: &str| fs::read_to_string(held.scene.path(path)).expect("there");
    assert_eq!(
        (read("mk/inc").as_str(), read("mk/other").as_str()),
        ("all:\n", "y\n")
    );
    held.apply(&[], false, true);
    assert_eq!(read(".envrc"), "all: evil\n");
}

#[test]
fn links_through_git_folders_are_refused() {
    let held = ReviewScene::begin();
    for (target, link) in [
        (".git/hooks", "l1"),
        ("new/.GIT/hooks", "l2"),
        ("../.git", "src/l3"),
        (".git/../src", "l4"),
    ] {
        symlink(target, held.copy.join(link)).expect("linked");
    }
    for (target, link) in [
        (".gitignore", "in1"),
        (".github", "in2"),
        ("src/git", "in3"),
    ] {
        symlink(target, held.copy.join(link)).expect("linked");
    }
    held.end();
    let done = held.apply(&[], false, true);
    assert_eq!(refused(&done).len(), 4, "{done:?}");
    assert!(
        ["in1", "in2", "in3"]
            .iter()
            .all(|link| held.scene.path(link).is_symlink())
    );
}
