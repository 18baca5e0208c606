//! Files that somebody else changes after the model has read them.

use std::fs::File;

use super::*;

const LINES: &str = "l1\nl2\nl3\n";

async fn read() -> Hand {
    let hand = Hand::new().await;
    hand.put("f", LINES);
    hand.ok("read_file", json!({"path": "f"})).await;
    hand
}

fn delete_second() -> Value {
    json!({"path": "f", "operation": "delete", "start_line": 2, "end_line": 2})
}

async fn is_conflict(hand: &Hand, tool: &'static str, arguments: Value) {
    let text = hand.fails(tool, arguments, CallStatus::Conflict).await;
    assert!(
        text.starts_with("f: it has changed since you read it") && text.contains("read it again"),
        "{tool}: {text}"
    );
}

#[tokio::test]
async fn what_goes_by_lines_or_replaces_all_is_a_conflict_until_the_file_is_read_again() {
    let hand = read().await;
    hand.ok("bash", json!({"command": "sed -i '1i PERSON' f"}))
        .await;
    let changed = format!("PERSON\n{LINES}");
    is_conflict(&hand, "edit_lines", delete_second()).await;
    is_conflict(
        &hand,
        "write_file",
        json!({"path": "f", "content": "all new\n"}),
    )
    .await;
    let by_number = "--- a/f\n+++ b/f\n@@ -1,0 +2 @@\n+new\n";
    is_conflict(&hand, "apply_patch", json!({ "patch": by_number })).await;
    assert_eq!(hand.text("f"), changed);
    hand.ok("read_file", json!({"path": "f"})).await;
    hand.ok("edit_lines", delete_second()).await;
    assert_eq!(hand.text("f"), "PERSON\nl2\nl3\n");
}

#[tokio::test]
async fn what_goes_by_text_finds_it_and_the_others_change_stays_unseen() {
    let edit = json!({"path": "f", "old_string": "l3", "new_string": "l4"});
    let multi = json!({"edits": [{"path": "f", "old_string": "l3", "new_string": "l4"}]});
    let patch =
        json!({"patch": "*** Begin Patch\n*** Update File: f\n@@\n-l3\n+l4\n*** End Patch"});
    let append = json!({"path": "f", "content": "l4\n", "append": true});
    for (tool, arguments) in [
        ("edit_file", edit),
        ("multi_edit", multi),
        ("apply_patch", patch),
        ("write_file", append),
    ] {
        let hand = read().await;
        // The same number of bytes, in place.
        hand.put("f", "L1\nl2\nl3\n");
        hand.ok(tool, arguments.clone()).await;
        assert!(
            hand.text("f").contains("L1") && hand.text("f").contains("l4"),
            "{tool}"
        );
        is_conflict(&hand, "write_file", json!({"path": "f", "content": "x"})).await;
        // Nobody came between: what the tool did is known.
        let hand = read().await;
        hand.ok(tool, arguments).await;
        hand.ok("edit_lines", delete_second()).await;
        hand.ok("write_file", json!({"path": "f", "content": "x"}))
            .await;
        hand.ok(
            "edit_lines",
            json!({"path": "f", "operation": "insert", "start_line": 1, "new_content": "y"}),
        )
        .await;
        assert_eq!(hand.text("f"), "y\nx", "{tool}");
    }
}

#[tokio::test]
async fn what_was_never_read_or_was_put_there_by_the_model_is_no_conflict() {
    let hand = Hand::new().await;
    hand.put("f", LINES);
    hand.put("g", "g\n");
    hand.put("f", "other\nlines\n");
    hand.ok("edit_lines", delete_second()).await;
    hand.ok("read_file", json!({"path": "f"})).await;
    hand.ok(
        "copy_file",
        json!({"source": "g", "destination": "f", "overwrite": true}),
    )
    .await;
    hand.ok("write_file", json!({"path": "f", "content": "1"}))
        .await;
    hand.ok("delete_file", json!({"path": "f"})).await;
    hand.put("f", "somebody's");
    hand.ok("write_file", json!({"path": "f", "content": "2"}))
        .await;
    // By its new name it is as well known as it was.
    hand.ok("move_file", json!({"source": "f", "destination": "h"}))
        .await;
    hand.put("h", "somebody's");
    let text = hand
        .fails(
            "write_file",
            json!({"path": "h", "content": "3"}),
            CallStatus::Conflict,
        )
        .await;
    assert!(
        text.contains("since you read it") && hand.text("h") == "somebody's",
        "{text}"
    );
}

