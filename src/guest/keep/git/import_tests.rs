//! Tests of what is imported from a session, and what the user's git says of it.

mod index;

use std::fs;
use std::os::unix::ffi::OsStrExt;

use super::sample::LinkedSample;
use super::sample::Sample;
use super::sample::SampleSession;
use super::sample::fingerprint;
use super::sample::import_at;
use super::sample::moved;
use super::sample::run_git;
use podbay_wire::keep::ImportedRepository;
use podbay_wire::keep::IndexImport;

fn sample() -> Sample {
    let sample = Sample::new();
    sample.commit("a file", "1\n");
    sample.commit("b", "1\n");
    sample.git(&["branch", "feature/gr\u{fc}n"]);
    sample
}

fn session() -> SampleSession {
    SampleSession::of(sample())
}

fn not_imported(imported: &ImportedRepository) -> Vec<String> {
    imported
        .not_imported
        .iter()
        .map(|one| format!("{}: {}", one.what, one.why))
        .collect()
}

fn commit(session: &SampleSession, path: &str, text: &str) -> String {
    session.sample.commit(path, text)
}

#[test]
fn commits_branches_tags_and_staged_changes_are_imported() {
    let session = session();
    let main = commit(&session, "a file", "2\n");
    session.git(&["checkout", "-q", "-b", "other"]);
    let other = commit(&session, "deep/new", "1\n");
    session.git(&["tag", "-a", "v1", "-m", "one"]);
    session.sample.write("b", "staged\n");
    session.git(&["add", "b"]);
    session.sample.write("b", "not staged\n");
    session.sample.write("untracked", "x");
    let status = session.git(&["status", "--porcelain", "--branch"]);
    let sample = session.end();
    let config = fs::read(sample.path(".git/config")).expect("read");
    let imported = sample.import_one();
    assert_eq!(
        moved(&imported),
        ["refs/heads/main", "refs/heads/other", "refs/tags/v1"]
    );
    assert_eq!(imported.head.as_deref(), Some("refs/heads/other"));
    assert_eq!(
        (imported.index, not_imported(&imported)),
        (IndexImport::Taken, Vec::new())
    );
    assert_eq!(sample.git(&["status", "--porcelain", "--branch"]), status);
    assert_eq!(
        sample.git(&["rev-parse", "main", "other"]),
        format!("{main}\n{other}\n")
    );
    assert_eq!(sample.git(&["describe"]), "v1\n");
    assert!(
        sample
            .git(&["reflog", "main"])
            .contains("podbay: session-1")
    );
    assert_eq!(fs::read(sample.path(".git/config")).expect("read"), config);
    // Nothing of it is borrowed any more.
    fs::remove_dir_all(sample.beside("session")).expect("removed");
    sample.git(&["gc", "-q", "--prune=now"]);
    sample.git(&["fsck", "--strict"]);
}

