//! Git in a session where there is more than one repository: submodules, linked worktrees, and
//! repositories below the top.

use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::json;

use super::git::about_git;
use super::git::full_repository;
use super::git::git;
use super::git::give_all;
use super::git::repository;
use super::git::session;
use super::git::try_git;
use super::git::volumes;
use super::test_box::TestBox;
use super::test_box::alone_with_gc;
use crate::support::ScriptedModel;
use crate::support::test_env::run;
use crate::support::test_env::start;

/// Makes the project a linked worktree, on a branch of its own, of a repository beside it; returns
/// where that is.
pub(super) fn make_linked(env: &TestBox) -> PathBuf {
    let main = env.beside("main");
    std::fs::rename(env.project(), &main).expect("moved");
    let add = [
        "worktree",
        "add",
        "-q",
        "-b",
        "side",
        &env.project().display().to_string(),
    ];
    let (text, is_good) = try_git(env, &main.display().to_string(), &add);
    assert!(is_good, "{text}");
    main
}

#[test]
fn submodules_work_in_a_session_and_come_back() {
    let Some(env) = full_repository() else { return };
    let (result, told) = session(
        &env,
        &[
            "git status --porcelain; cd sub && git checkout -q -b work && echo x > x && git add x && git commit -q -m inside && cd .. && git add sub \
             && git commit -q -m around; git submodule status; cat /run/podbay/git/0/modules/sub/config",
        ],
    );
    assert!(told.contains("No such file or directory"), "{told}");
    assert_eq!(about_git(&result), Vec::<&str>::new(), "{told}");
    assert_eq!(git(&env, &["log", "-1", "--format=%s"]), "around\n");
    assert_eq!(
        git(&env, &["-C", "sub", "log", "-1", "--format=%s", "work"]),
        "inside\n"
    );
    assert_eq!(git(&env, &["status", "--porcelain"]), "");
    env.assert_no_container();
}

#[test]
fn a_linked_worktree_works_in_a_session_and_gets_what_was_done_in_it() {
    let Some(env) = repository() else { return };
    let main = make_linked(&env);
    give_all(&main);
    give_all(&env.project());
    let pointer = std::fs::read(env.path(".git")).expect("a file");
    let (result, told) = session(
        &env,
        &[
            "git status --branch --porcelain; echo two >> a.txt; git commit -q -a -m two; echo x > .git; ls /run/podbay/git/0",
        ],
    );
    assert!(
        told.contains("## side")
            && told.contains("Read-only file system")
            && told.contains("objects"),
        "{told}"
    );
    assert_eq!(about_git(&result), Vec::<&str>::new(), "{told}");
    assert_eq!(std::fs::read(env.path(".git")).expect("a file"), pointer);
    assert_eq!(git(&env, &["log", "--format=%s"]), "two\none\n");
    assert_eq!(git(&env, &["status", "--porcelain"]), "");
    let (log, _) = try_git(
        &env,
        &main.display().to_string(),
        &["log", "--format=%s", "main"],
    );
    assert_eq!(log, "one\n");
    // A sandbox without a session has none, and says so.
    let done = run(&mut env.here(&["sh", "--", "true"])).expect(0);
    assert!(
        done.stderr.contains("a linked worktree of ") && done.stderr.contains("/main/.git, which"),
        "{}",
        done.stderr
    );
    env.assert_no_container();
}

/// Makes a repository below the top with one commit, and a token in its settings.
pub(super) fn make_below(env: &TestBox, folder: &str) {
    env.write(&format!("{folder}/x"), "1\n");
    for words in [
        &["init", "-q", "-b", "main"][..],
        &["add", "."],
        &["commit", "-q", "-m", "below"],
        &[
            "remote",
            "add",
            "origin",
            "https://token-sesame@example.org/x",
        ],
    ] {
        let (text, is_good) = try_git(env, folder, words);
        assert!(is_good, "{text}");
    }
    give_all(&env.project());
}

