use std::fs;

use super::super::sample::ID;
use super::super::sample::Sample;
use super::super::sample::SampleSession;
use super::*;

fn look(case: &SampleSession) -> Option<PendingGit> {
    pending_git(
        &case.sample.beside("state"),
        Some(&case.sample.path(".git")),
        ID,
    )
}

fn told(case: &SampleSession) -> Vec<String> {
    look(case).expect("looked at").lines()
}

#[test]
fn of_many_odd_names_some_are_reported_after_single_problems() {
    let sample = Sample::new();
    sample.commit("a", "1\n");
    let case = SampleSession::of(sample);
    for n in 0..MOST_ODD + 20 {
        case.sample.write(
            &format!(".git/refs/notes/{n}"),
            &format!("{}\n", "1".repeat(40)),
        );
    }
    case.sample.write(".git/HEAD", "nonsense");
    let told = told(&case);
    assert_eq!(told.len(), MOST_ODD + 1);
    assert!(
        told[0].contains("HEAD: names neither") && told[MOST_ODD] == "git: and 21 more",
        "{told:?}"
    );
}

#[test]
fn pending_work_is_found_without_git_and_reading_alone_is_none() {
    let sample = Sample::new();
    sample.commit("a", "1");
    let case = SampleSession::of(sample);
    case.git(&["status"]);
    case.git(&["log"]);
    assert_eq!(told(&case), Vec::<String>::new());
    for n in ["22", "333"] {
        case.sample.write("a", n);
        case.git(&[
            "commit",
            "-q",
            "-a",
            "-m",
            &format!("take \x1b[2J{n}\n\nwith more"),
        ]);
    }
    let lines = told(&case);
    assert!(
        lines.len() == 1
            && lines[0].starts_with("commits: main ")
            && lines[0].ends_with(" (2) take [2J333"),
        "{lines:?}"
    );
    case.git(&["commit", "-q", "--amend", "-m", "take again"]);
    assert!(
        told(&case)[0].ends_with(" (2) take again"),
        "what it amended is the session's: {:?}",
        told(&case)
    );
    case.git(&["checkout", "-q", "-b", "side"]);
    case.sample.write("b", "1");
    case.git(&["add", "b"]);
    case.git(&["stash", "-q"]);
    let lines = told(&case);
    assert!(
        lines[1].starts_with("commits: side new, ") && lines[1].ends_with("(2) take again"),
        "{lines:?}"
    );
    assert!(
        lines[2].starts_with("stash: WIP on side") && lines[3] == "checked out: side",
        "{lines:?}"
    );
    // Packed commits are not counted.
    case.git(&["gc", "-q"]);
    let lines = told(&case);
    assert!(
        lines[0].starts_with("commits: main ") && !lines[0].contains('('),
        "{lines:?}"
    );
    case.check_untouched();
}

#[test]
fn other_references_stay_pending_unless_a_branch_includes_them() {
    let sample = Sample::new();
    let first = sample.commit("a", "1");
    sample.git(&["update-ref", "refs/remotes/origin/main", &first]);
    let case = SampleSession::of(sample);
    let name = |name: &str, object: &str| {
        case.git(&["update-ref", name, object]);
    };
    // What existed before, and what a branch leads to, is not new under any name.
    name("refs/original/refs/heads/main", &first);
    let second = case.sample.commit("b", "1");
    let third = case.sample.commit("c", "1");
    name("refs/remotes/origin/main", &second);
    name("refs/changes/1", &third);
    assert_eq!(told(&case).len(), 1, "{:?}", told(&case));
    case.git(&["reset", "-q", "--hard", &second]);
    let lines = told(&case);
    assert!(
        lines.len() == 2 && lines[1].contains("refs/changes/1: is neither a branch nor a tag"),
        "{lines:?}"
    );
    case.git(&["reset", "-q", "--hard", &first]);
    let lines = told(&case).join("\n");
    assert!(
        lines.contains("refs/changes/1: ")
            && lines.contains("refs/remotes/origin/main: ")
            && !lines.contains("original"),
        "{lines}"
    );
    // Between packed commits the relation is not known.
    case.git(&["update-ref", "-d", "refs/changes/1"]);
    case.git(&["gc", "-q"]);
    assert!(
        told(&case)
            .join("\n")
            .contains("refs/remotes/origin/main: "),
        "{:?}",
        told(&case)
    );
}

