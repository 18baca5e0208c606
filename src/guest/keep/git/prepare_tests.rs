//! Tests of git in a session's folder, while the real repository stays as it is.

mod user_settings;

use std::fs;
use std::os::unix::fs::symlink;

use super::prepare::MAX_ATTRIBUTES;
use super::prepare::MAX_CONFIG;
use super::sample::LinkedSample;
use super::sample::Sample;
use super::sample::SampleSession;
use super::sample::fingerprint;
use super::sample::run_git;
use podbay_wire::BytesPath;
use podbay_wire::keep::AttributesFile;
use podbay_wire::keep::GitRefusal;
use podbay_wire::keep::UserGitSettings;

fn sample() -> Sample {
    let sample = Sample::new();
    sample.commit("a file", "1\n");
    sample.commit("b", "1\n");
    sample.git(&["branch", "feature/gr\u{fc}n"]);
    sample.git(&["tag", "-a", "v1", "-m", "one"]);
    sample
}

/// Runs the usual git commands in a folder of the project.
fn day(session: &SampleSession, folder: &str) {
    let git = |words: &[&str]| session.sample.git_in(folder, words);
    let write = |path: &str, text: &str| session.sample.write(&format!("{folder}/{path}"), text);
    write("new file", "1\n");
    assert!(git(&["status", "--porcelain"]).contains("?? \"new file\""));
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "two"]);
    write("new file", "2\n");
    assert!(git(&["diff"]).contains("+2"));
    git(&["stash", "-q"]);
    git(&["stash", "pop", "-q", "--index"]);
    git(&["commit", "-q", "-a", "-m", "more"]);
    let tip = git(&["rev-parse", "HEAD"]);
    git(&["checkout", "-q", "-b", "other", "HEAD~1"]);
    write("third", "3\n");
    git(&["add", "third"]);
    git(&["commit", "-q", "-m", "three"]);
    git(&["stash", "-q", "--include-untracked"]);
    git(&["rebase", "-q", tip.trim()]);
    git(&["gc", "-q", "--prune=now"]);
    git(&["fsck", "--strict"]);
    git(&["log", "--stat", "--all"]);
}

#[test]
fn a_deinitialized_submodule_is_refused_with_its_remedy() {
    let sample = Sample::with_submodules();
    sample.git(&["submodule", "--quiet", "deinit", "-f", "sub"]);
    let refused = SampleSession::of(sample).refused();
    let why = |path: &str| {
        refused
            .iter()
            .find(|(found, _)| found == path)
            .and_then(|(_, why)| why.clone())
    };
    assert_eq!(
        why(".git/modules/sub"),
        Some(GitRefusal::Nowhere),
        "{refused:?}"
    );
}

#[test]
fn git_works_in_the_session_and_leaves_the_real_repository_unchanged() {
    let session = SampleSession::of(sample());
    assert_eq!(session.git(&["status", "--porcelain"]), "");
    assert_eq!(
        session.git(&["branch", "--format=%(refname:short)"]),
        "feature/gr\u{fc}n\nmain\n"
    );
    assert_eq!(session.git(&["describe"]), "v1\n");
    assert!(session.git(&["reflog"]).contains("commit: b"));
    day(&session, "");
    session.check_untouched();
}

#[test]
fn packed_references_and_objects_are_available() {
    let sample = sample();
    sample.git(&["pack-refs", "--all"]);
    sample.git(&["gc", "-q"]);
    let newer = sample.commit("c", "1");
    let session = SampleSession::of(sample);
    assert_eq!(
        session.git(&["rev-parse", "main"]).trim(),
        newer,
        "what is loose counts more"
    );
    day(&session, "");
    session.check_untouched();
}

#[test]
fn staged_and_stashed_changes_are_available() {
    let sample = sample();
    sample.write("b", "stashed\n");
    sample.git(&["stash", "-q"]);
    sample.write("b", "stashed again\n");
    sample.git(&["stash", "-q"]);
    sample.write("b", "staged\n");
    sample.git(&["add", "b"]);
    sample.write("b", "not staged\n");
    let status = sample.git(&["status", "--porcelain"]);
    let session = SampleSession::of(sample);
    assert_eq!(session.git(&["status", "--porcelain"]), status);
    assert_eq!(session.git(&["stash", "list"]).lines().count(), 2);
    session.git(&["checkout", "-q", "-f"]);
    session.git(&["stash", "pop", "-q", "stash@{1}"]);
    assert_eq!(
        fs::read_to_string(session.sample.path("b")).expect("read"),
        "stashed\n"
    );
    session.check_untouched();
}

