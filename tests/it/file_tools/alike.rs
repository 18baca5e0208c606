//! Names in letters that only look like those of the file, and names with a backslash where a slash
//! is meant.

use podbay::event::CallStatus;
use serde_json::Value;
use serde_json::json;

use super::*;

/// Names on the disk, and what a model writes for each.
const NAMES: [(&str, &str); 5] = [
    ("cafe\u{301}/menu.txt", "caf\u{e9}/menu.txt"),
    ("caf\u{e9}/menu.txt", "cafe\u{301}/menu.txt"),
    (
        "Screenshot at 3.00.00\u{202f}PM.txt",
        "Screenshot at 3.00.00 PM.txt",
    ),
    ("don\u{2019}t \u{2013} really.md", "don't - really.md"),
    ("\u{1112}\u{1161}\u{11ab}.txt", "\u{d55c}.txt"),
];

/// Every tool that takes a path of what is there.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("read_file", json!({"path": path})),
        ("write_file", json!({"path": path, "content": "new\n"})),
        (
            "write_file",
            json!({"path": path, "content": "new\n", "append": true}),
        ),
        (
            "edit_file",
            json!({"path": path, "old_string": "old", "new_string": "new"}),
        ),
        (
            "multi_edit",
            json!({"edits": [{"path": path, "old_string": "old", "new_string": "new"}]}),
        ),
        (
            "edit_lines",
            json!({"path": path, "operation": "replace", "start_line": 1, "end_line": 1, "new_content": "new"}),
        ),
        (
            "apply_patch",
            json!({"patch": format!("*** Begin Patch\n*** Update File: {path}\n@@\n-old\n+new\n*** End Patch")}),
        ),
        (
            "apply_patch",
            json!({"patch": format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch")}),
        ),
        ("copy_file", json!({"source": path, "destination": "copy"})),
        ("move_file", json!({"source": path, "destination": "moved"})),
        ("delete_file", json!({"path": path})),
        ("grep", json!({"pattern": "old", "path": path})),
    ]
}

#[test]
fn a_name_that_looks_like_the_file_s_is_taken_for_it_and_that_is_said() {
    for (name, written) in NAMES {
        for (tool, arguments) in calls(written) {
            let project = Project::new(&[(name, "old\n")]);
            let finished = project.model(tool, &arguments.to_string());
            assert_eq!(
                finished.status,
                CallStatus::Ok,
                "{tool} {written}: {}",
                finished.text
            );
            assert!(
                finished
                    .text
                    .contains(&format!("there is no {written}: {name} was taken")),
                "{tool}: {}",
                finished.text
            );
            // What knows of it knows of the file.
            assert!(
                finished
                    .changed
                    .iter()
                    .all(|(path, _)| path.to_text() != written),
                "{tool}: {:?}",
                finished.changed
            );
            assert!(
                !project.path.join(written).exists(),
                "{tool} made a second one"
            );
        }
    }
}

#[test]
fn a_folder_that_looks_like_the_one_that_is_named_is_taken() {
    let project = Project::new(&[("cafe\u{301}/a", "old\n")]);
    for (tool, arguments) in [
        ("list_directory", json!({"path": "caf\u{e9}"})),
        ("tree", json!({"path": "caf\u{e9}"})),
        ("glob", json!({"pattern": "*", "path": "caf\u{e9}"})),
        ("mkdir", json!({"path": "caf\u{e9}/inner"})),
        (
            "write_file",
            json!({"path": "caf\u{e9}/b/c", "content": "new"}),
        ),
        (
            "copy_file",
            json!({"source": "caf\u{e9}/a", "destination": "caf\u{e9}/d"}),
        ),
    ] {
        let finished = project.model(tool, &arguments.to_string());
        assert!(
            finished.status == CallStatus::Ok && finished.text.contains("was taken"),
            "{tool}: {}",
            finished.text
        );
    }
    assert!(!project.path.join("caf\u{e9}").exists());
    assert!(
        ["inner", "b/c", "d"].iter().all(|name| project
            .path
            .join("cafe\u{301}")
            .join(name)
            .exists())
    );
}

