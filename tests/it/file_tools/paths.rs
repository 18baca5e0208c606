use super::*;

type Expected = fn(&Fault) -> bool;

/// Tries every tool that takes a file on a path and returns what each says.
fn faults(project: &Project, path: &str) -> Vec<Fault> {
    let faults = vec![
        project.read(path).expect_err("read"),
        project.write(path, "new").expect_err("write"),
        project.append(path, "new").expect_err("append"),
        project.edit(path, "secret", "public").expect_err("edit"),
    ];
    project.check_untouched();
    faults
}

#[track_caller]
fn check_outside(project: &Project, path: &str) {
    for fault in faults(project, path) {
        assert!(matches!(fault, Fault::Outside { .. }), "{path}: {fault:?}");
    }
}

#[test]
fn a_path_that_leads_out_is_refused_by_every_tool() {
    let project = Project::new(&[("a/b", "b")]);
    for path in [
        "../outside/secret",
        "/workspace/../outside/secret",
        "a/../../outside/secret",
        "/etc/shadow",
        "/proc/self/environ",
        "/workspacefoo/x",
    ] {
        check_outside(&project, path);
    }
    for path in ["..", "/", "/workspace/..", "a/../.."] {
        let output = project.call(Call::ListDirectory(list(path)));
        assert!(
            matches!(output, Output::Fault(Fault::Outside { .. })),
            "{path}: {output:?}"
        );
        let output = project.call(Call::Grep(Grep {
            path: path.into(),
            ..grep("secret")
        }));
        assert!(
            matches!(output, Output::Fault(Fault::Outside { .. })),
            "{path}: {output:?}"
        );
        let output = project.call(Call::Glob(Glob {
            path: path.into(),
            ..glob("*")
        }));
        assert!(
            matches!(output, Output::Fault(Fault::Outside { .. })),
            "{path}: {output:?}"
        );
    }
    assert!(matches!(
        project.call(Call::Glob(glob("../outside/*"))),
        Output::Fault(Fault::Outside { .. })
    ));
}

#[test]
fn a_link_that_leads_out_is_refused_wherever_it_stands() {
    let project = Project::new(&[("a/b", "b")]);
    let link =
        |target: &Path, name: &str| symlink(target, project.path.join(name)).expect("linked");
    link(&project.outside, "absolute");
    link(Path::new("../outside"), "relative");
    link(Path::new("../../outside/secret"), "a/file");
    link(Path::new("../outside/new"), "dangling");
    link(Path::new("relative"), "twice");
    link(Path::new("/proc/self/root/etc/passwd"), "magic");
    for path in [
        "absolute/secret",
        "relative/secret",
        "a/file",
        "twice/secret",
        "relative/new/deep",
        "magic",
    ] {
        check_outside(&project, path);
    }
    check_outside(&project, "dangling");
}

#[test]
fn links_inside_the_project_work() {
    let project = Project::new(&[("real/file", "old\n")]);
    symlink("real", project.path.join("folder")).expect("linked");
    symlink("folder/file", project.path.join("file")).expect("linked");
    symlink("../file", project.path.join("real/back")).expect("linked");
    assert_eq!(project.read("real/back").expect("reads").text, "old\n");
    project.edit("file", "old", "new").expect("edits");
    project.append("real/back", "more\n").expect("appends");
    assert_eq!(project.text("real/file"), "new\nmore\n");
    project.write("folder/other", "x").expect("writes");
    assert_eq!(project.text("real/other"), "x");
    assert!(
        project.path.join("file").is_symlink(),
        "the link stays a link"
    );
    symlink("real/made", project.path.join("dangling")).expect("linked");
    assert!(project.write("dangling", "y").expect("writes").created);
    assert_eq!(project.text("real/made"), "y");
    project.check_untouched();
}

#[test]
fn a_link_to_nothing_is_called_what_it_is() {
    let project = Project::new(&[("folder/x", "x")]);
    let link = |target: &str, name: &str| symlink(target, project.path.join(name)).expect("linked");
    link("../gone", "folder/link");
    link("folder/link", "twice");
    link("nowhere", "there");
    for (path, link, target) in [
        ("folder/link", "folder/link", "../gone"),
        ("twice", "folder/link", "../gone"),
        ("/workspace/there", "there", "nowhere"),
        ("there/x", "there", "nowhere"),
    ] {
        let expected = Fault::DanglingLink {
            path: path.into(),
            link: link.into(),
            target: target.into(),
        };
        for fault in [
            project.read(path).expect_err("read"),
            project.edit(path, "a", "b").expect_err("edit"),
        ] {
            assert_eq!(fault, expected, "{path}");
        }
    }
    let made = project
        .write("there/x", "x")
        .expect_err("a folder that is no folder");
    assert_eq!(
        made,
        Fault::DanglingLink {
            path: "there/x".into(),
            link: "there".into(),
            target: "nowhere".into()
        }
    );
    let words = project.read("twice").expect_err("read").to_string();
    assert!(
        words.starts_with(
            "twice: leads through folder/link, a symbolic link to ../gone, which does not exist"
        ),
        "{words}"
    );
    assert!(matches!(
        project.read("folder/none"),
        Err(Fault::NotFound { .. })
    ));
}

