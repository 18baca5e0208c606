//! Tests of a session that turns a folder with other files into a repository: only the parts of the
//! repository are moved out.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::time::Duration;

use super::find::find;
use super::new_repositories::MoveOutBounds;
use super::new_repositories::move_out_new;
use super::sample::Sample;
use super::sample::run_git;
use super::untrusted_folder::UntrustedFolder;
use podbay_wire::keep::FoundGit;
use podbay_wire::keep::MovedOutRepository;

const BUDGET: Duration = Duration::from_secs(20);

struct PartialCase {
    sample: Sample,
    start: FoundGit,
}

impl PartialCase {
    /// A project whose folder `lib` has files of the user's, some with names of repository parts.
    fn new() -> Self {
        let sample = Sample::without_git();
        for path in [
            "lib/a.txt",
            "lib/deep/b.txt",
            "lib/config",
            "lib/objects/sprite",
        ] {
            sample.write(path, "theirs\n");
        }
        Self::of(sample)
    }

    fn of(sample: Sample) -> Self {
        fs::create_dir(sample.beside("kept")).expect("made");
        let start = find(
            &UntrustedFolder::open(&sample.path("")).expect("opens"),
            BUDGET,
        );
        Self { sample, start }
    }

    fn aside(&self) -> Vec<MovedOutRepository> {
        let open = |path| UntrustedFolder::open(path).expect("opens");
        let (project, kept) = (
            open(&self.sample.path("")),
            open(&self.sample.beside("kept")),
        );
        let all = move_out_new(
            &project,
            &self.start,
            (&kept, "s"),
            MoveOutBounds::default(),
        )
        .expect("moved");
        assert_eq!(
            move_out_new(
                &project,
                &self.start,
                (&kept, "s"),
                MoveOutBounds::default()
            )
            .expect("moved")
            .moved
            .n,
            0
        );
        all.moved.first
    }

    /// Whether git treats a folder as a repository.
    fn is_repository(&self, folder: &str) -> bool {
        run_git(&self.sample.path(folder), &["rev-parse", "--git-dir"]).1
    }

