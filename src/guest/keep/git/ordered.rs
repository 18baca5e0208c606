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
use crate::wire::keep::NotImported;
use crate::wire::keep::PreparedGit;
use crate::wire::keep::PreparedRepository;
use crate::wire::keep::ReviewedGit;
use crate::wire::keep::SettledGit;

/// A project, and beside it what the keeper of its session has.
struct Case {
    sample: Sample,
    /// Which repositories below the top have folders too.
    below: &'static [&'static str],
}

impl Case {
    fn of(sample: Sample) -> Self {
        for name in ["state", "aside", "scratch", "session", "below"] {
            fs::create_dir(sample.beside(name)).expect("made");
        }
        Self { sample, below: &[] }
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
        let top = GitSource { path: ".git".into(), real, worktree: None, session, pointer: None, real_in_box, session_in_box };
        let below = |(at, path): (usize, &str)| {
            let real = BytesPath::from(self.sample.path(path));
            let session = BytesPath::from(self.sample.beside(&format!("below/{at}")));
            let (path, real_in_box, session_in_box) = (path.into(), real.clone(), session.clone());
            GitSource { path, real, worktree: None, session, pointer: None, real_in_box, session_in_box }
        };
        [top].into_iter().chain(self.below.iter().copied().enumerate().map(below)).collect()
    }

    fn top(&self) -> Option<GitSource> {
        self.sources().into_iter().next()
    }

    fn prepare(&self) {
        assert_eq!(self.prepare_for(None).repositories[0].refused, None);
    }

    fn prepare_for(&self, review: Option<&str>) -> PreparedGit {
        let (id, review, place) = ("s-1".to_owned(), review.map(str::to_owned), BytesPath::default());
        let order = GitOrder::Prepare { id, sources: self.sources(), hidden: Vec::new(), identity: None, review, place };
        let GitAnswer::Prepared(prepared) = self.order(&order) else { panic!("another answer") };
        prepared
    }

    /// Takes over what waited in a review.
    fn accept(&self, unless_it_may_run: Option<&[&str]>) -> SettledGit {
        let unless_it_may_run = unless_it_may_run.map(|patterns| patterns.iter().map(|&pattern| pattern.to_owned()).collect());
        let (id, below) = ("s-1".to_owned(), Some(BytesPath::from(self.sample.beside("below"))));
        let review = Some(ReviewedGit { unless_it_may_run });
        let order = GitOrder::Settle { id, top: self.top(), below, no_import: None, tries_again: true, is_top_theirs: None, review };
        let GitAnswer::Settled(settled) = self.order(&order) else { panic!("another answer") };
        settled
    }

    /// Runs git as a command in the box does.
    fn in_session(&self, words: &[&str]) {
        self.in_folder("", "session", words);
    }

    fn in_folder(&self, tree: &str, session: &str, words: &[&str]) {
        let folder = format!("--git-dir={}", self.sample.beside(session).display());
        let (text, is_good) = run_git(&self.sample.path(tree), &[&[folder.as_str(), "--work-tree=."], words].concat());
        assert!(is_good, "{text}");
    }

    fn commit(&self, path: &str) {
        self.commit_in("", "session", path);
    }

    fn commit_in(&self, tree: &str, session: &str, path: &str) {
        self.sample.write(&Path::new(tree).join(path).display().to_string(), "1");
        self.in_folder(tree, session, &["add", path]);
        self.in_folder(tree, session, &["commit", "-q", "-m", path]);
    }

