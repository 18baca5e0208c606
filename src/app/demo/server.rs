use std::io;
use std::path::PathBuf;

use serde_json::Value;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::AsyncBufReadExt;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::BufReader;
use tokio::net::UnixListener;
use tokio::net::UnixStream;
use tokio_util::task::AbortOnDropHandle;

use super::script;
use super::script::Turn;
use podbay_llm::Endpoint;

/// Longest head of a request, in bytes; our own client sends far less.
const MOST_HEAD: u64 = 64 * 1024;
/// Longest body of a request, in bytes.
const MOST_BODY: u64 = 16 * 1024 * 1024;

/// Speaks the script's lines as a model server would, at a socket in a folder that nobody else may
/// enter. It ends when it is dropped.
pub(super) struct Server {
    socket: PathBuf,
    _serving: AbortOnDropHandle<()>,
    _folder: TempDir,
}

impl Server {
    /// Listens. Must be called inside a runtime.
    pub(super) fn start() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("podbay-demo-").tempdir()?;
        let socket = folder.path().join("m.sock");
        let listener = UnixListener::bind(&socket)?;
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    if let Err(error) = serve(stream).await {
                        tracing::debug!(%error, "a request to the demonstration's script failed");
                    }
                });
            }
        });
        Ok(Self {
            socket,
            _serving: AbortOnDropHandle::new(serving),
            _folder: folder,
        })
    }

    pub(super) fn endpoint(&self) -> Endpoint {
        Endpoint::unix(&self.socket)
    }
}

/// Answers one request; each has a connection of its own.
async fn serve(stream: UnixStream) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let mut head = String::new();
    {
        let mut bounded = (&mut reader).take(MOST_HEAD);
        while !head.ends_with("\r\n\r\n") {
            if bounded.read_line(&mut head).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("content-length:")?
            .trim()
            .parse::<u64>()
            .ok()
    });
    let mut body = Vec::new();
    reader
        .take(length.unwrap_or(0).min(MOST_BODY))
        .read_to_end(&mut body)
        .await?;
    let (status, kind, text) = answer(head.lines().next().unwrap_or_default(), &body);
    let n_bytes = text.len();
    let whole = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {n_bytes}\r\nConnection: close\r\n\r\n{text}"
    );
    writer.write_all(whole.as_bytes()).await?;
    writer.shutdown().await
}

/// Returns status, content type and body.
fn answer(line: &str, body: &[u8]) -> (&'static str, &'static str, String) {
    const JSON: &str = "application/json";
    if line.starts_with("GET /v1/models") {
        let list = json!({"object": "list", "data": [{"id": script::MODEL, "object": "model", "context_length": script::CONTEXT}]});
        return ("200 OK", JSON, list.to_string());
    }
    if !line.starts_with("POST /v1/chat/completions") {
        return (
            "404 Not Found",
            JSON,
            json!({"error": {"message": "the demonstration's script has no such page"}})
                .to_string(),
        );
    }
    match serde_json::from_slice::<Value>(body) {
        Ok(request) => (
            "200 OK",
            "text/event-stream",
            stream(&script::answer(&request)),
        ),
        Err(error) => (
            "400 Bad Request",
            JSON,
            json!({"error": {"message": error.to_string()}}).to_string(),
        ),
    }
}

/// Returns a turn as the stream that OpenAI-compatible servers send, in pieces as a model would
/// make them.
fn stream(turn: &Turn) -> String {
    let mut text = String::new();
    let mut put = |delta: Value, finish: Option<&str>| {
        let chunk = json!({
            "id": "chatcmpl-demonstration", "object": "chat.completion.chunk", "created": 0, "model": script::MODEL,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        });
        text.push_str(&format!("data: {chunk}\n\n"));
    };
    put(json!({"role": "assistant", "content": ""}), None);
    for word in turn.text.split_inclusive(' ') {
        put(json!({"content": word}), None);
    }
    for (index, (name, arguments)) in turn.calls.iter().enumerate() {
        let id = format!("demo-{index}");
        put(
            json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]}),
            None,
        );
        put(
            json!({"tool_calls": [{"index": index, "function": {"arguments": arguments.to_string()}}]}),
            None,
        );
    }
    put(
        json!({}),
        Some(if turn.calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        }),
    );
    text.push_str("data: [DONE]\n\n");
    text
}
