//! Tests of imports that cannot finish because of the state of the user's repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use super::sample::Sample;
use super::sample::SampleSession;
use super::sample::fingerprint;
use super::sample::moved;
use super::sample::run_git;
use super::sample::told;
use crate::keep::testing::SmallDisk;
use podbay_wire::keep::GitRefusal;
use podbay_wire::keep::IndexImport;

fn session() -> SampleSession {
    let sample = Sample::new();
    sample.commit("a", "1\n");
    sample.commit("b", "1\n");
    SampleSession::of(sample)
}

#[test]
fn a_branch_that_the_user_is_rebasing_is_not_moved() {
    let session = session();
    session.git(&["branch", "side"]);
    session.sample.commit("c", "1\n");
    session.git(&["checkout", "-q", "side"]);
    session.sample.commit("d", "1\n");
    session.git(&["checkout", "-q", "main"]);
    let sample = session.end();
    sample.git(&["checkout", "-q", "-b", "base", "HEAD~1"]);
    sample.write("b", "theirs\n");
    sample.git(&["add", "b"]);
    sample.git(&["commit", "-q", "-m", "theirs"]);
    sample.git(&["checkout", "-q", "main"]);
    assert!(
        !run_git(&sample.path(""), &["rebase", "-q", "base"]).1,
        "there is a conflict"
    );
    let (head, index) = (
        sample.git(&["rev-parse", "HEAD", "main"]),
        fs::read(sample.path(".git/index")).expect("read"),
    );
    let imported = sample.import_one();
    assert_eq!(
        (moved(&imported), imported.index),
        (vec!["refs/heads/side".to_owned()], IndexImport::Unchanged)
    );
    assert!(
        told(&imported).contains("refs/heads/main: is being rebased here"),
        "{}",
        told(&imported)
    );
    assert_eq!(sample.git(&["rev-parse", "HEAD", "main"]), head);
    assert_eq!(fs::read(sample.path(".git/index")).expect("read"), index);
    // The user continues the rebase.
    sample.write("b", "both\n");
    sample.git(&["add", "b"]);
    sample.git(&["rebase", "--continue"]);
    assert_eq!(
        sample.git(&["log", "--format=%s", "main"]),
        "b\ntheirs\na\n"
    );
    assert_eq!(sample.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main\n");
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder") {
        let (path, to) = (
            entry.as_ref().expect("an entry").path(),
            to.join(entry.expect("an entry").file_name()),
        );
        if path.is_dir() {
            fs::create_dir(&to).expect("made");
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("copied");
        }
    }
}

#[test]
fn an_import_stopped_by_a_full_disk_is_done_when_there_is_room() {
    let session = session();
    // Compression does not halve this.
    let noise: String = (1_u64..50_000)
        .map(|n| {
            format!(
                "{:016x}\n",
                n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ n << 40
            )
        })
        .collect();
    session.sample.commit("large", &noise);
    session.git(&["branch", "side"]);
    let sample = session.end();
    fs::rename(sample.path(".git"), sample.beside("was")).expect("moved");
    fs::create_dir(sample.path(".git")).expect("made");
    let Some(_small) = SmallDisk::mount(sample.path(".git"), "2m") else {
        return;
    };
    copy(&sample.beside("was"), &sample.path(".git"));
    let mut filler = vec![0; 2 << 20];
    while fs::write(sample.path(".git/filler"), &filler).is_err() {
        filler.truncate(filler.len() - (32 << 10));
    }
    let before = fingerprint(&sample.path(".git"));
    let imported = sample.import().repositories.remove(0);
    assert_eq!(
        (moved(&imported), imported.index),
        (Vec::new(), IndexImport::Kept)
    );
    assert!(
        told(&imported).contains("No space left on device") && imported.is_late,
        "{}",
        told(&imported)
    );
    let after = fingerprint(&sample.path(".git"));
    assert!(
        before
            .iter()
            .all(|(path, one)| after.get(path) == Some(one)),
        "what was there has changed"
    );
    let n_left = |all: &BTreeMap<PathBuf, String>| {
        all.keys()
            .filter(|path| path.to_string_lossy().contains("/tmp_"))
            .count()
    };
    assert_eq!(n_left(&after), 0, "{:?}", after.keys());
    sample.git(&["fsck", "--strict", "--no-dangling"]);
    assert_eq!(
        sample.git(&["for-each-ref", "--format=%(refname)"]),
        "refs/heads/main\n"
    );
    fs::remove_file(sample.path(".git/filler")).expect("removed");
    let imported = sample.import_one();
    assert_eq!(
        moved(&imported),
        ["refs/heads/main", "refs/heads/side"],
        "{}",
        told(&imported)
    );
    assert_eq!(
        (
            told(&imported).as_str(),
            sample.git(&["status", "--porcelain"]).as_str()
        ),
        ("", "")
    );
    assert_eq!(n_left(&fingerprint(&sample.path(".git"))), 0);
}

#[test]
fn a_branch_that_is_not_imported_is_not_checked_out() {
    let session = session();
    session.sample.commit("c", "1\n");
    session.git(&["checkout", "-q", "-b", "new"]);
    session.sample.commit("d", "1\n");
    let sample = session.end();
    // Another git is at work on it, or was killed.
    sample.write(".git/refs/heads/new.lock", "");
    let imported = sample.import_one();
    let words = told(&imported);
    assert!(
        words.contains("HEAD: the session was on refs/heads/new, which was not imported"),
        "{words}"
    );
    assert!(
        words.contains("refs/heads/main: is checked out here, and the session had something else"),
        "{words}"
    );
    assert_eq!(
        (moved(&imported), imported.head),
        (Vec::<String>::new(), None),
        "{words}"
    );
    assert_eq!(
        sample.git(&["status", "--porcelain", "--branch", "--untracked-files=no"]),
        "## main\n"
    );
    assert_eq!(sample.git(&["log", "-1", "--format=%s"]), "b\n");
    fs::remove_file(sample.path(".git/refs/heads/new.lock")).expect("removed");
    let imported = sample.import_one();
    assert_eq!(
        (
            moved(&imported).len(),
            imported.head.as_deref(),
            told(&imported).as_str()
        ),
        (2, Some("refs/heads/new"), "")
    );
    assert_eq!(
        sample.git(&["status", "--porcelain", "--branch"]),
        "## new\n"
    );
}

