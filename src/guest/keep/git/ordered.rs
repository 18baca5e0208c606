use std::fs;
use std::path::Path;

use super::order::Folders;
use super::order::carry_out;
use super::sample::Sample;
use super::sample::run_git;
use crate::wire::BytesPath;
use crate::wire::keep::GitAnswer;
use crate::wire::keep::GitOrder;
use crate::wire::keep::GitRefusal;
use crate::wire::keep::GitSource;
use crate::wire::keep::PreparedGit;
use crate::wire::keep::ReviewedGit;
use crate::wire::keep::SettledGit;

/// A project, and beside it what the keeper of its session has.
struct Case {
    sample: Sample,
}

impl Case {
    fn of(sample: Sample) -> Self {
        for name in ["state", "aside", "scratch", "session"] {
            fs::create_dir(sample.beside(name)).expect("made");
        }
        Self { sample }
    }

    fn order(&self, order: &GitOrder) -> GitAnswer {
        let at = |name: &str| self.sample.beside(name);
        let (project, state, aside, scratch) = (self.sample.path(""), at("state"), at("aside"), at("scratch"));
        carry_out(&Folders { project: &project, state: &state, aside: &aside, scratch: &scratch }, order).expect("done")
    }

    fn sources(&self) -> Vec<GitSource> {
        let real = BytesPath::from(self.sample.path(".git"));
        let session = BytesPath::from(self.sample.beside("session"));
        let (real_in_box, session_in_box) = (real.clone(), session.clone());
        vec![GitSource { path: ".git".into(), real, worktree: None, session, real_in_box, session_in_box }]
    }

    fn prepare(&self) {
        assert_eq!(self.prepare_for(None).repositories[0].refused, None);
    }

    fn prepare_for(&self, review: Option<&str>) -> PreparedGit {
        let (id, review) = ("s-1".to_owned(), review.map(str::to_owned));
        let order = GitOrder::Prepare { id, sources: self.sources(), hidden: Vec::new(), identity: None, review };
        let GitAnswer::Prepared(prepared) = self.order(&order) else { panic!("another answer") };
        prepared
    }

    /// Takes over what waited in a review.
    fn accept(&self, unless_it_may_run: Option<&[&str]>) -> SettledGit {
        let unless_it_may_run = unless_it_may_run.map(|patterns| patterns.iter().map(|&pattern| pattern.to_owned()).collect());
        let (id, sources, review) = ("s-1".to_owned(), self.sources(), Some(ReviewedGit { unless_it_may_run }));
        let order = GitOrder::Settle { id, sources, no_import: None, tries_again: true, is_top_theirs: None, review };
        let GitAnswer::Settled(settled) = self.order(&order) else { panic!("another answer") };
        settled
    }

    /// Runs git as a command in the box does.
    fn in_session(&self, words: &[&str]) {
        let folder = format!("--git-dir={}", self.sample.beside("session").display());
        let (text, is_good) = run_git(&self.sample.path(""), &[&[folder.as_str(), "--work-tree=."], words].concat());
        assert!(is_good, "{text}");
    }

    fn commit(&self, path: &str) {
        self.sample.write(path, "1");
        self.in_session(&["add", path]);
        self.in_session(&["commit", "-q", "-m", path]);
    }

    fn settle(&self, no_import: Option<&str>, is_top_theirs: Option<bool>) -> SettledGit {
        let no_import = no_import.map(str::to_owned);
        let order =
            GitOrder::Settle { id: "s-1".to_owned(), sources: self.sources(), no_import, tries_again: false, is_top_theirs, review: None };
        let GitAnswer::Settled(settled) = self.order(&order) else { panic!("another answer") };
        settled
    }

    fn subjects(&self) -> String {
        self.sample.git(&["log", "--format=%s"])
    }
}

fn names(folder: &Path) -> usize {
    fs::read_dir(folder).expect("a folder").count()
}

fn committed() -> Sample {
    let sample = Sample::new();
    sample.commit("a", "1");
    sample
}

