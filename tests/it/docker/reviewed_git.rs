//! What a session does with git whose changes are pending waits with them, and comes as commits.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use nix::sys::signal::Signal;
use podbay_soak as soak;
use serde_json::Value;
use serde_json::json;

use super::git;
use super::git::fingerprint;
use super::git::full_repository;
use super::git::git;
use super::git::give_all;
use super::git::repository;
use super::git::session;
use super::git::try_git;
use super::git_below::make_below;
use super::git_below::make_linked;
use super::review;
use super::review::held_back;
use super::review::held_back_to;
use super::review::review;
use super::test_box::TestBox;
use super::test_box::alone_with_gc;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::TestEnv;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::within;

const HOOKS: [&str; 4] = [
    "pre-commit",
    "post-commit",
    "reference-transaction",
    "post-index-change",
];

/// A project with one commit, whose hooks leave a mark.
fn hooked() -> Option<TestBox> {
    let env = repository()?;
    for hook in HOOKS {
        env.write(
            &format!(".git/hooks/{hook}"),
            format!("#!/bin/sh\ntouch {}\n", env.beside("hooked").display()),
        );
        std::fs::set_permissions(
            env.path(&format!(".git/hooks/{hook}")),
            PermissionsExt::from_mode(0o755),
        )
        .expect("ours");
    }
    Some(env)
}

fn subjects(env: &TestBox) -> String {
    git(env, &["log", "--format=%s"])
}

fn status(env: &TestBox) -> String {
    git(env, &["status", "--porcelain"])
}

fn id(result: &Value) -> String {
    result["review"]
        .as_str()
        .unwrap_or_else(|| panic!("no review waits: {result:#}"))
        .to_owned()
}

#[track_caller]
fn assert_nothing_waits(env: &TestBox) {
    assert_eq!(
        (git::volumes(env), review::volumes(env)),
        (Vec::new(), Vec::new())
    );
    assert_eq!(
        review(env, &["list"]).expect(0).text(),
        "no pending review\n"
    );
    env.assert_no_container();
}

#[test]
fn commits_wait_with_the_files_through_whatever_happens_and_come_as_commits() {
    let Some(env) = hooked() else { return };
    let real = fingerprint(&env.path(".git"));
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "echo two >> a.txt && git commit -q -a -m 'take two' && echo x > b.txt; cat .git/config"}))
        .says("Done.")
        .start_blocking();
    let done = run(&mut env.task(&model, &["work", "--changes", "review"])).expect(0);
    let done = done.says(&["2 files changed", "commits: main ", "(1) take two"]);
    let result = done.json();
    let name = id(&result);
    assert_eq!(
        (&result["git"], &result["commits"][0]["name"]),
        (&Value::Null, &json!("refs/heads/main")),
        "{result:#}"
    );
    assert_eq!(
        fingerprint(&env.path(".git")),
        real,
        "nothing of it is in the real repository"
    );
    // Whatever happens meanwhile leaves it alone.
    let (_, told) = session(&env, &["git log --format=%s"]);
    assert!(!told.contains("take two"), "{told}");
    {
        let _alone = alone_with_gc();
        run(&mut env.podbay(&["gc"])).expect(0);
    }
    run(&mut env.here(&["down"])).expect(0);
    assert_eq!(
        (git::volumes(&env).len(), subjects(&env).as_str()),
        (1, "one\n")
    );
    let listed = review(&env, &["list"]).expect(0).text();
    assert!(
        listed.contains("2 paths")
            && listed.contains("commits: main ")
            && listed.contains("take two"),
        "{listed}"
    );
    let line = listed
        .lines()
        .find(|line| line.contains("commits: main "))
        .expect("a line")
        .trim();
    let told = run(&mut env.here(&["status"])).expect(0).text();
    assert!(
        told.contains(&format!("review {name} "))
            && told.contains(line)
            && line.ends_with("(1) take two"),
        "{told}"
    );
    let told = run(&mut env.here(&["status", "--json"])).expect(0).json();
    let waiting = &told["waiting"][0];
    assert_eq!(
        (&told["reviews"], &waiting["review"], &waiting["git"]),
        (&json!([name]), &json!(name), &json!([line])),
        "{told:#}"
    );
    let branch = &waiting["branches"][0];
    assert_eq!(
        (&branch["repository"], &branch["name"], &branch["commits"]),
        (&json!(".git"), &json!("refs/heads/main"), &json!(1))
    );
    let shown = review(&env, &["diff"]).expect(0).text();
    assert!(
        shown.starts_with("commits: main ") && shown.contains("+two"),
        "{shown}"
    );
    // It continues where it was.
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "git log --format=%s; echo three >> a.txt && git commit -q -a -m 'take three'"}))
        .says("Done.")
        .start_blocking();
    let result = run(&mut env.task(
        &model,
        &["continue", "--changes", "review", "--resume", &name],
    ))
    .expect(0)
    .says(&["(2) take three"])
    .json();
    assert_eq!(id(&result), name);
    let told = model.requests().last().expect("a request")["messages"].to_string();
    assert!(told.contains("take two"), "{told}");
    // The user has made a repository, which is nobody else's.
    let (text, is_good) = try_git(&env, "", &["init", "-q", "theirs"]);
    assert!(is_good, "{text}");
    give_all(&env.project());
    let done = review(&env, &["apply"])
        .expect(0)
        .says(&["git: imported from the session: main "]);
    assert!(!done.text().contains("waits"), "{}", done.text());
    assert!(!env.beside("hooked").exists(), "no hook of the user's runs");
    assert_eq!(
        git(&env, &["log", "--format=%s %an"]),
        "take three Podbay\ntake two Podbay\none Ann\n"
    );
    assert_eq!(status(&env), "?? b.txt\n?? theirs/\n");
    assert_eq!(env.read("a.txt"), "one\ntwo\nthree\n");
    assert!(env.path("theirs/.git/HEAD").exists());
    git(&env, &["fsck", "--strict"]);
    git(&env, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    assert!(
        env.beside("hooked").exists(),
        "but for the user's own commits"
    );
    assert_nothing_waits(&env);
}

