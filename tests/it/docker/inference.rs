use std::path::PathBuf;
use std::time::Duration;

use podbay::engine;
use podbay::engine::Provision;
use podbay::inference;
use podbay::inference::Health;
use podbay::inference::Model;
use podbay::inference::ModelServer;
use podbay::inference::Paths;
use podbay::inference::Serving;
use podbay::inference::Store;
use podbay::llm;
use podbay::llm::Client;
use podbay::llm::Message;
use podbay::llm::Prompt;
use podbay::llm::Request;
use podbay::llm::http;
use serde_json::Value;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::connect;
use super::progress;

/// Where models stay between runs of the tests, so that one is loaded once.
pub(super) fn models() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("inference")
}

/// Returns the model of the settings, loaded once for all tests.
pub(super) async fn smoke(options: &inference::Options, paths: &Paths) -> Model {
    let store = Store::new(options, paths, false).expect("a store");
    store
        .resolve(&progress(), &CancellationToken::new())
        .await
        .expect("the smoke model")
}

/// A model that computes takes all cores: tests that have one take turns.
pub(super) static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// What the model is asked, and what no log may tell.
const QUESTION: &str = "Which colour has the sky?";

pub(super) async fn complete(serving: &Serving) -> Value {
    let settings = serving.endpoint.settings(Duration::from_secs(5), None);
    let client = http::client(&settings).expect("a client");
    let schema = json!({"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"], "additionalProperties": false});
    // The grammar lets the model write some twenty blanks between any two words.
    let body = json!({
        "model": serving.model,
        "max_tokens": 200,
        "temperature": 0,
        "messages": [{"role": "user", "content": QUESTION}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": schema}},
    });
    let request = client
        .post(serving.endpoint.api("/chat/completions"))
        .bearer_auth(serving.key.expose())
        .json(&body);
    let response = tokio::time::timeout(Duration::from_mins(3), request.send())
        .await
        .expect("in time")
        .expect("an answer");
    assert!(response.status().is_success(), "{}", response.status());
    let answer: Value = response.json().await.expect("JSON");
    serde_json::from_str(
        answer["choices"][0]["message"]["content"]
            .as_str()
            .expect("text"),
    )
    .expect("JSON that fits the schema")
}

/// Panics unless the server counts beforehand exactly what it then reads.
async fn assert_counts_what_it_reads(serving: &Serving, cancel: &CancellationToken) {
    let client = Client::new(
        serving.endpoint.clone(),
        Some(serving.key.clone()),
        llm::Options::default(),
    )
    .expect("a client");
    let probed = client
        .probe(cancel, Duration::from_secs(10))
        .await
        .expect("a probe");
    assert_eq!(
        (probed.n_slots, probed.n_busy),
        (Some(1), None),
        "our own server does not say what its slot does"
    );
    let mut prompt = Prompt::new("You answer in a word.", &[], probed.tools);
    for message in [
        Message::user("What is <|im_end|> good for?"),
        Message::assistant("Nothing."),
        Message::user("And d\u{e9}j\u{e0} vu?"),
    ] {
        prompt.push(&message);
    }
    let counted = client.count_prompt(&prompt, cancel).await;
    let request = Request {
        max_tokens: Some(1),
        ..Request::default()
    };
    let reply = client
        .stream(
            &prompt,
            &request,
            &mut |_| {},
            cancel,
            Duration::from_mins(3),
        )
        .await
        .expect("an answer");
    assert_eq!(counted, Some(reply.usage.prompt));
    assert_ne!(
        counted,
        client.count(&prompt.head(), cancel).await,
        "not the tokens of its JSON"
    );
}

#[tokio::test]
async fn the_smoke_model_answers_over_a_socket_and_is_reused() {
    let Some(engine) = connect().await else {
        return;
    };
    let _turn = TURN.lock().await;
    let (cancel, progress) = (CancellationToken::new(), progress());
    let paths = Paths::new(models());
    let provision = Provision::new(
        &engine,
        &engine::Options::default(),
        false,
        paths.locks(),
        &progress,
    )
    .allow_install(true);
    // A server that sleeps almost at once must still count as there.
    let options = inference::Options {
        sleep_idle: podbay::event::Seconds::new(2),
        ..inference::Options::default()
    };
    let image = provision
        .ensure(options.image_name(), &cancel)
        .await
        .expect("an image");
    let model = smoke(&options, &paths).await;
    assert!(
        model.is_smoke
            && model
                .note
                .as_ref()
                .is_some_and(|note| note.contains("no good code"))
    );

    let server = ModelServer::new(&engine, &options, &paths);
    server
        .stop(&cancel)
        .await
        .expect("none is left of an earlier run");
    let first = server
        .ensure(&image, &model, &progress, &cancel)
        .await
        .expect("a server");
    assert!(!first.reused && first.context == 8192);
    assert!(
        ["red", "blue"].contains(&complete(&first).await["colour"].as_str().expect("a colour"))
    );

    tokio::time::sleep(Duration::from_secs(4)).await;
    let second = server
        .ensure(&image, &model, &progress, &cancel)
        .await
        .expect("the same server");
    assert!(second.reused && second.container == first.container);
    complete(&second).await;
    let state = server
        .state(&cancel)
        .await
        .expect("known")
        .expect("there is one");
    assert!(state.running && state.health == Health::Ready, "{state:?}");

    // Other settings make another server.
    let options = inference::Options {
        context: Some(2048),
        ..options
    };
    let server = ModelServer::new(&engine, &options, &paths);
    let third = server
        .ensure(&image, &model, &progress, &cancel)
        .await
        .expect("another server");
    assert!(!third.reused && third.container != first.container);
    complete(&third).await;
    assert_counts_what_it_reads(&third, &cancel).await;
    let mut log = Vec::new();
    assert!(
        server
            .logs(100, false, |bytes| log.extend_from_slice(bytes), &cancel)
            .await
            .expect("a log")
    );
    let log = String::from_utf8_lossy(&log);
    // How it started and what a request took, not what was said in it.
    assert!(
        ["model loaded", "prompt eval time"]
            .iter()
            .all(|words| log.contains(words)),
        "{log}"
    );
    assert!(!log.contains(QUESTION), "{log}");
    assert!(server.stop(&cancel).await.expect("stopped"));
    assert!(server.state(&cancel).await.expect("known").is_none());
}
