//! Repositories that a session makes of folders that have the user's files in them.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::git::give_all;
use super::git::repository;
use super::git::session;
use super::git::try_git;
use super::test_box::TestBox;
use crate::support::test_env::Done;
use crate::support::test_env::run;

/// Makes a repository of a folder with other files in it, whose settings have a program run.
const LURE: &str = "cd lib && mkdir -p objects refs/heads hooks && echo 'ref: refs/heads/main' > HEAD && git config -f config core.bare false \
                    && git config -f config core.fsmonitor \"$1/evil\" && cp ../evil hooks/post-commit\n";

/// A project with a folder in which there are files of the user's, one of them with a name that
/// git reads.
fn project() -> Option<TestBox> {
    let env = repository()?;
    env.write("lib/a.txt", "theirs\n");
    env.write("lib/deep/b.txt", "theirs\n");
    env.write("lib/config", "[app]\n\tname = theirs\n");
    env.write(
        "evil",
        format!("#!/bin/sh\ntouch {}\n", env.beside("PWN").display()),
    );
    std::fs::set_permissions(env.path("evil"), PermissionsExt::from_mode(0o755)).expect("ours");
    env.write("lure.sh", LURE);
    give_all(&env.project());
    Some(env)
}

/// Asks git in the folder what is new; returns whether that had the program run.
fn bites(env: &TestBox) -> bool {
    let _ = try_git(env, "lib", &["--work-tree=.", "status"]);
    std::fs::remove_file(env.beside("PWN")).is_ok()
}

fn undo(env: &TestBox, words: &[&str]) -> Done {
    run(env
        .podbay(&["undo"])
        .args(words)
        .arg("-C")
        .arg(env.project()))
}

#[test]
fn what_a_session_makes_into_a_repository_keeps_the_persons_files() {
    let Some(env) = project() else { return };
    let control = project().expect("the first one was made");
    let (result, told) = session(
        &env,
        &[&format!(
            "sh lure.sh {}; cd lib && git rev-parse --git-dir; echo more >> a.txt",
            env.project().display()
        )],
    );
    let aside = result["git"]["moved_aside"].to_string();
    assert!(
        aside.contains("what made lib one (HEAD, hooks, objects, refs) is now "),
        "{told}\n{result:#}"
    );
    assert!(
        aside.contains("all else in there stays where it is") && !bites(&env),
        "{aside}"
    );
    assert!(
        !result["may_run"].to_string().contains("lib/hooks"),
        "it runs nowhere by now: {result:#}"
    );
    assert_eq!(
        (
            env.read("lib/a.txt").as_str(),
            env.read("lib/deep/b.txt").as_str()
        ),
        ("theirs\nmore\n", "theirs\n")
    );
    assert!(
        env.read("lib/config").contains("name = theirs")
            && env.read("lib/config").contains("fsmonitor")
    );
    // The turn can be undone, and what it made of the folder does not come again.
    let undone = undo(&env, &[]).expect(0).text();
    assert_eq!(
        (
            env.read("lib/a.txt").as_str(),
            env.read("lib/config").as_str()
        ),
        ("theirs\n", "[app]\n\tname = theirs\n"),
        "{undone}"
    );
    let redone = undo(&env, &["redo"]).expect(1).text();
    assert!(
        redone.contains("left as it is: lib/HEAD is part of a repository that a turn made"),
        "{redone}"
    );
    assert_eq!(env.read("lib/a.txt"), "theirs\nmore\n");
    assert!(
        !env.path("lib/HEAD").exists() && !env.path("lib/refs").exists() && !bites(&env),
        "{redone}"
    );
    env.assert_no_container();

    let mut shell = Command::new("sh");
    shell
        .args(["lure.sh", &control.project().display().to_string()])
        .current_dir(control.project())
        .env("HOME", "/nonexistent");
    shell.output().expect("sh");
    assert!(bites(&control), "outside of a sandbox it works");
}

#[test]
fn a_repository_that_was_moved_aside_does_not_come_back_with_what_is_brought_back() {
    let Some(env) = project() else { return };
    let make = "git init -q --bare made && git config -f made/config core.fsmonitor /workspace/evil && mkdir new && echo 'gitdir: ../made' > new/.git";
    let (result, told) = session(&env, &[make]);
    let aside = result["git"]["moved_aside"].to_string();
    assert!(
        aside.contains("made is now ")
            && aside.contains("new/.git is now ")
            && !env.path("made").exists(),
        "{told}\n{result:#}"
    );
    undo(&env, &[]).expect(0);
    let redone = undo(&env, &["redo"]).expect(1).text();
    for path in ["made/HEAD", "made/objects", "made/refs", "new/.git"] {
        assert!(
            redone.contains(&format!("left as it is: {path} ")) && !env.path(path).exists(),
            "{path}: {redone}"
        );
    }
    assert!(
        !try_git(&env, "made", &["rev-parse", "--is-bare-repository"])
            .0
            .contains("true")
    );
    env.assert_no_container();
}

/// Makes 5000 `.git` files whose paths are long.
const MANY: &str = "name=$(printf 'x%.0s' $(seq 240)); deep=$name; for level in 2 3 4 5 6 7 8 9; do deep=$deep/$name; done\n\
                    mkdir -p $deep && cd $deep && mkdir $(seq 5000) && for one in *; do echo 'gitdir: /x' > $one/.git; done\n";

#[test]
fn a_session_that_makes_thousands_of_repositories_ends_with_its_report() {
    let Some(env) = repository() else { return };
    env.write("many.sh", MANY);
    give_all(&env.project());
    let (result, told) = session(&env, &["sh many.sh"]);
    let aside = result["git"]["moved_aside"].as_array().expect("a list");
    assert_eq!(
        (aside.len(), aside[200].as_str()),
        (201, Some("and 4800 more")),
        "{told}"
    );
    let said: Vec<&str> = result["warnings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one.as_str())
        .collect();
    assert!(
        said.len() < 50
            && said
                .iter()
                .any(|line| line.contains("of all 5000, 5000 are in ")),
        "{said:#?}"
    );
    let mut folders = vec![env.path(&["x".repeat(240).as_str(); 9].join("/"))];
    folders.extend(
        std::fs::read_dir(&folders[0])
            .expect("made")
            .map(|entry| entry.expect("an entry").path()),
    );
    assert_eq!(folders.len(), 5001);
    assert!(
        folders[1..].iter().all(|folder| std::fs::read_dir(folder)
            .expect("a folder")
            .next()
            .is_none()),
        "one is still there"
    );
    env.assert_no_container();
}
