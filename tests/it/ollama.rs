//! A server with Ollama's own API: what is sent to it, and how its answers are read.

use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use podbay::event::ToolCall;
use podbay::event::ToolMode;
use podbay::event::Usage;
use podbay::llm::Api;
use podbay::llm::Client;
use podbay::llm::Endpoint;
use podbay::llm::Error;
use podbay::llm::Finish;
use podbay::llm::Message;
use podbay::llm::Options;
use podbay::llm::Prompt;
use podbay::llm::Reply;
use podbay::llm::Request;
use podbay::llm::ToolSpec;
use podbay::llm::Update;
use podbay::llm::retry::RetryPolicy;
use serde_json::Value;
use serde_json::json;
use tokio_util::sync::CancellationToken;

const MINUTE: Duration = Duration::from_mins(1);

/// Answers each request for a chat with the next of these, and hangs up.
struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Server {
    fn start(chats: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let seen = Arc::<Mutex<Vec<(String, Value)>>>::default();
        let told = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut chats = chats.into_iter();
            // Ends with the program; each test has its own.
            for stream in listener.incoming().flatten() {
                drop(serve(stream, &mut chats, &told));
            }
        });
        Self { address, seen }
    }

    fn client(&self, options: Options) -> Client {
        let policy = RetryPolicy {
            pauses: vec![Duration::from_millis(5)],
            retries: options.retries,
            ..RetryPolicy::default()
        };
        let options = Options {
            api: Api::Ollama,
            ..options
        };
        let endpoint = Endpoint::parse(&format!("http://{}", self.address)).expect("an endpoint");
        Client::with_policy(endpoint, None, options, policy).expect("a client")
    }

    /// Returns the bodies that were sent to this path.
    fn sent_to(&self, path: &str) -> Vec<Value> {
        let seen = self
            .seen
            .lock()
            .expect("no test panics while it holds this lock");
        seen.iter()
            .filter(|(to, _)| to == path)
            .map(|(_, body)| body.clone())
            .collect()
    }
}

fn serve(
    mut stream: TcpStream,
    chats: &mut impl Iterator<Item = String>,
    seen: &Mutex<Vec<(String, Value)>>,
) -> std::io::Result<()> {
    let (mut received, mut block) = (Vec::new(), [0; 4096]);
    let body = loop {
        let n_read = stream.read(&mut block)?;
        received.extend_from_slice(&block[..n_read]);
        let text = String::from_utf8_lossy(&received);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if n_read == 0 {
                return Ok(());
            }
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.trim().parse::<usize>().ok())?
        });
        if body.len() >= length.unwrap_or(0) {
            break body.to_owned();
        }
    };
    let text = String::from_utf8_lossy(&received).into_owned();
    let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
    seen.lock()
        .expect("no test panics while it holds this lock")
        .push((
            path.clone(),
            serde_json::from_str(&body).unwrap_or_default(),
        ));
    let answer = match path.as_str() {
        "/api/tags" => page(&json!({"models": [{"name": "small:1b"}]})),
        "/api/show" => page(&json!({
            "capabilities": ["completion", "tools"],
            "model_info": {"llama.context_length": 131_072},
            "parameters": "num_ctx 16384",
        })),
        "/api/chat" => chats
            .next()
            .unwrap_or_else(|| status(500, "the script is over")),
        _ => status(404, "404 page not found"),
    };
    stream.write_all(answer.as_bytes())
}

fn page(body: &Value) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nConnection: close\r\n\r\n{body}"
    )
}

fn status(code: u16, error: &str) -> String {
    let body = json!({ "error": error });
    format!(
        "HTTP/1.1 {code} No\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{body}"
    )
}

/// A stream of these lines.
fn stream(lines: &[Value]) -> String {
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n\r\n{lines}"
    )
}

