//! When the record of a session is forgotten without a keeper that can write to the project.

use std::fs;

use super::settle_case::SettleCase;
use super::settle_case::committed;
use podbay_wire::BytesPath;
use podbay_wire::keep::GitAnswer;
use podbay_wire::keep::GitOrder;

impl SettleCase {
    fn is_forgotten(&self, has_run: bool) -> bool {
        let order = GitOrder::Forget {
            id: "s-1".to_owned(),
            has_run,
            session: Some(BytesPath::from(self.sample.beside("session"))),
        };
        match self.order(&order) {
            GitAnswer::Forgotten { is_forgotten } => is_forgotten,
            other => panic!("{other:?}"),
        }
    }

    fn n_records(&self) -> usize {
        fs::read_dir(self.sample.beside("state/git"))
            .expect("a folder")
            .count()
    }
}

/// Checks that a session in which this was done waits for a keeper that can write.
#[track_caller]
fn check_kept(what: &str, work: impl FnOnce(&SettleCase)) {
    let case = SettleCase::of(committed());
    case.prepare();
    let n_records = case.n_records();
    work(&case);
    assert!(!case.is_forgotten(true), "{what}");
    assert_eq!(case.n_records(), n_records, "{what}");
}

#[test]
fn a_session_that_did_nothing_with_git_is_forgotten() {
    let case = SettleCase::of(committed());
    case.prepare();
    // Git writes its index anew when it is asked for what changed.
    case.in_session(&["status"]);
    fs::write(case.sample.path("made.txt"), "1").expect("written");
    assert!(case.n_records() > 0 && case.is_forgotten(true));
    assert_eq!(case.n_records(), 0);
    // Of one that nobody has on record nothing is said.
    assert!(!case.is_forgotten(true));
}

#[test]
fn whatever_was_done_with_git_waits_for_a_keeper_that_can_write() {
    check_kept("a commit", |case| case.commit("b"));
    check_kept("a branch", |case| case.in_session(&["branch", "side"]));
    check_kept("a tag", |case| case.in_session(&["tag", "v1"]));
    check_kept("something staged", |case| {
        fs::write(case.sample.path("b"), "1").expect("written");
        case.in_session(&["add", "b"]);
    });
    check_kept("a stash", |case| {
        fs::write(case.sample.path("a"), "other").expect("written");
        case.in_session(&["stash"]);
    });
    check_kept("a repository in the project", |case| {
        case.sample.git(&["init", "-q", "new"]);
    });
    check_kept("parts of one", |case| {
        fs::create_dir_all(case.sample.path("lib/objects")).expect("made");
        fs::create_dir_all(case.sample.path("lib/refs")).expect("made");
        fs::write(case.sample.path("lib/HEAD"), "ref: refs/heads/x\n").expect("written");
    });
    check_kept("an unreadable folder", |case| {
        fs::remove_file(case.sample.beside("session/HEAD")).expect("removed");
    });
    check_kept("a folder that is gone", |case| {
        fs::remove_dir_all(case.sample.beside("session")).expect("removed");
    });
}

#[test]
fn where_nothing_has_run_nothing_is_compared() {
    let case = SettleCase::of(committed());
    case.prepare();
    case.sample.git(&["init", "-q", "of-the-user"]);
    assert!(case.is_forgotten(false));
    assert!(case.sample.path("of-the-user/.git").exists());
}
