//! Streams as they come on bad days, byte for byte: what is sent when, what closes where.

use std::net::SocketAddr;
use std::time::Duration;

use podbay::event::Kind;
use podbay::event::RunStatus;
use podbay::event::ToolMode;
use podbay::llm;
use podbay::llm::Client;
use podbay::llm::Endpoint;
use podbay::llm::Error;
use podbay::llm::Message;
use podbay::llm::Options;
use podbay::llm::Prompt;
use podbay::llm::Reply;
use podbay::llm::Request;
use podbay::llm::Update;
use podbay::llm::retry::Policy;
use serde_json::Value;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

const MINUTE: Duration = Duration::from_mins(1);
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

/// Answers one request after another with these pieces, each after its pause; then nobody listens any more.
async fn serve(listener: TcpListener, answers: Vec<Vec<(Duration, Vec<u8>)>>) {
    for answer in answers {
        let (mut stream, _) = listener.accept().await.expect("a client");
        stream.set_nodelay(true).expect("a socket option");
        let mut request = Vec::new();
        // All of these requests end with the end of their JSON.
        while !request.ends_with(b"}") {
            if stream.read_buf(&mut request).await.expect("a request") == 0 {
                break;
            }
        }
        for (pause, bytes) in answer {
            tokio::time::sleep(pause).await;
            if stream.write_all(&bytes).await.is_err() {
                break;
            }
        }
        drop(stream.shutdown().await);
    }
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

fn client(address: SocketAddr, options: Options, pause: Duration) -> Client {
    let policy = Policy { pauses: vec![pause], retries: options.retries, loading: pause };
    Client::with_policy(Endpoint::parse(&format!("http://{address}/v1")).expect("an endpoint"), None, options, policy).expect("a client")
}

async fn ask(client: &Client) -> (Result<Reply, Error>, Vec<Update>) {
    let mut prompt = Prompt::new("You work.", &[], ToolMode::Native);
    prompt.push(&Message::user("Do it."));
    let mut updates = Vec::new();
    let reply = client.stream(&prompt, &Request::default(), &mut |update| updates.push(update), &CancellationToken::new(), MINUTE).await;
    (reply, updates)
}

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn said(text: &str) -> String {
    event(&json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
}

fn end() -> String {
    event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})) + "data: [DONE]\n\n"
}

#[tokio::test]
async fn an_answer_that_comes_byte_by_byte_is_read_as_it_is() {
    let text = "Grüße, 世界 🦀";
    let stream = format!("{HEAD}: a comment\r\n\r\n{}{}", said(text).replace('\n', "\r\n"), end());
    let (listener, address) = listen().await;
    let bytes = stream.bytes().map(|byte| (Duration::from_micros(200), vec![byte])).collect();
    let server = tokio::spawn(serve(listener, vec![bytes]));
    let (reply, updates) = ask(&client(address, Options::default(), Duration::ZERO)).await;
    assert_eq!(reply.expect("a reply").text, text);
    assert_eq!(updates, [Update::Text(text.to_owned())]);
    server.await.expect("it ends");
}

#[tokio::test]
async fn a_server_that_still_reads_is_not_idle_and_one_that_says_nothing_is() {
    let reads = |done: u32| event(&json!({"choices": [], "prompt_progress": {"total": 8000, "cache": 0, "processed": done, "time_ms": 1}}));
    // Twelve times the progress, each within the idle limit, together far over it.
    let mut slow = vec![(Duration::ZERO, HEAD.as_bytes().to_vec())];
    slow.extend((1..=12).map(|n| (Duration::from_millis(60), reads(n * 600).into_bytes())));
    slow.push((Duration::from_millis(60), (said("Read.") + &end()).into_bytes()));
    let options = Options { idle_timeout_s: 0.3, retries: 0, ..Options::default() };
    let (listener, address) = listen().await;
    let server =
        tokio::spawn(serve(listener, vec![slow, vec![(Duration::ZERO, HEAD.as_bytes().to_vec()), (Duration::from_secs(2), vec![])]]));
    let client = client(address, options, Duration::ZERO);
    let (reply, updates) = ask(&client).await;
    assert_eq!(reply.expect("a reply").text, "Read.");
    assert_eq!(updates.iter().filter(|update| matches!(update, Update::Prefill { .. })).count(), 12);
    let (reply, _) = ask(&client).await;
    assert!(matches!(reply, Err(Error::IdleTimeout { .. })), "{reply:?}");
    server.await.expect("it ends");
}

