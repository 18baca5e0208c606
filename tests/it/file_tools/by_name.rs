use podbay::wire::Hunk;
use podbay::wire::PatchLine;

use super::*;

/// A project in which every name but the first ones is, or leads through, a link.
fn project() -> Project {
    let project = Project::new(&[
        ("real/file", "one\n"),
        ("real/a.tar", ""),
        ("Makefile", "all:\n"),
    ]);
    for (target, name) in [
        ("real/a.tar", "packed.tar"),
        ("real", "folder"),
        ("real/file", "file"),
        ("file", "twice"),
        ("real/new", "dangling"),
        ("..", "real/up"),
        ("Makefile", "PODBAY.md"),
    ] {
        symlink(target, project.path.join(name)).expect("linked");
    }
    project
}

/// A patch of one file.
fn patch(path: &str, action: &serde_json::Value) -> serde_json::Value {
    let files = serde_json::json!([{"path": path, "action": action, "notes": []}]);
    serde_json::json!({"type": "apply_patch", "files": files, "dry_run": false, "protected": false, "known": null})
}

/// What a patch does to a file that begins with `one` or `all:`.
fn update(to: Option<&str>) -> serde_json::Value {
    let lines = [PatchLine::Add("new".to_owned())];
    let hunk = Hunk {
        line: Some(1),
        lines: lines.to_vec(),
        ..Hunk::default()
    };
    serde_json::json!({"action": "update", "hunks": [hunk], "to": to})
}

/// Calls that would read or change something through a link of [`project`].
fn through_links() -> Vec<serde_json::Value> {
    use serde_json::json;
    let mut calls = Vec::new();
    for path in [
        "file",
        "twice",
        "folder/file",
        "real/up/Makefile",
        "folder/../Makefile",
    ] {
        calls.push(json!({"type": "read_file", "path": path, "offset": 1, "limit": 9, "max_bytes": 999, "cursor": null, "max_files": 1, "protected": false}));
        calls.push(json!({"type": "edit_file", "path": path, "edits": [{"old_string": "o", "new_string": "x", "replace_all": true}], "create_if_missing": false, "protected": false, "known": null}));
        calls.push(json!({"type": "multi_edit", "edits": [{"path": path, "edit": {"old_string": "o", "new_string": "x", "replace_all": true}}], "protected": false, "known": null}));
        calls.push(json!({"type": "edit_lines", "path": path, "operation": "replace", "start_line": 1, "end_line": 1, "new_content": "x", "protected": false, "known": null}));
        calls.push(patch(path, &update(None)));
        calls.push(patch(path, &update(Some("moved"))));
        calls.push(json!({"type": "archive", "action": {"action": "create", "source": path}, "archive": "new.zip", "max_entries": 9, "protected": false}));
        calls.push(json!({"type": "copy_file", "source": path, "destination": "copy", "recursive": false, "overwrite": false, "protected": false, "known": null}));
    }
    for path in [
        "file",
        "dangling",
        "folder/new",
        "folder/deep/er/new",
        "real/up/new",
    ] {
        calls.push(json!({"type": "write_file", "path": path, "content": "x", "append": false, "protected": false, "known": null}));
        calls.push(patch(path, &json!({"action": "add", "content": "x"})));
        calls.push(patch("Makefile", &update(Some(path))));
        calls.push(json!({"type": "copy_file", "source": "Makefile", "destination": format!("{path}/x"), "recursive": false, "overwrite": true, "protected": false, "known": null}));
    }
    for path in ["folder/file", "real/up/Makefile"] {
        calls.push(json!({"type": "delete_file", "path": path, "recursive": true, "protected": false, "known": null}));
        calls.push(
            json!({"type": "move_file", "source": path, "destination": "moved", "overwrite": false, "protected": false, "known": null}),
        );
        calls.push(json!({"type": "mkdir", "path": format!("{path}.d"), "protected": false}));
    }
    for archive in ["packed.tar", "folder/a.tar"] {
        for action in [
            json!({"action": "list"}),
            json!({"action": "extract", "into": "out"}),
        ] {
            calls.push(json!({"type": "archive", "action": action, "archive": archive, "max_entries": 9, "protected": false}));
        }
    }
    for (archive, action) in [
        (
            "real/a.tar",
            json!({"action": "extract", "into": "folder/out"}),
        ),
        (
            "folder/new.zip",
            json!({"action": "create", "source": "Makefile"}),
        ),
    ] {
        calls.push(json!({"type": "archive", "action": action, "archive": archive, "max_entries": 9, "protected": false}));
    }
    for path in ["folder", "folder/", "real/up"] {
        calls.push(
            json!({"type": "list_directory", "path": path, "recursive": true, "show_hidden": true, "show_size": false, "max_entries": 99}),
        );
        calls.push(json!({"type": "tree", "path": path, "depth": 3, "max_entries": 99}));
        calls.push(json!({"type": "glob", "pattern": "*", "path": path, "exclude": null, "max_results": 9}));
    }
    calls
}

