//! What a session whose changes are pending leaves for the user's git to obey, and a moment of
//! the user's git after it was applied.

use super::git::git;
use super::git::give_all;
use super::git::repository;
use super::git::try_git;
use super::review::held_back;
use super::review::review;
use super::test_box::TestBox;

/// The plain files of a repository whose settings have git start a program.
fn bare(env: &TestBox, folder: &str) -> String {
    let settings = "[core]\\nrepositoryformatversion = 0\\nbare = false\\nworktree = .\\nfsmonitor = \\\"touch PWN; :\\\"\\n";
    let settings = settings.replace("PWN", &env.beside("pwn").display().to_string());
    format!(
        "mkdir -p {folder}/objects/pack {folder}/refs/heads; echo 'ref: refs/heads/main' > {folder}/HEAD; \
         printf \"{settings}\" > {folder}/config; touch {folder}/objects/pack/keep {folder}/refs/heads/keep"
    )
}

/// Whether the user's git has started it, asked for what changed there.
fn bites(env: &TestBox, folder: &str) -> bool {
    let _ = try_git(env, folder, &["status"]);
    std::fs::remove_file(env.beside("pwn")).is_ok()
}

#[test]
fn no_repository_without_a_name_comes_with_a_review_nor_unasked_with_its_commits() {
    let Some(env) = repository() else { return };
    env.write("control.sh", bare(&env, "control"));
    let made = std::process::Command::new("sh")
        .arg("control.sh")
        .current_dir(env.project())
        .status()
        .expect("sh");
    assert!(made.success() && bites(&env, "control"), "it bites");
    for name in ["control", "control.sh"] {
        let path = env.path(name);
        if path.is_dir() {
            std::fs::remove_dir_all(path)
        } else {
            std::fs::remove_file(path)
        }
        .expect("removed");
    }
    env.write("src/x.txt", "x\n");
    give_all(&env.project());
    held_back(
        &env,
        &format!(
            "{}; {}; echo fine > src/fine.txt",
            bare(&env, "src"),
            bare(&env, "new/deep")
        ),
        &[],
    );
    let done = review(&env, &["apply", "--accept-auto-run"])
        .expect(9)
        .text();
    for path in ["src/HEAD", "src/objects", "src/refs", "new/deep/HEAD"] {
        assert!(
            done.contains(&format!("{path} is in a git folder")),
            "{path}: {done}"
        );
    }
    assert_eq!(env.read("src/fine.txt"), "fine\n");
    assert!(!bites(&env, "src") && !bites(&env, "new/deep") && !bites(&env, ""));
    review(&env, &["discard"]).expect(0);
    // On a branch that is not checked out.
    let commit =
        "git checkout -q -b side; {}; git add deep; git commit -q -m side; git checkout -q main";
    held_back(&env, &commit.replace("{}", &bare(&env, "deep")), &[]);
    let done = review(&env, &["apply"]).expect(9).text();
    assert!(
        done.contains("deep/HEAD may run on your machine") && done.contains("pending commits"),
        "{done}"
    );
    assert_eq!(
        git(&env, &["branch", "--format=%(refname:short)"]),
        "main\n"
    );
    review(&env, &["discard"]).expect(0);
    env.assert_no_container();
}