#[test]
fn detached_heads_of_worktrees_are_reported_unless_a_branch_includes_them() {
    let sample = Sample::new();
    sample.commit("a", "1");
    let case = SampleSession::of(sample);
    let place = case.sample.beside("added");
    case.git(&[
        "worktree",
        "add",
        "-q",
        "--detach",
        place.to_str().expect("text"),
    ]);
    assert_eq!(told(&case), Vec::<String>::new());
    let in_added = |words: &[&str]| case.sample.git_in("../added", words);
    in_added(&["commit", "-q", "--allow-empty", "-m", "there"]);
    let lines = told(&case);
    assert!(
        lines.len() == 1 && lines[0].contains("worktrees/added/HEAD: is a detached HEAD there, "),
        "{lines:?}"
    );
    in_added(&["update-ref", "refs/worktree/mine", "HEAD"]);
    in_added(&["checkout", "-q", "main~0"]);
    assert!(
        told(&case)[0].contains("worktrees/added/refs/worktree/mine: is "),
        "{:?}",
        told(&case)
    );
    in_added(&["branch", "kept", "refs/worktree/mine"]);
    let lines = told(&case);
    assert!(
        lines.len() == 1 && lines[0].starts_with("commits: kept new, "),
        "{lines:?}"
    );
    case.check_untouched();
}

#[test]
fn left_detached_commits_are_reported_unless_a_branch_includes_them() {
    let sample = Sample::new();
    sample.commit("a", "1");
    let case = SampleSession::of(sample);
    let empty = |name: &str| case.git(&["commit", "-q", "--allow-empty", "-m", name]);
    let tip = || case.git(&["rev-parse", "HEAD"]).trim().to_owned();
    // A replaced commit is no loss.
    case.git(&["checkout", "-q", "--detach"]);
    empty("one");
    case.git(&["commit", "-q", "--amend", "--allow-empty", "-m", "amended"]);
    empty("two");
    case.git(&["rebase", "-q", "--force-rebase", "main"]);
    case.git(&["reset", "-q", "--hard", "main"]);
    case.git(&["checkout", "-q", "main"]);
    assert_eq!(told(&case), Vec::<String>::new());
    case.git(&["checkout", "-q", "--detach"]);
    empty("three");
    let three = tip();
    case.git(&["checkout", "-q", "main"]);
    case.git(&["checkout", "-q", &three]);
    empty("four");
    let four = tip();
    let lines = told(&case);
    assert!(
        lines.len() == 1 && lines[0].starts_with("checked out: "),
        "{lines:?}"
    );
    case.git(&["checkout", "-q", "main"]);
    let lines = told(&case);
    let expected = format!(
        "HEAD: was moved away from {}, which no branch or tag includes",
        &four[..12]
    );
    assert!(
        lines.len() == 1 && lines[0].contains(&expected),
        "three comes before four: {lines:?}"
    );
    case.git(&["branch", "kept", &three]);
    assert_eq!(
        told(&case).len(),
        2,
        "four is there alone: {:?}",
        told(&case)
    );
    case.git(&["branch", "-f", "kept", &four]);
    assert_eq!(told(&case).len(), 1, "{:?}", told(&case));
    // A commit that a branch was moved away from is no loss, as with a reset.
    case.git(&["branch", "-f", "kept", &three]);
    assert_eq!(told(&case).len(), 1, "{:?}", told(&case));
    // The same in an added worktree.
    let place = case.sample.beside("added");
    case.git(&[
        "worktree",
        "add",
        "-q",
        "--detach",
        place.to_str().expect("text"),
    ]);
    case.sample.git_in(
        "../added",
        &["commit", "-q", "--allow-empty", "-m", "there"],
    );
    case.sample
        .git_in("../added", &["checkout", "-q", "--detach", "main"]);
    let lines = told(&case);
    assert!(
        lines.len() == 2 && lines[1].contains("worktrees/added/HEAD: was moved away from "),
        "{lines:?}"
    );
    case.check_untouched();
}

