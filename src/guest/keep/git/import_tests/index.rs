//! Tests of the index and of staged changes.

use super::*;

#[test]
fn staged_changes_of_the_user_stay_staged() {
    let sample = sample();
    sample.write("b", "theirs\n");
    sample.write("intended", "x");
    sample.git(&["add", "b"]);
    sample.git(&["add", "-N", "intended"]);
    sample.git(&["update-index", "--assume-unchanged", "a file"]);
    let session = SampleSession::of(sample);
    session.sample.write("c", "1\n");
    session.git(&["add", "c"]);
    session.git(&["commit", "-q", "-m", "c", "--", "c"]);
    let sample = session.end();
    // Meanwhile, on the host.
    sample.write("d", "1\n");
    sample.git(&["add", "d"]);
    let imported = sample.import_one();
    assert_eq!(
        (imported.index, not_imported(&imported)),
        (IndexImport::Taken, Vec::new())
    );
    assert_eq!(
        sample.git(&["status", "--porcelain"]),
        "M  b\nA  d\n A intended\n"
    );
    assert_eq!(sample.git(&["ls-files", "-v", "a file"]), "h a file\n");
}

#[test]
fn if_both_staged_the_same_file_the_users_stays() {
    let session = session();
    session.sample.write("b", "session\n");
    session.git(&["add", "b"]);
    commit(&session, "c", "1\n");
    session.sample.write("b", "session again\n");
    session.git(&["add", "b"]);
    let sample = session.end();
    sample.write("b", "person\n");
    sample.git(&["add", "b"]);
    let imported = sample.import_one();
    assert_eq!(imported.index, IndexImport::Taken);
    assert_eq!(
        imported.notes,
        ["b is staged as you have it, not as the session has"]
    );
    assert_eq!(sample.git(&["show", ":b"]), "person\n");
}

/// One side has a file where the other has a folder; checks what stays of the user's.
#[track_caller]
fn check_file_and_folder(person: &str, session_has: &str, is_committed: bool) {
    let sample = sample();
    sample.commit("x.txt", "1\n");
    let session = SampleSession::of(sample);
    session.sample.write(session_has, "session\n");
    session.git(&["add", session_has]);
    if is_committed {
        session.git(&["commit", "-q", "-m", "session"]);
    }
    let sample = session.end();
    let top = sample.path(session_has.split('/').next().expect("a name"));
    let _ = fs::remove_dir_all(&top).or_else(|_| fs::remove_file(&top));
    sample.write(person, "person\n");
    sample.git(&["add", person]);
    let before = (
        fs::read(sample.path(".git/index")).expect("read"),
        sample.git(&["rev-parse", "main"]),
    );
    let imported = sample.import_one();
    let why = not_imported(&imported).join("\n");
    let about = if is_committed {
        "refs/heads/main: is checked out here, and the index cannot follow it: "
    } else {
        "index: "
    };
    assert!(
        why.starts_with(&format!("{about}you and the session staged"))
            && why.contains("a file and a folder of the same name"),
        "{why}"
    );
    assert_eq!(
        (moved(&imported), imported.index),
        (Vec::new(), IndexImport::Kept)
    );
    assert_eq!(
        (
            fs::read(sample.path(".git/index")).expect("read"),
            sample.git(&["rev-parse", "main"])
        ),
        before
    );
    // The tree that git makes of it is complete.
    let tree = sample.git(&["write-tree"]);
    sample.git(&[
        "update-ref",
        "refs/heads/of-index",
        sample
            .git(&["commit-tree", "-m", "index", tree.trim()])
            .trim(),
    ]);
    sample.git(&["fsck", "--strict"]);
}

#[test]
fn a_file_and_a_folder_of_one_name_are_not_merged_into_one_index() {
    // Adjacent in the order of an index, and with `x.txt` between.
    for (person, session_has) in [
        ("y", "y/c"),
        ("y/c", "y"),
        ("x", "x/c"),
        ("x/c", "x"),
        ("x", "x/deep/c"),
        ("x/deep/c", "x/deep"),
    ] {
        check_file_and_folder(person, session_has, false);
        check_file_and_folder(person, session_has, true);
    }
}

#[test]
fn a_name_with_a_files_name_as_prefix_is_not_below_it() {
    let session = session();
    session.sample.write("b.d/c", "session\n");
    session.git(&["add", "b.d/c"]);
    let sample = session.end();
    sample.write("b-d/c", "person\n");
    sample.git(&["add", "b-d/c"]);
    let imported = sample.import_one();
    assert_eq!(
        (imported.index, not_imported(&imported)),
        (IndexImport::Taken, Vec::new())
    );
    assert_eq!(
        sample.git(&["status", "--porcelain"]),
        "A  b-d/c\nA  b.d/c\n"
    );
}

#[test]
fn flags_and_metadata_of_the_sessions_index_hide_no_change() {
    let session = session();
    commit(&session, "c", "1\n");
    session.sample.write("b", "changed\n");
    session.sample.write("c", "changed\n");
    session.git(&["update-index", "--assume-unchanged", "b"]);
    session.git(&["update-index", "--skip-worktree", "c"]);
    assert_eq!(
        session.git(&["status", "--porcelain"]),
        "",
        "it is hidden in the session"
    );
    let sample = session.end();
    assert_eq!(sample.import_one().index, IndexImport::Taken);
    assert_eq!(sample.git(&["status", "--porcelain"]), " M b\n M c\n");
}

#[test]
fn the_index_stays_if_the_checked_out_branch_was_refused() {
    let session = session();
    commit(&session, "c", "1\n");
    let sample = session.end();
    sample.git(&["commit", "-q", "--allow-empty", "-m", "own"]);
    let before = fs::read(sample.path(".git/index")).expect("read");
    let imported = sample.import_one();
    // The commit has all that was staged.
    assert_eq!(
        (moved(&imported), imported.index),
        (Vec::new(), IndexImport::Unchanged)
    );
    assert_eq!(not_imported(&imported).len(), 1);
    assert_eq!(fs::read(sample.path(".git/index")).expect("read"), before);
}

#[test]
fn a_locked_index_is_left_alone() {
    let session = session();
    commit(&session, "c", "1\n");
    let sample = session.end();
    sample.write(".git/index.lock", "");
    let mut imported = sample.import().repositories.remove(0);
    assert!(
        not_imported(&imported)[0].contains("the index cannot follow it: yours is locked"),
        "{:?}",
        not_imported(&imported)
    );
    assert_eq!(moved(&imported), Vec::<String>::new());
    fs::remove_file(sample.path(".git/index.lock")).expect("removed");
    imported = sample.import_one();
    assert_eq!(
        (imported.index, not_imported(&imported)),
        (IndexImport::Taken, Vec::new())
    );
    assert_eq!(sample.git(&["status", "--porcelain"]), "");
}