#[test]
fn hooks_in_a_folder_that_settings_name_come_with_a_review_only_when_asked_for() {
    let Some(env) = repository() else { return };
    // With a name of its own, as the settings may have it too, and where nothing is yet.
    git(
        &env,
        &[
            "config",
            "core.hooksPath",
            &env.path("tools/hooks").display().to_string(),
        ],
    );
    git(
        &env,
        &["config", "includeIf.onbranch:main.path", "../conf/own"],
    );
    env.write("mk/inc", "all:\n");
    std::os::unix::fs::symlink("mk/inc", env.path(".envrc")).expect("linked");
    give_all(&env.project());
    let pwn = env.beside("pwn").display().to_string();
    let hook = |folder: &str| {
        format!(
            "mkdir -p {folder} && printf '#!/bin/sh\\ntouch {pwn}\\n' > {folder}/pre-commit && chmod +x {folder}/pre-commit"
        )
    };
    let others = format!(
        "mkdir conf; printf '[core]\\nfsmonitor = \"touch {pwn}; :\"\\n' > conf/own; echo 'all: evil' > mk/inc; echo b > b.txt"
    );
    let result = held_back(&env, &format!("{}; {others}", hook("tools/hooks")), &[]);
    for path in ["tools/hooks/pre-commit", "conf/own", "mk/inc"] {
        assert!(
            result["may_run"].to_string().contains(path),
            "{path}: {result:#}"
        );
    }
    let done = review(&env, &["apply"]).expect(9).text();
    assert!(
        done.contains("tools/hooks/pre-commit may run on your machine: git runs or obeys it")
            && done.contains("--accept-auto-run"),
        "{done}"
    );
    let commit = || {
        git(&env, &["commit", "-q", "--allow-empty", "-m", "mine"]);
        std::fs::remove_file(env.beside("pwn")).is_ok()
    };
    assert!(
        !commit() && env.path("b.txt").exists() && env.read("mk/inc") == "all:\n",
        "{done}"
    );
    review(&env, &["apply", "--accept-auto-run"]).expect(0);
    assert!(commit(), "it was a hook that the user's git obeys");
    for folder in ["tools", "conf"] {
        std::fs::remove_dir_all(env.path(folder)).expect("removed");
    }
    // A link leads there.
    held_back(
        &env,
        &format!("{}; ln -s evil tools", hook("evil/hooks")),
        &[],
    );
    let done = review(&env, &["apply"]).expect(9).text();
    assert!(
        done.contains("tools may run on your machine") && !commit(),
        "{done}"
    );
    review(&env, &["discard"]).expect(0);
    let branch = format!(
        "git checkout -q -b side; {}; git add tools; git commit -q -m side; git checkout -q main",
        hook("tools/hooks")
    );
    held_back(&env, &branch, &[]);
    let done = review(&env, &["apply"]).expect(9).text();
    assert!(
        done.contains("tools/hooks/pre-commit may run on your machine"),
        "{done}"
    );
    assert_eq!(
        git(&env, &["branch", "--format=%(refname:short)"]),
        "main\n"
    );
    review(&env, &["discard"]).expect(0);
    env.assert_no_container();
}

#[test]
fn hooks_that_a_repository_around_the_project_names_come_only_when_asked_for() {
    let Some(env) = repository() else { return };
    // Monorepo and submodule: the project's repository lies beside it, and its settings lead back
    // into the project.
    let around = env.beside("around");
    std::fs::rename(env.path(".git"), &around).expect("moved");
    env.write(".git", format!("gitdir: {}\n", around.display()));
    git(&env, &["config", "core.hooksPath", "tools/hooks"]);
    give_all(&env.project());
    let pwn = env.beside("pwn").display().to_string();
    let script = format!(
        "mkdir -p tools/hooks; printf '#!/bin/sh\\ntouch {pwn}\\n' > tools/hooks/pre-commit; chmod +x tools/hooks/pre-commit; echo b > b.txt"
    );
    let result = held_back(&env, &script, &[]);
    assert!(
        result["may_run"]
            .to_string()
            .contains("tools/hooks/pre-commit"),
        "{result:#}"
    );
    assert!(
        result["warnings"]
            .to_string()
            .contains("git does not work in this session"),
        "{result:#}"
    );
    let commit = || {
        git(&env, &["commit", "-q", "--allow-empty", "-m", "mine"]);
        std::fs::remove_file(env.beside("pwn")).is_ok()
    };
    let done = review(&env, &["apply"]).expect(9).text();
    assert!(
        done.contains("tools/hooks/pre-commit may run on your machine")
            && env.path("b.txt").exists(),
        "{done}"
    );
    assert!(!commit(), "{done}");
    review(&env, &["apply", "--accept-auto-run"]).expect(0);
    assert!(commit(), "it was a hook that the user's git obeys");
    env.assert_no_container();
}
