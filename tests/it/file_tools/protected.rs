use super::*;

/// A project with secrets and all kinds of ways to them.
fn project() -> Project {
    let project = Project::new(&[
        (".env", "KEY=hidden\n"),
        (".ssh/config", "hidden\n"),
        ("deep/.env", "hidden\n"),
        ("server.key", "hidden\n"),
    ]);
    for (target, name) in [
        (".env", "notes.txt"),
        ("notes.txt", "twice"),
        (".ssh", "conf"),
        ("server.key", "text"),
    ] {
        symlink(target, project.path.join(name)).expect("linked");
    }
    project
}

#[track_caller]
fn check_refused(fault: &Fault, leads_to: &str) {
    assert!(
        matches!(fault, Fault::Protected { name, .. } if name.to_text() == leads_to),
        "{fault:?}"
    );
}

#[test]
fn no_link_leads_to_a_protected_name() {
    let project = project();
    for (path, leads_to) in [
        (".env", ".env"),
        ("notes.txt", ".env"),
        ("twice", ".env"),
        ("conf/config", ".ssh/config"),
        ("conf/../.env", ".env"),
    ] {
        check_refused(&project.read(path).expect_err("read"), leads_to);
        check_refused(&project.write(path, "mine").expect_err("write"), leads_to);
        check_refused(&project.append(path, "mine").expect_err("append"), leads_to);
        check_refused(
            &project.edit(path, "hidden", "mine").expect_err("edit"),
            leads_to,
        );
        match project.call(Call::Grep(Grep {
            path: path.into(),
            ..grep("hidden")
        })) {
            Output::Fault(fault) => check_refused(&fault, leads_to),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(project.read("text").expect("may be read").text, "hidden\n");
    check_refused(
        &project.write("text", "mine").expect_err("write"),
        "server.key",
    );
    check_refused(
        &project.write("conf/new/file", "mine").expect_err("write"),
        ".ssh/new/file",
    );
    assert!(!project.path.join(".ssh/new").exists());
    assert_eq!(
        (project.text(".env"), project.text(".ssh/config")),
        ("KEY=hidden\n".to_owned(), "hidden\n".to_owned())
    );
}

#[test]
fn no_cursor_hands_out_a_secret() {
    let project = project();
    let found = project.found(glob("**/.env"));
    assert_eq!(found.paths.len(), 2);
    match project.call(Call::ReadFile(ReadFile {
        path: None,
        cursor: found.cursor,
        ..read("")
    })) {
        Output::Read(read) => {
            for file in read.files {
                assert_eq!(file.text, "");
                check_refused(&file.fault.expect("is refused"), &file.path.to_text());
            }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_search_reads_a_secret() {
    let project = project();
    for (path, pattern) in [
        ("", ".env"),
        ("deep", ".env"),
        ("deep/..", ".*"),
        ("", "{.env,.ssh,.ssh/**}"),
    ] {
        let matches = project.matches(Grep {
            path: path.into(),
            glob: Some(pattern.into()),
            ..grep(".")
        });
        assert!(
            matches.files.is_empty() && matches.n_protected > 0,
            "{path} {pattern}: {matches:?}"
        );
    }
    for path in [".ssh", "conf", "conf/"] {
        let output = project.call(Call::Grep(Grep {
            path: path.into(),
            ..grep("hidden")
        }));
        assert!(
            matches!(output, Output::Fault(Fault::Protected { .. })),
            "{path}: {output:?}"
        );
    }
}

#[test]
fn what_policy_allowed_is_done() {
    let project = project();
    let path = || Some(".env".into());
    let output = project.call(Call::ReadFile(ReadFile {
        path: path(),
        protected: true,
        ..read("")
    }));
    assert!(
        matches!(&output, Output::Read(read) if read.files[0].text == "KEY=hidden\n"),
        "{output:?}"
    );
    let found = project.grep(Grep {
        path: ".env".into(),
        protected: true,
        ..grep("KEY")
    });
    assert_eq!(found, [".env:1:KEY=hidden"]);
    // A path that says nothing of it leads to nothing that somebody was asked about.
    let output = project.call(Call::Grep(Grep {
        path: "notes.txt".into(),
        protected: true,
        ..grep("KEY")
    }));
    assert!(
        matches!(output, Output::Fault(Fault::Protected { .. })),
        "{output:?}"
    );
    let write = WriteFile {
        path: ".env".into(),
        content: "new".into(),
        append: false,
        protected: true,
        known: None,
    };
    assert!(matches!(
        project.call(Call::WriteFile(write)),
        Output::Written(_)
    ));
    assert_eq!(project.text(".env"), "new");
}
