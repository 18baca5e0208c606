//! Archives made, listed and unpacked, and those that were made to do harm.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;

use tar::EntryType;
use zip::write::SimpleFileOptions;

use super::*;

/// Writes a zip of entries, names as they are given.
fn zip(hand: &Hand, name: &str, entries: &[(&str, &[u8])]) {
    let mut zip = zip::ZipWriter::new(File::create(hand.guest.path(name)).expect("made"));
    for (name, content) in entries {
        zip.start_file(*name, SimpleFileOptions::default())
            .expect("begun");
        zip.write_all(content).expect("written");
    }
    zip.finish().expect("ended");
}

/// Writes a tar with one entry whose header says what no well-meaning program would.
fn tar(hand: &Hand, name: &str, entry: &str, kind: tar::EntryType, target: &str, content: &[u8]) {
    let mut builder = tar::Builder::new(File::create(hand.guest.path(name)).expect("made"));
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    // The checked setters refuse these names.
    let old = header.as_old_mut();
    old.name[..entry.len()].copy_from_slice(entry.as_bytes());
    old.linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_cksum();
    builder.append(&header, content).expect("written");
    builder.finish().expect("ended");
}

fn extract(name: &str) -> Value {
    json!({"action": "extract", "archive_path": name, "output_path": "out"})
}

#[tokio::test]
async fn what_is_packed_comes_out_as_it_was() {
    for name in ["made/a.zip", "made/a.tar", "made/a.tar.gz", "made/a.tgz"] {
        let hand = Hand::new().await;
        hand.put("src/main.rs", "fn main() {}\n");
        hand.put("src/deep/run.sh", "#!/bin/sh\n");
        hand.put("src/empty", "");
        hand.put("src/big", "x".repeat(300_000));
        std::fs::create_dir(hand.guest.path("src/folder")).expect("made");
        std::fs::set_permissions(
            hand.guest.path("src/deep/run.sh"),
            std::fs::Permissions::from_mode(0o755),
        )
        .expect("changed");
        symlink("../main.rs", hand.guest.path("src/deep/link")).expect("linked");
        let text = hand
            .ok(
                "archive",
                json!({"action": "create", "archive_path": name, "source_path": "src"}),
            )
            .await;
        assert_eq!(
            text,
            format!("created {name}; 8 files and folders are in it")
        );
        let listed = hand
            .ok("archive", json!({"action": "list", "archive_path": name}))
            .await;
        assert!(
            listed.contains("src/main.rs (13 bytes)")
                && listed.contains("src/deep/link -> ../main.rs"),
            "{listed}"
        );
        let text = hand.ok("archive", extract(name)).await;
        assert_eq!(text, "created out/src/ with the 7 entries in it");
        let parts = |from: &str| {
            let bits =
                |(path, mode, bytes): (String, u32, Vec<u8>)| (path, mode & 0o100_100, bytes);
            tree(&hand.guest.path(from))
                .into_iter()
                .map(bits)
                .collect::<Vec<_>>()
        };
        assert_eq!(parts("out/src"), parts("src"), "{name}");
        // Once more would replace something: it is refused, and what is there stays.
        let before = tree(hand.guest.workspace.path());
        for action in [
            extract(name),
            json!({"action": "create", "archive_path": name, "source_path": "src"}),
        ] {
            let text = hand.fails("archive", action, CallStatus::Failed).await;
            assert!(
                text.contains("already exists") && !text.contains("overwrite"),
                "{text}"
            );
            assert!(
                text.contains("delete this one first")
                    || text.contains("name a new folder as output_path"),
                "{text}"
            );
        }
        assert_eq!(tree(hand.guest.workspace.path()), before);
    }
}

