//! Files that somebody else changes after the model has read them.

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
    assert!(text.starts_with("f: it has changed since you read it") && text.contains("read it again"), "{tool}: {text}");
}

#[tokio::test]
async fn what_goes_by_lines_or_replaces_all_is_a_conflict_until_the_file_is_read_again() {
    let hand = read().await;
    hand.ok("bash", json!({"command": "sed -i '1i PERSON' f"})).await;
    let changed = format!("PERSON\n{LINES}");
    is_conflict(&hand, "edit_lines", delete_second()).await;
    is_conflict(&hand, "write_file", json!({"path": "f", "content": "all new\n"})).await;
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
    let patch = json!({"patch": "*** Begin Patch\n*** Update File: f\n@@\n-l3\n+l4\n*** End Patch"});
    let append = json!({"path": "f", "content": "l4\n", "append": true});
    for (tool, arguments) in [("edit_file", edit), ("multi_edit", multi), ("apply_patch", patch), ("write_file", append)] {
        let hand = read().await;
        // The same number of bytes, in place.
        hand.put("f", "L1\nl2\nl3\n");
        hand.ok(tool, arguments.clone()).await;
        assert!(hand.text("f").contains("L1") && hand.text("f").contains("l4"), "{tool}");
        is_conflict(&hand, "write_file", json!({"path": "f", "content": "x"})).await;
        // Nobody came between: what the tool did is known.
        let hand = read().await;
        hand.ok(tool, arguments).await;
        hand.ok("edit_lines", delete_second()).await;
        hand.ok("write_file", json!({"path": "f", "content": "x"})).await;
        hand.ok("edit_lines", json!({"path": "f", "operation": "insert", "start_line": 1, "new_content": "y"})).await;
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
    hand.ok("copy_file", json!({"source": "g", "destination": "f", "overwrite": true})).await;
    hand.ok("write_file", json!({"path": "f", "content": "1"})).await;
    hand.ok("delete_file", json!({"path": "f"})).await;
    hand.put("f", "somebody's");
    hand.ok("write_file", json!({"path": "f", "content": "2"})).await;
    // By its new name it is as well known as it was.
    hand.ok("move_file", json!({"source": "f", "destination": "h"})).await;
    hand.put("h", "somebody's");
    let text = hand.fails("write_file", json!({"path": "h", "content": "3"}), CallStatus::Conflict).await;
    assert!(text.contains("since you read it") && hand.text("h") == "somebody's", "{text}");
}
