//! Tests of objects that were damaged on the disk, the user's or the session's: what is imported is
//! complete, and the rest stays where it is.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use super::sample::Sample;
use super::sample::SampleSession;
use super::sample::fingerprint;
use super::sample::import_within;
use super::sample::moved;
use super::sample::told;
use podbay_wire::keep::IndexImport;

fn session() -> SampleSession {
    let sample = Sample::new();
    sample.commit("a", "1\n");
    sample.commit("b", "1\n");
    SampleSession::of(sample)
}

/// Returns the file of an object, or its pack; it is made writable.
fn object_file(folder: &Path, object: &str) -> PathBuf {
    let loose = folder.join("objects").join(&object[..2]).join(&object[2..]);
    let pack = || {
        fs::read_dir(folder.join("objects/pack"))
            .expect("a folder")
            .flatten()
            .map(|entry| entry.path())
    };
    let is_pack = |path: &PathBuf| path.extension().is_some_and(|end| end == "pack");
    let path = if loose.exists() {
        loose
    } else {
        pack().find(is_pack).expect("a pack")
    };
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("set");
    path
}

/// A kind of damage, and whether the object is packed then.
type Damage = (&'static str, bool, fn(&Path));

fn ways_to_break() -> [Damage; 3] {
    let cut = |path: &Path| {
        let whole = fs::read(path).expect("read");
        fs::write(path, &whole[..whole.len() / 2]).expect("written");
    };
    [
        ("a cut pack", true, cut),
        ("a missing object", false, |path| {
            fs::remove_file(path).expect("removed");
        }),
        ("an empty object", false, |path| {
            fs::write(path, "").expect("written");
        }),
    ]
}

#[test]
fn damaged_objects_of_a_session_are_not_imported_and_the_rest_is() {
    for (way, is_packed, break_it) in ways_to_break() {
        for what in ["HEAD~1", "HEAD~1^{tree}", "HEAD~1:lost"] {
            let session = session();
            session.git(&["branch", "side"]);
            session.git(&["tag", "v1", "HEAD~1"]);
            session.sample.commit("lost", "it is lost\n");
            // Git could write the tree of staged files anew.
            session.git(&["rm", "-q", "lost"]);
            session.git(&["commit", "-q", "-m", "gone"]);
            if is_packed {
                session.git(&["repack", "-q", "-a", "-d", "-l"]);
            }
            let object = session.git(&["rev-parse", what]).trim().to_owned();
            break_it(&object_file(&session.sample.path(".git"), &object));
            let sample = session.end();
            let kept = fingerprint(&sample.beside("session"));
            let (head, index) = (
                sample.git(&["rev-parse", "HEAD"]),
                fs::read(sample.path(".git/index")).expect("read"),
            );
            let imported = sample.import_one();
            assert_eq!(
                moved(&imported),
                ["refs/heads/side", "refs/tags/v1"],
                "{way}, {what}: {}",
                told(&imported)
            );
            assert!(
                told(&imported).contains("refs/heads/main: "),
                "{way}, {what}: {}",
                told(&imported)
            );
            assert_eq!(sample.git(&["rev-parse", "HEAD"]), head, "{way}, {what}");
            assert_eq!(
                fs::read(sample.path(".git/index")).expect("read"),
                index,
                "{way}, {what}"
            );
            assert_eq!(
                fingerprint(&sample.beside("session")),
                kept,
                "{way}, {what}"
            );
        }
    }
}

#[test]
fn a_repository_without_some_objects_gets_the_rest_after_its_repair() {
    for (way, is_packed, break_it) in ways_to_break() {
        for what in ["HEAD", "HEAD^{tree}", "HEAD:b"] {
            let sample = Sample::new();
            sample.commit("a", "1\n");
            sample.commit("b", "two\n");
            if is_packed {
                sample.git(&["repack", "-q", "-a", "-d"]);
            }
            let object = sample.git(&["rev-parse", what]).trim().to_owned();
            let session = SampleSession::of(sample);
            session.sample.commit("c", "1\n");
            let sample = session.end();
            let kept = fingerprint(&sample.beside("session"));
            let path = object_file(&sample.path(".git"), &object);
            let whole = fs::read(&path).expect("read");
            break_it(&path);
            let names = fingerprint(&sample.path(".git/refs"));
            let imported = sample.import().repositories.remove(0);
            if moved(&imported).is_empty() {
                assert!(!told(&imported).is_empty(), "{way}, {what}");
                let now = fingerprint(&sample.path(".git/refs"));
                assert!(
                    names.iter().all(|(path, one)| now.get(path) == Some(one)),
                    "{way}, {what}"
                );
            } else {
                // A defect of an older commit does not keep a new one from being imported.
                assert!(!is_packed && what != "HEAD", "{way}, {what}");
                assert_eq!(
                    (
                        sample.git(&["show", "main:c"]).as_str(),
                        told(&imported).as_str()
                    ),
                    ("1\n", ""),
                    "{way}, {what}"
                );
            }
            assert_eq!(
                fingerprint(&sample.beside("session")),
                kept,
                "{way}, {what}"
            );
            fs::write(&path, whole).expect("written");
            let imported = sample.import_one();
            assert_eq!(
                (moved(&imported), told(&imported).as_str()),
                (vec!["refs/heads/main".to_owned()], ""),
                "{way}, {what}"
            );
            assert_eq!(sample.git(&["status", "--porcelain"]), "", "{way}, {what}");
        }
    }
}

#[test]
fn an_import_without_time_moves_nothing_and_is_done_later() {
    let session = session();
    session.sample.commit("c", "1\n");
    let sample = session.end();
    let before = fingerprint(&sample.path(".git"));
    let imported = import_within(&sample.beside(""), "project/.git", Duration::ZERO)
        .repositories
        .remove(0);
    assert_eq!(
        (moved(&imported), imported.index),
        (Vec::new(), IndexImport::Kept)
    );
    assert!(
        told(&imported).contains("it did not finish in time; nothing is lost"),
        "{}",
        told(&imported)
    );
    assert_eq!(fingerprint(&sample.path(".git")), before);
    assert_eq!(moved(&sample.import_one()), ["refs/heads/main"]);
}