#[test]
fn a_name_that_is_there_is_what_it_is_and_two_that_look_alike_are_too_many() {
    let project = Project::new(&[
        ("don't", "plain\n"),
        ("don\u{2019}t", "curly\n"),
        ("a\u{2013}b", "en\n"),
        ("a\u{2014}b", "em\n"),
        ("x\u{b2}", "square\n"),
    ]);
    assert_eq!(project.read("don't").expect("reads").text, "plain\n");
    let Err(Fault::NotFound { similar, .. }) = project.read("a-b") else {
        panic!("one of two was taken")
    };
    assert_eq!(similar.len(), 2);
    assert!(matches!(project.read("x2"), Err(Fault::NotFound { .. })));
    project.write("x2", "two\n").expect("makes another");
    assert_eq!(project.text("x\u{b2}"), "square\n");
    // A new name may differ from the old one in nothing else.
    let renamed = project.model(
        "move_file",
        &json!({"source": "a\u{2013}b", "destination": "a-b"}).to_string(),
    );
    assert_eq!(
        (renamed.status, project.text("a-b").as_str()),
        (CallStatus::Ok, "en\n")
    );
}

/// What is said of names by rules is said of those names alone, and a protected one is never found
/// for another.
#[test]
fn nobody_gets_more_by_a_name_that_looks_alike() {
    let project = Project::new(&[
        (".env", "key\n"),
        ("a\u{2013}b/.env.local", "key\n"),
        ("cafe\u{301}", "old\n"),
    ]);
    for path in ["\u{ff0e}env", "a-b/\u{ff0e}env.local", ".e\u{200b}nv"] {
        let read = Call::ReadFile(ReadFile {
            protected: true,
            ..read(path)
        });
        assert!(
            matches!(project.call(read), Output::Fault(Fault::NotFound { .. })),
            "{path}"
        );
    }
    let by_name = Call::ByName {
        call: Box::new(Call::ReadFile(read("caf\u{e9}"))),
    };
    assert!(matches!(
        project.call(by_name),
        Output::Fault(Fault::NotFound { .. })
    ));
    symlink("../outside/secret", project.path.join("a\u{2014}link")).expect("linked");
    assert!(matches!(
        project.read("a-link"),
        Err(Fault::NotFound { .. } | Fault::Outside { .. })
    ));
    project.check_untouched();
}

#[test]
fn a_pattern_finds_the_only_name_that_looks_like_it_and_that_is_said() {
    for (name, written) in NAMES {
        for pattern in [
            written.to_owned(),
            format!("**/{}", written.rsplit('/').next().expect("a name")),
            written.replace(".txt", ".*"),
        ] {
            let project = Project::new(&[(name, "old\n"), ("other.txt", "old\n")]);
            if pattern.starts_with("**") && written.contains('/') {
                // The last name is the very one.
                assert_eq!(project.glob(&pattern), [name]);
                continue;
            }
            let finished = project.model("glob", &json!({"pattern": pattern}).to_string());
            let said = format!("{name}, which looks alike, was used");
            assert!(
                finished.text.starts_with(&format!("{name}\n")) && finished.text.contains(&said),
                "{pattern}: {}",
                finished.text
            );
            let finished = project.model(
                "grep",
                &json!({"pattern": "old", "glob": pattern}).to_string(),
            );
            assert!(
                finished.text.contains("1:old") && finished.text.contains(&said),
                "{pattern}: {}",
                finished.text
            );
            assert!(!finished.text.contains("other.txt"), "{}", finished.text);
        }
    }
    let project = Project::new(&[
        ("a\u{2013}b", "en\n"),
        ("a\u{2014}b", "em\n"),
        ("x-y", "plain\n"),
        ("x\u{2013}y", "en\n"),
    ]);
    let several = project
        .model("glob", &json!({"pattern": "a-b"}).to_string())
        .text;
    assert!(
        several.starts_with("no file matches")
            && several.contains("several names consist of look-alike characters"),
        "{several}"
    );
    assert_eq!(project.glob("x-y"), ["x-y"], "one that is there is meant");
}