#[test]
fn what_was_committed_is_taken_over_once_and_nothing_of_it_stays() {
    let case = Case::of(committed());
    case.prepare();
    // Somebody else was made to wait meanwhile, and it is begun anew.
    case.prepare();
    case.commit("b");
    case.sample.git(&["init", "-q", "new"]);
    assert_eq!(case.subjects(), "a\n");
    let settled = case.settle(None, Some(true));
    assert!(settled.is_settled && settled.aside.moved.len() == 1, "{settled:?}");
    assert_eq!(settled.imported.repositories[0].moved.len(), 1);
    assert_eq!(case.subjects(), "b\na\n");
    assert!(!case.sample.path("new/.git").exists() && names(&case.sample.beside("aside")) == 1);
    assert_eq!(names(&case.sample.beside("scratch")), 0);
    assert_eq!(case.settle(None, None), SettledGit { is_settled: true, ..SettledGit::default() });
    // Its record goes with the next one's preparation, and without a record nobody says that there is nothing.
    let order = GitOrder::Prepare { id: "s-2".to_owned(), sources: Vec::new(), hidden: Vec::new(), identity: None, review: None };
    case.order(&order);
    assert_eq!(names(&case.sample.beside("state/git")), 1);
    let unknown = case.settle(None, None);
    assert!(!unknown.is_settled && unknown.imported.repositories[0].not_imported[0].why.contains("not on record"), "{unknown:?}");
}

#[test]
fn what_cannot_be_taken_over_is_told_once_and_stays() {
    let case = Case::of(committed());
    case.prepare();
    case.commit("b");
    let settled = case.settle(Some("no git here"), None);
    assert_eq!(settled.imported.repositories[0].not_imported[0].why, "no git here");
    assert!(!settled.is_settled);
    assert_eq!(case.settle(None, None), SettledGit::default());
    assert_eq!(case.subjects(), "a\n");
}

#[test]
fn what_could_not_be_taken_over_for_now_is_when_it_is_tried_again() {
    let case = Case::of(committed());
    case.prepare();
    case.commit("b");
    let (id, no_import) = ("s-1".to_owned(), Some("no image".to_owned()));
    let order = GitOrder::Settle { id, sources: case.sources(), no_import, tries_again: true, is_top_theirs: None, review: None };
    for _ in 0..2 {
        let GitAnswer::Settled(settled) = case.order(&order) else { panic!("another answer") };
        assert!(!settled.is_settled && settled.imported.repositories[0].not_imported[0].why == "no image", "{settled:?}");
    }
    assert!(case.settle(None, None).is_settled);
    assert_eq!(case.subjects(), "b\na\n");
}

#[test]
fn nothing_goes_to_a_repository_that_took_the_place_of_the_first() {
    for is_top_theirs in [None, Some(false), Some(true)] {
        let case = Case::of(committed());
        case.prepare();
        case.commit("b");
        fs::remove_dir_all(case.sample.path(".git")).expect("removed");
        case.sample.git(&["init", "-q"]);
        let settled = case.settle(None, is_top_theirs);
        assert!(settled.imported.repositories[0].not_imported[0].why.contains("another one"), "{settled:?}");
        let is_there = case.sample.path(".git").exists();
        assert_eq!((is_there, settled.aside.moved.len()), if is_top_theirs == Some(true) { (true, 0) } else { (false, 1) });
    }
}

