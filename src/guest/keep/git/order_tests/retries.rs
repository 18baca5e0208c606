//! Tests of work that is imported or moved out in a later try.

use super::*;

#[test]
fn work_that_cannot_be_imported_is_reported_once_and_stays() {
    let case = SettleCase::of(committed());
    case.prepare();
    case.commit("b");
    let settled = case.settle(Some("no git here"), None);
    assert_eq!(
        settled.imported.repositories[0].not_imported[0].why,
        "no git here"
    );
    assert!(!settled.is_settled);
    assert_eq!(case.settle(None, None), SettledGit::default());
    assert_eq!(case.subjects(), "a\n");
}

#[test]
fn imports_that_ran_out_of_time_are_retried_while_that_may_help() {
    let case = SettleCase::of(committed());
    case.prepare();
    case.commit("b");
    for _ in 0..2 {
        let settled = case.settle_within(Duration::ZERO);
        assert!(
            settled.goes_on && !settled.is_settled && settled.imported.is_late(),
            "{settled:?}"
        );
        assert_eq!(case.subjects(), "a\n");
    }
    assert!(case.settle(None, Some(true)).is_settled);
    assert_eq!(case.subjects(), "b\na\n");
    // What takes all of the time on each try would keep every session from starting.
    let case = SettleCase::of(committed());
    case.prepare();
    case.commit("b");
    let goes_on: Vec<bool> = (0..3)
        .map(|_| case.settle_within(Duration::ZERO).goes_on)
        .collect();
    assert_eq!(goes_on, [true, true, false]);
    assert_eq!(case.settle(None, None), SettledGit::default());
    // What the user moved meanwhile is not a matter of time.
    let case = SettleCase::of(committed());
    case.prepare();
    case.commit("b");
    case.sample
        .git(&["commit", "-q", "--allow-empty", "-m", "mine"]);
    let settled = case.settle(None, Some(true));
    assert!(!settled.goes_on && !settled.is_settled, "{settled:?}");
}

#[test]
fn work_behind_another_gits_lock_is_imported_when_that_ends() {
    let case = SettleCase::of(committed());
    case.prepare();
    case.commit("b");
    // As while the editor of a `git commit` is open.
    case.sample.write(".git/index.lock", "");
    let settled = case.settle(None, Some(true));
    let why = &settled.imported.repositories[0].not_imported[0].why;
    assert!(
        settled.goes_on && !settled.is_settled && why.contains("locked by another git"),
        "{settled:?}"
    );
    assert_eq!(case.subjects(), "a\n");
    fs::remove_file(case.sample.path(".git/index.lock")).expect("removed");
    assert!(case.settle(None, Some(true)).is_settled);
    assert_eq!(case.subjects(), "b\na\n");
}

#[test]
fn work_that_could_not_be_imported_for_now_is_on_a_retry() {
    let case = SettleCase::of(committed());
    case.prepare();
    case.commit("b");
    let (id, no_import) = ("s-1".to_owned(), Some("no image".to_owned()));
    let (auto_run, place) = (Vec::new(), BytesPath::default());
    let order = GitOrder::Settle {
        id,
        top: case.top(),
        below: None,
        no_import,
        tries_again: true,
        is_top_theirs: None,
        review: None,
        auto_run,
        place,
        file_size: u64::MAX,
    };
    for _ in 0..2 {
        let GitAnswer::Settled(settled) = case.order(&order) else {
            panic!("another answer")
        };
        assert!(
            !settled.is_settled
                && settled.imported.repositories[0].not_imported[0].why == "no image",
            "{settled:?}"
        );
    }
    assert!(case.settle(None, None).is_settled);
    assert_eq!(case.subjects(), "b\na\n");
}

#[test]
fn failed_imports_are_retried_while_the_review_is_pending() {
    let case = SettleCase::of(committed());
    case.prepare();
    case.commit("b");
    let before = case.sample.git(&["rev-parse", "HEAD"]);
    case.sample
        .git(&["commit", "-q", "--allow-empty", "-m", "mine"]);
    for _ in 0..2 {
        let settled = case.accept(None);
        assert!(
            !settled.is_settled
                && settled.imported.repositories[0].not_imported[0]
                    .why
                    .contains("moved here"),
            "{settled:?}"
        );
    }
    case.sample.git(&["reset", "-q", "--soft", before.trim()]);
    assert!(case.accept(None).is_settled);
    assert_eq!(case.subjects(), "b\na\n");
}

#[test]
fn repositories_left_for_lack_of_time_are_moved_out_the_next_time() {
    let late = |case: &SettleCase, text: &str| {
        fs::write(case.sample.beside("state/git/s-1.late"), text).expect("written");
    };
    // All else was imported: nothing of the session's folder is imported again.
    let case = SettleCase::of(committed());
    case.prepare();
    case.commit("b");
    late(&case, "all taken");
    case.sample.git(&["init", "-q", "new"]);
    let settled = case.settle(None, Some(true));
    assert_eq!(
        (settled.aside.moved.n, settled.imported, settled.is_settled),
        (1, ImportedGit::default(), true)
    );
    assert_eq!(case.subjects(), "a\n");
    // Something stays, and was reported.
    let case = SettleCase::of(committed());
    case.prepare();
    case.commit("b");
    assert!(!case.settle(Some("no git here"), Some(true)).is_settled);
    late(&case, "");
    case.sample.git(&["init", "-q", "new"]);
    let settled = case.settle(None, Some(true));
    assert_eq!(
        (settled.aside.moved.n, settled.imported, settled.is_settled),
        (1, ImportedGit::default(), false)
    );
    assert_eq!(case.settle(None, None), SettledGit::default());
    assert!(!case.sample.path("new/.git").exists() && case.subjects() == "a\n");
}
