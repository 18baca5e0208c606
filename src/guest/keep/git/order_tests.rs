//! Tests of the orders that a session's keeper gets about git.

mod retries;

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::new_repositories::MoveOutBounds;
use super::order::execute_within;
use super::order::warn_unsearched;
use super::sample::run_git;
use super::settle_case::SettleCase;
use super::settle_case::committed;
use super::settle_case::with_two_below;
use podbay_wire::BytesPath;
use podbay_wire::keep::GitAnswer;
use podbay_wire::keep::GitOrder;
use podbay_wire::keep::GitRefusal;
use podbay_wire::keep::ImportedGit;
use podbay_wire::keep::NotImported;
use podbay_wire::keep::PreparedGit;
use podbay_wire::keep::PreparedRepository;
use podbay_wire::keep::SettledGit;

fn names(folder: &Path) -> usize {
    fs::read_dir(folder).expect("a folder").count()
}

#[test]
fn commits_are_imported_once_and_nothing_of_them_stays() {
    let case = SettleCase::of(committed());
    case.prepare();
    // Another process waited meanwhile, and preparation starts again.
    case.prepare();
    case.commit("b");
    case.sample.git(&["init", "-q", "new"]);
    assert_eq!(case.subjects(), "a\n");
    let settled = case.settle(None, Some(true));
    assert!(
        settled.is_settled && settled.aside.moved.n == 1,
        "{settled:?}"
    );
    assert_eq!(settled.imported.repositories[0].moved.len(), 1);
    assert_eq!(case.subjects(), "b\na\n");
    assert!(!case.sample.path("new/.git").exists() && names(&case.sample.beside("aside")) == 1);
    assert_eq!(names(&case.sample.beside("scratch")), 0);
    assert_eq!(
        case.settle(None, None),
        SettledGit {
            is_settled: true,
            ..SettledGit::default()
        }
    );
    // The next preparation removes the record of this one, and without a record nothing is reported
    // as complete.
    let (sources, hidden, person, review, place, outside) = <_>::default();
    let order = GitOrder::Prepare {
        id: "s-2".to_owned(),
        sources,
        hidden,
        person,
        review,
        place,
        outside,
    };
    case.order(&order);
    assert_eq!(names(&case.sample.beside("state/git")), 1);
    let unknown = case.settle(None, None);
    assert!(
        !unknown.is_settled
            && unknown.imported.repositories[0].not_imported[0]
                .why
                .contains("the record of the repository"),
        "{unknown:?}"
    );
}

#[test]
fn commits_are_imported_into_each_nested_repository() {
    let case = with_two_below();
    case.prepare();
    // Before any command ran it may be prepared again.
    case.prepare();
    case.commit("b");
    case.commit_in("one", "below/0", "b");
    case.commit_in("deep/two", "below/1", "c");
    let settled = case.settle(None, Some(true));
    assert!(settled.is_settled, "{settled:?}");
    let subjects = |folder: &str| case.sample.git_in(folder, &["log", "--format=%s"]);
    assert_eq!(
        [subjects(""), subjects("one"), subjects("deep/two")],
        ["b\na\n", "b\na\n", "c\na\n"]
    );
    assert_eq!(settled.aside.moved.n, 0);
}

#[test]
fn a_replaced_nested_repository_does_not_block_the_others() {
    for away in ["one", "one/.git"] {
        let case = with_two_below();
        case.prepare();
        case.commit_in("one", "below/0", "b");
        case.commit_in("deep/two", "below/1", "c");
        // A link to it is not followed.
        fs::rename(case.sample.path(away), case.sample.beside("away")).expect("moved");
        std::os::unix::fs::symlink(case.sample.beside("away"), case.sample.path(away))
            .expect("linked");
        let settled = case.settle(None, Some(true));
        let told: Vec<&NotImported> = settled
            .imported
            .repositories
            .iter()
            .flat_map(|one| &one.not_imported)
            .collect();
        assert!(
            told.len() == 1
                && told[0].why == "`one/.git` of the project was replaced since the session began",
            "{told:?}"
        );
        assert!(!settled.is_settled);
        assert_eq!(
            case.sample.git_in("deep/two", &["log", "--format=%s"]),
            "c\na\n"
        );
        let real = case
            .sample
            .beside("away")
            .join(if away == "one" { ".git" } else { "" });
        let (log, _) = run_git(
            &case.sample.beside(""),
            &[
                "--git-dir",
                &real.display().to_string(),
                "log",
                "--format=%s",
            ],
        );
        assert_eq!(log, "a\n");
    }
}

