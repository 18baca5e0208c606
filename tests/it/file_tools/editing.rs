use super::*;

#[test]
fn edits_of_one_call_are_made_together_or_not_at_all() {
    let project = Project::new(&[("f", "one\ntwo\nthree\n")]);
    let edited = project
        .edits("f", &[("one", "1"), ("1\ntwo", "1\n2")], false)
        .expect("edits");
    assert_eq!(project.text("f"), "1\n2\nthree\n");
    assert_eq!(edited.replaced, 2);
    assert_eq!(
        edited.diff,
        "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n-one\n-two\n+1\n+2\n three\n"
    );
    let fault = project
        .edits("f", &[("three", "3"), ("four", "4")], false)
        .expect_err("the second fails");
    assert!(matches!(fault, Fault::NoMatch { edit: 2, .. }), "{fault:?}");
    assert_eq!(project.text("f"), "1\n2\nthree\n");
}

#[test]
fn edits_that_nobody_waits_for_are_not_made() {
    let project = Project::new(&[("f", "one\n")]);
    let edit = Replacement {
        old_string: "one".into(),
        new_string: "two".into(),
        replace_all: false,
    };
    let call = EditFile {
        path: "f".into(),
        edits: vec![edit],
        create_if_missing: false,
        protected: false,
        known: None,
    };
    let output = run(
        &project.workspace,
        &Call::EditFile(call),
        &AtomicBool::new(true),
    );
    assert!(
        matches!(output, Output::Fault(Fault::Cancelled)),
        "{output:?}"
    );
    assert_eq!(project.text("f"), "one\n");
}

#[test]
fn faults_help_to_do_it_right() {
    let project = Project::new(&[("f", "let a = 1;\nlet b = 1;\n")]);
    let fault = |old: &str, new: &str| project.edit("f", old, new).expect_err("not so").to_string();
    assert!(
        fault("= 1", "= 2").contains("2 times (edit 1, lines 1, 2)"),
        "{}",
        fault("= 1", "= 2")
    );
    assert!(
        fault("let bb = 1;", "x").contains("2\tlet b = 1;"),
        "{}",
        fault("let bb = 1;", "x")
    );
    assert!(fault("same", "same").contains("is the same as old_string"));
    assert!(fault("", "x").contains("is empty"));
    assert!(matches!(
        project.edits("f", &[], false),
        Err(Fault::Invalid { .. })
    ));
    assert!(matches!(
        project.edit("g", "a", "b"),
        Err(Fault::NotFound { .. })
    ));
}

#[test]
fn an_empty_old_text_makes_a_file_or_fills_an_empty_one() {
    let project = Project::new(&[("empty", "")]);
    project.edit("empty", "", "filled").expect("fills");
    assert_eq!(project.text("empty"), "filled");
    assert!(matches!(
        project.edit("new/f", "", "x"),
        Err(Fault::NotFound { .. })
    ));
    assert!(matches!(
        project.edits("new/f", &[("a", "x")], true),
        Err(Fault::NotFound { .. })
    ));
    let edited = project
        .edits("new/f", &[("", "text"), ("text", "TEXT")], true)
        .expect("makes");
    assert!(edited.created);
    assert_eq!(project.text("new/f"), "TEXT");
}

#[test]
fn bytes_outside_the_edit_are_untouched() {
    let project = Project::new(&[]);
    project.put("f", b"\xef\xbb\xbfkey = 1\r\ncaf\xe9\nlast");
    project
        .edit("f", "key = 1\n", "key = 2\nother = 3\n")
        .expect("edits");
    assert_eq!(
        project.bytes("f"),
        b"\xef\xbb\xbfkey = 2\r\nother = 3\r\ncaf\xe9\nlast"
    );
    project.put("wide", b"\xff\xfea\0");
    project.edit("wide", "a", "b").expect("edits");
    assert_eq!(project.bytes("wide"), b"\xff\xfeb\0");
    project.put("binary", b"a\0b");
    assert!(matches!(
        project.edit("binary", "a", "b"),
        Err(Fault::Binary { .. })
    ));
}

