//! Tests of attacks through a session's git folder, each with a check that the attack works where
//! nothing prevents it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;

use super::refs;
use super::sample::Sample;
use super::sample::SampleSession;
use super::sample::moved;
use super::sample::run_git;
use super::sample::told;
use podbay_wire::keep::IndexImport;

fn session() -> SampleSession {
    let sample = Sample::new();
    sample.commit("a", "1\n");
    SampleSession::of(sample)
}

/// Writes an object that git itself would not write.
fn object(session: &SampleSession, kind: &str, contents: &[u8]) -> String {
    let path = session.sample.beside("object");
    fs::write(&path, contents).expect("written");
    session
        .git(&[
            "hash-object",
            "--literally",
            "-w",
            "-t",
            kind,
            &path.display().to_string(),
        ])
        .trim()
        .to_owned()
}

fn binary(object: &str) -> Vec<u8> {
    (0..object.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&object[at..at + 2], 16).expect("a name"))
        .collect()
}

fn commit_of(session: &SampleSession, tree: &str, branch: &str) -> String {
    let commit = session
        .git(&["commit-tree", "-p", "HEAD", "-m", "x", tree])
        .trim()
        .to_owned();
    session.git(&["update-ref", &format!("refs/heads/{branch}"), &commit]);
    commit
}

#[test]
fn config_and_hooks_of_a_session_start_no_program() {
    let session = session();
    session.sample.commit("b", "1\n");
    session.git(&["checkout", "-q", "-b", "other"]);
    session.sample.write("b", "2\n");
    let pwn = session.sample.beside("PWN");
    let script = session.sample.beside("script");
    fs::write(
        &script,
        format!("#!/bin/sh\necho \"$0\" >> {}\nexit 1\n", pwn.display()),
    )
    .expect("written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("set");
    let program = script.display().to_string();
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.alternateRefsCommand",
        "uploadpack.packObjectsHook",
        "core.pager",
        "filter.x.clean",
    ] {
        session.git(&["config", key, &program]);
    }
    session.sample.write(".git/info/attributes", "* filter=x\n");
    for hook in ["reference-transaction", "post-index-change", "pre-auto-gc"] {
        fs::create_dir_all(session.sample.path(".git/hooks")).expect("made");
        symlink(&script, session.sample.path(".git/hooks").join(hook)).expect("linked");
    }
    session.git(&[
        "config",
        "core.hooksPath",
        &session.sample.path(".git/hooks").display().to_string(),
    ]);
    assert!(!pwn.exists());
    let sample = session.end();
    assert_eq!(
        moved(&sample.import_one()),
        ["refs/heads/main", "refs/heads/other"]
    );
    for words in [
        &["status"][..],
        &["diff"],
        &["commit", "-q", "-a", "-m", "x"],
        &["gc", "-q"],
    ] {
        sample.git(words);
    }
    assert!(!pwn.exists(), "{:?}", fs::read_to_string(&pwn));
    // In the session's own folder they do.
    let own = sample.beside("session");
    run_git(
        &sample.path(""),
        &[
            "--git-dir",
            &own.display().to_string(),
            "--work-tree",
            ".",
            "status",
        ],
    );
    assert!(pwn.exists());
}

#[test]
fn trees_with_paths_into_git_folders_are_not_imported() {
    let session = session();
    let blob = object(&session, "blob", b"#!/bin/sh\n");
    let inner = object(
        &session,
        "tree",
        &[b"100755 pre-commit\0".as_slice(), &binary(&blob)].concat(),
    );
    for (name, branch) in [
        (".git", "one"),
        (".GIT", "two"),
        ("..", "three"),
        ("a/../../x", "four"),
        ("git~1", "five"),
    ] {
        let tree = object(
            &session,
            "tree",
            &[format!("40000 {name}\0").as_bytes(), &binary(&inner)].concat(),
        );
        commit_of(&session, &tree, branch);
    }
    session.git(&["branch", "good"]);
    session.git(&["update-ref", "refs/heads/good", "HEAD"]);
    session.sample.commit("b", "1");
    let sample = session.end();
    let imported = sample.import_one();
    assert_eq!(moved(&imported), ["refs/heads/main", "refs/heads/good"]);
    for branch in ["one", "two", "three", "four", "five"] {
        assert!(
            told(&imported).contains(&format!("refs/heads/{branch}: ")),
            "{}",
            told(&imported)
        );
        assert!(!run_git(&sample.path(""), &["rev-parse", "-q", "--verify", branch]).1);
    }
    // Without the check they do.
    let session = sample.beside("session");
    let words = [
        "fetch",
        "-q",
        "--no-tags",
        &session.display().to_string(),
        "refs/heads/one:refs/heads/one",
    ];
    let real = sample.path(".git").display().to_string();
    fs::write(
        session.join("objects/info/alternates"),
        format!("{real}/objects\n"),
    )
    .expect("written");
    assert_eq!(run_git(&sample.path(""), &words), (String::new(), true));
}