#[test]
fn a_branch_with_a_new_history_is_reported_as_such() {
    let sample = Sample::new();
    sample.commit("a", "1");
    sample.commit("a", "2");
    let case = SampleSession::of(sample);
    case.git(&["commit", "-q", "--amend", "-m", "mend"]);
    assert!(told(&case)[0].ends_with("(1) mend"), "{:?}", told(&case));
    case.git(&["checkout", "-q", "--orphan", "anew"]);
    case.git(&["commit", "-q", "-m", "anew"]);
    case.git(&["branch", "-q", "-f", "main", "anew"]);
    let lines = told(&case);
    assert!(
        lines.iter().any(|line| line.ends_with(
            "(1) anew; with a new history, without the \
        commits that it had"
        )),
        "{lines:?}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("commits: anew new, ") && line.ends_with("(1) anew")),
        "{lines:?}"
    );
    case.check_untouched();
}

#[test]
fn rewritten_commits_of_a_branch_are_not_reported() {
    let sample = Sample::new();
    sample.commit("a", "1");
    let case = SampleSession::of(sample);
    case.git(&["checkout", "-q", "--detach"]);
    case.git(&["commit", "-q", "--allow-empty", "-m", "one"]);
    case.git(&["checkout", "-q", "-b", "side"]);
    case.git(&["commit", "-q", "--amend", "--allow-empty", "-m", "amended"]);
    case.git(&["checkout", "-q", "--detach", "main"]);
    case.git(&["commit", "-q", "--allow-empty", "-m", "two"]);
    case.git(&["branch", "deep/other"]);
    case.git(&["checkout", "-q", "main"]);
    case.git(&["checkout", "-q", "deep/other"]);
    case.git(&["commit", "-q", "--amend", "--allow-empty", "-m", "amended"]);
    let lines = told(&case).join("\n");
    assert!(
        lines.contains("commits: side new, ") && lines.contains("commits: deep/other new, "),
        "{lines}"
    );
    assert!(!lines.contains("moved away"), "{lines}");
}

#[test]
fn detached_commits_that_the_user_left_before_are_not_reported() {
    let sample = Sample::new();
    sample.commit("a", "1");
    sample.git(&["checkout", "-q", "--detach"]);
    sample.commit("b", "1");
    sample.git(&["checkout", "-q", "main"]);
    let case = SampleSession::of(sample);
    case.git(&["checkout", "-q", "-b", "side"]);
    case.sample.commit("c", "1");
    assert_eq!(told(&case).len(), 2, "{:?}", told(&case));
    // For packed commits it is not known which are borrowed.
    case.git(&["gc", "-q"]);
    let lines = told(&case).join("\n");
    assert!(!lines.contains("moved away"), "{lines}");
}

#[test]
fn a_submodule_commit_without_a_branch_is_reported() {
    let sample = Sample::with_submodules();
    let case = SampleSession::of(sample);
    let inside = |words: &[&str]| case.sample.git_in("sub", words);
    inside(&["checkout", "-q", "--detach"]);
    inside(&["commit", "-q", "--allow-empty", "-m", "inside"]);
    let left = inside(&["rev-parse", "HEAD"]);
    case.git(&["commit", "-q", "-a", "-m", "with what is inside"]);
    inside(&["checkout", "-q", "main"]);
    let lines = told(&case).join("\n");
    assert!(
        lines.contains(&format!("HEAD: was moved away from {}, ", &left[..12])),
        "{lines}"
    );
    inside(&["merge", "-q", "--ff-only", left.trim()]);
    assert!(
        !told(&case).join("\n").contains("moved away"),
        "{:?}",
        told(&case)
    );
}

#[test]
fn an_unreadable_session_folder_is_reported() {
    let sample = Sample::new();
    sample.commit("a", "1");
    let case = SampleSession::of(sample);
    let starts = case.sample.beside("state");
    assert_eq!(pending_git(&starts, None, ID), None);
    assert_eq!(
        pending_git(&starts, None, "another"),
        Some(PendingGit::default())
    );
    fs::write(case.sample.path(".git/packed-refs"), "odd\n").expect("written");
    assert!(
        told(&case)[0].contains("an invalid line"),
        "{:?}",
        told(&case)
    );
    fs::remove_file(case.sample.path(".git/packed-refs")).expect("removed");
    std::os::unix::fs::symlink("/etc/passwd", case.sample.path(".git/packed-refs"))
        .expect("linked");
    assert!(
        told(&case)[0].contains("cannot be read"),
        "{:?}",
        told(&case)
    );
    forget(&starts, ID).expect("forgotten");
    assert_eq!(look(&case), Some(PendingGit::default()));
}
