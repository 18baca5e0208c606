//! Tests that the checked-out branch and the user's index are moved together or not at all:
//! otherwise the user's next commit would revert what the session committed.

use std::fs;

use super::sample::Sample;
use super::sample::SampleSession;
use super::sample::moved;
use super::sample::run_git;
use super::sample::told;
use podbay_wire::keep::IndexImport;

fn session() -> SampleSession {
    let sample = Sample::new();
    sample.commit("a", "1\n");
    sample.commit("b", "1\n");
    SampleSession::of(sample)
}

/// Checks what the user's next commit would change, compared with the session's.
#[track_caller]
fn check_next_commit(sample: &Sample, own: &[&str]) {
    sample.git(&["commit", "-q", "--allow-empty", "-m", "next"]);
    let changed = sample.git(&["diff", "--name-only", "HEAD~1", "HEAD"]);
    assert_eq!(
        changed.lines().collect::<Vec<_>>(),
        own,
        "the user's own commit"
    );
}

/// Damages the session's folder after a commit there.
#[track_caller]
fn check_damaged(spoil: impl FnOnce(&SampleSession), expected: &str) {
    let session = session();
    session.sample.write("b", "theirs\n");
    session.git(&["add", "b"]);
    session.git(&["commit", "-q", "-m", "b"]);
    spoil(&session);
    let sample = session.end();
    // Meanwhile, on the host.
    sample.write("own", "1\n");
    sample.git(&["add", "own"]);
    let imported = sample.import_one();
    assert!(told(&imported).contains(expected), "{}", told(&imported));
    assert_eq!(moved(&imported), ["refs/heads/main"], "{}", told(&imported));
    assert_eq!(sample.git(&["status", "--porcelain"]), "A  own\n");
    check_next_commit(&sample, &["own"]);
    assert_eq!(sample.git(&["show", "HEAD:b"]), "theirs\n");
}

#[test]
fn the_index_follows_the_branch_though_the_sessions_is_unreadable() {
    check_damaged(
        |session| drop(session.git(&["update-index", "--split-index"])),
        "index: is split, so the session's staged",
    );
    check_damaged(
        |session| session.sample.write(".git/index", "nonsense"),
        "index: it ends too early",
    );
    check_damaged(
        |session| fs::remove_file(session.sample.path(".git/index")).expect("removed"),
        "",
    );
    check_damaged(
        |session| session.sample.write(".git/HEAD", "nonsense"),
        "HEAD: names neither a branch nor a commit",
    );
    let evil = |session: &SampleSession| {
        let blob = session.git(&["hash-object", "-w", "b"]);
        // Git itself accepts no such entry.
        session.git(&[
            "update-index",
            "--add",
            "--cacheinfo",
            &format!("100644,{},xgit/hooks/pre-commit", blob.trim()),
        ]);
        let path = session.sample.path(".git/index");
        let mut index =
            super::index::Index::parse(&fs::read(&path).expect("read")).expect("readable");
        index.forget_trees();
        index
            .entries
            .iter_mut()
            .filter(|entry| entry.name.starts_with(b"xgit"))
            .for_each(|entry| entry.name[0] = b'.');
        index
            .entries
            .sort_by(|one, other| one.name.cmp(&other.name));
        fs::write(&path, index.write()).expect("written");
    };
    check_damaged(evil, "index: ");
}

#[test]
fn an_unfinished_merge_of_the_session_reverts_none_of_its_commits() {
    let session = session();
    session.git(&["checkout", "-q", "-b", "other", "HEAD~1"]);
    session.sample.commit("b", "other\n");
    session.git(&["checkout", "-q", "main"]);
    session.sample.commit("c", "1\n");
    assert!(!run_git(&session.sample.path(""), &["merge", "-q", "other"]).1);
    let sample = session.end();
    let imported = sample.import_one();
    assert_eq!(moved(&imported), ["refs/heads/main", "refs/heads/other"]);
    assert!(
        told(&imported).contains("MERGE_HEAD: a merge was left unfinished in the session"),
        "{}",
        told(&imported)
    );
    check_next_commit(&sample, &[]);
}

/// Returns a repository with a merge or the like stopped at a conflict, and a session's work to
/// import.
fn stopped_at_conflict(of: &str) -> Sample {
    let session = session();
    session.sample.commit("c", "1\n");
    session.git(&["branch", "side"]);
    let sample = session.end();
    sample.git(&["checkout", "-q", "-b", "own", "HEAD~1"]);
    sample.write("b", "own\n");
    sample.git(&["add", "b"]);
    sample.git(&["commit", "-q", "-m", "own"]);
    sample.git(&["checkout", "-q", "main"]);
    assert!(
        !run_git(&sample.path(""), &[of, "own"]).1,
        "there is a conflict"
    );
    sample
}