#[test]
fn invalid_references_are_not_read() {
    let session = session();
    let head = session.git(&["rev-parse", "HEAD"]);
    let git = session.sample.path(".git");
    let secret = session.sample.beside("secret");
    fs::write(&secret, &head).expect("written");
    symlink(&secret, git.join("refs/heads/linked")).expect("linked");
    fs::write(git.join("refs/heads/huge"), vec![b'a'; 4 << 20]).expect("written");
    fs::write(
        git.join("refs/heads/-evil"),
        "ref: ../../../../etc/passwd\n",
    )
    .expect("written");
    fs::write(git.join("refs/heads/to_head"), "ref: HEAD\n").expect("written");
    nix::unistd::mkfifo(
        &git.join("refs/heads/pipe"),
        nix::sys::stat::Mode::from_bits_truncate(0o600),
    )
    .expect("made");
    let packed = format!(
        "{0} refs/heads/../../hooks/x\n{0} ../x\n{0} refs/heads/x.lock\n{0} refs/heads/ok\n{0} HEAD\n{0} refs/podbay/session-1/0\n",
        head.trim()
    );
    fs::write(
        git.join("packed-refs"),
        format!(
            "{}{packed}",
            fs::read_to_string(git.join("packed-refs")).expect("read")
        ),
    )
    .expect("written");
    let sample = session.end();
    assert_eq!(moved(&sample.import_one()), ["refs/heads/ok"]);
    assert!(!sample.path(".git/hooks/x").exists() && !sample.path("x").exists());
    // Git itself follows the link.
    let session = sample.beside("session").display().to_string();
    assert_eq!(
        run_git(
            &sample.path(""),
            &["--git-dir", &session, "rev-parse", "linked"]
        ),
        (head, true)
    );
}

#[test]
fn conflicting_reference_names_do_not_block_the_others() {
    let session = session();
    let head = session.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let git = session.sample.path(".git");
    let packed = fs::read_to_string(git.join("packed-refs")).expect("read");
    fs::write(
        git.join("packed-refs"),
        format!("{packed}{head} refs/heads/new\n{head} refs/heads/main/below\n"),
    )
    .expect("written");
    let sample = session.end();
    let imported = sample.import_one();
    assert_eq!(moved(&imported), ["refs/heads/new"]);
    assert!(
        told(&imported).contains("refs/heads/main/below"),
        "{}",
        told(&imported)
    );
}

#[test]
fn a_branch_must_point_to_an_existing_commit() {
    let session = session();
    let blob = object(&session, "blob", b"x");
    let git = session.sample.path(".git");
    fs::write(git.join("refs/heads/blob"), &blob).expect("written");
    fs::write(git.join("refs/heads/missing"), "1".repeat(40)).expect("written");
    let tree = session.git(&["rev-parse", "HEAD^{tree}"]);
    let whole = format!(
        "tree {}\nparent {}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n",
        tree.trim(),
        "2".repeat(40)
    );
    let orphan = object(&session, "commit", whole.as_bytes());
    fs::write(git.join("refs/heads/orphan"), &orphan).expect("written");
    session.sample.commit("b", "1");
    let sample = session.end();
    let imported = sample.import_one();
    assert_eq!(moved(&imported), ["refs/heads/main"]);
    for branch in ["blob", "missing", "orphan"] {
        assert!(
            told(&imported).contains(&format!("refs/heads/{branch}: ")),
            "{}",
            told(&imported)
        );
    }
}

#[test]
fn objects_are_borrowed_only_from_the_session() {
    let other = Sample::new();
    let secret = other.commit("secret", "of another repository");
    let session = session();
    let git = session.sample.path(".git");
    let own = fs::read_to_string(git.join("objects/info/alternates")).expect("read");
    fs::write(
        git.join("objects/info/alternates"),
        format!("{own}{}\n/etc\n", other.path(".git/objects").display()),
    )
    .expect("written");
    fs::write(git.join("refs/heads/stolen"), &secret).expect("written");
    assert_eq!(
        session.git(&["rev-parse", "stolen^{commit}"]).trim(),
        secret,
        "git itself goes there"
    );
    let sample = session.end();
    let imported = sample.import_one();
    assert!(moved(&imported).is_empty());
    assert!(
        told(&imported).contains("refs/heads/stolen: "),
        "{}",
        told(&imported)
    );
    assert!(!run_git(&sample.path(""), &["cat-file", "-e", &secret]).1);
}