#[test]
fn a_damaged_repository_is_left_alone_until_it_is_repaired() {
    let session = session();
    session.sample.commit("c", "1\n");
    let sample = session.end();
    for (path, broken) in [
        ("HEAD", "nonsense"),
        ("config", "[core\n"),
        ("packed-refs", "nonsense\n"),
    ] {
        let path = sample.path(&format!(".git/{path}"));
        let whole = fs::read(&path);
        fs::write(&path, broken).expect("written");
        let before = fingerprint(&sample.path(".git/refs"));
        let imported = sample.import().repositories.remove(0);
        assert_eq!(
            moved(&imported),
            Vec::<String>::new(),
            "{path:?}: {}",
            told(&imported)
        );
        assert!(!told(&imported).is_empty(), "{path:?}");
        assert_eq!(fingerprint(&sample.path(".git/refs")), before, "{path:?}");
        assert_eq!(fs::read(&path).expect("there"), broken.as_bytes());
        match whole {
            Ok(whole) => fs::write(&path, whole).expect("written"),
            Err(_) => fs::remove_file(&path).expect("removed"),
        }
    }
    let imported = sample.import_one();
    assert_eq!(
        (moved(&imported), told(&imported).as_str()),
        (vec!["refs/heads/main".to_owned()], "")
    );
    assert_eq!(sample.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_broken_reference_of_the_user_does_not_block_an_import() {
    let is_file = "holds no object id: git cannot resolve it; repair or remove the file";
    let is_lost = "points to a missing object; restore that, or remove the reference with `git update-ref -d refs/heads/broken`";
    for (broken, why) in [
        ("garbage\n", is_file),
        ("", is_file),
        (&format!("{}\n", "1".repeat(40)), is_lost),
    ] {
        let session = session();
        session.sample.commit("c", "1\n");
        session.git(&["checkout", "-q", "-b", "side"]);
        session.sample.write("b", "staged\n");
        session.git(&["add", "b"]);
        let sample = session.end();
        sample.write(".git/refs/heads/broken", broken);
        assert!(
            !run_git(&sample.path(""), &["fsck"]).1,
            "git itself finds fault with it"
        );
        let imported = sample.import().repositories.remove(0);
        assert_eq!(
            (moved(&imported), told(&imported).as_str()),
            (
                vec!["refs/heads/main".to_owned(), "refs/heads/side".to_owned()],
                ""
            )
        );
        assert_eq!(
            (imported.head.as_deref(), imported.index),
            (Some("refs/heads/side"), IndexImport::Taken)
        );
        assert_eq!(imported.notes, [format!("your refs/heads/broken {why}")]);
        assert_eq!(
            fs::read_to_string(sample.path(".git/refs/heads/broken")).expect("there"),
            broken
        );
        // The remedy in the message works.
        if why == is_lost {
            sample.git(&["update-ref", "-d", "refs/heads/broken"]);
        } else {
            fs::remove_file(sample.path(".git/refs/heads/broken")).expect("removed");
        }
        sample.git(&["fsck", "--strict", "--no-dangling"]);
        assert_eq!(sample.git(&["status", "--porcelain"]), "M  b\n");
    }
}

#[test]
fn a_repository_without_head_is_reported_as_such() {
    let sample = Sample::new();
    sample.commit("a", "1\n");
    let head = fs::read(sample.path(".git/HEAD")).expect("read");
    fs::remove_file(sample.path(".git/HEAD")).expect("removed");
    let session = SampleSession::of(sample);
    assert_eq!(
        session.refused(),
        [(".git".to_owned(), Some(GitRefusal::NoHead))]
    );
    let session = self::session();
    session.sample.commit("c", "1\n");
    let sample = session.end();
    fs::remove_file(sample.path(".git/HEAD")).expect("removed");
    let before = fingerprint(&sample.path(".git"));
    let imported = sample.import().repositories.remove(0);
    assert!(
        told(&imported).contains("it has no HEAD") && moved(&imported).is_empty(),
        "{}",
        told(&imported)
    );
    assert_eq!(fingerprint(&sample.path(".git")), before);
    fs::write(sample.path(".git/HEAD"), head).expect("written");
    assert_eq!(moved(&sample.import_one()), ["refs/heads/main"]);
}

#[test]
fn no_session_folder_is_prepared_for_a_damaged_repository() {
    for (path, broken, problem) in [
        ("index", "nonsense", "it ends too early"),
        (
            "index",
            &"nonsense".repeat(20),
            "it does not start like an index",
        ),
        ("config", "[core\nx", ""),
    ] {
        let sample = Sample::new();
        sample.commit("a", "1\n");
        sample.write(&format!(".git/{path}"), broken);
        let session = SampleSession::of(sample);
        let refused = session.refused();
        let (
            _,
            Some(GitRefusal::Broken {
                path: named,
                problem: why,
            }),
        ) = &refused[0]
        else {
            panic!("{path}: {refused:?}")
        };
        assert!(
            named.to_text() == path && why.contains(problem),
            "{refused:?}"
        );
        session.check_untouched();
    }
}
