//! Servers over HTTP: what they answer, and what they may not do. The gateway is a socket of this
//! process here, at whose other end the server is.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use podbay::event::Seconds;
use podbay::mcp::ByteStream;
use podbay::mcp::Later;
use podbay::mcp::Opener;
use podbay::mcp::ServerEnd;
use podbay::mcp::ServerOptions;
use podbay::mcp::ServerState;
use podbay::mcp::Servers;
use podbay::mcp::Source;
use serde_json::Map;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::alone;
use crate::support::mcp_http::HttpAnswer;
use crate::support::mcp_http::HttpServer;
use crate::support::mcp_http::event_answer;
use crate::support::mcp_http::json_answer;
use crate::support::mcp_http::result;
use crate::support::mcp_http::status_answer;

/// The way to a server; it has one variable of the user.
struct Way {
    server: HttpServer,
    n_connections: AtomicUsize,
    /// Why there is no gateway.
    problem: Mutex<Option<&'static str>>,
}

impl Opener for Way {
    fn open<'a>(
        &'a self,
        _server: &'a ServerOptions,
        _cancel: &'a CancellationToken,
    ) -> Later<'a, Result<ByteStream, String>> {
        unreachable!("it is no program")
    }

    fn gateway<'a>(
        &'a self,
        name: &'a str,
        _cancel: &'a CancellationToken,
    ) -> Later<'a, Result<ByteStream, String>> {
        assert_eq!(name, "x");
        if let Some(problem) = *self.problem.lock().expect("no test panics here") {
            return Box::pin(std::future::ready(Err(problem.to_owned())));
        }
        self.n_connections.fetch_add(1, Ordering::Relaxed);
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let server = self.server.clone();
        // A client that hangs up is no fault of the server's.
        std::thread::spawn(move || drop(server.serve(theirs)));
        ours.set_nonblocking(true).expect("set");
        let ours = tokio::net::UnixStream::from_std(ours).expect("a stream");
        let (reader, writer) = ours.into_split();
        Box::pin(std::future::ready(Ok(ByteStream {
            reader: Box::new(reader),
            writer: Box::new(writer),
            end: ServerEnd::default(),
            root: String::new(),
        })))
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name == "MINE").then(|| "sesame".to_owned())
    }
}

struct Session {
    way: Arc<Way>,
    servers: Servers,
}

impl Session {
    async fn begin(server: &HttpServer, options: ServerOptions) -> Self {
        let way = Arc::new(Way {
            server: server.clone(),
            n_connections: AtomicUsize::new(0),
            problem: Mutex::default(),
        });
        let named = [("x".to_owned(), options, Source::Settings)];
        let opener = Arc::clone(&way) as Arc<dyn Opener>;
        let servers = Servers::new(&named, Duration::from_secs(60), opener);
        let tools = servers.begin(&CancellationToken::new()).await;
        servers.offer(tools);
        Self { way, servers }
    }

    async fn call(&self, text: &str) -> (bool, String) {
        let arguments = Map::from_iter([("text".to_owned(), text.into())]);
        let cancel = CancellationToken::new();
        let called = self
            .servers
            .call_tool("mcp__x__echo", arguments, &mut alone(&mut |_| {}), &cancel)
            .await;
        (called.is_ok, called.text)
    }

    /// Returns why it is of no use.
    fn problem(&self) -> String {
        match &self.servers.status()[0].state {
            ServerState::Failed { why } => why.clone(),
            other => format!("{other:?}"),
        }
    }
}

fn options() -> ServerOptions {
    ServerOptions {
        url: Some("http://mcp.example:8080/a/mcp?b=c".to_owned()),
        timeout: Seconds::new(20),
        ..ServerOptions::default()
    }
}

fn honest() -> HttpServer {
    HttpServer::new(|_| None)
}

fn redirect() -> HttpAnswer {
    HttpAnswer {
        headers: vec![("Location", "http://other.example/".to_owned())],
        ..status_answer("307 Temporary Redirect", "")
    }
}

/// A server that is honest but for what it answers to calls.
fn on_call(
    answer: impl Fn(&crate::support::mcp_http::HttpRequest) -> HttpAnswer + Send + Sync + 'static,
) -> HttpServer {
    HttpServer::new(move |request| {
        (request.body["method"] == "tools/call").then(|| answer(request))
    })
}

