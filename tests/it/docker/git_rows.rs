//! The rows of git: what a session leaves in its own git folder, in the tree or in a repository
//! below, and then a day of the user's git. Each attack is seen to work where no sandbox is.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;

use serde_json::Value;
use serde_json::json;

use super::git::about_git;
use super::git::fingerprint;
use super::git::full_repository;
use super::git::git;
use super::git::give_all;
use super::git::repository;
use super::git::session;
use super::git::try_git;
use super::test_box::TestBox;
use crate::support::ScriptedModel;
use crate::support::test_env::run;
use crate::support::test_env::start;

/// A setting that has git start a program, and the word of the user's at which it does.
struct Lure {
    name: &'static str,
    key: &'static str,
    /// Whether a shell reads the value as an alias does.
    is_alias: bool,
    at: &'static [&'static str],
}

const fn lure(name: &'static str, key: &'static str, at: &'static [&'static str]) -> Lure {
    Lure {
        name,
        key,
        is_alias: false,
        at,
    }
}

/// What attributes lead to. The first ones need a tree without changes.
const BY_ATTRIBUTES: [Lure; 5] = [
    lure(
        "merge",
        "merge.x.driver",
        &["merge", "-q", "--no-edit", "other"],
    ),
    lure("command", "diff.x.command", &["diff"]),
    lure("textconv", "diff.x.textconv", &["log", "-p"]),
    lure("clean", "filter.x.clean", &["add", "a.txt"]),
    lure(
        "smudge",
        "filter.x.smudge",
        &["checkout", "HEAD", "--", "a.txt"],
    ),
];

const BY_SETTINGS: [Lure; 9] = [
    lure(
        "sequence",
        "sequence.editor",
        &["rebase", "-q", "-i", "HEAD~1"],
    ),
    lure("pager", "core.pager", &["log"]),
    lure("external", "diff.external", &["diff"]),
    lure("editor", "core.editor", &["commit", "--amend"]),
    lure("ssh", "core.sshCommand", &["fetch", "ssh://127.0.0.1:9/x"]),
    lure(
        "gpg",
        "gpg.program",
        &["commit", "-q", "--allow-empty", "-S", "-m", "signed"],
    ),
    lure("credential", "credential.helper", &["credential", "fill"]),
    lure(
        "uploadpack",
        "remote.origin.uploadpack",
        &["fetch", "-q", "origin"],
    ),
    Lure {
        name: "alias",
        key: "alias.st",
        is_alias: true,
        at: &["st"],
    },
];

/// What works in a repository in which nothing was left.
const EVERYDAY: [&[&str]; 6] = [
    &["status"],
    &["diff"],
    &["add", "own.txt"],
    &["commit", "-q", "-m", "own"],
    &["log", "--oneline"],
    &["fetch", "-q", "origin"],
];

/// Returns a program that says that it was run, by its name, and does what is asked of a filter or
/// a pager. It knows the project by where it lies on the machine, so that in a sandbox it can say
/// nothing.
pub(super) fn program(env: &TestBox) -> String {
    let place = env.project().display().to_string();
    format!(
        "#!/bin/sh\nname=$(basename \"$0\")\ntouch '{place}'/pwn.\"$name\"\ncase $name in clean|smudge|textconv|pager) cat \"$@\" ;; esac\n"
    )
}

