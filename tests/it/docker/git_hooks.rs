//! Hooks and the file system monitor: what a session leaves for the user's git to run by itself,
//! and then a day of it. Each program is seen to run where no sandbox is.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::git::fingerprint;
use super::git::full_repository;
use super::git::git;
use super::git::give_all;
use super::git::session;
use super::git::try_git;
use super::git_rows::program;
use super::git_rows::ran;
use super::test_box::TestBox;

/// What a hostile command does to have a program of its own run by the user's git, in a sandbox or,
/// as a control, in the project itself. The programs are named by `$1`, where the user's git
/// finds them; with `$2` a setting says that hooks lie elsewhere.
const ATTACK: &str = r#"
place=$1; cat .env
for git in .git .git/modules/sub sub/.git nested/.git .git/worktrees/tree; do
  mkdir -p $git/hooks $git/info
  for hook in pre-commit post-commit post-checkout post-index-change reference-transaction pre-auto-gc prepare-commit-msg post-merge; do
    cp evil/hook $git/hooks/$hook
  done
  for file in config config.worktree; do
    git config -f $git/$file core.fsmonitor "$place/evil/fsmonitor"
    test -z "$2" || git config -f $git/$file core.hooksPath "$place/hooks"
    git config -f $git/$file diff.external "$place/evil/external"
    git config -f $git/$file filter.x.clean "$place/evil/clean"
    git config -f $git/$file filter.x.smudge "$place/evil/smudge"
    git config -f $git/$file alias.st "!$place/evil/alias"
  done
  echo '* filter=x' > $git/info/attributes
done
mkdir -p hooks && cp evil/hook hooks/pre-commit; cp evil/hook tools/hooks/pre-commit
rm -f sub/.git && git init -q sub && git -C sub config core.fsmonitor "$place/evil/fsmonitor"
git init -q nested && git -C nested config core.fsmonitor "$place/evil/fsmonitor"
git init -q --bare bare && git -C bare config core.fsmonitor "$place/evil/fsmonitor"
mv .git .git.away && mkdir .git && cp -r .git.away/. .git
git update-index --index-info < /dev/null
git symbolic-ref refs/heads/lead refs/heads/main; ln -s ../../../../../../../etc/passwd .git/refs/heads/link
printf 'x' > .git/refs/heads/odd; echo 'ref: refs/heads/../../../x' > .git/refs/heads/out
echo '* filter=x diff=x merge=x' > .gitattributes; git add .gitattributes; git commit -q --no-verify -m evil
true
"#;

/// What a user does with git all day.
const EVERYDAY: [&[&str]; 9] = [
    &["status"],
    &["diff"],
    &["add", "own.txt"],
    &["commit", "-q", "-m", "own"],
    &["log", "--oneline"],
    &["checkout", "-q", "-b", "own"],
    &["stash", "list"],
    &["submodule", "status"],
    &["fsck"],
];

/// What of it runs on such a day where nothing is in its way, hooks where git looks for them by
/// itself.
const RUNS: [&str; 9] = [
    "alias",
    "clean",
    "external",
    "fsmonitor",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "pre-commit",
    "reference-transaction",
];

/// A project with a submodule, a worktree beside it, hooks in its tree or where git looks for them
/// by itself, and the programs of the attack.
fn armed(by_path: bool) -> Option<TestBox> {
    let env = full_repository()?;
    if !by_path {
        git(&env, &["config", "--unset", "core.hooksPath"]);
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
    give_all(&env.beside("tree"));
    env.write("attack.sh", ATTACK);
    for name in ["hook", "fsmonitor", "external", "clean", "smudge", "alias"] {
        let path = format!("evil/{name}");
        env.write(&path, program(&env));
        std::fs::set_permissions(env.path(&path), PermissionsExt::from_mode(0o755)).expect("set");
    }
    give_all(&env.project());
    Some(env)
}

/// Does what a user does, in the project and in the worktree beside it; with `must_work` all of
/// it works.
fn day(env: &TestBox, must_work: bool) {
    env.write("own.txt", "mine");
    let _ = try_git(env, "", &["st"]);
    for words in EVERYDAY {
        env.write("a.txt", format!("{words:?}"));
        let (text, is_good) = try_git(env, "", words);
        assert!(is_good || !must_work, "git {words:?}: {text}");
    }
    for words in [
        &["status"][..],
        &["commit", "-q", "--allow-empty", "-m", "own"],
        &["checkout", "-q", "-b", "own-tree"],
    ] {
        let (text, is_good) = try_git(env, "../tree", words);
        assert!(
            is_good || !must_work,
            "git {words:?} in the worktree: {text}"
        );
    }
}

#[track_caller]
fn check_that_nothing_runs(by_path: bool) {
    let Some(env) = armed(by_path) else { return };
    let control = armed(by_path).expect("the first one was made");
    let real = fingerprint(&env.path(".git"));
    let place = env.project().display().to_string();
    let (result, told) = session(
        &env,
        &[
            "git status --porcelain; git -C sub status --porcelain; git commit -a -m none",
            "echo good > good.txt && git add good.txt && git commit -q -m good",
            &format!("sh attack.sh {place} {}", if by_path { "path" } else { "" }),
        ],
    );
    assert!(
        !told.contains("SECRET") && told.contains("nothing added to commit"),
        "a masked file is not changed for git: {told}"
    );
    // Git never runs from what the session left, and what it made is out of the project.
    let aside = result["git"]["moved_aside"].to_string();
    for path in ["bare", "nested/.git"] {
        assert!(aside.contains(&format!("{path} is now ")), "{aside}");
    }
    day(&env, true);
    for words in EVERYDAY {
        // A folder that was a repository: what there is to do is not the question.
        let _ = try_git(&env, "nested", words);
    }
    assert_eq!(ran(&env), Vec::<String>::new());
    assert_eq!(
        env.path("hooked").exists(),
        by_path,
        "the user's own hook runs, where there is one"
    );
    assert!(
        git(&env, &["log", "--format=%s", "main"]).contains("good\n"),
        "what was committed in earnest is there: {result:#}"
    );
    assert_eq!(git(&env, &["show", "main:.env"]), "SECRET=1\n");
    let config = real
        .iter()
        .find(|(name, _)| name.ends_with("/.git/config"))
        .expect("a config");
    assert_eq!(&std::fs::read(config.0).expect("read"), config.1);
    env.assert_no_container();

    // The same without a sandbox.
    let mut shell = Command::new("sh");
    shell.args([
        "attack.sh",
        &control.project().display().to_string(),
        if by_path { "path" } else { "" },
    ]);
    shell
        .current_dir(control.project())
        .env("HOME", "/nonexistent")
        .output()
        .expect("sh");
    for name in ran(&control) {
        std::fs::remove_file(control.path(&format!("pwn.{name}"))).expect("removed");
    }
    day(&control, false);
    let ran = ran(&control);
    for name in RUNS {
        let is_elsewhere = by_path && name.contains('-') && name != "pre-commit";
        assert_eq!(
            ran.contains(&name.to_owned()),
            !is_elsewhere,
            "outside of a sandbox {name} works: {ran:?}"
        );
    }
}

#[test]
fn g_01_hooks_of_a_session_are_not_run_by_the_persons_git() {
    check_that_nothing_runs(false);
}

#[test]
fn g_01_after_an_attack_from_a_session_the_persons_git_runs_nothing_of_it() {
    check_that_nothing_runs(true);
}