#[test]
fn files_come_without_their_commits_and_commits_without_a_change_wait_too() {
    let Some(env) = repository() else { return };
    held_back(
        &env,
        "echo two >> a.txt; echo b > b.txt; git add b.txt; git commit -q -a -m two",
        &[],
    );
    let done = review(&env, &["apply", "--only", "a.txt"]).expect(0).text();
    assert!(
        done.contains("pending commits") && done.contains("comes with the last path"),
        "{done}"
    );
    assert_eq!(
        (subjects(&env).as_str(), status(&env).as_str()),
        ("one\n", " M a.txt\n")
    );
    let done = review(&env, &["apply", "--no-commits"]).expect(0).text();
    assert!(done.contains("comes with all of it"), "{done}");
    assert_eq!(
        (subjects(&env).as_str(), status(&env).as_str()),
        ("one\n", " M a.txt\n?? b.txt\n")
    );
    assert!(review(&env, &["list"]).expect(0).text().contains("no path"));
    review(&env, &["apply"]).expect(0);
    assert_eq!(
        (subjects(&env).as_str(), status(&env).as_str()),
        ("two\none\n", "")
    );
    assert_nothing_waits(&env);
    // Nothing but a commit, and before the paths.
    let result = held_back(&env, "git commit -q --allow-empty -m three", &[]);
    assert_eq!(result["changes"]["created"], json!([]));
    assert!(
        review(&env, &["diff", &id(&result)])
            .expect(0)
            .text()
            .contains("no pending files")
    );
    review(&env, &["apply"]).expect(0);
    assert_eq!(
        (subjects(&env).as_str(), status(&env).as_str()),
        ("three\ntwo\none\n", "")
    );
    held_back(
        &env,
        "echo four >> a.txt; git commit -q -a -m four; echo more > more.txt",
        &[],
    );
    let done = review(&env, &["apply", "--only", "a.txt", "--commits"])
        .expect(0)
        .text();
    assert!(
        done.contains("1 path still waiting") && !done.contains("pending commits"),
        "{done}"
    );
    assert_eq!(
        (subjects(&env).lines().next(), status(&env).as_str()),
        (Some("four"), "")
    );
    review(&env, &["apply"]).expect(0);
    // At once, and nothing at all.
    let result = held_back(
        &env,
        "echo five >> a.txt; git commit -q -a -m five",
        &["--apply"],
    );
    assert_eq!(
        (&result["applied"], &result["review"], &result["commits"]),
        (&json!(true), &Value::Null, &json!([])),
        "{result:#}"
    );
    assert_eq!(result["git"]["branches"][0]["name"], "refs/heads/main");
    let result = held_back(&env, "git status; git log; git diff", &[]);
    assert_eq!(result["review"], Value::Null, "{result:#}");
    assert_eq!(
        (subjects(&env).lines().next(), status(&env).as_str()),
        (Some("five"), "?? more.txt\n")
    );
    assert_nothing_waits(&env);
}

