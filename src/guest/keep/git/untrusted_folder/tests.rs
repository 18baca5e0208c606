use std::fs;
use std::os::unix::fs::symlink;

use super::*;

#[test]
fn no_link_is_followed_and_no_pipe_blocks() {
    let place = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(place.path().join("in")).expect("made");
    fs::write(place.path().join("in/file"), "four").expect("written");
    symlink("in", place.path().join("to_in")).expect("linked");
    symlink("file", place.path().join("in/to_file")).expect("linked");
    nix::unistd::mkfifo(&place.path().join("pipe"), Mode::from_bits_truncate(0o600)).expect("made");
    let folder = UntrustedFolder::open(place.path()).expect("opens");
    assert_eq!(folder.read(b"in/file", 4), Ok(Some(b"four".to_vec())));
    assert_eq!(folder.read(b"in/nothing", 4), Ok(None));
    assert!(matches!(
        folder.read(b"in/file", 3),
        Err(Fault::TooLarge { bytes: 4, .. })
    ));
    for path in ["to_in/file", "in/to_file", "pipe", "in"] {
        assert!(folder.read(path.as_bytes(), 9).is_err(), "{path}");
    }
    assert_eq!(folder.kind(b"in/to_file"), Some(FileKind::Link));
    assert_eq!(folder.kind(b"to_in/file"), None);
    assert_eq!(
        folder.names(b"in").expect("listed"),
        [
            (b"file".to_vec(), FileKind::File),
            (b"to_file".to_vec(), FileKind::Link)
        ]
    );
}

#[test]
fn removing_a_tree_does_not_follow_links() {
    let place = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir_all(place.path().join("out")).expect("made");
    fs::write(place.path().join("out/kept"), "x").expect("written");
    fs::create_dir_all(place.path().join("in/deep/deeper")).expect("made");
    symlink("../../out", place.path().join("in/deep/link")).expect("linked");
    let folder = UntrustedFolder::open(place.path()).expect("opens");
    folder.remove(b"in").expect("removed");
    folder.remove(b"in").expect("nothing to do");
    assert_eq!(
        folder.names(b"").expect("listed"),
        [(b"out".to_vec(), FileKind::Folder)]
    );
    assert!(place.path().join("out/kept").exists());
}

#[test]
fn a_file_is_replaced_atomically() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let folder = UntrustedFolder::open(place.path()).expect("opens");
    folder.write(b"a/b", b"old").expect("written");
    assert!(
        folder.write(b"a/b", b"again").is_err(),
        "it is there already"
    );
    folder
        .write(b"a/b.new", b"left by one that was killed")
        .expect("written");
    folder.replace(b"a/b", b"new").expect("replaced");
    assert_eq!(folder.read(b"a/b", 9), Ok(Some(b"new".to_vec())));
    assert_eq!(folder.names(b"a").expect("listed").len(), 1);
}
