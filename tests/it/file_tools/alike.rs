//! Names in letters that only look like those of the file, and names with a backslash where a slash is meant.

use podbay::event::CallStatus;
use serde_json::Value;
use serde_json::json;

use super::*;

/// Names on the disk, and what a model writes for each.
const NAMES: [(&str, &str); 5] = [
    ("cafe\u{301}/menu.txt", "caf\u{e9}/menu.txt"),
    ("caf\u{e9}/menu.txt", "cafe\u{301}/menu.txt"),
    ("Screenshot at 3.00.00\u{202f}PM.txt", "Screenshot at 3.00.00 PM.txt"),
    ("don\u{2019}t \u{2013} really.md", "don't - really.md"),
    ("\u{1112}\u{1161}\u{11ab}.txt", "\u{d55c}.txt"),
];

/// Every tool that takes a path of what is there.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("read_file", json!({"path": path})),
        ("write_file", json!({"path": path, "content": "new\n"})),
        ("write_file", json!({"path": path, "content": "new\n", "append": true})),
        ("edit_file", json!({"path": path, "old_string": "old", "new_string": "new"})),
        ("multi_edit", json!({"edits": [{"path": path, "old_string": "old", "new_string": "new"}]})),
        ("edit_lines", json!({"path": path, "operation": "replace", "start_line": 1, "end_line": 1, "new_content": "new"})),
        ("apply_patch", json!({"patch": format!("*** Begin Patch\n*** Update File: {path}\n@@\n-old\n+new\n*** End Patch")})),
        ("apply_patch", json!({"patch": format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch")})),
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
            assert_eq!(finished.status, CallStatus::Ok, "{tool} {written}: {}", finished.text);
            assert!(finished.text.contains(&format!("there is no {written}: {name} was taken")), "{tool}: {}", finished.text);
            // What is told of it is told of the file.
            assert!(finished.changed.iter().all(|(path, _)| path.to_text() != written), "{tool}: {:?}", finished.changed);
            assert!(!project.path.join(written).exists(), "{tool} made a second one");
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
        ("write_file", json!({"path": "caf\u{e9}/b/c", "content": "new"})),
        ("copy_file", json!({"source": "caf\u{e9}/a", "destination": "caf\u{e9}/d"})),
    ] {
        let finished = project.model(tool, &arguments.to_string());
        assert!(finished.status == CallStatus::Ok && finished.text.contains("was taken"), "{tool}: {}", finished.text);
    }
    assert!(!project.path.join("caf\u{e9}").exists());
    assert!(["inner", "b/c", "d"].iter().all(|name| project.path.join("cafe\u{301}").join(name).exists()));
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
    let Err(Fault::NotFound { similar, .. }) = project.read("a-b") else { panic!("one of two was taken") };
    assert_eq!(similar.len(), 2);
    assert!(matches!(project.read("x2"), Err(Fault::NotFound { .. })));
    project.write("x2", "two\n").expect("makes another");
    assert_eq!(project.text("x\u{b2}"), "square\n");
    // A new name may differ from the old one in nothing else.
    let renamed = project.model("move_file", &json!({"source": "a\u{2013}b", "destination": "a-b"}).to_string());
    assert_eq!((renamed.status, project.text("a-b").as_str()), (CallStatus::Ok, "en\n"));
}

/// What is said of names by rules is said of those names alone, and a protected one is never found for another.
#[test]
fn nobody_gets_more_by_a_name_that_looks_alike() {
    let project = Project::new(&[(".env", "key\n"), ("a\u{2013}b/.env.local", "key\n"), ("cafe\u{301}", "old\n")]);
    for path in ["\u{ff0e}env", "a-b/\u{ff0e}env.local", ".e\u{200b}nv"] {
        let read = Call::ReadFile(ReadFile { protected: true, ..read(path) });
        assert!(matches!(project.call(read), Output::Fault(Fault::NotFound { .. })), "{path}");
    }
    let by_name = Call::ByName { call: Box::new(Call::ReadFile(read("caf\u{e9}"))) };
    assert!(matches!(project.call(by_name), Output::Fault(Fault::NotFound { .. })));
    symlink("../outside/secret", project.path.join("a\u{2014}link")).expect("linked");
    assert!(matches!(project.read("a-link"), Err(Fault::NotFound { .. } | Fault::Outside { .. })));
    project.check_untouched();
}

#[test]
fn a_backslash_is_no_separator_for_any_tool_that_makes_a_path() {
    let add = |path: &str| format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch");
    for (tool, arguments) in [
        ("write_file", json!({"path": "src\\lib\\a.ts", "content": "x"})),
        ("write_file", json!({"path": "src\\lib\\a.ts", "content": "x", "append": true})),
        ("write_file", json!({"path": "src/lib\\a.ts", "content": "x"})),
        ("write_file", json!({"path": "src\\lib/a.ts", "content": "x"})),
        ("edit_file", json!({"path": "src\\lib\\a.ts", "old_string": "", "new_string": "x", "create_if_missing": true})),
        ("apply_patch", json!({"patch": add("src\\lib\\a.ts")})),
        ("apply_patch", json!({"patch": "*** Begin Patch\n*** Update File: a\n*** Move to: src\\b\n@@\n-old\n+new\n*** End Patch"})),
        ("copy_file", json!({"source": "a", "destination": "src\\b"})),
        ("move_file", json!({"source": "a", "destination": "src\\b"})),
        ("mkdir", json!({"path": "src\\lib"})),
        ("archive", json!({"action": "create", "source_path": "a", "archive_path": "src\\a.zip"})),
    ] {
        let project = Project::new(&[("a", "old\n"), ("src/x", "x\n")]);
        let before = project.tree();
        let finished = project.model(tool, &arguments.to_string());
        assert_eq!(finished.status, CallStatus::Failed, "{tool}: {}", finished.text);
        assert!(
            finished.text.contains("a backslash is no separator here") && finished.text.contains("write src/"),
            "{tool}: {}",
            finished.text
        );
        assert_eq!(project.tree(), before, "{tool}");
    }
}

#[test]
fn a_file_with_a_backslash_in_its_name_is_that_file() {
    let project = Project::new(&[("dev\\new.swap", "old\n"), ("src/lib/a.ts", "slash\n")]);
    project.put("odd\\folder/a", "old\n");
    project.edit("dev\\new.swap", "old", "new").expect("edits");
    project.append("dev\\new.swap", "more\n").expect("appends");
    project.write("odd\\folder/b", "new\n").expect("writes");
    assert_eq!((project.text("dev\\new.swap").as_str(), project.text("odd\\folder/b").as_str()), ("new\nmore\n", "new\n"));
    let Err(Fault::NotFound { similar, .. }) = project.read("src\\lib\\a.ts") else { panic!("it was read") };
    assert_eq!(similar, ["src/lib/a.ts".into()]);
}
