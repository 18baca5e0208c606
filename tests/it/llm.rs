//! The client against a scripted server, over a real socket.

use std::fmt::Write;
use std::time::Duration;
use std::time::Instant;

use podbay::event::Secret;
use podbay::event::ToolCall;
use podbay::event::ToolMode;
use podbay::event::Usage;
use podbay::llm::Client;
use podbay::llm::Endpoint;
use podbay::llm::Error;
use podbay::llm::Finish;
use podbay::llm::Message;
use podbay::llm::Options;
use podbay::llm::Prompt;
use podbay::llm::Reply;
use podbay::llm::Request;
use podbay::llm::Server;
use podbay::llm::ToolSpec;
use podbay::llm::Update;
use podbay::llm::retry::RetryPolicy;
use serde_json::Value;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;

use crate::support::ScriptedModel;
use crate::support::alone::is_alone;
use crate::support::scripted_model::Running;
use crate::support::scripted_model::exceeded;
use crate::support::scripted_model::serve::TEMPLATE;

const MINUTE: Duration = Duration::from_mins(1);

fn tools() -> Vec<ToolSpec> {
    vec![ToolSpec {
        name: "bash".into(),
        description: "Runs a command.".into(),
        parameters: json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}),
    }]
}

fn prompt(mode: ToolMode) -> Prompt {
    let mut prompt = Prompt::new("You work.", &tools(), mode);
    prompt.push(&Message::user("Do it."));
    prompt
}