#[tokio::test]
async fn a_drip_that_brings_nothing_on_is_a_stall() {
    let options = Options { idle_timeout_s: 0.2, retries: 0, ..Options::default() };
    let drip = |bit: &str, n| {
        let mut answer = vec![(Duration::ZERO, HEAD.as_bytes().to_vec())];
        answer.extend((0..n).map(|_| (Duration::from_millis(50), bit.as_bytes().to_vec())));
        answer.push((Duration::ZERO, (said("Read.") + &end()).into_bytes()));
        answer
    };
    // Ten pings take half a second, sixty of them three: more than ten times the limit.
    for (bit, n, is_stall) in [(said("").as_str(), 12, true), ("data: ", 12, true), (": ping\n\n", 10, false), (": ping\n\n", 60, true)] {
        let (listener, address) = listen().await;
        let server = tokio::spawn(serve(listener, vec![drip(bit, n)]));
        let (reply, _) = ask(&client(address, options.clone(), Duration::ZERO)).await;
        assert_eq!(matches!(reply, Err(Error::IdleTimeout { has_bytes: true, .. })), is_stall, "{bit:?} {n}: {reply:?}");
        if let Err(error) = &reply {
            // Comments alone keep up longer than the limit, and the time without an answer is the one that is named.
            let least = if bit.starts_with(':') { "2." } else { "0.2" };
            let words = error.to_string().replace("2 s", "2.0 s");
            assert!(words.starts_with(&format!("the model server sent nothing that brings its answer on for {least}")), "{bit:?}: {words}");
        }
        assert_eq!(reply.is_ok(), !is_stall, "{bit:?} {n}");
        server.await.expect("it ends");
    }
}

#[tokio::test]
async fn every_failure_that_may_pass_is_tried_again() {
    for code in [408, 429, 500, 502, 503, 504] {
        let model = ScriptedModel::new().status(code, "{\"error\":\"busy\"}").says("Here.").start().await;
        let (reply, updates) = ask(&client(model.address(), Options::default(), Duration::from_millis(5))).await;
        assert_eq!(reply.expect("a reply").text, "Here.", "{code}");
        assert!(matches!(&updates[0], Update::Retrying { attempt: 1, .. }), "{code}: {updates:?}");
    }
    for code in [400, 404, 413, 422] {
        let model = ScriptedModel::new().status(code, "{\"error\":\"no\"}").says("Never.").start().await;
        let (reply, _) = ask(&client(model.address(), Options::default(), Duration::from_millis(5))).await;
        assert!(reply.is_err() && model.requests().len() == 1, "{code}");
    }
}

#[tokio::test]
async fn a_server_that_is_started_anew_is_waited_for() {
    let (listener, address) = listen().await;
    drop(listener);
    let server = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let listener = TcpListener::bind(address).await.expect("the port is free again");
        serve(listener, vec![vec![(Duration::ZERO, format!("{HEAD}{}{}", said("Back."), end()).into_bytes())]]).await;
    });
    let options = Options { retries: 60, ..Options::default() };
    let (reply, updates) = ask(&client(address, options, Duration::from_millis(40))).await;
    assert_eq!(reply.expect("a reply").text, "Back.");
    assert!(updates.iter().any(|update| matches!(update, Update::Retrying { .. })));
    server.await.expect("it ends");
}

#[tokio::test]
async fn what_a_server_calls_its_stream_does_not_matter() {
    for kind in
        ["text/plain", "application/octet-stream", "text/event-stream; charset=utf-8", "application/json", "text/html; charset=utf-8"]
    {
        let stream = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n{}{}", said("Here."), end());
        let model = ScriptedModel::new().raw_http(stream).start().await;
        let (reply, _) = ask(&client(model.address(), Options::default(), Duration::ZERO)).await;
        assert_eq!(reply.expect("a reply").text, "Here.", "{kind}");
    }
}

