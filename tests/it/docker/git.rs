//! Git in a session: a folder of its own, of which the user gets what was committed, stashed and
//! staged.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;
use serde_json::json;

use super::test_box::TestBox;
use super::test_box::alone_with_gc;
use super::test_box::docker;
use crate::support::ScriptedModel;
use crate::support::TestEnv;
use crate::support::test_env::run;
use crate::support::test_env::start;

/// Runs git as the user does, in a folder of the project; says whether it succeeded.
pub(super) fn try_git(env: &TestBox, folder: &str, words: &[&str]) -> (String, bool) {
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "-c", "protocol.file.allow=always"])
        .args(words)
        .current_dir(env.path(folder))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("GIT_TERMINAL_PROMPT", "0")
        .envs(["AUTHOR", "COMMITTER"].map(|role| (format!("GIT_{role}_NAME"), "Ann")))
        .envs(["AUTHOR", "COMMITTER"].map(|role| (format!("GIT_{role}_EMAIL"), "ann@example.org")))
        .output()
        .expect("git");
    let text = [
        output.stdout,
        if output.status.success() {
            Vec::new()
        } else {
            output.stderr
        },
    ]
    .concat();
    (
        String::from_utf8_lossy(&text).into_owned(),
        output.status.success(),
    )
}

#[track_caller]
pub(super) fn git(env: &TestBox, words: &[&str]) -> String {
    let (text, is_good) = try_git(env, "", words);
    assert!(is_good, "git {words:?}: {text}");
    give_all(&env.project());
    text
}

/// What the tests' git wrote belongs to whoever has the project.
pub(super) fn give_all(folder: &Path) {
    TestEnv::give(folder);
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            give_all(&entry.path());
        } else {
            TestEnv::give(&entry.path());
        }
    }
}

/// A project with one commit.
pub(super) fn repository() -> Option<TestBox> {
    let env = TestBox::new()?;
    git(&env, &["init", "-q", "-b", "main"]);
    env.write("a.txt", "one\n");
    git(&env, &["add", "."]);
    git(&env, &["commit", "-q", "-m", "one"]);
    Some(env)
}

/// Has a session run one command after the other.
pub(super) fn session(env: &TestBox, commands: &[&str]) -> (Value, String) {
    let mut model = ScriptedModel::new();
    for command in commands {
        model = model.calls("bash", json!({ "command": command }));
    }
    let model = model.says("Done.").start_blocking();
    let result = run(&mut env.task(&model, &["work"])).expect(0).json();
    let told = model.requests().last().expect("a request")["messages"].to_string();
    (result, told)
}

/// Returns the warnings that are about git.
pub(super) fn about_git(result: &Value) -> Vec<&str> {
    let all = result["warnings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str);
    all.filter(|warning| warning.contains("git")).collect()
}

/// Returns the volumes of sessions' git folders that this project has.
pub(super) fn volumes(env: &TestBox) -> Vec<String> {
    let filters = [
        format!("label=dev.podbay.project={}", env.key()),
        "label=dev.podbay.role=git".to_owned(),
    ];
    let listed = docker(&[
        "volume",
        "ls",
        "--quiet",
        "--filter",
        &filters[0],
        "--filter",
        &filters[1],
    ]);
    listed.lines().map(str::to_owned).collect()
}

/// Everything in the real `.git`, with its contents.
pub(super) fn fingerprint(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            all.extend(fingerprint(&entry.path()));
        } else {
            all.insert(
                entry.path().display().to_string(),
                std::fs::read(entry.path()).expect("a file"),
            );
        }
    }
    all
}

#[test]
fn a_run_that_gets_no_model_leaves_no_folder_of_its_own() {
    let Some(env) = repository() else { return };
    let own = || {
        let filters = [
            "label=dev.podbay.role=git".to_owned(),
            format!("label=dev.podbay.project={}", env.key()),
        ];
        docker(&[
            "volume",
            "ls",
            "--quiet",
            "--filter",
            &filters[0],
            "--filter",
            &filters[1],
        ])
    };
    // Nobody listens there.
    run(&mut env.here(&[
        "run",
        "--model",
        "m",
        "--endpoint",
        "http://127.0.0.1:9/v1",
        "work",
    ]))
    .expect(6);
    assert_eq!(own(), "");
    assert_eq!(git(&env, &["status", "--short"]), "");
    env.assert_no_container();
}