#[test]
fn a_session_goes_on_in_its_folders_as_long_as_its_review_waits() {
    let case = Case::of(committed());
    let first = case.prepare_for(Some("s"));
    case.commit("b");
    let reviews = case.sample.beside("state/reviews");
    fs::create_dir(&reviews).expect("made");
    fs::write(reviews.join("s.json"), "{}").expect("written");
    assert_eq!(case.prepare_for(Some("s")), first, "what it was told before, it is told again");
    case.commit("c");
    // The project's own repository is another one: what the session borrows is not there.
    fs::rename(case.sample.path(".git"), case.sample.beside("away")).expect("moved");
    case.sample.git(&["init", "-q"]);
    assert_eq!(case.prepare_for(Some("s")).repositories[0].refused, Some(GitRefusal::Replaced));
    fs::remove_dir_all(case.sample.path(".git")).expect("removed");
    fs::rename(case.sample.beside("away"), case.sample.path(".git")).expect("moved");
    assert!(case.accept(None).is_settled);
    assert_eq!(case.subjects(), "c\nb\na\n");
    // The next one begins anew.
    assert_ne!(case.prepare_for(Some("s")).repositories, []);
    case.commit("d");
    fs::remove_file(reviews.join("s.json")).expect("removed");
    case.prepare_for(Some("s"));
    assert!(case.accept(None).imported.repositories[0].moved.is_empty(), "nothing ran in what was begun without a review");
}

#[test]
fn what_waited_in_a_review_moves_no_repository_of_the_persons() {
    let case = Case::of(committed());
    case.prepare();
    case.commit("b");
    case.sample.git(&["init", "-q", "theirs"]);
    let settled = case.accept(Some(&[]));
    assert!(settled.is_settled && settled.aside.moved.is_empty(), "{settled:?}");
    assert!(case.sample.path("theirs/.git/HEAD").exists());
    assert_eq!(case.subjects(), "b\na\n");
    assert!(case.accept(Some(&[])).is_settled, "again is no harm");
}

#[test]
fn what_cannot_be_taken_over_is_tried_again_as_long_as_its_review_waits() {
    let case = Case::of(committed());
    case.prepare();
    case.commit("b");
    let before = case.sample.git(&["rev-parse", "HEAD"]);
    case.sample.git(&["commit", "-q", "--allow-empty", "-m", "mine"]);
    for _ in 0..2 {
        let settled = case.accept(None);
        assert!(!settled.is_settled && settled.imported.repositories[0].not_imported[0].why.contains("was moved here"), "{settled:?}");
    }
    case.sample.git(&["reset", "-q", "--soft", before.trim()]);
    assert!(case.accept(None).is_settled);
    assert_eq!(case.subjects(), "b\na\n");
}

#[test]
fn commits_that_hold_what_may_run_come_only_when_asked() {
    let case = Case::of(committed());
    let theirs = case.sample.commit("Makefile", "all:\n");
    case.prepare();
    // It is in the history alone, on a branch that is not checked out, below a tag, in a stash; and what the person has is no new thing.
    case.in_session(&["checkout", "-q", "-b", "side"]);
    case.commit("deep/build.rs");
    case.in_session(&["rm", "-q", "deep/build.rs", "Makefile"]);
    case.in_session(&["commit", "-q", "-m", "gone"]);
    case.in_session(&["checkout", "-q", "main"]);
    case.commit("tools/x.run");
    case.in_session(&["merge", "-q", "-m", "joined", "side"]);
    let held = |patterns: &[&str]| -> Vec<String> {
        let settled = case.accept(Some(patterns));
        assert!(!settled.is_settled && settled.imported.repositories.is_empty(), "{settled:?}");
        settled.held.first.iter().map(|file| file.path.to_text()).collect()
    };
    assert_eq!(held(&[]), ["deep/build.rs"]);
    assert_eq!(held(&["*.run"]), ["deep/build.rs", "tools/x.run"]);
    assert_eq!(case.sample.git(&["rev-parse", "HEAD"]).trim(), theirs);
    assert!(case.accept(None).is_settled);
    assert!(case.subjects().contains("joined\n"));
    let case = Case::of(committed());
    case.prepare();
    case.sample.write(".envrc", "x\n");
    case.in_session(&["add", ".envrc"]);
    let settled = case.accept(Some(&[]));
    assert_eq!(settled.held.first[0].path.to_text(), ".envrc", "what is only staged counts, too");
    case.in_session(&["stash", "-q"]);
    assert_eq!(case.accept(Some(&[])).held.first[0].path.to_text(), ".envrc");
}