#[tokio::test]
async fn a_call_that_has_run_is_not_run_again_when_what_follows_fails() {
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": "echo once >> log"}))
        .status_with(503, "Retry-After: 0\r\n", "{}")
        .raw_http(Vec::new())
        .dies_mid_answer("Half an ans")
        .start()
        .await;
    let llm = llm::Options { retries: 3, ..llm::Options::default() };
    let desk = Desk::new(model, Wishes { llm, ..Wishes::default() }).await;
    let outcome = desk.work("write").await;
    assert_eq!(outcome.status, RunStatus::Failed, "what was shown is not asked for again");
    assert_eq!((desk.reached(), outcome.tool_calls), (vec!["bash".to_owned()], 1));
    assert_eq!(std::fs::read_to_string(desk.guest.path("log")).expect("it ran"), "once\n");
    let retried = desk.kinds().iter().filter(|kind| matches!(kind, Kind::Warning { message } if message.contains("trying again"))).count();
    assert_eq!((retried, desk.model.requests().len()), (2, 4));
}

#[tokio::test]
async fn calls_that_come_in_turns_without_ids_are_each_put_together() {
    let piece = |index: u32, function: Value| {
        event(&json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, "function": function}]}}]}))
    };
    let stream = [
        piece(0, json!({"name": "bash"})),
        piece(1, json!({"name": "bash"})),
        piece(1, json!({"arguments": "{\"command\": \"echo "})),
        piece(0, json!({"arguments": "{\"command\": \"echo "})),
        piece(0, json!({"arguments": "first\"}"})),
        piece(1, json!({"arguments": "second\"}"})),
        piece(2, json!({"name": "bash", "arguments": {"command": "echo third"}})),
        end(),
    ];
    let desk = Desk::new(ScriptedModel::new().raw_sse(&stream.concat()).says("Done.").start().await, Wishes::default()).await;
    let outcome = desk.work("echo").await;
    assert_eq!((outcome.status, outcome.tool_calls), (RunStatus::Completed, 3));
    for (result, word) in desk.results(1).iter().zip(["first", "second", "third"]) {
        assert!(result.starts_with(word), "{result}");
    }
    let usage = outcome.usage;
    assert!(usage.prompt > 0 && usage.completion > 0, "what nobody counted is estimated: {usage:?}");
}

#[tokio::test]
async fn a_character_that_two_chunks_share_is_written_as_one() {
    let chunk = |arguments: &str| {
        let call = format!("{{\"index\": 0, \"id\": \"c1\", \"function\": {{\"name\": \"write_file\", \"arguments\": \"{arguments}\"}}}}");
        format!("data: {{\"choices\": [{{\"index\": 0, \"delta\": {{\"tool_calls\": [{call}]}}}}]}}\n\n")
    };
    let events =
        [chunk(r#"{\"path\": \"a.txt\", \"content\": \"one \ud83d"#), chunk(r#"\ude00 two\"}"#), "data: [DONE]\n\n".to_owned()].concat();
    let desk = Desk::new(ScriptedModel::new().raw_sse(&events).says("Done.").start().await, Wishes::default()).await;
    assert_eq!(desk.work("write it").await.status, RunStatus::Completed);
    assert_eq!(std::fs::read_to_string(desk.guest.path("a.txt")).expect("written"), "one \u{1f600} two");
}

#[tokio::test]
async fn a_server_that_vanishes_between_two_turns_is_waited_for_and_nothing_is_lost() {
    let model = ScriptedModel::new().calls("bash", json!({"command": "echo once >> log"})).says("First.").start().await;
    let llm = llm::Options { retries: 6, ..llm::Options::default() };
    let mut desk = Desk::new(model, Wishes { llm, ..Wishes::default() }).await;
    assert_eq!(desk.work("write").await.response, "First.");
    let address = desk.model.address();
    let before = desk.model.heads();
    // It goes with its port, and something else in its place listens there a moment later.
    drop(std::mem::replace(&mut desk.model, ScriptedModel::new().start().await));
    let server = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(400)).await;
        let listener = TcpListener::bind(address).await.expect("the port is free again");
        let (mut stream, _) = listener.accept().await.expect("a client");
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            assert!(stream.read_buf(&mut request).await.expect("a request") > 0, "the whole request");
        }
        stream.write_all(format!("{HEAD}{}{}", said("Second."), end()).as_bytes()).await.expect("an answer");
        drop(stream.shutdown().await);
        request
    });
    let outcome = desk.work("and again").await;
    assert_eq!((outcome.status, outcome.response.as_str()), (RunStatus::Completed, "Second."));
    assert!(desk.kinds().iter().any(|kind| matches!(kind, Kind::Warning { message } if message.contains("trying again"))));
    let request = server.await.expect("it ends");
    let sent = before.last().expect("a request");
    assert!(request.windows(sent.len()).any(|part| part == sent), "the conversation goes on where it was");
    assert_eq!(std::fs::read_to_string(desk.guest.path("log")).expect("it ran"), "once\n");
}