#[test]
fn a_search_finds_the_only_place_that_looks_like_it_and_that_is_said() {
    for (text, pattern) in [
        ("I don\u{2019}t know", "don't"),
        ("cafe\u{301} au lait", "caf\u{e9} au"),
        ("caf\u{e9} au lait", "^cafe\u{301} .. lait$"),
        ("pages 1\u{2013}2", "pages \\d-\\d"),
        ("10\u{202f}km", "10 km"),
        ("f\u{ff08}x\u{ff09}", "f\\(x\\)"),
        ("say \"hi\"", "say \u{201c}hi\u{201d}"),
        ("f(x)...", "f\u{ff08}x\u{ff09}\u{2026}"),
        ("a\u{200b}bc", "abc"),
    ] {
        let project = Project::new(&[
            ("dir/file", &format!("one\r\n{text}\r\n")),
            ("other", "abx\n"),
        ]);
        let finished = project.model("grep", &json!({"pattern": pattern}).to_string());
        let is_found = finished.text.contains(&format!("2:{text}"))
            && finished.text.contains("the only place that looks alike");
        assert!(is_found, "{pattern}: {}", finished.text);
        let of_files = project
            .model(
                "grep",
                &json!({"pattern": pattern, "output_mode": "files_only"}).to_string(),
            )
            .text;
        assert!(of_files.starts_with("dir/file\n"), "{of_files}");
        // Twice is too often, and it is said where.
        project.put("again", text);
        let finished = project.model("grep", &json!({"pattern": pattern}).to_string());
        let is_said = finished.text.starts_with("nothing matches")
            && finished.text.contains("such as again:1, dir/file:2");
        assert!(is_said, "{pattern}: {}", finished.text);
        // The very letters are meant where they stand.
        let plain = Project::new(&[("file", "don't\n"), ("curly", "don\u{2019}t\n")]);
        assert_eq!(plain.grep(grep("don't")), ["file:1:don't"]);
    }
    let latin = Project::new(&[]);
    latin.put("f", b"na\xefve \x96 caf\xe9\n");
    assert_eq!(
        latin.grep(grep("na\u{ef}ve - cafe\u{301}")),
        ["f:1:na\u{ef}ve \u{2013} caf\u{e9}"]
    );
}

#[test]
fn an_edit_parts_no_letter_from_its_mark() {
    for (text, old) in [
        ("cafe\u{301}\n", "cafe"),
        ("A\u{30a}ngstrom\n", "A"),
        ("\u{1112}\u{1161}\u{11ab}\n", "\u{1112}"),
    ] {
        let project = Project::new(&[("f", text)]);
        assert!(
            matches!(project.edit("f", old, "x"), Err(Fault::NoMatch { .. })),
            "{text}"
        );
        let all = json!({"path": "f", "old_string": old, "new_string": "x", "replace_all": true});
        assert_eq!(
            project.model("edit_file", &all.to_string()).status,
            CallStatus::Failed
        );
        assert_eq!(project.text("f"), text);
    }
}

#[test]
fn a_backslash_is_no_separator_for_any_tool_that_makes_a_path() {
    let add = |path: &str| format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch");
    for (tool, arguments) in [
        (
            "write_file",
            json!({"path": "src\\lib\\a.ts", "content": "x"}),
        ),
        (
            "write_file",
            json!({"path": "src\\lib\\a.ts", "content": "x", "append": true}),
        ),
        (
            "write_file",
            json!({"path": "src/lib\\a.ts", "content": "x"}),
        ),
        (
            "write_file",
            json!({"path": "src\\lib/a.ts", "content": "x"}),
        ),
        (
            "edit_file",
            json!({"path": "src\\lib\\a.ts", "old_string": "", "new_string": "x", "create_if_missing": true}),
        ),
        ("apply_patch", json!({"patch": add("src\\lib\\a.ts")})),
        (
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Update File: a\n*** Move to: src\\b\n@@\n-old\n+new\n*** End Patch"}),
        ),
        ("copy_file", json!({"source": "a", "destination": "src\\b"})),
        ("move_file", json!({"source": "a", "destination": "src\\b"})),
        ("mkdir", json!({"path": "src\\lib"})),
        (
            "archive",
            json!({"action": "create", "source_path": "a", "archive_path": "src\\a.zip"}),
        ),
    ] {
        let project = Project::new(&[("a", "old\n"), ("src/x", "x\n")]);
        let before = project.tree();
        let finished = project.model(tool, &arguments.to_string());
        assert_eq!(
            finished.status,
            CallStatus::Failed,
            "{tool}: {}",
            finished.text
        );
        assert!(
            finished
                .text
                .contains("a backslash is not a separator here")
                && finished.text.contains("write src/"),
            "{tool}: {}",
            finished.text
        );
        assert_eq!(project.tree(), before, "{tool}");
    }
}