#[test]
fn what_is_allowed_by_name_goes_through_no_link() {
    let project = project();
    for call in through_links() {
        let Ok(call) = serde_json::from_value::<Call>(call.clone()) else {
            panic!("no call: {call}")
        };
        match project.call(Call::ByName {
            call: Box::new(call.clone()),
        }) {
            Output::Fault(Fault::Refused { problem, .. }) => {
                assert!(
                    problem.contains("is a symbolic link, or leads through one"),
                    "{problem}"
                );
            }
            other => panic!("{call:?}: {other:?}"),
        }
    }
    let search = Call::Grep(Grep {
        path: "folder".into(),
        ..grep("one")
    });
    assert!(matches!(
        project.call(Call::ByName {
            call: Box::new(search)
        }),
        Output::Fault(Fault::Refused { .. })
    ));
    let mut names: Vec<String> = fs::read_dir(&project.path)
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "Makefile",
            "PODBAY.md",
            "dangling",
            "file",
            "folder",
            "packed.tar",
            "real",
            "twice"
        ]
    );
    assert_eq!(
        (project.text("real/file"), project.text("Makefile")),
        ("one\n".to_owned(), "all:\n".to_owned())
    );
    assert_eq!(
        fs::read_dir(project.path.join("real"))
            .expect("a folder")
            .count(),
        3
    );
}

#[test]
fn the_remedy_names_what_the_link_leads_to_and_that_works() {
    let project = project();
    let by_name = |path: &str| {
        project.call(Call::ByName {
            call: Box::new(Call::ReadFile(read(path))),
        })
    };
    match by_name("twice") {
        Output::Fault(fault) => {
            assert!(
                fault.to_string().contains(" to real/file,")
                    && fault.to_string().ends_with("name real/file itself"),
                "{fault}"
            );
        }
        other => panic!("{other:?}"),
    }
    let write = serde_json::json!({"type": "write_file", "path": "folder/deep/new", "content": "x", "append": false, "protected": false, "known": null});
    match project.call(Call::ByName {
        call: Box::new(serde_json::from_value(write).expect("a call")),
    }) {
        Output::Fault(fault) => assert!(
            fault.to_string().ends_with("name real/deep/new itself"),
            "{fault}"
        ),
        other => panic!("{other:?}"),
    }
    for path in ["real/file", "/workspace/real/file", "./real/../real/file"] {
        assert!(
            matches!(by_name(path), Output::Read(read) if read.files[0].text == "one\n"),
            "{path}"
        );
    }
    // A link itself can go: nothing is reached through it.
    let delete = DeleteFile {
        path: "twice".into(),
        recursive: false,
        protected: false,
        known: None,
    };
    assert!(matches!(
        project.call(Call::ByName {
            call: Box::new(Call::DeleteFile(delete))
        }),
        Output::Changed(_)
    ));
    assert!(!project.path.join("twice").is_symlink() && project.path.join("file").is_symlink());
    assert_eq!(
        project
            .read("file")
            .expect("links are followed otherwise")
            .text,
        "one\n"
    );
}

#[test]
fn a_cursor_of_what_was_found_leads_through_no_link_either() {
    let project = project();
    let found = project.found(glob("**"));
    let cursor = ReadFile {
        path: None,
        cursor: found.cursor,
        max_files: 9,
        ..read("")
    };
    match project.call(Call::ByName {
        call: Box::new(Call::ReadFile(cursor)),
    }) {
        Output::Read(read) => {
            let was_read = |file: &&FileText| file.fault.is_none();
            let mut paths: Vec<String> = read
                .files
                .iter()
                .filter(was_read)
                .map(|file| file.path.to_text())
                .collect();
            paths.sort();
            assert_eq!(paths, ["Makefile", "real/a.tar", "real/file"], "{read:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_instructions_for_agents_are_never_changed_through_a_link() {
    let project = project();
    let update = || {
        serde_json::from_value::<Call>(
            serde_json::json!({"type": "update_config", "section": "A", "content": "b", "known": null}),
        )
    };
    let update = || update().expect("a call");
    match project.call(update()) {
        Output::Fault(Fault::Refused { problem, .. }) => {
            assert!(problem.contains("name Makefile itself"), "{problem}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(project.text("Makefile"), "all:\n");
    fs::remove_file(project.path.join("PODBAY.md")).expect("removed");
    assert!(matches!(project.call(update()), Output::Edited(_)));
    assert_eq!(project.text("PODBAY.md"), "## A\n\nb\n");
}