#[tokio::test]
async fn an_error_in_a_stream_is_the_answer_whatever_came_before_it() {
    let error = json!({"code": 500, "message": "the model ran out of memory"});
    for (shape, text) in [
        ("an event", format!("event: error\ndata: {error}\n\n")),
        ("an event around an object", format!("event: error\ndata: {}\n\n", json!({ "error": error }))),
        ("an object", event(&json!({ "error": error }))),
        ("words", event(&json!({"error": "the model ran out of memory"}))),
    ] {
        for before in ["", "Half an ans"] {
            let words = if before.is_empty() { String::new() } else { said(before) };
            let model = ScriptedModel::new().raw_sse(&(words + &text + &said("never") + &end())).start().await;
            let options = Options { retries: 0, ..Options::default() };
            let (reply, _) = ask(&client(model.address(), options, Duration::ZERO)).await;
            let error = reply.expect_err("an error");
            assert!(error.root().to_string().contains("ran out of memory"), "{shape}: {error}");
            let partial = error.partial().map(|reply| reply.text.clone());
            assert_eq!(partial.unwrap_or_default(), before, "{shape}");
        }
    }
}

#[tokio::test]
async fn some_chunks_that_are_none_are_passed_over_and_many_are_an_error() {
    for (n, is_answer) in [(50, true), (51, false)] {
        let stream = "data: {nonsense\n\n".repeat(n) + &said("Here.") + &end();
        let model = ScriptedModel::new().raw_sse(&stream).start().await;
        let (reply, _) = ask(&client(model.address(), Options::default(), Duration::ZERO)).await;
        match reply {
            Ok(reply) => assert!(is_answer && reply.text == "Here.", "{n}"),
            Err(error) => assert!(!is_answer && matches!(error, Error::Protocol { .. }), "{n}: {error}"),
        }
    }
}

#[tokio::test]
async fn calls_without_an_index_are_told_apart_and_carried_out() {
    let piece = |call: Value| event(&json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}));
    let echo = |word: &str| format!("{{\"command\": \"echo {word}\"}}");
    let stream = [
        piece(json!({"id": "a", "function": {"name": "bash", "arguments": echo("first")}})),
        piece(json!({"id": "b", "function": {"name": "bash", "arguments": "{\"command\": "}})),
        piece(json!({"function": {"arguments": "\"echo second\"}"}})),
        piece(json!({"index": null, "id": null, "function": {"name": "bash", "arguments": echo("third")}})),
        end(),
    ];
    let desk = Desk::new(ScriptedModel::new().raw_sse(&stream.concat()).says("Done.").start().await, Wishes::default()).await;
    let outcome = desk.work("echo").await;
    assert_eq!((outcome.status, outcome.tool_calls), (RunStatus::Completed, 3));
    for (result, word) in desk.results(1).iter().zip(["first", "second", "third"]) {
        assert!(result.starts_with(word), "{result}");
    }
}