fn subjects(env: &TestBox, folder: &str) -> String {
    try_git(env, folder, &["log", "--format=%s"]).0
}

#[test]
fn a_repository_below_the_top_has_a_folder_of_its_own_and_its_settings_are_not_seen() {
    let Some(env) = repository() else { return };
    make_below(&env, "deep/nested");
    let config = env.read("deep/nested/.git/config");
    env.write("move.sh", "mv deep x; mv deep/nested deep/x; mv deep/nested/.git deep/nested/x2; touch /run/podbay/git/1/objects/x\n");
    let (result, told) = session(
        &env,
        &[
            "(cd deep/nested; git log --format=%s; git remote -v; git config -l; cat .git/config; cat /run/podbay/git/1/config)",
            "(cd deep/nested && echo 2 >> x && git commit -q -a -m inside && git checkout -q -b topic); git commit -q --allow-empty -m around",
            "sh move.sh",
        ],
    );
    assert!(
        told.contains("below") && told.contains("busy") && told.contains("Read-only file system"),
        "{told}"
    );
    assert!(!told.contains("sesame"), "{told}");
    assert_eq!(
        (
            subjects(&env, "deep/nested").as_str(),
            subjects(&env, "").as_str()
        ),
        ("inside\nbelow\n", "around\none\n")
    );
    assert_eq!(
        try_git(&env, "deep/nested", &["rev-parse", "--abbrev-ref", "HEAD"]).0,
        "topic\n"
    );
    assert_eq!(
        try_git(&env, "deep/nested", &["status", "--porcelain"]),
        (String::new(), true)
    );
    assert_eq!(env.read("deep/nested/.git/config"), config);
    let branches = result["git"]["branches"].as_array().expect("a list").iter();
    let below: Vec<&str> = branches
        .filter(|one| one["repository"] == "deep/nested/.git")
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert_eq!(below, ["refs/heads/main", "refs/heads/topic"], "{result:#}");
    assert_eq!(
        (about_git(&result), &result["git"]["moved_aside"]),
        (Vec::new(), &json!([]))
    );
    assert_eq!(volumes(&env), Vec::<String>::new());
    env.assert_no_container();
}

#[test]
fn repositories_without_one_above_work_and_what_cannot_is_named() {
    let Some(env) = TestBox::new() else { return };
    for folder in ["one", "two"] {
        make_below(&env, folder);
    }
    let tree = env.path("tree").display().to_string();
    let (text, is_good) = try_git(&env, "one", &["worktree", "add", "-q", "--detach", &tree]);
    assert!(is_good, "{text}");
    std::fs::write(env.path("two/.git/MERGE_HEAD"), "x").expect("written");
    give_all(&env.project());
    let (result, told) = session(
        &env,
        &[
            "git -C one commit -q --allow-empty -m inside; git -C two commit -q --allow-empty -m no; git -C two log --format=%s",
        ],
    );
    assert!(
        told.contains("below") && told.contains("Read-only file system"),
        "{told}"
    );
    assert_eq!(
        (
            subjects(&env, "one").as_str(),
            subjects(&env, "two").as_str()
        ),
        ("inside\nbelow\n", "below\n")
    );
    let said = about_git(&result).join("\n");
    assert!(
        said.contains("at tree/.git: it is a worktree of another repository"),
        "{said}"
    );
    assert!(
        said.contains("at two/.git: a merge is under way in it"),
        "{said}"
    );
    assert_eq!(result["git"]["moved_aside"], json!([]));
    env.assert_no_container();
}