#[test]
fn a_path_with_backslashes_that_is_not_there_is_told_from_one_with_slashes() {
    let mut calls = calls("src\\lib\\a.ts");
    // These make a file, and are in the table above.
    calls.retain(|(tool, _)| *tool != "write_file");
    calls.extend([
        ("list_directory", json!({"path": "src\\lib"})),
        ("tree", json!({"path": "src\\lib"})),
        ("glob", json!({"pattern": "*", "path": "src\\lib"})),
        ("grep", json!({"pattern": "old", "path": "src\\lib"})),
        ("read_file", json!({"path": "src\\none.ts"})),
    ]);
    for (tool, arguments) in calls {
        let project = Project::new(&[("src/lib/a.ts", "old\n")]);
        let finished = project.model(tool, &arguments.to_string());
        assert_eq!(
            finished.status,
            CallStatus::Failed,
            "{tool}: {}",
            finished.text
        );
        let is_said = finished
            .text
            .contains("a backslash is not a separator here")
            && finished.text.contains("src/");
        assert!(is_said, "{tool}: {}", finished.text);
    }
    let project = Project::new(&[("src/lib/a.ts", "old\n")]);
    for pattern in [
        "src\\lib\\*.ts",
        "src\\*\\a.ts",
        "**\\lib\\a.ts",
        "src/lib\\a.ts",
    ] {
        for (tool, arguments) in [
            ("glob", json!({"pattern": pattern})),
            ("grep", json!({"pattern": "old", "glob": pattern})),
        ] {
            let text = project.model(tool, &arguments.to_string()).text;
            assert!(
                text.contains(&format!(
                    "if a separator was meant, use: {}",
                    pattern.replace('\\', "/")
                )),
                "{tool} {pattern}: {text}"
            );
        }
    }
    for pattern in ["\\[id\\]/*", "none/\\*.ts"] {
        assert!(
            !project
                .model("glob", &json!({"pattern": pattern}).to_string())
                .text
                .contains("backslash"),
            "{pattern}"
        );
    }
}

#[test]
fn a_pattern_in_git_s_quotes_is_read_as_git_writes_names() {
    for (name, quoted) in [
        ("caf\u{e9}.txt", r#""caf\303\251.txt""#),
        ("dir/two words.txt", r#""dir/two words.txt""#),
        ("a,b.txt", r#""a,b.txt""#),
        ("\u{65e5}/x\ty.md", r#""\346\227\245/x\ty.md""#),
        ("back\\t", r#""back\\t""#),
    ] {
        let project = Project::new(&[("other", "needle\n")]);
        project.put(name, "needle\n");
        let shown = BytesPath::from_bytes(name).to_string();
        let text = project
            .model("glob", &json!({"pattern": quoted}).to_string())
            .text;
        assert!(
            text.starts_with(&format!("{shown}\n"))
                && text.contains("was read as git writes names"),
            "{quoted}: {text}"
        );
        let text = project
            .model(
                "grep",
                &json!({"pattern": "needle", "glob": quoted}).to_string(),
            )
            .text;
        assert!(
            text.starts_with(&shown)
                && text.contains("was read as git writes names")
                && !text.contains("other"),
            "{quoted}: {text}"
        );
    }
    let project = Project::new(&[("\"a\"", "x\n"), ("a", "x\n")]);
    assert_eq!(
        project.glob("\"a\""),
        ["\"a\""],
        "a name with quotes is that name"
    );
}

#[test]
fn a_file_with_a_backslash_in_its_name_is_that_file() {
    let project = Project::new(&[("dev\\new.swap", "old\n"), ("src/lib/a.ts", "slash\n")]);
    project.put("odd\\folder/a", "old\n");
    project.edit("dev\\new.swap", "old", "new").expect("edits");
    project.append("dev\\new.swap", "more\n").expect("appends");
    project.write("odd\\folder/b", "new\n").expect("writes");
    assert_eq!(
        (
            project.text("dev\\new.swap").as_str(),
            project.text("odd\\folder/b").as_str()
        ),
        ("new\nmore\n", "new\n")
    );
    let Err(Fault::NotFound { similar, .. }) = project.read("src\\lib\\a.ts") else {
        panic!("it was read")
    };
    assert_eq!(similar, ["src/lib/a.ts".into()]);
}
