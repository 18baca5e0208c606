//! What servers want otherwise than most, and how each is found to want it: lists that are missing,
//! parameters that are refused, windows that are told elsewhere, thoughts that must come back.

use std::time::Duration;

use podbay::event::Kind;
use podbay::event::RunStatus;
use podbay::event::ToolMode;
use podbay::llm::Client;
use podbay::llm::Endpoint;
use podbay::llm::Error;
use podbay::llm::Message;
use podbay::llm::Options;
use podbay::llm::ProbeResult;
use podbay::llm::Prompt;
use podbay::llm::Reply;
use podbay::llm::Request;
use podbay::llm::Server;
use podbay::llm::Update;
use podbay::llm::retry::RetryPolicy;
use serde_json::Value;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;
use crate::support::scripted_model::Running;

const MINUTE: Duration = Duration::from_mins(1);
const ALWAYS: usize = usize::MAX;

fn client(model: &Running, options: Options) -> Client {
    let policy = RetryPolicy {
        pauses: vec![Duration::from_millis(5)],
        retries: options.retries,
        ..RetryPolicy::default()
    };
    Client::with_policy(
        Endpoint::parse(&model.endpoint()).expect("an endpoint"),
        None,
        options,
        policy,
    )
    .expect("a client")
}

async fn probe(model: &Running, options: Options) -> Result<ProbeResult, Error> {
    client(model, options)
        .probe(&CancellationToken::new(), MINUTE)
        .await
}

async fn ask(client: &Client) -> (Result<Reply, Error>, Vec<Update>) {
    let mut prompt = Prompt::new("", &[], ToolMode::Native);
    prompt.push(&Message::user("Hi"));
    let mut updates = Vec::new();
    let request = Request {
        max_tokens: Some(8192),
        ..Request::default()
    };
    let reply = client
        .stream(
            &prompt,
            &request,
            &mut |update| updates.push(update),
            &CancellationToken::new(),
            MINUTE,
        )
        .await;
    (reply, updates)
}

fn other() -> ScriptedModel {
    ScriptedModel::new().without_props()
}

fn error(message: &str) -> Value {
    json!({"error": {"message": message}})
}

fn list(entry: &Value) -> Value {
    json!({"object": "list", "data": [entry]})
}

#[tokio::test]
async fn a_server_that_is_busy_when_it_is_first_asked_is_asked_again() {
    for code in [408, 429, 502, 503] {
        let model = other()
            .page("/v1/models", code, error("busy"), 2)
            .start()
            .await;
        let probed = probe(&model, Options::default())
            .await
            .expect("it was asked again");
        assert_eq!(probed.model, "scripted", "{code}");
        let model = other()
            .page("/v1/models", code, error("busy"), 2)
            .start()
            .await;
        let refused = probe(
            &model,
            Options {
                retries: 1,
                ..Options::default()
            },
        )
        .await;
        assert!(matches!(refused, Err(Error::Status { .. })), "{code}");
    }
}

#[tokio::test]
async fn a_gateway_that_lists_no_models_is_used_where_one_is_named() {
    for (code, body) in [
        (404, error("no such page")),
        (405, json!({})),
        (403, json!({"detail": "Forbidden"})),
    ] {
        let page = || other().page("/v1/models", code, body.clone(), ALWAYS);
        let named = Options {
            model: Some("big".to_owned()),
            ..Options::default()
        };
        let found = probe(&page().start().await, named).await;
        if code == 403 {
            // The key may be what it refuses.
            assert!(
                matches!(found, Err(Error::Unauthorized { .. })),
                "{found:?}"
            );
            continue;
        }
        let probed = found.expect("nothing of the list is needed");
        assert_eq!(
            (probed.model.as_str(), probed.server),
            ("big", Server::Other),
            "{code}"
        );
        assert!(
            probe(&page().start().await, Options::default())
                .await
                .is_err(),
            "{code}: which model?"
        );
    }
}