#[test]
fn a_shallow_clone_works_and_stays_shallow() {
    let origin = sample();
    let sample = Sample::without_git();
    let from = format!("file://{}", origin.path("").display());
    sample.git(&["clone", "-q", "--depth=1", &from, "."]);
    let session = SampleSession::of(sample);
    assert_eq!(
        session.git(&["rev-parse", "--is-shallow-repository"]),
        "true\n"
    );
    session.sample.write("c", "1");
    session.git(&["add", "c"]);
    session.git(&["commit", "-q", "-m", "c"]);
    session.git(&["gc", "-q"]);
    assert_eq!(session.git(&["log", "--oneline"]).lines().count(), 2);
    assert!(
        session
            .git(&["status", "--branch", "--porcelain"])
            .contains("## main...origin/main [ahead 1]")
    );
    assert!(
        !fs::read_to_string(session.sample.path(".git/config"))
            .expect("read")
            .contains("file://")
    );
    session.check_untouched();
}

#[test]
fn a_detached_head_and_an_unborn_branch_work() {
    let detached = sample();
    detached.git(&["checkout", "-q", "--detach"]);
    let session = SampleSession::of(detached);
    day(&session, "");
    session.check_untouched();

    let session = SampleSession::of(Sample::new());
    session.sample.write("a", "1");
    session.git(&["add", "a"]);
    session.git(&["commit", "-q", "-m", "first"]);
    assert_eq!(session.git(&["log", "--format=%s %an"]), "first Ann\n");
    session.check_untouched();
}

#[test]
fn nested_submodules_work() {
    let session = SampleSession::of(Sample::with_submodules());
    let none = |path: &str| (path.to_owned(), None);
    assert_eq!(
        session.refused(),
        [
            none(".git/modules/sub/modules/deeper"),
            none(".git/modules/sub"),
            none(".git")
        ]
    );
    assert_eq!(session.git(&["status", "--porcelain"]), "");
    assert_eq!(
        session
            .git(&["submodule", "status", "--recursive"])
            .lines()
            .filter(|line| line.starts_with(' '))
            .count(),
        2
    );
    day(&session, "sub/deeper");
    day(&session, "sub");
    assert!(session.git(&["status", "--porcelain"]).contains(" M sub"));
    day(&session, "");
    session.check_untouched();
}

#[test]
fn a_submodule_that_cannot_be_prepared_does_not_stop_git_around_it() {
    let sample = Sample::with_submodules();
    sample.git_in("sub", &["config", "extensions.partialClone", "origin"]);
    let session = SampleSession::of(sample);
    assert_eq!(
        session.refused(),
        [
            (".git/modules/sub".into(), Some(GitRefusal::Partial)),
            (".git".into(), None)
        ]
    );
    assert_eq!(session.git(&["status", "--porcelain"]), "");
    session.sample.write("file", "2");
    session.git(&["commit", "-q", "-a", "-m", "two"]);
    session.check_untouched();
    // Unless git is told to ignore it, it treats it as changed, and without its folder it dies.
    let config = session.sample.path(".git/config");
    let text = fs::read_to_string(&config).expect("read");
    assert!(text.contains("ignore"));
    fs::write(&config, text.replace("ignore", "x")).expect("written");
    assert!(session.git(&["status", "--porcelain"]).contains(" M sub"));
    fs::remove_dir_all(session.sample.path(".git/modules/sub")).expect("removed");
    assert!(!run_git(&session.sample.path(""), &["status"]).1);
}

#[test]
fn a_linked_worktree_works() {
    let linked = LinkedSample::new();
    let before = fingerprint(&linked.main);
    assert_eq!(
        linked.prepare("/some/other/.git").refused,
        Some(GitRefusal::NotOurs)
    );
    let sample = &linked.sample;
    let prepared = linked.prepare(&sample.path(".git").display().to_string());
    assert_eq!(prepared.refused, None);
    fs::write(
        sample.path(".git"),
        prepared.pointer.expect("a pointer").as_bytes(),
    )
    .expect("written");
    assert_eq!(
        sample.git(&["status", "--porcelain", "--branch"]),
        "## side\n"
    );
    let side = sample.commit("a", "1");
    let fault = linked
        .try_prepare(&sample.path(".git").display().to_string())
        .expect_err("it would take the commit along");
    assert!(
        fault.to_string().contains("has a git folder already"),
        "{fault}"
    );
    assert_eq!(sample.git(&["rev-parse", "side"]).trim(), side);
    sample.git(&["checkout", "-q", "-b", "other"]);
    sample.write("a", "2");
    sample.git(&["stash", "-q"]);
    assert_eq!(fingerprint(&linked.main), before);
}

