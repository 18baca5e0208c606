use super::*;

#[test]
fn one_folder_shows_what_is_ignored_and_not_what_is_hidden() {
    let project = Project::new(&[
        (".gitignore", "target\n"),
        ("target/x", "x"),
        ("src/a.rs", "abc"),
        (".hidden", "h"),
        ("b", "bb"),
    ]);
    symlink("src", project.path.join("link")).expect("linked");
    assert_eq!(
        project.list(list(".")).0,
        [
            "File b 2",
            "Link link -> src",
            "Directory src",
            "Directory target"
        ]
    );
    let hidden = project
        .list(ListDirectory {
            show_hidden: true,
            ..list("")
        })
        .0;
    assert_eq!(hidden[..2], ["File .gitignore 7", "File .hidden 1"]);
    assert_eq!(project.list(list("link")).0, ["File a.rs 3"]);
    assert_eq!(
        project
            .list(ListDirectory {
                show_size: false,
                ..list("link")
            })
            .0,
        ["File a.rs"]
    );
}

#[test]
fn in_depth_ignored_files_and_repositories_are_left_out() {
    let project = Project::new(&[
        (".gitignore", "target/\n*.log\n!keep.log\n"),
        ("target/x", ""),
        ("src/a.rs", ""),
        ("src/b.log", ""),
        ("src/keep.log", ""),
        ("src.txt", ""),
        (".git/config", ""),
        (".dot/x", ""),
    ]);
    symlink("src", project.path.join("link")).expect("linked");
    let entries = project
        .list(ListDirectory {
            recursive: true,
            ..list(".")
        })
        .0;
    assert_eq!(
        entries,
        [
            "Link link -> src",
            "Directory src",
            "File src/a.rs 0",
            "File src/keep.log 0",
            "File src.txt 0"
        ]
    );
    let below = project
        .list(ListDirectory {
            recursive: true,
            show_hidden: true,
            ..list("/workspace/src/")
        })
        .0;
    assert_eq!(below, ["File a.rs 0", "File keep.log 0"]);
}

#[test]
fn what_is_left_out_is_counted() {
    let project = Project::new(&[]);
    for number in 0..500 {
        project.put(&format!("many/{number:03}"), "");
    }
    let (entries, omitted) = project.list(ListDirectory {
        max_entries: 2,
        ..list("many")
    });
    assert_eq!(
        (entries, omitted),
        (
            vec!["File 000 0".to_string(), "File 001 0".to_string()],
            498
        )
    );
    let (entries, omitted) = project.list(ListDirectory {
        max_entries: 3,
        recursive: true,
        ..list("")
    });
    assert_eq!((entries.len(), omitted), (3, 498));
}

#[test]
fn a_name_that_looks_like_another_one_written_out_is_told_from_it_by_every_tool() {
    let literal = r"\x0a";
    let project = Project::new(&[
        ("\n", "a break\n"),
        (literal, "four letters\n"),
        ("\\", "a backslash\n"),
        ("\\\\x0a", "five\n"),
    ]);
    let found = project.glob("*");
    assert_eq!(found.len(), 4);
    let texts = found
        .iter()
        .map(|shown| project.read(shown).expect("it is read as it is shown").text);
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    assert_eq!(
        texts,
        ["a backslash\n", "a break\n", "five\n", "four letters\n"]
    );
    assert_eq!(project.read(r"\x0a").expect("reads").text, "a break\n");
    assert_eq!(
        project.read(r"\\x0a").expect("reads").text,
        "four letters\n"
    );
    for call in [
        Call::ListDirectory(list("")),
        Call::Grep(grep("e")),
        Call::Tree(Tree {
            path: "".into(),
            depth: 1,
            max_entries: 9,
        }),
    ] {
        let text = serde_json::to_string(&project.call(call)).expect("JSON");
        // Each backslash is two in a name that is shown, and twice that in JSON.
        assert!(
            text.contains(r#""\\x0a"#) && text.contains(r#""\\\\x0a"#),
            "{text}"
        );
        let named_by_letters = text.matches(r"\x0a").count();
        assert!(named_by_letters >= 3, "{text}");
    }
}

#[test]
fn a_name_with_a_break_of_lines_is_one_line_for_every_tool_and_can_be_read_by_it() {
    let project = Project::new(&[
        ("folder/plain", "needle\n"),
        ("folder/new\nline", "needle two\n"),
    ]);
    let shown = r"folder/new\x0aline";
    assert_eq!(project.glob("folder/*"), [shown, "folder/plain"]);
    let texts = [
        Call::ListDirectory(list("folder")),
        Call::Glob(glob("folder/*")),
        Call::Grep(grep("needle")),
        Call::Tree(Tree {
            path: "folder".into(),
            depth: 2,
            max_entries: 10,
        }),
    ]
    .map(|call| serde_json::to_string(&project.call(call)).expect("JSON"));
    for text in texts {
        assert!(
            text.contains(r"new\\x0aline") && !text.contains(r"new\nline"),
            "{text}"
        );
    }
    assert_eq!(project.read(shown).expect("reads").text, "needle two\n");
    assert_eq!(
        project
            .read("folder/new\nline")
            .expect("reads")
            .path
            .to_string(),
        shown
    );
    let missing = project
        .read("folder/no\nne")
        .expect_err("is not there")
        .to_string();
    assert!(missing.contains(r"folder/no\x0ane"), "{missing}");
}