#[test]
fn what_a_session_commits_stashes_and_stages_is_the_persons_at_its_end() {
    let Some(env) = repository() else { return };
    env.write("staged.txt", "mine\n");
    git(&env, &["add", "staged.txt"]);
    let (result, told) = session(
        &env,
        &[
            "git status --porcelain && git log --format='%s by %an'",
            "echo two >> a.txt && git commit -q -m two a.txt && git checkout -q -b topic && echo x > b.txt && git add b.txt && git commit -q -m three b.txt",
            "echo y > c.txt && git add c.txt && git tag v1 && cp .git/HEAD seen.txt && perl -e 'rename \".git\", \"away\"'; ls -d .git",
            "cat /run/podbay/git/0/config; git config --get core.hooksPath; touch /run/podbay/git/0/objects/x",
        ],
    );
    assert!(
        told.contains("A  staged.txt"),
        "what the user staged is staged: {told}"
    );
    assert!(
        told.contains("one by Ann")
            && told.contains("/dev/null")
            && told.contains("Read-only file system"),
        "{told}"
    );
    assert_eq!(
        git(&env, &["log", "--format=%s %an", "topic"]),
        "three Podbay\ntwo Podbay\none Ann\n"
    );
    assert_eq!(git(&env, &["rev-parse", "--abbrev-ref", "HEAD"]), "topic\n");
    assert_eq!(
        git(&env, &["status", "--porcelain"]),
        "A  c.txt\nA  staged.txt\n?? seen.txt\n"
    );
    assert_eq!(git(&env, &["tag"]), "v1\n");
    git(&env, &["fsck", "--strict"]);
    let names: Vec<&str> = result["git"]["branches"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["name"].as_str().expect("text"))
        .collect();
    assert_eq!(
        names,
        ["refs/heads/main", "refs/heads/topic", "refs/tags/v1"],
        "{result:#}"
    );
    assert_eq!(
        (&result["git"]["head"], &result["git"]["staged"]),
        (&json!("refs/heads/topic"), &json!(true))
    );
    assert_eq!(about_git(&result), Vec::<&str>::new());
    assert_eq!(volumes(&env), Vec::<String>::new());
    let owner = std::os::unix::fs::MetadataExt::uid(
        &std::fs::metadata(env.path(".git/refs/heads/topic")).expect("a file"),
    );
    assert_eq!(
        owner,
        std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(env.project()).expect("a folder"))
    );
    env.assert_no_container();
}

