//! What is very large: commands, results, files.

use super::*;

#[tokio::test]
async fn a_command_of_100_kilobytes_runs_and_one_of_200_is_refused_with_what_to_do() {
    let hand = Hand::new().await;
    let command = |n: usize| format!("printf %s {} | wc -c", "x".repeat(n));
    assert_eq!(
        hand.ok("bash", json!({"command": command(100_000)})).await,
        "100000\n"
    );
    for (tool, arguments) in [
        ("bash", json!({"command": command(200_000)})),
        (
            "bash",
            json!({"command": command(200_000), "background": true}),
        ),
        (
            "start_background_process",
            json!({"command": command(200_000)}),
        ),
    ] {
        let text = hand.fails(tool, arguments, CallStatus::Failed).await;
        assert!(text.contains("200018 bytes are more than the 122880 a command may have; write a script file and run that"), "{text}");
        assert!(
            text.len() < 1000,
            "it is not said back: {} bytes",
            text.len()
        );
    }
    assert_eq!(
        hand.ok("list_processes", none()).await,
        "no command was started in the background"
    );
}

#[tokio::test]
async fn of_a_result_of_a_gigabyte_both_ends_are_read_and_the_rest_is_counted() {
    let hand = Hand::new().await;
    for command in [
        "echo the beginning; yes | head -c 1000000000; echo the end",
        "echo the beginning; head -c 1000000000 /dev/zero; echo the end",
    ] {
        let text = hand.ok("bash", json!({ "command": command })).await;
        assert!(
            text.starts_with("the beginning\n") && text.contains("the end"),
            "{}",
            &text[..200.min(text.len())]
        );
        assert!(
            text.len() < 40_000,
            "a gigabyte became {} bytes",
            text.len()
        );
    }
    // What runs in the background prints to a file, of which the end is read.
    hand.ok(
        "start_background_process",
        json!({"command": "yes | head -c 100000000; echo the end; sleep 30"}),
    )
    .await;
    for _ in 0..500 {
        if hand
            .ok(
                "get_process_output",
                json!({"process_id": "last", "tail_lines": 2}),
            )
            .await
            .starts_with("y\nthe end\n[")
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!(
        "{}",
        hand.ok(
            "get_process_output",
            json!({"process_id": "last", "tail_lines": 2})
        )
        .await
    );
}
