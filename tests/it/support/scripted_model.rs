//! A model server that says what a test tells it to say, with llama-server's manners: `/props`, `/v1/models`, `/tokenize`,
//! `/apply-template`, and `/v1/chat/completions` with and without a stream.
//!
//! ```ignore
//! let model = ScriptedModel::new().calls("bash", json!({"command": "ls"})).says("Done.").start().await;
//! run_something(model.endpoint());
//! assert_eq!(model.requests().len(), 2);
//! ```
//!
//! After the script it says `DONE`. It has a thread and a runtime of its own, so a test may block on a child process meanwhile. It
//! checks the conversation of each request; what is wrong with it is a fault, and dropping a [`Running`] with faults fails the test.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::TcpStream;

const WORD: usize = 24;

/// What the server will do, turn by turn.
#[derive(Clone, Debug)]
pub(crate) struct ScriptedModel {
    turns: Vec<Turn>,
    tools: bool,
    context: Value,
    key: Option<String>,
    other_server: bool,
    vision: bool,
    /// What the next turn that answers thinks first.
    thinking: Option<String>,
    /// What it says when it is asked to sum up, whatever turn it is.
    summary: Option<String>,
    /// Asked to sum up, it says nothing for so long.
    summary_stall: Option<Duration>,
    /// Bytes that it reads as one token.
    density: usize,
}

#[derive(Clone, Debug)]
enum Turn {
    Answer(Answer),
    Status {
        code: u16,
        headers: String,
        content_type: &'static str,
        body: String,
    },
    Raw {
        bytes: Vec<u8>,
        hold: Duration,
    },
    Stall(Duration),
    Drip {
        text: String,
        n_chars: usize,
        every: Duration,
    },
    DieMidAnswer {
        text: String,
    },
    /// The stream says `event: error`; asked without a stream the status is 500.
    SseError(Value),
    /// The stream ends without a word; asked without a stream this is the answer.
    Silence {
        code: u16,
        body: Value,
    },
}

#[derive(Clone, Debug, Default)]
struct Answer {
    text: Option<String>,
    thinking: Option<String>,
    calls: Vec<Call>,
}

#[derive(Clone, Debug)]
struct Call {
    name: String,
    arguments: String,
}

impl Default for ScriptedModel {
    fn default() -> Self {
        Self::new()
    }
}

#[expect(dead_code, reason = "the scripts of later tests need what those of today do not")]
#[expect(clippy::needless_pass_by_value, reason = "`calls(\"bash\", json!({..}))` reads best")]
impl ScriptedModel {
    pub(crate) fn new() -> Self {
        Self {
            turns: Vec::new(),
            tools: true,
            context: json!(32_768),
            key: None,
            other_server: false,
            vision: false,
            thinking: None,
            summary: None,
            summary_stall: None,
            density: 4,
        }
    }

    fn turn(mut self, turn: Turn) -> Self {
        self.turns.push(turn);
        self
    }

    fn answer(mut self, text: Option<&str>, calls: Vec<Call>) -> Self {
        let thinking = self.thinking.take();
        self.turn(Turn::Answer(Answer { text: text.map(str::to_owned), thinking, calls }))
    }

    /// Answers with text.
    pub(crate) fn says(self, text: &str) -> Self {
        self.answer(Some(text), Vec::new())
    }

    /// Calls one tool.
    pub(crate) fn calls(self, name: &str, arguments: Value) -> Self {
        self.raw_call(name, &arguments.to_string())
    }

    /// Calls one tool with arguments that may be anything.
    pub(crate) fn raw_call(self, name: &str, arguments: &str) -> Self {
        self.answer(None, vec![Call { name: name.to_owned(), arguments: arguments.to_owned() }])
    }

