//! Commands that are left running: started, looked at, ended.

use super::*;
use crate::support::guest::is_running;
use crate::support::guest::marker;
use crate::support::guest::vanishes;

/// Returns the number that a result calls a process by.
fn id(text: &str) -> i32 {
    let number = text
        .split("as process ")
        .nth(1)
        .expect(text)
        .split(';')
        .next()
        .expect("a word");
    number.trim_end_matches(']').parse().expect(text)
}

#[tokio::test]
async fn a_process_is_started_read_listed_and_ended() {
    let hand = Hand::new().await;
    let marker = marker();
    assert_eq!(
        hand.ok("list_processes", none()).await,
        "no command was started in the background"
    );
    let command = format!("for n in 1 2 3; do echo line $n; done; sleep {marker}");
    let id = id(&hand
        .ok("start_background_process", json!({ "command": command }))
        .await);
    let listed = hand.ok("list_processes", none()).await;
    assert!(
        listed.starts_with(&format!(
            "{id} runs for 0 s, printed 21 bytes: for n in 1 2 3"
        )),
        "{listed}"
    );
    let read = hand
        .ok(
            "get_process_output",
            json!({"process_id": "last", "tail_lines": 2}),
        )
        .await;
    assert!(
        read.starts_with("line 2\nline 3\n[") && !read.contains("line 1\n"),
        "{read}"
    );
    assert!(
        hand.ok("BashOutput", json!({"bash_id": id}))
            .await
            .starts_with("line 1\nline 2\nline 3\n")
    );
    let stopped = hand
        .ok("stop_process", json!({"process_id": id.to_string()}))
        .await;
    assert!(stopped.contains("signal 15"), "{stopped}");
    assert!(vanishes(&marker).await);
    // What it printed can be read after its end, and ending it again is no mistake.
    assert!(
        hand.ok("get_process_output", json!({"process_id": id}))
            .await
            .contains("line 3")
    );
    assert!(
        hand.ok("stop_process", json!({"process_id": id}))
            .await
            .contains("signal 15")
    );
    assert!(
        hand.ok("list_processes", none())
            .await
            .contains("signal 15")
    );
}