#[tokio::test]
async fn secrets_and_repositories_are_left_out_of_an_archive_and_itself_too() {
    let hand = Hand::new().await;
    for name in ["a.txt", ".env", ".git/config", ".ssh/id_rsa"] {
        hand.put(name, "x");
    }
    let text = hand
        .ok(
            "archive",
            json!({"action": "create", "archive_path": "all.tar.gz", "source_path": "."}),
        )
        .await;
    assert!(
        text.contains("1 files and folders") && text.contains("names are protected: 3"),
        "{text}"
    );
    assert_eq!(
        hand.ok(
            "archive",
            json!({"action": "list", "archive_path": "all.tar.gz"})
        )
        .await,
        "a.txt (1 byte)\n"
    );
    hand.fails(
        "archive",
        json!({"action": "create", "archive_path": "b.zip", "source_path": ".env"}),
        CallStatus::Denied,
    )
    .await;
    hand.fails(
        "archive",
        json!({"action": "create", "archive_path": ".git/b.zip", "source_path": "a.txt"}),
        CallStatus::Denied,
    )
    .await;
    symlink(".env", hand.guest.path("notes")).expect("linked");
    let text = hand
        .fails(
            "archive",
            json!({"action": "create", "archive_path": "b.zip", "source_path": "notes"}),
            CallStatus::Failed,
        )
        .await;
    assert!(
        text.contains("protected by its name") && !hand.has("b.zip"),
        "{text}"
    );
}

/// Nothing of an archive is there after it was refused: neither in the project nor beside it.
#[tokio::test]
async fn what_cannot_be_unpacked_is_named_with_its_archive() {
    let hand = Hand::new().await;
    zip(&hand, "odd.zip", &[("one", b"x"), ("one/two", b"y")]);
    let text = hand
        .fails("archive", extract("odd.zip"), CallStatus::Failed)
        .await;
    assert!(
        text.starts_with("odd.zip: the entry `one/two` cannot be unpacked: ")
            && text.contains("nothing was unpacked"),
        "{text}"
    );
    assert!(!hand.has("out"));
}

/// What cannot be read whole, and what is good and not taken out here, is told with what can be
/// done.
#[tokio::test]
async fn an_archive_that_is_refused_is_told_with_a_way_on() {
    let hand = Hand::new().await;
    zip(&hand, "whole.zip", &[("one", &[7; 5000]), ("two", b"2")]);
    let whole = std::fs::read(hand.guest.path("whole.zip")).expect("read");
    hand.put("cut.zip", &whole[..whole.len() / 2]);
    hand.put("src/one", vec![b'x'; 5000]);
    hand.ok(
        "archive",
        json!({"action": "create", "archive_path": "whole.tar", "source_path": "src"}),
    )
    .await;
    let whole = std::fs::read(hand.guest.path("whole.tar")).expect("read");
    hand.put("cut.tar", &whole[..2000]);
    tar(
        &hand,
        "link.tar",
        "link",
        EntryType::Symlink,
        "/etc/passwd",
        b"",
    );
    tar(&hand, "up.tar", "../up", EntryType::Regular, "", b"");
    // No well-meaning program writes a name twice, so the second one gets its name afterwards.
    zip(&hand, "twice.zip", &[("one.txt", b"1"), ("two.txt", b"2")]);
    let twice = std::fs::read(hand.guest.path("twice.zip")).expect("read");
    let at: Vec<usize> = (0..twice.len() - 7)
        .filter(|&at| twice[at..].starts_with(b"two.txt"))
        .collect();
    let mut twice = twice;
    for at in at {
        twice[at..at + 7].copy_from_slice(b"one.txt");
    }
    hand.put("twice.zip", twice);
    for (name, cause, way) in [
        (
            "cut.zip",
            "damaged, truncated or not a zip",
            "download or create it again",
        ),
        (
            "cut.tar",
            "damaged, truncated or not the kind",
            "download or create it again",
        ),
        (
            "link.tar",
            "the link `link` to `/etc/passwd` could lead out of the folder",
            "with bash (tar, unzip)",
        ),
        (
            "up.tar",
            "`../up` has `..` in its name",
            "with bash (tar, unzip)",
        ),
        ("twice.zip", "a name more than once", "use bash (unzip)"),
    ] {
        let text = hand
            .fails("archive", extract(name), CallStatus::Failed)
            .await;
        assert!(
            text.starts_with(&format!("{name}: ")) && text.contains(cause) && text.contains(way),
            "{text}"
        );
        assert!(!hand.has("out"), "{name}");
    }
}