#[test]
fn ambiguous_reference_names_stay_in_the_session() {
    let sample = sample();
    let head = sample.git(&["rev-parse", "HEAD"]);
    sample.git(&["update-ref", "refs/remotes/origin/main", head.trim()]);
    sample.git(&["tag", "known"]);
    let session = SampleSession::of(sample);
    let new = commit(&session, "a", "2\n");
    let names = [
        "heads/HEAD",
        "heads/@",
        "heads/-x",
        "heads/origin/main",
        "heads/known",
        "tags/main",
        "tags/-evil",
        "tags/HEAD",
    ];
    for name in names
        .iter()
        .chain(&["heads/origin-main", "heads/topic/main", "tags/v2"])
    {
        session.git(&["update-ref", &format!("refs/{name}"), &new]);
    }
    let sample = session.end();
    let imported = sample.import_one();
    assert_eq!(
        moved(&imported),
        [
            "refs/heads/main",
            "refs/heads/origin-main",
            "refs/heads/topic/main",
            "refs/tags/v2"
        ]
    );
    let left = not_imported(&imported).join("\n");
    for name in names {
        assert!(
            left.contains(&format!("refs/{name}: has ")),
            "{name}: {left}"
        );
    }
    assert_eq!(sample.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main\n");
    assert_eq!(sample.git(&["rev-parse", "origin/main"]), head);
}

#[test]
fn a_session_without_changes_changes_nothing() {
    let session = session();
    session.git(&["status"]);
    let sample = session.end();
    let before = fingerprint(&sample.path(".git"));
    let imported = sample.import_one();
    assert_eq!(
        imported,
        ImportedRepository {
            path: ".git".into(),
            ..ImportedRepository::default()
        }
    );
    assert_eq!(fingerprint(&sample.path(".git")), before);
}

#[test]
fn stashes_are_added_on_top_and_none_is_lost() {
    let sample = sample();
    for text in ["first", "second"] {
        sample.write("b", text);
        sample.git(&["stash", "-q", "-m", text]);
    }
    let session = SampleSession::of(sample);
    session.git(&["stash", "drop", "-q", "stash@{1}"]);
    for text in ["third", "fourth"] {
        session.sample.write("b", text);
        session.git(&["stash", "-q", "-m", text]);
    }
    let sample = session.end();
    let imported = sample.import_one();
    assert_eq!(imported.stashes, ["On main: third", "On main: fourth"]);
    assert_eq!(
        imported.notes,
        ["1 stash(es) that the session popped or dropped are kept here"]
    );
    let list = sample.git(&["stash", "list", "--format=%gs"]);
    assert_eq!(
        list,
        "On main: fourth\nOn main: third\nOn main: second\nOn main: first\n"
    );
    sample.git(&["stash", "pop", "-q", "stash@{1}"]);
    assert_eq!(fs::read_to_string(sample.path("b")).expect("read"), "third");
}

/// One step of a session: files that are staged, and committed unless it is the last step.
type Step = &'static [(&'static [u8], Option<&'static str>)];

/// Changes of a session with odd names.
const ODD_NAMES: [(&str, &[Step]); 6] = [
    (
        "a line end",
        &[
            &[(b"a\nb", Some("1")), (b"deep\n/x\r\n", Some("1"))],
            &[(b"a\nb", Some("2"))],
        ],
    ),
    (
        "no UTF-8",
        &[
            &[(b"\xff\xfe", Some("1")), (b"d\xe9/\x80", Some("1"))],
            &[(b"\xff\xfe", Some("2"))],
        ],
    ),
    (
        "quotes, tabs and stars",
        &[
            &[
                (b"\"q\"\t*?[x]\\", Some("1")),
                (b" ", Some("1")),
                (b"-n", Some("1")),
            ],
            &[(b"-n", None)],
        ],
    ),
    (
        "its case alone",
        &[
            &[(b"Read", Some("1"))],
            &[(b"Read", None), (b"read", Some("1"))],
            &[(b"read", None), (b"READ", Some("1"))],
        ],
    ),
    (
        "a file turned folder and back",
        &[
            &[(b"x", Some("1"))],
            &[(b"x", None), (b"x/y", Some("1"))],
            &[(b"x/y", None), (b"x", Some("2"))],
        ],
    ),
    (
        "a folder turned file",
        &[
            &[(b"x/y/z", Some("1"))],
            &[(b"x/y/z", None), (b"x/y", Some("1"))],
            &[(b"x/y", None), (b"x", Some("2"))],
        ],
    ),
];

/// Performs one step in a working tree.
fn take(sample: &Sample, step: Step) {
    let at = |name: &[u8]| sample.path("").join(std::ffi::OsStr::from_bytes(name));
    for (name, text) in step {
        if let Some(text) = text {
            fs::create_dir_all(at(name).parent().expect("a folder")).expect("made");
            fs::write(at(name), text).expect("written");
            continue;
        }
        fs::remove_file(at(name)).expect("removed");
        let above = at(name).parent().expect("a folder").to_owned();
        let _ = above
            .ancestors()
            .take_while(|folder| *folder != sample.path(""))
            .try_for_each(fs::remove_dir);
    }
    sample.git(&["add", "-A"]);
}

#[test]
fn odd_file_names_are_imported_as_committed_and_staged() {
    for (about, steps) in ODD_NAMES {
        let session = session();
        let (staged, committed) = steps.split_last().expect("a step");
        for step in committed {
            take(&session.sample, step);
            session.git(&["commit", "-q", "-m", about]);
        }
        take(&session.sample, staged);
        let all = |sample: &Sample| {
            let commits: Vec<String> = (0..committed.len())
                .map(|n| sample.git(&["ls-tree", "-rz", &format!("HEAD~{n}")]))
                .collect();
            (
                commits,
                sample.git(&["ls-files", "-sz"]),
                sample.git(&["status", "--porcelain", "-z"]),
            )
        };
        let before = all(&session.sample);
        assert!(!before.2.is_empty(), "{about}: something is staged");
        let sample = session.end();
        let imported = sample.import_one();
        assert_eq!(
            (imported.index, not_imported(&imported)),
            (IndexImport::Taken, Vec::new()),
            "{about}"
        );
        assert_eq!(moved(&imported), ["refs/heads/main"], "{about}");
        assert_eq!(all(&sample), before, "{about}");
    }
}

#[test]
fn a_rebase_and_a_commit_of_a_detached_head_are_imported() {
    let sample = sample();
    sample.git(&["checkout", "-q", "-b", "side", "HEAD~1"]);
    sample.commit("side", "1");
    let session = SampleSession::of(sample);
    session.git(&["rebase", "-q", "main"]);
    let side = session.git(&["rev-parse", "HEAD"]);
    session.git(&["checkout", "-q", "--detach"]);
    let detached = commit(&session, "detached", "1");
    let sample = session.end();
    let imported = sample.import_one();
    assert_eq!(
        (moved(&imported), imported.head),
        (vec!["refs/heads/side".to_owned()], Some(detached.clone()))
    );
    assert_eq!(
        sample.git(&["rev-parse", "side", "HEAD"]),
        format!("{side}{detached}\n")
    );
    assert_eq!(sample.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_first_commit_is_imported() {
    let session = SampleSession::of(Sample::new());
    commit(&session, "a", "1");
    let sample = session.end();
    let imported = sample.import_one();
    assert_eq!(
        (moved(&imported), imported.index),
        (vec!["refs/heads/main".to_owned()], IndexImport::Taken)
    );
    assert_eq!(sample.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_shallow_clone_stays_shallow() {
    let origin = sample();
    let sample = Sample::without_git();
    sample.git(&[
        "clone",
        "-q",
        "--depth=1",
        &format!("file://{}", origin.path("").display()),
        ".",
    ]);
    let session = SampleSession::of(sample);
    commit(&session, "c", "1");
    session.git(&["gc", "-q"]);
    let sample = session.end();
    let imported = sample.import_one();
    assert_eq!(
        (moved(&imported), not_imported(&imported)),
        (vec!["refs/heads/main".to_owned()], Vec::new())
    );
    assert_eq!(sample.git(&["log", "--oneline"]).lines().count(), 2);
    assert_eq!(sample.git(&["status", "--porcelain"]), "");
}

#[test]
fn nested_submodules_are_imported() {
    let session = SampleSession::of(Sample::with_submodules());
    for folder in ["sub/deeper", "sub", ""] {
        session.sample.write(&format!("{folder}/file"), "changed");
        session
            .sample
            .git_in(folder, &["checkout", "-q", "-B", "main"]);
        session
            .sample
            .git_in(folder, &["commit", "-q", "-a", "-m", "changed"]);
    }
    let sample = session.end();
    let imported = sample.import().repositories;
    assert_eq!(
        imported
            .iter()
            .map(|one| one.path.to_text())
            .collect::<Vec<_>>(),
        [
            ".git/modules/sub/modules/deeper",
            ".git/modules/sub",
            ".git"
        ]
    );
    for one in &imported {
        assert_eq!(
            (moved(one), not_imported(one)),
            (vec!["refs/heads/main".to_owned()], Vec::new()),
            "{}",
            one.path
        );
    }
    sample.git(&["fsck"]);
    assert_eq!(sample.git(&["status", "--porcelain"]), "");
    assert_eq!(
        sample
            .git(&["submodule", "status", "--recursive"])
            .lines()
            .filter(|line| line.starts_with(' '))
            .count(),
        2
    );
}

#[test]
fn a_branch_moved_by_the_user_is_refused_and_the_others_are_imported() {
    let session = session();
    commit(&session, "c", "1\n");
    session.git(&["checkout", "-q", "-b", "other"]);
    commit(&session, "d", "1\n");
    session.git(&["branch", "-D", "-q", "feature/gr\u{fc}n"]);
    let sample = session.end();
    let own = sample.commit("own", "1\n");
    let imported = sample.import_one();
    assert_eq!(moved(&imported), ["refs/heads/other"]);
    assert_eq!(sample.git(&["rev-parse", "main"]).trim(), own);
    let told = not_imported(&imported);
    assert!(
        told[0].contains("refs/heads/main: moved here meanwhile"),
        "{told:?}"
    );
    // Where the user moved on, their checkout stays.
    assert_eq!(
        (
            imported.head,
            sample.git(&["rev-parse", "--abbrev-ref", "HEAD"]).as_str()
        ),
        (None, "main\n")
    );
    let head = "the session had refs/heads/other checked out, which is not checked out here: the branch \
        that is checked out here moved meanwhile";
    assert_eq!(
        imported.notes,
        [
            head,
            "refs/heads/feature/gr\u{fc}n was deleted in the session and is kept here"
        ]
    );
}

#[test]
fn another_checkout_of_the_user_meanwhile_stays() {
    let session = session();
    session.git(&["checkout", "-q", "-b", "other"]);
    commit(&session, "c", "1\n");
    let sample = session.end();
    sample.git(&["checkout", "-q", "feature/gr\u{fc}n"]);
    let imported = sample.import_one();
    assert_eq!(
        (moved(&imported), imported.head.clone()),
        (vec!["refs/heads/other".to_owned()], None)
    );
    assert!(
        imported.notes[0].contains("another branch or commit was checked out here meanwhile"),
        "{:?}",
        imported.notes
    );
    assert_eq!(not_imported(&imported), Vec::<String>::new());
    assert_eq!(
        sample.git(&["rev-parse", "--abbrev-ref", "HEAD"]),
        "feature/gr\u{fc}n\n"
    );
}

#[test]
fn a_branch_checked_out_in_another_worktree_is_refused() {
    let sample = sample();
    let elsewhere = sample.beside("elsewhere").display().to_string();
    sample.git(&["worktree", "add", "-q", &elsewhere, "feature/gr\u{fc}n"]);
    let session = SampleSession::of(sample);
    session.git(&["branch", "-f", "feature/gr\u{fc}n", "main~1"]);
    let sample = session.end();
    let imported = sample.import_one();
    assert_eq!(
        not_imported(&imported),
        ["refs/heads/feature/gr\u{fc}n: is checked out in another worktree"]
    );
    assert_eq!(
        run_git(&sample.beside("elsewhere"), &["status", "--porcelain"]),
        (String::new(), true)
    );
}

#[test]
fn a_merge_with_conflicts_stays_in_the_session() {
    let session = session();
    session.git(&["checkout", "-q", "-b", "other", "HEAD~1"]);
    commit(&session, "b", "other\n");
    session.git(&["checkout", "-q", "main"]);
    assert!(!run_git(&session.sample.path(""), &["merge", "-q", "other"]).1);
    let sample = session.end();
    let before = fs::read(sample.path(".git/index")).expect("read");
    let imported = sample.import_one();
    assert_eq!(
        (moved(&imported), imported.index),
        (vec!["refs/heads/other".to_owned()], IndexImport::Kept)
    );
    let told = not_imported(&imported).join("\n");
    assert!(
        told.contains("MERGE_HEAD: a merge was left unfinished")
            && told.contains("index: holds a merge with conflicts"),
        "{told}"
    );
    assert_eq!(fs::read(sample.path(".git/index")).expect("read"), before);
}

#[test]
fn a_repeated_import_reports_the_same_and_changes_nothing() {
    let session = session();
    commit(&session, "c", "1\n");
    session.git(&["checkout", "-q", "-b", "other"]);
    session.sample.write("b", "stashed");
    session.git(&["stash", "-q"]);
    session.sample.write("b", "staged");
    session.git(&["add", "b"]);
    let sample = session.end();
    let first = sample.import_one();
    let before = fingerprint(&sample.path(".git"));
    assert_eq!(sample.import_one(), first);
    let after = fingerprint(&sample.path(".git"));
    assert_eq!(
        after.keys().collect::<Vec<_>>(),
        before.keys().collect::<Vec<_>>()
    );
    assert_eq!(after, before);
}

#[test]
fn a_worktree_of_a_bare_repository_gets_commits_on_its_heads_branch() {
    for settings in [
        &[&["config", "core.bare", "true"][..]][..],
        &[
            &["config", "extensions.worktreeConfig", "true"],
            &["config", "--worktree", "core.bare", "true"],
        ],
    ] {
        let linked = LinkedSample::new();
        let sample = &linked.sample;
        let name_side = &["symbolic-ref", "HEAD", "refs/heads/side"][..];
        for words in [name_side].iter().chain(settings) {
            let (text, is_good) = run_git(&linked.main, words);
            assert!(is_good, "{words:?}: {text}");
        }
        let pointer = fs::read(sample.path(".git")).expect("read");
        let prepared = linked.prepare(&sample.path(".git").display().to_string());
        fs::write(
            sample.path(".git"),
            prepared.pointer.expect("a pointer").as_bytes(),
        )
        .expect("written");
        sample.git(&["checkout", "-q", "--detach"]);
        sample.git(&["checkout", "-q", "side"]);
        let side = sample.commit("a", "1");
        fs::write(sample.path(".git"), pointer).expect("written");
        let imported = import_at(&sample.beside(""), "main/.git")
            .repositories
            .remove(0);
        assert_eq!(
            (moved(&imported), not_imported(&imported)),
            (vec!["refs/heads/side".to_owned()], vec![])
        );
        assert_eq!(sample.git(&["rev-parse", "side"]).trim(), side);
    }
}

#[test]
fn work_in_a_linked_worktree_is_imported() {
    let linked = LinkedSample::new();
    let sample = &linked.sample;
    let pointer = fs::read(sample.path(".git")).expect("read");
    let prepared = linked.prepare(&sample.path(".git").display().to_string());
    fs::write(
        sample.path(".git"),
        prepared.pointer.expect("a pointer").as_bytes(),
    )
    .expect("written");
    let side = sample.commit("a", "1");
    sample.git(&["checkout", "-q", "-b", "other"]);
    sample.write("a", "2");
    sample.git(&["add", "a"]);
    let status = sample.git(&["status", "--porcelain", "--branch"]);
    // The main worktree has this one checked out; git itself would not move it.
    sample.git(&["update-ref", "refs/heads/main", "side"]);
    fs::write(sample.path(".git"), pointer).expect("written");
    let imported = import_at(&sample.beside(""), "main/.git")
        .repositories
        .remove(0);
    assert_eq!(moved(&imported), ["refs/heads/side", "refs/heads/other"]);
    assert_eq!(
        not_imported(&imported),
        ["refs/heads/main: is checked out in another worktree"]
    );
    assert_eq!(
        (imported.head.as_deref(), imported.index),
        (Some("refs/heads/other"), IndexImport::Taken)
    );
    assert_eq!(sample.git(&["status", "--porcelain", "--branch"]), status);
    assert_eq!(sample.git(&["rev-parse", "side"]).trim(), side);
    assert_eq!(
        run_git(&linked.main, &["status", "--porcelain", "--branch"]),
        ("## main\n".to_owned(), true)
    );
    sample.git(&["fsck", "--strict"]);
}
