//! What a run costs, and where it ends because of that.

use podbay::agent;
use podbay::agent::Failure;
use podbay::app;
use podbay::event::Kind;
use podbay::event::LimitKind;
use podbay::event::RunStatus;
use podbay::llm;
use podbay::llm::Price;
use serde_json::Value;
use serde_json::json;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::TestEnv;
use crate::support::desk::Wishes;
use crate::support::test_env::run;

const DOLLAR: Price = Price {
    prompt: Some(1e6),
    cached: Some(1e6),
    completion: Some(1e6),
};

fn wishes(max_cost: f64, price: Price) -> Wishes {
    Wishes {
        agent: agent::Options {
            max_cost,
            ..agent::Options::default()
        },
        llm: llm::Options {
            price,
            retries: 0,
            ..llm::Options::default()
        },
        ..Wishes::default()
    }
}

/// Answers as servers do that say what it cost.
fn says(model: ScriptedModel, delta: &Value, cost: f64) -> ScriptedModel {
    let end = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "cost": cost}});
    model.raw_sse(&format!("data: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\n"))
}

fn calls(command: &str) -> Value {
    let function = json!({"name": "bash", "arguments": json!({ "command": command }).to_string()});
    json!({"tool_calls": [{"index": 0, "id": command, "function": function}]})
}

#[tokio::test]
async fn what_the_server_says_of_the_cost_counts_and_ends_the_run() {
    let model = says(
        says(
            says(ScriptedModel::new(), &calls("echo 1"), 0.25),
            &calls("echo 2"),
            0.25,
        ),
        &json!({"content": "Done."}),
        0.01,
    );
    let desk = Desk::new(model.start().await, wishes(0.5, DOLLAR)).await;
    let outcome = desk.work("spend").await;
    assert_eq!(
        (outcome.status, outcome.limit, outcome.response.as_str()),
        (RunStatus::Limit, Some(LimitKind::Cost), "Done.")
    );
    assert!(
        (outcome.usage.cost_usd.expect("known") - 0.51).abs() < 1e-9,
        "{:?}",
        outcome.usage
    );
    assert_eq!(
        desk.model.requests()[2]["tool_choice"],
        "none",
        "the last word is without tools"
    );

    let model = says(
        says(ScriptedModel::new(), &calls("echo 1"), 0.45),
        &json!({"content": "Done."}),
        0.01,
    );
    let desk = Desk::new(model.start().await, wishes(0.5, Price::default())).await;
    assert_eq!(desk.work("spend").await.status, RunStatus::Completed);
    assert!(desk.kinds().iter().any(|kind| matches!(
        kind,
        Kind::LimitReached {
            limit: LimitKind::Cost,
            at_end: false
        }
    )));
    assert!(
        desk.told(1).contains("about $0.0500 are left"),
        "{}",
        desk.told(1)
    );
}

#[tokio::test]
async fn a_price_makes_the_cost_of_what_the_server_counts() {
    let price = Price {
        prompt: Some(2.0),
        cached: Some(1.0),
        completion: Some(10.0),
    };
    let desk = Desk::new(
        ScriptedModel::new().says("Done.").start().await,
        wishes(0.0, price),
    )
    .await;
    let usage = desk.work("spend").await.usage;
    let expected = ((usage.prompt - usage.cached) as f64 * 2.0
        + usage.cached as f64
        + usage.completion as f64 * 10.0)
        / 1e6;
    assert!(
        usage.prompt > 0 && (usage.cost_usd.expect("a price is named") - expected).abs() < 1e-12,
        "{usage:?}"
    );
    let desk = Desk::new(
        ScriptedModel::new().says("Done.").start().await,
        wishes(0.0, Price::default()),
    )
    .await;
    assert_eq!(desk.work("spend").await.usage.cost_usd, None);
}

#[tokio::test]
async fn an_answer_may_cost_no_more_than_the_task_has_left() {
    // A thousandth of a dollar for each token that is written.
    let price = Price {
        prompt: Some(1.0),
        cached: None,
        completion: Some(1000.0),
    };
    let cut = json!({"choices": [{"index": 0, "delta": {"content": "Half an ans"}, "finish_reason": "length"}]});
    let sums = json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 1000}});
    let model = ScriptedModel::new()
        .raw_sse(&format!("data: {cut}\n\ndata: {sums}\n\ndata: [DONE]\n\n"))
        .says("So far.")
        .start()
        .await;
    let desk = Desk::new(model, wishes(1.0, price)).await;
    let outcome = desk.work("spend").await;
    assert_eq!(
        (outcome.status, outcome.limit, outcome.response.as_str()),
        (RunStatus::Limit, Some(LimitKind::Cost), "So far.")
    );
    let most: Vec<u64> = desk
        .model
        .requests()
        .iter()
        .map(|request| request["max_tokens"].as_u64().expect("a bound"))
        .collect();
    assert!((900..1000).contains(&most[0]) && most[1] == 256, "{most:?}");
    // Without a price nobody knows what is left.
    let desk = Desk::new(
        ScriptedModel::new().says("Done.").start().await,
        wishes(1.0, Price::default()),
    )
    .await;
    desk.work("spend").await;
    assert_eq!(desk.model.requests()[0]["max_tokens"], 8192);
}

#[tokio::test]
async fn a_cost_that_nobody_knows_ends_a_run_that_is_bounded_by_it() {
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "touch planted"}))
        .start()
        .await;
    let desk = Desk::new(model, wishes(0.5, Price::default())).await;
    let outcome = desk.work("spend").await;
    assert_eq!((outcome.status, outcome.tool_calls), (RunStatus::Failed, 0));
    assert!(
        desk.reached().is_empty() && !desk.guest.path("planted").exists(),
        "nothing was executed"
    );
    let error = app::Error::Agent(outcome.failure.expect("a reason"));
    assert!(matches!(error, app::Error::Agent(Failure::NoPrice)));
    assert_eq!(error.exit_code(), 2);
    assert!(
        error
            .report()
            .hints
            .iter()
            .any(|hint| hint.contains("price = {")),
        "{:?}",
        error.report()
    );
}

#[test]
fn an_amount_that_cannot_be_spent_and_a_provider_that_nobody_knows_are_refused() {
    let env = TestEnv::new();
    for amount in ["0", "-1", "nan", "inf"] {
        run(&mut env.here(&["run", "--max-cost", amount, "look"]))
            .expect(2)
            .says(&["no amount that can be spent", "hint: "]);
    }
    run(&mut env.here(&["run", "--provider", "nosuch", "look"]))
        .expect(2)
        .says(&["there is no provider `nosuch`", "hint: "]);
    run(&mut env.here(&[
        "run",
        "--provider",
        "x",
        "--endpoint",
        "http://127.0.0.1:1",
        "look",
    ]))
    .expect(2);
}