/// The model reads which entry it was, and not that the folder it named is there.
#[tokio::test]
async fn a_link_that_cannot_be_made_is_named_as_itself() {
    let hand = Hand::new().await;
    let mut builder = tar::Builder::new(File::create(hand.guest.path("clash.tar")).expect("made"));
    let mut header = tar::Header::new_gnu();
    header.set_size(1);
    header.set_mode(0o644);
    builder
        .append_data(&mut header, "d/l/x", &b"x"[..])
        .expect("written");
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(EntryType::Symlink);
    header.set_size(0);
    builder
        .append_link(&mut header, "d/l", "y")
        .expect("written");
    builder.finish().expect("ended");
    let text = hand
        .fails("archive", extract("clash.tar"), CallStatus::Failed)
        .await;
    assert!(
        text.starts_with("clash.tar: the entry `d/l` cannot be unpacked: ")
            && text.contains("out/d/l"),
        "{text}"
    );
    assert!(!hand.has("out"));
}

/// A link where a path is named: it is followed within the project, and to nothing that is
/// protected or beyond.
#[tokio::test]
async fn links_on_the_way_to_an_archive_or_its_folder_lead_nowhere_else() {
    let hand = Hand::new().await;
    let beyond = hand
        .guest
        .workspace
        .path()
        .parent()
        .expect("has one")
        .join("podbay-beyond");
    std::fs::create_dir_all(&beyond).expect("made");
    zip(&hand, "a.zip", &[("one", b"x")]);
    std::fs::copy(hand.guest.path("a.zip"), beyond.join("a.zip")).expect("copied");
    for name in [".env", ".ssh/key"] {
        hand.put(name, "secret");
    }
    hand.put("real/kept", "k");
    for (target, name) in [
        ("../podbay-beyond", "out_up"),
        (beyond.to_str().expect("UTF-8"), "out_whole"),
        ("nowhere", "dangling"),
        ("real", "folder"),
        (".ssh", "keys"),
        ("../podbay-beyond/a.zip", "up.zip"),
        ("nowhere.zip", "gone.zip"),
        (".env", "secret.zip"),
        ("a.zip", "same.zip"),
    ] {
        symlink(target, hand.guest.path(name)).expect("linked");
    }
    let before = tree(hand.guest.workspace.path());
    let into =
        |folder: &str| json!({"action": "extract", "archive_path": "a.zip", "output_path": folder});
    for (folder, words) in [
        ("out_up", "leads outside of /workspace"),
        ("out_up/deep", "leads outside of /workspace"),
        ("out_whole", "leads outside of /workspace"),
        (
            "dangling",
            "a symbolic link to nowhere, which does not exist",
        ),
        ("keys", "whose name is protected"),
    ] {
        let text = hand
            .fails("archive", into(folder), CallStatus::Failed)
            .await;
        assert!(text.contains(words), "{folder}: {text}");
    }
    let list = |name: &str| json!({"action": "list", "archive_path": name});
    for (name, words) in [
        ("up.zip", "leads outside of /workspace"),
        ("out_up/a.zip", "leads outside of /workspace"),
        (
            "gone.zip",
            "a symbolic link to nowhere.zip, which does not exist",
        ),
        ("secret.zip", "protected by its name"),
    ] {
        for call in [list(name), extract(name)] {
            let text = hand
                .fails("archive", call.clone(), CallStatus::Failed)
                .await;
            assert!(text.contains(words), "{call}: {text}");
        }
        let text = hand
            .fails(
                "archive",
                json!({"action": "create", "archive_path": name, "source_path": "real"}),
                CallStatus::Failed,
            )
            .await;
        assert!(!text.contains("created"), "{name}: {text}");
    }
    assert_eq!(tree(hand.guest.workspace.path()), before);
    assert_eq!(std::fs::read_dir(&beyond).expect("a folder").count(), 1);
    // The control: links that stay in the project.
    assert!(
        hand.ok("archive", list("same.zip"))
            .await
            .contains("one (1 byte)")
    );
    hand.ok(
        "archive",
        json!({"action": "extract", "archive_path": "same.zip", "output_path": "folder"}),
    )
    .await;
    assert_eq!(
        (
            hand.text("real/one").as_str(),
            hand.text("real/kept").as_str()
        ),
        ("x", "k")
    );
    std::fs::remove_dir_all(&beyond).expect("removed");
}