fn client_with(model: &Running, options: Options) -> Client {
    let policy = RetryPolicy {
        pauses: vec![Duration::from_millis(5)],
        retries: options.retries,
        loading: Duration::from_millis(5),
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

fn client(model: &Running) -> Client {
    client_with(model, Options::default())
}

async fn ask(client: &Client, prompt: &Prompt) -> (Result<Reply, Error>, Vec<Update>) {
    let mut updates = Vec::new();
    let reply = client
        .stream(
            prompt,
            &Request::default(),
            &mut |update| updates.push(update),
            &CancellationToken::new(),
            MINUTE,
        )
        .await;
    (reply, updates)
}

async fn error_of(script: ScriptedModel) -> Error {
    let model = script.start().await;
    let (reply, _) = ask(&client(&model), &prompt(ToolMode::Native)).await;
    reply.expect_err("an error")
}

async fn text_of(script: ScriptedModel) -> String {
    let model = script.start().await;
    let (reply, _) = ask(&client(&model), &prompt(ToolMode::Native)).await;
    reply.expect("a reply").text
}

#[tokio::test]
async fn a_conversation_with_calls_goes_both_ways_and_only_grows() {
    let model = ScriptedModel::new()
        .thinks("hm")
        .says_and_calls("Looking.", "bash", json!({"command": "ls"}))
        .raw_call("bash", "{\"comm")
        .says("Done.")
        .start()
        .await;
    let client = client(&model);
    client
        .probe(&CancellationToken::new(), MINUTE)
        .await
        .expect("a probe");
    let mut prompt = prompt(ToolMode::Native).with_thinking_replayed(true);

    let (first, updates) = ask(&client, &prompt).await;
    let first = first.expect("a reply");
    assert_eq!(
        (first.text.as_str(), first.thinking.as_str(), first.finish),
        ("Looking.", "hm", Finish::ToolCalls)
    );
    assert_eq!(
        first.calls,
        vec![ToolCall {
            id: "call_0_0".into(),
            name: "bash".into(),
            arguments: "{\"command\":\"ls\"}".into()
        }]
    );
    let n = client_body_tokens(&model);
    assert_eq!(
        first.usage,
        Usage {
            prompt: n,
            cached: 0,
            completion: 8,
            cost_usd: None
        }
    );
    let (updates, ready): (Vec<_>, Vec<_>) = updates
        .into_iter()
        .partition(|update| !matches!(update, Update::CallReady(_)));
    assert!(
        matches!(&ready[..], [Update::CallReady(ready)] if *ready.call() == first.calls[0]),
        "{ready:?}"
    );
    let expected = vec![
        Update::Prefill { done: n, total: n },
        Update::Thinking("hm".into()),
        Update::Text("Looking.".into()),
        Update::CallStarted {
            name: "bash".into(),
        },
    ];
    assert_eq!(updates, expected);

    prompt.push(&first.message());
    prompt.push(&Message::ToolResult {
        call: "call_0_0".into(),
        name: "bash".into(),
        text: "a.txt<|im_end|>".into(),
        is_error: false,
    });
    let (second, _) = ask(&client, &prompt).await;
    let second = second.expect("a reply");
    assert_eq!(second.calls[0].arguments, "{\"comm");
    assert!(second.usage.cached > 0);
    prompt.push(&second.message());
    prompt.push(&Message::ToolResult {
        call: second.calls[0].id.clone(),
        name: "bash".into(),
        text: "not JSON".into(),
        is_error: true,
    });
    let (third, _) = ask(&client, &prompt).await;
    assert_eq!(third.expect("a reply").text, "Done.");

    model.assert_append_only();
    let requests = model.requests();
    let last = requests.last().expect("three requests");
    assert_eq!(
        (
            last["model"].as_str(),
            &last["cache_prompt"],
            &last["return_progress"],
            &last["max_tokens"]
        ),
        (Some("scripted"), &json!(true), &json!(true), &json!(8192))
    );
    assert_eq!(last["messages"][3]["content"], "a.txt<\u{200b}|im_end|>");
    assert_eq!(last["messages"][2]["reasoning_content"], "hm");
}

/// Returns how the script counts the first prompt.
fn client_body_tokens(model: &Running) -> u64 {
    model.raw_bodies()[0].len() as u64 / 4
}

#[tokio::test]
async fn a_model_without_tools_is_asked_by_schema_and_calls_all_the_same() {
    let model = ScriptedModel::new()
        .without_tools()
        .calls("bash", json!({"command": "ls"}))
        .says("It is\n\"done\".")
        .start()
        .await;
    let client = client(&model);
    let probed = client
        .probe(&CancellationToken::new(), MINUTE)
        .await
        .expect("a probe");
    assert_eq!(
        (probed.tools, probed.server, probed.context),
        (ToolMode::Constrained, Server::LlamaCpp, Some(32_768))
    );
    let mut prompt = prompt(probed.tools);

    let (reply, updates) = ask(&client, &prompt).await;
    let reply = reply.expect("a reply");
    assert_eq!(
        (
            reply.calls[0].name.as_str(),
            reply.calls[0].arguments.as_str()
        ),
        ("bash", "{\"command\":\"ls\"}")
    );
    assert!(updates.contains(&Update::CallStarted {
        name: "bash".into()
    }));
    assert!(
        !updates
            .iter()
            .any(|update| matches!(update, Update::Text(_))),
        "{updates:?}"
    );
    prompt.push(&reply.message());
    prompt.push(&Message::ToolResult {
        call: reply.calls[0].id.clone(),
        name: "bash".into(),
        text: "a.txt".into(),
        is_error: false,
    });

    let mut shown = String::new();
    let request = Request {
        no_tools: true,
        ..Request::default()
    };
    let reply = client
        .stream(
            &prompt,
            &request,
            &mut |update| {
                if let Update::Text(text) = update {
                    shown.push_str(&text);
                }
            },
            &CancellationToken::new(),
            MINUTE,
        )
        .await
        .expect("a reply");
    assert_eq!(
        (reply.text.as_str(), shown.as_str()),
        ("It is\n\"done\".", "It is\n\"done\".")
    );
    model.assert_append_only();
    let requests = model.requests();
    assert_eq!(
        requests[1]["messages"][2]["content"],
        "{\"tool\": \"bash\", \"arguments\": {\"command\":\"ls\"}}"
    );
    assert_eq!(
        requests[1]["messages"][3],
        json!({"role": "user", "content": "Tool bash returned:\na.txt"})
    );
    assert_eq!(
        requests[1]["response_format"]["json_schema"]["schema"]["required"],
        json!(["answer"])
    );
    assert!(requests[0].get("tools").is_none());
}

#[tokio::test]
async fn a_full_window_is_recognised_in_all_five_shapes() {
    let error = || json!({"error": exceeded(9001, 8192)});
    let scripts = [
        (
            "status 400",
            ScriptedModel::new().exceeds_context(9001, 8192),
        ),
        (
            "status 500",
            ScriptedModel::new().status(500, error().to_string()),
        ),
        (
            "status 200 and a body",
            ScriptedModel::new().status(200, error().to_string()),
        ),
        (
            "an error event",
            ScriptedModel::new().sse_error(exceeded(9001, 8192)),
        ),
        (
            "an error within the stream",
            ScriptedModel::new().raw_sse(&format!("data: {}\n\n", error())),
        ),
        (
            "an old server's error line",
            ScriptedModel::new().raw_sse(&format!("error: {}\n\n", exceeded(9001, 8192))),
        ),
        ("silence", ScriptedModel::new().silent(400, error())),
    ];
    for (shape, script) in scripts {
        let model = script.start().await;
        let (reply, _) = ask(&client(&model), &prompt(ToolMode::Native)).await;
        assert!(
            matches!(
                reply,
                Err(Error::ContextExceeded {
                    prompt: Some(9001),
                    context: Some(8192)
                })
            ),
            "{shape}: {reply:?}"
        );
        assert_eq!(
            model.requests().len(),
            if shape == "silence" { 2 } else { 1 },
            "{shape}: never in a loop"
        );
    }
}

#[tokio::test]
async fn a_silent_stream_is_asked_again_once_and_the_answer_counts() {
    let completion = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "Here."}, "finish_reason": "stop"}]});
    assert_eq!(
        text_of(ScriptedModel::new().silent(200, completion)).await,
        "Here."
    );
    let model = ScriptedModel::new()
        .silent(500, json!({"error": {"message": "out of memory"}}))
        .start()
        .await;
    let (reply, _) = ask(
        &client_with(
            &model,
            Options {
                retries: 0,
                ..Options::default()
            },
        ),
        &prompt(ToolMode::Native),
    )
    .await;
    let error = reply.expect_err("an error");
    assert_eq!(
        error.to_string(),
        "the model server answered with status 500: out of memory"
    );
}

#[tokio::test]
async fn a_model_that_really_says_nothing_is_believed() {
    let events = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let completion = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}]}"#;
    assert_eq!(
        text_of(ScriptedModel::new().raw_sse(events).status(200, completion)).await,
        ""
    );
}

#[tokio::test]
async fn the_token_that_ends_a_turn_is_no_word_of_it() {
    for end in [
        "<|im_end|>",
        "</s>",
        "\n<end_of_turn>\n",
        "<|END_RESPONSE|><|END_OF_TURN_TOKEN|>",
    ] {
        assert_eq!(
            text_of(ScriptedModel::new().says(&format!("All is well.{end}"))).await,
            "All is well.",
            "{end}"
        );
    }
    for words in [
        "It ends with </s>, a token.",
        "The token is <|im_end|> there.",
        "Write `</s>`",
        "See <b>this</b>",
        "Use <name>",
    ] {
        assert_eq!(text_of(ScriptedModel::new().says(words)).await, words);
    }
}