#[test]
fn what_was_committed_below_the_top_is_taken_over_after_a_kill_too() {
    let Some(env) = repository() else { return };
    let _alone = alone_with_gc();
    make_below(&env, "nested");
    let command = "git -C nested commit -q --allow-empty -m inside && touch begun && sleep 600";
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command }))
        .start_blocking();
    let task = start(&mut env.task(&model, &["work"]));
    env.wait_for("begun");
    task.signal(Signal::SIGKILL);
    task.wait();
    env.assert_no_container();
    run(&mut env.podbay(&["gc"])).expect(0);
    assert_eq!(
        (volumes(&env).len(), subjects(&env, "nested").as_str()),
        (2, "below\n"),
        "what is in them is nowhere else"
    );
    let (_, told) = session(&env, &["git -C nested log --format=%s"]);
    assert!(told.contains("inside"), "{told}");
    assert_eq!(subjects(&env, "nested"), "inside\nbelow\n");
    assert_eq!(volumes(&env), Vec::<String>::new());
    env.assert_no_container();
}

#[test]
fn no_command_puts_something_in_the_place_of_what_the_engine_mounts_by_its_path() {
    let Some(env) = repository() else { return };
    let main = make_linked(&env);
    env.write(".env", "A=1\n");
    give_all(&main);
    give_all(&env.project());
    let secret = env.beside("secret");
    std::fs::write(&secret, "sesame").expect("written");
    let plant = format!(
        "for name in pointer podbay-pointer; do ln -sf {} /run/podbay/session/$name; done; touch begun; while ! test -e go; do sleep 0.05; done; sleep 2",
        secret.display()
    );
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": plant }))
        .calls("bash", json!({"command": "cat .git; git log --format=%s"}))
        .calls("bash", json!({"command": "cat .git; git log --format=%s"}))
        .says("Done.")
        .start_blocking();
    let task = start(&mut env.task(&model, &["work"]));
    env.wait_for("begun");
    // Its sandbox ends, and the next one is made with what the command has left.
    env.write(".env.new", "A=2\n");
    std::fs::rename(env.path(".env.new"), env.path(".env")).expect("replaced");
    env.write("go", "");
    task.wait().expect(0);
    let told = model.requests().last().expect("a request")["messages"].to_string();
    assert!(
        !told.contains("sesame") && told.contains("gitdir: /run/podbay/session/worktrees/project"),
        "{told}"
    );
    env.assert_no_container();
}

#[test]
fn hooks_of_submodules_and_below_and_settings_that_are_included_cannot_be_changed() {
    let Some(env) = full_repository() else { return };
    make_below(&env, "nested");
    env.write("shared.gitconfig", "[core]\n\tabbrev = 9\n");
    for (folder, key, value) in [
        ("", "include.path", "../shared.gitconfig"),
        ("", "includeIf.onbranch:main.path", "~/elsewhere"),
        ("sub", "core.hooksPath", "hooks"),
        ("nested", "core.hooksPath", "hooks"),
    ] {
        let (text, is_good) = try_git(&env, folder, &["config", "--add", key, value]);
        assert!(is_good, "{text}");
    }
    let hooks = [
        "sub/hooks/pre-commit",
        "nested/hooks/pre-commit",
        "tools/hooks/pre-commit",
    ];
    for hook in &hooks[..2] {
        env.write(hook, "as it was");
    }
    let before: Vec<String> = hooks.iter().map(|hook| env.read(hook)).collect();
    give_all(&env.project());
    let attack = format!(
        "for file in {} shared.gitconfig; do echo evil > $file; rm -f $file; mv $file x; done; mv sub/hooks x; mv sub x; mv nested/hooks x; echo x > sub/other",
        hooks.join(" ")
    );
    let (result, told) = session(&env, &[&attack]);
    let after: Vec<String> = hooks.iter().map(|hook| env.read(hook)).collect();
    assert_eq!(after, before, "{told}");
    assert_eq!(
        (
            env.read("shared.gitconfig").as_str(),
            env.read("sub/other").as_str()
        ),
        ("[core]\n\tabbrev = 9\n", "x\n")
    );
    assert!(
        about_git(&result).join("\n").contains(
            "takes settings or hooks for the project from ~/elsewhere, which could not be read"
        ),
        "{result:#}"
    );
    env.assert_no_container();
}