fn says(message: &Value) -> Value {
    json!({"model": "small:1b", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": false})
}

fn done(reason: &str) -> Value {
    json!({
        "model": "small:1b", "message": {"role": "assistant", "content": ""}, "done": true,
        "done_reason": reason, "prompt_eval_count": 26, "eval_count": 9, "eval_duration": 4_709_213_000_u64,
    })
}

fn tools() -> Vec<ToolSpec> {
    vec![ToolSpec {
        name: "bash".into(),
        description: "Runs.".into(),
        parameters: json!({"type": "object", "properties": {"command": {"type": "string"}}}),
    }]
}

fn prompt(client: &Client, mode: ToolMode) -> Prompt {
    let mut prompt = Prompt::new("You work.", &tools(), mode)
        .with_dialect(client.dialect())
        .with_thinking_replayed(true);
    prompt.push(&Message::user("Hi"));
    prompt
}

async fn ask(client: &Client, prompt: &Prompt) -> (Result<Reply, Error>, Vec<Update>) {
    let mut updates = Vec::new();
    let mut on = |update| updates.push(update);
    let cancel = CancellationToken::new();
    let request = Request::default();
    let reply = client
        .stream(prompt, &request, &mut on, &cancel, MINUTE)
        .await;
    (reply, updates)
}

#[tokio::test]
async fn the_window_of_an_ollama_model_is_set_with_each_request() {
    let chat = || {
        stream(&[
            says(&json!({"role": "assistant", "content": "Hi."})),
            done("stop"),
        ])
    };
    for (wanted, expected) in [(0, 16_384), (4096, 4096)] {
        let server = Server::start(vec![chat()]);
        let client = server.client(Options {
            context: wanted,
            temperature: Some(0.5),
            ..Options::default()
        });
        let probed = client.probe(&CancellationToken::new(), MINUTE).await;
        let probed = probed.expect("a probe");
        assert_eq!(
            (probed.model.as_str(), probed.context, probed.tools),
            ("small:1b", Some(expected), ToolMode::Native)
        );
        assert_eq!(server.sent_to("/api/show"), [json!({"model": "small:1b"})]);
        ask(&client, &prompt(&client, ToolMode::Native))
            .await
            .0
            .expect("an answer");
        let body = server.sent_to("/api/chat").remove(0);
        assert_eq!(
            body,
            json!({
                "tools": [{"type": "function", "function": {"name": "bash", "description": "Runs.", "parameters": tools()[0].parameters}}],
                "messages": [
                    {"role": "system", "content": "You work."},
                    {"role": "user", "content": "Hi"},
                ],
                "model": "small:1b",
                "stream": true,
                "options": {"num_ctx": expected, "num_predict": expected / 4, "temperature": 0.5},
            })
        );
    }
}

#[tokio::test]
async fn an_ollama_answer_is_streamed_with_thoughts_calls_and_usage() {
    let call = |command: &str| json!({"function": {"index": 0, "name": "bash", "arguments": {"command": command}}});
    let server = Server::start(vec![
        stream(&[
            says(&json!({"role": "assistant", "content": "", "thinking": "Look "})),
            says(&json!({"role": "assistant", "content": "", "thinking": "first."})),
            says(&json!({"role": "assistant", "content": "I "})),
            says(&json!({"role": "assistant", "content": "look."})),
            says(&json!({"role": "assistant", "content": "", "tool_calls": [call("ls")]})),
            says(&json!({"role": "assistant", "content": "", "tool_calls": [call("pwd")]})),
            done("stop"),
        ]),
        // One body, the last line not ended.
        page(
            &json!({"message": {"role": "assistant", "content": "Done."}, "done": true, "done_reason": "length"}),
        ),
    ]);
    let client = server.client(Options::default());
    let mut prompt = prompt(&client, ToolMode::Native);
    let (reply, updates) = ask(&client, &prompt).await;
    let reply = reply.expect("an answer");
    let text = |update: &Update| match update {
        Update::Text(text) => Some(format!("text {text}")),
        Update::Thinking(text) => Some(format!("thinking {text}")),
        Update::CallStarted { name } => Some(format!("call {name}")),
        _ => None,
    };
    assert_eq!(
        updates.iter().filter_map(text).collect::<Vec<_>>(),
        [
            "thinking Look ",
            "thinking first.",
            "text I ",
            "text look.",
            "call bash",
            "call bash"
        ]
    );
    assert_eq!(
        (reply.text.as_str(), reply.thinking.as_str(), reply.finish),
        ("I look.", "Look first.", Finish::ToolCalls)
    );
    let usage = Usage {
        prompt: 26,
        completion: 9,
        ..Usage::default()
    };
    assert_eq!(reply.usage, usage);
    let calls: Vec<(&str, &str)> = reply
        .calls
        .iter()
        .map(|call| (call.name.as_str(), call.arguments.as_str()))
        .collect();
    assert_eq!(
        calls,
        [
            ("bash", r#"{"command":"ls"}"#),
            ("bash", r#"{"command":"pwd"}"#)
        ]
    );
    assert_ne!(reply.calls[0].id, reply.calls[1].id, "ids are unique");

    prompt.push(&reply.message());
    for call in &reply.calls {
        prompt.push(&Message::ToolResult {
            call: call.id.clone(),
            name: call.name.clone(),
            text: "a.txt".into(),
            is_error: false,
        });
    }
    let (second, _) = ask(&client, &prompt).await;
    let second = second.expect("an answer");
    assert_eq!(
        (second.text.as_str(), second.finish),
        ("Done.", Finish::Length)
    );
    let bodies = server.sent_to("/api/chat");
    let messages = |at: usize| bodies[at]["messages"].as_array().expect("messages").clone();
    let (before, after) = (messages(0), messages(1));
    assert_eq!(after[..before.len()], before, "the prompt only grows");
    let sent = |call: &ToolCall, command: &str| json!({"id": call.id, "function": {"name": "bash", "arguments": {"command": command}}});
    let result = |call: &ToolCall| json!({"role": "tool", "content": "a.txt", "tool_name": "bash", "tool_call_id": call.id});
    assert_eq!(
        after[before.len()..],
        [
            json!({"role": "assistant", "content": "I look.", "thinking": "Look first.", "tool_calls": [sent(&reply.calls[0], "ls"), sent(&reply.calls[1], "pwd")]}),
            result(&reply.calls[0]),
            result(&reply.calls[1]),
        ]
    );
}

#[tokio::test]
async fn an_ollama_model_without_tools_is_asked_by_schema_and_sees_images() {
    let answer = json!({"tool": "bash", "arguments": {"command": "ls"}}).to_string();
    let server = Server::start(vec![stream(&[
        says(&json!({"role": "assistant", "content": answer})),
        done("stop"),
    ])]);
    let client = server.client(Options::default());
    let mut prompt = prompt(&client, ToolMode::Constrained);
    prompt.push(&Message::image("a.png", "image/png", b"abc"));
    let reply = ask(&client, &prompt).await.0.expect("an answer");
    assert_eq!(reply.calls[0].name, "bash");
    let body = server.sent_to("/api/chat").remove(0);
    assert_eq!(body["format"]["anyOf"].as_array().map(Vec::len), Some(2));
    let user = body["messages"]
        .as_array()
        .and_then(|all| all.last())
        .cloned();
    assert_eq!(
        user,
        Some(json!({"role": "user", "content": "Hi\n\na.png", "images": ["YWJj"]}))
    );
}

#[tokio::test]
async fn the_errors_of_an_ollama_server_are_reported() {
    let missing = "model 'small:1b' not found";
    let part = says(&json!({"role": "assistant", "content": "I "}));
    let server = Server::start(vec![
        status(404, missing),
        stream(&[json!({"error": "an error was encountered while running the model"})]),
        stream(&[part.clone(), json!({"error": "unexpected EOF"})]),
        stream(&[part]),
    ]);
    let client = server.client(Options {
        retries: 0,
        ..Options::default()
    });
    let prompt = prompt(&client, ToolMode::Native);
    let mut errors = Vec::new();
    for _ in 0..4 {
        let error = ask(&client, &prompt).await.0.expect_err("an error");
        errors.push(error);
    }
    assert!(
        matches!(&errors[0], Error::Status { code: 404, message, .. } if message.contains(missing)),
        "{:?}",
        errors[0]
    );
    assert!(
        errors[1].to_string().contains("while running the model"),
        "{:?}",
        errors[1]
    );
    for error in &errors[2..] {
        assert!(
            matches!(error, Error::BrokenOff { partial, .. } if partial.text.trim() == "I"),
            "{error:?}"
        );
    }
}