#[test]
fn what_a_session_does_to_mislead_the_person_is_renamed_left_out_listed_and_said() {
    let Some(env) = repository() else { return };
    env.write(".env", "TOKEN=s3cr3t\n");
    git(&env, &["add", "-f", ".env"]);
    git(&env, &["commit", "-q", "-m", "a secret"]);
    git(&env, &["branch", "release"]);
    let mode = || {
        std::fs::metadata(env.project())
            .expect("a folder")
            .permissions()
            .mode()
            & 0o7777
    };
    let before = mode();
    // What a script of the project does no policy reads.
    env.write(
        "probe.sh",
        "set -e\n\
         git show HEAD:.env\n\
         git checkout -q -b 'x$(id)'\n\
         echo two >> a.txt\n\
         git commit -q -a -m two\n\
         for n in $(seq 40); do git branch \"$(printf 'l%.0s' $(seq 100))$n\"; done\n\
         git branch -q -f release HEAD\n\
         git checkout -q -b bomb main\n\
         id=$(head -c 3000000 /dev/zero | git hash-object -w --stdin)\n\
         git update-index --add --cacheinfo 100644,$id,big\n\
         git commit -q -m big\n\
         git checkout -q -f main\n\
         chmod 777 .\n\
         echo all done\n",
    );
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "bash probe.sh"}))
        .says("Done.")
        .start_blocking();
    let done = run(env
        .task(&model, &["work"])
        .env("PODBAY_SANDBOX_FILE_SIZE", "1MiB"))
    .expect(0);
    let told = model.requests().last().expect("a request")["messages"].to_string();
    assert!(
        told.contains("s3cr3t") && told.contains("all done"),
        "{told}"
    );
    let done = done.says(&[
        "masked: .env (its committed version can be read)",
        "git: imported from the session:\n   release ",
        "and 33 more: `podbay sessions show` names them",
        "refs/heads/x$(id) is imported as refs/heads/podbay/",
        "refs/heads/bomb: it holds an object of 3000000 bytes",
    ]);
    let result = done.json();
    assert_eq!(result["changes"]["modified"], json!(["."]), "{result:#}");
    let branches = git(
        &env,
        &["for-each-ref", "--format=%(refname:short) %(subject)"],
    );
    assert!(
        !branches.contains("$(")
            && !branches.contains("bomb")
            && branches.contains("release two\n"),
        "{branches}"
    );
    assert!(
        branches
            .lines()
            .any(|line| line.starts_with("podbay/") && line.ends_with("/1 two")),
        "{branches}"
    );
    assert_eq!((mode(), before == 0o777), (0o777, false));
    run(&mut env.here(&["undo"])).expect(0);
    assert_eq!(mode(), before);
    env.assert_no_container();
}

#[test]
fn what_may_run_of_a_branch_that_is_not_checked_out_is_named_at_the_end() {
    let Some(env) = repository() else { return };
    let (result, _) = session(
        &env,
        &[
            "git checkout -q -b side && echo '{}' > package.json && echo all: > x.mine && git add . && git commit -q -m side && git checkout -q main \
           && echo all: > Makefile && git add Makefile && git commit -q -m main",
        ],
    );
    assert!(!env.path("package.json").exists(), "no file shows it");
    let named: Vec<&str> = result["may_run"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(
        named,
        [
            "Makefile: make obeys it when you run it",
            "package.json: npm or another package manager of node obeys it when you run it (it is in what was done with git)"
        ]
    );
    assert_eq!(
        git(&env, &["log", "--format=%s", "side", "main"])
            .lines()
            .count(),
        3,
        "it was taken over all the same"
    );
    env.assert_no_container();
}

#[test]
fn a_session_that_was_killed_is_taken_over_when_the_next_one_begins() {
    let Some(env) = repository() else { return };
    let _alone = alone_with_gc();
    let command = "echo two >> a.txt && git commit -q -a -m two && git init -q new && touch begun && sleep 600";
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": command }))
        .start_blocking();
    let task = start(&mut env.task(&model, &["work"]));
    env.wait_for("begun");
    let real = fingerprint(&env.path(".git"));
    task.signal(Signal::SIGKILL);
    task.wait();
    env.assert_no_container();
    assert_eq!(volumes(&env).len(), 1);
    let said = run(&mut env.podbay(&["gc"])).expect(0).text();
    assert_eq!(volumes(&env).len(), 1, "what is in it is nowhere else");
    let place = env.project().display().to_string();
    assert!(
        said.contains(&format!(
            "kept {}: what a session in {place} did with git",
            volumes(&env)[0]
        )),
        "{said}"
    );
    assert_eq!(fingerprint(&env.path(".git")), real);
    let (result, told) = session(&env, &["git log --format=%s"]);
    assert!(
        told.contains("two\\\\none") || told.contains("two\\none"),
        "{told}"
    );
    assert_eq!(git(&env, &["log", "--format=%s"]), "two\none\n");
    assert_eq!(git(&env, &["status", "--porcelain"]), "?? begun\n");
    assert!(!env.path("new/.git").exists());
    assert!(
        result["warnings"].to_string().contains("new/.git is now "),
        "{result:#}"
    );
    assert_eq!(volumes(&env), Vec::<String>::new());
    env.assert_no_container();
}

#[test]
fn what_the_person_did_meanwhile_stays_and_what_cannot_join_it_is_kept() {
    let Some(env) = repository() else { return };
    let _alone = alone_with_gc();
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "echo two >> a.txt; git commit -q -a -m two; git branch side; touch begun; while ! test -e go; do sleep 0.05; done"}))
        .says("Done.")
        .start_blocking();
    let task = start(&mut env.task(&model, &["work"]));
    env.wait_for("begun");
    git(&env, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    env.write("go", "");
    let result = task.wait().expect(0).json();
    assert_eq!(git(&env, &["log", "--format=%s"]), "mine\none\n");
    assert_eq!(git(&env, &["log", "--format=%s", "side"]), "two\none\n");
    let warnings = result["warnings"].to_string();
    assert!(
        warnings.contains("refs/heads/main: moved here meanwhile")
            && warnings.contains("it stays in the volume"),
        "{result:#}"
    );
    assert_eq!(volumes(&env).len(), 1);
    let (result, _) = session(&env, &["true"]);
    assert_eq!(about_git(&result), Vec::<&str>::new(), "it is told once");
    let left = volumes(&env);
    assert_eq!(left.len(), 1);
    let gc = |flags: &[&str]| run(env.podbay(&["gc"]).args(flags)).expect(0).text();
    for flags in [&[][..], &["--snapshots"]] {
        let said = gc(flags);
        assert!(
            said.contains(&format!("kept {}: ", left[0])) && said.contains("podbay gc --git"),
            "{said}"
        );
    }
    assert_eq!(volumes(&env), left, "nothing is removed unasked");
    assert!(gc(&["--git"]).contains(&format!("removed {}\n", left[0])));
    assert_eq!(volumes(&env), Vec::<String>::new());
    env.assert_no_container();
}