#[tokio::test]
async fn what_takes_a_file_away_or_replaces_it_is_a_conflict_too() {
    let delete = json!({"path": "f"});
    let copy = json!({"source": "g", "destination": "f", "overwrite": true});
    let patch = json!({"patch": "*** Begin Patch\n*** Delete File: f\n*** End Patch"});
    let all = [
        ("delete_file", delete),
        ("copy_file", copy.clone()),
        ("move_file", copy),
        ("apply_patch", patch),
    ];
    for (tool, arguments) in all {
        let hand = read().await;
        hand.put("g", "g\n");
        hand.put("f", "L1\nl2\nl3\n");
        is_conflict(&hand, tool, arguments.clone()).await;
        assert_eq!(
            (hand.text("f").as_str(), hand.text("g").as_str()),
            ("L1\nl2\nl3\n", "g\n"),
            "{tool}"
        );
        hand.ok("read_file", json!({"path": "f"})).await;
        hand.ok(tool, arguments).await;
        assert!(!hand.has("f") || hand.text("f") == "g\n", "{tool}");
    }
    // A text that is deleted line by line is named, so that it is there or is not.
    let hand = read().await;
    hand.put("f", "other\n");
    hand.ok(
        "apply_patch",
        json!({"patch": "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-other\n"}),
    )
    .await;
    assert!(!hand.has("f"));
}

#[tokio::test]
async fn a_folder_is_not_deleted_over_a_change_in_it() {
    let hand = Hand::new().await;
    hand.put("d/e/f", LINES);
    hand.put("d/g", "never read\n");
    hand.ok("read_file", json!({"path": "d/e/f"})).await;
    hand.put("d/e/f", "somebody's\n");
    hand.put("d/g", "changed\n");
    let whole = json!({"path": "d", "recursive": true});
    let text = hand
        .fails("delete_file", whole.clone(), CallStatus::Conflict)
        .await;
    assert!(
        text.starts_with("d/e/f: it has changed since you read it") && hand.has("d/g"),
        "{text}"
    );
    hand.ok("read_file", json!({"path": "d/e/f"})).await;
    hand.ok("delete_file", whole).await;
    // What was taken away by somebody is nothing to lose.
    hand.put("d/f", LINES);
    hand.ok("read_file", json!({"path": "d/f"})).await;
    std::fs::remove_file(hand.guest.path("d/f")).expect("ours");
    hand.put("d/h", "new\n");
    hand.ok("delete_file", json!({"path": "d", "recursive": true}))
        .await;
    assert!(!hand.has("d"));
}

#[tokio::test]
async fn only_another_content_is_another_file() {
    let hand = read().await;
    let path = hand.guest.path("f");
    let modified = |path: &std::path::Path| {
        path.metadata()
            .and_then(|found| found.modified())
            .expect("is there")
    };
    let before = modified(&path);
    let open = || File::options().write(true).open(&path).expect("ours");
    // It is touched, gets another name, and is put there anew with the same bytes.
    open()
        .set_modified(before + Duration::from_secs(60))
        .expect("ours");
    std::fs::hard_link(&path, hand.guest.path("link")).expect("ours");
    hand.ok("edit_lines", delete_second()).await;
    let text = hand.text("f");
    std::fs::remove_file(&path).expect("ours");
    hand.put("f", text);
    hand.ok("write_file", json!({"path": "f", "content": LINES}))
        .await;
    // As long as before, and as old.
    let before = modified(&path);
    hand.put("f", "L1\nl2\nl3\n");
    open().set_modified(before).expect("ours");
    is_conflict(&hand, "edit_lines", delete_second()).await;
}