    /// Calls several tools in one answer.
    pub(crate) fn calls_many<'a>(self, calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let calls = calls.into_iter().map(|(name, arguments)| Call { name: name.to_owned(), arguments: arguments.to_string() }).collect();
        self.answer(None, calls)
    }

    /// Says something and calls a tool in the same answer.
    pub(crate) fn says_and_calls(self, text: &str, name: &str, arguments: Value) -> Self {
        self.answer(Some(text), vec![Call { name: name.to_owned(), arguments: arguments.to_string() }])
    }

    /// Thinks before the next answer.
    pub(crate) fn thinks(mut self, thinking: &str) -> Self {
        self.thinking = Some(thinking.to_owned());
        self
    }

    /// Answers with an HTTP status and a JSON body.
    pub(crate) fn status(self, code: u16, body: impl Into<String>) -> Self {
        self.status_with(code, "", body)
    }

    /// Answers with an HTTP status and header lines of the test's own, each ended by CRLF.
    pub(crate) fn status_with(self, code: u16, headers: &str, body: impl Into<String>) -> Self {
        self.turn(Turn::Status { code, headers: headers.to_owned(), content_type: "application/json", body: body.into() })
    }

    /// Answers as while its model loads.
    pub(crate) fn loading(self) -> Self {
        self.status(503, json!({"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}).to_string())
    }

    /// Answers as when the prompt does not fit: status 400.
    pub(crate) fn exceeds_context(self, n_prompt: u64, n_ctx: u64) -> Self {
        self.status(400, json!({"error": exceeded(n_prompt, n_ctx)}).to_string())
    }

    /// Answers with a web page.
    pub(crate) fn html(self) -> Self {
        self.turn(Turn::Status {
            code: 200,
            headers: String::new(),
            content_type: "text/html",
            body: "<!DOCTYPE html><h1>It works!</h1>".to_owned(),
        })
    }

    /// Sends exactly these bytes and hangs up.
    pub(crate) fn raw_http(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.turn(Turn::Raw { bytes: bytes.into(), hold: Duration::ZERO })
    }

    /// Sends exactly these bytes and keeps the connection open.
    pub(crate) fn raw_http_and_hold(self, bytes: impl Into<Vec<u8>>, hold: Duration) -> Self {
        self.turn(Turn::Raw { bytes: bytes.into(), hold })
    }

    /// Sends exactly these events, as one stream.
    pub(crate) fn raw_sse(self, events: &str) -> Self {
        self.raw_http(format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{events}"))
    }

    /// Sends headers, then nothing for so long, then the end of the stream.
    pub(crate) fn stall(self, duration: Duration) -> Self {
        self.turn(Turn::Stall(duration))
    }

    /// Answers with text, a few characters at a time.
    pub(crate) fn drips(self, text: &str, n_chars: usize, every: Duration) -> Self {
        self.turn(Turn::Drip { text: text.to_owned(), n_chars, every })
    }

    /// Says the text and drops the connection in the middle of the stream.
    pub(crate) fn dies_mid_answer(self, text: &str) -> Self {
        self.turn(Turn::DieMidAnswer { text: text.to_owned() })
    }

    /// Answers 200 and then `event: error`.
    pub(crate) fn sse_error(self, error: Value) -> Self {
        self.turn(Turn::SseError(error))
    }

    /// Answers 200 and an empty stream. Where it is asked again without a stream, it answers with this status and body.
    pub(crate) fn silent(self, code: u16, body: Value) -> Self {
        self.turn(Turn::Silence { code, body })
    }

    /// Says that its chat template has no tools; then calls are written as JSON text, if the request asks for that.
    pub(crate) fn without_tools(mut self) -> Self {
        self.tools = false;
        self
    }

    /// Says nothing for so long when it is asked to sum up.
    pub(crate) fn silent_summary(mut self, stall: Duration) -> Self {
        self.summary_stall = Some(stall);
        self
    }

    /// Reads this many bytes as one token, instead of four.
    pub(crate) fn density(mut self, bytes: usize) -> Self {
        self.density = bytes;
        self
    }

    /// Has this many tokens per slot.
    pub(crate) fn context(self, n_ctx: u64) -> Self {
        self.context_value(json!(n_ctx))
    }

    /// Says this of its window, which may be nonsense.
    pub(crate) fn context_value(mut self, n_ctx: Value) -> Self {
        self.context = n_ctx;
        self
    }

    /// Sums up in these words whenever it is asked to; that takes no turn of the script.
    pub(crate) fn sums_up(mut self, summary: &str) -> Self {
        self.summary = Some(summary.to_owned());
        self
    }

    /// Answers 401 without this key.
    pub(crate) fn key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// Says that its model can be shown images.
    pub(crate) fn sees(mut self) -> Self {
        self.vision = true;
        self
    }

    /// Has no `/props`, as servers other than llama-server.
    pub(crate) fn without_props(mut self) -> Self {
        self.other_server = true;
        self
    }

    /// Starts listening on a free port of 127.0.0.1. The result is there at once; it is a future for symmetry with other servers.
    pub(crate) fn start(self) -> std::future::Ready<Running> {
        std::future::ready(self.start_blocking())
    }

    /// Like [`ScriptedModel::start`], for tests without a runtime.
    pub(crate) fn start_blocking(self) -> Running {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket option");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared { script: self, seen: Mutex::default() });
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                runtime.block_on(async move {
                    let listener = TcpListener::from_std(listener).expect("a listening socket");
                    let serve = async {
                        while let Ok((stream, _)) = listener.accept().await {
                            // The end of an answer must not wait until the beginning was acknowledged.
                            stream.set_nodelay(true).expect("a socket option");
                            let shared = Arc::clone(&shared);
                            // A client that hangs up is no concern of the script's.
                            tokio::spawn(async move { drop(serve(stream, &shared).await) });
                        }
                    };
                    tokio::select! {
                        () = serve => {}
                        _ = stopped => {}
                    }
                });
            }
        });
        Running { address, shared, stop: Some(stop), thread: Some(thread) }
    }
}