#[test]
fn nested_repositories_that_cannot_be_prepared_are_named() {
    let case = with_two_below();
    let sample = &case.sample;
    sample.git(&["worktree", "add", "-q", "--detach", "tree"]);
    sample.write("deep/two/.git/objects/info/alternates", "/elsewhere\n");
    sample.write("one/.git/commondir", "../../.git\n");
    fs::rename(sample.path("one"), sample.path("other")).expect("moved");
    std::os::unix::fs::symlink("other", sample.path("one")).expect("linked");
    let refused = |prepared: PreparedGit| -> Vec<(String, String)> {
        let words = |one: PreparedRepository| Some((one.path.to_text(), one.refused?.to_string()));
        prepared
            .repositories
            .into_iter()
            .filter_map(words)
            .collect()
    };
    let told = refused(case.prepare_for(None));
    let names: Vec<&str> = told.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        names,
        ["deep/two/.git", "one/.git", "tree/.git"],
        "{told:?}"
    );
    assert!(
        told[0].1.contains("borrows objects from /elsewhere")
            && told[2].1.contains("a worktree of another"),
        "{told:?}"
    );
    fs::remove_file(sample.path("one")).expect("removed");
    fs::rename(sample.path("other"), sample.path("one")).expect("moved");
    let told = refused(case.prepare_for(None));
    assert!(
        told.iter()
            .any(|(path, why)| path == "one/.git" && why.contains("commondir")),
        "{told:?}"
    );
    case.commit("b");
    assert!(case.settle(None, Some(true)).is_settled);
}

#[test]
fn nothing_is_imported_into_a_replaced_repository() {
    for is_top_theirs in [None, Some(false), Some(true)] {
        let case = SettleCase::of(committed());
        case.prepare();
        case.commit("b");
        fs::remove_dir_all(case.sample.path(".git")).expect("removed");
        case.sample.git(&["init", "-q"]);
        let settled = case.settle(None, is_top_theirs);
        assert!(
            settled.imported.repositories[0].not_imported[0]
                .why
                .contains("was replaced since"),
            "{settled:?}"
        );
        let is_there = case.sample.path(".git").exists();
        assert_eq!(
            (is_there, settled.aside.moved.n),
            if is_top_theirs == Some(true) {
                (true, 0)
            } else {
                (false, 1)
            }
        );
    }
}

#[test]
fn a_session_resumes_in_its_folders_while_its_review_is_pending() {
    let case = SettleCase::of(committed());
    case.sample
        .git(&["worktree", "add", "-q", "--detach", "tree"]);
    let first = case.prepare_for(Some("s"));
    assert_eq!(
        first.repositories[1].refused,
        Some(GitRefusal::WorktreeBelow)
    );
    case.commit("b");
    let reviews = case.sample.beside("state/reviews");
    fs::create_dir(&reviews).expect("made");
    fs::write(reviews.join("s.json"), "{}").expect("written");
    assert_eq!(
        case.prepare_for(Some("s")),
        first,
        "what it was told before, it is told again"
    );
    case.commit("c");
    // The project's own repository is another one: what the session borrows is missing.
    fs::rename(case.sample.path(".git"), case.sample.beside("away")).expect("moved");
    case.sample.git(&["init", "-q"]);
    assert_eq!(
        case.prepare_for(Some("s")).repositories[0].refused,
        Some(GitRefusal::Replaced)
    );
    fs::remove_dir_all(case.sample.path(".git")).expect("removed");
    fs::rename(case.sample.beside("away"), case.sample.path(".git")).expect("moved");
    assert!(case.accept(None).is_settled);
    assert_eq!(case.subjects(), "c\nb\na\n");
    // The next one starts afresh.
    assert_ne!(case.prepare_for(Some("s")).repositories, []);
    case.commit("d");
    fs::remove_file(reviews.join("s.json")).expect("removed");
    case.prepare_for(Some("s"));
    assert!(
        case.accept(None).imported.repositories[0].moved.is_empty(),
        "nothing ran in what was begun without a review"
    );
}