#[tokio::test]
async fn what_was_seen_is_known_by_every_name_of_the_file() {
    let hand = Hand::new().await;
    hand.put("real/f", LINES);
    for (link, target) in [("folder", "real"), ("again", "folder"), ("file", "again/f")] {
        std::os::unix::fs::symlink(target, hand.guest.path(link)).expect("ours");
    }
    let names = [
        "real/f",
        "/workspace/real/./f",
        "folder/f",
        "again/../real/f",
        "again/f",
        "file",
    ];
    for read in names {
        for write in names {
            hand.put("real/f", LINES);
            hand.ok("read_file", json!({"path": read})).await;
            hand.put("real/f", "somebody's\n");
            let text = hand
                .fails(
                    "write_file",
                    json!({"path": write, "content": "x"}),
                    CallStatus::Conflict,
                )
                .await;
            assert!(
                text.starts_with(&format!("{write}: it has changed"))
                    && hand.text("real/f") == "somebody's\n",
                "{read} {write}: {text}"
            );
        }
    }
    // Each name leads elsewhere than it says, and all are asked for before the first is changed.
    hand.put("real/f", LINES);
    hand.put("real/g", "g\n");
    hand.ok("read_file", json!({"path": "real/f"})).await;
    let edit = |path: &str, old: &str| json!({"path": path, "old_string": old, "new_string": "x"});
    hand.ok(
        "multi_edit",
        json!({"edits": [edit("again/f", "l1"), edit("folder/g", "g")]}),
    )
    .await;
    hand.put("real/g", "somebody's\n");
    let text = hand
        .fails(
            "multi_edit",
            json!({"edits": [edit("file", "l2"), edit("again/g", "g9")]}),
            CallStatus::Conflict,
        )
        .await;
    assert!(
        text.contains("old_string was not found") && hand.text("real/f") == "x\nl2\nl3\n",
        "{text}"
    );
}

#[tokio::test]
async fn an_edit_that_does_not_fit_a_changed_file_is_a_conflict_and_any_other_is_none() {
    let edit = json!({"path": "f", "old_string": "l9", "new_string": "x"});
    let patch = json!({"patch": "*** Begin Patch\n*** Update File: f\n@@\n-l9\n+x\n*** End Patch"});
    let multi = json!({"edits": [{"path": "f", "old_string": "l9", "new_string": "x"}]});
    for (tool, arguments) in [
        ("edit_file", edit),
        ("apply_patch", patch),
        ("multi_edit", multi),
    ] {
        let hand = read().await;
        hand.fails(tool, arguments.clone(), CallStatus::Failed)
            .await;
        hand.put("f", "other\n");
        hand.fails(tool, arguments, CallStatus::Conflict).await;
    }
}

#[tokio::test]
async fn whoever_replaces_what_they_saw_a_part_of_is_told_so() {
    let hand = read().await;
    let write = json!({"path": "f", "content": LINES});
    let note = "[you had been shown only a part of f; all of it was replaced]";
    assert!(
        !hand
            .ok("write_file", write.clone())
            .await
            .contains("only a part")
    );
    hand.put("f", "one\ntwo\nthree\n");
    hand.ok("read_file", json!({"path": "f", "limit": 2})).await;
    assert!(hand.ok("write_file", write.clone()).await.contains(note));
    assert!(
        !hand
            .ok("write_file", write.clone())
            .await
            .contains("only a part"),
        "by now it is its own"
    );
    hand.put("f", "one\ntwo\nthree\n");
    hand.ok("read_file", json!({"path": "f", "limit": 2})).await;
    hand.ok("read_file", json!({"path": "f", "offset": 3}))
        .await;
    assert!(
        !hand.ok("write_file", write).await.contains("only a part"),
        "page by page it saw all of it"
    );
}

/// Issue 6: a session that continues, in another process and another sandbox, knows what it knew.
#[tokio::test]
async fn a_session_that_goes_on_in_another_box_knows_what_was_read() {
    let hand = read().await;
    hand.put("g", LINES);
    hand.ok("write_file", json!({"path": "h", "content": LINES}))
        .await;
    hand.ok("move_file", json!({"source": "h", "destination": "d/h"}))
        .await;
    let hand = hand.resumed().await;
    for name in ["f", "g", "d/h"] {
        hand.put(name, "somebody's\n");
    }
    is_conflict(&hand, "edit_lines", delete_second()).await;
    is_conflict(&hand, "write_file", json!({"path": "f", "content": "x"})).await;
    hand.fails(
        "write_file",
        json!({"path": "d/h", "content": "x"}),
        CallStatus::Conflict,
    )
    .await;
    hand.ok("write_file", json!({"path": "g", "content": "x"}))
        .await;
    hand.ok("read_file", json!({"path": "f"})).await;
    hand.ok("write_file", json!({"path": "f", "content": "mine"}))
        .await;
    // What nobody changed stays known as it is.
    let hand = hand.resumed().await;
    hand.ok(
        "edit_lines",
        json!({"path": "f", "operation": "insert", "start_line": 1, "new_content": "y"}),
    )
    .await;
    assert_eq!(hand.text("f"), "y\nmine");
}

