use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;

use super::super::new_repositories::MoveOutBounds;
use super::super::sample::Sample;
use super::*;

fn found(sample: &Sample) -> FoundGit {
    find(
        &UntrustedFolder::open(&sample.path("")).expect("opens"),
        Duration::from_secs(20),
    )
}

fn shown(found: &FoundGit) -> Vec<String> {
    let one = |repository: &FoundRepository| match &repository.kind {
        GitKind::Pointer { to } => format!("{} pointer {to}", repository.path),
        GitKind::Link { to } => format!("{} link {to}", repository.path),
        kind => format!("{} {kind:?}", repository.path),
    };
    found.repositories.iter().map(one).collect()
}

#[test]
fn every_kind_of_repository_and_git_file_is_found() {
    let sample = Sample::with_submodules();
    sample.git(&["init", "-q", "deep/er/nested"]);
    sample.git(&["init", "-q", "--bare", "bare.git"]);
    sample.git(&["worktree", "add", "-q", "--detach", "tree"]);
    symlink("deep/er/nested/.git", sample.path("deep/.git")).expect("linked");
    // Only redirects: everything but HEAD lies elsewhere.
    sample.write("lure/HEAD", "ref: refs/heads/x\n");
    sample.write("lure/commondir", "../bare.git");
    sample.write("no repository/HEAD", "x");
    sample.write("no repository/objects/x", "x");
    sample.write("src/.gitignore", "x");
    let found = found(&sample);
    assert!(found.whole);
    let parts: Vec<String> = found.parts.iter().map(BytesPath::to_text).collect();
    assert_eq!(parts, ["no repository/HEAD", "no repository/objects"]);
    let worktree = format!(
        "tree/.git pointer {}",
        sample.path(".git/worktrees/tree").display()
    );
    let expected = [
        ".git Folder",
        ".git/modules/sub Module",
        ".git/modules/sub/modules/deeper Module",
        "bare.git Bare",
        "deep/.git link deep/er/nested/.git",
        "deep/er/nested/.git Folder",
        "lure Bare",
        "sub/.git pointer ../.git/modules/sub",
        "sub/deeper/.git pointer ../../.git/modules/sub/modules/deeper",
        &worktree,
    ];
    assert_eq!(shown(&found), expected);
}

const OTHER_USER: nix::unistd::Uid = nix::unistd::Uid::from_raw(1000);

fn set_mode(sample: &Sample, path: &str, mode: u32) {
    fs::set_permissions(sample.path(path), fs::Permissions::from_mode(mode)).expect("set");
}

fn mode(sample: &Sample, path: &str) -> u32 {
    fs::metadata(sample.path(path))
        .expect("facts")
        .permissions()
        .mode()
        & 0o777
}

/// Runs something as a user whom modes restrict, since root is not.
fn as_owner<T>(sample: &Sample, what: impl FnOnce() -> T) -> T {
    if !nix::unistd::geteuid().is_root() {
        return what();
    }
    let mut folders = vec![sample.beside("")];
    while let Some(path) = folders.pop() {
        // What root made as another user's for the test stays so.
        if !path.ends_with("theirs") {
            nix::unistd::chown(&path, Some(OTHER_USER), None).expect("owned by another user");
        }
        folders.extend(
            fs::read_dir(&path)
                .into_iter()
                .flatten()
                .map(|entry| entry.expect("an entry").path()),
        );
    }
    let before = nix::unistd::setfsuid(OTHER_USER);
    let done = what();
    nix::unistd::setfsuid(before);
    done
}

#[test]
fn a_folder_that_cannot_be_listed_hides_no_repository() {
    let sample = Sample::without_git();
    for folder in ["src", "shut/in/er", "listed", "plain/deep", "both/below"] {
        sample.write(&format!("{folder}/file"), "x");
    }
    let start = found(&sample);
    for folder in ["src", "shut/in/er", "listed", "both/below"] {
        sample.git(&["init", "-q", folder]);
    }
    let modes = [
        ("src", 0o311),
        ("shut/in", 0o100),
        ("shut", 0),
        ("listed", 0o400),
        ("plain/deep", 0),
        ("plain", 0o200),
        ("both/below", 0o311),
    ];
    for (path, mode) in modes {
        set_mode(&sample, path, mode);
    }
    set_mode(&sample, "both", 0o111);
    fs::create_dir(sample.beside("kept")).expect("made");
    let (now, moved) = as_owner(&sample, || {
        let open = |path: &std::path::Path| UntrustedFolder::open(path).expect("opens");
        let (project, kept) = (open(&sample.path("")), open(&sample.beside("kept")));
        (
            found(&sample),
            super::super::new_repositories::move_out_new(
                &project,
                &start,
                (&kept, "s"),
                MoveOutBounds::default(),
            )
            .expect("moved"),
        )
    });
    assert!(now.whole && moved.whole, "{now:?}");
    let all = [
        "both/below/.git",
        "listed/.git",
        "shut/in/er/.git",
        "src/.git",
    ];
    assert_eq!(
        now.repositories
            .iter()
            .map(|one| one.path.to_text())
            .collect::<Vec<_>>(),
        all
    );
    let mut out: Vec<String> = moved
        .moved
        .first
        .iter()
        .filter(|one| one.kept.is_some())
        .map(|one| one.path.to_text())
        .collect();
    out.sort();
    assert_eq!(out, all, "{moved:?}");
    assert_eq!(
        ["src", "both", "both/below", "plain"].map(|path| mode(&sample, path)),
        [0o311, 0o111, 0o311, 0o200],
        "as they were"
    );
    set_mode(&sample, "plain", 0o700);
    assert_eq!(mode(&sample, "plain/deep"), 0);
    set_mode(&sample, "plain/deep", 0o700);
    assert_eq!(
        ["shut", "listed"].map(|path| mode(&sample, path)),
        [0, 0o400],
        "what lay in them is out, and they are as they were"
    );
}

