use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;

fn place(folder: &Path, name: &str) -> RenameEnd {
    let folder = fs::File::open(folder).expect("there").into();
    RenameEnd {
        folder,
        name: CString::new(name).expect("no zero byte"),
    }
}

/// Moves a folder as if the kernel had refused to rename it.
fn moved(folder: &Path, from: &str, to: &str, stop: bool) -> Result<(), Errno> {
    let (from, to, stop) = (
        place(folder, from),
        place(folder, to),
        AtomicBool::new(stop),
    );
    let is_there = is_replaced(&from, &to, 0)?;
    move_over(&from, &to, is_there, &stop)
}

fn listed(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(at) = waiting.pop() {
        for entry in fs::read_dir(&at).expect("a folder").flatten() {
            let path = entry.path();
            all.push(
                path.strip_prefix(folder)
                    .expect("within")
                    .display()
                    .to_string(),
            );
            if fs::symlink_metadata(&path).expect("there").is_dir() {
                waiting.push(path);
            }
        }
    }
    all.sort();
    all
}

fn filled() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("src/deep/er")).expect("made");
    for name in ["src/a", "src/deep/b", "src/deep/er/c"] {
        fs::write(at(name), name).expect("written");
    }
    std::os::unix::fs::symlink("nowhere", at("src/link")).expect("linked");
    fs::set_permissions(at("src/deep"), fs::Permissions::from_mode(0o711)).expect("ours");
    let long_ago = TimeSpec::new(1_000_000_000, 5);
    utimensat(
        nix::fcntl::AT_FDCWD,
        &at("src/deep"),
        &long_ago,
        &long_ago,
        UtimensatFlags::NoFollowSymlink,
    )
    .expect("set");
    folder
}

const WHOLE: [&str; 7] = [
    "lib",
    "lib/a",
    "lib/deep",
    "lib/deep/b",
    "lib/deep/er",
    "lib/deep/er/c",
    "lib/link",
];

#[test]
fn a_folder_is_moved_with_its_contents_modes_and_times() {
    let folder = filled();
    moved(folder.path(), "src", "lib", false).expect("moved");
    assert_eq!(listed(folder.path()), WHOLE);
    let deep = fs::metadata(folder.path().join("lib/deep")).expect("there");
    assert_eq!(
        (deep.mode() & 0o7777, deep.mtime(), deep.mtime_nsec()),
        (0o711, 1_000_000_000, 5)
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("lib/deep/er/c")).expect("there"),
        "src/deep/er/c"
    );
}

#[test]
fn only_an_empty_folder_is_replaced() {
    let folder = filled();
    fs::create_dir(folder.path().join("lib")).expect("made");
    moved(folder.path(), "src", "lib", false).expect("moved");
    assert_eq!(listed(folder.path()), WHOLE);
    fs::create_dir_all(folder.path().join("full/x")).expect("made");
    fs::write(folder.path().join("file"), "").expect("written");
    assert_eq!(
        moved(folder.path(), "lib", "full", false),
        Err(Errno::ENOTEMPTY)
    );
    assert_eq!(
        moved(folder.path(), "lib", "file", false),
        Err(Errno::ENOTDIR)
    );
    let (from, to) = (place(folder.path(), "lib"), place(folder.path(), "full"));
    assert_eq!(
        is_replaced(&from, &to, libc::RENAME_NOREPLACE),
        Err(Errno::EEXIST)
    );
    assert!(folder.path().join("lib/a").exists());
}

#[test]
fn files_keep_holes_hard_links_and_types() {
    let folder = filled();
    let at = |name: &str| folder.path().join(name);
    let file = File::create(at("src/holes")).expect("made");
    std::os::unix::fs::FileExt::write_at(&file, b"end", 8 << 20).expect("written");
    fs::set_permissions(at("src/holes"), fs::Permissions::from_mode(0o640)).expect("ours");
    fs::hard_link(at("src/a"), at("src/deep/again")).expect("linked");
    mkfifoat(nix::fcntl::AT_FDCWD, &at("src/pipe"), Mode::S_IRWXU).expect("made");
    moved(folder.path(), "src", "lib", false).expect("moved");
    let holes = fs::metadata(at("lib/holes")).expect("there");
    assert_eq!(
        (holes.len(), holes.mode() & 0o7777, holes.blocks() < 1024),
        ((8 << 20) + 3, 0o640, true)
    );
    assert!(
        fs::read(at("lib/holes"))
            .expect("there")
            .ends_with(b"\0end")
    );
    assert_eq!(
        fs::metadata(at("lib/a")).expect("there").ino(),
        fs::metadata(at("lib/deep/again")).expect("there").ino()
    );
    assert_eq!(
        fs::read_link(at("lib/link")).expect("there"),
        Path::new("nowhere")
    );
    assert!(!at("src").exists() && fs::symlink_metadata(at("lib/pipe")).is_ok());
}

#[test]
fn a_failed_or_stopped_move_leaves_the_old_folder_and_no_new_one() {
    let folder = filled();
    let before = listed(folder.path());
    assert_eq!(moved(folder.path(), "src", "lib", true), Err(Errno::EINTR));
    assert_eq!(listed(folder.path()), before);
    fs::create_dir(folder.path().join("lib")).expect("made");
    assert_eq!(moved(folder.path(), "src", "lib", true), Err(Errno::EINTR));
    assert_eq!(
        listed(folder.path()),
        [&["lib".to_owned()], &before[..]].concat()
    );
    // A name that cannot be created fails in the same way.
    let long = "x".repeat(300);
    assert_eq!(
        moved(folder.path(), "src", &long, false),
        Err(Errno::ENAMETOOLONG)
    );
    assert!(folder.path().join("src/deep/er/c").exists());
}

#[test]
fn folders_with_mounts_or_too_many_entries_are_left_to_the_kernel() {
    let folder = filled();
    let held = fs::File::open(folder.path()).expect("there");
    let mount = mount_of(held.as_fd(), c"").expect("known");
    let mut count = 0;
    check_movable(held.as_fd(), c"src", mount, &mut count, 0).expect("whole");
    assert_eq!(count, WHOLE.len());
    assert_eq!(
        check_movable(held.as_fd(), c"src", mount + 1, &mut 0, 0),
        Err(Errno::EXDEV)
    );
    assert_eq!(
        check_movable(held.as_fd(), c"src", mount, &mut { MOST }, 0),
        Err(Errno::EXDEV)
    );
    assert_eq!(
        check_movable(held.as_fd(), c"src", mount, &mut 0, DEEPEST + 1),
        Err(Errno::EXDEV)
    );
}
