//! Deleting, copying, moving, making folders, and looking at them all.

use std::os::unix::net::UnixListener;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::*;

/// Each of these calls, with a path in the place of what it changes.
fn each(path: &str) -> Vec<Call> {
    vec![
        delete(path),
        delete_all(path),
        Call::CopyFile(copy(path, "fresh/copy")),
        Call::CopyFile(copy("a/b", path)),
        Call::MoveFile(rename(path, "fresh/moved")),
        Call::MoveFile(rename("a/b", path)),
        mkdir(path),
    ]
}

#[test]
fn files_folders_and_links_are_deleted() {
    let project = Project::new(&[
        ("a/b", "x"),
        ("a/c/d", "y"),
        ("odd\nname", "z"),
        ("kept", "k"),
    ]);
    symlink("kept", project.path.join("link")).expect("linked");
    symlink("../outside", project.path.join("a/out")).expect("linked");
    let gone = project.change(delete("link")).expect("deletes the link");
    assert_eq!(
        (gone[0].change, gone[0].path.to_text()),
        (Change::Deleted, "link".to_owned())
    );
    project.change(delete("odd\nname")).expect("deletes");
    let fault = project
        .change(delete("a"))
        .expect_err("is not empty")
        .to_string();
    assert!(
        fault.contains("set recursive") && fault.contains("4 entries"),
        "{fault}"
    );
    let gone = project.change(delete_all("./a/")).expect("deletes all");
    assert_eq!(
        (gone[0].entries, gone[0].path.to_text()),
        (Some(4), "a".to_owned())
    );
    assert_eq!(project.tree(), [("kept".to_owned(), "k".to_owned())]);
    fs::create_dir(project.path.join("empty")).expect("made");
    project
        .change(delete("empty"))
        .expect("an empty folder needs no recursive");
    project.check_untouched();
}

#[test]
fn folders_and_files_that_cannot_be_read_are_counted() {
    let project = Project::new(&[("a", "x"), ("shut/b", "x"), ("c", "x")]);
    for (path, mode) in [("..", 0o755), (".", 0o755), ("shut", 0o000), ("c", 0o000)] {
        fs::set_permissions(project.path.join(path), fs::Permissions::from_mode(mode))
            .expect("changed");
    }
    let texts = std::thread::scope(|scope| {
        let look = || {
            // To root all is allowed; this is one thread's own.
            nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65534));
            let calls = [
                ("tree", "{}"),
                ("list_directory", r#"{"recursive": true}"#),
                ("glob", r#"{"pattern": "**"}"#),
                ("grep", r#"{"pattern": "x"}"#),
            ];
            calls.map(|(tool, arguments)| (tool, project.model(tool, arguments).text))
        };
        scope.spawn(look).join().expect("ends")
    });
    for (tool, text) in texts {
        let n = if tool == "grep" { 2 } else { 1 };
        assert!(
            text.contains(&format!(
                "could not be read and is left out: {n} file(s) or folder(s)"
            )),
            "{tool}: {text}"
        );
    }
    fs::set_permissions(project.path.join("shut"), fs::Permissions::from_mode(0o755))
        .expect("changed");
}

#[test]
fn a_folder_of_which_a_part_cannot_go_says_what_is_gone_and_what_is_left() {
    let project = Project::new(&[("d/a", "x"), ("d/kept/b", "y"), ("d/z", "z")]);
    for (path, mode) in [("..", 0o755), (".", 0o777), ("d", 0o777), ("d/kept", 0o555)] {
        fs::set_permissions(project.path.join(path), fs::Permissions::from_mode(mode))
            .expect("changed");
    }
    let failed = std::thread::scope(|scope| {
        let delete = || {
            // To root all is allowed; this is one thread's own.
            nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65534));
            project.change(delete_all("d")).expect_err("a part stays")
        };
        scope.spawn(delete).join().expect("ends")
    });
    let text = failed.to_string();
    assert!(
        text.starts_with("d: could not be deleted as a whole: d/kept/b: permission denied"),
        "{text}"
    );
    assert!(
        text.contains("1 of the 4 entries in it are gone for good, and 3 are left"),
        "{text}"
    );
    assert!(!project.path.join("d/a").exists() && project.path.join("d/kept/b").exists());
}