#[test]
fn a_bare_repository_that_cannot_be_listed_is_moved_out() {
    let sample = Sample::without_git();
    for folder in ["whole", "in/side", "mixed", "shut"] {
        sample.write(&format!("{folder}/keep"), "x");
    }
    sample.write("start", "x");
    let start = found(&sample);
    for folder in ["whole", "in/side", "mixed", "shut"] {
        sample.git(&["init", "-q", "--bare", folder]);
    }
    // Other entries beside the parts of a repository stay, and may lead to another one.
    sample.git(&["init", "-q", "mixed/deep"]);
    for folder in ["whole", "in/side", "shut"] {
        fs::remove_file(sample.path(&format!("{folder}/keep"))).expect("removed");
    }
    for (path, mode) in [
        ("whole", 0o311),
        ("in/side", 0o333),
        ("in", 0o311),
        ("mixed", 0o111),
        ("shut", 0o111),
    ] {
        set_mode(&sample, path, mode);
    }
    fs::create_dir(sample.beside("kept")).expect("made");
    let moved = as_owner(&sample, || {
        let open = |path: &std::path::Path| UntrustedFolder::open(path).expect("opens");
        let (project, kept) = (open(&sample.path("")), open(&sample.beside("kept")));
        super::super::new_repositories::move_out_new(
            &project,
            &start,
            (&kept, "s"),
            MoveOutBounds::default(),
        )
        .expect("moved")
    });
    assert!(
        moved.whole && moved.n_stuck == 0 && moved.n_left == 0,
        "{moved:?}"
    );
    let mut out: Vec<String> = moved
        .moved
        .first
        .iter()
        .filter(|one| one.kept.is_some())
        .map(|one| one.path.to_text())
        .collect();
    out.sort();
    assert_eq!(
        out,
        ["in/side", "mixed", "mixed/deep/.git", "shut", "whole"],
        "{moved:?}"
    );
    assert_eq!(
        ["in", "mixed"].map(|path| mode(&sample, path)),
        [0o311, 0o111],
        "as they were"
    );
    set_mode(&sample, "mixed", 0o700);
    assert_eq!(
        fs::read_dir(sample.path("mixed")).expect("listed").count(),
        2,
        "`keep` and `deep` are left"
    );
}

#[test]
fn a_search_in_several_steps_finds_each_repository_once() {
    let sample = Sample::without_git();
    for n in 0..7 {
        sample.write(&format!("shut/{n}/.git"), "gitdir: x");
    }
    sample.write("HEAD", "x");
    set_mode(&sample, "shut", 0);
    let (all, is_over) = as_owner(&sample, || {
        let project = UntrustedFolder::open(&sample.path("")).expect("opens");
        let mut walk = RepositoryWalk::begin(&project, SubmoduleScan::Named).expect("a folder");
        let end = Instant::now() + Duration::from_secs(20);
        let all: Vec<FoundGit> = (0..4).map(|_| walk.next(1, end)).collect();
        let is_over = walk.is_over();
        walk.end();
        (all, is_over)
    });
    assert!(
        is_over
            && all
                .iter()
                .all(|found| found.whole && found.repositories.len() <= 2),
        "{all:?}"
    );
    let mut paths: Vec<String> = all.iter().flat_map(shown).collect();
    paths.sort();
    assert_eq!(
        paths,
        (0..7)
            .map(|n| format!("shut/{n}/.git pointer x"))
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_folder_of_another_user_that_cannot_be_listed_is_named() {
    let sample = Sample::without_git();
    sample.write("src/file", "x");
    fs::create_dir_all(sample.path("open/theirs")).expect("made");
    fs::create_dir_all(sample.path("shut/theirs")).expect("made");
    set_mode(&sample, "open/theirs", 0o733);
    set_mode(&sample, "shut/theirs", 0o700);
    let look = || {
        let project = UntrustedFolder::open(&sample.path("")).expect("opens");
        (
            find(&project, Duration::from_secs(20)).whole,
            closed(&project, Duration::from_secs(20)),
        )
    };
    // Only root can make one that another user owns.
    let named: &[BytesPath] = if nix::unistd::geteuid().is_root() {
        &["open/theirs".into()]
    } else {
        &[]
    };
    let (whole, closed) = as_owner(&sample, look);
    assert_eq!((whole, closed.as_slice()), (named.is_empty(), named));
}

#[test]
fn folders_that_could_not_be_searched_are_reported() {
    let sample = Sample::new();
    sample.write("a/b/c", "x");
    let project = UntrustedFolder::open(&sample.path("")).expect("opens");
    assert!(!find(&project, Duration::ZERO).whole);
    assert_eq!(shown(&found(&sample)), [".git Folder"]);
    fs::remove_dir_all(sample.path(".git")).expect("removed");
    sample.write(".git", "nothing that git reads");
    assert_eq!(shown(&found(&sample)), [".git pointer "]);
}