#[tokio::test]
async fn a_gateway_that_refuses_what_it_does_not_know_is_no_refused_key() {
    for code in [401, 403] {
        let gateway = ScriptedModel::new()
            .page("/props", code, error("unknown path"), ALWAYS)
            .start()
            .await;
        assert_eq!(
            probe(&gateway, Options::default())
                .await
                .expect("its list is open")
                .server,
            Server::Other,
            "{code}"
        );
        let own = list(&json!({"id": "m.gguf", "owned_by": "llamacpp"}));
        let llama = ScriptedModel::new()
            .page("/props", code, error("Invalid API Key"), ALWAYS)
            .page("/v1/models", 200, own, ALWAYS);
        let refused = probe(&llama.start().await, Options::default()).await;
        assert!(
            matches!(refused, Err(Error::Unauthorized { .. })),
            "{code}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn lm_studio_says_on_a_page_of_its_own_how_its_model_is_loaded() {
    let models = json!({"data": [
        {"id": "text-embedding-x", "type": "embeddings", "state": "loaded", "loaded_context_length": 512},
        {"id": "else", "type": "llm", "state": "not-loaded", "max_context_length": 1024},
        {"id": "scripted", "type": "llm", "state": "loaded", "max_context_length": 131_072, "loaded_context_length": 4096},
    ]});
    let studio = other()
        .page("/api/v0/models", 200, models, ALWAYS)
        .start()
        .await;
    assert_eq!(
        probe(&studio, Options::default())
            .await
            .expect("a probe")
            .context,
        Some(4096)
    );
    assert_eq!(
        probe(&other().start().await, Options::default())
            .await
            .expect("a probe")
            .context,
        None
    );

    // What makes vectors of texts is listed first and answers nothing.
    let mixed = json!({"data": [{"id": "text-embedding-x"}, {"id": "scripted"}]});
    let listed = probe(
        &other()
            .page("/v1/models", 200, mixed.clone(), ALWAYS)
            .start()
            .await,
        Options::default(),
    )
    .await
    .expect("a probe");
    assert_eq!(listed.model, "scripted");
    let loaded = json!({"data": [{"id": "b", "type": "llm", "state": "loaded", "loaded_context_length": 2048}]});
    let studio = other()
        .page("/v1/models", 200, mixed, ALWAYS)
        .page("/api/v0/models", 200, loaded, ALWAYS)
        .start()
        .await;
    let probed = probe(&studio, Options::default()).await.expect("a probe");
    assert_eq!((probed.model.as_str(), probed.context), ("b", Some(2048)));
}

#[tokio::test]
async fn vllm_counts_the_conversation_as_its_template_writes_it() {
    let own = list(&json!({"id": "v", "owned_by": "vllm", "max_model_len": 8192}));
    let model = other().page("/v1/models", 200, own, ALWAYS).page(
        "/tokenize",
        200,
        json!({"count": 1234, "max_model_len": 8192}),
        ALWAYS,
    );
    let desk = Desk::new(model.start().await, Wishes::default()).await;
    assert_eq!(
        desk.agent.lock().await.fullness(&desk.interrupt).await,
        (1234, Some(8192))
    );
    let sent = desk.model.sent_to("/tokenize");
    assert!(
        sent[0]["messages"].is_array() && sent[0]["tools"].is_array(),
        "{}",
        sent[0]
    );
}

#[tokio::test]
async fn what_a_server_refuses_of_a_request_is_said_otherwise_from_then_on() {
    type Holds = fn(&Value) -> bool;
    let cases: [(&str, Holds); 3] = [
        (
            "max_tokens is too large: 8192. This model supports at most 4096 completion tokens.",
            |body| body["max_tokens"] == 4096,
        ),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            |body| body.get("max_tokens").is_none() && body["max_completion_tokens"] == 8192,
        ),
        (
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
            |body| body.get("temperature").is_none(),
        ),
    ];
    for (words, holds) in cases {
        let model = other()
            .status(400, error(words).to_string())
            .says("Here.")
            .says("Again.")
            .start()
            .await;
        let client = client(
            &model,
            Options {
                temperature: Some(0.2),
                retries: 0,
                ..Options::default()
            },
        );
        let (reply, updates) = ask(&client).await;
        assert_eq!(reply.expect("a reply").text, "Here.", "{words}");
        assert!(
            matches!(&updates[0], Update::Changed { reason, .. } if reason.contains(words)),
            "{updates:?}"
        );
        let (reply, updates) = ask(&client).await;
        assert_eq!(reply.expect("a reply").text, "Again.");
        assert!(
            !updates
                .iter()
                .any(|update| matches!(update, Update::Changed { .. })),
            "{updates:?}"
        );
        let requests = model.requests();
        assert_eq!(
            requests.iter().map(holds).collect::<Vec<_>>(),
            [false, true, true],
            "{words}"
        );
    }
}

/// A run ended with code 6 where the server's bound was lower than ours.
#[tokio::test]
async fn a_server_that_refuses_everything_is_not_asked_for_ever() {
    let words = error("max_tokens must be less").to_string();
    let model = (0..20)
        .fold(other(), |model, _| model.status(400, words.clone()))
        .start()
        .await;
    let (reply, _) = ask(&client(
        &model,
        Options {
            retries: 0,
            ..Options::default()
        },
    ))
    .await;
    assert!(
        matches!(reply, Err(Error::Status { code: 400, .. })),
        "{reply:?}"
    );
    assert_eq!(
        model.requests().len(),
        6,
        "8192, then half of it, down to 256"
    );
}

fn numbers(model: ScriptedModel, n: u32) -> ScriptedModel {
    (0..n).fold(model, |model, n| {
        model.calls("bash", json!({"command": format!("echo {n}; seq 1 700")}))
    })
}

fn sized() -> ScriptedModel {
    other().page(
        "/v1/models",
        200,
        list(&json!({"id": "m", "max_model_len": 9100})),
        ALWAYS,
    )
}

/// vLLM refuses a request whose conversation and longest answer together pass its window.
#[tokio::test]
async fn an_answer_may_be_no_longer_than_what_the_window_holds_beside_the_conversation() {
    let agent = podbay::agent::Options {
        compact_percent: 0,
        ..podbay::agent::Options::default()
    };
    let desk = Desk::new(
        numbers(sized(), 8).says("Done.").start().await,
        Wishes {
            agent,
            ..Wishes::default()
        },
    )
    .await;
    assert_eq!(
        desk.work("print numbers").await.status,
        RunStatus::Completed
    );
    let requests = desk.model.requests();
    assert_eq!(requests.len(), 9);
    for (body, raw) in requests.iter().zip(desk.model.raw_bodies()) {
        let most = body["max_tokens"].as_u64().expect("a number");
        // The script reads four bytes as a token, as we do where nobody counts; the rest of the
        // body is short.
        assert!(
            most + raw.len() as u64 / 4 <= 9100 + 100 || most == 256,
            "{most} beside {} bytes",
            raw.len()
        );
    }
    assert_eq!(requests[0]["max_tokens"], 2275);
    assert!(
        requests
            .iter()
            .any(|body| body["max_tokens"].as_u64() < Some(2275)),
        "{}",
        requests[8]["max_tokens"]
    );
}

#[tokio::test]
async fn a_request_that_is_refused_for_its_answer_is_asked_again_with_a_shorter_one() {
    let words = "'max_tokens' or 'max_completion_tokens' is too large: 2275. This model's maximum context length is 9100 tokens and your \
                 request has 7200 input tokens (2275 > 9100 - 7200).";
    let model = sized()
        .status(400, error(words).to_string())
        .says("Done.")
        .start()
        .await;
    let desk = Desk::new(model, Wishes::default()).await;
    assert_eq!(desk.work("print numbers").await.response, "Done.");
    assert_eq!(desk.model.requests()[1]["max_tokens"], 1900);
    let makes_room = |kind: &Kind| {
        matches!(
            kind,
            Kind::ResultsEvicted { .. } | Kind::ConversationCompacted { .. }
        )
    };
    assert!(!desk.kinds().iter().any(makes_room), "{:?}", desk.kinds());
}

#[tokio::test]
async fn thoughts_go_back_to_a_server_that_wants_them() {
    let words = "Missing `reasoning_content` field in the assistant message at message index 3.";
    let model = other()
        .thinks("I look.")
        .calls("bash", json!({"command": "echo 1"}))
        .status(400, error(words).to_string())
        .says("Done.");
    let desk = Desk::new(model.start().await, Wishes::default()).await;
    assert_eq!(desk.work("look").await.response, "Done.");
    let thoughts = |n: usize| {
        let request = desk.model.requests().remove(n);
        let messages = request["messages"].as_array().expect("messages").clone();
        messages
            .iter()
            .filter_map(|message| message["reasoning_content"].as_str().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (thoughts(1), thoughts(2)),
        (vec![], vec!["I look.".to_owned()])
    );
    assert!(
        desk.kinds()
            .iter()
            .any(|kind| matches!(kind, Kind::PromptBegun { thinking: true, .. })),
        "the log knows"
    );
}

/// What an empty stream may hide is asked for once more, and a server that hangs then holds nobody
/// up.
#[tokio::test]
async fn a_second_question_that_is_not_answered_ends_soon() {
    // Long enough that the question reaches the model on a busy machine too.
    let policy = RetryPolicy {
        retries: 0,
        second: Duration::from_secs(3),
        ..RetryPolicy::default()
    };
    let reason = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    for (events, is_believed) in [
        (format!("data: {reason}\n\ndata: [DONE]\n\n"), true),
        ("data: [DONE]\n\n".to_owned(), false),
    ] {
        let model = other().raw_sse(&events).stall(MINUTE).start().await;
        let endpoint = Endpoint::parse(&model.endpoint()).expect("an endpoint");
        let client = Client::with_policy(endpoint, None, Options::default(), policy.clone())
            .expect("a client");
        let (reply, _) = ask(&client).await;
        match reply {
            Ok(reply) => assert!(is_believed && reply.text.is_empty(), "{reply:?}"),
            Err(error) => assert!(
                !is_believed && error.to_string().contains("ended without an answer"),
                "{error}"
            ),
        }
        assert_eq!(model.requests().len(), 2);
    }
}
