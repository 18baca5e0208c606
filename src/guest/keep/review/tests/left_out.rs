//! Tests of changes that are never applied, or only on request.

use super::*;

#[test]
fn dangerous_changes_are_never_applied() {
    let held = ReviewScene::begin();
    held.write("setuid", "x");
    fs::set_permissions(held.copy.join("setuid"), fs::Permissions::from_mode(0o4755)).expect("set");
    symlink("/etc/passwd", held.copy.join("out")).expect("linked");
    symlink("../..", held.copy.join("src/up")).expect("linked");
    symlink("kept.txt", held.copy.join("in")).expect("linked");
    nix::unistd::mkfifo(&held.copy.join("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    held.write("sub/.git/hooks/post-checkout", "x");
    held.write(".GIT/config", "x");
    held.end();
    let done = held.apply(&[], false, true);
    let refused = left(&done.applied.refused).join("\n");
    for words in [
        "setuid would get a set-user-id",
        "out would be a link",
        "src/up would be a link",
        "pipe is not in the snapshot",
        ".GIT",
    ] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    assert_eq!(
        held.paths(),
        ["gone.txt", "in", "kept.txt", "src", "src/moved.txt", "sub"]
    );
}

#[test]
fn a_folder_is_not_emptied_for_a_file_that_is_not_written() {
    let scene = Scene::new();
    for path in [
        "cfg/one",
        "cfg/deep/two",
        "pipe/three",
        ".husky/four",
        "turned/five",
        "kept.txt",
    ] {
        scene.write(path, "x\n");
    }
    let copy = scene.folder().join("copy");
    duplicate(&scene.root(), &copy);
    let held = ReviewScene { scene, copy };
    begin(
        &held.scene.project(),
        None,
        &held.scene.state(),
        "r1",
        "turn them",
    )
    .expect("begun");
    for folder in ["cfg", "pipe", ".husky", "turned"] {
        fs::remove_dir_all(held.copy.join(folder)).expect("removed");
    }
    symlink("/etc/ssl", held.copy.join("cfg")).expect("linked");
    nix::unistd::mkfifo(&held.copy.join("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    symlink("kept.txt", held.copy.join(".husky")).expect("linked");
    held.write("turned", "x\n");
    let before = held.scene.all();
    held.end();
    let done = held.apply(&[], false, false);
    let is_of = |path: &Path, folder: &str| path.starts_with(folder);
    let others = |all: BTreeMap<PathBuf, String>| -> BTreeMap<PathBuf, String> {
        all.into_iter()
            .filter(|(path, _)| !is_of(path, "turned"))
            .collect()
    };
    assert_eq!(others(held.scene.all()), others(before));
    assert!(held.scene.path("turned").is_file());
    let refused = left(&done.applied.refused);
    for (path, folder) in [
        ("cfg/one", "cfg"),
        ("cfg/deep", "cfg"),
        ("cfg/deep/two", "cfg"),
        ("pipe/three", "pipe"),
        (".husky/four", ".husky"),
    ] {
        assert!(
            refused.contains(&format!("{path} is in {folder}, which is left as it is")),
            "{path}: {refused:?}"
        );
    }
    assert_eq!(
        (done.applied.changed.first, done.n_left),
        (vec!["turned".into(), "turned/five".into()], 7)
    );
    // Its replacement that may run is applied on request.
    held.apply(&[], false, true);
    assert!(
        held.scene.path(".husky").is_symlink()
            && held.scene.path("cfg/deep/two").exists()
            && held.scene.path("pipe/three").exists()
    );
}

#[test]
fn auto_run_files_are_applied_on_request_and_others_are_named() {
    let held = ReviewScene::begin();
    for path in [
        ".vscode/tasks.json",
        "deep/er/.github/workflows/ci.yml",
        "package.json",
        "deep/plain.txt",
        "deep/.claude/x.json",
        "tools/a.run",
    ] {
        held.write(path, "x\n");
    }
    symlink("src", held.copy.join(".husky")).expect("linked");
    let named = |may_run: &NamedList<MayRun>, when: RunTrigger| -> Vec<String> {
        may_run
            .first
            .iter()
            .filter(|file| file.when == when)
            .map(|file| file.path.to_string())
            .collect()
    };
    let pending = held.end();
    assert_eq!(
        named(&pending.may_run, RunTrigger::ByItself),
        [".husky", ".vscode/tasks.json", "deep/.claude/x.json"]
    );
    assert_eq!(
        named(&pending.may_run, RunTrigger::WhenYouRunIt),
        ["deep/er/.github/workflows/ci.yml", "package.json"]
    );
    let done = held.apply(&[], false, false);
    let refused = left(&done.applied.refused);
    // Folders of which everything is left are named as well.
    let (folders, files): (Vec<_>, Vec<_>) = refused
        .iter()
        .partition(|line| line.ends_with(&LeftReason::HoldsLeft.to_string()));
    assert_eq!(
        (files.len(), folders.len(), done.n_left),
        (4, 3, 4),
        "{refused:?}"
    );
    assert!(
        files
            .iter()
            .all(|line| line.contains("may run on your machine: ")),
        "{refused:?}"
    );
    assert_eq!(
        named(&done.may_run, RunTrigger::WhenYouRunIt),
        ["deep/er/.github/workflows/ci.yml", "package.json"]
    );
    assert_eq!(done.may_run.n, 2, "of what came");
    for (path, is_there) in [
        ("package.json", true),
        ("deep/er/.github/workflows/ci.yml", true),
        (".vscode", false),
        ("deep/.claude", false),
    ] {
        assert_eq!(held.scene.path(path).exists(), is_there, "{path}");
    }
    let done = held.apply(&[], false, true);
    assert_eq!((done.applied.refused.n, done.n_left), (0, 0));
    assert_eq!(
        named(&done.may_run, RunTrigger::ByItself),
        [
            ".husky",
            ".vscode/tasks.json",
            "deep/.claude/x.json",
            "tools/a.run"
        ]
    );
    assert!(held.scene.path(".vscode/tasks.json").exists());
}

#[test]
fn a_new_dependency_folder_is_applied_completely_or_not_at_all() {
    let held = ReviewScene::begin();
    for path in [
        "node_modules/.bin/x",
        "node_modules/x/index.js",
        "node_modules/x/.vscode/tasks.json",
        "node_modules/x/.envrc",
    ] {
        held.write(path, "x\n");
    }
    for path in [
        "env2/pyvenv.cfg",
        "env2/bin/black",
        "env2/lib/a.py",
        "env2/lib/a.pth",
    ] {
        held.write(path, "x\n");
    }
    for path in ["web/node_modules/y/index.js", "web/plain.txt"] {
        held.write(path, "x\n");
    }
    symlink("/etc/passwd", held.copy.join("web/node_modules/y/out")).expect("linked");
    held.end();
    let done = held.apply(&[], false, false);
    let refused = left(&done.applied.refused).join("\n");
    let here: Vec<String> = held
        .paths()
        .into_iter()
        .filter(|path| !path.contains('/') || path.starts_with("web"))
        .collect();
    assert_eq!(
        here,
        [
            "gone.txt",
            "kept.txt",
            "node_modules",
            "src",
            "web",
            "web/plain.txt"
        ],
        "{refused}"
    );
    assert!(
        held.scene
            .path("node_modules/x/.vscode/tasks.json")
            .exists()
            && held.scene.path("node_modules/x/.envrc").exists()
    );
    for line in [
        "env2 may run on your machine: python at its start obeys it by itself, with all of its contents",
        "web/node_modules is applied completely or not at all, and web/node_modules/y/out is not applied",
        "web/node_modules/y/out would be a link to /etc/passwd",
    ] {
        assert!(refused.contains(line), "{line}: {refused}");
    }
    assert_eq!(
        refused.matches("env2").count(),
        1,
        "it is reported once: {refused}"
    );
    assert_eq!(
        done.may_run
            .first
            .iter()
            .map(|file| file.path.to_string())
            .collect::<Vec<_>>(),
        ["node_modules"]
    );
    let done = held.apply(&[], false, true);
    assert!(
        held.scene.path("env2/lib/a.pth").exists() && !held.scene.path("web/node_modules").exists(),
        "{done:?}"
    );
    // In an existing folder each file is judged by itself.
    fs::remove_dir_all(held.copy.join("web/node_modules")).expect("removed");
    begin(
        &held.scene.project(),
        None,
        &held.scene.state(),
        "r1",
        "more",
    )
    .expect("begun");
    held.write("env2/lib/b.pth", "x\n");
    held.write("env2/lib/b.py", "x\n");
    held.end();
    held.apply(&[], false, false);
    assert!(
        held.scene.path("env2/lib/b.py").exists() && !held.scene.path("env2/lib/b.pth").exists()
    );
}

#[test]
fn the_old_name_of_a_rename_stays_if_the_new_one_is_left_out() {
    let scene = Scene::new();
    for (path, content) in [
        ("plan.txt", "all:\n"),
        ("sub/.env", "A=1\n"),
        ("sub/plain.txt", "plain\n"),
        ("tool", "run\n"),
        ("gone.txt", "gone\n"),
    ] {
        scene.write(path, content);
    }
    symlink("/usr/share", scene.path("share")).expect("linked");
    let copy = scene.folder().join("copy");
    duplicate(&scene.root(), &copy);
    let held = ReviewScene { scene, copy };
    begin(
        &held.scene.project(),
        None,
        &held.scene.state(),
        "r1",
        "move it",
    )
    .expect("begun");
    for (from, to) in [
        ("plan.txt", ".envrc"),
        ("sub", "sub2"),
        ("tool", "tool2"),
        ("share", "share2"),
    ] {
        fs::rename(held.copy.join(from), held.copy.join(to)).expect("moved");
    }
    fs::set_permissions(held.copy.join("tool2"), fs::Permissions::from_mode(0o4755)).expect("set");
    fs::remove_file(held.copy.join("gone.txt")).expect("removed");
    held.end();
    let done = held.apply(&[], false, false);
    let kept: Vec<String> = left(&done.applied.refused)
        .into_iter()
        .filter(|line| line.contains("was renamed to"))
        .collect();
    let line = |from: &str, to: &str| {
        format!("{from} was renamed to {to}, which is left out, so the old name stays")
    };
    assert_eq!(
        kept,
        [
            line("plan.txt", ".envrc"),
            line("share", "share2"),
            line("sub/.env", "sub2/.env"),
            line("tool", "tool2")
        ]
    );
    assert_eq!(
        held.paths(),
        [
            "plan.txt",
            "share",
            "sub",
            "sub/.env",
            "sub2",
            "sub2/plain.txt",
            "tool"
        ]
    );
    // With files that may run, both sides of such a rename are applied.
    held.apply(&[], false, true);
    assert_eq!(
        held.paths(),
        [
            ".envrc",
            "share",
            "sub2",
            "sub2/.env",
            "sub2/plain.txt",
            "tool"
        ]
    );
}

#[test]
fn a_link_that_leads_out_through_a_users_link_is_refused() {
    let scene = Scene::new();
    scene.write("file", "one\n");
    scene.write("in/kept", "x\n");
    scene.link("/", "ext");
    scene.link("../..", "in/up");
    scene.link("in", "inner");
    let copy = scene.folder().join("copy");
    duplicate(&scene.root(), &copy);
    let held = ReviewScene { scene, copy };
    begin(
        &held.scene.project(),
        None,
        &held.scene.state(),
        "r1",
        "link it",
    )
    .expect("begun");
    for (target, path) in [
        ("ext/etc", "l1"),
        ("ext", "l2"),
        ("up/secret", "in/l3"),
        ("in/up", "l4"),
        ("inner/kept", "l5"),
        ("absent/x", "l6"),
    ] {
        symlink(target, held.copy.join(path)).expect("linked");
    }
    held.end();
    let applied = held.apply(&[], false, true);
    let out: Vec<String> = applied
        .applied
        .refused
        .first
        .iter()
        .map(|left| left.path.to_string())
        .collect();
    assert_eq!(out, ["in/l3", "l1", "l2", "l4"]);
    assert!(
        applied
            .applied
            .refused
            .first
            .iter()
            .all(|left| matches!(left.reason, LeftReason::LeadsOut { .. })),
        "{applied:?}"
    );
    let paths = held.paths();
    assert!(
        paths.contains(&"l5".to_owned()) && paths.contains(&"l6".to_owned()),
        "{paths:?}"
    );
}
