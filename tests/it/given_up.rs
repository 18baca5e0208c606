//! Answers that end with a reason which is none: the server gave up in the middle.

use podbay::agent::Failure;
use podbay::app::Error;
use podbay::event::Kind;
use podbay::event::RunStatus;
use podbay::llm;
use serde_json::Value;
use serde_json::json;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

async fn desk(retries: u32, model: ScriptedModel) -> Desk {
    let llm = llm::Options {
        retries,
        ..Wishes::default().llm
    };
    Desk::new(
        model.start().await,
        Wishes {
            llm,
            ..Wishes::default()
        },
    )
    .await
}

fn chunk(choice: &Value) -> String {
    format!("data: {}\n\n", json!({ "choices": [choice] }))
}

fn warnings(desk: &Desk) -> String {
    let text = |kind| match kind {
        Kind::Warning { message } => Some(message),
        _ => None,
    };
    desk.kinds()
        .into_iter()
        .filter_map(text)
        .collect::<Vec<_>>()
        .join("\n")
}

#[tokio::test]
async fn an_answer_that_the_server_gave_up_is_asked_for_again_and_nothing_of_it_is_carried_out() {
    let call = json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "bash", "arguments": "{\"command\": \"touch planted\"}"}}]});
    for reason in ["error", "abort", "insufficient_system_resource"] {
        for delta in [json!({"content": "Half an ans"}), call.clone(), json!({})] {
            let stream = chunk(&json!({ "delta": delta }))
                + &chunk(&json!({"delta": {}, "finish_reason": reason}))
                + "data: [DONE]\n\n";
            let desk = desk(
                1,
                ScriptedModel::new()
                    .raw_sse(&stream)
                    .says("A whole answer."),
            )
            .await;
            let outcome = desk.work("look").await;
            assert_eq!(
                (
                    outcome.status,
                    outcome.tool_calls,
                    outcome.response.as_str()
                ),
                (RunStatus::Completed, 0, "A whole answer."),
                "{delta}"
            );
            assert!(!desk.guest.path("planted").exists(), "{reason} {delta}");
            assert!(
                warnings(&desk).contains(&format!("its answer ended with the reason `{reason}`")),
                "{}",
                warnings(&desk)
            );
        }
    }
}

#[tokio::test]
async fn an_error_within_a_choice_is_the_error_that_it_is() {
    let choice = |words: &str| json!({"index": 0, words: {"content": "Some words"}, "finish_reason": "error", "error": {"code": 502, "message": "upstream is down"}});
    let stream = chunk(&json!({"delta": {"content": "Some words"}}))
        + &chunk(&choice("delta"))
        + "data: [DONE]\n\n";
    let whole = json!({ "choices": [choice("message")] }).to_string();
    for model in [
        ScriptedModel::new().raw_sse(&stream),
        ScriptedModel::new().status(200, whole.as_str()),
    ] {
        let desk = desk(1, model.says("A whole answer.")).await;
        let outcome = desk.work("look").await;
        assert_eq!(
            (outcome.status, outcome.response.as_str()),
            (RunStatus::Completed, "A whole answer."),
            "{outcome:?}"
        );
        assert!(
            warnings(&desk).contains("upstream is down"),
            "{}",
            warnings(&desk)
        );
    }
}

#[tokio::test]
async fn a_server_that_gives_up_each_time_ends_the_run_as_one_that_cannot_be_had() {
    let stream = chunk(&json!({"delta": {"content": "Half an ans"}}))
        + &chunk(&json!({"delta": {}, "finish_reason": "error"}));
    let desk = desk(1, ScriptedModel::new().raw_sse(&stream).raw_sse(&stream)).await;
    let outcome = desk.work("look").await;
    let failure = outcome.failure.expect("a failure");
    assert!(
        matches!(&failure, Failure::Model(error) if error.root().to_string().contains("`error`")),
        "{failure:?}"
    );
    assert_eq!(
        (outcome.status, Error::Agent(failure).exit_code()),
        (RunStatus::Failed, 6)
    );
}