#[tokio::test]
async fn streams_of_odd_manners_are_read() {
    let text = |text: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let without_done = format!("{}{}{END}", text("a"), text("b"));
    assert_eq!(
        text_of(ScriptedModel::new().raw_sse(&without_done)).await,
        "ab"
    );
    let with_sums_alone = format!(
        "{}data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":1}}}}\n\n",
        text("a")
    );
    assert_eq!(
        text_of(ScriptedModel::new().raw_sse(&with_sums_alone)).await,
        "a"
    );
    let with_more = format!(
        "\u{feff}: hi\r\n\r\n{}data: [DONE]\n\n{}",
        text("a"),
        text("never")
    );
    assert_eq!(text_of(ScriptedModel::new().raw_sse(&with_more)).await, "a");
    let with_nonsense = format!(
        "data: {{nonsense\n\n{}data: {{\"unknown\":1}}\n\n{END}",
        text("a")
    );
    assert_eq!(
        text_of(ScriptedModel::new().raw_sse(&with_nonsense)).await,
        "a"
    );
    // A server that does not stream at all.
    let whole = json!({"choices": [{"message": {"content": "<think>x</think>whole"}}]});
    assert_eq!(
        text_of(ScriptedModel::new().status(200, whole.to_string())).await,
        "whole"
    );
}

/// The end of an answer as a server writes it that knows no `[DONE]`.
const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

/// Behind the reason why an answer ended nothing is missing but sums: neither a line that stays
/// open nor one that is cut loses it.
#[tokio::test]
async fn an_answer_is_whole_with_its_reason_however_the_line_ends() {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let call = json!([{"index": 0, "id": "c", "function": {"name": "bash", "arguments": "{\"command\":\"make\"}"}}]);
    let chunk = |delta: Value, why: Option<&str>| {
        let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": why}]});
        format!("data: {chunk}\n\n")
    };
    let said = chunk(json!({"content": "all of it"}), None) + &chunk(json!({}), Some("stop"));
    let called = chunk(json!({"tool_calls": call}), None) + &chunk(json!({}), Some("tool_calls"));
    for (events, text, n_calls) in [(said, "all of it", 0), (called, "", 1)] {
        let bytes = format!("{head}{:x}\r\n{events}\r\n", events.len());
        for hold in [Duration::ZERO, Duration::from_secs(20)] {
            let model = ScriptedModel::new()
                .raw_http_and_hold(bytes.clone(), hold)
                .says("Never.")
                .start()
                .await;
            let options = Options {
                idle_timeout_s: 0.5,
                ..Options::default()
            };
            let (reply, _) = ask(&client_with(&model, options), &prompt(ToolMode::Native)).await;
            let reply = reply.expect("it is whole");
            assert_eq!(
                (
                    reply.text.as_str(),
                    reply.calls.len(),
                    model.requests().len()
                ),
                (text, n_calls, 1),
                "{hold:?}"
            );
        }
    }
}

/// Some servers give calls ids and no index, and send them in turns.
#[tokio::test]
async fn pieces_of_calls_without_an_index_go_where_their_ids_say() {
    let piece = |id: &str, name: Option<&str>, arguments: &str| {
        let function = json!({"name": name, "arguments": arguments});
        format!(
            "data: {}\n\n",
            json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"id": id, "function": function}]}}]})
        )
    };
    let stream = [
        piece("a", Some("bash"), ""),
        piece("b", Some("bash"), ""),
        piece("a", None, "{\"command\":"),
        piece("b", None, "{\"command\":\"second\"}"),
        piece("a", None, "\"first\"}"),
        END.to_owned(),
    ];
    let model = ScriptedModel::new().raw_sse(&stream.concat()).start().await;
    let (reply, _) = ask(&client(&model), &prompt(ToolMode::Native)).await;
    let calls: Vec<String> = reply
        .expect("a reply")
        .calls
        .iter()
        .map(|call| call.arguments.clone())
        .collect();
    assert_eq!(
        calls,
        ["{\"command\":\"first\"}", "{\"command\":\"second\"}"]
    );
}

#[tokio::test]
async fn a_stream_that_closes_in_the_middle_is_no_answer_and_its_calls_are_none() {
    let chunk = |delta: Value, more: Value| {
        let mut chunk = json!({"choices": [{"index": 0, "delta": delta}]});
        chunk
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().cloned().unwrap_or_default());
        format!("data: {chunk}\n\n")
    };
    let par = chunk(json!({"content": "par"}), json!({}));
    // Counting along with every word is no end.
    let counted = chunk(
        json!({"content": "par"}),
        json!({"usage": {"prompt_tokens": 1, "completion_tokens": 1}}),
    );
    let call = json!([{"index": 0, "id": "c", "function": {"name": "bash", "arguments": "{\"command\":\"rm -r build\"}"}}]);
    let called = par.clone() + &chunk(json!({"tool_calls": call}), json!({}));
    for stream in [par, counted, called] {
        let model = ScriptedModel::new()
            .raw_sse(&stream)
            .says("Never.")
            .start()
            .await;
        let (reply, _) = ask(&client(&model), &prompt(ToolMode::Native)).await;
        let error = reply.expect_err("it broke off");
        assert!(
            matches!(error.root(), Error::Connection { .. }),
            "{error:?}"
        );
        let partial = error.partial().expect("what was shown");
        assert_eq!((partial.text.as_str(), partial.calls.len()), ("par", 0));
        assert_eq!(model.requests().len(), 1);
    }
    // Nothing was shown yet: half an answer of ours in JSON, and it is asked for again.
    let model = ScriptedModel::new()
        .raw_sse(&chunk(json!({"content": "{\"ans"}), json!({})))
        .says("{\"answer\": \"whole\"}")
        .start()
        .await;
    let (reply, _) = ask(&client(&model), &prompt(ToolMode::Constrained)).await;
    assert_eq!(reply.expect("a reply").text, "whole");
}