/// Returns the error object of a prompt that does not fit, as llama-server writes it.
pub(crate) fn exceeded(n_prompt: u64, n_ctx: u64) -> Value {
    json!({
        "code": 400,
        "message": format!("request ({n_prompt} tokens) exceeds the available context size ({n_ctx} tokens), try increasing it"),
        "type": "exceed_context_size_error",
        "n_prompt_tokens": n_prompt,
        "n_ctx": n_ctx,
    })
}

/// A listening server; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[expect(dead_code, reason = "later tests ask for what those of today do not")]
impl Running {
    /// Returns `http://127.0.0.1:PORT/v1`.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the bodies of the requests for a completion, in order.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.seen(|seen| seen.bodies.iter().map(|body| serde_json::from_slice(body).unwrap_or(Value::Null)).collect())
    }

    /// Returns the same bodies, byte for byte.
    pub(crate) fn raw_bodies(&self) -> Vec<Vec<u8>> {
        self.seen(|seen| seen.bodies.clone())
    }

    /// Returns every request as it came, headers included, also those for `/props`.
    pub(crate) fn raw_requests(&self) -> Vec<Vec<u8>> {
        self.seen(|seen| seen.raw.clone())
    }

    /// Returns how long each request for a completion but the first came after the last byte of the answer before it.
    pub(crate) fn pauses(&self) -> Vec<Duration> {
        self.seen(|seen| seen.times.windows(2).map(|pair| pair[1].received.saturating_duration_since(pair[0].answered)).collect())
    }

    /// Returns what was wrong with the conversations, and forgets it: a test that expects faults takes them.
    pub(crate) fn take_faults(&self) -> Vec<String> {
        self.seen(|seen| std::mem::take(&mut seen.faults))
    }

    /// Returns the requests' bytes up to the end of their messages.
    pub(crate) fn heads(&self) -> Vec<Vec<u8>> {
        self.raw_bodies().iter().map(|body| head(body).to_vec()).collect()
    }

    /// Panics unless each request's tools and messages begin with the bytes of the one before.
    #[track_caller]
    pub(crate) fn assert_append_only(&self) {
        let heads = self.heads();
        for (n, pair) in heads.windows(2).enumerate() {
            assert!(
                pair[1].starts_with(&pair[0]),
                "request {} does not begin with request {n}:\n{}\n{}",
                n + 1,
                String::from_utf8_lossy(&pair[0]),
                String::from_utf8_lossy(&pair[1])
            );
        }
    }

    fn seen<T>(&self, with: impl FnOnce(&mut Seen) -> T) -> T {
        with(&mut self.shared.seen.lock().expect("no test panics while it holds this lock"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
        let faults = self.take_faults();
        assert!(faults.is_empty() || std::thread::panicking(), "the conversation was at fault: {faults:#?}");
    }
}

/// Returns the body up to the end of its messages.
fn head(body: &[u8]) -> &[u8] {
    let (mut depth, mut in_string, mut escaped) = (0_u32, false, false);
    let from = find(body, b"\"messages\":[").map_or(0, |at| at + b"\"messages\":".len());
    for (at, &byte) in body.iter().enumerate().skip(from) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return &body[..at];
                }
            }
            _ => {}
        }
    }
    body
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

#[derive(Debug)]
struct Shared {
    script: ScriptedModel,
    seen: Mutex<Seen>,
}

/// When one request for a completion had come whole, and when its answer had gone.
#[derive(Debug)]
struct Times {
    received: Instant,
    answered: Instant,
}