#[tokio::test]
async fn of_what_prints_without_end_the_oldest_part_is_dropped_and_that_is_said() {
    let hand = Hand::new().await;
    let started = hand
        .ok(
            "start_background_process",
            json!({"command": "head -c 150000000 /dev/zero; echo the end; sleep 60"}),
        )
        .await;
    let mut text = String::new();
    for _ in 0..100 {
        text = hand.ok("bash", json!({"command": "true"})).await;
        if text.contains("has printed more than") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(
        text.contains(&format!(
            "background process {} has printed more",
            id(&started)
        )) && text.contains("oldest part"),
        "{text}"
    );
    let mut read = String::new();
    for _ in 0..100 {
        read = hand
            .ok(
                "get_process_output",
                json!({"process_id": "last", "tail_lines": 1}),
            )
            .await;
        if read.contains("the end\n") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(
        read.contains("the end\n"),
        "{}",
        &read[read.len().saturating_sub(300)..]
    );
    let used = hand
        .ok(
            "bash",
            json!({"command": "du -cm podbay-background-*.log | tail -1"}),
        )
        .await;
    hand.ok("stop_process", json!({"process_id": "last"})).await;
    let n: u64 = used
        .split_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .expect(&used);
    assert!(n <= 96, "{used}");
}

/// Between two looks a command has time to print and to be over.
#[tokio::test]
async fn what_is_printed_just_before_the_end_is_dropped_as_well() {
    let hand = Hand::new().await;
    let command = "sleep 1; exec fallocate --length 150000000 /dev/stdout";
    let started = hand
        .ok("start_background_process", json!({ "command": command }))
        .await;
    let mut listed = String::new();
    for _ in 0..200 {
        listed = hand.ok("list_processes", none()).await;
        if listed.contains("ended") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(
        listed.contains("with exit code 0, printed 150000000 bytes"),
        "{listed}"
    );
    let text = hand
        .ok(
            "bash",
            json!({"command": "du -cm podbay-background-*.log | tail -1"}),
        )
        .await;
    assert!(
        text.contains(&format!(
            "background process {} has printed more",
            id(&started)
        )),
        "{text}"
    );
    let n: u64 = text
        .split_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .expect(&text);
    assert!(n <= 64, "{text}");
}

#[tokio::test]
async fn what_does_not_want_to_end_is_killed_with_all_it_has_started() {
    let hand = Hand::new().await;
    let marker = marker();
    let command = format!(
        "trap '' TERM; (trap '' TERM; setsid sleep {marker} &) ; while :; do sleep 0.05; done"
    );
    hand.ok("start_background_process", json!({ "command": command }))
        .await;
    assert!(
        hand.ok("stop_process", json!({"process_id": "last"}))
            .await
            .contains("signal 9")
    );
    assert!(vanishes(&marker).await);
}

#[tokio::test]
async fn a_process_that_has_ended_says_how_and_one_ends_with_its_session() {
    let hand = Hand::new().await;
    hand.ok(
        "start_background_process",
        json!({"command": "echo up; sleep 0.3; exit 3"}),
    )
    .await;
    let mut text = String::new();
    for _ in 0..100 {
        text = hand
            .ok("get_process_output", json!({"process_id": "last"}))
            .await;
        if !text.contains("runs for") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(
        text.starts_with("up\n[") && text.contains("with exit code 3"),
        "{text}"
    );
    let marker = marker();
    hand.put("sub/x", "");
    let command = format!("pwd; sleep {marker}");
    hand.ok(
        "start_background_process",
        json!({"command": command, "cwd": "sub"}),
    )
    .await;
    assert!(
        hand.ok("get_process_output", json!({"process_id": "last"}))
            .await
            .contains("/sub\n")
            && is_running(&marker)
    );
    drop(hand);
    assert!(vanishes(&marker).await);
}

#[tokio::test]
async fn a_process_that_is_not_there_is_named_with_those_that_are() {
    let hand = Hand::new().await;
    for tool in ["get_process_output", "stop_process"] {
        let text = hand
            .fails(tool, json!({"process_id": "last"}), CallStatus::Failed)
            .await;
        assert!(
            text.contains("no command was started in the background"),
            "{text}"
        );
        for (given, words) in [
            (json!("x"), "list_processes"),
            (json!(-4), "list_processes"),
            (json!("99999999999"), "list_processes"),
            (json!({}), "`process_id`"),
        ] {
            let text = hand
                .fails(tool, json!({ "process_id": given }), CallStatus::Invalid)
                .await;
            assert!(text.contains(words), "{tool} {given}: {text}");
        }
        assert!(
            hand.fails(tool, none(), CallStatus::Invalid)
                .await
                .contains("`process_id` is missing")
        );
    }
    let id = id(&hand
        .ok("start_background_process", json!({"command": "sleep 20"}))
        .await);
    let text = hand
        .fails("stop_process", json!({"process_id": 1}), CallStatus::Failed)
        .await;
    assert!(
        text.contains(&format!("there is no background process 1; there are {id}")),
        "{text}"
    );
    // Only what the session started can be named: no other process of the machine.
    let own = std::process::id();
    assert!(
        hand.fails(
            "stop_process",
            json!({ "process_id": own }),
            CallStatus::Failed
        )
        .await
        .contains("there is no background process")
    );
    for (arguments, words) in [
        (none(), "`command` is missing"),
        (json!({"command": " "}), "`command` is empty"),
        (json!({"command": "x", "background": false}), "not known"),
    ] {
        let text = hand
            .fails("start_background_process", arguments, CallStatus::Invalid)
            .await;
        assert!(text.contains(words), "{text}");
    }
}

#[tokio::test]
async fn the_end_of_much_output_is_read_and_what_was_put_in_place_of_its_file_is_not() {
    let hand = Hand::new().await;
    hand.put("secret", "not this\n");
    let command = "seq 1 200000; echo the end; rm -f podbay-background-*.log; ln -s secret podbay-background-1.log; sleep 20";
    hand.ok("start_background_process", json!({ "command": command }))
        .await;
    let mut read = String::new();
    for _ in 0..200 {
        read = hand
            .ok(
                "get_process_output",
                json!({"process_id": "last", "tail_lines": 100_000}),
            )
            .await;
        if read.contains("the end\n") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(
        read.contains("the end")
            && read.contains("tail_lines 100000 was taken as 1000")
            && !read.contains("not this"),
        "{read}"
    );
    assert!(read.len() < 20_000, "{}", read.len());
}

#[tokio::test]
async fn the_last_process_is_the_one_that_was_started_last_also_where_it_has_ended() {
    let hand = Hand::new().await;
    hand.call(
        "start_background_process",
        json!({"command": "echo broken; exit 3"}),
    )
    .await;
    let only = hand
        .ok("get_process_output", json!({"process_id": "last"}))
        .await;
    assert!(
        only.starts_with("broken\n[") && only.contains("with exit code 3"),
        "{only}"
    );
    hand.ok(
        "start_background_process",
        json!({"command": "echo serving; sleep 30"}),
    )
    .await;
    hand.call(
        "start_background_process",
        json!({"command": "echo in use; exit 98"}),
    )
    .await;
    let last = hand
        .ok("get_process_output", json!({"process_id": "last"}))
        .await;
    assert!(
        last.starts_with("in use\n[") && last.contains("with exit code 98"),
        "{last}"
    );
    // To end what has ended is no mistake, and takes no other one along.
    assert!(
        hand.ok("stop_process", json!({"process_id": "last"}))
            .await
            .contains("with exit code 98")
    );
    let all = hand.ok("list_processes", none()).await;
    assert!(
        all.lines().count() == 3 && all.contains("runs for") && all.contains("echo serving"),
        "{all}"
    );
}
