//! Tests of a review's commits that hold files that may run on the user's machine: they are
//! imported only on request.

use super::sample::Sample;
use super::settle_case::SettleCase;
use super::settle_case::bomb;
use super::settle_case::committed;
use super::settle_case::object;
use super::settle_case::tree;

#[test]
fn commits_with_files_that_may_run_are_imported_only_on_request() {
    let case = SettleCase::of(committed());
    let theirs = case.sample.commit("Makefile", "all:\n");
    case.prepare();
    // It is in the history alone, on a branch that is not checked out, below a tag, in a stash;
    // what the user has is not new.
    case.in_session(&["checkout", "-q", "-b", "side"]);
    case.commit("deep/.envrc");
    case.in_session(&["rm", "-q", "deep/.envrc", "Makefile"]);
    case.in_session(&["commit", "-q", "-m", "gone"]);
    case.in_session(&["checkout", "-q", "main"]);
    case.commit("tools/x.run");
    case.in_session(&["merge", "-q", "-m", "joined", "side"]);
    let held = |patterns: &[&str]| -> Vec<String> {
        let settled = case.accept(Some(patterns));
        assert!(
            !settled.is_settled && settled.imported.repositories.is_empty(),
            "{settled:?}"
        );
        settled
            .held
            .first
            .iter()
            .map(|file| file.path.to_text())
            .collect()
    };
    assert_eq!(held(&[]), ["deep/.envrc"]);
    assert_eq!(held(&["*.run"]), ["deep/.envrc", "tools/x.run"]);
    assert_eq!(case.sample.git(&["rev-parse", "HEAD"]).trim(), theirs);
    let asked_for = case.accept(None);
    assert!(asked_for.is_settled && asked_for.held.is_empty());
    assert_eq!(
        asked_for.may_run.first[0].path.to_text(),
        "deep/.envrc",
        "it is named, though it was asked for"
    );
    assert!(case.subjects().contains("joined\n"));
    let case = SettleCase::of(committed());
    case.prepare();
    case.sample.write(".envrc", "x\n");
    case.in_session(&["add", ".envrc"]);
    let settled = case.accept(Some(&[]));
    assert_eq!(
        settled.held.first[0].path.to_text(),
        ".envrc",
        "what is only staged counts, too"
    );
    case.in_session(&["stash", "-q"]);
    assert_eq!(
        case.accept(Some(&[])).held.first[0].path.to_text(),
        ".envrc"
    );
}

#[test]
fn commits_with_files_that_git_obeys_are_imported_only_on_request() {
    let held = |work: &dyn Fn(&SettleCase), settings: &[(&str, &str)]| -> Vec<String> {
        let case = SettleCase::of(committed());
        for (key, value) in settings {
            case.sample.git(&["config", key, value]);
        }
        case.prepare();
        // No file shows it.
        case.in_session(&["checkout", "-q", "-b", "side"]);
        work(&case);
        case.in_session(&["checkout", "-q", "main"]);
        let settled = case.accept(Some(&[]));
        assert_eq!(settled.is_settled, settled.held.is_empty());
        assert!(case.accept(None).is_settled);
        settled
            .held
            .first
            .iter()
            .map(|file| file.path.to_text())
            .collect()
    };
    let commit = |paths: &'static [&str]| {
        move |case: &SettleCase| paths.iter().for_each(|path| case.commit(path))
    };
    let settings = [
        ("core.hooksPath", "tools/x/../hooks"),
        ("includeIf.onbranch:side.path", "../own"),
    ];
    assert_eq!(
        held(
            &commit(&["tools/hooks/pre-commit", "own", "tools/plain"]),
            &settings
        ),
        ["own", "tools/hooks/pre-commit"]
    );
    let link = |case: &SettleCase| {
        std::os::unix::fs::symlink("evil", case.sample.path("tools")).expect("linked");
        case.in_session(&["add", "tools"]);
        case.commit("evil/hooks/pre-commit");
    };
    assert_eq!(held(&link, &settings), ["tools"]);
    assert_eq!(
        held(
            &commit(&["tools/plain", "hooks/pre-commit", "src/own"]),
            &settings
        ),
        [""; 0]
    );
    // A repository without a `.git`, complete or put together over several commits.
    let bare = ["bare/HEAD", "bare/config", "bare/objects/x", "bare/refs/x"];
    assert_eq!(
        held(
            &commit(&["bare/HEAD", "bare/config", "bare/objects/x", "bare/refs/x"]),
            &[]
        ),
        [bare[0], bare[2], bare[3]]
    );
    assert_eq!(
        held(&commit(&["HEAD", "commondir"]), &[]),
        ["HEAD", "commondir"]
    );
    assert_eq!(
        held(
            &commit(&["game/objects/x", "game/refs/x", "notes/HEAD"]),
            &[]
        ),
        [""; 0]
    );
}