#[test]
fn an_object_with_a_wrong_id_is_refused() {
    let session = session();
    let good = session.sample.commit("b", "good");
    let other = object(&session, "blob", b"evil");
    let named = session.git(&["rev-parse", "HEAD:b"]).trim().to_owned();
    let path = |object: &str| {
        session
            .sample
            .path(&format!(".git/objects/{}/{}", &object[..2], &object[2..]))
    };
    fs::remove_file(path(&named)).expect("removed");
    fs::copy(path(&other), path(&named)).expect("copied");
    let sample = session.end();
    let imported = sample.import_one();
    assert!(moved(&imported).is_empty(), "{}", told(&imported));
    assert!(told(&imported).contains("refs/heads/main: "));
    assert_ne!(sample.git(&["rev-parse", "main"]).trim(), good);
}

#[test]
fn an_index_with_paths_into_git_folders_is_refused() {
    let session = session();
    session.sample.commit("b", "1");
    session.sample.write("xgitxhooks/pre-commit", "#!/bin/sh\n");
    session.git(&["add", "-A"]);
    let path = session.sample.path(".git/index");
    let bytes = fs::read(&path).expect("read");
    let mut index = super::index::Index::parse(&bytes).expect("readable");
    for entry in &mut index.entries {
        if entry.name.starts_with(b"xgitx") {
            entry.name = b".git/hooks/pre-commit".to_vec();
        }
    }
    index.forget_trees();
    index
        .entries
        .sort_by(|left, right| left.name.cmp(&right.name));
    fs::write(&path, index.write()).expect("written");
    let sample = session.end();
    let imported = sample.import_one();
    assert_eq!(
        (moved(&imported), imported.index),
        (vec!["refs/heads/main".to_owned()], IndexImport::Kept)
    );
    assert!(told(&imported).contains("index: "), "{}", told(&imported));
    // The index is that of the commit, as if nothing had been staged.
    assert_eq!(sample.git(&["ls-files"]), "a\nb\n");
    assert_eq!(sample.git(&["diff", "--cached", "--name-only"]), "");
}

#[test]
fn forged_cache_trees_of_an_index_are_ignored() {
    // The tree extension contradicts the entries.
    let session = session();
    session.sample.commit("b", "1");
    let path = session.sample.path(".git/index");
    session.sample.write("b", "staged");
    session.git(&["add", "b"]);
    session.git(&["write-tree"]);
    let index = super::index::Index::parse(&fs::read(&path).expect("read")).expect("readable");
    let tree = session.git(&["write-tree"]).trim().to_owned();
    let evil = session
        .git(&["rev-parse", "HEAD~1^{tree}"])
        .trim()
        .to_owned();
    let mut bytes = index.write();
    let at = bytes
        .windows(20)
        .position(|window| window == binary(&tree))
        .expect("a tree in it");
    bytes[at..at + 20].copy_from_slice(&binary(&evil));
    fs::write(&path, &bytes).expect("written");
    assert_eq!(
        session.git(&["write-tree"]).trim(),
        evil,
        "git itself believes it"
    );
    let sample = session.end();
    assert_eq!(sample.import_one().index, IndexImport::Taken);
    assert_eq!(sample.git(&["write-tree"]).trim(), tree);
}

#[test]
fn a_stash_message_cannot_control_the_terminal() {
    let session = session();
    session.sample.write("a", "2\n");
    session.git(&["stash", "-q"]);
    let log = session.sample.path(".git/logs/refs/stash");
    let text = fs::read_to_string(&log)
        .expect("read")
        .replace("WIP", "\x1b]0;PWN\x07\u{202e}WIP");
    fs::write(&log, text).expect("written");
    let sample = session.end();
    assert_eq!(sample.import_one().stashes.len(), 1);
    let list = sample.git(&["stash", "list", "--format=%gs"]);
    assert!(
        list.contains("WIP") && !list.contains('\x1b') && !list.contains('\u{202e}'),
        "{list:?}"
    );
}

#[test]
fn temporary_references_in_the_real_repository_are_removed() {
    let session = session();
    session.sample.commit("b", "1");
    let sample = session.end();
    // As a killed import leaves them, packed by the user's git since.
    sample.git(&["update-ref", "refs/podbay/session-1/7", "HEAD"]);
    sample.git(&["pack-refs", "--all"]);
    sample.git(&["update-ref", "refs/podbay/session-1/8", "HEAD"]);
    sample.import_one();
    let folder =
        super::untrusted_folder::UntrustedFolder::open(&sample.path(".git")).expect("opens");
    assert!(
        refs::read(&folder)
            .expect("read")
            .bound
            .keys()
            .all(|name| !name.as_bytes().starts_with(b"refs/podbay"))
    );
}
