//! What a user is shown when they are asked: the call that would be executed, whatever the
//! model calls its parts.

use podbay::ui::Paint;
use podbay::ui::Question;

use super::*;

/// Makes a call in a mode that asks about it; returns what is shown to the user who is asked.
async fn shown(tool: &str, arguments: Value) -> String {
    let rules = policy::Options {
        ask: vec!["bash".to_owned()],
        // An edit of what may not be read is not tried before the question.
        deny: vec!["read_file".to_owned()],
        ..policy::Options::default()
    };
    let hand = Hand::with(ToolSet::Full, Mode::Ask, rules, Some("nothing")).await;
    let finished = hand.call(tool, arguments).await;
    assert_eq!(finished.status, CallStatus::Denied, "{}", finished.text);
    let asked = hand
        .asked
        .lock()
        .expect("no test panics while it holds this")
        .clone();
    let [asked] = asked.as_slice() else {
        panic!("asked {} times", asked.len())
    };
    Question::from(asked).render(Paint::NONE)
}

#[tokio::test]
async fn a_name_that_only_looks_like_another_is_seen_under_every_name_of_an_argument() {
    let patch = "*** Begin Patch\n*** Update File: а.rs\n@@\n-с\n+ с\n*** End Patch\n";
    for name in ["patch", "content", "input", "patch_text", "diff"] {
        for (tool, arguments) in [
            ("apply_patch", json!({ name: patch })),
            (
                "more_tools",
                json!({"tool": "ApplyPatch", "arguments": { name: patch }}),
            ),
        ] {
            let shown = shown(tool, arguments).await;
            assert!(
                shown.starts_with("The agent wants to use apply_patch:\n  patch:\n"),
                "{name}: {shown}"
            );
            assert!(
                shown.contains("Update File: \\u{430}.rs\n")
                    && shown.contains("only look like others"),
                "{name}: {shown}"
            );
            // What goes into the file is text of any script.
            assert!(shown.contains("    | -с\n    | + с\n"), "{name}: {shown}");
        }
    }
}

#[tokio::test]
async fn files_that_are_not_shown_are_named_under_every_name_of_an_argument() {
    let lines = "+x\n".repeat(40_000);
    let patch = format!(
        "*** Begin Patch\n*** Add File: a.txt\n{lines}*** Delete File: keep\n*** Add File: b.txt\n{lines}*** End Patch\n"
    );
    let shown_of = shown("apply_patch", json!({ "content": patch })).await;
    assert!(
        shown_of.contains(
            "what is not shown is about:\n    | *** Delete File: keep\n    | *** Add File: b.txt\n"
        ),
        "{shown_of}"
    );
    let edit = |n: u32| json!({"file_path": if n == 100 { "secret" } else { "a" }, "old_str": "x".repeat(500), "new_str": "y"});
    let shown_of = shown(
        "MultiEdit",
        json!({ "changes": (0..300).map(edit).collect::<Vec<_>>() }),
    )
    .await;
    assert!(
        shown_of.contains("what is not shown is about:\n    | a\n    | secret\n"),
        "{shown_of}"
    );
}

/// Text of any script goes into files, by whatever tool: no letter of it is taken for one that
/// pretends.
#[tokio::test]
async fn what_goes_into_a_file_is_shown_as_it_is() {
    let edit = json!({"old_string": "с", "new_string": "а"});
    for (tool, arguments) in [
        ("write_file", json!({"path": "a.txt", "content": "с"})),
        (
            "edit_file",
            json!({"path": "a.txt", "old_str": "с", "new_text": "а"}),
        ),
        ("edit_file", json!({"path": "a.txt", "edits": [edit]})),
        (
            "edit_lines",
            json!({"path": "a.txt", "operation": "replace", "start_line": 1, "content": "с"}),
        ),
        (
            "insert_lines",
            json!({"path": "a.txt", "start_line": 1, "new_content": "с"}),
        ),
    ] {
        let shown = shown(tool, arguments).await;
        assert!(
            shown.contains('с')
                && !shown.contains("only look like others")
                && !shown.contains("\\u{"),
            "{tool}: {shown}"
        );
    }
}

/// A here-document whose line ends came escaped is executed with real ones, and `insert_lines`
/// says what is done by its name alone.
#[tokio::test]
async fn what_is_mended_is_shown_mended() {
    let shown_of = shown(
        "Bash",
        json!({"cmd": "cat > a.sh <<'EOF'\\nrm -rf build\\nEOF", "timeout": 60_000}),
    )
    .await;
    assert!(
        shown_of.contains("  command:\n    | cat > a.sh <<'EOF'\n    | rm -rf build\n    | EOF\n"),
        "{shown_of}"
    );
    assert!(shown_of.contains("  timeout_seconds: 60\n"), "{shown_of}");
    let lines = json!({"path": "a.txt", "start_line": 1, "new_content": "x"});
    for (tool, arguments) in [
        ("insert_lines", lines.clone()),
        (
            "more_tools",
            json!({"tool": "insert_lines", "arguments": lines}),
        ),
    ] {
        let shown_of = shown(tool, arguments).await;
        assert!(
            shown_of.contains("use edit_lines:\n") && shown_of.contains("  operation: insert\n"),
            "{shown_of}"
        );
    }
}

#[tokio::test]
async fn the_time_that_a_person_thinks_is_not_that_of_the_call() {
    let hand = Hand::with(
        ToolSet::Full,
        Mode::Ask,
        policy::Options::default(),
        Some("slow"),
    )
    .await;
    hand.fails(
        "write_file",
        json!({"path": "a", "content": "x"}),
        CallStatus::Denied,
    )
    .await;
    let took = hand.kinds().into_iter().find_map(|kind| match kind {
        Kind::CallFinished { duration_ms, .. } => Some(Duration::from_millis(duration_ms)),
        _ => None,
    });
    assert!(took.is_some_and(|took| took < SLOW), "{took:?}");
}