    fn settle(&self, no_import: Option<&str>, is_top_theirs: Option<bool>) -> SettledGit {
        let no_import = no_import.map(str::to_owned);
        let (id, below) = ("s-1".to_owned(), Some(BytesPath::from(self.sample.beside("below"))));
        let order = GitOrder::Settle { id, top: self.top(), below, no_import, tries_again: false, is_top_theirs, review: None };
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
    let (id, place) = ("s-2".to_owned(), BytesPath::default());
    let order = GitOrder::Prepare { id, sources: Vec::new(), hidden: Vec::new(), identity: None, review: None, place };
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
    let order = GitOrder::Settle { id, top: case.top(), below: None, no_import, tries_again: true, is_top_theirs: None, review: None };
    for _ in 0..2 {
        let GitAnswer::Settled(settled) = case.order(&order) else { panic!("another answer") };
        assert!(!settled.is_settled && settled.imported.repositories[0].not_imported[0].why == "no image", "{settled:?}");
    }
    assert!(case.settle(None, None).is_settled);
    assert_eq!(case.subjects(), "b\na\n");
}

/// A repository with two others below it, each with a commit.
fn with_two_below() -> Case {
    let sample = committed();
    for folder in ["one", "deep/two"] {
        sample.git(&["init", "-q", "-b", "main", folder]);
        sample.write(&format!("{folder}/a"), "1");
        sample.git_in(folder, &["add", "a"]);
        sample.git_in(folder, &["commit", "-q", "-m", "a"]);
    }
    Case { below: &["one/.git", "deep/two/.git"], ..Case::of(sample) }
}

#[test]
fn each_repository_below_the_top_gets_what_was_committed_in_it() {
    let case = with_two_below();
    case.prepare();
    // Before anything ran it may be begun anew.
    case.prepare();
    case.commit("b");
    case.commit_in("one", "below/0", "b");
    case.commit_in("deep/two", "below/1", "c");
    let settled = case.settle(None, Some(true));
    assert!(settled.is_settled, "{settled:?}");
    let subjects = |folder: &str| case.sample.git_in(folder, &["log", "--format=%s"]);
    assert_eq!([subjects(""), subjects("one"), subjects("deep/two")], ["b\na\n", "b\na\n", "c\na\n"]);
    assert_eq!(settled.aside.moved.len(), 0);
}

#[test]
fn one_repository_below_that_is_another_by_now_keeps_the_others_from_nothing() {
    for away in ["one", "one/.git"] {
        let case = with_two_below();
        case.prepare();
        case.commit_in("one", "below/0", "b");
        case.commit_in("deep/two", "below/1", "c");
        // What leads there is followed by nobody.
        fs::rename(case.sample.path(away), case.sample.beside("away")).expect("moved");
        std::os::unix::fs::symlink(case.sample.beside("away"), case.sample.path(away)).expect("linked");
        let settled = case.settle(None, Some(true));
        let told: Vec<&NotImported> = settled.imported.repositories.iter().flat_map(|one| &one.not_imported).collect();
        assert!(told.len() == 1 && told[0].why == "`one/.git` of the project is another one than when the session began", "{told:?}");
        assert!(!settled.is_settled);
        assert_eq!(case.sample.git_in("deep/two", &["log", "--format=%s"]), "c\na\n");
        let real = case.sample.beside("away").join(if away == "one" { ".git" } else { "" });
        let (log, _) = run_git(&case.sample.beside(""), &["--git-dir", &real.display().to_string(), "log", "--format=%s"]);
        assert_eq!(log, "a\n");
    }
}

#[test]
fn what_below_the_top_cannot_have_a_folder_is_named_and_the_rest_has_one() {
    let case = with_two_below();
    let sample = &case.sample;
    sample.git(&["worktree", "add", "-q", "--detach", "tree"]);
    sample.write("deep/two/.git/objects/info/alternates", "/elsewhere\n");
    sample.write("one/.git/commondir", "../../.git\n");
    fs::rename(sample.path("one"), sample.path("other")).expect("moved");
    std::os::unix::fs::symlink("other", sample.path("one")).expect("linked");
    let refused = |prepared: PreparedGit| -> Vec<(String, String)> {
        let words = |one: PreparedRepository| Some((one.path.to_text(), one.refused?.to_string()));
        prepared.repositories.into_iter().filter_map(words).collect()
    };
    let told = refused(case.prepare_for(None));
    let names: Vec<&str> = told.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(names, ["deep/two/.git", "one/.git", "tree/.git"], "{told:?}");
    assert!(told[0].1.contains("borrows objects from /elsewhere") && told[2].1.contains("a worktree of another"), "{told:?}");
    fs::remove_file(sample.path("one")).expect("removed");
    fs::rename(sample.path("other"), sample.path("one")).expect("moved");
    let told = refused(case.prepare_for(None));
    assert!(told.iter().any(|(path, why)| path == "one/.git" && why.contains("commondir")), "{told:?}");
    case.commit("b");
    assert!(case.settle(None, Some(true)).is_settled);
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
    case.sample.git(&["worktree", "add", "-q", "--detach", "tree"]);
    let first = case.prepare_for(Some("s"));
    assert_eq!(first.repositories[1].refused, Some(GitRefusal::WorktreeBelow));
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