#[tokio::test]
async fn what_is_no_api_is_called_by_its_name() {
    let error = error_of(ScriptedModel::new().html()).await;
    assert!(
        error
            .to_string()
            .ends_with("/v1 answered with a web page, not with JSON"),
        "{error}"
    );
    let raw = |head: &str, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        ScriptedModel::new().raw_http([head.as_bytes(), body].concat())
    };
    // A page to log in, by whatever type it comes; one of a proxy, with its status; something
    // packed, whether its head says so or not.
    let page = b"<html><head><title>Sign in</title></head></html>";
    let packed = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\xae\x05\x00";
    for (head, body, says, hint) in [
        (
            "200 OK\r\nContent-Type: text/html; charset=utf-8",
            &page[..],
            "/v1 answered with a web page (\"Sign in\"), not",
            "a login",
        ),
        (
            "200 OK\r\nContent-Type: text/event-stream",
            &page[..],
            "/v1 answered with a web page (\"Sign in\"), not",
            "a login",
        ),
        (
            "404 Not Found\r\nContent-Type: text/html",
            &page[..],
            "/v1 answered with a web page (\"Sign in\"), not",
            "/v1",
        ),
        (
            "502 Bad Gateway\r\nContent-Type: text/html",
            b"<title>502</title>",
            "status 502: a web page (\"502\") from http://",
            "proxy",
        ),
        (
            "200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip",
            &packed[..],
            "packed with gzip",
            "proxy",
        ),
        (
            "200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: br",
            b"\x0b",
            "packed with brotli",
            "proxy",
        ),
        (
            "200 OK\r\nContent-Type: application/json",
            &packed[..],
            "packed with gzip",
            "proxy",
        ),
        (
            "200 OK\r\nContent-Type: text/event-stream",
            &packed[..],
            "packed with gzip",
            "proxy",
        ),
        (
            "400 Bad Request\r\nContent-Encoding: gzip",
            &packed[..],
            "packed with gzip",
            "proxy",
        ),
        (
            "503 Busy\r\nContent-Encoding: gzip",
            &packed[..],
            "status 503: something packed with gzip",
            "log",
        ),
    ] {
        let model = raw(head, body).start().await;
        let (reply, _) = ask(
            &client_with(
                &model,
                Options {
                    retries: 0,
                    ..Options::default()
                },
            ),
            &prompt(ToolMode::Native),
        )
        .await;
        let error = reply.expect_err("no answer");
        assert!(
            error.to_string().contains(says) && model.requests().len() == 1,
            "{head}: {error}"
        );
        assert!(
            error.hint().is_some_and(|words| words.contains(hint)),
            "{head}: {:?}",
            error.hint()
        );
    }
    // A whole answer where a stream was asked for is an answer, whatever it is called.
    let whole = json!({"choices": [{"message": {"role": "assistant", "content": "Here I am."}, "finish_reason": "stop"}]}).to_string();
    for kind in ["application/json", "text/event-stream", "text/plain"] {
        let model = raw(
            &format!("200 OK\r\nContent-Type: {kind}"),
            format!("\n {whole}").as_bytes(),
        )
        .start()
        .await;
        let (reply, updates) = ask(&client(&model), &prompt(ToolMode::Native)).await;
        assert_eq!(
            (
                reply.expect("an answer").text.as_str(),
                model.requests().len()
            ),
            ("Here I am.", 1),
            "{kind}"
        );
        assert_eq!(updates, [Update::Text("Here I am.".into())]);
    }
    let error = error_of(ScriptedModel::new().status(200, "{\"hello\":1}")).await;
    assert!(matches!(error, Error::Protocol { .. }), "{error}");
    let error =
        error_of(raw("200 OK\r\nContent-Type: text/event-stream", b"").status(200, "")).await;
    assert!(
        error
            .to_string()
            .ends_with("/v1 answered with nothing at all, not with JSON"),
        "{error}"
    );
}