#[track_caller]
fn check_refused(make: impl FnOnce(&Sample), expected: &GitRefusal) {
    let sample = sample();
    make(&sample);
    let session = SampleSession::of(sample);
    assert_eq!(
        session.refused(),
        [(".git".to_owned(), Some(expected.clone()))]
    );
    assert_eq!(
        fs::read_dir(session.sample.path(".git"))
            .expect("a folder")
            .count(),
        0,
        "nothing is made then"
    );
    session.check_untouched();
}

#[test]
fn unsupported_repositories_are_refused_with_a_reason() {
    check_refused(
        |sample| drop(sample.git(&["config", "extensions.objectFormat", "sha256"])),
        &GitRefusal::Sha256,
    );
    check_refused(
        |sample| sample.write(".git/objects/info/alternates", "/elsewhere\n"),
        &GitRefusal::Alternates {
            from: "/elsewhere".into(),
        },
    );
    check_refused(
        |sample| sample.write(".git/objects/pack/pack-1.promisor", ""),
        &GitRefusal::Partial,
    );
    check_refused(
        |sample| sample.write(".gitattributes", "*.bin filter=lfs diff=lfs\n"),
        &GitRefusal::LargeFiles,
    );
    check_refused(
        |sample| drop(sample.commit("deep/.gitattributes", "*.bin filter=lfs\n")),
        &GitRefusal::LargeFiles,
    );
    check_refused(
        |sample| drop(sample.git(&["update-index", "--split-index"])),
        &GitRefusal::SplitIndex,
    );
    check_refused(
        |sample| drop(sample.git(&["config", "core.worktree", "/tmp"])),
        &GitRefusal::Elsewhere {
            path: "/tmp".into(),
        },
    );
    check_refused(
        |sample| sample.write(".git/MERGE_HEAD", "x"),
        &GitRefusal::UnderWay {
            what: "a merge".into(),
        },
    );
    check_refused(
        |sample| {
            fs::rename(sample.path(".git/objects"), sample.beside("objects")).expect("moved");
            symlink(sample.beside("objects"), sample.path(".git/objects")).expect("linked");
        },
        &GitRefusal::Linked {
            path: "objects".into(),
        },
    );
    check_refused(
        |sample| {
            sample.git(&["checkout", "-q", "-b", "other"]);
            sample.commit("b", "2");
            sample.git(&["checkout", "-q", "main"]);
            sample.commit("b", "3");
            assert!(
                !run_git(&sample.path(""), &["merge", "-q", "other"]).1,
                "there is a conflict"
            );
            fs::remove_file(sample.path(".git/MERGE_HEAD")).expect("removed");
        },
        &GitRefusal::Unmerged,
    );
    check_refused(
        |sample| sample.write(".git/HEAD", "nonsense"),
        &GitRefusal::Broken {
            path: "HEAD".into(),
            problem: "it names neither a branch nor a commit".into(),
        },
    );
}

#[test]
fn a_real_reftable_is_refused() {
    let sample = Sample::without_git();
    sample.git(&["init", "-q", "--ref-format=reftable"]);
    let session = SampleSession::of(sample);
    assert_eq!(
        session.refused(),
        [(
            ".git".to_owned(),
            Some(GitRefusal::RefStorage {
                storage: "reftable".into()
            })
        )]
    );
}

#[test]
fn a_hidden_file_of_a_submodule_is_hidden_in_its_own_index() {
    let sample = Sample::with_submodules();
    sample.write("sub/.env", "secret");
    sample.git_in("sub", &["add", "-A"]);
    sample.git_in("sub", &["commit", "-q", "-m", "env"]);
    sample.commit(".env", "secret");
    let session = SampleSession::hiding(sample, &["sub/.env", ".env", "sub/new.pem"]);
    let hidden: Vec<Vec<BytesPath>> = session
        .prepared
        .repositories
        .iter()
        .map(|one| one.hidden.clone())
        .collect();
    assert_eq!(hidden, [vec![], vec![".env".into()], vec![".env".into()]]);
    for path in [".env", "sub/.env", "sub/new.pem"] {
        session.sample.write(path, "");
    }
    assert_eq!(session.git(&["status", "--porcelain"]), "");
    session.check_untouched();
}

#[test]
fn a_sparse_checkout_stays_sparse() {
    let sample = sample();
    sample.commit("deep/x", "1");
    sample.git(&["sparse-checkout", "set", "--no-sparse-index", "other"]);
    assert!(!sample.path("deep").exists());
    let session = SampleSession::of(sample);
    assert_eq!(session.git(&["status", "--porcelain"]), "");
    session.sample.write("b", "2");
    session.git(&["commit", "-q", "-a", "-m", "two"]);
    assert!(session.git(&["ls-files"]).contains("deep/x"));
    session.check_untouched();
}