#[test]
fn what_is_copied_is_the_same_under_another_name() {
    let project = Project::new(&[
        ("a/b", "x"),
        ("a/c/d", "y"),
        ("a/run", "#!"),
        ("text", "\u{feff}one\r\ntwo"),
    ]);
    fs::set_permissions(
        project.path.join("a/run"),
        fs::Permissions::from_mode(0o755),
    )
    .expect("set");
    symlink("b", project.path.join("a/link")).expect("linked");
    project
        .change(Call::CopyFile(copy("text", "deep/er/text")))
        .expect("copies");
    assert_eq!(project.text("deep/er/text"), "\u{feff}one\r\ntwo");
    let fault = project
        .change(Call::CopyFile(copy("a", "z")))
        .expect_err("is a folder")
        .to_string();
    assert!(fault.contains("set recursive"), "{fault}");
    let copied = project
        .change(Call::CopyFile(CopyFile {
            recursive: true,
            ..copy("a", "z")
        }))
        .expect("copies");
    assert_eq!(
        (copied[0].change, copied[0].entries, copied[0].from.clone()),
        (Change::Copied, Some(5), Some("a".into()))
    );
    assert_eq!(
        (project.text("z/c/d"), project.text("a/c/d")),
        ("y".to_owned(), "y".to_owned())
    );
    assert_eq!(
        fs::read_link(project.path.join("z/link")).expect("a link"),
        Path::new("b")
    );
    assert_eq!(
        fs::metadata(project.path.join("z/run"))
            .expect("there")
            .mode()
            & 0o777,
        0o755
    );
    project
        .change(Call::CopyFile(copy("a/link", "plain")))
        .expect("a link that is named is followed");
    assert!(!project.path.join("plain").is_symlink() && project.text("plain") == "x");
    project.check_untouched();
}

#[test]
fn what_is_moved_keeps_all_but_its_name() {
    let project = Project::new(&[("a/b", "x"), ("a/c/d", "y")]);
    symlink("../outside", project.path.join("out")).expect("linked");
    fs::set_permissions(project.path.join("a/b"), fs::Permissions::from_mode(0o444)).expect("set");
    let moved = project
        .change(Call::MoveFile(rename("a/b", "new/place")))
        .expect("moves");
    assert_eq!(
        (moved[0].change, moved[0].from.clone(), moved[0].replaced),
        (Change::Moved, Some("a/b".into()), false)
    );
    project
        .change(Call::MoveFile(rename("a", "new/folder")))
        .expect("moves a folder");
    project
        .change(Call::MoveFile(rename("out", "away")))
        .expect("moves the link itself");
    let tree = project.tree();
    let names: Vec<&str> = tree.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "away",
            "new",
            "new/folder",
            "new/folder/c",
            "new/folder/c/d",
            "new/place"
        ]
    );
    assert_eq!(tree[0].1, "-> ../outside");
    project.check_untouched();
}

#[test]
fn nothing_is_replaced_unasked() {
    let project = Project::new(&[("a", "new"), ("b", "old"), ("folder/in", "x")]);
    let before = project.tree();
    for overwrite in [false, true] {
        for destination in ["b", "folder"] {
            if overwrite && destination == "b" {
                continue;
            }
            let copied = project.change(Call::CopyFile(CopyFile {
                overwrite,
                ..copy("a", destination)
            }));
            let moved = project.change(Call::MoveFile(MoveFile {
                overwrite,
                ..rename("a", destination)
            }));
            for fault in [copied.expect_err("copied"), moved.expect_err("moved")] {
                assert!(matches!(fault, Fault::Exists { .. }), "{fault:?}");
            }
        }
        let onto_file = project.change(Call::MoveFile(MoveFile {
            overwrite,
            ..rename("folder", "b")
        }));
        assert!(
            matches!(onto_file, Err(Fault::Exists { .. })),
            "{onto_file:?}"
        );
    }
    assert_eq!(project.tree(), before);
    let copied = project
        .change(Call::CopyFile(CopyFile {
            overwrite: true,
            ..copy("a", "b")
        }))
        .expect("copies");
    assert!(copied[0].replaced);
    assert_eq!(project.text("b"), "new");
    project.put("a", "newer");
    project
        .change(Call::MoveFile(MoveFile {
            overwrite: true,
            ..rename("a", "b")
        }))
        .expect("moves");
    assert_eq!(project.text("b"), "newer");
    project.check_untouched();
}