#[tokio::test]
async fn archives_that_lead_out_are_refused_as_a_whole() {
    let hand = Hand::new().await;
    let beside = hand
        .guest
        .workspace
        .path()
        .parent()
        .expect("has one")
        .join("PWNED");
    let good: (&str, &[u8]) = ("good.txt", b"fine");
    for (n, bad) in [
        "../PWNED",
        "a/../../PWNED",
        "/tmp/PWNED",
        "..\\PWNED",
        "C:\\PWNED",
        ".git/hooks/post-checkout",
        "deep/.env",
        "x/.GIT/config",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("bad{n}.zip");
        zip(&hand, &name, &[good, (bad, b"x")]);
        let text = hand
            .fails("archive", extract(&name), CallStatus::Failed)
            .await;
        assert!(text.contains("nothing was unpacked"), "{bad}: {text}");
        assert!(!hand.has("out") && !beside.exists(), "{bad}");
    }
    for (n, (entry, kind, target)) in [
        ("../PWNED", EntryType::Regular, ""),
        ("/tmp/PWNED", EntryType::Regular, ""),
        ("link", EntryType::Symlink, "/etc/passwd"),
        ("link", EntryType::Symlink, "../.."),
        ("deep/link", EntryType::Symlink, "a/../../../x"),
        ("link", EntryType::Link, "/etc/passwd"),
        ("device", EntryType::Char, ""),
        ("pipe", EntryType::Fifo, ""),
        ("..", EntryType::Directory, ""),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("bad{n}.tar");
        tar(&hand, &name, entry, kind, target, b"");
        let text = hand
            .fails("archive", extract(&name), CallStatus::Failed)
            .await;
        assert!(
            text.contains("nothing was unpacked") || text.contains("special entry; use bash"),
            "{entry} {kind:?}: {text}"
        );
        assert!(!hand.has("out"), "{entry} {kind:?}");
    }
    // A link, and then a file through it: the file lands beside the link, so that both cannot be.
    let mut builder =
        tar::Builder::new(File::create(hand.guest.path("through.tar")).expect("made"));
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(EntryType::Symlink);
    header.set_size(0);
    builder
        .append_link(&mut header, "d/l", "..")
        .expect("written");
    let mut header = tar::Header::new_gnu();
    header.set_size(1);
    header.set_mode(0o644);
    builder
        .append_data(&mut header, "d/l/x", &b"x"[..])
        .expect("written");
    builder.finish().expect("ended");
    let text = hand
        .fails("archive", extract("through.tar"), CallStatus::Failed)
        .await;
    assert!(!hand.has("out") && !hand.has("x"), "{text}");
}