#[test]
fn importing_a_review_moves_out_no_repository_of_the_user() {
    let case = SettleCase::of(committed());
    case.prepare();
    case.commit("b");
    case.sample.git(&["init", "-q", "theirs"]);
    let settled = case.accept(Some(&[]));
    assert!(
        settled.is_settled && settled.aside.moved.is_empty(),
        "{settled:?}"
    );
    assert!(case.sample.path("theirs/.git/HEAD").exists());
    assert_eq!(case.subjects(), "b\na\n");
    assert!(case.accept(Some(&[])).is_settled, "again is no harm");
}

#[test]
fn commits_of_a_review_with_pruned_parents_are_reported() {
    let sample = committed();
    sample.git(&["branch", "keep"]);
    let lost = sample.commit("lost", "1");
    let case = SettleCase::of(sample);
    case.prepare();
    case.commit("b");
    case.in_session(&["branch", "side", "keep"]);
    case.sample.git(&["reset", "-q", "--hard", "keep"]);
    case.sample
        .git(&["reflog", "expire", "--expire=now", "--all"]);
    case.sample.git(&["gc", "-q", "--prune=now"]);
    for unless_it_may_run in [Some(&[][..]), None] {
        let settled = case.accept(unless_it_may_run);
        assert!(
            !settled.is_settled && settled.held.is_empty() && settled.may_run.is_empty(),
            "nothing of it runs: {settled:?}"
        );
        let told: Vec<String> = settled.imported.repositories[0]
            .not_imported
            .iter()
            .map(|one| format!("{}: {}", one.what, one.why))
            .collect();
        let main = told
            .iter()
            .find(|one| one.starts_with("refs/heads/main: "))
            .expect("it is said");
        assert!(main.contains(&lost), "{told:?}");
        assert!(
            main.contains("it cannot be read; if its parents are gone from the repository"),
            "{told:?}"
        );
    }
    assert_eq!(
        case.sample.git(&["log", "-1", "--format=%s", "side"]),
        "a\n"
    );
}

#[test]
fn a_session_with_many_names_is_imported_and_named_in_part() {
    let case = SettleCase::of(committed());
    case.prepare();
    let names: String = (0..230)
        .map(|n| format!("create refs/tags/{n:03} HEAD\n"))
        .collect();
    fs::write(case.sample.beside("names"), names).expect("written");
    let script = format!(
        "!git update-ref --stdin < {}",
        case.sample.beside("names").display()
    );
    case.in_session(&["-c", &format!("alias.make={script}"), "make"]);
    let settled = case.settle(None, None);
    let one = &settled.imported.repositories[0];
    assert_eq!(
        (one.moved.len(), one.n_more.moved, settled.is_settled),
        (200, 30, true)
    );
    assert_eq!(case.sample.git(&["tag"]).lines().count(), 230);
}