#[test]
fn two_names_of_one_file_are_told_from_two_files() {
    let project = Project::new(&[("a", "x")]);
    fs::hard_link(project.path.join("a"), project.path.join("b")).expect("linked");
    let before = project.tree();
    // The kernel would call that a success and leave both.
    let fault = project
        .change(Call::MoveFile(MoveFile {
            overwrite: true,
            ..rename("a", "b")
        }))
        .expect_err("moves nothing")
        .to_string();
    assert!(
        fault.contains("two names of one file") && fault.contains("delete the one"),
        "{fault}"
    );
    assert_eq!(project.tree(), before);
    project
        .change(Call::MoveFile(rename("a", "c")))
        .expect("to a third name it moves");
    assert_eq!(
        (project.text("c"), project.text("b")),
        ("x".to_owned(), "x".to_owned())
    );
}

#[test]
fn no_folder_is_made_that_a_path_only_passes_through() {
    let project = Project::new(&[("h/f", "x")]);
    let before = project.tree();
    for path in ["new/../g", "h/new/../../g", "new/deep/../g"] {
        for call in [
            Call::MoveFile(rename("h/f", path)),
            Call::CopyFile(copy("h/f", path)),
            mkdir(path),
        ] {
            let fault = project
                .change(call.clone())
                .expect_err("leads through nothing");
            assert!(
                matches!(fault, Fault::NotFound { .. }),
                "{path} {call:?}: {fault:?}"
            );
        }
        assert!(
            matches!(project.write(path, "x"), Err(Fault::NotFound { .. })),
            "{path}"
        );
        assert_eq!(project.tree(), before, "{path}");
    }
    project
        .change(Call::MoveFile(rename("h/f", "h/../k/g")))
        .expect("what is there may be passed through");
    assert_eq!(project.text("k/g"), "x");
}

#[test]
fn nothing_goes_into_itself() {
    let project = Project::new(&[("a/b/c", "x"), ("ab", "y")]);
    symlink("a/b", project.path.join("inside")).expect("linked");
    let before = project.tree();
    for (source, destination) in [
        ("a", "a/b/new"),
        ("a", "a"),
        ("a", "inside/new"),
        ("ab", "./ab"),
        ("a/b", "a/../a/b/c/d"),
    ] {
        let copied = project.change(Call::CopyFile(CopyFile {
            recursive: true,
            overwrite: true,
            ..copy(source, destination)
        }));
        let moved = project.change(Call::MoveFile(MoveFile {
            overwrite: true,
            ..rename(source, destination)
        }));
        assert!(
            copied.is_err() && moved.is_err(),
            "{source} {destination}: {copied:?} {moved:?}"
        );
    }
    assert_eq!(project.tree(), before, "and no folder is left on the way");
    project
        .change(Call::MoveFile(rename("a", "abc")))
        .expect("a name that only begins the same is another");
}

#[test]
fn folders_are_made_once() {
    let project = Project::new(&[("file", "x")]);
    symlink("a", project.path.join("link")).expect("linked");
    let made = project.change(mkdir("a/b/c")).expect("makes");
    assert_eq!(made[0].change, Change::Created);
    assert!(project.path.join("a/b/c").is_dir());
    for there in ["a/b/c/", "a", "link", "/workspace/a"] {
        assert_eq!(
            project.change(mkdir(there)).expect("is there")[0].change,
            Change::Kept,
            "{there}"
        );
    }
    for (in_the_way, words) in [
        ("file", "is not a folder"),
        ("file/x", "not a directory"),
        ("", "is empty"),
        (".", "project's own folder"),
    ] {
        let fault = project
            .change(mkdir(in_the_way))
            .expect_err(in_the_way)
            .to_string();
        assert!(fault.contains(words), "{in_the_way}: {fault}");
    }
}