#[tokio::test]
async fn archives_that_would_fill_the_disk_are_refused_whatever_they_say_of_their_size() {
    let hand = Hand::new().await;
    // 300 MiB of zeros are 300 KiB packed.
    let mut bomb = tar::Builder::new(flate2::write::GzEncoder::new(
        File::create(hand.guest.path("bomb.tar.gz")).expect("made"),
        flate2::Compression::fast(),
    ));
    for n in 0..6 {
        let mut header = tar::Header::new_gnu();
        header.set_size(50 << 20);
        header.set_mode(0o644);
        bomb.append_data(
            &mut header,
            format!("zeros{n}"),
            std::io::Read::take(std::io::repeat(0), 50 << 20),
        )
        .expect("written");
    }
    bomb.into_inner().expect("ended").finish().expect("ended");
    let text = hand
        .fails("archive", extract("bomb.tar.gz"), CallStatus::Failed)
        .await;
    assert!(
        text.contains("more than 256 MiB") && !hand.has("out"),
        "{text}"
    );
    // A zip that says of 300 MiB that they are 10 bytes, both beside them and in its list.
    let mut liar = zip::ZipWriter::new(File::create(hand.guest.path("liar.zip")).expect("made"));
    liar.start_file(
        "zeros",
        SimpleFileOptions::default().compression_level(Some(1)),
    )
    .expect("begun");
    std::io::copy(
        &mut std::io::Read::take(std::io::repeat(0), 300 << 20),
        &mut liar,
    )
    .expect("written");
    liar.finish().expect("ended");
    let honest = hand
        .fails("archive", extract("liar.zip"), CallStatus::Failed)
        .await;
    assert!(
        honest.contains("more than 256 MiB") && !hand.has("out"),
        "{honest}"
    );
    let mut bytes = std::fs::read(hand.guest.path("liar.zip")).expect("is there");
    let real = (300_u32 << 20).to_le_bytes();
    let places: Vec<usize> = (0..bytes.len() - 4)
        .filter(|at| bytes[*at..*at + 4] == real)
        .collect();
    assert!(
        places.len() == 2 && bytes.len() < 4 << 20,
        "{places:?} of {}",
        bytes.len()
    );
    for at in places {
        bytes[at..at + 4].copy_from_slice(&10_u32.to_le_bytes());
    }
    hand.put("liar.zip", bytes);
    let listed = hand
        .ok(
            "archive",
            json!({"action": "list", "archive_path": "liar.zip"}),
        )
        .await;
    assert_eq!(listed, "zeros (10 bytes)\n", "the lie is there");
    let before = tree(hand.guest.workspace.path()).len();
    let text = hand
        .fails("archive", extract("liar.zip"), CallStatus::Failed)
        .await;
    assert!(
        text.contains("larger than its declared uncompressed size") && !hand.has("out"),
        "{text}"
    );
    assert_eq!(
        tree(hand.guest.workspace.path()).len(),
        before,
        "nothing of it is left"
    );
    let mut many = zip::ZipWriter::new(File::create(hand.guest.path("many.zip")).expect("made"));
    for n in 0..10_001 {
        many.add_directory(format!("d{n}"), SimpleFileOptions::default())
            .expect("written");
    }
    many.finish().expect("ended");
    for action in ["list", "extract"] {
        let text = hand
            .fails(
                "archive",
                json!({"action": action, "archive_path": "many.zip"}),
                CallStatus::Failed,
            )
            .await;
        assert!(text.contains("more than 10000 files"), "{text}");
    }
    // Twice the same name is no archive of ours.
    let mut twice = tar::Builder::new(File::create(hand.guest.path("twice.tar")).expect("made"));
    for content in [&b"1"[..], b"2"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        header.set_mode(0o644);
        twice
            .append_data(&mut header, "same", content)
            .expect("written");
    }
    twice.finish().expect("ended");
    assert!(
        hand.fails(
            "archive",
            json!({"action": "extract", "archive_path": "twice.tar"}),
            CallStatus::Failed
        )
        .await
        .contains("twice")
    );
    assert!(!hand.has("same"));
}