#[test]
fn a_staged_file_is_examined_without_any_commit() {
    for (paths, held) in [
        (&["a", "game/refs/x"][..], &[][..]),
        (&["x/HEAD", "x/commondir"], &["x/HEAD", "x/commondir"]),
    ] {
        let case = SettleCase::of(Sample::new());
        case.prepare();
        for path in paths {
            case.sample.write(path, "1");
            case.in_session(&["add", path]);
        }
        let found: Vec<String> = case
            .accept(Some(&[]))
            .held
            .first
            .iter()
            .map(|file| file.path.to_text())
            .collect();
        assert_eq!(found, held);
    }
}

#[test]
fn a_committed_bare_repository_of_the_user_stays_importable() {
    let sample = committed();
    for path in [
        "fixture/HEAD",
        "fixture/objects/x",
        "fixture/refs/x",
        "game/objects/x",
        "game/refs/x",
    ] {
        sample.commit(path, "1");
    }
    let case = SettleCase::of(sample);
    case.prepare();
    case.commit("fixture/objects/y");
    assert!(case.accept(Some(&[])).is_settled);
    case.prepare();
    case.commit("game/HEAD");
    assert_eq!(
        case.accept(Some(&[])).held.first[0].path.to_text(),
        "game/HEAD"
    );
}

fn held(case: &SettleCase) -> Vec<String> {
    case.accept(Some(&[]))
        .held
        .first
        .iter()
        .map(|file| format!("{}: {}", file.path, file.why))
        .collect()
}

#[test]
fn tags_of_trees_and_blobs_are_examined() {
    let case = SettleCase::of(committed());
    case.prepare_for(Some("s-1"));
    let (blob, id) = object(
        &case,
        &[
            "hash-object",
            "-w",
            &case.sample.path("a").display().to_string(),
        ],
    );
    case.in_session(&["update-ref", "refs/tags/of-a-file", &blob]);
    let (plain, _) = tree(&case, &[("100644", "b", &id)]);
    case.in_session(&["update-ref", "refs/tags/plain", &plain]);
    let inner = tree(&case, &[("100644", "tasks.json", &id)]).1;
    let (top, _) = tree(&case, &[("40000", ".vscode", &inner), ("100644", "b", &id)]);
    case.in_session(&["update-ref", "refs/tags/tt", &top]);
    case.in_session(&["tag", "-a", "-m", "tag of a tag", "outer", "tt"]);
    assert_eq!(
        held(&case),
        [".vscode/tasks.json: VS Code obeys it by itself"]
    );
    case.in_session(&["tag", "-d", "outer"]);
    assert_eq!(
        held(&case),
        [".vscode/tasks.json: VS Code obeys it by itself"]
    );
    case.in_session(&["update-ref", "-d", "refs/tags/tt"]);
    assert_eq!(held(&case), [""; 0]);
    assert_eq!(case.sample.git(&["tag"]), "of-a-file\nplain\n");
}

/// Waits as long as git may examine many commits together, and then a single one.
#[test]
fn a_branch_with_too_many_paths_to_list_stays_pending_and_is_named() {
    let case = SettleCase::of(committed());
    case.prepare_for(Some("s-1"));
    case.in_session(&["branch", "bomb", &bomb(&case)]);
    case.commit(".envrc");
    let begun = std::time::Instant::now();
    assert_eq!(
        held(&case),
        [
            ".envrc: direnv obeys it by itself",
            "refs/heads/bomb: it holds too much to examine"
        ]
    );
    assert!(
        begun.elapsed() < std::time::Duration::from_mins(3),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(case.subjects(), "a\n");
}