#[test]
fn no_path_leads_out() {
    let project = Project::new(&[("a/b", "b")]);
    symlink("../outside", project.path.join("relative")).expect("linked");
    symlink(&project.outside, project.path.join("absolute")).expect("linked");
    let before = project.tree();
    for path in [
        "../outside/secret",
        "/etc/passwd",
        "/workspace/../outside/secret",
        "a/../../outside/new",
        "relative/secret",
        "absolute/new",
    ] {
        for call in each(path) {
            let fault = project.change(call.clone()).expect_err("refused");
            assert!(
                matches!(fault, Fault::Outside { .. } | Fault::AbsoluteLink { .. }),
                "{path} {call:?}: {fault:?}"
            );
            project.check_untouched();
        }
    }
    for path in ["..", "a/..", "/", "", ".", "/workspace", "a/../..", "x\0y"] {
        for call in each(path) {
            let fault = project.change(call.clone()).expect_err("refused");
            let fits = matches!(
                fault,
                Fault::Outside { .. } | Fault::Refused { .. } | Fault::Invalid { .. }
            );
            assert!(fits, "{path} {call:?}: {fault:?}");
        }
    }
    assert_eq!(
        project.tree(),
        before,
        "no folder was made for what was refused"
    );
}

#[test]
fn names_that_are_protected_stay() {
    let files = [
        (".env", "KEY"),
        ("sub/.env", "KEY"),
        ("sub/text", "t"),
        ("nested/.git/config", "c"),
        (".podbay/config.toml", "p"),
        ("a/b", "b"),
    ];
    let project = Project::new(&files);
    symlink(".env", project.path.join("link")).expect("linked");
    symlink("sub", project.path.join("alias")).expect("linked");
    let before = project.tree();
    for call in [
        delete(".env"),
        delete("alias/.env"),
        delete_all("sub"),
        Call::CopyFile(copy(".env", "plain")),
        Call::CopyFile(copy("link", "plain")),
        Call::CopyFile(CopyFile {
            recursive: true,
            ..copy("alias", "plain")
        }),
        Call::CopyFile(copy("a/b", "new/.env")),
        Call::CopyFile(CopyFile {
            overwrite: true,
            ..copy("a/b", ".env")
        }),
        Call::MoveFile(rename(".env", "plain")),
        Call::MoveFile(rename("sub", "plain")),
        Call::MoveFile(rename("a/b", ".ssh/b")),
        mkdir(".git/hooks"),
        mkdir(".ssh"),
    ] {
        let fault = project.change(call.clone()).expect_err("refused");
        assert!(
            matches!(fault, Fault::Protected { .. }),
            "{call:?}: {fault:?}"
        );
    }
    // What git and Podbay keep stays, whoever allows what.
    for path in ["nested/.git", "nested", ".podbay", ".podbay/", "./.podbay"] {
        for call in [
            Call::DeleteFile(DeleteFile {
                path: path.into(),
                recursive: true,
                protected: true,
                known: None,
            }),
            Call::MoveFile(MoveFile {
                protected: true,
                ..rename(path, "plain")
            }),
        ] {
            let fault = project.change(call.clone()).expect_err("refused");
            assert!(
                matches!(fault, Fault::Refused { .. }) && fault.to_string().contains("Podbay"),
                "{call:?}: {fault}"
            );
        }
    }
    assert_eq!(project.tree(), before);
    // Policy allows the path that a call names, and nothing that another path of the same call
    // leads to.
    for call in [
        Call::DeleteFile(DeleteFile {
            path: "sub".into(),
            recursive: true,
            protected: true,
            known: None,
        }),
        Call::CopyFile(CopyFile {
            protected: true,
            overwrite: true,
            ..copy("link", ".env")
        }),
        Call::CopyFile(CopyFile {
            protected: true,
            recursive: true,
            ..copy("sub", ".ssh/b")
        }),
        Call::MoveFile(MoveFile {
            protected: true,
            ..rename("sub", ".ssh/b")
        }),
    ] {
        let fault = project.change(call.clone()).expect_err("refused");
        assert!(
            matches!(fault, Fault::Protected { .. }),
            "{call:?}: {fault:?}"
        );
    }
    assert_eq!(project.tree(), before);
    for call in [
        Call::CopyFile(CopyFile {
            protected: true,
            ..copy(".env", "plain")
        }),
        Call::MoveFile(MoveFile {
            protected: true,
            ..rename(".env", ".ssh/b")
        }),
    ] {
        project
            .change(call.clone())
            .unwrap_or_else(|fault| panic!("what policy allowed is done: {call:?}: {fault:?}"));
    }
    assert!(!project.path.join(".env").exists() && project.path.join("plain").exists());
}

