//! Tests of repeated imports of a session of which some is still pending: what was imported is not
//! imported twice.

use super::pending::pending_git;
use super::pending::remove_taken;
use super::sample::ID;
use super::sample::Sample;
use super::sample::SampleSession;
use super::sample::moved;
use podbay_wire::keep::PendingGit;
use podbay_wire::keep::PendingRef;
use podbay_wire::keep::PendingRepository;

fn lines(sample: &Sample) -> Vec<String> {
    pending_git(&sample.beside("state"), Some(&sample.beside("session")), ID)
        .expect("looked at")
        .lines()
}

/// A session whose `main` is pending, because the user moved theirs, while a branch and a stash
/// were imported.
fn partly_taken() -> Sample {
    let sample = Sample::new();
    sample.commit("a", "1\n");
    let session = SampleSession::of(sample);
    session.sample.commit("b", "1\n");
    session.git(&["branch", "feat"]);
    session.sample.write("b", "stashed\n");
    session.git(&["stash", "-q"]);
    let sample = session.end();
    sample.git(&["commit", "-q", "--allow-empty", "-m", "own"]);
    let imported = sample.import_one();
    assert_eq!(
        (moved(&imported), imported.stashes.len()),
        (vec!["refs/heads/feat".to_owned()], 1)
    );
    sample
}

#[test]
fn imported_work_that_the_user_removed_stays_removed() {
    let sample = partly_taken();
    let said = lines(&sample);
    assert!(
        said.len() == 1 && said[0].starts_with("commits: main "),
        "{said:?}"
    );
    // The same state, as seen before the import.
    let of = |name: &str| PendingRef {
        name: name.into(),
        old: None,
        new: sample.git(&["rev-parse", "feat"]).trim().to_owned(),
        n_commits: None,
        subject: None,
        is_anew: false,
        called: None,
    };
    let names = [of("refs/heads/feat"), of("refs/heads/main")]
        .into_iter()
        .collect();
    let stashes = vec![
        sample
            .git(&["stash", "list", "--format=%gs"])
            .trim()
            .to_owned(),
    ];
    let mut seen = PendingGit {
        repositories: vec![PendingRepository {
            path: ".git".into(),
            names,
            stashes,
            ..PendingRepository::default()
        }],
    };
    remove_taken(&sample.beside("state"), ID, &mut seen);
    assert!(
        seen.lines().len() == 1 && seen.lines()[0].starts_with("commits: main "),
        "{seen:?}"
    );
    sample.git(&["branch", "-q", "-D", "feat"]);
    sample.git(&["stash", "drop", "-q"]);
    for _ in 0..2 {
        let imported = sample.import_one();
        assert_eq!(
            (
                moved(&imported),
                imported.stashes.len(),
                imported.not_imported.len()
            ),
            (Vec::new(), 0, 1),
            "{imported:?}"
        );
        assert_eq!(
            sample.git(&["branch", "--format=%(refname:short)"]),
            "main\n"
        );
        assert_eq!(sample.git(&["stash", "list"]), "");
    }
    sample.git(&["reset", "-q", "--soft", "HEAD~1"]);
    let imported = sample.import_one();
    assert_eq!(
        (moved(&imported), imported.not_imported.len()),
        (vec!["refs/heads/main".to_owned()], 0)
    );
    sample.git(&["diff", "--cached", "--quiet"]);
}

#[test]
fn branches_that_the_session_moved_further_are_imported_again() {
    let sample = partly_taken();
    // The session resumes in its folder.
    let folder = format!("--git-dir={}", sample.beside("session").display());
    let tree = format!("--work-tree={}", sample.path("").display());
    let session = |words: &[&str]| sample.git(&[&[folder.as_str(), tree.as_str()], words].concat());
    let main = session(&["rev-parse", "main"]);
    session(&[
        "update-ref",
        "refs/heads/feat",
        session(&["commit-tree", "-p", main.trim(), "-m", "two", "main^{tree}"]).trim(),
    ]);
    let said = lines(&sample);
    assert!(
        said.len() == 2 && said[0].starts_with("commits: feat ") && said[0].ends_with("(1) two"),
        "{said:?}"
    );
    let imported = sample.import_one();
    assert_eq!(moved(&imported), ["refs/heads/feat"]);
    assert_eq!(imported.moved[0].old.as_deref(), Some(main.trim()));
}

#[test]
fn a_session_that_continues_from_imported_work_imports_its_index() {
    let sample = Sample::new();
    sample.commit("a", "1\n");
    let session = SampleSession::of(sample);
    session.git(&["tag", "waits"]);
    session.sample.commit("b", "1\n");
    let sample = session.end();
    // Something stays pending, so the import is tried again.
    sample.git(&["tag", "waits", "HEAD"]);
    sample.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    sample.git(&["tag", "-f", "waits"]);
    sample.git(&["reset", "-q", "--soft", "HEAD~1"]);
    let imported = sample.import_one();
    assert_eq!(
        (moved(&imported), imported.not_imported.len()),
        (vec!["refs/heads/main".to_owned()], 1),
        "{imported:?}"
    );
    let folder = format!("--git-dir={}", sample.beside("session").display());
    let tree = format!("--work-tree={}", sample.path("").display());
    let session = |words: &[&str]| sample.git(&[&[folder.as_str(), tree.as_str()], words].concat());
    // Where a session finds the user's objects: what is not written anew must exist.
    std::os::unix::fs::symlink(sample.path(".git"), sample.beside("real")).expect("made");
    sample.write("b", "2\n");
    session(&["commit", "-q", "-a", "-m", "two"]);
    let imported = sample.import_one();
    assert_eq!(moved(&imported), ["refs/heads/main"], "{imported:?}");
    assert_eq!(sample.git(&["status", "--porcelain"]), "");
    assert_eq!(sample.git(&["show", "HEAD:b"]), "2\n");
}