    /// Returns the names in a folder, without subfolders' contents.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.sample.path(folder))
            .expect("a folder")
            .flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// Returns the original path, and which names in it were moved.
fn told(aside: &MovedOutRepository) -> String {
    let parts: Vec<String> = aside.parts.first.iter().map(ToString::to_string).collect();
    format!("{}: {}", aside.path, parts.join(" "))
}

#[test]
fn files_beside_the_parts_of_a_new_repository_stay() {
    let case = PartialCase::new();
    let sample = &case.sample;
    sample.write("lib/HEAD", "ref: refs/heads/main\n");
    sample.write("lib/refs/heads/", "");
    sample.write("lib/hooks/pre-commit", "evil");
    sample.write("lib/made.txt", "by the session");
    symlink("/etc/passwd", sample.path("lib/index")).expect("linked");
    // The user's own file, changed in place as a command may.
    sample.write("lib/config", "[core]\n\tbare = true\n");
    assert!(case.is_repository("lib"), "git takes it for one");
    let moved = case.aside();
    assert_eq!(
        moved.iter().map(told).collect::<Vec<_>>(),
        ["lib: HEAD hooks index refs"]
    );
    assert!(!case.is_repository("lib"));
    assert_eq!(
        case.names("lib"),
        ["a.txt", "config", "deep", "made.txt", "objects"]
    );
    assert_eq!(
        fs::read_to_string(sample.path("lib/deep/b.txt")).expect("read"),
        "theirs\n"
    );
    assert_eq!(
        fs::read_to_string(sample.path("lib/config")).expect("read"),
        "[core]\n\tbare = true\n"
    );
    let kept = sample
        .beside("kept")
        .join(moved[0].kept.as_ref().expect("kept").as_path());
    assert!(
        kept.join("hooks/pre-commit").exists()
            && kept.join("HEAD.aside").exists()
            && !kept.join("a.txt").exists()
    );
    assert_eq!(
        fs::read_link(kept.join("index"))
            .expect("a link, still")
            .as_os_str(),
        "/etc/passwd"
    );
    // Only what was moved can no longer run.
    let has = |path: &str| moved[0].has(path.as_bytes());
    assert!(
        has("lib/hooks/pre-commit")
            && has("lib/HEAD")
            && !has("lib/made.txt")
            && !has("lib")
            && !has("library/HEAD")
            && !has("HEAD")
    );
}

#[test]
fn a_config_file_of_the_user_stays_without_the_repository_around_it() {
    let sample = Sample::without_git();
    sample.write("notes/HEAD", "head of the notes\n");
    sample.write("notes/refs/list", "theirs\n");
    sample.write("other/HEAD", "head of the others\n");
    let case = PartialCase::of(sample);
    let sample = &case.sample;
    sample.write("notes/HEAD", "ref: refs/heads/main\n");
    sample.write("notes/objects/", "");
    sample.write("notes/config", "[core]\n\tbare = true\n");
    sample.write("other/HEAD", "ref: refs/heads/main\n");
    sample.write("other/commondir", "../vendor");
    sample.git(&["init", "-q", "--bare", "vendor"]);
    assert!(case.is_repository("notes") && case.is_repository("other"));
    let moved: Vec<String> = case.aside().iter().map(told).collect();
    assert_eq!(
        moved,
        ["notes: config objects", "other: commondir", "vendor: "]
    );
    assert_eq!(
        (case.names("notes").join(" "), case.names("other").join(" ")),
        ("HEAD refs".to_owned(), "HEAD".to_owned())
    );
    assert!(
        !case.is_repository("notes")
            && !case.is_repository("other")
            && !sample.path("vendor").exists()
    );
}

#[test]
fn a_replaced_repository_keeps_no_parts() {
    let sample = Sample::without_git();
    sample.git(&["init", "-q", "--bare", "vendor"]);
    let mut case = PartialCase::of(sample);
    assert!(
        case.start.parts.is_empty(),
        "they are no files of the user's: {:?}",
        case.start.parts
    );
    // As for a repository whose folder was replaced.
    case.start.repositories.clear();
    case.sample.write("vendor/read me", "x");
    assert_eq!(case.aside().len(), 1);
    assert!(!case.is_repository("vendor"));
    assert_eq!(case.names("vendor"), ["read me"]);
}

#[test]
fn parts_leave_a_read_only_folder_which_keeps_its_mode() {
    let case = PartialCase::new();
    let sample = &case.sample;
    sample.write("lib/HEAD", "ref: refs/heads/main\n");
    sample.write("lib/refs/heads/main", "");
    let is_root = nix::unistd::geteuid().is_root();
    let other_user = nix::unistd::Uid::from_raw(1000);
    let mut folders = vec![sample.beside("")];
    while let Some(path) = folders.pop()
        && is_root
    {
        nix::unistd::chown(&path, Some(other_user), None).expect("owned by another user");
        folders.extend(
            fs::read_dir(&path)
                .into_iter()
                .flatten()
                .map(|entry| entry.expect("an entry").path()),
        );
    }
    for path in ["lib/refs", "lib"] {
        fs::set_permissions(sample.path(path), fs::Permissions::from_mode(0o555)).expect("set");
    }
    // Modes do not keep root out.
    let before = is_root.then(|| nix::unistd::setfsuid(other_user));
    let moved = case.aside();
    before.map(nix::unistd::setfsuid);
    assert_eq!(
        moved.iter().map(told).collect::<Vec<_>>(),
        ["lib: HEAD refs"]
    );
    assert!(
        moved[0].problem.is_none() && moved[0].kept.is_some(),
        "{moved:?}"
    );
    assert_eq!(case.names("lib"), ["a.txt", "config", "deep", "objects"]);
    assert_eq!(
        fs::metadata(sample.path("lib"))
            .expect("facts")
            .permissions()
            .mode()
            & 0o777,
        0o555
    );
}

#[test]
fn an_interrupted_move_of_parts_is_continued() {
    let case = PartialCase::new();
    case.sample.write("lib/.podbay-aside-s-0/HEAD.aside", "x");
    let moved = case.aside();
    assert_eq!(
        moved.iter().map(told).collect::<Vec<_>>(),
        ["lib/.podbay-aside-s-0: "]
    );
    assert_eq!(case.names("lib"), ["a.txt", "config", "deep", "objects"]);
}
