//! Tests of repositories that are too many or too large: all of them are moved out of git's way,
//! and some are copied out of the project.

use std::fs;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use nix::sys::stat::Mode;
use nix::sys::stat::mkdirat;

use super::bounded_copy::CopyAllowance;
use super::find::find;
use super::move_out::MoveOut;
use super::new_repositories::MoveOutBounds;
use super::new_repositories::move_out_new;
use super::sample::Sample;
use super::sample::run_git;
use super::untrusted_folder::UntrustedFolder;
use crate::keep::testing::SmallDisk;
use podbay_wire::BytesPath;
use podbay_wire::keep::FoundGit;
use podbay_wire::keep::MOST_NAMED;
use podbay_wire::keep::MovedOutGit;

const MB: usize = 1 << 20;

struct BoundsCase {
    sample: Sample,
    start: FoundGit,
}

impl BoundsCase {
    fn new() -> Self {
        let sample = Sample::without_git();
        fs::create_dir(sample.beside("kept")).expect("made");
        let start = find(&open(&sample.path("")), Duration::from_secs(20));
        Self { sample, start }
    }

    /// Makes a repository of about this many bytes, without holes.
    fn repository(&self, path: &str, bytes: usize) {
        self.sample.git(&["init", "-q", "--template=", path]);
        fs::write(self.sample.path(path).join(".git/large"), vec![1; bytes]).expect("written");
    }

    fn aside(&self, room: CopyAllowance) -> MovedOutGit {
        let all = move_out_new(
            &open(&self.sample.path("")),
            &self.start,
            (&open(&self.sample.beside("kept")), "s"),
            bounds(room),
        );
        all.expect("moved")
    }

    fn kept(&self) -> Vec<String> {
        names(&self.sample.beside("kept"))
    }
}

fn bounds(room: CopyAllowance) -> MoveOutBounds {
    MoveOutBounds {
        room,
        ..MoveOutBounds::default()
    }
}

fn of_bytes(bytes: usize) -> CopyAllowance {
    CopyAllowance {
        bytes: bytes as u64,
        ..CopyAllowance::default()
    }
}