#[tokio::test]
async fn passing_failures_are_tried_again_and_lasting_ones_are_not() {
    let busy = || {
        ScriptedModel::new()
            .status_with(429, "Retry-After: 0\r\n", "{}")
            .status(503, "{}")
            .raw_http(Vec::new())
    };
    let model = busy().says("At last.").start().await;
    let (reply, updates) = ask(&client(&model), &prompt(ToolMode::Native)).await;
    assert_eq!(reply.expect("a reply").text, "At last.");
    let attempts: Vec<u32> = updates
        .iter()
        .filter_map(|update| {
            if let Update::Retrying { attempt, .. } = update {
                Some(*attempt)
            } else {
                None
            }
        })
        .collect();
    assert_eq!(attempts, [1, 2, 3]);

    let error = error_of(
        busy()
            .status(502, "{\"error\":\"still\"}")
            .says("Too late."),
    )
    .await;
    assert_eq!(
        error.to_string(),
        "the model server answered with status 502: still"
    );

    let model = ScriptedModel::new()
        .status(400, "{\"error\":\"bad request\"}")
        .start()
        .await;
    let (reply, _) = ask(&client(&model), &prompt(ToolMode::Native)).await;
    assert!(matches!(reply, Err(Error::Status { code: 400, .. })));
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn a_loading_model_is_waited_for_with_progress() {
    let mut script = ScriptedModel::new();
    for _ in 0..6 {
        script = script.loading();
    }
    let model = script.says("Ready.").start().await;
    let (reply, updates) = ask(&client(&model), &prompt(ToolMode::Native)).await;
    assert_eq!(reply.expect("a reply").text, "Ready.");
    assert_eq!(
        updates
            .iter()
            .filter(|update| matches!(update, Update::Loading { .. }))
            .count(),
        6
    );
}

#[tokio::test]
async fn nothing_is_tried_again_once_text_was_shown() {
    let model = ScriptedModel::new()
        .dies_mid_answer("Half an ans")
        .says("Never.")
        .start()
        .await;
    let (reply, updates) = ask(&client(&model), &prompt(ToolMode::Native)).await;
    let error = reply.expect_err("it broke off");
    assert_eq!(
        error.partial().map(|reply| reply.text.as_str()),
        Some("Half an ans")
    );
    assert!(
        matches!(error.root(), Error::Connection { .. }),
        "{error:?}"
    );
    assert_eq!(updates, vec![Update::Text("Half an ans".into())]);
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn half_a_call_is_nothing_that_was_shown() {
    let event = |delta: Value| {
        format!(
            "data: {}\n\n",
            json!({"choices": [{"index": 0, "delta": delta}]})
        )
    };
    let native = event(
        json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "bash", "arguments": "{\"comm"}}]}),
    );
    let text = event(
        json!({"content": "<tool>{\"tool\": \"bash\", \"arguments\": {}}</tool>\n<tool>{\"to"}),
    );
    let constrained = event(json!({"content": "{\"tool\": \"bash\", \"argu"}));
    for (mode, half) in [
        (ToolMode::Native, native.clone()),
        (ToolMode::Text, text),
        (ToolMode::Constrained, constrained),
    ] {
        let model = ScriptedModel::new()
            .raw_sse(&half)
            .calls("bash", json!({"command": "ls"}))
            .start()
            .await;
        let (reply, updates) = ask(&client(&model), &prompt(mode)).await;
        assert_eq!(reply.expect("a reply").calls.len(), 1, "{mode:?}");
        assert!(
            updates
                .iter()
                .any(|update| matches!(update, Update::Retrying { attempt: 1, .. })),
            "{mode:?}: {updates:?}"
        );
    }
    // With words before it, it is half an answer that somebody has read.
    let model = ScriptedModel::new()
        .raw_sse(&(event(json!({"content": "I look."})) + &native))
        .says("Never.")
        .start()
        .await;
    let (reply, _) = ask(&client(&model), &prompt(ToolMode::Native)).await;
    assert_eq!(
        reply
            .expect_err("it broke off")
            .partial()
            .map(|reply| reply.text.as_str()),
        Some("I look.")
    );
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn a_stall_and_a_long_answer_are_told_apart() {
    let model = ScriptedModel::new()
        .stall(MINUTE)
        .stall(MINUTE)
        .drips(&"word ".repeat(1000), 5, Duration::from_millis(20))
        .start()
        .await;
    let options = Options {
        idle_timeout_s: 0.2,
        retries: 1,
        ..Options::default()
    };
    let (reply, updates) = ask(
        &client_with(&model, options.clone()),
        &prompt(ToolMode::Native),
    )
    .await;
    assert_eq!(
        reply.expect_err("a stall").to_string(),
        "the model server sent nothing for 0.2 s"
    );
    assert!(
        matches!(&updates[..], [Update::Retrying { attempt: 1, .. }]),
        "nobody had heard a word: {updates:?}"
    );

    // Slower than the idle limit as a whole, but never silent for so long.
    let mut shown = String::new();
    let mut on = |update| {
        if let Update::Text(text) = update {
            shown.push_str(&text);
        }
    };
    let deadline = Duration::from_millis(900);
    let reply = client_with(&model, options)
        .stream(
            &prompt(ToolMode::Native),
            &Request::default(),
            &mut on,
            &CancellationToken::new(),
            deadline,
        )
        .await;
    let error = reply.expect_err("too long");
    assert_eq!(
        error.root().to_string(),
        "the model did not finish its answer within 0.9 s"
    );
    assert_eq!(
        error.partial().map(|reply| reply.text.as_str()),
        Some(shown.as_str())
    );
    assert!(shown.len() > 50);
}

#[tokio::test]
async fn an_interrupt_returns_what_there_is_and_waits_for_nothing() {
    let scripts = [
        (
            "while it writes",
            ScriptedModel::new().drips(&"word ".repeat(1000), 5, Duration::from_millis(20)),
            true,
        ),
        (
            "while it is silent",
            ScriptedModel::new().stall(MINUTE),
            false,
        ),
        (
            "while it waits to retry",
            ScriptedModel::new().status_with(429, "Retry-After: 50\r\n", "{}"),
            false,
        ),
    ];
    for (when, script, has_text) in scripts {
        let model = script.start().await;
        let cancel = CancellationToken::new();
        tokio::spawn({
            let cancel = cancel.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(200)).await;
                cancel.cancel();
            }
        });
        let begun = Instant::now();
        let reply = client(&model)
            .stream(
                &prompt(ToolMode::Native),
                &Request::default(),
                &mut |_| {},
                &cancel,
                MINUTE,
            )
            .await
            .expect("a reply");
        assert!(
            begun.elapsed() < Duration::from_secs(50),
            "{when}: {:?}",
            begun.elapsed()
        );
        assert_eq!(
            (reply.finish, reply.text.is_empty()),
            (Finish::Interrupted, !has_text),
            "{when}"
        );
    }
}