#[test]
fn links_in_a_circle_end() {
    let project = Project::new(&[]);
    symlink("b", project.path.join("a")).expect("linked");
    symlink("a", project.path.join("b")).expect("linked");
    for fault in faults(&project, "a") {
        assert!(fault.to_string().contains("symbolic links"), "{fault}");
    }
}

#[test]
fn paths_that_can_be_no_file_are_typed_faults() {
    let project = Project::new(&[("file", "x"), ("folder/x", "x")]);
    let long_name = "n".repeat(256);
    let long_path = "d/".repeat(2100);
    let cases: &[(&str, Expected)] = &[
        ("", |fault| matches!(fault, Fault::Invalid { .. })),
        (".", |fault| matches!(fault, Fault::IsDirectory { .. })),
        ("/workspace", |fault| {
            matches!(fault, Fault::IsDirectory { .. })
        }),
        ("folder", |fault| matches!(fault, Fault::IsDirectory { .. })),
        ("folder/", |fault| {
            matches!(fault, Fault::IsDirectory { .. })
        }),
        ("folder/..", |fault| {
            matches!(fault, Fault::IsDirectory { .. })
        }),
        ("file/", |fault| {
            matches!(fault, Fault::NotDirectory { .. } | Fault::Refused { .. })
        }),
        ("file/x", |fault| {
            matches!(fault, Fault::NotDirectory { .. })
        }),
        (&long_name, |fault| matches!(fault, Fault::Invalid { .. })),
        (&long_path, |fault| {
            matches!(
                fault,
                Fault::Invalid { .. } | Fault::IsDirectory { .. } | Fault::NotFound { .. }
            )
        }),
        ("a\0b", |fault| matches!(fault, Fault::Invalid { .. })),
    ];
    for (path, expected) in cases {
        for fault in faults(&project, path) {
            assert!(expected(&fault), "{path:?}: {fault:?}");
        }
    }
    assert!(matches!(
        project.call(Call::ListDirectory(list("file/x"))),
        Output::Fault(Fault::NotDirectory { .. })
    ));
}

#[test]
fn a_write_that_cannot_be_made_leaves_no_folders() {
    let project = Project::new(&[]);
    project
        .write(&format!("made/for/{}", "n".repeat(256)), "x")
        .expect_err("too long");
    assert!(!project.path.join("made").exists());
}

#[test]
fn what_is_no_regular_file_never_hangs() {
    let project = Project::new(&[("x", "needle\n")]);
    nix::unistd::mkfifo(
        &project.path.join("pipe"),
        nix::sys::stat::Mode::from_bits_truncate(0o666),
    )
    .expect("made");
    nix::unistd::mkfifo(
        &project.path.join(".gitignore"),
        nix::sys::stat::Mode::from_bits_truncate(0o666),
    )
    .expect("made");
    let _socket =
        std::os::unix::net::UnixListener::bind(project.path.join("socket")).expect("bound");
    for path in ["pipe", "socket"] {
        for fault in faults(&project, path) {
            assert!(
                matches!(fault, Fault::NotRegular { .. }),
                "{path}: {fault:?}"
            );
        }
        let output = project.call(Call::Grep(Grep {
            path: path.into(),
            ..grep("x")
        }));
        assert!(
            matches!(output, Output::Fault(Fault::NotRegular { .. })),
            "{output:?}"
        );
    }
    assert_eq!(project.grep(grep("needle")), ["x:1:needle"]);
    assert_eq!(project.glob("*"), ["x"]);
    // The control: whoever opens a pipe as if it were a file waits until somebody writes.
    let pipe = project.path.join("pipe");
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read(pipe).expect("a pipe")
    });
    std::thread::sleep(Duration::from_millis(300));
    assert!(!reader.is_finished());
    std::fs::write(pipe, "now").expect("somebody reads");
    assert_eq!(reader.join().expect("no panic"), b"now");
}