#[test]
fn a_branch_stays_pending_while_the_user_merges_into_it() {
    for of in ["merge", "cherry-pick"] {
        let sample = stopped_at_conflict(of);
        let before = (
            sample.git(&["rev-parse", "HEAD"]),
            fs::read(sample.path(".git/index")).expect("read"),
        );
        for _ in 0..2 {
            let imported = sample.import_one();
            assert!(
                told(&imported).starts_with(
                    "refs/heads/main: is checked out here, and the index cannot follow it: a "
                ),
                "{}",
                told(&imported)
            );
            assert_eq!(imported.index, IndexImport::Kept);
            assert_eq!(
                (
                    sample.git(&["rev-parse", "HEAD"]),
                    fs::read(sample.path(".git/index")).expect("read")
                ),
                before
            );
        }
        assert!(
            sample.git(&["branch"]).contains("side"),
            "the other one came"
        );
        // The user aborts it.
        sample.git(&[of, "--abort"]);
        let imported = sample.import_one();
        assert_eq!(
            (moved(&imported), told(&imported).as_str()),
            (vec!["refs/heads/main".to_owned()], "")
        );
        assert_eq!(sample.git(&["status", "--porcelain"]), "");
        check_next_commit(&sample, &[]);
    }
}

#[test]
fn an_index_with_stash_conflicts_keeps_its_branch() {
    let session = session();
    session.sample.commit("c", "1\n");
    let sample = session.end();
    sample.write("b", "stashed\n");
    sample.git(&["stash", "-q"]);
    sample.write("b", "staged\n");
    sample.git(&["add", "b"]);
    sample.git(&["commit", "-q", "-m", "own"]);
    assert!(
        !run_git(&sample.path(""), &["stash", "pop"]).1,
        "there is a conflict"
    );
    sample.git(&["update-ref", "refs/heads/main", "HEAD~1"]);
    let imported = sample.import_one();
    assert!(
        told(&imported).contains("cannot follow it: yours holds a merge with conflicts"),
        "{}",
        told(&imported)
    );
    assert_eq!(moved(&imported), Vec::<String>::new());
}

#[test]
fn committed_entries_do_not_block_the_index() {
    let session = session();
    session.git(&["branch", "other"]);
    session.sample.commit("c", "1\n");
    let sample = session.end();
    sample.git(&["checkout", "-q", "-b", "own"]);
    sample.write("d", "1\n");
    sample.git(&["add", "d"]);
    let imported = sample.import_one();
    assert_eq!(
        (moved(&imported), told(&imported).as_str()),
        (
            vec!["refs/heads/main".to_owned(), "refs/heads/other".to_owned()],
            ""
        )
    );
    assert_eq!(imported.index, IndexImport::Unchanged);
    assert_eq!(sample.git(&["diff", "--cached", "--name-only"]), "d\n");
}

#[test]
fn staged_changes_stay_pending_with_their_branch() {
    let session = session();
    session.sample.commit("c", "1\n");
    session.sample.write("b", "staged\n");
    session.git(&["add", "b"]);
    let sample = session.end();
    sample.git(&["checkout", "-q", "-b", "own"]);
    let imported = sample.import_one();
    assert_eq!(
        (moved(&imported), imported.index),
        (vec!["refs/heads/main".to_owned()], IndexImport::Kept)
    );
    assert_eq!(
        told(&imported),
        "index: the staged changes are based on another commit than the one that is checked out \
        here\n"
    );
}

#[test]
fn a_branch_that_the_user_checked_out_is_not_moved_under_them() {
    let sample = Sample::new();
    sample.commit("a", "1\n");
    sample.git(&["branch", "other"]);
    let session = SampleSession::of(sample);
    session.git(&["checkout", "-q", "other"]);
    session.sample.commit("b", "1\n");
    session.git(&["checkout", "-q", "main"]);
    let sample = session.end();
    sample.git(&["checkout", "-q", "other"]);
    let imported = sample.import_one();
    assert!(
        told(&imported).starts_with(
            "refs/heads/other: is checked out here, and the session had something else"
        ),
        "{}",
        told(&imported)
    );
    assert_eq!(moved(&imported), Vec::<String>::new());
    sample.git(&["checkout", "-q", "main"]);
    assert_eq!(moved(&sample.import_one()), ["refs/heads/other"]);
}

#[test]
fn if_both_switched_to_the_same_branch_the_index_follows_it() {
    let sample = Sample::new();
    sample.commit("a", "1\n");
    sample.git(&["checkout", "-q", "-b", "other"]);
    sample.commit("b", "1\n");
    sample.git(&["checkout", "-q", "main"]);
    let session = SampleSession::of(sample);
    session.git(&["checkout", "-q", "other"]);
    session.sample.write("b", "2\n");
    session.git(&["commit", "-q", "-a", "-m", "b"]);
    let sample = session.end();
    sample.git(&["checkout", "-q", "-f", "other"]);
    let imported = sample.import_one();
    assert_eq!(
        (moved(&imported), told(&imported).as_str()),
        (vec!["refs/heads/other".to_owned()], "")
    );
    check_next_commit(&sample, &[]);
    assert_eq!(sample.git(&["show", "HEAD:b"]), "2\n");
}

#[test]
fn the_users_branch_is_not_switched_while_they_work_on_it() {
    let session = session();
    session.git(&["checkout", "-q", "-b", "fx"]);
    session.sample.commit("c", "1\n");
    let sample = session.end();
    sample.git(&["commit", "-q", "--allow-empty", "-m", "own"]);
    let imported = sample.import_one();
    assert_eq!(
        (moved(&imported), told(&imported).as_str()),
        (vec!["refs/heads/fx".to_owned()], "")
    );
    assert!(
        imported.notes[0].contains("refs/heads/fx checked out, which is not checked out here"),
        "{:?}",
        imported.notes
    );
    assert_eq!(sample.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main\n");
    assert_eq!(sample.git(&["diff", "--cached", "--name-only"]), "");
}