#[derive(Debug, Default)]
struct Seen {
    times: Vec<Times>,
    raw: Vec<Vec<u8>>,
    bodies: Vec<Vec<u8>>,
    faults: Vec<String>,
    n_turns: usize,
    /// Tokens of the last prompt: what the cache holds.
    cached: usize,
    /// How a silent turn answers when it is asked again.
    second: Option<(u16, Value)>,
}

/// Serves one connection, request after request.
async fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let head_end = loop {
            if let Some(at) = find(&buffer, b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
        let length: usize = header(&head, "content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        while buffer.len() < head_end + length {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        let request: Vec<u8> = buffer.drain(..head_end + length).collect();
        let body = request[head_end..].to_vec();
        lock(shared, |seen| seen.raw.push(request));
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        if let Some(key) = &shared.script.key
            && header(&head, "authorization").as_deref() != Some(&format!("Bearer {key}"))
        {
            respond(
                &mut stream,
                401,
                "",
                "application/json",
                br#"{"error":{"code":401,"message":"Invalid API Key","type":"authentication_error"}}"#,
            )
            .await?;
            continue;
        }
        let keep = if path.ends_with("/chat/completions") {
            let received = Instant::now();
            let keep = complete(&mut stream, shared, &body).await?;
            lock(shared, |seen| seen.times.push(Times { received, answered: Instant::now() }));
            keep
        } else {
            small(&mut stream, shared, &path, &body).await?
        };
        if !keep {
            return stream.shutdown().await;
        }
    }
}

fn lock<T>(shared: &Shared, with: impl FnOnce(&mut Seen) -> T) -> T {
    with(&mut shared.seen.lock().expect("no test panics while it holds this lock"))
}

fn header(head: &str, name: &str) -> Option<String> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim().to_owned())
}

