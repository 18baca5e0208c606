//! A project with a session's folders beside it, for the tests of git orders.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::new_repositories::MoveOutBounds;
use super::order::KeeperFolders;
use super::order::execute;
use super::order::execute_within;
use super::sample::Sample;
use super::sample::run_git;
use podbay_wire::BytesPath;
use podbay_wire::keep::GitAnswer;
use podbay_wire::keep::GitOrder;
use podbay_wire::keep::GitSource;
use podbay_wire::keep::PreparedGit;
use podbay_wire::keep::ReviewedGit;
use podbay_wire::keep::SettledGit;

/// A project, and beside it the folders that the keeper of its session has.
pub(super) struct SettleCase {
    pub(super) sample: Sample,
    /// The repositories below the top that have folders too.
    below: &'static [&'static str],
}

impl SettleCase {
    pub(super) fn of(sample: Sample) -> Self {
        for name in ["state", "aside", "scratch", "session", "below"] {
            fs::create_dir(sample.beside(name)).expect("made");
        }
        Self { sample, below: &[] }
    }

    pub(super) fn order(&self, order: &GitOrder) -> GitAnswer {
        let mut answer = self
            .in_folders(|folders| execute(folders, order))
            .expect("done");
        answer.fit();
        answer
    }

    pub(super) fn in_folders<T>(&self, work: impl FnOnce(&KeeperFolders<'_>) -> T) -> T {
        let at = |name: &str| self.sample.beside(name);
        let (project, state, aside, scratch) = (
            self.sample.path(""),
            at("state"),
            at("aside"),
            at("scratch"),
        );
        work(&KeeperFolders {
            project: &project,
            state: &state,
            aside: &aside,
            scratch: &scratch,
        })
    }

    fn sources(&self) -> Vec<GitSource> {
        let real = BytesPath::from(self.sample.path(".git"));
        let session = BytesPath::from(self.sample.beside("session"));
        let (real_in_box, session_in_box) = (real.clone(), session.clone());
        let top = GitSource {
            path: ".git".into(),
            real,
            worktree: None,
            session,
            pointer: None,
            real_in_box,
            session_in_box,
        };
        let below = |(at, path): (usize, &str)| {
            let real = BytesPath::from(self.sample.path(path));
            let session = BytesPath::from(self.sample.beside(&format!("below/{at}")));
            let (path, real_in_box, session_in_box) = (path.into(), real.clone(), session.clone());
            GitSource {
                path,
                real,
                worktree: None,
                session,
                pointer: None,
                real_in_box,
                session_in_box,
            }
        };
        [top]
            .into_iter()
            .chain(self.below.iter().copied().enumerate().map(below))
            .collect()
    }

    pub(super) fn top(&self) -> Option<GitSource> {
        self.sources().into_iter().next()
    }

    pub(super) fn prepare(&self) {
        assert_eq!(self.prepare_for(None).repositories[0].refused, None);
    }

    pub(super) fn prepare_for(&self, review: Option<&str>) -> PreparedGit {
        let (id, review, sources) = ("s-1".to_owned(), review.map(str::to_owned), self.sources());
        let (hidden, person, place, outside) = <_>::default();
        let order = GitOrder::Prepare {
            id,
            sources,
            hidden,
            person,
            review,
            place,
            outside,
        };
        let GitAnswer::Prepared(prepared) = self.order(&order) else {
            panic!("another answer")
        };
        prepared
    }

    /// Imports what was pending with a review, unless it may run on the user's machine by these
    /// patterns; `None`: also if it may.
    pub(super) fn accept(&self, unless_it_may_run: Option<&[&str]>) -> SettledGit {
        let auto_run = unless_it_may_run
            .unwrap_or_default()
            .iter()
            .map(|&pattern| pattern.to_owned())
            .collect();
        let (id, below) = (
            "s-1".to_owned(),
            Some(BytesPath::from(self.sample.beside("below"))),
        );
        let review = Some(ReviewedGit {
            auto_run,
            with_auto_run: unless_it_may_run.is_none(),
        });
        let order = GitOrder::Settle {
            id,
            top: self.top(),
            below,
            no_import: None,
            tries_again: true,
            is_top_theirs: None,
            review,
            auto_run: Vec::new(),
            place: BytesPath::default(),
            file_size: u64::MAX,
        };
        let GitAnswer::Settled(settled) = self.order(&order) else {
            panic!("another answer")
        };
        settled
    }

    /// Runs git as a command in the sandbox does.
    pub(super) fn in_session(&self, words: &[&str]) {
        self.in_folder("", "session", words);
    }

    fn in_folder(&self, tree: &str, session: &str, words: &[&str]) {
        let folder = format!("--git-dir={}", self.sample.beside(session).display());
        let (text, is_good) = run_git(
            &self.sample.path(tree),
            &[&[folder.as_str(), "--work-tree=."], words].concat(),
        );
        assert!(is_good, "{text}");
    }

    pub(super) fn commit(&self, path: &str) {
        self.commit_in("", "session", path);
    }

    pub(super) fn commit_in(&self, tree: &str, session: &str, path: &str) {
        self.sample
            .write(&Path::new(tree).join(path).display().to_string(), "1");
        self.in_folder(tree, session, &["add", path]);
        self.in_folder(tree, session, &["commit", "-q", "-m", path]);
    }

    pub(super) fn settle(
        &self,
        no_import: Option<&str>,
        is_top_theirs: Option<bool>,
    ) -> SettledGit {
        let GitAnswer::Settled(settled) = self.order(&self.settling(no_import, is_top_theirs))
        else {
            panic!("another answer")
        };
        settled
    }

    /// Settles with a time limit for git.
    pub(super) fn settle_within(&self, import: Duration) -> SettledGit {
        let order = self.settling(None, Some(true));
        let settled = self
            .in_folders(|folders| execute_within(folders, &order, MoveOutBounds::default(), import))
            .expect("done");
        let GitAnswer::Settled(settled) = settled else {
            panic!("another answer")
        };
        settled
    }

    pub(super) fn settling(
        &self,
        no_import: Option<&str>,
        is_top_theirs: Option<bool>,
    ) -> GitOrder {
        let no_import = no_import.map(str::to_owned);
        let (id, below) = (
            "s-1".to_owned(),
            Some(BytesPath::from(self.sample.beside("below"))),
        );
        GitOrder::Settle {
            id,
            top: self.top(),
            below,
            no_import,
            tries_again: false,
            is_top_theirs,
            review: None,
            auto_run: vec!["*.run".to_owned()],
            place: BytesPath::default(),
            file_size: u64::MAX,
        }
    }

    pub(super) fn subjects(&self) -> String {
        self.sample.git(&["log", "--format=%s"])
    }
}

pub(super) fn committed() -> Sample {
    let sample = Sample::new();
    sample.commit("a", "1");
    sample
}

/// A repository with two others below it, each with a commit.
pub(super) fn with_two_below() -> SettleCase {
    let sample = committed();
    for folder in ["one", "deep/two"] {
        sample.git(&["init", "-q", "-b", "main", folder]);
        sample.write(&format!("{folder}/a"), "1");
        sample.git_in(folder, &["add", "a"]);
        sample.git_in(folder, &["commit", "-q", "-m", "a"]);
    }
    SettleCase {
        below: &["one/.git", "deep/two/.git"],
        ..SettleCase::of(sample)
    }
}

pub(super) fn object(case: &SettleCase, words: &[&str]) -> (String, Vec<u8>) {
    let folder = format!("--git-dir={}", case.sample.beside("session").display());
    let (text, is_good) = run_git(&case.sample.path(""), &[&[folder.as_str()], words].concat());
    assert!(is_good, "{text}");
    let name = text.trim().to_owned();
    let bytes = (0..name.len() / 2)
        .map(|at| u8::from_str_radix(&name[2 * at..2 * at + 2], 16).expect("a number"))
        .collect();
    (name, bytes)
}

/// Makes a commit whose trees expand to too many paths to list.
pub(super) fn bomb(case: &SettleCase) -> String {
    let mut id = object(
        case,
        &[
            "hash-object",
            "-w",
            &case.sample.path("a").display().to_string(),
        ],
    )
    .1;
    let mut name = String::new();
    // Wide rather than deep: otherwise git reads a tree for every line of its lists, which takes it
    // seconds.
    let names: Vec<String> = (0..200).map(|n| format!("{n:03}")).collect();
    for level in 0..5 {
        let mode = if level == 0 { "100644" } else { "40000" };
        let entries: Vec<(&str, &str, &[u8])> = names
            .iter()
            .map(|name| (mode, name.as_str(), id.as_slice()))
            .collect();
        (name, id) = tree(case, &entries);
    }
    object(case, &["commit-tree", &name, "-p", "HEAD", "-m", "bomb"]).0
}

/// Has git write a tree in the session from raw entries; returns its id and its bytes.
pub(super) fn tree(case: &SettleCase, entries: &[(&str, &str, &[u8])]) -> (String, Vec<u8>) {
    let bytes: Vec<u8> = entries
        .iter()
        .flat_map(|(mode, name, id)| [mode.as_bytes(), b" ", name.as_bytes(), b"\0", id].concat())
        .collect();
    fs::write(case.sample.beside("tree"), bytes).expect("written");
    object(
        case,
        &[
            "hash-object",
            "-w",
            "-t",
            "tree",
            &case.sample.beside("tree").display().to_string(),
        ],
    )
}