/// A project with a submodule, hooks in its tree and a secret that git tracks.
pub(super) fn full_repository() -> Option<TestBox> {
    let env = repository()?;
    let other = env.beside("other");
    std::fs::create_dir(&other).expect("made");
    for words in [
        &["init", "-q", "-b", "main"][..],
        &["commit", "-q", "--allow-empty", "-m", "sub"],
    ] {
        let (text, is_good) = try_git(&env, &other.display().to_string(), words);
        assert!(is_good, "{text}");
    }
    git(
        &env,
        &[
            "submodule",
            "--quiet",
            "add",
            &other.display().to_string(),
            "sub",
        ],
    );
    env.write(
        "tools/hooks/pre-commit",
        "#!/bin/sh\ntouch \"$(dirname \"$0\")/../../hooked\"\n",
    );
    std::fs::set_permissions(
        env.path("tools/hooks/pre-commit"),
        PermissionsExt::from_mode(0o755),
    )
    .expect("set");
    env.write(".env", "SECRET=1\n");
    git(&env, &["add", "."]);
    git(&env, &["commit", "-q", "-m", "all"]);
    git(&env, &["config", "core.hooksPath", "tools/hooks"]);
    Some(env)
}

#[test]
fn in_the_sandbox_of_up_git_can_only_read_and_that_is_said() {
    let Some(env) = repository() else { return };
    run(&mut env.here(&["up"])).expect(0);
    let (result, told) = session(
        &env,
        &["git log --format=%s; echo two >> a.txt; git commit -q -a -m two; git init -q new"],
    );
    run(&mut env.here(&["down"])).expect(0);
    assert!(
        told.contains("one") && told.contains("Read-only file system"),
        "{told}"
    );
    let said = about_git(&result).join("\n");
    assert!(
        said.contains("git can only read in this session: the sandbox of `podbay up`"),
        "{said}"
    );
    assert!(
        said.contains("new/.git is now ") && !env.path("new/.git").exists(),
        "{said}"
    );
    assert_eq!(git(&env, &["log", "--format=%s"]), "one\n");
    assert_eq!(volumes(&env), Vec::<String>::new());
    env.assert_no_container();
}