#[tokio::test]
async fn a_server_over_http_is_greeted_and_called_and_keeps_its_session() {
    let server = honest();
    let session = Session::begin(&server, options()).await;
    for n in 0..3 {
        let text = format!("call {n}");
        assert_eq!(
            session.call(&text).await,
            (true, format!("it heard {text}"))
        );
    }
    let requests = server.requests();
    let first = &requests[0];
    assert_eq!(
        (first.method.as_str(), first.target.as_str()),
        ("POST", "http://mcp.example:8080/a/mcp?b=c")
    );
    assert_eq!(first.headers["host"], "mcp.example:8080");
    assert!(
        first.headers["accept"].contains("application/json")
            && first.headers["accept"].contains("text/event-stream")
    );
    assert!(
        requests[1..]
            .iter()
            .all(|request| request.headers["mcp-session-id"] == "s1"
                && request.headers["mcp-protocol-version"] == "2025-06-18"),
        "{requests:?}"
    );
    // Connections are used again.
    let n_connections = session.way.n_connections.load(Ordering::Relaxed);
    assert!(
        n_connections < requests.len(),
        "{n_connections} of {}",
        requests.len()
    );
    // Nothing listens between calls.
    assert!(requests.iter().all(|request| request.method != "GET"));
}

#[tokio::test]
async fn a_session_that_the_server_has_forgotten_is_begun_again() {
    let n_calls = AtomicUsize::new(0);
    let server = HttpServer::new(move |request| {
        let is_first =
            request.body["method"] == "tools/call" && n_calls.fetch_add(1, Ordering::Relaxed) == 0;
        is_first.then(|| status_answer("404 Not Found", "no such session"))
    });
    let session = Session::begin(&server, options()).await;
    assert_eq!(session.call("a").await, (true, "it heard a".to_owned()));
    let messages = server.messages();
    let n_greetings = messages.iter().filter(|name| *name == "initialize").count();
    assert_eq!(n_greetings, 2, "{messages:?}");
}

#[tokio::test]
async fn what_a_server_over_http_does_wrong_is_said_and_bounded() {
    let huge = "x".repeat(5 << 20);
    let cases: Vec<(HttpServer, &str)> = vec![
        (
            on_call(|_| status_answer("500 Internal Server Error", "out\u{1b}[2J of order")),
            "HTTP 500 Internal Server Error: out [2J of order",
        ),
        (
            on_call(|_| status_answer("401 Unauthorized", "who are you")),
            "`bearer_token_env`",
        ),
        (
            on_call(|_| redirect()),
            "it leads to http://other.example/, which is not followed",
        ),
        (
            on_call(|_| status_answer("200 OK", "<html>")),
            "of the type `text/plain`",
        ),
        (
            on_call({
                let huge = huge.clone();
                move |request| {
                    json_answer(&result(
                        request,
                        &json!({"content": [{"type": "text", "text": huge}]}),
                    ))
                }
            }),
            "its answer is over 4096 KiB",
        ),
        (
            on_call(move |request| {
                event_answer(&[result(
                    request,
                    &json!({"content": [{"type": "text", "text": huge}]}),
                )])
            }),
            "",
        ),
        (
            on_call(|_| {
                let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}});
                event_answer(&vec![note; 20_000])
            }),
            "",
        ),
    ];
    for (server, words) in cases {
        let options = ServerOptions {
            timeout: Seconds::new(3),
            ..options()
        };
        let session = Session::begin(&server, options).await;
        let (is_ok, text) = session.call("a").await;
        assert!(!is_ok && text.contains(words), "{words}: {text:.300}");
        assert!(text.len() < 2000, "{} bytes", text.len());
    }
    // An error of the protocol is one of the call, whatever the status.
    let server = on_call(|request| HttpAnswer {
        status: "400 Bad Request",
        ..json_answer(
            &json!({"jsonrpc": "2.0", "id": request.body["id"], "error": {"code": -32602, "message": "no such text"}}),
        )
    });
    let session = Session::begin(&server, options()).await;
    let (is_ok, text) = session.call("a").await;
    assert!(
        !is_ok && text.contains("it answered with an error: no such text"),
        "{text}"
    );
}