#[tokio::test]
async fn a_gigabyte_without_a_line_break_is_refused_in_flat_memory() {
    if !is_alone("llm::a_gigabyte_without_a_line_break_is_refused_in_flat_memory") {
        return;
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let mut buffer = [0; 16 * 1024];
        let _ = stream.read(&mut buffer).await.expect("a request");
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ")
            .await
            .expect("a head");
        let chunk = vec![b'x'; 1 << 20];
        let mut sent = 0_usize;
        while sent < 1 << 30 && stream.write_all(&chunk).await.is_ok() {
            sent += chunk.len();
        }
        sent
    });
    let client = Client::new(
        Endpoint::parse(&format!("http://{address}")).expect("an endpoint"),
        None,
        Options::default(),
    )
    .expect("a client");
    let before = resident();
    let (reply, _) = ask(&client, &prompt(ToolMode::Native)).await;
    let grown = resident().saturating_sub(before);
    assert_eq!(
        reply.expect_err("too large").to_string(),
        "the model server's answer is too large: a line of its stream is over 2097152 bytes"
    );
    assert!(grown < 24 << 20, "{grown} bytes more than before");
    assert!(
        server.await.expect("the server ends") < 40 << 20,
        "the client hung up long before the end"
    );
}

/// Returns the memory of this process, in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    text.split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<usize>().ok())
        .expect("a number")
        * 4096
}

#[tokio::test]
async fn a_redirect_is_named_and_not_followed() {
    let elsewhere = ScriptedModel::new().says("Gotcha.").start().await;
    let location = format!(
        "Location: {}/chat/completions\r\nSet-Cookie: a=b\r\n",
        elsewhere.endpoint()
    );
    for code in [301, 302, 307, 308] {
        let model = ScriptedModel::new()
            .status_with(code, &location, "")
            .start()
            .await;
        let (reply, _) = ask(&client(&model), &prompt(ToolMode::Native)).await;
        assert!(
            matches!(reply, Err(Error::Redirect { code: got, .. }) if got == code),
            "{reply:?}"
        );
    }
    assert_eq!(elsewhere.raw_requests().len(), 0);
}

#[tokio::test]
async fn nothing_compressed_is_asked_for_or_unpacked() {
    let model = ScriptedModel::new()
        .status_with(200, "Content-Encoding: gzip\r\n", "\u{1f}\u{8b}bomb")
        .start()
        .await;
    let (reply, _) = ask(&client(&model), &prompt(ToolMode::Native)).await;
    let error = reply.expect_err("it is not unpacked");
    assert!(
        error
            .to_string()
            .contains("packed with gzip, which was not asked for"),
        "{error}"
    );
    let head = String::from_utf8_lossy(&model.raw_requests()[0]).to_ascii_lowercase();
    for name in ["accept-encoding", "cookie", "referer", "authorization"] {
        assert!(!head.contains(&format!("\n{name}:")), "{head}");
    }
}

#[tokio::test]
async fn a_key_goes_to_its_own_server_only_and_never_into_words() {
    let model = ScriptedModel::new()
        .key("sesame")
        .says("Welcome.")
        .status(500, "{\"error\":\"key sesame is fine\"}")
        .start()
        .await;
    let endpoint = Endpoint::parse(&model.endpoint()).expect("an endpoint");
    let with_key = |key: &str| {
        let options = Options {
            retries: 0,
            ..Options::default()
        };
        Client::new(endpoint.clone(), Some(Secret::new(key)), options).expect("a client")
    };
    let (reply, _) = ask(&with_key("sesame"), &prompt(ToolMode::Native)).await;
    assert_eq!(reply.expect("a reply").text, "Welcome.");
    let (reply, _) = ask(&with_key("sesame"), &prompt(ToolMode::Native)).await;
    assert_eq!(
        reply.expect_err("an error").to_string(),
        "the model server answered with status 500: key *** is fine"
    );
    let (reply, _) = ask(&with_key("other"), &prompt(ToolMode::Native)).await;
    assert!(matches!(
        reply,
        Err(Error::Unauthorized {
            code: Some(401),
            ..
        })
    ));
    let error = with_key("other")
        .probe(&CancellationToken::new(), MINUTE)
        .await
        .expect_err("refused");
    assert!(matches!(error, Error::Unauthorized { .. }));
    assert!(!format!("{:?}", with_key("sesame")).contains("sesame"));
}

#[test]
fn a_key_is_not_sent_over_plain_http_to_another_machine() {
    for address in ["http://192.0.2.1:8080", "http://example.com/v1"] {
        let endpoint = Endpoint::parse(address).expect("an endpoint");
        let error = Client::new(
            endpoint.clone(),
            Some(Secret::new("sesame")),
            Options::default(),
        )
        .expect_err("refused");
        assert!(matches!(error, Error::KeyOverPlainHttp { .. }), "{error}");
        assert!(Client::new(endpoint, None, Options::default()).is_ok());
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_soon() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address");
    let client = Client::new(
        Endpoint::parse(&format!("http://localhost:{}", free.port())).expect("an endpoint"),
        None,
        Options::default(),
    )
    .expect("a client");
    let begun = Instant::now();
    let error = client
        .probe(&CancellationToken::new(), MINUTE)
        .await
        .expect_err("nobody there");
    assert_eq!(
        error.to_string(),
        format!(
            "cannot reach the model server at http://localhost:{}/v1",
            free.port()
        )
    );
    assert!(error.hint().is_some());
    assert!(begun.elapsed() < MINUTE);
}

#[tokio::test]
async fn a_server_behind_a_unix_socket_is_reached() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.sock");
    let listener = tokio::net::UnixListener::bind(&path).expect("a socket");
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let mut buffer = [0; 16 * 1024];
            let n = stream.read(&mut buffer).await.expect("a request");
            assert!(buffer[..n].starts_with(b"GET /props HTTP/1.1\r\n"));
            let body = r#"{"total_slots":4,"model_path":"/m/tiny.gguf","default_generation_settings":{"n_ctx":4096},"chat_template":"{{x}}"}"#;
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(head.as_bytes()).await.expect("an answer");
        }
    });
    let client = Client::new(
        Endpoint::unix(&path),
        Some(Secret::new("sesame")),
        Options::default(),
    )
    .expect("a client");
    // The second question, for `/v1/models`, fails in this script; what `/props` says is enough.
    let probed = client
        .probe(&CancellationToken::new(), Duration::from_secs(2))
        .await
        .expect("a probe");
    assert_eq!(
        (
            probed.model.as_str(),
            probed.context,
            probed.n_slots,
            probed.tools
        ),
        ("tiny", Some(4096), Some(4), ToolMode::Constrained)
    );
}