#[test]
fn commits_that_hold_what_may_run_come_no_sooner_than_that() {
    let Some(env) = repository() else { return };
    let result = held_back(
        &env,
        "echo x > .envrc; echo b > b.txt; git add .; git commit -q -m two",
        &[],
    );
    let done = review(&env, &["apply"]).expect(9).text();
    assert!(
        done.contains("--accept-auto-run") && done.contains("pending commits"),
        "{done}"
    );
    assert_eq!(
        (subjects(&env).as_str(), env.path(".envrc").exists()),
        ("one\n", false)
    );
    review(&env, &["apply", &id(&result), "--accept-auto-run"]).expect(0);
    assert_eq!(
        (subjects(&env).as_str(), status(&env).as_str()),
        ("two\none\n", "")
    );
    // No file shows it.
    let hides = "git checkout -q -b side; mkdir .husky; echo x > .husky/pre-push; git add .; git commit -q -m side; git checkout -q main";
    let result = held_back_to(&env, hides, &["--apply"], 9);
    assert!(
        result["warnings"]
            .to_string()
            .contains("commits are pending"),
        "{result:#}"
    );
    let done = review(&env, &["apply", &id(&result)]).expect(9).text();
    assert!(
        done.contains(".husky/pre-push may run on your machine"),
        "{done}"
    );
    assert_eq!(
        git(&env, &["branch", "--format=%(refname:short)"]),
        "main\n"
    );
    review(&env, &["apply", "--accept-auto-run"]).expect(0);
    assert_eq!(
        git(&env, &["branch", "--format=%(refname:short)"]),
        "main\nside\n"
    );
    assert_nothing_waits(&env);
}

/// A commit that holds what runs when somebody runs it is no other than the rest.
#[test]
fn commits_that_hold_what_you_run_come_with_the_rest_and_are_named() {
    let Some(env) = repository() else { return };
    let work = "echo '{}' > package.json; mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; git add .; git commit -q -m two; \
                git checkout -q -b side; echo all: > Makefile; git add .; git commit -q -m side; git checkout -q main";
    let result = held_back(&env, work, &["--apply"]);
    assert_eq!(
        (&result["applied"], &result["review"]),
        (&json!(true), &Value::Null),
        "{result:#}"
    );
    assert!(
        result["may_run"].to_string().contains("package.json: npm"),
        "{result:#}"
    );
    assert_eq!(
        (subjects(&env).as_str(), status(&env).as_str()),
        ("two\none\n", "")
    );
    assert_eq!(
        git(&env, &["branch", "--format=%(refname:short)"]),
        "main\nside\n"
    );
    assert_nothing_waits(&env);
}