async fn respond(stream: &mut TcpStream, code: u16, headers: &str, content_type: &str, body: &[u8]) -> io::Result<()> {
    let head = format!("HTTP/1.1 {code} Scripted\r\nContent-Type: {content_type}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await
}

/// Answers everything but completions.
async fn small(stream: &mut TcpStream, shared: &Shared, path: &str, body: &[u8]) -> io::Result<bool> {
    let script = &shared.script;
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let (code, answer) = match path {
        "/props" if script.other_server => (404, json!({"error": {"message": "not found", "code": 404}})),
        "/props" => {
            let caps = json!({
                "supports_tools": script.tools, "supports_tool_calls": script.tools, "supports_parallel_tool_calls": script.tools,
                "supports_object_arguments": script.tools, "supports_system_role": true, "supports_string_content": true,
            });
            let props = json!({
                "default_generation_settings": {"n_ctx": script.context, "params": {}}, "total_slots": 1, "model_alias": "scripted",
                "model_path": "/m/scripted.gguf", "chat_template": "{# scripted #}", "chat_template_caps": caps,
                "modalities": {"vision": script.vision}, "build_info": "b0-scripted",
            });
            (200, props)
        }
        "/v1/models" => {
            (200, json!({"object": "list", "data": [{"id": "scripted", "object": "model", "meta": {"n_ctx_train": script.context}}]}))
        }
        "/tokenize" => {
            let n = request["content"].as_str().map_or(0, str::len) / script.density;
            (200, json!({"tokens": (0..n.max(1)).collect::<Vec<_>>()}))
        }
        "/apply-template" => (200, json!({"prompt": request["messages"].to_string()})),
        "/health" => (200, json!({"status": "ok"})),
        _ => (404, json!({"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}})),
    };
    respond(stream, code, "", "application/json", answer.to_string().as_bytes()).await?;
    Ok(true)
}

/// Plays the next turn; returns whether the connection goes on.
async fn complete(stream: &mut TcpStream, shared: &Shared, body: &[u8]) -> io::Result<bool> {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let streamed = request["stream"] == json!(true);
    let (n, turn, usage) = lock(shared, |seen| {
        seen.bodies.push(body.to_vec());
        seen.faults.extend(faults(&request));
        let prompt = body.len() / shared.script.density;
        let cached = std::mem::replace(&mut seen.cached, prompt).min(prompt);
        let n = seen.n_turns;
        if let Some((code, body)) = seen.second.take().filter(|_| !streamed) {
            return (
                n,
                Turn::Status { code, headers: String::new(), content_type: "application/json", body: body.to_string() },
                (prompt, cached),
            );
        }
        if let Some(summary) = shared.script.summary.as_ref().filter(|_| asks_to_sum_up(body)) {
            let answer = Answer { text: Some(summary.clone()), ..Answer::default() };
            return (n, Turn::Answer(answer), (prompt, cached));
        }
        if let Some(stall) = shared.script.summary_stall.filter(|_| asks_to_sum_up(body)) {
            return (n, Turn::Stall(stall), (prompt, cached));
        }
        seen.n_turns += 1;
        let done = || Turn::Answer(Answer { text: Some("DONE".to_owned()), ..Answer::default() });
        let turn = shared.script.turns.get(n).cloned().unwrap_or_else(done);
        if let Turn::Silence { code, body } = &turn {
            seen.second = Some((*code, body.clone()));
        }
        (n, turn, (prompt, cached))
    });
    let mut out = Events { stream, n };
    match turn {
        Turn::Status { code, headers, content_type, body } => {
            respond(out.stream, code, &headers, content_type, body.as_bytes()).await?;
            Ok(true)
        }
        Turn::Raw { bytes, hold } => {
            out.stream.write_all(&bytes).await?;
            tokio::time::sleep(hold).await;
            Ok(false)
        }
        Turn::Stall(duration) => {
            out.begin().await?;
            tokio::time::sleep(duration).await;
            out.end(true).await
        }
        Turn::Drip { text, n_chars, every } => {
            out.begin().await?;
            let chars: Vec<char> = text.chars().collect();
            for piece in chars.chunks(n_chars.max(1)) {
                out.delta(&json!({"content": piece.iter().collect::<String>()})).await?;
                tokio::time::sleep(every).await;
            }
            out.finish("stop", usage).await
        }
        Turn::DieMidAnswer { text } => {
            out.begin().await?;
            out.delta(&json!({"content": text})).await?;
            Ok(false)
        }
        Turn::SseError(error) if streamed => {
            out.begin().await?;
            out.chunk(&format!("event: error\ndata: {}\n\n", json!({"error": error}))).await?;
            out.end(false).await
        }
        Turn::SseError(error) => {
            respond(out.stream, 500, "", "application/json", json!({"error": error}).to_string().as_bytes()).await?;
            Ok(true)
        }
        Turn::Silence { .. } => {
            out.begin().await?;
            out.end(false).await
        }
        Turn::Answer(answer) => {
            let answer = fit(answer, &request, shared.script.tools);
            if streamed {
                out.answer(&answer, usage, request["return_progress"] == json!(true)).await
            } else {
                whole(out.stream, n, &answer, usage).await
            }
        }
    }
}

/// Returns whether a request asks for a summary of the conversation, rather than for its next message.
pub(crate) fn asks_to_sum_up(body: &[u8]) -> bool {
    find(body, b"will be replaced by a summary that you write now").is_some()
}

/// Writes an answer as the request wants it: as JSON text where it has a schema, without calls where the template has none.
fn fit(answer: Answer, request: &Value, tools: bool) -> Answer {
    let says = |text: String| Answer { text: Some(text), thinking: answer.thinking.clone(), calls: Vec::new() };
    if request.get("response_format").is_some() && !tools {
        return match answer.calls.first() {
            Some(call) => says(format!("{{\"tool\": {}, \"arguments\": {}}}", json!(call.name), call.arguments)),
            None => says(format!("{{\"answer\": {}}}", json!(answer.text.clone().unwrap_or_default()))),
        };
    }
    match answer.calls.first() {
        // llama-server drops the tools without a word, and the model can only talk.
        Some(call) if !tools => says(format!("I would call {}.", call.name)),
        _ => answer,
    }
}

async fn whole(stream: &mut TcpStream, n: usize, answer: &Answer, (prompt, cached): (usize, usize)) -> io::Result<bool> {
    let calls: Vec<Value> = answer.calls.iter().enumerate().map(|(at, call)| wire_call(n, at, call, &call.arguments)).collect();
    let mut message = json!({"role": "assistant", "content": answer.text, "reasoning_content": answer.thinking});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
    let body = json!({
        "id": format!("c{n}"), "object": "chat.completion", "created": 1, "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage(prompt, cached), "timings": timings(prompt, cached),
    });
    respond(stream, 200, "", "application/json", body.to_string().as_bytes()).await?;
    Ok(true)
}

fn wire_call(n: usize, at: usize, call: &Call, arguments: &str) -> Value {
    json!({"index": at, "id": format!("call_{n}_{at}"), "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

fn usage(prompt: usize, cached: usize) -> Value {
    json!({"prompt_tokens": prompt, "completion_tokens": 8, "total_tokens": prompt + 8, "prompt_tokens_details": {"cached_tokens": cached}})
}

fn timings(prompt: usize, cached: usize) -> Value {
    json!({"cache_n": cached, "prompt_n": prompt - cached, "prompt_ms": 10.0, "predicted_n": 8, "predicted_ms": 80.0})
}

/// A stream in chunked encoding, as llama-server sends it: only a proper end is an end.
struct Events<'a> {
    stream: &'a mut TcpStream,
    n: usize,
}

impl Events<'_> {
    async fn begin(&mut self) -> io::Result<()> {
        self.stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n").await
    }

    async fn chunk(&mut self, text: &str) -> io::Result<()> {
        self.stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await
    }

    async fn event(&mut self, mut fields: Value) -> io::Result<()> {
        for (key, value) in [
            ("id", json!(format!("c{}", self.n))),
            ("object", json!("chat.completion.chunk")),
            ("created", json!(1)),
            ("model", json!("scripted")),
        ] {
            fields[key] = value;
        }
        self.chunk(&format!("data: {fields}\n\n")).await
    }

    async fn delta(&mut self, delta: &Value) -> io::Result<()> {
        self.event(json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})).await
    }

    async fn answer(&mut self, answer: &Answer, counts: (usize, usize), progress: bool) -> io::Result<bool> {
        self.begin().await?;
        if progress {
            let (prompt, cached) = counts;
            self.event(json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": null}, "finish_reason": null}], "prompt_progress": {"total": prompt, "cache": cached, "processed": prompt, "time_ms": 10}})).await?;
        }
        if let Some(thinking) = &answer.thinking {
            self.delta(&json!({"reasoning_content": thinking})).await?;
        }
        if let Some(text) = &answer.text {
            let chars: Vec<char> = text.chars().collect();
            for piece in chars.chunks(WORD) {
                self.delta(&json!({"content": piece.iter().collect::<String>()})).await?;
            }
        }
        for (at, call) in answer.calls.iter().enumerate() {
            self.delta(&json!({"tool_calls": [wire_call(self.n, at, call, "")]})).await?;
            let chars: Vec<char> = call.arguments.chars().collect();
            for piece in chars.chunks(WORD) {
                self.delta(&json!({"tool_calls": [{"index": at, "function": {"arguments": piece.iter().collect::<String>()}}]})).await?;
            }
        }
        self.finish(if answer.calls.is_empty() { "stop" } else { "tool_calls" }, counts).await
    }

    async fn finish(&mut self, reason: &str, (prompt, cached): (usize, usize)) -> io::Result<bool> {
        self.event(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})).await?;
        self.event(json!({"choices": [], "usage": usage(prompt, cached), "timings": timings(prompt, cached)})).await?;
        self.end(true).await
    }

    async fn end(&mut self, done: bool) -> io::Result<bool> {
        if done {
            self.chunk("data: [DONE]\n\n").await?;
        }
        self.stream.write_all(b"0\r\n\r\n").await?;
        Ok(true)
    }
}

/// Returns what is wrong with a conversation.
pub(crate) fn faults(request: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let Some(messages) = request["messages"].as_array() else { return vec!["the request has no messages".to_owned()] };
    let mut open: Vec<&str> = Vec::new();
    let mut last_role = "";
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let id = message["tool_call_id"].as_str().unwrap_or_default();
        match role {
            "tool" => match open.iter().position(|&one| one == id) {
                Some(found) => {
                    open.remove(found);
                }
                None => faults.push(format!("message {at} is the result of `{id}`, which nobody called")),
            },
            _ if !open.is_empty() => {
                faults.push(format!("message {at} comes before the results of {open:?}"));
                open.clear();
            }
            _ => {}
        }
        match role {
            "system" if at > 0 => faults.push(format!("message {at} is a second system message")),
            "user" | "assistant" if role == last_role => faults.push(format!("messages {} and {at} are both the {role}'s", at - 1)),
            "system" | "user" | "tool" | "assistant" => {}
            other => faults.push(format!("message {at} has the role `{other}`")),
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            open.push(call["id"].as_str().unwrap_or_default());
            let arguments = call["function"]["arguments"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
            if !arguments.is_some_and(|value| value.is_object()) {
                faults.push(format!("message {at} repeats arguments that are no JSON object"));
            }
        }
        last_role = role;
    }
    if !open.is_empty() {
        faults.push(format!("the results of {open:?} are missing"));
    }
    if last_role != "user" && last_role != "tool" {
        faults.push(format!("the last message is the {last_role}'s"));
    }
    faults
}