/// A project with a submodule, a repository below, a worktree beside it, two branches to be merged,
/// a remote, and a program for each lure.
fn armed(lures: &[Lure]) -> Option<TestBox> {
    let env = full_repository()?;
    let lines = |first: &str, last: &str| format!("{first}\n{}{last}\n", "between\n".repeat(20));
    for (branch, first, last) in [
        ("main", "one", "two"),
        ("other", "one", "theirs"),
        ("main", "ours", "two"),
    ] {
        let _ = try_git(&env, "", &["checkout", "-q", "-b", branch]);
        git(&env, &["checkout", "-q", branch]);
        env.write("m.txt", lines(first, last));
        git(&env, &["add", "m.txt"]);
        git(&env, &["commit", "-q", "-m", "lines"]);
    }
    let remote = env.beside("remote").display().to_string();
    git(&env, &["init", "-q", "--bare", "-b", "main", &remote]);
    git(&env, &["push", "-q", &remote, "main"]);
    env.write("nested/a.txt", "below\n");
    for words in [
        &["init", "-q", "-b", "main"][..],
        &["add", "."],
        &["commit", "-q", "-m", "below"],
        &["commit", "-q", "--allow-empty", "-m", "more"],
    ] {
        let (text, is_good) = try_git(&env, "nested", words);
        assert!(is_good, "{text}");
    }
    for folder in ["", "sub", "nested"] {
        let _ = try_git(&env, folder, &["remote", "remove", "origin"]);
        let (text, is_good) = try_git(&env, folder, &["remote", "add", "origin", &remote]);
        assert!(is_good, "{text}");
    }
    git(
        &env,
        &[
            "worktree",
            "add",
            "-q",
            "-b",
            "tree",
            &env.beside("tree").display().to_string(),
        ],
    );
    for lure in lures {
        let path = format!("evil/{}", lure.name);
        env.write(&path, program(&env));
        std::fs::set_permissions(env.path(&path), PermissionsExt::from_mode(0o755)).expect("set");
    }
    env.write("attack.sh", attack(lures));
    give_all(&env.project());
    give_all(&env.beside("tree"));
    Some(env)
}

/// Writes every setting to every place where git may look for some. The programs are named by where
/// the user's git finds them.
fn attack(lures: &[Lure]) -> String {
    let mut text =
        "place=$1\nfor git in .git .git/modules/sub sub/.git nested/.git .git/worktrees/tree; do\n"
            .to_owned();
    for Lure {
        name,
        key,
        is_alias,
        ..
    } in lures
    {
        let mark = if *is_alias { "!" } else { "" };
        for file in ["config", "config.worktree"] {
            text.push_str(&format!(
                "  git config -f $git/{file} {key} \"{mark}$place/evil/{name}\"\n"
            ));
        }
    }
    text.push_str(
        "  mkdir -p $git/info; echo '* filter=x diff=x merge=x' > $git/info/attributes\ndone\n",
    );
    text.push_str("echo '* filter=x diff=x merge=x' > .gitattributes\ngit add .gitattributes\ngit commit -q -m attributes\ntrue\n");
    text
}

/// Runs git as the user does at a terminal, which they also give what it asks for.
fn at_terminal(env: &TestBox, folder: &str, words: &[&str]) {
    let asked = env.beside("asked");
    std::fs::write(&asked, "protocol=https\nhost=localhost\n\n").expect("written");
    let terminal = nix::pty::openpty(None, None).expect("a terminal");
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*"])
        .args(words)
        .current_dir(env.path(folder))
        .env_clear();
    git.env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("GIT_TERMINAL_PROMPT", "0");
    git.envs(["AUTHOR", "COMMITTER"].map(|role| (format!("GIT_{role}_NAME"), "Ann")));
    git.envs(["AUTHOR", "COMMITTER"].map(|role| (format!("GIT_{role}_EMAIL"), "ann@example.org")));
    // Where the settings name no other one.
    git.env("PAGER", "cat");
    git.stdin(File::open(&asked).expect("a file"))
        .stdout(terminal.slave)
        .stderr(Stdio::null());
    // Somebody looks at the terminal, which takes no more otherwise.
    let mut seen = File::from(terminal.master);
    let looks = std::thread::spawn(move || std::io::copy(&mut seen, &mut std::io::sink()));
    // Whether it succeeds is not the question.
    let _ = git.status().expect("git");
    drop(git);
    let _ = looks.join();
}