#[tokio::test]
async fn a_probe_survives_servers_of_all_kinds() {
    let other = ScriptedModel::new().without_props().start().await;
    let probed = client(&other)
        .probe(&CancellationToken::new(), MINUTE)
        .await
        .expect("a probe");
    assert_eq!(
        (
            probed.model.as_str(),
            probed.context,
            probed.tools,
            probed.server
        ),
        ("scripted", None, ToolMode::Native, Server::Other)
    );
    let (reply, _) = ask(&client(&other), &prompt(ToolMode::Native)).await;
    reply.expect("a reply");
    assert!(other.requests()[0].get("cache_prompt").is_none());

    let hostile = ScriptedModel::new()
        .context_value(json!(1_u64 << 63))
        .start()
        .await;
    let probed = client(&hostile)
        .probe(&CancellationToken::new(), MINUTE)
        .await
        .expect("a probe");
    assert_eq!(probed.context, None);
}

/// The run ended with code 6, though all that was missing was what the server would have said of
/// itself.
#[tokio::test]
async fn a_server_that_does_not_say_what_it_is_answers_all_the_same() {
    let silent = ScriptedModel::new()
        .silent_props()
        .says("Here.")
        .start()
        .await;
    let client = client(&silent);
    let probed = client
        .probe(&CancellationToken::new(), Duration::from_secs(4))
        .await
        .expect("a probe");
    assert_eq!(
        (
            probed.model.as_str(),
            probed.context,
            probed.tools,
            probed.server
        ),
        ("scripted", None, ToolMode::Native, Server::Other)
    );
    let (reply, _) = ask(&client, &prompt(ToolMode::Native)).await;
    assert_eq!(reply.expect("a reply").text, "Here.");
}

#[tokio::test]
async fn many_calls_are_bounded_and_ids_are_made_unique() {
    let mut events = String::new();
    for index in 0..1000 {
        let _ = write!(
            events,
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"id\":\"same\",\"function\":{{\"name\":\"bash\",\"arguments\":\"{{\\\"n\\\":{index}}}\"}}}}]}}}}]}}\n\n"
        );
    }
    events.push_str(END);
    let model = ScriptedModel::new().raw_sse(&events).start().await;
    let (reply, _) = ask(&client(&model), &prompt(ToolMode::Native)).await;
    let reply = reply.expect("a reply");
    let ids: std::collections::HashSet<&str> =
        reply.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(
        (reply.calls.len(), ids.len(), reply.fault.is_some()),
        (64, 64, true)
    );
}