#[test]
fn lenient_matches_are_reported() {
    let project = Project::new(&[("f", "fn a() {\n    b(\"x\");\n}\n")]);
    assert_eq!(
        project
            .edit("f", "  b(\"x\");  \n", "  c(\"x\");\n")
            .expect("edits")
            .tolerant,
        [1]
    );
    assert_eq!(
        project
            .edit("f", r#"c(\"x\");\n}"#, r#"d(\"y\");\n}"#)
            .expect("edits")
            .unescaped,
        [1]
    );
    assert_eq!(project.text("f"), "fn a() {\n    d(\"y\");\n}\n");
}

#[test]
fn files_that_are_too_large_are_refused_whole() {
    let project = Project::new(&[]);
    project.put("f", vec![b'a'; 16 * 1024 * 1024 + 1]);
    assert!(matches!(
        project.edit("f", "aaa", "b"),
        Err(Fault::TooLarge { .. })
    ));
}

#[test]
fn edits_of_one_file_at_once_are_all_made() {
    let project = Project::new(&[("f", "a0 a1 a2 a3 a4 a5 a6 a7\n")]);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let project = &project;
            scope.spawn(move || {
                project
                    .edit("f", &format!("a{number}"), &format!("b{number}"))
                    .expect("edits")
            });
        }
    });
    assert_eq!(project.text("f"), "b0 b1 b2 b3 b4 b5 b6 b7\n");
}

/// Somebody outside, such as an editor, puts a new file in the place of the old one whenever they
/// like, while `change` is made again and again; it says whether it was made, found the file
/// changed, or had nothing to do.
fn race(project: &Project, name: &str, change: impl Fn() -> Option<bool>) {
    let text = |head: &str, letter: &str| format!("{head}\n{}\n", letter.repeat(1_000_000));
    project.put(name, text("head", "a"));
    let beside = project.outside.join("new");
    let done = AtomicBool::new(false);
    // Also where an assertion below fails.
    let end = Instant::now() + Duration::from_mins(1);
    let (mut n_made, mut n_refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) && Instant::now() < end {
                for letter in ["a", "b"].repeat(10) {
                    fs::write(&beside, text("head", letter)).expect("written");
                    fs::rename(&beside, project.path.join(name)).expect("moved");
                }
                std::thread::sleep(Duration::from_millis(300));
            }
        });
        while (n_made == 0 || n_refused == 0) && Instant::now() < end {
            match change() {
                Some(true) => n_made += 1,
                Some(false) => n_refused += 1,
                None => {}
            }
            let seen = project.text(name);
            let is_whole = ["head", "HEAD"].iter().any(|head| {
                ["a", "b"]
                    .iter()
                    .any(|letter| seen.starts_with(&text(head, letter)))
            });
            assert!(
                is_whole,
                "{} bytes: {}",
                seen.len(),
                &seen[..40.min(seen.len())]
            );
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(n_made > 0 && n_refused > 0, "{n_made} {n_refused}");
    project.check_untouched();
}

#[test]
fn a_file_that_changes_under_an_edit_is_a_conflict_and_never_half_of_each() {
    let project = Project::new(&[]);
    race(&project, "f", || match project.edit("f", "head", "HEAD") {
        Ok(_) => Some(true),
        Err(Fault::Changed { .. }) => Some(false),
        // The last one was made, and nobody has come since.
        Err(Fault::NoMatch { .. }) => None,
        Err(other) => panic!("{other:?}"),
    });
}

#[test]
fn a_file_that_changes_under_any_tool_that_works_on_its_text_is_a_conflict_too() {
    for (name, call) in [
        (
            "f",
            r#"{"type": "edit_lines", "path": "f", "operation": "replace", "start_line": 1, "end_line": 1, "new_content": "HEAD", "protected": false}"#,
        ),
        (
            "f",
            r#"{"type": "multi_edit", "edits": [{"path": "f", "edit": {"old_string": "head", "new_string": "HEAD", "replace_all": false}}], "protected": false}"#,
        ),
        (
            "f",
            r#"{"type": "apply_patch", "files": [{"path": "f", "action": {"action": "update", "hunks": [{"line": null, "anchors": [], "lines": [{"remove": "head"}, {"add": "HEAD"}], "at_end": false, "old_unended": false, "new_unended": false}], "to": null}, "notes": []}], "dry_run": false, "protected": false}"#,
        ),
        (
            "PODBAY.md",
            r#"{"type": "update_config", "section": "Notes", "content": "None."}"#,
        ),
    ] {
        let project = Project::new(&[]);
        let call: Call = serde_json::from_str(call).expect("a call");
        race(&project, name, || match project.call(&call) {
            Output::Fault(Fault::Changed { .. }) => Some(false),
            // The last one was made, and nobody has come since.
            Output::Fault(
                Fault::Invalid { .. }
                | Fault::NoMatch { .. }
                | Fault::HunkMissed { .. }
                | Fault::Refused { .. },
            ) => None,
            Output::Fault(other) => panic!("{name}: {other:?}"),
            _ => Some(true),
        });
    }
}