#[tokio::test]
async fn what_is_remembered_stands_with_the_result_that_told_it() {
    let hand = read().await;
    hand.ok("edit_lines", delete_second()).await;
    hand.ok("delete_file", json!({"path": "f"})).await;
    hand.ok("bash", json!({"command": "true"})).await;
    let told: Vec<String> = hand
        .kinds()
        .iter()
        .filter_map(|kind| {
            if let Kind::CallFinished { seen, .. } = kind {
                Some(serde_json::to_string(seen).expect("JSON"))
            } else {
                None
            }
        })
        .collect();
    let expected = [
        r#"[{"what":"read","path":"f","mark":"sha256:8f2b6a9cfba2207f332cf001304e81648aef2828d041ea880ae278c9c577a3b3","first_line":1,"n_lines":3,"more":false}]"#,
        r#"[{"what":"changed","path":"f","mark":"sha256:379775b7184dd8c35421643b302b0f87402492268598bda8ac70c6636c6701ae"}]"#,
        r#"[{"what":"gone","path":"f"}]"#,
        "[]",
    ];
    assert_eq!(told, expected);
}

/// What the model knows of the project before its task is read too.
#[tokio::test]
async fn instructions_that_the_model_was_told_are_known() {
    let hand = Hand::new().await;
    hand.put("AGENTS.md", "Be brief.\n");
    let told = podbay::agent::gather_context(
        &hand.pipeline,
        &podbay::agent::Options::default(),
        None,
        &CancellationToken::new(),
    )
    .await;
    hand.pipeline.recall_seen(
        &told
            .expect("answers")
            .expect("there is something to tell")
            .seen,
    );
    hand.put("AGENTS.md", "Be long.\n");
    let text = hand
        .fails(
            "write_file",
            json!({"path": "AGENTS.md", "content": "x"}),
            CallStatus::Conflict,
        )
        .await;
    assert!(
        text.starts_with("AGENTS.md: it has changed since you read it"),
        "{text}"
    );
}

#[tokio::test]
async fn a_file_with_several_names_is_known_by_each_of_them() {
    let conflict = |text: &str| text.starts_with("g: it has changed since you read it");
    for tool in ["write_file", "edit_lines", "apply_patch"] {
        let arguments = match tool {
            "write_file" => json!({"path": "g", "content": "all new\n"}),
            "edit_lines" => {
                json!({"path": "g", "operation": "delete", "start_line": 2, "end_line": 2})
            }
            _ => json!({"patch": "--- a/g\n+++ b/g\n@@ -1,0 +2 @@\n+new\n"}),
        };
        let hand = Hand::new().await;
        hand.put("f", LINES);
        hand.ok("bash", json!({"command": "ln f g"})).await;
        hand.ok("read_file", json!({"path": "f"})).await;
        // Through the other name it is as well known, and a change of our own by one of them is
        // none of somebody else.
        hand.ok("write_file", json!({"path": "g", "content": "1\n2\n3\n"}))
            .await;
        hand.ok(
            "edit_lines",
            json!({"path": "f", "operation": "insert", "start_line": 1, "new_content": "0"}),
        )
        .await;
        hand.ok(
            "edit_lines",
            json!({"path": "g", "operation": "delete", "start_line": 1, "end_line": 1}),
        )
        .await;
        hand.put("f", "PERSON\n2\n3\n");
        let text = hand
            .fails(tool, arguments.clone(), CallStatus::Conflict)
            .await;
        assert!(conflict(&text), "{tool}: {text}");
        assert_eq!(
            (hand.text("f").as_str(), hand.text("g").as_str()),
            ("PERSON\n2\n3\n", "PERSON\n2\n3\n"),
            "{tool}"
        );
        hand.ok("read_file", json!({"path": "f"})).await;
        hand.ok(tool, arguments).await;
        assert_eq!(hand.text("f"), hand.text("g"), "{tool}");
    }
}