/// Returns which of the programs were run.
pub(super) fn ran(env: &TestBox) -> Vec<String> {
    let names = std::fs::read_dir(env.project())
        .expect("the project")
        .flatten();
    let mut ran: Vec<String> = names
        .filter_map(|entry| {
            Some(
                entry
                    .file_name()
                    .to_string_lossy()
                    .strip_prefix("pwn.")?
                    .to_owned(),
            )
        })
        .collect();
    ran.sort();
    ran
}

/// Does what starts the programs, one after the other, and returns which were.
fn day(env: &TestBox, folder: &str, lures: &[Lure]) -> Vec<String> {
    for name in ran(env) {
        std::fs::remove_file(env.path(&format!("pwn.{name}"))).expect("removed");
    }
    let file = Path::new(folder).join("a.txt");
    for lure in lures {
        if matches!(lure.at[0], "diff" | "add" | "checkout") {
            std::fs::write(
                env.path(&file.display().to_string()),
                format!("{}\n", lure.name),
            )
            .expect("written");
        }
        at_terminal(env, folder, lure.at);
    }
    ran(env)
}

#[track_caller]
fn check_that_nothing_runs(lures: &[Lure]) {
    let Some(env) = armed(lures) else { return };
    let control = armed(lures).expect("the first one was made");
    let settings = |env: &TestBox| {
        ["", "modules/sub/"]
            .map(|inner| env.read(&format!(".git/{inner}config")))
            .join(&env.read("nested/.git/config"))
    };
    let before = settings(&env);
    let place = env.project().display().to_string();
    let (result, told) = session(
        &env,
        &[&format!("sh attack.sh {place}; git config -l; ls -la .git")],
    );
    assert_eq!(settings(&env), before, "{told}");
    assert!(
        git(&env, &["log", "--format=%s"]).starts_with("attributes\n"),
        "what was committed is there: {result:#}"
    );
    for folder in ["", "sub", "nested", "../tree"] {
        assert_eq!(
            day(&env, folder, lures),
            Vec::<String>::new(),
            "in {folder:?}"
        );
        // Nothing that they were at stands in the way of what is done every day.
        for words in [
            &["merge", "--abort"][..],
            &["rebase", "--abort"],
            &["reset", "-q", "--hard"],
        ] {
            let _ = try_git(&env, folder, words);
        }
        std::fs::write(env.path(folder).join("own.txt"), "mine\n").expect("written");
        for words in EVERYDAY {
            let (text, is_good) = try_git(&env, folder, words);
            assert!(is_good, "git {words:?} in {folder:?}: {text}");
        }
        assert_eq!(ran(&env), Vec::<String>::new(), "in {folder:?}");
    }
    env.assert_no_container();

    // The same without a sandbox: each of them works.
    let place = control.project().display().to_string();
    let mut shell = Command::new("sh");
    shell
        .args(["attack.sh", &place])
        .current_dir(control.project())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_COUNT", "1");
    shell
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("GIT_AUTHOR_NAME", "x")
        .env("GIT_AUTHOR_EMAIL", "x@y");
    shell
        .env("GIT_COMMITTER_NAME", "x")
        .env("GIT_COMMITTER_EMAIL", "x@y")
        .output()
        .expect("sh");
    let mut names: Vec<&str> = lures.iter().map(|lure| lure.name).collect();
    names.sort_unstable();
    for folder in ["", "../tree"] {
        assert_eq!(
            day(&control, folder, lures),
            names,
            "outside of a sandbox they work in {folder:?}"
        );
    }
}

#[test]
fn g_03_what_attributes_lead_to_is_not_run_by_the_persons_git() {
    check_that_nothing_runs(&BY_ATTRIBUTES);
}

#[test]
fn g_04_programs_that_settings_name_are_not_run_by_the_persons_git() {
    check_that_nothing_runs(&BY_SETTINGS);
}

/// Returns the paths that the run says it moved out of the project.
fn moved_aside(result: &Value) -> String {
    result["git"]["moved_aside"].to_string()
}