#[test]
fn special_files_and_read_only_ones_are_told_apart() {
    let project = Project::new(&[("fixed", "x"), ("a/b", "b")]);
    mkfifo(&project.path.join("pipe"), Mode::from_bits_truncate(0o600)).expect("made");
    let _socket = UnixListener::bind(project.path.join("a/socket")).expect("bound");
    fs::set_permissions(
        project.path.join("fixed"),
        fs::Permissions::from_mode(0o444),
    )
    .expect("set");
    for call in [
        Call::CopyFile(copy("pipe", "new")),
        Call::CopyFile(CopyFile {
            recursive: true,
            ..copy("a", "new")
        }),
        Call::CopyFile(CopyFile {
            overwrite: true,
            ..copy("a/b", "pipe")
        }),
        Call::CopyFile(copy("a/socket", "new")),
    ] {
        let fault = project.change(call.clone()).expect_err("refused");
        assert!(
            matches!(fault, Fault::NotRegular { .. }),
            "{call:?}: {fault:?}"
        );
    }
    assert!(matches!(
        project.change(delete("fixed")),
        Err(Fault::ReadOnly { .. })
    ));
    let onto = project.change(Call::CopyFile(CopyFile {
        overwrite: true,
        ..copy("a/b", "fixed")
    }));
    assert!(matches!(onto, Err(Fault::ReadOnly { .. })), "{onto:?}");
    assert_eq!(project.text("fixed"), "x");
    project.change(delete("pipe")).expect("a pipe can go");
    project
        .change(delete_all("a"))
        .expect("with a socket in it");
    project.check_untouched();
}

#[test]
fn what_is_missing_is_named_with_what_looks_like_it() {
    let project = Project::new(&[("source.rs", "x")]);
    for call in [
        delete("sorce.rs"),
        Call::CopyFile(copy("sorce.rs", "n/b")),
        Call::MoveFile(rename("sorce.rs", "n/b")),
    ] {
        let fault = project.change(call).expect_err("is not there").to_string();
        assert!(fault.contains("did you mean source.rs?"), "{fault}");
    }
    assert!(!project.path.join("n").exists());
}

#[test]
fn a_copy_that_is_too_much_or_cancelled_leaves_nothing() {
    let project = Project::new(&[("a/b", "b")]);
    fs::File::create(project.path.join("a/huge"))
        .expect("made")
        .set_len(300 << 20)
        .expect("sparse");
    for call in [
        copy("a/huge", "n/huge"),
        CopyFile {
            recursive: true,
            ..copy("a", "n/a")
        },
    ] {
        let fault = project
            .change(Call::CopyFile(call))
            .expect_err("is too much");
        assert!(matches!(fault, Fault::TooLarge { .. }), "{fault:?}");
    }
    project.change(delete("a/huge")).expect("deletes");
    for call in [
        copy("a/b", "n/b"),
        CopyFile {
            recursive: true,
            ..copy("a", "n/a")
        },
    ] {
        let output = run(
            &project.workspace,
            &Call::CopyFile(call),
            &AtomicBool::new(true),
        );
        assert!(
            matches!(output, Output::Fault(Fault::Cancelled)),
            "{output:?}"
        );
    }
    let output = run(&project.workspace, &delete_all("a"), &AtomicBool::new(true));
    assert!(
        matches!(output, Output::Fault(Fault::Cancelled)),
        "{output:?}"
    );
    let names: Vec<String> = project.tree().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "a/b"]);
}