fn open(path: &Path) -> UntrustedFolder {
    UntrustedFolder::open(path).expect("opens")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The original path of each, and where it is in the project now.
fn left(all: &MovedOutGit) -> Vec<(String, String)> {
    let of = |one: &podbay_wire::keep::MovedOutRepository| {
        Some((one.path.to_text(), one.left.as_ref()?.to_text()))
    };
    all.moved.first.iter().filter_map(of).collect()
}

fn pair(path: &str, left: &str) -> (String, String) {
    (path.to_owned(), left.to_owned())
}

#[test]
fn the_size_limit_is_shared_by_all_moved_repositories() {
    let case = BoundsCase::new();
    for name in ["a", "b", "c", "d"] {
        case.repository(name, MB);
    }
    case.sample.write("e/.git", "gitdir: ../a/.git");
    let all = case.aside(of_bytes(5 * MB / 2));
    assert_eq!(
        left(&all),
        [
            pair("c/.git", "c/.podbay-left-s-2"),
            pair("d/.git", "d/.podbay-left-s-3")
        ]
    );
    assert_eq!(
        (all.moved.n, all.n_left, all.n_stuck, all.is_late),
        (5, 2, 0, false)
    );
    assert_eq!(
        case.kept(),
        ["s-0", "s-1", "s-4"],
        "a small one goes all the same"
    );
    assert!(
        case.sample.path("c/.podbay-left-s-2/large").exists()
            && !run_git(&case.sample.path("c"), &["status"]).1
    );
    let again = case.aside(CopyAllowance::default());
    assert_eq!(
        (again.moved.n, again.whole),
        (0, true),
        "it is not tried again"
    );
}

#[test]
fn the_file_limit_is_shared_by_all_moved_repositories() {
    let case = BoundsCase::new();
    for n in 0..6 {
        case.sample.write(&format!("{n}/.git"), "gitdir: x");
    }
    let all = case.aside(CopyAllowance {
        files: 4,
        ..CopyAllowance::default()
    });
    assert_eq!((all.moved.n, all.n_left, case.kept().len()), (6, 2, 4));
    assert!((0..6).all(|n| !case.sample.path(&format!("{n}/.git")).exists()));
}

#[test]
fn holes_in_files_stay_holes_and_do_not_count() {
    let case = BoundsCase::new();
    case.repository("new", 0);
    let length = 3 << 30;
    let sparse = fs::File::create(case.sample.path("new/.git/sparse")).expect("made");
    sparse
        .write_all_at(b"begin", 0)
        .and_then(|()| sparse.write_all_at(b"middle", 1 << 30))
        .expect("written");
    sparse.set_len(length).expect("a file that takes no room");
    let all = case.aside(of_bytes(MB));
    assert_eq!(left(&all), []);
    let copy = fs::File::open(case.sample.beside("kept/s-0/sparse")).expect("kept");
    let facts = copy.metadata().expect("facts");
    assert!(
        facts.len() == length && facts.blocks() * 512 < MB as u64,
        "{facts:?}"
    );
    let mut words = [0; 6];
    copy.read_exact_at(&mut words, 1 << 30).expect("read");
    assert_eq!(&words, b"middle");
    copy.read_exact_at(&mut words[..5], 0).expect("read");
    assert_eq!(&words[..5], b"begin");
}

#[test]
fn a_full_disk_leaves_no_half_copy_and_no_repository_in_the_project() {
    let case = BoundsCase::new();
    for (name, bytes) in [("a", MB / 4), ("b", 2 * MB), ("c", 1000)] {
        case.repository(name, bytes);
    }
    let Some(_small) = SmallDisk::mount(case.sample.beside("kept"), "1m") else {
        return;
    };
    let all = case.aside(CopyAllowance::default());
    assert_eq!(
        left(&all),
        [
            pair("b/.git", "b/.podbay-left-s-1"),
            pair("c/.git", "c/.podbay-left-s-2")
        ]
    );
    assert!(
        all.moved.first[0]
            .problem
            .as_deref()
            .is_some_and(|why| why.contains("no space left")),
        "{all:?}"
    );
    assert_eq!(
        (case.kept(), all.n_stuck, all.whole),
        (vec!["s-0".to_owned()], 0, true)
    );
    for name in ["a", "b", "c"] {
        assert!(!run_git(&case.sample.path(name), &["status"]).1, "{name}");
    }
}

#[test]
fn a_repository_too_large_to_copy_is_disarmed_with_all_in_it() {
    let case = BoundsCase::new();
    let sample = &case.sample;
    sample.git(&["init", "-q", "--bare", "vendor"]);
    fs::write(sample.path("vendor/objects/large"), vec![1; 2 * MB]).expect("written");
    // The name that its HEAD would get.
    sample.write("new/.git/HEAD.aside/x", "x");
    sample.git(&["init", "-q", "--template=", "new"]);
    fs::write(sample.path("new/.git/large"), vec![1; 2 * MB]).expect("written");
    sample.git(&["init", "-q", "--template=", "vendor/objects/deep"]);
    let all = case.aside(of_bytes(MB));
    assert_eq!(
        left(&all),
        [
            pair("new/.git", "new/.podbay-left-s-0"),
            pair("vendor", ".podbay-left-s-1")
        ]
    );
    let problem = all.moved.first.iter().find_map(|one| one.problem.as_ref());
    assert_eq!(
        (all.moved.n, problem, case.kept().len()),
        (3, None, 1),
        "each is taken once: {all:?}"
    );
    for folder in [
        "new/.podbay-left-s-0",
        ".podbay-left-s-1",
        ".podbay-left-s-1/objects/deep",
    ] {
        assert!(
            sample.path(folder).is_dir()
                && !run_git(&sample.path(folder), &["rev-parse", "--git-dir"]).1,
            "{folder}"
        );
    }
}

#[test]
fn nested_repositories_are_moved_out_down_to_the_last() {
    let case = BoundsCase::new();
    let sample = &case.sample;
    let folder = |depth: usize| vec!["in"; depth].join("/");
    for depth in 1..=12 {
        for name in ["objects/x", "refs/x", "HEAD", "read me"] {
            sample.write(
                &format!("{}/{name}", folder(depth)),
                "ref: refs/heads/main\n",
            );
        }
    }
    let all = case.aside(CopyAllowance::default());
    assert_eq!((all.moved.n, all.whole, case.kept().len()), (12, true, 12));
    for depth in 1..=12 {
        let last: &[&str] = if depth == 12 {
            &["read me"]
        } else {
            &["in", "read me"]
        };
        assert_eq!(names(&sample.path(&folder(depth))), last, "{depth}");
    }
}

#[test]
fn entries_deeper_than_a_path_may_be_long_are_copied() {
    let case = BoundsCase::new();
    let name = |n: usize| vec![b'd'; n];
    let mut folder = open(&case.sample.path(""));
    for _ in 0..15 {
        mkdirat(&folder, name(250).as_slice(), Mode::S_IRWXU).expect("made");
        folder = folder.descend(&name(250)).expect("opens");
    }
    let inside = [name(200), name(200), b"file".to_vec()].join(&b'/');
    folder
        .write(&[b".git/".as_slice(), &inside].concat(), b"deep")
        .expect("written");
    let all = case.aside(CopyAllowance::default());
    assert_eq!(
        (all.moved.n, all.moved.first[0].n_passed_over, all.whole),
        (1, 0, true),
        "{all:?}"
    );
    assert_eq!(folder.names(b".").expect("listed"), []);
    let kept = open(&case.sample.beside("kept"))
        .descend(b"s-0")
        .expect("kept");
    assert_eq!(
        kept.read(&inside, 9).expect("read").as_deref(),
        Some(b"deep".as_slice())
    );
}

#[test]
fn all_are_counted_and_those_that_stayed_are_named_first() {
    let case = BoundsCase::new();
    for n in 0..MOST_NAMED + 50 {
        case.sample.write(&format!("{n:03}/.git"), "gitdir: x");
    }
    case.repository("z", 2 * MB);
    let all = case.aside(of_bytes(MB));
    assert_eq!(
        (all.moved.n, all.moved.first.len()),
        (MOST_NAMED as u64 + 51, MOST_NAMED)
    );
    assert_eq!(
        (all.moved.first[0].path.to_text().as_str(), all.n_left),
        ("z/.git", 1)
    );
}

#[test]
fn repositories_renamed_in_time_are_copied_the_next_time() {
    let case = BoundsCase::new();
    case.repository("a", 10);
    case.sample.write("b/.git", "gitdir: ../a/.git");
    let (project, kept) = (
        open(&case.sample.path("")),
        open(&case.sample.beside("kept")),
    );
    let now = find(&project, Duration::from_secs(20));
    let mut moving = MoveOut::new(
        &project,
        &case.start,
        (&kept, "s"),
        CopyAllowance::default(),
        Instant::now(),
    );
    now.repositories
        .iter()
        .for_each(|one| drop(moving.take(one)));
    while Instant::now() <= moving.end() {}
    moving.copy_all();
    let all = moving.told(true, true);
    let waits: Vec<Option<String>> = all
        .moved
        .first
        .iter()
        .map(|one| one.waits.as_ref().map(BytesPath::to_text))
        .collect();
    assert_eq!(
        waits,
        [
            Some("a/.podbay-aside-s-0".to_owned()),
            Some("b/.podbay-aside-s-1".to_owned())
        ]
    );
    assert!(all.is_late && all.n_waiting == 2 && case.kept().is_empty());
    assert!(
        ["a", "b"]
            .iter()
            .all(|name| !run_git(&case.sample.path(name), &["status"]).1)
    );
    let all = case.aside(CopyAllowance::default());
    assert_eq!((all.moved.n, all.is_late, case.kept().len()), (2, false, 2));
    assert!(names(&case.sample.path("a")).is_empty() && names(&case.sample.path("b")).is_empty());
    // Where no progress was made, there would be none the next time either.
    case.repository("c", 10);
    let late = move_out_new(
        &project,
        &case.start,
        (&kept, "s"),
        MoveOutBounds {
            time: Duration::ZERO,
            ..MoveOutBounds::default()
        },
    )
    .expect("looked");
    assert_eq!((late.moved.n, late.whole, late.is_late), (0, false, false));
}

#[test]
fn a_half_copy_of_a_killed_keeper_is_not_used() {
    let case = BoundsCase::new();
    case.repository("a", MB);
    case.sample.write("../kept/.half-s/config", "half");
    case.sample
        .write("../kept/.half-other/config", "somebody else's");
    let all = case.aside(CopyAllowance::default());
    assert_eq!(
        (
            all.moved.n,
            all.moved.first[0].kept.as_ref().map(BytesPath::to_text)
        ),
        (1, Some("s-0".to_owned())),
        "{all:?}"
    );
    assert_eq!(case.kept(), [".half-other", "s-0"]);
    // One over the limit leaves nothing behind either.
    case.repository("b", MB);
    assert_eq!(
        case.aside(CopyAllowance {
            bytes: 10,
            ..CopyAllowance::default()
        })
        .n_left,
        1
    );
    assert_eq!(case.kept(), [".half-other", "s-0"]);
}

#[test]
fn after_an_incomplete_first_search_moved_repositories_are_unsure() {
    let mut case = BoundsCase::new();
    case.repository("a", 10);
    assert!(
        !case.aside(CopyAllowance::default()).is_unsure,
        "all was seen"
    );
    case.repository("b", 10);
    case.start.whole = false;
    let all = case.aside(CopyAllowance::default());
    assert!(all.is_unsure && all.whole && all.moved.n == 1, "{all:?}");
    assert!(
        !case.aside(CopyAllowance::default()).is_unsure,
        "nothing was moved"
    );
}