type Refusal = fn() -> HttpAnswer;

/// One answer that is no message is an error of that call, and no end of the server: the next call
/// is made in the same session, at once.
#[tokio::test]
async fn a_request_that_is_refused_once_is_no_end_of_the_server() {
    let refusals: [(Refusal, &str); 3] = [
        (
            || status_answer("401 Unauthorized", "who are you"),
            "the call failed: HTTP 401 Unauthorized: `bearer_token_env`",
        ),
        (
            || status_answer("503 Service Unavailable", "later"),
            "HTTP 503 Service Unavailable: later",
        ),
        (
            redirect,
            "HTTP 307 Temporary Redirect: it leads to http://other.example/",
        ),
    ];
    for (refusal, words) in refusals {
        let n_calls = AtomicUsize::new(0);
        let server = HttpServer::new(move |request| {
            let is_early = request.body["method"] == "tools/call"
                && n_calls.fetch_add(1, Ordering::Relaxed) < 3;
            is_early.then(refusal)
        });
        let session = Session::begin(&server, options()).await;
        for _ in 0..3 {
            let (is_ok, text) = session.call("a").await;
            assert!(!is_ok && text.contains(words), "{text}");
            let state = &session.servers.status()[0].state;
            assert_eq!(*state, ServerState::Running);
        }
        assert_eq!(session.call("b").await, (true, "it heard b".to_owned()));
        let messages = server.messages();
        let n_greetings = messages.iter().filter(|name| *name == "initialize").count();
        assert_eq!(n_greetings, 1, "{messages:?}");
    }
}

#[tokio::test]
async fn an_answer_to_another_request_is_not_this_one_s() {
    let other = |id: serde_json::Value| json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "stray"}]}});
    let server = on_call(move |request| {
        let id = request.body["id"].as_i64().expect("a number");
        event_answer(&[
            other(json!(id + 100)),
            other(json!("nobody's")),
            json!({"jsonrpc": "2.0", "id": id + 200, "error": {"code": 1, "message": "stray"}}),
            result(
                request,
                &json!({"content": [{"type": "text", "text": "mine"}]}),
            ),
        ])
    });
    let session = Session::begin(&server, options()).await;
    assert_eq!(session.call("a").await, (true, "mine".to_owned()));
    // As text, as some servers have it, it is the same id.
    let server = on_call(|request| {
        let id = request.body["id"].to_string();
        event_answer(&[
            json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "mine"}]}}),
        ])
    });
    let session = Session::begin(&server, options()).await;
    assert_eq!(session.call("a").await, (true, "mine".to_owned()));
    // Without a stream there is nothing to wait for.
    let server = on_call(move |_| json_answer(&other(json!(4711))));
    let session = Session::begin(&server, options()).await;
    let (is_ok, text) = session.call("a").await;
    assert!(
        !is_ok && text.contains("its answer is to another request"),
        "{text}"
    );
}

#[tokio::test]
async fn a_key_is_sent_only_with_tls_and_only_where_its_variable_is_set() {
    let with_key = |variable: &str| ServerOptions {
        bearer_token_env: Some(variable.to_owned()),
        ..options()
    };
    for (options, words) in [
        (with_key("MINE"), "no key is sent without"),
        (
            with_key("OTHER"),
            "the variable `OTHER`, which holds its key, is not set",
        ),
    ] {
        let server = honest();
        let session = Session::begin(&server, options).await;
        assert!(session.problem().contains(words), "{}", session.problem());
        assert!(server.requests().is_empty());
    }
}

#[tokio::test]
async fn where_there_is_no_gateway_the_reason_is_given_and_the_next_call_tries_again() {
    let server = honest();
    let session = Session::begin(&server, options()).await;
    *session.way.problem.lock().expect("no test panics here") = Some("there is no gateway today");
    let idle_ends = session.servers.close();
    idle_ends.await;
    let (is_ok, text) = session.call("a").await;
    assert!(
        !is_ok && text.contains("there is no gateway today"),
        "{text}"
    );
    *session.way.problem.lock().expect("no test panics here") = None;
    assert_eq!(session.call("b").await, (true, "it heard b".to_owned()));
}