#[test]
fn a_tree_is_bounded_and_without_what_git_ignores() {
    let project = Project::new(&[
        ("a/b/c/d/e", "x"),
        ("a/x", ""),
        (".hidden/y", ""),
        ("target/z", ""),
        (".gitignore", "target\n"),
    ]);
    let tree = |path: &str, depth, max_entries| match project.call(Call::Tree(Tree {
        path: path.into(),
        depth,
        max_entries,
    })) {
        Output::Tree(listing) => (
            listing
                .entries
                .iter()
                .map(|entry| entry.path.to_text())
                .collect::<Vec<_>>(),
            listing.omitted,
        ),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        tree("", 2, 100),
        (vec!["a".into(), "a/b".into(), "a/x".into()], Some(0))
    );
    assert_eq!(
        tree("a", 2, 100),
        (vec!["b".into(), "b/c".into(), "x".into()], Some(0))
    );
    assert_eq!(
        tree(".", 9, 3),
        (vec!["a".into(), "a/b".into(), "a/b/c".into()], Some(3))
    );
    for (path, words) in [
        ("nothing", "no such file"),
        ("a/x", "is a file, not a folder"),
        ("../outside", "outside"),
    ] {
        match project.call(Call::Tree(Tree {
            path: path.into(),
            depth: 4,
            max_entries: 10,
        })) {
            Output::Fault(fault) => assert!(fault.to_string().contains(words), "{path}: {fault}"),
            other => panic!("{other:?}"),
        }
    }
}

/// Somebody makes a file of that name in the very moment, and takes it away again: it is theirs,
/// and never written over.
#[test]
fn a_name_that_is_taken_meanwhile_is_a_conflict_and_keeps_its_file() {
    let project = Project::new(&[]);
    let (from, to) = (project.path.join("f"), project.path.join("to"));
    let done = AtomicBool::new(false);
    // Also where an assertion below fails.
    let end = Instant::now() + Duration::from_mins(1);
    let (mut n_made, mut n_changed) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) && Instant::now() < end {
                let made = fs::File::options().write(true).create_new(true).open(&to);
                if made
                    .is_ok_and(|mut file| std::io::Write::write_all(&mut file, b"theirs").is_ok())
                {
                    assert_eq!(fs::read(&to).expect("nobody has taken it"), b"theirs");
                    fs::remove_file(&to).expect("nobody has taken it");
                }
            }
        });
        let call = MoveFile {
            source: "f".into(),
            destination: "to".into(),
            overwrite: false,
            protected: false,
            known: None,
        };
        while (n_made == 0 || n_changed == 0) && Instant::now() < end {
            fs::write(&from, "mine").expect("written");
            match project.call(Call::MoveFile(call.clone())) {
                Output::Changed(_) => {
                    n_made += 1;
                    assert_eq!(fs::read(&to).expect("it was moved there"), b"mine");
                    fs::remove_file(&to).expect("removed");
                }
                Output::Fault(fault) => {
                    n_changed += i32::from(matches!(fault, Fault::Changed { .. }));
                    assert!(
                        matches!(fault, Fault::Changed { .. } | Fault::Exists { .. }),
                        "{fault:?}"
                    );
                    assert_eq!(fs::read(&from).expect("it stayed"), b"mine");
                }
                other => panic!("{other:?}"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(n_made > 0 && n_changed > 0, "{n_made} {n_changed}");
}
