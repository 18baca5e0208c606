//! A task's own time that ends while the model server is waited for.

use std::time::Duration;
use std::time::Instant;

use podbay::agent;
use podbay::event::Kind;
use podbay::event::LimitKind;
use podbay::event::RunStatus;
use podbay::event::Seconds;
use podbay::llm;
use serde_json::json;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

async fn desk(seconds: u64, retries: u32, model: ScriptedModel) -> Desk {
    let agent = agent::Options {
        timeout: Seconds::new(seconds),
        ..agent::Options::default()
    };
    let llm = llm::Options {
        retries,
        ..llm::Options::default()
    };
    Desk::new(
        model.start().await,
        Wishes {
            agent,
            llm,
            ..Wishes::default()
        },
    )
    .await
}

fn warnings(desk: &Desk) -> Vec<String> {
    let text = |kind| {
        if let Kind::Warning { message } = kind {
            Some(message)
        } else {
            None
        }
    };
    desk.kinds().into_iter().filter_map(text).collect()
}

#[tokio::test]
async fn time_that_ends_before_the_next_try_is_a_limit_that_names_what_was_waited_for() {
    let busy = |model: ScriptedModel| {
        model.status_with(
            429,
            "Retry-After: 50\r\n",
            r#"{"error": {"message": "too many of you"}}"#,
        )
    };
    for (model, n_calls) in [
        (busy(ScriptedModel::new()), 0),
        (
            busy(ScriptedModel::new().calls("bash", json!({"command": "echo x > kept"}))),
            1,
        ),
    ] {
        let desk = desk(2, 3, model).await;
        let begun = Instant::now();
        let outcome = desk.work("look").await;
        assert_eq!(
            (outcome.status, outcome.limit),
            (RunStatus::Limit, Some(LimitKind::Time)),
            "{outcome:?}"
        );
        assert!(
            outcome.failure.is_none() && outcome.tool_calls == n_calls && outcome.turns == n_calls,
            "{outcome:?}"
        );
        assert!(
            begun.elapsed() < Duration::from_secs(50),
            "the server's pause is not waited out"
        );
        assert!(desk.kinds().contains(&Kind::LimitReached {
            limit: LimitKind::Time,
            at_end: true
        }));
        let said = warnings(&desk);
        assert!(said.iter().any(
            |message| message.contains("while waiting for the model server")
                && message.contains("too many of you")
        ));
        assert!(
            said.iter()
                .any(|message| message.contains("a retry in 50.0 s would be too late")),
            "{said:?}"
        );
        assert!(
            !said.iter().any(|message| message.contains("(attempt")),
            "nothing is tried again: {said:?}"
        );
        assert_eq!(
            desk.model.requests().len(),
            n_calls as usize + 1,
            "nobody is asked for a last word before it is time"
        );
    }
}

#[tokio::test]
async fn time_that_ends_while_nobody_listens_is_a_limit_and_no_longer_wait_is_announced() {
    let mut desk = desk(2, 3, ScriptedModel::new()).await;
    // It goes with its port.
    drop(std::mem::replace(
        &mut desk.model,
        ScriptedModel::new().start().await,
    ));
    let outcome = desk.work("look").await;
    assert_eq!(
        (outcome.status, outcome.limit),
        (RunStatus::Limit, Some(LimitKind::Time)),
        "{outcome:?}"
    );
    let said = warnings(&desk);
    assert!(
        said.iter()
            .any(|message| message.contains("trying again for up to 2 s")),
        "{said:?}"
    );
    assert!(
        said.iter()
            .any(|message| message.contains("while waiting for the model server: cannot reach")),
        "{said:?}"
    );
}

#[tokio::test]
async fn a_server_that_fails_before_the_time_ends_is_a_failure_as_before() {
    for model in [
        ScriptedModel::new().status(400, "{\"error\": \"broken\"}"),
        ScriptedModel::new().status(503, "{\"error\": \"broken\"}"),
    ] {
        let desk = desk(60, 0, model).await;
        let outcome = desk.work("look").await;
        assert!(
            outcome.status == RunStatus::Failed
                && outcome.limit.is_none()
                && outcome.failure.is_some(),
            "{outcome:?}"
        );
    }
}