#[tokio::test]
async fn the_fixed_beginning_is_read_ahead_by_llama_server_only() {
    let model = ScriptedModel::new().says("").says("Done.").start().await;
    let client = client(&model);
    let mut prompt = Prompt::new("You work.", &tools(), ToolMode::Native);
    client
        .warm(&prompt, &CancellationToken::new(), MINUTE)
        .await
        .expect("nothing to do");
    assert_eq!(
        model.requests().len(),
        0,
        "nothing is known of the server yet"
    );

    client
        .probe(&CancellationToken::new(), MINUTE)
        .await
        .expect("a probe");
    client
        .warm(&prompt, &CancellationToken::new(), MINUTE)
        .await
        .expect("a warm cache");
    prompt.push(&Message::user("Do it."));
    let (reply, _) = ask(&client, &prompt).await;
    assert_eq!(reply.expect("a reply").text, "Done.");
    let bodies = model.raw_bodies();
    assert_eq!(model.requests()[0]["max_tokens"], json!(0));
    let common = bodies[0]
        .iter()
        .zip(&bodies[1])
        .take_while(|(a, b)| a == b)
        .count();
    assert!(
        bodies[0][..common].ends_with(br#"{"role":"user","content":""#),
        "{}",
        String::from_utf8_lossy(&bodies[0][..common])
    );
}

#[tokio::test]
async fn a_whole_conversation_is_counted_as_its_template_writes_it() {
    let cancel = CancellationToken::new();
    let model = ScriptedModel::new().density(1).start().await;
    let (llama, prompt) = (client(&model), prompt(ToolMode::Native));
    assert_eq!(
        llama.count_prompt(&prompt, &cancel).await,
        None,
        "nothing is known of the server yet"
    );
    llama.probe(&cancel, MINUTE).await.expect("a probe");
    let counted = llama.count_prompt(&prompt, &cancel).await;
    let asked = model.sent_to("/apply-template");
    assert_eq!(
        asked,
        [serde_json::from_str::<Value>(&format!("{}]}}", prompt.head())).expect("JSON")]
    );
    let text = format!("{TEMPLATE}{}{}", asked[0]["tools"], asked[0]["messages"]);
    assert_eq!(counted, Some(text.len() as u64));
    assert_eq!(
        model.sent_to("/tokenize"),
        [json!({"content": text, "add_special": true, "parse_special": true})]
    );

    // Where that page is missing the JSON is better than nothing.
    let model = ScriptedModel::new()
        .density(1)
        .without_template_page()
        .start()
        .await;
    let older = client(&model);
    older.probe(&cancel, MINUTE).await.expect("a probe");
    assert_eq!(
        older.count_prompt(&prompt, &cancel).await,
        Some(prompt.n_bytes() as u64)
    );

    let model = ScriptedModel::new().without_props().start().await;
    let other = client(&model);
    other.probe(&cancel, MINUTE).await.expect("a probe");
    assert_eq!(
        (
            other.count_prompt(&prompt, &cancel).await,
            other.count("a", &cancel).await
        ),
        (None, None)
    );
    assert_eq!(
        [model.sent_to("/apply-template"), model.sent_to("/tokenize")],
        [Vec::<Value>::new(), Vec::new()]
    );
}

#[tokio::test]
async fn what_slots_do_is_asked_where_the_server_says_it_and_holds_nobody_up() {
    let cancel = CancellationToken::new();
    let probe = async |script: ScriptedModel| {
        let model = script.start().await;
        let probed = client(&model)
            .probe(&cancel, MINUTE)
            .await
            .expect("a probe");
        (probed.n_slots, probed.n_busy, probed.is_full())
    };
    assert_eq!(probe(ScriptedModel::new()).await, (Some(1), Some(0), false));
    assert_eq!(
        probe(ScriptedModel::new().slots(1, Some(1))).await,
        (Some(1), Some(1), true)
    );
    assert_eq!(
        probe(ScriptedModel::new().slots(3, Some(2))).await,
        (Some(3), Some(2), false)
    );
    assert_eq!(
        probe(ScriptedModel::new().slots(2, None)).await,
        (Some(2), None, false)
    );
    assert_eq!(
        probe(ScriptedModel::new().without_props()).await,
        (None, None, false)
    );
    let begun = Instant::now();
    assert_eq!(
        probe(ScriptedModel::new().silent_slots()).await,
        (Some(1), None, false)
    );
    assert!(begun.elapsed() < MINUTE, "{:?}", begun.elapsed());

    // A server that sleeps has nothing to do, and is not woken to say so.
    let model = ScriptedModel::new().slots(1, None).sleeps().start().await;
    let probed = client(&model)
        .probe(&cancel, MINUTE)
        .await
        .expect("a probe");
    assert_eq!(probed.n_busy, Some(0));
    assert!(
        !model
            .raw_requests()
            .iter()
            .any(|raw| raw.starts_with(b"GET /slots"))
    );
}

#[tokio::test]
async fn a_stall_before_the_first_word_is_tried_again() {
    let model = ScriptedModel::new()
        .stall(MINUTE)
        .says("At last.")
        .start()
        .await;
    let (reply, updates) = ask(
        &client_with(
            &model,
            Options {
                idle_timeout_s: 0.3,
                ..Options::default()
            },
        ),
        &prompt(ToolMode::Native),
    )
    .await;
    assert_eq!(reply.expect("a reply").text, "At last.");
    let reasons = updates.iter().filter_map(|update| {
        if let Update::Retrying { reason, .. } = update {
            Some(reason.as_str())
        } else {
            None
        }
    });
    assert_eq!(
        reasons.collect::<Vec<_>>(),
        ["the model server sent nothing for 0.3 s"]
    );
}

#[tokio::test]
async fn a_gigabyte_of_json_without_a_line_break_is_refused_in_flat_memory() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let mut buffer = [0; 16 * 1024];
        let _ = stream.read(&mut buffer).await.expect("a request");
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"x\": \"")
            .await
            .expect("a head");
        let chunk = vec![b'x'; 1 << 20];
        let mut sent = 0_usize;
        while sent < 1 << 30 && stream.write_all(&chunk).await.is_ok() {
            sent += chunk.len();
        }
        sent
    });
    let client = Client::new(
        Endpoint::parse(&format!("http://{address}")).expect("an endpoint"),
        None,
        Options::default(),
    )
    .expect("a client");
    let before = resident();
    let (reply, _) = ask(&client, &prompt(ToolMode::Native)).await;
    let grown = resident().saturating_sub(before);
    assert_eq!(
        reply.expect_err("too large").to_string(),
        "the model server's answer is too large: its body is over 16777216 bytes"
    );
    assert!(grown < 96 << 20, "{grown} bytes more than before");
    assert!(
        server.await.expect("the server ends") < 64 << 20,
        "the client hung up long before the end"
    );
}

#[tokio::test]
async fn what_a_server_does_not_say_of_its_window_and_its_eyes_the_settings_say() {
    let probe = async |script: ScriptedModel, options: Options| {
        let model = script.start().await;
        let probed = client_with(&model, options)
            .probe(&CancellationToken::new(), MINUTE)
            .await
            .expect("a probe");
        (probed.context, probed.images)
    };
    let set = |context, images| Options {
        context,
        images,
        ..Options::default()
    };
    let other = || ScriptedModel::new().without_props();
    assert_eq!(probe(other(), set(0, None)).await, (None, false));
    assert_eq!(
        probe(other(), set(4096, Some(true))).await,
        (Some(4096), true)
    );
    let llama = || ScriptedModel::new().context(8192).sees();
    assert_eq!(probe(llama(), set(0, None)).await, (Some(8192), true));
    assert_eq!(
        probe(llama(), set(4096, Some(false))).await,
        (Some(4096), false)
    );
    assert_eq!(
        probe(llama(), set(16_384, None)).await,
        (Some(8192), true),
        "the settings make no window larger"
    );
}
