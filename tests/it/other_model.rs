//! Another model in a chat (issue 33): one that nobody has is refused while the old one still
//! answers.

use podbay::app;
use podbay::config::Config;
use podbay::session::State;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::ScriptedModel;
use crate::support::scripted_model::Running;

async fn check(model: &Running, name: &str) -> Result<(), app::Error> {
    let temp = tempfile::tempdir().expect("a folder");
    let state = State::open(temp.path()).expect("opens");
    let mut config = Config::default();
    config.llm.endpoint = Some(model.endpoint());
    app::check_model(&config, &state, None, name, &CancellationToken::new()).await
}

#[tokio::test]
async fn a_model_that_the_endpoint_does_not_list_is_refused_with_those_it_lists() {
    let model = ScriptedModel::new().start().await;
    check(&model, "scripted").await.expect("it is listed");
    let refused = check(&model, "nope").await.expect_err("it is not");
    assert_eq!(refused.exit_code(), app::exit_code::USAGE);
    let words = format!("{refused}; {}", refused.hints().join("; "));
    assert!(
        words.contains("lists no model `nope`") && words.contains("it lists scripted;"),
        "{words}"
    );
}

#[tokio::test]
async fn an_endpoint_without_a_list_is_believed() {
    let cases = [
        (404, json!({"error": {"message": "not found"}})),
        (200, json!({"object": "list", "data": []})),
    ];
    for (code, body) in cases {
        let model = ScriptedModel::new().page("/v1/models", code, body, 1);
        check(&model.start().await, "anything")
            .await
            .expect("there is no list");
    }
    let model = ScriptedModel::new().key("secret").start().await;
    check(&model, "scripted")
        .await
        .expect_err("a key that is refused is no missing list");
}