#[test]
fn a_branch_that_moved_meanwhile_stays_and_what_is_discarded_is_gone() {
    let Some(env) = repository() else { return };
    held_back(
        &env,
        "echo two >> a.txt; git commit -q -a -m two; git branch side",
        &[],
    );
    git(&env, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    review(&env, &["apply"]).expect(9).says(&[
        "refs/heads/main: moved here meanwhile",
        "podbay review discard",
    ]);
    assert_eq!(
        (subjects(&env).as_str(), env.read("a.txt").as_str()),
        ("mine\none\n", "one\ntwo\n")
    );
    assert_eq!(git(&env, &["log", "--format=%s", "side"]), "two\none\n");
    assert!(
        review(&env, &["list"])
            .expect(0)
            .text()
            .contains("commits: main ")
    );
    review(&env, &["discard"]).expect(0);
    assert_eq!(subjects(&env), "mine\none\n");
    assert_nothing_waits(&env);
}

#[test]
fn a_branch_waits_while_the_person_merges_into_it_and_comes_when_that_is_over() {
    let Some(env) = repository() else { return };
    git(&env, &["checkout", "-q", "-b", "own"]);
    env.write("a.txt", "own\n");
    git(&env, &["commit", "-q", "-a", "-m", "own"]);
    git(&env, &["checkout", "-q", "main"]);
    env.write("a.txt", "mine\n");
    git(&env, &["commit", "-q", "-a", "-m", "mine"]);
    held_back(
        &env,
        "echo b > b.txt; git add b.txt; git commit -q -m two",
        &[],
    );
    let (text, is_good) = try_git(&env, "", &["merge", "own"]);
    assert!(!is_good, "there is a conflict: {text}");
    give_all(&env.project());
    review(&env, &["apply"]).expect(9).says(&[
        "refs/heads/main: is checked out here",
        "a merge is not finished here",
    ]);
    assert_eq!(subjects(&env), "mine\none\n");
    // They think better of it, or would, if the branch had moved.
    git(&env, &["merge", "--abort"]);
    review(&env, &["apply"]).expect(0);
    assert_eq!(
        (subjects(&env).as_str(), status(&env).as_str()),
        ("two\nmine\none\n", "")
    );
    assert_nothing_waits(&env);
}

#[test]
fn what_came_and_was_removed_since_does_not_come_again() {
    let Some(env) = repository() else { return };
    held_back(
        &env,
        "echo two >> a.txt; git commit -q -a -m two; git branch feat; echo x >> a.txt; git stash -q",
        &[],
    );
    git(&env, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    review(&env, &["apply"])
        .expect(9)
        .says(&["refs/heads/main: moved here meanwhile"]);
    git(&env, &["branch", "-q", "-D", "feat"]);
    git(&env, &["stash", "drop", "-q"]);
    let listed = review(&env, &["list"]).expect(0).text();
    assert!(
        listed.contains("commits: main ") && !listed.contains("feat") && !listed.contains("stash"),
        "{listed}"
    );
    let done = review(&env, &["apply"]).expect(9).text();
    assert!(!done.contains("feat") && !done.contains("stash"), "{done}");
    assert_eq!(
        (
            git(&env, &["branch", "--format=%(refname:short)"]).as_str(),
            git(&env, &["stash", "list"]).as_str()
        ),
        ("main\n", "")
    );
    review(&env, &["discard"]).expect(0);
    assert_nothing_waits(&env);
}

#[test]
fn two_sessions_commit_side_by_side_and_each_is_brought_in_by_itself() {
    let Some(env) = repository() else { return };
    let begin = |command: &str| {
        let model = ScriptedModel::new()
            .calls("bash", json!({ "command": command }))
            .says("Done.")
            .start_blocking();
        let task = start(&mut env.task(&model, &["work", "--changes", "review"]));
        (model, task)
    };
    let both = [
        begin("echo two >> a.txt; git commit -q -a -m two"),
        begin(
            "git checkout -q -b topic; echo t > t.txt; git add t.txt; git commit -q -m topic; git checkout -q main",
        ),
    ];
    let ids = both.map(|(_model, task)| id(&task.wait().expect(0).json()));
    review(&env, &["apply", &ids[0]]).expect(0);
    assert_eq!(
        (subjects(&env).as_str(), git::volumes(&env).len()),
        ("two\none\n", 1)
    );
    review(&env, &["apply", &ids[1]]).expect(0);
    assert_eq!(git(&env, &["log", "--format=%s", "topic"]), "topic\none\n");
    assert_eq!(
        (subjects(&env).as_str(), status(&env).as_str()),
        ("two\none\n", "")
    );
    assert_nothing_waits(&env);
}

#[test]
fn taking_over_that_is_killed_at_any_moment_is_finished_by_the_next() {
    let Some(env) = repository() else { return };
    for n in 0..u64::from(soak::n_kills(2)) {
        let result = held_back(
            &env,
            &format!("echo {n} >> a.txt; git commit -q -a -m take{n}"),
            &[],
        );
        let name = id(&result);
        let task = start(
            env.podbay(&["review", "apply", &name, "-C"])
                .arg(env.project()),
        );
        let expected = format!("take{n}");
        let is_in = || env.read("a.txt").ends_with(&format!("{n}\n"));
        // From its first moments on, and from where the files are there to beyond its end.
        if n % 5 == 0 {
            std::thread::sleep(Duration::from_millis(400 + n * 7 % 500));
        } else {
            assert!(within(Duration::from_secs(30), is_in));
            std::thread::sleep(Duration::from_millis((n % 5 - 1) * 300 + n * 11 % 300));
        }
        task.signal(Signal::SIGKILL);
        task.wait();
        let project = format!("label=dev.podbay.project={}", env.key());
        assert!(within(Duration::from_secs(30), || docker(&[
            "ps", "--quiet", "--filter", &project
        ])
        .is_empty()));
        let listed = review(&env, &["list"]).expect(0).text();
        if listed.contains("nothing is kept of it") {
            let said = review(&env, &["apply", &name]).expect(0).text();
            assert!(said.contains("was applied already"), "{said}");
        } else if listed.contains(&name) {
            review(&env, &["apply", &name]).expect(0);
        }
        assert_eq!(
            (subjects(&env).lines().next(), status(&env).as_str()),
            (Some(expected.as_str()), ""),
            "round {n}: {listed}"
        );
        git(&env, &["fsck", "--strict"]);
        assert_nothing_waits(&env);
    }
}

#[test]
fn submodules_and_linked_worktrees_commit_in_a_copy_as_well() {
    let Some(env) = full_repository() else { return };
    let inside = "cd sub && git checkout -q -b work && echo x > x && git add x && git commit -q -m inside && cd .. && git add sub && \
                  git commit -q -m around";
    let result = held_back(&env, inside, &[]);
    assert!(
        result["commits"].to_string().contains(".git/modules/sub"),
        "{result:#}"
    );
    // They continue their submodules.
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "git -C sub commit -q --allow-empty -m further; git -C sub log --format=%s; git add sub; git commit -q -m again"}))
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["continue", "--changes", "review", "--continue"])).expect(0);
    review(&env, &["apply"]).expect(0);
    assert_eq!(git(&env, &["log", "-2", "--format=%s"]), "again\naround\n");
    assert_eq!(
        git(&env, &["-C", "sub", "log", "-2", "--format=%s", "work"]),
        "further\ninside\n"
    );
    assert_eq!(status(&env), "");
    assert_nothing_waits(&env);

    let env = repository().expect("the first one was made");
    let main = make_linked(&env);
    give_all(&main);
    give_all(&env.project());
    TestEnv::give(&env.project());
    held_back(&env, "echo two >> a.txt; git commit -q -a -m two", &[]);
    let model = ScriptedModel::new()
        .calls(
            "bash",
            json!({"command": "git commit -q --allow-empty -m three"}),
        )
        .says("Done.")
        .start_blocking();
    run(&mut env.task(&model, &["continue", "--changes", "review", "--continue"]))
        .expect(0)
        .says(&["commits: side "]);
    assert_eq!(subjects(&env), "one\n");
    review(&env, &["apply"]).expect(0);
    assert_eq!(
        (subjects(&env).as_str(), status(&env).as_str()),
        ("three\ntwo\none\n", "")
    );
    assert_nothing_waits(&env);
    // What leads it to its folder goes with what is discarded.
    let dropped = id(&held_back(&env, "git commit -q --allow-empty -m four", &[]));
    assert_eq!(git::volumes(&env).len(), 2);
    review(&env, &["discard", &dropped]).expect(0);
    assert_eq!(subjects(&env), "three\ntwo\none\n");
    assert_nothing_waits(&env);
}