#[test]
fn new_symbolic_references_are_reported_and_the_users_are_not() {
    let sample = committed();
    sample.git(&["symbolic-ref", "refs/heads/theirs", "refs/heads/main"]);
    let case = SettleCase::of(sample);
    case.prepare();
    case.in_session(&["symbolic-ref", "refs/heads/sym", "refs/heads/main"]);
    case.in_session(&["branch", "side"]);
    let settled = case.settle(None, None);
    let one = &settled.imported.repositories[0];
    let told: Vec<String> = one
        .not_imported
        .iter()
        .map(|one| format!("{} {}", one.what, one.why))
        .collect();
    assert!(
        told.len() == 1
            && told[0].starts_with("refs/heads/sym is a symbolic reference to refs/heads/main"),
        "{told:?}"
    );
    assert_eq!(
        one.moved
            .iter()
            .map(|moved| moved.name.to_text())
            .collect::<Vec<_>>(),
        ["refs/heads/side"]
    );
}

#[test]
fn an_ambiguous_reference_name_is_reported_and_stays() {
    let sample = committed();
    let id = sample.git(&["rev-parse", "HEAD"]).trim().to_owned();
    sample.git(&["update-ref", "refs/remotes/origin/main", &id]);
    sample.git(&[
        "symbolic-ref",
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/main",
    ]);
    let case = SettleCase::of(sample);
    case.prepare();
    let odd = [
        "tags/origin",
        "tags/heads/main",
        "tags/remotes/origin/main",
        "tags/0123abc",
        "heads/tags/v1",
    ];
    for name in odd
        .iter()
        .map(|name| format!("refs/{name}"))
        .chain([format!("refs/tags/{}", &id[..7])])
    {
        case.in_session(&["update-ref", &name, &id]);
    }
    for name in [
        "tags/v1.0",
        "tags/20261125",
        "heads/fix/a1",
        "tags/original",
        "heads/deadbeef",
    ] {
        case.in_session(&["update-ref", &format!("refs/{name}"), &id]);
    }
    let settled = case.settle(None, None);
    let one = &settled.imported.repositories[0];
    assert_eq!(
        one.not_imported.len(),
        odd.len() + 1,
        "{:?}",
        one.not_imported
    );
    assert!(
        one.not_imported
            .iter()
            .all(|one| one.why.contains("is ambiguous to git")),
        "{:?}",
        one.not_imported
    );
    let moved: Vec<String> = one.moved.iter().map(|moved| moved.name.to_text()).collect();
    assert_eq!(
        moved,
        [
            "refs/heads/deadbeef",
            "refs/heads/fix/a1",
            "refs/tags/20261125",
            "refs/tags/original",
            "refs/tags/v1.0"
        ]
    );
}

#[test]
fn a_project_without_any_time_to_search_is_reported() {
    let case = SettleCase::of(committed());
    case.prepare();
    let bounds = MoveOutBounds {
        time: Duration::ZERO,
        ..MoveOutBounds::default()
    };
    let settled = case
        .in_folders(|folders| {
            execute_within(
                folders,
                &case.settling(None, Some(true)),
                bounds,
                Duration::from_mins(1),
            )
        })
        .expect("done");
    let GitAnswer::Settled(settled) = settled else {
        panic!("another answer")
    };
    let notes: Vec<&String> = settled
        .imported
        .repositories
        .iter()
        .flat_map(|one| &one.notes)
        .collect();
    assert!(
        settled.is_settled
            && !settled.aside.whole
            && notes.len() == 1
            && notes[0].contains("not every folder"),
        "{settled:?}"
    );
}

#[test]
fn folders_that_could_not_be_searched_are_named() {
    assert_eq!(warn_unsearched(&[]), None);
    let closed: Vec<BytesPath> = (10..32)
        .map(|n| BytesPath::from_bytes(format!("deep/{n}")))
        .collect();
    let note = |n: usize| warn_unsearched(&closed[..n]).expect("told").notes[0].clone();
    assert!(
        note(2).starts_with("`deep/10`, `deep/11` could not be searched: "),
        "{}",
        note(2)
    );
    assert!(
        note(20).contains("`deep/29` could not")
            && note(22).contains("`deep/29` and 2 more could not"),
        "{}",
        note(22)
    );
}