#[test]
fn g_05_a_repository_below_keeps_its_hooks_and_settings_and_one_that_is_made_is_named() {
    let lures = [lure("fsmonitor", "core.fsmonitor", &["status"])];
    let Some(env) = armed(&lures) else { return };
    let control = armed(&lures).expect("the first one was made");
    // Deep in what is left out there are some, too.
    for project in [&env, &control] {
        project.write(".gitignore", "/vendor\n");
        project.write("vendor/a/b/a.txt", "below\n");
        for words in [
            &["init", "-q", "-b", "main"][..],
            &["add", "."],
            &["commit", "-q", "-m", "below"],
        ] {
            let (text, is_good) = try_git(project, "vendor/a/b", words);
            assert!(is_good, "{text}");
        }
        give_all(&project.project());
    }
    let arm = "for git in nested vendor/a/b deep/made vendor/c/made; do mkdir -p $git; git init -q $git; git -C $git config core.fsmonitor \"$1/evil/fsmonitor\"; \
               mkdir -p $git/.git/hooks; cp evil/fsmonitor $git/.git/hooks/post-index-change; done; true\n";
    for project in [&env, &control] {
        project.write("arm.sh", arm);
    }
    let there = ["nested/.git", "vendor/a/b/.git"];
    let before = there.map(|path| fingerprint(&env.path(path)));
    let (result, told) = session(&env, &[&format!("sh arm.sh {}", env.project().display())]);
    let moved = moved_aside(&result);
    assert!(
        moved.contains("deep/made/.git is now ") && moved.contains("vendor/c/made/.git is now "),
        "{told}\n{result:#}"
    );
    assert_eq!(there.map(|path| fingerprint(&env.path(path))), before);
    for folder in ["nested", "vendor/a/b", "deep/made", "vendor/c/made"] {
        assert_eq!(
            day(&env, folder, &lures),
            Vec::<String>::new(),
            "in {folder}"
        );
    }
    let (text, is_good) = try_git(&env, "nested", &["log", "--format=%s"]);
    assert_eq!((text.as_str(), is_good), ("more\nbelow\n", true));
    env.assert_no_container();

    let mut shell = Command::new("sh");
    shell
        .args(["arm.sh", &control.project().display().to_string()])
        .current_dir(control.project())
        .env("HOME", "/nonexistent");
    shell
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .output()
        .expect("sh");
    // The hook bears the name that it is called by; one that was just made has no index that could
    // change.
    let both = &["fsmonitor", "post-index-change"][..];
    for (folder, works) in [
        ("nested", both),
        ("vendor/a/b", both),
        ("deep/made", &both[..1]),
        ("vendor/c/made", &both[..1]),
    ] {
        assert_eq!(
            day(&control, folder, &lures),
            works,
            "outside of a sandbox it works in {folder}"
        );
    }
}

#[test]
fn g_08_a_commit_arrives_by_its_author_without_hooks_and_without_a_changed_setting() {
    let Some(env) = repository() else { return };
    git(&env, &["config", "user.name", "Berta"]);
    git(&env, &["config", "user.email", "berta@example.org"]);
    for hook in [
        "pre-commit",
        "commit-msg",
        "post-commit",
        "post-checkout",
        "reference-transaction",
        "post-rewrite",
        "post-index-change",
    ] {
        let path = format!(".git/hooks/{hook}");
        env.write(
            &path,
            "#!/bin/sh\ntouch \"$(git rev-parse --show-toplevel)/hooked\"\n",
        );
        std::fs::set_permissions(env.path(&path), PermissionsExt::from_mode(0o755)).expect("set");
    }
    let config = env.read(".git/config");
    let commit = "echo two > b.txt && git add b.txt && git commit -q -m two && git checkout -q -b topic && git commit -q --allow-empty -m three";
    let (result, told) = session(&env, &[commit]);
    assert_eq!(
        git(&env, &["log", "--format=%s by %an <%ae>", "topic", "-2"]),
        "three by Berta <berta@example.org>\ntwo by Berta <berta@example.org>\n"
    );
    assert_eq!(about_git(&result), Vec::<&str>::new(), "{told}");
    assert!(!env.path("hooked").exists(), "no hook ran for it");
    assert_eq!(env.read(".git/config"), config);
    git(&env, &["commit", "-q", "--allow-empty", "-m", "own"]);
    assert!(
        env.path("hooked").exists(),
        "the user's own commit has them run"
    );
    env.assert_no_container();
}