#[tokio::test]
async fn pipes_and_sockets_are_left_out_and_said_and_names_a_zip_cannot_hold_are_named() {
    use std::os::unix::ffi::OsStrExt;
    let hand = Hand::new().await;
    hand.put("src/a", "a");
    nix::unistd::mkfifo(&hand.guest.path("src/pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    let _socket =
        std::os::unix::net::UnixListener::bind(hand.guest.path("src/socket")).expect("bound");
    for name in ["a.zip", "a.tar"] {
        let text = hand
            .ok(
                "archive",
                json!({"action": "create", "archive_path": name, "source_path": "src"}),
            )
            .await;
        assert!(
            text.ends_with("2 files and folders are in it; left out, because they are named pipes, sockets or devices: 2"),
            "{name}: {text}"
        );
    }
    std::fs::write(
        hand.guest
            .path("src")
            .join(std::ffi::OsStr::from_bytes(b"b\xff")),
        "b",
    )
    .expect("written");
    let zip = json!({"action": "create", "archive_path": "b.zip", "source_path": "src"});
    let text = hand.fails("archive", zip, CallStatus::Failed).await;
    assert!(
        text.contains("a name is not UTF-8, which zip requires; create a tar instead"),
        "{text}"
    );
    assert!(!hand.guest.path("b.zip").exists());
    hand.ok(
        "archive",
        json!({"action": "create", "archive_path": "b.tar", "source_path": "src"}),
    )
    .await;
}

#[tokio::test]
async fn what_is_no_archive_or_no_call_is_named() {
    let hand = Hand::new().await;
    hand.put("text.zip", "this is text");
    hand.put("text.tar", "this is text");
    hand.put("text.tgz", "this is text");
    hand.put("a.rar", "x");
    hand.put("file", "x");
    std::fs::create_dir(hand.guest.path("folder.zip")).expect("made");
    nix::unistd::mkfifo(&hand.guest.path("pipe.zip"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    for (name, words) in [
        ("text.zip", "cannot be read as a zip"),
        ("text.tar", "not the kind of archive"),
        ("text.tgz", "not the kind of archive"),
        ("a.rar", "does not end in .zip"),
        ("none.zip", "no such file"),
        ("folder.zip", "is a directory"),
        ("pipe.zip", "named pipe"),
        ("../out.zip", "outside"),
        ("/etc/out.zip", "outside"),
    ] {
        for action in ["list", "extract"] {
            let text = hand
                .fails(
                    "archive",
                    json!({"action": action, "archive_path": name}),
                    CallStatus::Failed,
                )
                .await;
            assert!(text.contains(words), "{action} {name}: {text}");
        }
    }
    zip(&hand, "a.zip", &[("x", b"x")]);
    for into in ["file", "..", "/etc", "file/x"] {
        hand.fails(
            "archive",
            json!({"action": "extract", "archive_path": "a.zip", "output_path": into}),
            CallStatus::Failed,
        )
        .await;
    }
    for (arguments, words) in [
        (none(), "missing"),
        (json!({"action": "list"}), "`archive_path` is missing"),
        (
            json!({"action": "squash", "archive_path": "a.zip"}),
            "`action`",
        ),
        (
            json!({"action": "create", "archive_path": "b.zip"}),
            "`source_path` is missing",
        ),
        (
            json!({"action": "create", "archive_path": "b.zip", "source_path": "file", "output_path": "x"}),
            "`output_path` is for extract",
        ),
        (
            json!({"action": "extract", "archive_path": "a.zip", "source_path": "x"}),
            "`source_path` is for create",
        ),
        (
            json!({"action": "list", "archive_path": "a.zip", "output_path": "x"}),
            "list takes only",
        ),
        (
            json!({"action": "list", "archive_path": ""}),
            "`archive_path` is empty",
        ),
    ] {
        let text = hand
            .fails("archive", arguments.clone(), CallStatus::Invalid)
            .await;
        assert!(text.contains(words), "{arguments}: {text}");
    }
}

#[tokio::test]
async fn archives_with_nothing_in_them_or_behind_a_password_say_so() {
    let hand = Hand::new().await;
    zip(&hand, "empty.zip", &[]);
    let text = hand
        .fails("archive", extract("empty.zip"), CallStatus::Failed)
        .await;
    assert!(text.contains("is empty") && !hand.has("out"), "{text}");
    zip(&hand, "secret.zip", &[("a", b"a")]);
    let path = hand.guest.path("secret.zip");
    let mut bytes = std::fs::read(&path).expect("read");
    // The bit that says so stands in front of what is in it, and in the list of names.
    for (mark, place) in [(b"PK\x03\x04", 6), (b"PK\x01\x02", 8)] {
        let at = bytes
            .windows(4)
            .position(|window| window == mark)
            .expect("is there");
        bytes[at + place] |= 1;
    }
    std::fs::write(&path, bytes).expect("written");
    let text = hand
        .fails("archive", extract("secret.zip"), CallStatus::Failed)
        .await;
    assert!(
        text.contains("is encrypted") && text.contains("use bash"),
        "{text}"
    );
}

#[tokio::test]
async fn a_folder_in_an_archive_is_listed_with_one_slash() {
    let hand = Hand::new().await;
    hand.put("src/deep/a", "a");
    for name in ["a.zip", "a.tar"] {
        hand.ok(
            "archive",
            json!({"action": "create", "archive_path": name, "source_path": "src"}),
        )
        .await;
        let listed = hand
            .ok("archive", json!({"action": "list", "archive_path": name}))
            .await;
        assert!(
            listed.contains("src/deep/") && !listed.contains("//"),
            "{listed}"
        );
    }
}

#[tokio::test]
async fn a_repository_that_is_named_is_packed_no_more_than_one_that_is_not() {
    let hand = Hand::new().await;
    hand.put("sub/.git/config", "[remote]\n");
    hand.put("sub/a.txt", "a\n");
    for source in ["sub/.git", "sub/.git/config", "/workspace/sub/.git/"] {
        let pack = json!({"action": "create", "archive_path": "to.zip", "source_path": source});
        let text = hand.fails("archive", pack, CallStatus::Failed).await;
        assert!(
            text.contains("belongs to git or to Podbay") && !hand.has("to.zip"),
            "{source}: {text}"
        );
    }
    hand.ok(
        "archive",
        json!({"action": "create", "archive_path": "to.zip", "source_path": "sub"}),
    )
    .await;
}