#[test]
fn a_missing_file_names_those_that_may_be_meant() {
    let project = Project::new(&[("src/main.rs", ""), ("src/lib.rs", ""), ("README.md", "")]);
    let similar = |path: &str| match project.read(path) {
        Err(Fault::NotFound { similar, .. }) => {
            similar.iter().map(BytesPath::to_text).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(similar("src/mian.rs"), ["src/main.rs"]);
    assert_eq!(similar("readme.md"), ["README.md"]);
    assert_eq!(similar("scr/main.rs"), ["src"]);
    assert_eq!(similar("/workspace/src/Lib.rs"), ["src/lib.rs"]);
    assert!(similar("nothing-like-it").is_empty());
}

#[test]
fn swapping_a_folder_for_a_link_never_leads_out() {
    let project = Project::new(&[("swapped/secret", "public\n")]);
    symlink("../outside", project.path.join("link")).expect("linked");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (one, other) = (project.path.join("swapped"), project.path.join("link"));
            while !stop.load(Ordering::Relaxed) {
                renameat2(
                    AT_FDCWD,
                    &one,
                    AT_FDCWD,
                    &other,
                    RenameFlags::RENAME_EXCHANGE,
                )
                .expect("swaps");
            }
        });
        let end = Instant::now() + Duration::from_millis(500);
        while Instant::now() < end {
            if let Ok(file) = project.read("swapped/secret") {
                assert_eq!(file.text, "public\n");
            }
            let _ = project.write("swapped/made", "x");
            let _ = project.write("swapped/deep/made", "x");
            let _ = project.edit("swapped/secret", "secret", "stolen");
            let found = project.grep(grep("secret"));
            assert!(found.is_empty(), "{found:?}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    project.check_untouched();
}

/// The control: the attacks above are some, where paths are opened by their names.
#[test]
fn whoever_opens_paths_by_their_names_is_led_out() {
    let project = Project::new(&[("a/b", "b"), ("swapped/secret", "public\n")]);
    let link =
        |target: &Path, name: &str| symlink(target, project.path.join(name)).expect("linked");
    link(&project.outside, "absolute");
    link(Path::new("../outside"), "relative");
    link(Path::new("../../outside/secret"), "a/file");
    link(Path::new("../outside/new"), "dangling");
    link(Path::new("relative"), "twice");
    let read = |path: &str| std::fs::read_to_string(project.path.join(path));
    for path in [
        "../outside/secret",
        "a/../../outside/secret",
        "absolute/secret",
        "relative/secret",
        "a/file",
        "twice/secret",
    ] {
        assert_eq!(read(path).expect("it is there"), "secret\n", "{path}");
    }
    std::fs::write(project.path.join("dangling"), "x").expect("written");
    assert!(project.outside.join("new").exists());

    // One that compares how paths begin takes a neighbour's for its own.
    let beside = format!("{}-evil/x", project.path.display());
    std::fs::create_dir(Path::new(&beside).parent().expect("a folder")).expect("made");
    std::fs::write(&beside, "secret\n").expect("written");
    assert!(
        beside.starts_with(&*project.path.to_string_lossy())
            && !Path::new(&beside).starts_with(&project.path)
    );
    let sideways = format!(
        "../{}-evil/x",
        project.path.file_name().expect("a name").to_string_lossy()
    );
    assert!(
        matches!(project.read(&sideways), Err(Fault::Outside { .. })) && read(&sideways).is_ok()
    );

    // One that looks before it opens is outrun.
    symlink("../outside", project.path.join("link")).expect("linked");
    let stop = AtomicBool::new(false);
    let was_led_out = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (one, other) = (project.path.join("swapped"), project.path.join("link"));
            while !stop.load(Ordering::Relaxed) {
                renameat2(
                    AT_FDCWD,
                    &one,
                    AT_FDCWD,
                    &other,
                    RenameFlags::RENAME_EXCHANGE,
                )
                .expect("swaps");
            }
        });
        let end = Instant::now() + Duration::from_secs(30);
        let looks_like_ours = || {
            project
                .path
                .join("swapped")
                .symlink_metadata()
                .is_ok_and(|facts| facts.is_dir())
        };
        let found = loop {
            if looks_like_ours() && read("swapped/secret").is_ok_and(|text| text == "secret\n") {
                break true;
            }
            if Instant::now() > end {
                break false;
            }
        };
        stop.store(true, Ordering::Relaxed);
        found
    });
    assert!(was_led_out);
}

#[test]
fn an_absolute_link_into_the_project_is_called_what_it_is() {
    let project = Project::new(&[("README.md", "text\n"), ("folder/x", "x")]);
    let link = |target: &str, name: &str| symlink(target, project.path.join(name)).expect("linked");
    link("/workspace/README.md", "readme");
    link("/workspace/folder", "there");
    link("readme", "twice");
    link("../there", "folder/up");
    for (path, target) in [
        ("readme", "/workspace/README.md"),
        ("twice", "/workspace/README.md"),
        ("there/x", "/workspace/folder"),
        ("folder/up/x", "/workspace/folder"),
    ] {
        for fault in faults(&project, path) {
            assert_eq!(
                fault,
                Fault::AbsoluteLink {
                    path: path.into(),
                    target: target.into()
                }
            );
        }
    }
    let made = project.write("there/deep/new", "x");
    assert!(matches!(made, Err(Fault::AbsoluteLink { .. })), "{made:?}");
    assert_eq!(project.text("README.md"), "text\n");
}
