//! Answers that something cut: a limit of tokens, or a filter of the server.

use podbay::agent::Failure;
use podbay::app::Error;
use podbay::event::Kind;
use podbay::event::RunStatus;
use serde_json::Value;
use serde_json::json;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

async fn desk(model: ScriptedModel) -> Desk {
    let desk = Desk::new(model.start().await, Wishes::default()).await;
    std::fs::write(desk.guest.path("a"), "this is a\n").expect("written");
    desk
}

/// An answer that ends for this reason.
fn answer(deltas: &[Value], reason: &str) -> String {
    let chunk = |delta: &Value, reason: Value| format!("data: {}\n\n", json!({"choices": [{"delta": delta, "finish_reason": reason}]}));
    let all: String = deltas.iter().map(|delta| chunk(delta, Value::Null)).collect();
    all + &chunk(&json!({}), json!(reason)) + "data: [DONE]\n\n"
}

fn call(index: u32, name: &str, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": index, "id": format!("c{index}"), "function": {"name": name, "arguments": arguments}}]})
}

fn text(text: &str) -> Value {
    json!({ "content": text })
}

fn warnings(desk: &Desk, words: &str) -> usize {
    desk.kinds().iter().filter(|kind| matches!(kind, Kind::Warning { message } if message.contains(words))).count()
}

#[tokio::test]
async fn half_a_call_is_not_carried_out_and_the_model_hears_what_cut_it() {
    let half = r#"{"path": "a", "content": "half a fi"#;
    let told = "Your call of write_file was cut off by the limit of tokens for one answer, before its end, and was not carried out.";
    let whole = call(0, "read_file", r#"{"path": "a"}"#);
    let cut = answer(&[text("I write."), whole, call(1, "write_file", half)], "length");
    let desk = self::desk(ScriptedModel::new().raw_sse(&cut).says("Done.")).await;
    let outcome = desk.work("write").await;
    assert_eq!((outcome.status, outcome.tool_calls, outcome.n_succeeded), (RunStatus::Completed, 1, 1), "{outcome:?}");
    assert!(desk.results(1)[0].contains("this is a") && desk.told(1).contains(told), "{}", desk.told(1));
    assert_eq!(std::fs::read_to_string(desk.guest.path("a")).expect("there"), "this is a\n");
    assert_eq!(warnings(&desk, "the answer was cut"), 1);
    desk.model.assert_append_only();

    // Alone in its answer, as an object of ours, and so short that only its name came.
    let ours = text(r#"{"tool": "write_file", "arguments": {"path": "a", "content": "half"#);
    for (model, delta) in [
        (ScriptedModel::new(), call(0, "write_file", half)),
        (ScriptedModel::new().without_tools(), ours),
        (ScriptedModel::new(), call(0, "write_file", "")),
    ] {
        let cut = answer(&[delta], "length");
        let desk = self::desk(model.raw_sse(&cut).raw_sse(&cut).raw_sse(&cut)).await;
        let outcome = desk.work("write").await;
        assert!(matches!(&outcome.failure, Some(Failure::Misunderstood { count: 3, .. })), "{outcome:?}");
        assert!(desk.told(1).contains(told) && desk.told(2).contains(told), "{}", desk.told(1));
        assert!(desk.reached().is_empty(), "{:?}", desk.reached());
    }

    // What is no JSON although nothing cut it keeps its own words.
    let desk = self::desk(ScriptedModel::new().raw_sse(&answer(&[call(0, "write_file", half)], "tool_calls")).says("Done.")).await;
    desk.work("write").await;
    assert!(desk.results(1)[0].contains("not valid JSON"), "{:?}", desk.results(1));
}

#[tokio::test]
async fn a_thought_that_takes_all_the_tokens_is_told_so() {
    let cut = answer(&[json!({"reasoning_content": "Let me think about that."})], "length");
    let desk = self::desk(ScriptedModel::new().raw_sse(&cut).says("Done.")).await;
    assert_eq!(desk.work("think").await.response, "Done.");
    assert!(desk.told(1).contains("reached the limit of tokens before it said anything"), "{}", desk.told(1));
    assert_eq!(warnings(&desk, "the answer was cut"), 1);
}

#[tokio::test]
async fn an_answer_that_a_filter_of_the_server_cut_is_none_and_everybody_hears_so() {
    let plants = call(0, "bash", r#"{"command": "touch planted"}"#);
    let cut = answer(&[text("I beg"), plants.clone()], "content_filter");
    let desk = self::desk(ScriptedModel::new().raw_sse(&cut).says("Done.")).await;
    let outcome = desk.work("work").await;
    assert_eq!((outcome.status, outcome.response.as_str(), outcome.tool_calls), (RunStatus::Completed, "Done.", 0));
    assert!(desk.told(1).starts_with("Your last answer was cut by the content filter"), "{}", desk.told(1));
    assert!(desk.reached().is_empty() && warnings(&desk, "content filter cut the answer") == 1);
    desk.model.assert_append_only();

    // Work in between begins the count anew.
    let cut = answer(&[text("I beg")], "content_filter");
    let cuts = |model: ScriptedModel| model.raw_sse(&cut).raw_sse(&cut);
    let model = cuts(cuts(ScriptedModel::new()).calls("read_file", json!({"path": "a"})));
    let outcome = self::desk(model.says("Done.")).await.work("work").await;
    assert_eq!((outcome.status, outcome.response.as_str(), outcome.turns), (RunStatus::Completed, "Done.", 6));

    // An answer that never comes through is no finished task.
    for (model, deltas, shown) in [
        (ScriptedModel::new(), vec![text("I beg"), plants], "I beg"),
        (ScriptedModel::new(), vec![], ""),
        (ScriptedModel::new().without_tools(), vec![text("{\"answer\": \"I beg")], "I beg"),
    ] {
        let cut = answer(&deltas, "content_filter");
        let desk = self::desk(model.raw_sse(&cut).raw_sse(&cut).raw_sse(&cut)).await;
        let outcome = desk.work("work").await;
        assert_eq!((outcome.status, outcome.response.as_str(), outcome.turns), (RunStatus::Failed, shown, 3), "{outcome:?}");
        let error = Error::Agent(outcome.failure.expect("a reason"));
        assert_eq!(error.exit_code(), 1);
        let report = error.report();
        assert!(report.message.contains("content filter") && !report.hints.is_empty(), "{report:?}");
        assert_eq!(warnings(&desk, "content filter cut the answer"), 3);
    }
}