/// Returns what `ls -A` shows.
fn names(env: &TestBox) -> Vec<String> {
    let entries = std::fs::read_dir(env.project())
        .expect("the project")
        .flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn g_09_a_project_without_git_gets_none_and_one_that_is_made_works_until_it_is_moved() {
    let Some(env) = TestBox::new() else { return };
    let (result, _) = session(&env, &["ls -A"]);
    assert_eq!(
        (names(&env), moved_aside(&result)),
        (Vec::new(), "[]".to_owned()),
        "nothing comes by itself"
    );
    let made = "git init -q && echo x > a.txt && git add a.txt && git -c user.name=a -c user.email=a@b commit -q -m inside && git log --format=%s";
    let (result, told) = session(&env, &[made]);
    assert!(told.contains("inside"), "{told}");
    assert!(moved_aside(&result).contains(".git is now "), "{result:#}");
    assert_eq!(names(&env), ["a.txt"]);
    // What the user makes then is theirs.
    git(&env, &["init", "-q"]);
    assert_eq!(git(&env, &["status", "--porcelain"]), "?? a.txt\n");
    let (result, _) = session(
        &env,
        &["git add a.txt && git -c user.name=a -c user.email=a@b commit -q -m taken"],
    );
    assert_eq!(
        (
            git(&env, &["log", "--format=%s"]).as_str(),
            moved_aside(&result).as_str()
        ),
        ("taken\n", "[]")
    );
    env.assert_no_container();
}

#[test]
fn g_10_settings_that_the_person_replaces_meanwhile_are_neither_seen_nor_lost() {
    let Some(env) = repository() else { return };
    let wait = "touch begun; while ! test -e go; do sleep 0.05; done";
    let look = "git config -l; cat .git/config; git commit -q --allow-empty -m inside; git log --format=%s";
    let model = ScriptedModel::new()
        .calls("bash", json!({ "command": wait }))
        .calls("bash", json!({ "command": look }))
        .says("Done.")
        .start_blocking();
    let task = start(&mut env.task(&model, &["work"]));
    env.wait_for("begun");
    // As git does it: a new file in the place of the old one.
    let before = std::os::unix::fs::MetadataExt::ino(
        &std::fs::metadata(env.path(".git/config")).expect("a file"),
    );
    git(
        &env,
        &[
            "config",
            "remote.origin.url",
            "https://token-sesame@example.org/x",
        ],
    );
    assert_ne!(
        std::os::unix::fs::MetadataExt::ino(
            &std::fs::metadata(env.path(".git/config")).expect("a file")
        ),
        before
    );
    let config = env.read(".git/config");
    env.write("go", "");
    task.wait().expect(0);
    let told = model.requests().last().expect("a request").to_string();
    assert!(
        !told.contains("sesame") && told.contains("inside"),
        "{told}"
    );
    assert_eq!(
        (
            env.read(".git/config"),
            git(&env, &["log", "--format=%s"]).as_str()
        ),
        (config, "inside\none\n")
    );
    // A sandbox that has the real one sees what is there now.
    let seen = run(&mut env.here(&[
        "call",
        "bash",
        r#"{"command":"git config remote.origin.url"}"#,
    ]))
    .expect(0)
    .text();
    assert!(seen.contains("sesame"), "{seen}");
    env.assert_no_container();
}