#[test]
fn a_repository_below_the_top_can_only_be_read_where_changes_are_held_back() {
    let Some(env) = repository() else { return };
    make_below(&env, "deep/nested");
    let real = fingerprint(&env.path("deep/nested/.git"));
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "(cd deep/nested; git log --format=%s; cat .git/config; git commit -q --allow-empty -m inside)"}))
        .calls("bash", json!({"command": "echo 2 >> deep/nested/x; echo 2 >> a.txt; git commit -q -m around a.txt"}))
        .says("Done.")
        .start_blocking();
    let result = run(&mut env.task(&model, &["work", "--changes", "review"]))
        .expect(0)
        .json();
    let told = model.requests().last().expect("a request")["messages"].to_string();
    assert!(
        told.contains("below")
            && told.contains("Read-only file system")
            && !told.contains("sesame"),
        "{told}"
    );
    let said = git::about_git(&result).join("\n");
    assert!(
        said.contains("git can only read in this session at deep/nested/.git: what is pending"),
        "{said}"
    );
    review(&env, &["apply"]).expect(0);
    assert_eq!(
        (subjects(&env).as_str(), env.read("deep/nested/x").as_str()),
        ("around\none\n", "1\n2\n")
    );
    assert_eq!(fingerprint(&env.path("deep/nested/.git")), real);
    assert_nothing_waits(&env);
}
